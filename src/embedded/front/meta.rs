//! The schemas that all kinds share: metadata of objects and lists, options and results of deletion, patches.
//!
//! Pure: constants as JSON. The fields are those of `k8s.io/apimachinery/pkg/apis/meta/v1`, described in our own words; names in `$ref`
//! begin with [`PREFIX`].

use serde_json::{Map, Value, json};

/// What the names of these schemas begin with.
pub const PREFIX: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// What `apiVersion` means.
pub(super) const API_VERSION: &str = "The group and version of this representation, for example v1 or apps/v1.";

/// What `kind` means.
pub(super) const KIND: &str = "The kind that this object is, in CamelCase; it cannot be changed.";

/// A reference to a shared schema, as `OpenAPI` 3.0 has it beside a description.
pub(super) fn reference(name: &str, description: &str) -> Value {
    json!({"description": description, "allOf": [{"$ref": format!("#/components/schemas/{PREFIX}{name}")}]})
}

/// All shared schemas, by their full names.
pub(super) fn schemas() -> Map<String, Value> {
    let list = [
        ("ObjectMeta", object_meta()),
        ("ListMeta", list_meta()),
        ("OwnerReference", owner_reference()),
        ("ManagedFieldsEntry", managed_fields_entry()),
        ("FieldsV1", json!({"description": "A set of fields as a trie: f:<name>, k:<keys>, v:<value>, i:<index>.", "type": "object"})),
        ("Time", json!({"description": "A moment in RFC 3339.", "type": "string", "format": "date-time"})),
        ("Patch", json!({"description": "The body of a patch.", "type": "object"})),
        ("DeleteOptions", delete_options()),
        ("Preconditions", preconditions()),
        ("Status", status()),
        ("StatusDetails", status_details()),
        ("StatusCause", status_cause()),
    ];
    list.into_iter().map(|(name, schema)| (format!("{PREFIX}{name}"), schema)).collect()
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn number(format: &str, description: &str) -> Value {
    json!({"type": "integer", "format": format, "description": description})
}

fn texts(description: &str, list_type: &str) -> Value {
    json!({"type": "array", "description": description, "items": {"type": "string", "default": ""}, "x-kubernetes-list-type": list_type})
}

fn text_map(description: &str) -> Value {
    json!({"type": "object", "description": description, "additionalProperties": {"type": "string", "default": ""}})
}

fn object(description: &str, required: &[&str], properties: Value) -> Value {
    let mut schema = json!({"type": "object", "description": description});
    schema["properties"] = properties;
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn object_meta() -> Value {
    let owners = json!({
        "type": "array", "description": "Objects that this one depends on; it is collected when all of them are gone.",
        "items": {"allOf": [{"$ref": format!("#/components/schemas/{PREFIX}OwnerReference")}], "default": {}},
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
        "x-kubernetes-patch-merge-key": "uid", "x-kubernetes-patch-strategy": "merge",
    });
    let managed = json!({
        "type": "array", "description": "Which fields each writer set; kept by the server.",
        "items": {"allOf": [{"$ref": format!("#/components/schemas/{PREFIX}ManagedFieldsEntry")}], "default": {}},
        "x-kubernetes-list-type": "atomic",
    });
    let mut finalizers = texts("What must be done before the object is removed; whoever did it removes its entry.", "set");
    finalizers["x-kubernetes-patch-strategy"] = "merge".into();
    let properties = json!({
        "annotations": text_map("Free text for tools and people; not for selection."),
        "creationTimestamp": reference("Time", "When the server created the object. Read-only."),
        "deletionGracePeriodSeconds": number("int64", "Seconds until removal, once deletion is asked for. Read-only."),
        "deletionTimestamp": reference("Time", "When deletion was asked for; the object stays while it has finalizers. Read-only."),
        "finalizers": finalizers,
        "generateName": text("A prefix that the server makes a unique name from when no name is given."),
        "generation": number("int64", "Counts the changes of what is wanted. Read-only."),
        "labels": text_map("Short values that objects are selected by."),
        "managedFields": managed,
        "name": text("Unique in its namespace; it cannot be changed."),
        "namespace": text("Where the object lives; empty for kinds outside namespaces."),
        "ownerReferences": owners,
        "resourceVersion": text("Changes with every write; opaque. Sent back, it guards a write against others."),
        "selfLink": text("Deprecated and never set."),
        "uid": text("Unique in time and space. Read-only."),
    });
    object("What every stored object has: its name, labels, and what the server keeps about it.", &[], properties)
}

fn list_meta() -> Value {
    let properties = json!({
        "continue": text("Where the next page begins; opaque."),
        "remainingItemCount": number("int64", "How many more items there are, if known."),
        "resourceVersion": text("The state that the list shows; a watch may begin here."),
        "selfLink": text("Deprecated and never set."),
    });
    object("What a list has beside its items.", &[], properties)
}

fn owner_reference() -> Value {
    let boolean = |description: &str| json!({"type": "boolean", "description": description});
    let properties = json!({
        "apiVersion": text("The owner's group and version."),
        "blockOwnerDeletion": boolean("Whether the owner, deleted in the foreground, waits for this object."),
        "controller": boolean("Whether this owner is the one that manages the object."),
        "kind": text("The owner's kind."),
        "name": text("The owner's name."),
        "uid": text("The owner's uid."),
    });
    let mut schema = object("An object in the same namespace, or outside namespaces.", &["apiVersion", "kind", "name", "uid"], properties);
    schema["x-kubernetes-map-type"] = "atomic".into();
    schema
}

fn managed_fields_entry() -> Value {
    let properties = json!({
        "apiVersion": text("The version that the fields are named in."),
        "fieldsType": text("FieldsV1."),
        "fieldsV1": reference("FieldsV1", "The fields."),
        "manager": text("Who set them."),
        "operation": text("Apply or Update."),
        "subresource": text("The subresource they were set through."),
        "time": reference("Time", "When they were last changed."),
    });
    object("The fields that one writer set.", &[], properties)
}

fn delete_options() -> Value {
    let properties = json!({
        "apiVersion": text(API_VERSION),
        "kind": text(KIND),
        "dryRun": texts("All, to try without doing.", "atomic"),
        "gracePeriodSeconds": number("int64", "Seconds to wait; 0 is at once."),
        "orphanDependents": {"type": "boolean", "description": "Deprecated: use propagationPolicy."},
        "preconditions": reference("Preconditions", "What must hold."),
        "propagationPolicy": text("What happens to dependents: Orphan, Background or Foreground."),
    });
    object("How to delete.", &[], properties)
}

fn preconditions() -> Value {
    object("What must hold for a deletion.", &[], json!({"resourceVersion": text("This version."), "uid": text("This uid.")}))
}

fn status() -> Value {
    let properties = json!({
        "apiVersion": text(API_VERSION),
        "kind": text(KIND),
        "metadata": reference("ListMeta", "Metadata as of a list."),
        "code": number("int32", "The HTTP status code."),
        "details": reference("StatusDetails", "More for machines."),
        "message": text("For people."),
        "reason": text("One word for machines."),
        "status": text("Success or Failure."),
    });
    let mut schema = object("The result of a call that returns no object.", &[], properties);
    schema["x-kubernetes-group-version-kind"] = json!([{"group": "", "version": "v1", "kind": "Status"}]);
    schema
}

fn status_details() -> Value {
    let causes = json!({
        "type": "array", "description": "Each single cause.", "x-kubernetes-list-type": "atomic",
        "items": {"allOf": [{"$ref": format!("#/components/schemas/{PREFIX}StatusCause")}], "default": {}},
    });
    let properties = json!({
        "causes": causes,
        "group": text("The group that was meant."),
        "kind": text("The kind or resource that was meant."),
        "name": text("The object that was meant."),
        "retryAfterSeconds": number("int32", "When to come again."),
        "uid": text("The uid of the object."),
    });
    object("What a status is about.", &[], properties)
}

fn status_cause() -> Value {
    let properties =
        json!({"field": text("The path of the field."), "message": text("For people."), "reason": text("One word for machines.")});
    object("One cause of a failure.", &[], properties)
}
