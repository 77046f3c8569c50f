//! An answer in a form that two servers can agree on: what a server chooses freely is a symbol, everything else stays as it is.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Map, Value, json};

use super::memory::Memory;
use super::target::Got;

/// Kinds that controllers write in their own time: which of their versions one sees is luck.
const WRITTEN_BY_CONTROLLERS: [&str; 9] = [
    "APIBinding",
    "APIExport",
    "APIExportEndpointSlice",
    "LogicalCluster",
    "Namespace",
    "ResourceQuota",
    "Secret",
    "ServiceAccount",
    "Workspace",
];

macro_rules! regex {
    ($name:ident, $text:expr) => {
        static $name: LazyLock<Regex> = LazyLock::new(|| Regex::new($text).expect("a regular expression"));
    };
}

regex!(UID, r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}");
regex!(HASH, r"\b[0-9a-f]{64}\b");
regex!(TIME, r"20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)");
regex!(JWT, r"eyJ[\w-]+\.[\w-]+\.[\w-]+");
regex!(OWN_BINDING, r"(tenancy|topology)\.kcp\.io-[a-z0-9]{5}\b");
regex!(
    VERSION_IN_WORDS,
    r#"(resourceVersion\\*":\\*"|ResourceVersion in the precondition \(|ResourceVersion in record \(|current: |resource version: )\d+"#
);
regex!(CERTIFICATES, r"(-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----\s*)+");
// A refused patch shows the object in the order of Go's fields, which is ours only for custom kinds.
regex!(ECHO, r#"Invalid value: "\{\\?"apiVersion.*\}": "#);
// The administrator of the real server has a uid.
regex!(OWNER_UID, r#""username":"kcp-admin","uid":"[^"]*","#);
regex!(AGE, r"^(\d+[smhdy])+$|^<invalid>$|^<unknown>$");

/// How the answers of one step are to be read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    /// Others may write what is asked for: versions of objects are not compared, and counted anew from here.
    pub(crate) unsteady: bool,
    /// The answer is a stream of events.
    pub(crate) events: bool,
}

/// The normal form, after noting in `memory` what the answer tells.
pub(crate) fn normal(got: &Got, reading: Reading, memory: &mut Memory) -> Value {
    let header = |name: &str| {
        let all = got.headers.get_all(name).iter().map(|value| value.to_str().unwrap_or("?"));
        all.map(|value| memory.replace_known(value)).collect::<Vec<_>>()
    };
    let mut answer = json!({"code": got.code, "content-type": header("content-type"), "warning": header("warning"), "retry-after": header("retry-after")});
    answer["body"] = if reading.events && got.code == 200 { events(&got.text, reading, memory) } else { body(&got.text, reading, memory) };
    answer
}

fn body(text: &str, reading: Reading, memory: &mut Memory) -> Value {
    match serde_json::from_str::<Value>(text) {
        Ok(value) => document(&value, reading, memory),
        Err(_) => string(text, memory).into(),
    }
}

fn document(value: &Value, reading: Reading, memory: &mut Memory) -> Value {
    let in_order = is_in_order(value);
    let mut value = known(value, memory);
    for list in ["items", "rows", "groups", "resources"] {
        sort_list(&mut value, list);
    }
    name_generated(&value, memory);
    name_workspaces(&value, memory);
    let mut value = known(&value, memory);
    visit(&mut value, reading, memory);
    if let Some(in_order) = in_order {
        value["items are in the order of their keys"] = in_order.into();
    }
    value
}

/// Whether a list is ordered as its storage is. The order itself depends on names that servers choose.
fn is_in_order(list: &Value) -> Option<bool> {
    let keys: Vec<String> = list["items"].as_array()?.iter().map(|item| order(item).trim().replace(' ', "/")).collect();
    Some(keys.is_sorted())
}

/// All pages but an empty one at the end: whether there is one depends on what else is in other workspaces.
pub(crate) fn without_empty_page(answer: &mut Value) {
    let Some(pages) = answer.get_mut("pages").and_then(Value::as_array_mut) else { return };
    if pages.len() > 1 && pages.last() == Some(&json!([0, null])) {
        pages.pop();
    }
}

/// Who built a server, with what, is what it is.
fn build(version: &mut Map<String, Value>) {
    if version.contains_key("goVersion") {
        version.retain(|field, _| ["major", "minor"].contains(&field.as_str()));
    }
}

/// Events by object, since only the order of one object's events is promised, and the end of the initial ones.
fn events(text: &str, reading: Reading, memory: &mut Memory) -> Value {
    let mut by_object: Map<String, Value> = Map::new();
    let mut all = 0;
    let mut initial_ends_after = Value::Null;
    let mut parsed: Vec<(String, Value)> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let Ok(event) = serde_json::from_str::<Value>(line) else {
            parsed.push(("cut".to_owned(), Value::from("an event that is no JSON")));
            continue;
        };
        if event["type"] == "BOOKMARK" {
            if event.pointer("/object/metadata/annotations/k8s.io~1initial-events-end").is_some() {
                initial_ends_after = all.into();
            }
            continue;
        }
        all += 1;
        let event = known(&event, memory);
        name_generated(&event["object"], memory);
        let event = known(&event, memory);
        parsed.push((order(&event["object"]), event));
    }
    // Stable, so that an object's events stay in their order, and symbols are given in one that both sides share.
    parsed.sort_by(|(one, _), (other, _)| one.cmp(other));
    for (key, mut event) in parsed {
        visit(&mut event, reading, memory);
        if let Some(list) = by_object.entry(key).or_insert_with(|| json!([])).as_array_mut() {
            list.push(event);
        }
    }
    json!({"events": by_object, "initial events": initial_ends_after})
}

/// Registered names replaced, in keys too, whose maps get another order by it.
fn known(value: &Value, memory: &Memory) -> Value {
    match value {
        Value::String(text) => memory.replace_known(text).into(),
        Value::Array(items) => items.iter().map(|item| known(item, memory)).collect(),
        Value::Object(map) => {
            map.iter().map(|(key, value)| (memory.replace_known(key), known(value, memory))).collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
}

/// By workspace, namespace and name, as the plan names them.
fn sort_list(value: &mut Value, list: &str) {
    if let Some(items) = value.get_mut(list).and_then(Value::as_array_mut) {
        items.sort_by_key(|item| order(item.get("object").unwrap_or(item)));
    }
}

fn order(object: &Value) -> String {
    let metadata = &object["metadata"];
    let part = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let name = if metadata.is_object() { &metadata["name"] } else { &object["name"] };
    format!("{} {} {}", part(&metadata["annotations"]["kcp.io/cluster"]), part(&metadata["namespace"]), part(name))
}

/// A name that the server completed is a symbol from the first time it is seen.
fn name_generated(value: &Value, memory: &mut Memory) {
    let objects = value["items"].as_array().map_or_else(|| vec![value], |items| items.iter().collect());
    for object in objects {
        let metadata = &object["metadata"];
        if let (Some(prefix), Some(name)) = (metadata["generateName"].as_str(), metadata["name"].as_str())
            && name.len() > prefix.len()
            && !name.contains('<')
        {
            let symbol = memory.symbol("generated", name);
            memory.register(name, &symbol);
        }
    }
}

/// A workspace that the plan makes and does not know gets a name from the server.
fn name_workspaces(value: &Value, memory: &mut Memory) {
    if let (Some("Workspace"), Some(cluster)) = (value["kind"].as_str(), value["spec"]["cluster"].as_str())
        && !cluster.starts_with('<')
    {
        let symbol = memory.symbol("workspace", cluster);
        memory.register(cluster, &symbol);
    }
}

fn visit(value: &mut Value, reading: Reading, memory: &mut Memory) {
    if value["metadata"].is_object() {
        metadata(value, reading, memory);
    }
    if value["kind"] == "Table" {
        ages(value);
    }
    if value["type"] == "kubernetes.io/service-account-token" {
        for (_, data) in value.get_mut("data").and_then(Value::as_object_mut).into_iter().flatten() {
            *data = "<data>".into();
        }
    }
    if let Some(hash) = value.get("storageVersionHash").and_then(Value::as_str) {
        // In a virtual workspace it depends on what is no wire fact.
        value["storageVersionHash"] = memory.symbol("storage version", hash).into();
    }
    if value["kind"] == "Status" {
        causes(value);
        conflicts(value);
    }
    match value {
        Value::String(text) => *text = string(text, memory),
        Value::Array(items) => items.iter_mut().for_each(|item| visit(item, reading, memory)),
        Value::Object(map) => {
            build(map);
            *map = std::mem::take(map)
                .into_iter()
                .map(|(key, mut value)| {
                    visit(&mut value, reading, memory);
                    (string(&key, memory), value)
                })
                .collect();
        }
        _ => {}
    }
}

fn metadata(object: &mut Value, reading: Reading, memory: &mut Memory) {
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    let metadata = &mut object["metadata"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (uid, version) = (text(&metadata["uid"]), text(&metadata["resourceVersion"]));
    if metadata["resourceVersion"].is_string() {
        let unsteady = reading.unsteady || WRITTEN_BY_CONTROLLERS.contains(&kind.as_str());
        metadata["resourceVersion"] = if uid.is_empty() {
            "<version>".into()
        } else if unsteady {
            memory.restart(&uid, &version);
            "<some version>".into()
        } else {
            format!("<version {} of this object>", memory.version(&uid, &version)).into()
        };
        let mut cluster = text(&metadata["annotations"]["kcp.io/cluster"]);
        if !cluster.is_empty() && cluster != "root" && !cluster.starts_with('<') {
            // A workspace that the plan made and does not know.
            "<other>".clone_into(&mut cluster);
            metadata["annotations"]["kcp.io/cluster"] = "<other>".into();
        }
        if !uid.is_empty() && !cluster.is_empty() {
            let workspace = cluster.trim_matches(['<', '>']);
            memory.name(&format!("{workspace}/{kind}/{}/{}", text(&metadata["namespace"]), text(&metadata["name"])), &uid);
        }
    }
    if metadata["generation"].is_number() && WRITTEN_BY_CONTROLLERS.contains(&kind.as_str()) {
        metadata["generation"] = "<generation>".into();
    }
    if let Some(shard) = metadata.pointer_mut("/annotations/internal.tenancy.kcp.io~1shard") {
        *shard = "<shard>".into();
    }
    if kind == "APIBinding"
        && let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut)
    {
        // Whether a binding that comes back has it at once depends on whether an informer still knows the one before.
        labels.retain(|label, _| !label.starts_with("claimed.internal.apis.kcp.io/"));
    }
    if metadata["continue"].as_str().is_some_and(|token| !token.is_empty()) {
        metadata["continue"] = "<continue>".into();
    }
    if let Some(entries) = metadata.get_mut("managedFields").and_then(Value::as_array_mut) {
        // The server orders them by time, to the second.
        entries.sort_by_key(|entry| {
            ["operation", "manager", "subresource", "apiVersion"].map(|field| entry[field].as_str().unwrap_or_default().to_owned())
        });
        if WRITTEN_BY_CONTROLLERS.contains(&kind.as_str()) {
            // What a controller wrote first, and whether it wrote twice in one go, is luck.
            for entry in entries.iter_mut().filter(|entry| entry["manager"] == "kcp" || entry["manager"] == "root") {
                *entry = json!({"manager": entry["manager"], "operation": entry["operation"]});
            }
            // Whether the shard has applied its endpoint yet is luck, too.
            entries.retain(|entry| *entry != json!({"manager": "root", "operation": "Apply"}));
            entries.dedup();
        }
    }
}

/// The schema's validator visits fields in the order of a Go map: the causes are a set, in `details` and in the words made of them.
fn causes(status: &mut Value) {
    let Some(all) = status.pointer_mut("/details/causes").and_then(Value::as_array_mut).filter(|all| all.len() > 1) else { return };
    all.sort_by_key(ToString::to_string);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let each: Vec<String> = all.iter().map(|cause| format!("{}: {}", text(&cause["field"]), text(&cause["message"]))).collect();
    let words = text(&status["message"]);
    if let Some((before, list)) = words.split_once("is invalid: [")
        && list.len() == each.iter().map(|one| one.len() + 2).sum::<usize>() - 1
        && each.iter().all(|one| list.contains(one.as_str()))
    {
        status["message"] = format!("{before}is invalid: [{}]", each.join(", ")).into();
    }
}

/// The owners of conflicting fields are ordered by when they wrote, to the second.
fn conflicts(status: &mut Value) {
    let Some((count, owners)) = status["message"].as_str().and_then(|words| words.split_once(" conflicts: ")) else { return };
    if !count.starts_with("Apply failed with ") {
        return;
    }
    let mut owners: Vec<&str> = owners.split("\nconflicts with ").map(|owner| owner.trim_start_matches("conflicts with ")).collect();
    owners.sort_unstable();
    status["message"] = format!("{count} conflicts: conflicts with {}", owners.join("\nconflicts with ")).into();
}

fn ages(table: &mut Value) {
    for row in table.get_mut("rows").and_then(Value::as_array_mut).into_iter().flatten() {
        for cell in row.get_mut("cells").and_then(Value::as_array_mut).into_iter().flatten() {
            if cell.as_str().is_some_and(|text| AGE.is_match(text)) {
                *cell = "<age>".into();
            }
        }
    }
}

fn string(text: &str, memory: &mut Memory) -> String {
    if text.len() < 8 {
        return text.to_owned();
    }
    let text = memory.replace_known(text);
    let text = OWNER_UID.replace_all(&text, r#""username":"kcp-admin","#);
    let text = UID.replace_all(&text, |found: &Captures<'_>| memory.symbol("uid", &found[0]));
    let text = HASH.replace_all(&text, |found: &Captures<'_>| memory.symbol("hash", &found[0]));
    let text = TIME.replace_all(&text, "<time>");
    let text = JWT.replace_all(&text, "<token>");
    let text = CERTIFICATES.replace_all(&text, "<certificates>");
    let text = ECHO.replace_all(&text, "Invalid value: <the object>: ");
    let text = OWN_BINDING.replace_all(&text, "$1.kcp.io-<own>");
    VERSION_IN_WORDS.replace_all(&text, "$1<version>").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(cluster: &str) -> Memory {
        let mut memory = Memory::default();
        memory.register_workspace("t1", "a-name-of-its-own", cluster);
        memory
    }

    fn answer(body: &Value) -> Got {
        Got { code: 200, headers: http::HeaderMap::new(), text: body.to_string() }
    }

    fn widget(cluster: &str, uid: &str, version: &str, size: &str) -> Value {
        json!({"kind": "Widget", "metadata": {"name": "a", "uid": uid, "resourceVersion": version, "annotations": {"kcp.io/cluster": cluster}},
            "spec": {"size": size}})
    }

    const ONE: &str = "00000000-0000-4000-8000-000000000001";
    const TWO: &str = "00000000-0000-4000-8000-000000000002";

    /// What two servers answered, one after the other, as one says it.
    fn seen(cluster: &str, answers: &[(&str, &str, &str)]) -> Vec<Value> {
        let mut memory = memory(cluster);
        let normal = |&(uid, version, size): &_| normal(&answer(&widget(cluster, uid, version, size)), Reading::default(), &mut memory);
        answers.iter().map(normal).collect()
    }

    #[test]
    fn names_that_servers_choose_do_not_differ_and_everything_else_does() {
        let base = seen("cluster-one", &[(ONE, "5", "small"), (ONE, "7", "small")]);
        for (why, other, same) in [
            ("another server's names", seen("cluster-two", &[(TWO, "90", "small"), (TWO, "91", "small")]), true),
            ("no new version where there should be one", seen("cluster-two", &[(TWO, "90", "small"), (TWO, "90", "small")]), false),
            ("another object under the same name", seen("cluster-two", &[(ONE, "90", "small"), (TWO, "91", "small")]), false),
            ("other content", seen("cluster-two", &[(TWO, "90", "small"), (TWO, "91", "large")]), false),
        ] {
            assert_eq!(base == other, same, "{why}");
        }
    }

    #[test]
    fn the_order_of_causes_is_luck() {
        let refusal = |causes: [&str; 2]| {
            let all = causes.map(|field| json!({"field": field, "message": "is wrong", "reason": "FieldValueInvalid"}));
            let words = causes.map(|field| format!("{field}: is wrong")).join(", ");
            json!({"kind": "Status", "message": format!("Widget \"a\" is invalid: [{words}]"), "details": {"causes": all}})
        };
        let read = |refusal: &Value| normal(&answer(refusal), Reading::default(), &mut memory("cluster-one"));
        assert_eq!(read(&refusal(["spec.a", "spec.b"])), read(&refusal(["spec.b", "spec.a"])));
        assert_ne!(read(&refusal(["spec.a", "spec.b"])), read(&refusal(["spec.a", "spec.c"])));
    }
}
