//! Bodies in Kubernetes' protobuf.
//!
//! Pure: from bytes to JSON. `kubectl create namespace`, `create configmap`, `create token`, `auth can-i` and their like send nothing else,
//! and do not try JSON after a refusal. They understand an answer in JSON, so nothing is written in protobuf.

use serde_json::{Map, Value, json};

use super::messages::{Message, Type, message};
use crate::embedded::errors::Refusal;

/// The media type.
pub const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// What every body begins with.
const MAGIC: &[u8] = b"k8s\0";

/// How deep messages may nest; the kinds here need five levels.
const MAX_DEPTH: usize = 16;

/// The object in a body, as JSON would have it.
///
/// # Errors
/// 400 for what is no such body, 415 for a kind that is not sent this way.
pub fn decode(body: &[u8]) -> Result<Value, Refusal> {
    let broken = |Broken| Refusal::bad_request("the object provided is unrecognized: unexpected EOF");
    let envelope = body.strip_prefix(MAGIC).ok_or(Broken).and_then(fields).map_err(broken)?;
    let identity = part(&envelope, 1).and_then(fields).map_err(broken)?;
    let text = |number: u64| part(&identity, number).and_then(text).map_err(broken);
    let (api_version, kind) = (text(1)?, text(2)?);
    let known = message(&api_version, &kind).ok_or_else(|| Refusal::unsupported_media_type("application/json, application/yaml"))?;
    let mut object = part(&envelope, 2).and_then(|bytes| decoded(known, bytes, MAX_DEPTH)).map_err(broken)?;
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    Ok(object)
}

/// A message that ends too soon, or whose field is not of its type.
struct Broken;

/// A field as it is on the wire.
enum Field<'a> {
    Varint(u64, u64),
    Bytes(u64, &'a [u8]),
}

impl<'a> Field<'a> {
    fn bytes(&self, wanted: u64) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(number, bytes) if *number == wanted => Some(bytes),
            _ => None,
        }
    }
}

/// The last field of a number.
fn part<'a>(fields: &[Field<'a>], number: u64) -> Result<&'a [u8], Broken> {
    fields.iter().rev().find_map(|field| field.bytes(number)).ok_or(Broken)
}

/// The fields of a message. Numbers of fixed size occur in no kind and are skipped.
fn fields(mut rest: &[u8]) -> Result<Vec<Field<'_>>, Broken> {
    let mut found = Vec::new();
    while !rest.is_empty() {
        let tag = varint(&mut rest)?;
        match tag & 7 {
            0 => found.push(Field::Varint(tag >> 3, varint(&mut rest)?)),
            1 => drop(take(&mut rest, 8)?),
            2 => {
                let length = usize::try_from(varint(&mut rest)?).map_err(|_| Broken)?;
                found.push(Field::Bytes(tag >> 3, take(&mut rest, length)?));
            }
            5 => drop(take(&mut rest, 4)?),
            _ => return Err(Broken),
        }
    }
    Ok(found)
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], Broken> {
    let (taken, after) = rest.split_at_checked(length).ok_or(Broken)?;
    *rest = after;
    Ok(taken)
}

fn varint(rest: &mut &[u8]) -> Result<u64, Broken> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(rest, 1)?[0];
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(Broken)
}

fn decoded(message: Message, bytes: &[u8], depth: usize) -> Result<Value, Broken> {
    let depth = depth.checked_sub(1).ok_or(Broken)?;
    let mut object = Map::new();
    for field in fields(bytes)? {
        let (Field::Varint(number, _) | Field::Bytes(number, _)) = field;
        let Some((_, name, type_)) = message.iter().find(|(known, ..)| *known == number) else { continue };
        match type_ {
            Type::Repeated(of) => {
                let list = object.entry(*name).or_insert_with(|| json!([])).as_array_mut().ok_or(Broken)?;
                list.push(entry(of, &field, depth)?);
            }
            Type::Map(of) => {
                let Field::Bytes(_, pair) = field else { return Err(Broken) };
                let pair = fields(pair)?;
                let key = text(part(&pair, 1).unwrap_or_default())?;
                let found = pair.iter().find(|field| field.bytes(2).is_some()).map(|field| entry(of, field, depth));
                let found = found.unwrap_or_else(|| Ok(json!("")))?;
                object.entry(*name).or_insert_with(|| json!({})).as_object_mut().ok_or(Broken)?.insert(key, found);
            }
            single => {
                if let Some(found) = value(single, &field, depth)? {
                    object.insert((*name).to_owned(), found);
                }
            }
        }
    }
    Ok(object.into())
}

/// A value in a list or a map, where an empty text stays.
fn entry(type_: &Type, field: &Field<'_>, depth: usize) -> Result<Value, Broken> {
    Ok(value(type_, field, depth)?.unwrap_or_else(|| json!("")))
}

/// One value; `None` for one that JSON leaves out.
fn value(type_: &Type, field: &Field<'_>, depth: usize) -> Result<Option<Value>, Broken> {
    let signed = |number: u64| Value::from(number.cast_signed());
    Ok(match (type_, field) {
        (Type::Number, Field::Varint(_, number)) => Some(signed(*number)).filter(|_| *number != 0),
        (Type::MaybeNumber, Field::Varint(_, number)) => Some(signed(*number)),
        (Type::MaybeBool, Field::Varint(_, number)) => Some((*number != 0).into()),
        (Type::Text, Field::Bytes(_, bytes)) => Some(text(bytes)?.into()).filter(|text| text != ""),
        (Type::Bytes, Field::Bytes(_, bytes)) => Some(super::base64(bytes).into()),
        (Type::Json, Field::Bytes(_, bytes)) => Some(serde_json::from_slice(bytes).map_err(|_| Broken)?),
        (Type::Time, Field::Bytes(_, bytes)) => moment(bytes, 0)?,
        (Type::MicroTime, Field::Bytes(_, bytes)) => moment(bytes, 6)?,
        (Type::Wrapped(Type::Repeated(of)), Field::Bytes(_, bytes)) => {
            let list = fields(bytes)?.iter().map(|field| entry(of, field, depth)).collect::<Result<Vec<_>, _>>()?;
            Some(list.into())
        }
        (Type::Wrapped(of), Field::Bytes(_, bytes)) => match part(&fields(bytes)?, 1) {
            Ok(inner) => value(of, &Field::Bytes(1, inner), depth)?,
            Err(Broken) => None,
        },
        (Type::Message(message), Field::Bytes(_, bytes)) => Some(decoded(message, bytes, depth)?),
        _ => return Err(Broken),
    })
}

fn text(bytes: &[u8]) -> Result<String, Broken> {
    String::from_utf8(bytes.to_vec()).map_err(|_| Broken)
}

/// A moment in RFC 3339 with so many digits after the second; none when the message is empty.
fn moment(bytes: &[u8], digits: u8) -> Result<Option<Value>, Broken> {
    let (mut seconds, mut nanos) = (0, 0);
    for field in fields(bytes)? {
        match field {
            Field::Varint(1, number) => seconds = number.cast_signed(),
            Field::Varint(2, number) => nanos = i32::try_from(number.cast_signed()).map_err(|_| Broken)?,
            _ => {}
        }
    }
    if (seconds, nanos) == (0, 0) {
        return Ok(None);
    }
    let time = jiff::Timestamp::new(seconds, nanos).map_err(|_| Broken)?;
    let printer = jiff::fmt::temporal::DateTimePrinter::new().precision(Some(digits));
    Ok(Some(printer.timestamp_to_string(&time).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    /// What kubectl v1.32 sent, byte for byte.
    const SENT: [(&str, &str, &str); 10] = [
        (
            "create ns zz",
            "6b3873000a0f0a02763112094e616d657370616365121a0a120a027a7a12001a0022002a0032003800420012001a020a001a002200",
            r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"zz"},"spec":{},"status":{}}"#,
        ),
        (
            "create cm x --from-literal=a=b",
            "6b3873000a0f0a0276311209436f6e6669674d6170121b0a110a017812001a0022002a0032003800420012060a01611201621a002200",
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"a":"b"}}"#,
        ),
        (
            "create secret generic s --from-literal=a=b --type=Opaque",
            "6b3873000a0c0a027631120653656372657412230a110a017312001a0022002a0032003800420012060a01611201621a064f7061717565\
             1a002200",
            r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"a":"Yg=="},"type":"Opaque"}"#,
        ),
        (
            "create sa foo",
            "6b3873000a140a027631120e536572766963654163636f756e7412150a130a03666f6f12001a0022002a003200380042001a002200",
            r#"{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"foo"}}"#,
        ),
        (
            "create quota q --hard=pods=3,cpu=500m",
            "6b3873000a130a027631120d5265736f7572636551756f746112330a110a017112001a0022002a00320038004200121c0a0d0a03637075\
             12060a043530306d0a0b0a04706f647312030a01331a001a002200",
            r#"{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"q"},"spec":{"hard":{"cpu":"500m","pods":"3"}},"status":{}}"#,
        ),
        (
            "create token foo --duration=20m",
            "6b3873000a280a1861757468656e7469636174696f6e2e6b38732e696f2f7631120c546f6b656e52657175657374121d0a100a0012001a\
             0022002a00320038004200120320b0091a040a0012001a002200",
            r#"{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","metadata":{},"spec":{"expirationSeconds":1200},
                "status":{}}"#,
        ),
        (
            "auth whoami",
            "6b3873000a2d0a1861757468656e7469636174696f6e2e6b38732e696f2f7631121153656c665375626a656374526576696577121a0a10\
             0a0012001a0022002a0032003800420012060a040a0012001a002200",
            r#"{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview","metadata":{},"status":{}}"#,
        ),
        (
            "auth can-i --list",
            "6b3873000a310a17617574686f72697a6174696f6e2e6b38732e696f2f7631121653656c665375626a65637452756c6573526576696577\
             12230a100a0012001a0022002a0032003800420012090a0764656661756c741a04180022001a002200",
            r#"{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectRulesReview","metadata":{},
                "spec":{"namespace":"default"},"status":{}}"#,
        ),
        (
            "create rolebinding rb --role=r --serviceaccount=default:foo --user=u",
            "6b3873000a2b0a1c726261632e617574686f72697a6174696f6e2e6b38732e696f2f7631120b526f6c6542696e64696e671284010a120a\
             02726212001a0022002a0032003800420012260a04557365721219726261632e617574686f72697a6174696f6e2e6b38732e696f1a0175\
             220012200a0e536572766963654163636f756e7412001a03666f6f220764656661756c741a240a19726261632e617574686f72697a6174\
             696f6e2e6b38732e696f1204526f6c651a01721a002200",
            r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"rb"},"subjects":[
                {"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"u"},
                {"kind":"ServiceAccount","name":"foo","namespace":"default"}],
                "roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"r"}}"#,
        ),
        (
            "create clusterrolebinding rb --clusterrole=r --group=g",
            "6b3873000a320a1c726261632e617574686f72697a6174696f6e2e6b38732e696f2f76311212436c7573746572526f6c6542696e64696e\
             67126a0a120a02726212001a0022002a0032003800420012270a0547726f75701219726261632e617574686f72697a6174696f6e2e6b38\
             732e696f1a016722001a2b0a19726261632e617574686f72697a6174696f6e2e6b38732e696f120b436c7573746572526f6c651a01721a\
             002200",
            r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"rb"},
                "subjects":[{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":"g"}],
                "roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"r"}}"#,
        ),
    ];

    #[test]
    fn what_kubectl_sends_is_read() {
        for (command, hex, wanted) in SENT {
            assert_eq!(decode(&bytes(hex)).unwrap(), serde_json::from_str::<Value>(wanted).unwrap(), "kubectl {command}");
        }
    }

    #[test]
    fn a_body_that_ends_too_soon_is_refused() {
        for (command, hex, _) in SENT {
            let whole = bytes(hex);
            // Two empty fields follow the object; without them it is whole.
            for length in 0..whole.len() - 4 {
                assert_eq!(decode(&whole[..length]).unwrap_err().code, 400, "kubectl {command}: {length}");
            }
        }
        assert_eq!(decode(b"{}").unwrap_err().code, 400);
    }

    #[test]
    fn a_kind_of_a_definition_is_not_sent_this_way() {
        let envelope = [MAGIC, &[0x0a, 6, 0x0a, 1, b'v', 0x12, 1, b'K', 0x12, 0]].concat();
        assert_eq!(decode(&envelope).unwrap_err().code, 415);
    }

    #[test]
    fn moments_and_maps_of_lists_are_read() {
        let spec = [0x2a, 10, 0x0a, 1, b'k', 0x12, 5, 0x0a, 1, b'a', 0x0a, 0];
        let review = [&[0x12, 12][..], &spec].concat();
        let known = message("authorization.k8s.io/v1", "SubjectAccessReview").unwrap();
        assert_eq!(decoded(known, &review, 9).ok().unwrap(), json!({"spec": {"extra": {"k": ["a", ""]}}}));
        let event = [0x32, 2, 0x08, 7, 0x52, 8, 0x08, 7, 0x10, 0x80, 0xca, 0xb5, 0xee, 0x01];
        let event = decoded(message("v1", "Event").unwrap(), &event, 9).ok().unwrap();
        assert_eq!(event, json!({"firstTimestamp": "1970-01-01T00:00:07Z", "eventTime": "1970-01-01T00:00:07.500000Z"}));
    }
}
