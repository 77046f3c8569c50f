//! What was sent, decoded: the object of a write, and what its schema does not know of it.
//!
//! Pure: bytes to values, with the words of `k8s.io/apiserver/pkg/endpoints/handlers`.

use serde_json::Value;

use super::meta;
use super::options::Unknown;
use crate::embedded::errors::{Refusal, go_error};
use crate::embedded::front::protobuf;
use crate::embedded::kinds;
use crate::embedded::served::{Origin, Served};

/// A decoded object and the warnings about it.
pub(super) struct Decoded {
    pub(super) object: Value,
    pub(super) warnings: Vec<String>,
}

/// Bytes that an error shows of a body.
const SHOWN: usize = 30;

/// Levels of an object. The reader of JSON takes 128, and managed fields are a few levels deeper than what they describe.
const DEEPEST: usize = 100;

fn is_deeper(value: &Value, levels: usize) -> bool {
    let inside = |value: &Value| levels == 0 || is_deeper(value, levels - 1);
    match value {
        Value::Array(items) => items.iter().any(inside),
        Value::Object(fields) => fields.values().any(inside),
        _ => false,
    }
}

/// The value of a body that is no object of a kind that is kept, such as the request for a token.
pub(super) fn value(media_type: &str, body: &[u8]) -> Result<Value, Refusal> {
    if media_type == protobuf::PROTOBUF {
        return protobuf::decode(body);
    }
    serde_json::from_slice(body).map_err(|error| Refusal::bad_request(go_error(body, &error)))
}

/// Decodes the object of a POST or PUT.
pub(super) fn object(kind: &Served, media_type: &str, body: &[u8], unknown: Unknown, virtually: bool) -> Result<Decoded, Refusal> {
    let json = match media_type {
        "" | "application/json" => serde_json::from_slice::<Value>(body),
        "application/yaml" => return yaml(kind, body, unknown, virtually),
        protobuf::PROTOBUF if kind.origin == Origin::BuiltIn && !virtually => {
            return checked(kind, from_protobuf(kind, body)?, body, unknown, virtually);
        }
        _ => {
            let all = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
            let through = "application/json, application/yaml";
            return Err(Refusal::unsupported_media_type(if virtually { through } else { all }));
        }
    };
    match json {
        // Go knows which native kind it reads into.
        Ok(mut object) if kind.origin == Origin::BuiltIn && !virtually && (object.is_null() || object.is_object()) => {
            if object.is_null() {
                object = serde_json::json!({});
            }
            for (field, value) in [("apiVersion", kind.api_version()), ("kind", kind.names.kind.to_string())] {
                if object[field].is_null() || object[field] == "" {
                    object[field] = value.into();
                }
            }
            checked(kind, object, body, unknown, virtually)
        }
        Ok(object) => checked(kind, object, body, unknown, virtually),
        Err(error) => Err(unreadable(kind, body, &error)),
    }
}

fn from_protobuf(kind: &Served, body: &[u8]) -> Result<Value, Refusal> {
    protobuf::decode(body).map_err(|refusal| match refusal.code {
        400 => unrecognized(kind, &format!("unexpected EOF ({})", hex(body))),
        _ => refusal,
    })
}

/// The beginning of a body that is no text.
fn hex(body: &[u8]) -> String {
    body.iter().take(SHOWN).map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}

fn yaml(kind: &Served, body: &[u8], unknown: Unknown, virtually: bool) -> Result<Decoded, Refusal> {
    let object = std::str::from_utf8(body).ok().and_then(|text| serde_saphyr::from_str::<Value>(text).ok());
    let object = object.ok_or_else(|| Refusal::bad_request("error converting YAML to JSON"))?;
    checked(kind, object, body, unknown, virtually)
}

fn unreadable(kind: &Served, body: &[u8], error: &serde_json::Error) -> Refusal {
    let why = go_error(body, error);
    let text = String::from_utf8_lossy(body);
    let shown = if text.is_empty() { "<empty>".to_owned() } else { shown(body) };
    unrecognized(kind, &format!("couldn't get version/kind; json parse error: {why} ({shown})"))
}

/// The beginning of a body: as text if it looks like an object, as numbers otherwise.
fn shown(body: &[u8]) -> String {
    if !body.starts_with(b"{") {
        return hex(body);
    }
    let text = String::from_utf8_lossy(body);
    let more = if text.chars().count() > SHOWN { " ..." } else { "" };
    text.chars().take(SHOWN).chain(more.chars()).collect()
}

fn unrecognized(kind: &Served, why: &str) -> Refusal {
    Refusal::bad_request(format!("the object provided is unrecognized (must be of type {}): {why}", kind.names.kind))
}

fn checked(kind: &Served, object: Value, body: &[u8], unknown: Unknown, virtually: bool) -> Result<Decoded, Refusal> {
    if object.is_null() {
        return Err(unrecognized(kind, &format!("Object 'Kind' is missing in 'null' ({})", shown(body))));
    }
    if !object.is_object() {
        let what = match object {
            Value::Array(_) => "array",
            Value::String(_) => "string",
            Value::Number(_) => "number",
            _ => "bool",
        };
        let type_ = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";
        let shown = shown(body);
        let why =
            format!("couldn't get version/kind; json parse error: json: cannot unmarshal {what} into Go value of type {type_} ({shown})");
        return Err(unrecognized(kind, &why));
    }
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    if text("kind").is_empty() {
        let text = String::from_utf8_lossy(body);
        return Err(unrecognized(kind, &format!("Object 'Kind' is missing in '{text}' ({})", shown(body))));
    }
    let api_version = kind.api_version();
    // Through a virtual workspace native kinds are like all others.
    let native = kind.origin == Origin::BuiltIn && !virtually;
    if native && (text("kind") != &*kind.names.kind || text("apiVersion") != api_version) {
        return Err(unhandled(kind, text("kind"), text("apiVersion")));
    }
    other_version(kind, &object, unknown)?;
    if text("kind") != &*kind.names.kind && kind.origin == Origin::BuiltIn {
        return Err(unhandled(kind, text("kind"), text("apiVersion")));
    }
    if text("kind") != &*kind.names.kind {
        // No schema is known for it, so that nothing is unknown; it is refused later.
        return tidy(kind, object, Unknown::Ignore, &[]);
    }
    tidy(kind, object, unknown, &[])
}

/// 400 of a body that cannot become an object of a native kind.
pub(super) fn unhandled(kind: &Served, given: &str, api_version: &str) -> Refusal {
    let (version, why) = (short(api_version), misfit(kind, given, api_version));
    Refusal::bad_request(format!("{given} in version {version:?} cannot be handled as a {}: {why}", kind.names.kind))
}

/// Why Go makes no object of a native kind of what calls itself so.
pub(super) fn misfit(kind: &Served, given: &str, api_version: &str) -> String {
    let mut natives = kinds::built_in().0.iter().filter(|known| known.origin == Origin::BuiltIn);
    if given == "Status" || natives.any(|known| &*known.names.kind == given && known.api_version() == api_version) {
        let group = kind.names.group.split('.').next().filter(|group| !group.is_empty()).unwrap_or("core");
        return format!("converting ({}.{given}) to ({group}.{}): unknown conversion", short(api_version), kind.names.kind);
    }
    format!("no kind {given:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:100\"")
}

fn short(api_version: &str) -> &str {
    api_version.rsplit('/').next().unwrap_or_default()
}

/// Refuses an object of another version, with what is unknown of it.
pub(super) fn other_version(kind: &Served, object: &Value, unknown: Unknown) -> Result<(), Refusal> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let api_version = kind.api_version();
    if text("apiVersion") != api_version {
        let words = "the API version in the data";
        let refusal =
            Refusal::bad_request(format!("{words} ({}) does not match the expected API version ({api_version})", text("apiVersion")));
        // A version that is not there knows no field; of another group nothing is known.
        let group = |version: &str| version.rsplit_once('/').map(|(group, _)| group.to_owned()).unwrap_or_default();
        let is_ours = kind.origin != Origin::BuiltIn && group(text("apiVersion")) == group(&api_version);
        let fields = object.as_object().into_iter().flatten().map(|(field, _)| field.as_str());
        let fields = fields.filter(|field| !["apiVersion", "kind", "metadata"].contains(field) && is_ours);
        let warnings: Vec<String> = fields.map(|field| format!("unknown field {field:?}")).collect();
        let given = (text("kind"), text("apiVersion").rsplit('/').next().unwrap_or_default());
        return Err(match unknown {
            Unknown::Warn => refusal.warning(warnings),
            Unknown::Strict if !warnings.is_empty() => strict(given.0, given.1, &kind.names.kind, &warnings),
            _ => refusal,
        });
    }
    Ok(())
}

/// Takes out of an object what its schema does not know. `before` are paths that were unknown to an object that is patched.
pub(super) fn tidy(kind: &Served, mut object: Value, unknown: Unknown, before: &[String]) -> Result<Decoded, Refusal> {
    if !object.is_object() {
        return Err(Refusal::bad_request(format!("the object provided is unrecognized (must be of type {})", kind.names.kind)));
    }
    if is_deeper(&object, DEEPEST) {
        return Err(Refusal::bad_request("exceeded max depth"));
    }
    let mut found = meta::normalise(kind, &mut object)?;
    found.extend(kind.schema.prune(&mut object));
    found.retain(|path| !before.contains(path));
    let said: Vec<String> = found.into_iter().map(|path| format!("unknown field {path:?}")).collect();
    match unknown {
        Unknown::Ignore => Ok(Decoded { object, warnings: Vec::new() }),
        Unknown::Warn => Ok(Decoded { object, warnings: said }),
        Unknown::Strict if said.is_empty() => Ok(Decoded { object, warnings: said }),
        Unknown::Strict => Err(strict(&kind.names.kind, &kind.version, &kind.names.kind, &said)),
    }
}

fn strict(given: &str, version: &str, kind: &str, said: &[String]) -> Refusal {
    let list = said.join(", ");
    Refusal::bad_request(format!("{given} in version {version:?} cannot be handled as a {kind}: strict decoding error: {list}"))
}
