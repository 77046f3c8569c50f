//! Tables and bare metadata: what `kubectl get` asks for instead of objects.
//!
//! Pure: from objects to `Table`, `PartialObjectMetadata` and `PartialObjectMetadataList` of `meta.k8s.io/v1`. Cells of custom kinds follow
//! `k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor`.

use serde_json::{Value, json};

use super::duration::age;
use super::path;
use super::printers::{CREATED, Heading, NAME, printer};
use crate::embedded::errors::Refusal;
use crate::embedded::served::{Column, Served};

/// What a row carries beside its cells: the parameter `includeObject`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncludeObject {
    /// Nothing.
    None,
    /// The object's metadata.
    #[default]
    Metadata,
    /// All of the object.
    Object,
}

impl IncludeObject {
    /// The value of the query parameter, empty when it lacks.
    ///
    /// # Errors
    /// 400 for an unknown word.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        match text {
            "" | "Metadata" => Ok(Self::Metadata),
            "None" => Ok(Self::None),
            "Object" => Ok(Self::Object),
            other => Err(Refusal::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: \
                 must be 'Metadata', 'Object', 'None', or empty"
            ))),
        }
    }
}

/// A `Table` of objects at `now`, in Unix seconds. `list_meta` is a list's metadata; for one object, its `resourceVersion`.
pub fn table(served: &Served, objects: &[Value], list_meta: &Value, now: i64, include: IncludeObject) -> Value {
    let rows: Vec<Value> = objects.iter().map(|object| row(served, object, now, include)).collect();
    let mut metadata = json!({});
    for field in ["resourceVersion", "continue", "remainingItemCount"] {
        if let Some(value) = list_meta.get(field) {
            metadata[field] = value.clone();
        }
    }
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
        "columnDefinitions": column_definitions(served), "rows": rows,
    })
}

/// A table in a watch after the first: clients know the columns by then.
#[must_use]
pub fn without_headings(mut table: Value) -> Value {
    table["columnDefinitions"] = Value::Null;
    table
}

/// The same answer, a table or metadata, in the older version of these kinds.
#[must_use]
pub fn in_v1beta1(mut answer: Value) -> Value {
    let old = |value: &mut Value| {
        if value.get("apiVersion").is_some_and(|version| version == "meta.k8s.io/v1") {
            value["apiVersion"] = "meta.k8s.io/v1beta1".into();
        }
    };
    old(&mut answer);
    for field in ["rows", "items"] {
        for entry in answer.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten() {
            old(if field == "rows" { &mut entry["object"] } else { entry });
        }
    }
    answer
}

/// Takes away all columns but the name.
pub fn names_only(table: &mut Value) {
    table["columnDefinitions"].as_array_mut().into_iter().for_each(|columns| columns.truncate(1));
    for row in table["rows"].as_array_mut().into_iter().flatten() {
        row["cells"].as_array_mut().into_iter().for_each(|cells| cells.truncate(1));
    }
}

/// The columns of a kind.
pub fn column_definitions(served: &Served) -> Value {
    if let Some(printer) = printer(served) {
        return printer.headings.iter().map(heading).collect();
    }
    let name = heading(&("Name", "string", "name", 0, NAME));
    if served.columns.is_empty() {
        return json!([name, heading(&("Age", "date", "", 0, CREATED))]);
    }
    std::iter::once(name).chain(served.columns.iter().map(definition)).collect()
}

/// The metadata of an object, `PartialObjectMetadata`.
pub fn partial(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}

/// What kcp adds to metadata from all workspaces: which version it is of.
pub fn of_version(object: &mut Value, served: &Served) {
    object["metadata"]["annotations"]["kcp.io/original-api-version"] = served.api_version().into();
}

/// The metadata of objects, `PartialObjectMetadataList`.
pub fn partial_list(items: &[Value], list_meta: &Value) -> Value {
    let items: Vec<Value> = items.iter().map(partial).collect();
    json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": list_meta, "items": items})
}

fn heading((name, type_, format, priority, description): &Heading) -> Value {
    json!({"name": name, "type": type_, "format": format, "description": description, "priority": priority})
}

fn definition(column: &Column) -> Value {
    let description = match column.description.as_str() {
        "" => format!("Custom resource definition column (in JSONPath format): {}", column.json_path),
        text => text.to_owned(),
    };
    json!({
        "name": column.name, "type": column.type_, "format": column.format, "description": description, "priority": column.priority,
    })
}

fn row(served: &Served, object: &Value, now: i64, include: IncludeObject) -> Value {
    let cells = match printer(served) {
        Some(printer) => (printer.cells)(object, now),
        None => custom_cells(served, object, now),
    };
    // A row's object is never absent, though it may be null.
    let object = match include {
        IncludeObject::None => Value::Null,
        IncludeObject::Metadata => partial(object),
        IncludeObject::Object => object.clone(),
    };
    json!({"cells": cells, "object": object})
}

fn custom_cells(served: &Served, object: &Value, now: i64) -> Vec<Value> {
    let name = object["metadata"]["name"].clone();
    if served.columns.is_empty() {
        let created = object["metadata"]["creationTimestamp"].as_str().unwrap_or_default();
        return vec![name, age(created, now).into()];
    }
    let cell = |column: &Column| path::first(&column.json_path, object).map_or(Value::Null, |value| cell(&column.type_, value, now));
    std::iter::once(name).chain(served.columns.iter().map(cell)).collect()
}

/// A found value in a column of a type; what does not fit the type is null.
fn cell(type_: &str, value: &Value, now: i64) -> Value {
    match type_ {
        "string" => printed(value).into(),
        "integer" => value.as_i64().map_or_else(|| truncated(value), Value::from),
        "number" => value.as_f64().map_or(Value::Null, Value::from),
        "boolean" => value.as_bool().map_or(Value::Null, Value::from),
        "date" => value.as_str().map_or(Value::Null, |time| age(time, now).into()),
        _ => Value::Null,
    }
}

/// A fraction in a column of integers loses it.
fn truncated(value: &Value) -> Value {
    let whole = value.as_f64().map(|number| format!("{:.0}", number.trunc()));
    whole.and_then(|digits| digits.parse::<i64>().ok()).map_or(Value::Null, Value::from)
}

/// Text as it is, anything else as Go prints it: objects and lists as JSON.
fn printed(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "<no value>".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::front::tests::{built_in, clusters, custom};
    use crate::embedded::served::Origin;

    const NOW: i64 = 1_000_000;

    fn object() -> Value {
        json!({
            "apiVersion": "v", "kind": "K",
            "metadata": {"name": "one", "creationTimestamp": "1970-01-12T13:46:00Z"},
            "spec": {"region": "eu-de", "version": "1.31"},
            "status": {"ready": true, "conditions": [{"type": "Scheduled", "status": "True", "reason": "Pinned"}]},
        })
    }

    fn cells(served: &Served, object: Value) -> Value {
        table(served, &[object], &json!({"resourceVersion": "7"}), NOW, IncludeObject::None)["rows"][0]["cells"].clone()
    }

    #[test]
    fn a_custom_kind_shows_its_columns() {
        let table = table(&clusters(), &[object()], &json!({"resourceVersion": "7", "selfLink": "x"}), NOW, IncludeObject::Metadata);
        assert_eq!(table["rows"][0]["cells"], json!(["one", "eu-de", "1.31", null, "Pinned", true, null, "40s"]));
        assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
        assert_eq!(table["metadata"], json!({"resourceVersion": "7"}));
        let columns = table["columnDefinitions"].as_array().unwrap();
        assert_eq!(columns.len(), 8);
        assert_eq!(columns[1]["description"], "Custom resource definition column (in JSONPath format): .spec.region");
        assert_eq!(columns[6]["priority"], 1);
    }

    #[test]
    fn a_custom_kind_without_columns_shows_name_and_age() {
        assert_eq!(cells(&custom("g.example", "v1", "K", Origin::Definition), object()), json!(["one", "40s"]));
    }

    #[test]
    fn values_are_shown_by_the_type_of_their_column() {
        for (type_, value, shown) in [
            ("string", json!("a"), json!("a")),
            ("string", json!(3), json!("3")),
            ("string", json!({"a": [1]}), json!(r#"{"a":[1]}"#)),
            ("string", json!(null), json!("<no value>")),
            ("integer", json!(3), json!(3)),
            ("integer", json!(3.7), json!(3)),
            ("integer", json!("3"), json!(null)),
            ("number", json!(3), json!(3.0)),
            ("boolean", json!("true"), json!(null)),
            ("date", json!("1970-01-12T13:46:39Z"), json!("1s")),
            ("date", json!("tomorrow"), json!("<invalid>")),
            ("date", json!(4), json!(null)),
        ] {
            assert_eq!(cell(type_, &value, NOW), shown, "{type_} {value}");
        }
    }

    #[test]
    fn compiled_kinds_show_what_kubernetes_shows() {
        let meta = json!({"name": "n", "creationTimestamp": "1970-01-12T13:46:00Z"});
        for (group, kind, rest, shown) in [
            ("", "Namespace", json!({"status": {"phase": "Active"}}), json!(["n", "Active", "40s"])),
            ("", "ConfigMap", json!({"data": {"a": "b"}, "binaryData": {"c": ""}}), json!(["n", 2, "40s"])),
            ("", "Secret", json!({"type": "Opaque"}), json!(["n", "Opaque", 0, "40s"])),
            ("", "ServiceAccount", json!({"secrets": [{}]}), json!(["n", 1, "40s"])),
            ("coordination.k8s.io", "Lease", json!({"spec": {"holderIdentity": "me"}}), json!(["n", "me", "40s"])),
            ("rbac.authorization.k8s.io", "Role", json!({}), json!(["n", "1970-01-12T13:46:00Z"])),
            (
                "rbac.authorization.k8s.io",
                "RoleBinding",
                json!({"roleRef": {"kind": "Role", "name": "r"}, "subjects": [
                    {"kind": "ServiceAccount", "namespace": "ns", "name": "sa"},
                    {"kind": "User", "name": "u"}, {"kind": "User", "name": "v"},
                ]}),
                json!(["n", "Role/r", "40s", "u, v", "", "ns/sa"]),
            ),
            (
                "",
                "ResourceQuota",
                json!({"status": {"hard": {"limits.cpu": "2", "pods": "3"}, "used": {"pods": "1"}}}),
                json!(["n", "40s", "pods: 1/3", "limits.cpu: 0/2"]),
            ),
        ] {
            let mut object = rest;
            object["metadata"] = meta.clone();
            assert_eq!(cells(&built_in(group, kind), object), shown, "{kind}");
        }
    }

    #[test]
    fn events_of_both_groups_are_shown_alike() {
        let old = json!({
            "metadata": {"name": "e"}, "type": "Normal", "reason": "R", "message": "m\n", "count": 3,
            "firstTimestamp": "1970-01-12T13:46:00Z", "lastTimestamp": "1970-01-12T13:46:30Z",
            "involvedObject": {"kind": "Kind", "name": "x", "fieldPath": "spec"}, "source": {"component": "c", "host": "h"},
        });
        let shown = json!(["10s", "Normal", "R", "kind/x", "spec", "c, h", "m", "40s", 3, "e"]);
        assert_eq!(cells(&built_in("", "Event"), old), shown);
        let new = json!({
            "metadata": {"name": "e"}, "type": "Normal", "reason": "R", "note": "m",
            "series": {"count": 3, "lastObservedTime": "1970-01-12T13:46:30Z"},
            "eventTime": "1970-01-12T13:46:00.000000Z", "regarding": {"kind": "Kind", "name": "x", "fieldPath": "spec"},
            "reportingController": "c", "reportingInstance": "h",
        });
        assert_eq!(cells(&built_in("events.k8s.io", "Event"), new), shown);
    }

    #[test]
    fn the_older_version_differs_in_name_only() {
        let new = table(&clusters(), &[object()], &json!({}), NOW, IncludeObject::Metadata);
        let old = in_v1beta1(new.clone());
        assert_eq!(
            (&old["apiVersion"], &old["rows"][0]["object"]["apiVersion"]),
            (&json!("meta.k8s.io/v1beta1"), &json!("meta.k8s.io/v1beta1"))
        );
        assert_eq!(old["columnDefinitions"], new["columnDefinitions"]);
        assert_eq!(
            in_v1beta1(partial(&object())),
            json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1beta1", "metadata": object()["metadata"]})
        );
    }

    #[test]
    fn an_unknown_part_of_the_object_is_refused() {
        assert_eq!(IncludeObject::parse("").unwrap(), IncludeObject::Metadata);
        assert_eq!(
            IncludeObject::parse("Foo").unwrap_err().message,
            "Unable to convert to Table as requested: includeObject: Invalid value: \"Foo\": must be 'Metadata', 'Object', 'None', or empty"
        );
    }
}
