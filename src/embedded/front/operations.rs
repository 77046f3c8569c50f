//! The paths of an `OpenAPI` document: what may be done with a kind, where, and with which parameters.
//!
//! Pure: from a kind to JSON. `kubectl` reads from here that a server validates fields: `fieldValidation` is a query parameter of `PATCH`.

use serde_json::{Map, Value, json};

use super::meta::PREFIX;
use crate::embedded::served::{Origin, Served};

const LISTING: [(&str, &str, &str); 10] = [
    ("allowWatchBookmarks", "boolean", "Whether a watch may send events of type BOOKMARK."),
    ("continue", "string", "Where the page begins: what the last one said."),
    ("fieldSelector", "string", "Only objects whose fields match."),
    ("labelSelector", "string", "Only objects whose labels match."),
    ("limit", "integer", "The most items on one page."),
    ("resourceVersion", "string", "How fresh the list must be, or where a watch begins."),
    ("resourceVersionMatch", "string", "How resourceVersion is meant: Exact or NotOlderThan."),
    ("sendInitialEvents", "boolean", "Whether a watch begins with what is there."),
    ("timeoutSeconds", "integer", "How long the call may take."),
    ("watch", "boolean", "Whether to follow changes instead of listing."),
];
const WRITING: [(&str, &str, &str); 3] = [
    ("dryRun", "string", "All, to try without doing."),
    ("fieldManager", "string", "Who writes; at most 128 characters."),
    ("fieldValidation", "string", "What becomes of unknown and duplicate fields: Ignore, Warn or Strict."),
];
const FORCE: (&str, &str, &str) = ("force", "boolean", "Whether an apply takes fields from others.");
const READING: [(&str, &str, &str); 1] = [("resourceVersion", "string", "How fresh the object must be.")];
const DELETING: [(&str, &str, &str); 4] = [
    ("dryRun", "string", "All, to try without doing."),
    ("gracePeriodSeconds", "integer", "Seconds to wait; 0 is at once."),
    ("orphanDependents", "boolean", "Deprecated: use propagationPolicy."),
    ("propagationPolicy", "string", "What happens to dependents: Orphan, Background or Foreground."),
];
const PRETTY: (&str, &str, &str) = ("pretty", "string", "Whether the answer is laid out for people.");

/// Adds the paths of a kind to those of its document. `schema` and `list_schema` are the full names of its schemas.
pub(super) fn add(paths: &mut Map<String, Value>, served: &Served, schema: &str, list_schema: &str) {
    let kind = Kind { served, schema };
    let group = &served.names.group;
    let root = if group.is_empty() { format!("/api/{}", served.version) } else { format!("/apis/{group}/{}", served.version) };
    let plural = &served.names.plural;
    let place = if served.namespaced { format!("{root}/namespaces/{{namespace}}") } else { root.clone() };
    let operations = [
        ("get", "list", kind.read("list", &LISTING, list_schema, "list objects of kind")),
        ("post", "create", kind.write("post", "create a", &["200", "201", "202"], &WRITING)),
        ("delete", "deletecollection", kind.read("deletecollection", &LISTING, &format!("{PREFIX}Status"), "delete collection of")),
    ];
    kind.path(paths, format!("{place}/{plural}"), operations, false);
    if served.namespaced {
        let all = [("get", "list", kind.read("list", &LISTING, list_schema, "list objects in all namespaces of kind"))];
        kind.path(paths, format!("{root}/{plural}"), all, false);
    }
    kind.path(paths, format!("{place}/{plural}/{{name}}"), kind.item(""), true);
    if served.status {
        let operations = kind.item("status of ").into_iter().filter(|(method, ..)| *method != "delete");
        kind.path(paths, format!("{place}/{plural}/{{name}}/status"), operations, true);
    }
}

struct Kind<'a> {
    served: &'a Served,
    schema: &'a str,
}

type Operation = (&'static str, &'static str, Value);

impl Kind<'_> {
    /// The operations on one object, or on its status.
    fn item(&self, part: &str) -> Vec<Operation> {
        vec![
            ("get", "get", self.read("get", &READING, self.schema, &format!("read {part}the specified"))),
            ("put", "update", self.write("put", &format!("replace {part}the specified"), &["200", "201"], &WRITING)),
            ("patch", "patch", self.patch(&format!("partially update {part}the specified"))),
            ("delete", "delete", self.delete()),
        ]
    }

    /// Adds a path with those of the operations that the kind has verbs for.
    fn path(&self, paths: &mut Map<String, Value>, path: String, operations: impl IntoIterator<Item = Operation>, named: bool) {
        let allowed = operations.into_iter().filter(|(_, verb, _)| self.served.verbs.contains(verb));
        let mut entry: Map<String, Value> = allowed.map(|(method, _, operation)| (method.to_owned(), operation)).collect();
        if entry.is_empty() {
            return;
        }
        let in_path = |name: &str, description: &str| {
            let mut parameter = in_query(&(name, "string", description));
            parameter["in"] = "path".into();
            parameter["required"] = true.into();
            parameter
        };
        let mut parameters = Vec::new();
        if named {
            parameters.push(in_path("name", &format!("name of the {}", self.served.names.kind)));
        }
        if path.contains("{namespace}") {
            parameters.push(in_path("namespace", "where the object lives"));
        }
        parameters.push(in_query(&PRETTY));
        entry.insert("parameters".to_owned(), parameters.into());
        paths.insert(path, entry.into());
    }

    fn operation(&self, action: &str, what: &str, parameters: &[(&str, &str, &str)], responses: Value) -> Value {
        let names = &self.served.names;
        let mut operation = json!({
            "description": format!("{what} {}", names.kind),
            "parameters": parameters.iter().map(in_query).collect::<Vec<_>>(),
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": {"group": names.group, "version": self.served.version, "kind": names.kind},
        });
        operation["responses"] = responses;
        operation["responses"]["401"] = json!({"description": "Unauthorized"});
        operation
    }

    fn read(&self, action: &str, parameters: &[(&str, &str, &str)], schema: &str, what: &str) -> Value {
        self.operation(action, what, parameters, json!({"200": ok(schema)}))
    }

    fn write(&self, action: &str, what: &str, codes: &[&str], parameters: &[(&str, &str, &str)]) -> Value {
        let responses: Map<String, Value> = codes.iter().map(|code| ((*code).to_owned(), ok(self.schema))).collect();
        let mut operation = self.operation(action, what, parameters, responses.into());
        operation["requestBody"] = body(&["application/json", "application/yaml"], self.schema, true);
        operation
    }

    fn patch(&self, what: &str) -> Value {
        let parameters: Vec<_> = WRITING.into_iter().chain([FORCE]).collect();
        let mut operation = self.operation("patch", what, &parameters, json!({"200": ok(self.schema)}));
        let mut types = vec!["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"];
        if self.served.origin == Origin::BuiltIn && !self.served.names.group.ends_with(".kcp.io") {
            types.push("application/strategic-merge-patch+json");
        }
        operation["requestBody"] = body(&types, &format!("{PREFIX}Patch"), true);
        operation
    }

    fn delete(&self) -> Value {
        let status = ok(&format!("{PREFIX}Status"));
        let mut operation = self.operation("delete", "delete a", &DELETING, json!({"200": status, "202": status}));
        operation["requestBody"] = body(&["application/json", "application/yaml"], &format!("{PREFIX}DeleteOptions"), false);
        operation
    }
}

fn in_query((name, type_, description): &(&str, &str, &str)) -> Value {
    json!({"name": name, "in": "query", "description": description, "schema": {"type": type_, "uniqueItems": true}})
}

fn content(types: &[&str], schema: &str) -> Value {
    let one = |type_: &&str| ((*type_).to_owned(), json!({"schema": {"$ref": format!("#/components/schemas/{schema}")}}));
    types.iter().map(one).collect::<Map<String, Value>>().into()
}

fn ok(schema: &str) -> Value {
    json!({"description": "OK", "content": content(&["application/json"], schema)})
}

fn body(types: &[&str], schema: &str, required: bool) -> Value {
    let mut body = json!({"content": content(types, schema)});
    if required {
        body["required"] = true.into();
    }
    body
}
