//! Writing: create, replace, patch, apply, delete.

use std::time::Duration;

use serde_json::{Value, json};

use super::objects::{HOLD, merge};
use super::{Call, Door, Generator, Kind, Object, Operation, Step, Who};
use crate::plan::{APPLY, Holds, JSON_PATCH, MERGE, STRATEGIC};

/// The garbage collector has looked within this.
const COLLECTED: Duration = Duration::from_secs(30);

impl Generator {
    pub(super) fn create(&mut self) -> Operation {
        let object = if self.dice.percent(90) { self.new_object() } else { self.object() };
        self.create_of(&object)
    }

    pub(super) fn create_of(&mut self, object: &Object) -> Operation {
        let mut body = self.body(object);
        if self.dice.percent(8) && object.kind != Kind::ConfigMap {
            body["metadata"]["finalizers"] = json!([HOLD]);
        }
        if self.dice.percent(5) {
            body["status"] = self.status(object.kind);
        }
        let door = self.door();
        let call = self.call(door, object.workspace, "POST", Self::collection(door, object));
        self.put_there(object, &body);
        Operation::one("create", call.body(&body))
    }

    /// Of a widget, which has all the rules.
    pub(super) fn create_invalid(&mut self) -> Operation {
        let mut object = self.new_object();
        (object.kind, object.namespace) = (Kind::Widget, "default");
        let mut body = self.body(&object);
        let wrong = self.wrong_widget_fields();
        merge(&mut body["spec"], wrong);
        let door = self.door();
        match self.dice.below(4) {
            0 => {
                let fields = body["spec"].clone();
                let call = self.call(door, object.workspace, "PATCH", Self::path(door, &object));
                Operation::one("invalid merge", call.content_type(MERGE).body(&json!({"spec": fields})))
            }
            1 => {
                body["metadata"]["resourceVersion"] = format!("⟦rv:{}⟧", object.key()).into();
                let call = self.call(door, object.workspace, "PUT", Self::path(door, &object));
                Operation::one("invalid put", call.body(&body))
            }
            _ => {
                let call = self.call(door, object.workspace, "POST", Self::collection(door, &object));
                // Not every combination is invalid after all.
                Operation::one("invalid create", call.body(&body).with("dryRun=All"))
            }
        }
    }

    /// What is unusual about a create but may be fine.
    pub(super) fn create_unusual(&mut self) -> Operation {
        let object = self.new_object();
        let mut body = self.body(&object);
        let door = self.door();
        let mut call = self.call(door, object.workspace, "POST", Self::collection(door, &object));
        if self.dice.percent(12) {
            return Self::create_generated(&object, call, body);
        }
        match self.dice.below(20) {
            0 => merge(&mut body, json!({"kind": "Gizmo"})),
            1 => merge(&mut body, json!({"apiVersion": "lab.example.org/v9"})),
            2 => merge(&mut body["metadata"], json!({"name": ""})),
            3 => merge(&mut body["metadata"], json!({"name": *self.dice.one(&["Bad_Name", "a/b", "-x", "x.y", "1", "%"])})),
            4 => merge(&mut body["metadata"], json!({"namespace": "other"})),
            5 => merge(&mut body["metadata"], json!({"labels": {"a b": "c", "ok": "no way"}})),
            6 => merge(&mut body["metadata"], json!({"annotations": {"x.kcp.io/y": "z"}})),
            7 => merge(&mut body["metadata"], json!({"labels": {"x.kcp.io/y": "z"}})),
            8 => merge(&mut body["metadata"], json!({"resourceVersion": "5"})),
            9 => merge(
                &mut body["metadata"],
                json!({"uid": "11111111-1111-4111-8111-111111111111", "generation": 9, "creationTimestamp": "2001-01-01T00:00:00Z"}),
            ),
            10 => merge(&mut body["metadata"], json!({"finalizers": ["nogroup"]})),
            11 => merge(&mut body["metadata"], json!({"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x"}]})),
            12 => merge(&mut body["metadata"], json!({"labels": {"a": 1}})),
            13 => merge(&mut body["metadata"], json!({"managedFields": [{"manager": "m", "operation": "Update", "apiVersion": "v1"}]})),
            14 => merge(&mut body["metadata"], json!({"bogus": 1})),
            _ => merge(&mut body, json!({"bogus": {"x": 1}})),
        }
        if self.dice.percent(30) {
            body["spec"]["alsobogus"] = json!({"deep": 1});
        }
        let validation = *self.dice.one(&[
            "fieldValidation=Strict",
            "fieldValidation=Warn",
            "fieldValidation=Ignore",
            "fieldValidation=Bad",
            "dryRun=All",
            "dryRun=Bad",
            "pretty=true",
        ]);
        call = call.with(validation);
        if self.dice.percent(70) && !validation.starts_with("dryRun") {
            call = call.with("dryRun=All");
        } else {
            self.put_there(&object, &body);
        }
        Operation::one("unusual create", call.body(&body))
    }

    /// A name that the server completes, and its deletion, so that no list's order depends on it for long.
    fn create_generated(object: &Object, call: Call, mut body: Value) -> Operation {
        body["metadata"]["name"] = Value::Null;
        body["metadata"]["generateName"] = "gen-".into();
        body["metadata"]["labels"] = json!({"generated": "yes"});
        let collection = Self::collection(Door::Direct, object);
        let delete = Call::new(super::Who::Admin, "DELETE", collection).with("labelSelector=generated");
        Operation { kind: "generated name", steps: vec![Step::Call(call.body(&body)), Step::Call(delete)] }
    }

    pub(super) fn put(&mut self) -> Operation {
        let object = self.object();
        self.put_over(&object)
    }

    pub(super) fn put_over(&mut self, object: &Object) -> Operation {
        let mut body = self.body(object);
        let key = object.key();
        match self.dice.below(20) {
            0 => {}
            1 => body["metadata"]["resourceVersion"] = format!("⟦oldrv:{key}⟧").into(),
            2 => body["metadata"]["resourceVersion"] = "garbage".into(),
            3 => merge(
                &mut body["metadata"],
                json!({"resourceVersion": format!("⟦rv:{key}⟧"), "uid": "11111111-1111-4111-8111-111111111111"}),
            ),
            4 => merge(&mut body["metadata"], json!({"resourceVersion": format!("⟦rv:{key}⟧"), "name": "another"})),
            _ => merge(&mut body["metadata"], json!({"resourceVersion": format!("⟦rv:{key}⟧")})),
        }
        if self.dice.percent(15) {
            body["metadata"]["uid"] = format!("⟦uid:{key}⟧").into();
        }
        if self.dice.percent(15) {
            body["status"] = self.status(object.kind);
        }
        if self.held.contains(object) && self.dice.percent(60) {
            body["metadata"]["finalizers"] = json!([HOLD]);
        } else {
            self.release_there(object);
        }
        let door = self.door();
        let call = self.call(door, object.workspace, "PUT", Self::path(door, object));
        Operation::one("put", call.body(&body))
    }

    fn with_status(&mut self) -> Object {
        self.existing(|object| object.kind.has_status()).unwrap_or_else(|| Object {
            workspace: "t1",
            kind: Kind::Widget,
            namespace: "default",
            name: "a".to_owned(),
        })
    }

    pub(super) fn put_status(&mut self) -> Operation {
        let object = self.with_status();
        let mut body = self.body(&object);
        body["status"] = self.status(object.kind);
        if self.dice.percent(85) {
            body["metadata"]["resourceVersion"] = format!("⟦rv:{}⟧", object.key()).into();
        }
        let door = self.door();
        let call = self.call(door, object.workspace, "PUT", format!("{}/status", Self::path(door, &object)));
        Operation::one("put status", call.body(&body))
    }

    pub(super) fn merge(&mut self) -> Operation {
        let object = self.object();
        self.merge_into(&object)
    }

    pub(super) fn merge_into(&mut self, object: &Object) -> Operation {
        let mut patch = json!({});
        let content = if object.kind == Kind::ConfigMap { "data" } else { "spec" };
        match self.dice.below(12) {
            0 => patch["metadata"] = json!({"labels": {"color": *self.dice.one(&[json!("red"), json!(null), json!("green")])}}),
            1 => patch["metadata"] = json!({"annotations": {"example.org/note": "new"}}),
            2 if object.kind != Kind::ConfigMap => {
                patch["metadata"] = json!({"finalizers": [HOLD]});
                if self.there.contains(object) && !self.leaving.contains(object) {
                    self.held.insert(object.clone());
                }
            }
            3 => {
                patch["metadata"] = json!({"finalizers": null});
                self.release_there(object);
            }
            4 => patch["metadata"] = json!({"resourceVersion": format!("⟦oldrv:{}⟧", object.key()), "labels": {"old": "yes"}}),
            5 => patch["metadata"] = json!({"resourceVersion": format!("⟦rv:{}⟧", object.key()), "labels": {"fresh": "yes"}}),
            6 => patch["status"] = self.status(object.kind),
            7 => patch[content] = json!({"bogus": 1, "note": null, "nested": null, "a": null}),
            _ => patch[content] = if content == "data" { self.data() } else { self.spec(object.kind) },
        }
        let door = self.door();
        let mut call = self.call(door, object.workspace, "PATCH", Self::path(door, object)).content_type(MERGE);
        match self.dice.below(12) {
            0 => call = call.with("fieldManager=somebody"),
            1 => call = call.with("fieldValidation=Strict"),
            2 => call = call.with("dryRun=All"),
            _ => {}
        }
        Operation::one("merge patch", call.body(&patch))
    }

    pub(super) fn merge_status(&mut self) -> Operation {
        let object = self.with_status();
        let mut patch = json!({"status": self.status(object.kind)});
        if self.dice.percent(20) {
            patch["spec"] = self.spec(object.kind);
        }
        if self.dice.percent(20) {
            patch["metadata"] = json!({"labels": {"by": "status"}, "finalizers": null, "annotations": {"example.org/by": "status"}});
        }
        let door = self.door();
        let call = self.call(door, object.workspace, "PATCH", format!("{}/status", Self::path(door, &object)));
        Operation::one("merge patch of status", call.content_type(MERGE).body(&patch))
    }

    pub(super) fn json_patch(&mut self) -> Operation {
        let object = self.object();
        let key = object.key();
        let patch = match self.dice.below(12) {
            0 => {
                json!([{"op": "test", "path": "/metadata/name", "value": object.name}, {"op": "add", "path": "/metadata/labels", "value": {"by": "json"}}])
            }
            1 => {
                json!([{"op": "test", "path": "/metadata/name", "value": "another"}, {"op": "add", "path": "/metadata/labels", "value": {}}])
            }
            2 => json!([{"op": "add", "path": "/metadata/labels/color", "value": "black"}]),
            3 => json!([{"op": "remove", "path": "/metadata/labels"}]),
            4 => {
                json!([{"op": "test", "path": "/metadata/resourceVersion", "value": format!("⟦rv:{key}⟧")}, {"op": "add", "path": "/metadata/annotations/example.org~1note", "value": "json"}])
            }
            5 => json!([{"op": "replace", "path": "/spec/size", "value": "large"}]),
            6 => json!([{"op": "add", "path": "/spec/parts/-", "value": {"name": "added"}}]),
            7 => json!([{"op": "copy", "from": "/metadata/name", "path": "/spec/title"}]),
            8 => json!([{"op": "move", "from": "/spec/tags", "path": "/spec/steps"}]),
            9 => json!([{"op": "add", "path": "/status", "value": {"phase": "Ready"}}]),
            10 => json!([{"op": "frob", "path": "/spec", "value": 1}]),
            _ => json!([{"op": "remove", "path": "/spec/nothing"}]),
        };
        let door = self.door();
        let call = self.call(door, object.workspace, "PATCH", Self::path(door, &object));
        Operation::one("json patch", call.content_type(JSON_PATCH).body(&patch))
    }

    pub(super) fn apply(&mut self) -> Operation {
        let object = if self.dice.percent(75) { self.object() } else { self.new_object() };
        let mut body = self.body(&object);
        match self.dice.below(30) {
            0 => merge(&mut body["metadata"], json!({"managedFields": [{"manager": "m", "operation": "Update", "apiVersion": "v1"}]})),
            1 => merge(&mut body["metadata"], json!({"uid": "11111111-1111-4111-8111-111111111111"})),
            2 => merge(&mut body["metadata"], json!({"resourceVersion": format!("⟦oldrv:{}⟧", object.key())})),
            3 => merge(&mut body["metadata"], json!({"resourceVersion": format!("⟦rv:{}⟧", object.key())})),
            4 => merge(&mut body, json!({"kind": "Gizmo"})),
            5 => body["spec"]["bogus"] = 1.into(),
            6 => {
                let wrong = self.wrong_widget_fields();
                merge(&mut body["spec"], wrong);
            }
            7 => body["status"] = self.status(object.kind),
            _ => {}
        }
        let manager = *self.dice.one(&["m1", "m1", "m2"]);
        let door = self.door();
        let mut call = self.call(door, object.workspace, "PATCH", Self::path(door, &object)).content_type(APPLY);
        if self.dice.percent(96) {
            call = call.with(&format!("fieldManager={manager}"));
        }
        match self.dice.below(10) {
            0..5 => call = call.with("force=true"),
            5 => call = call.with("dryRun=All"),
            6 => call = call.with("fieldValidation=Strict"),
            _ => {}
        }
        self.there.insert(object);
        Operation::one("apply", call.body(&body))
    }

    pub(super) fn apply_status(&mut self) -> Operation {
        let object = self.with_status();
        let status = self.status(object.kind);
        let body = json!({"apiVersion": object.kind.api_version(), "kind": object.kind.name(), "metadata": {"name": object.name}, "status": status});
        let manager = *self.dice.one(&["m1", "s1", "s2"]);
        let door = self.door();
        let path = format!("{}/status?fieldManager={manager}", Self::path(door, &object));
        let mut call = self.call(door, object.workspace, "PATCH", path).content_type(APPLY);
        if self.dice.percent(60) {
            call = call.with("force=true");
        }
        Operation::one("apply of status", call.body(&body))
    }

    /// Bodies that are no body, and media types that are none of it.
    pub(super) fn bad_content(&mut self) -> Operation {
        let (object, door) = (self.object(), self.door());
        let valid = self.body(&object).to_string();
        let path = Self::path(door, &object);
        let texts = ["{\"a\"", "", "[]", "null", "5", "\"text\"", "{}", "not json", "{\"apiVersion\":\"v1\",\"kind\":\"Status\"}"];
        let text = (*self.dice.one(&texts)).to_owned();
        let types = [MERGE, JSON_PATCH, "application/json", "application/xml", STRATEGIC];
        match self.dice.below(5) {
            0 => {
                let call = self.call(door, object.workspace, "POST", Self::collection(door, &object));
                Operation::one("bad body", call.text(text))
            }
            1 => Operation::one("bad body", self.call(door, object.workspace, "PUT", path).text(text)),
            2 => {
                let content_type = *self.dice.one(&[MERGE, JSON_PATCH, APPLY]);
                let call = self.call(door, object.workspace, "PATCH", path).with("fieldManager=m1");
                // A merge patch of nothing changes nothing; YAML reads more than JSON.
                Operation::one("bad body", call.content_type(content_type).text(text))
            }
            3 if object.kind != Kind::ConfigMap => {
                let content_type = *self.dice.one(&["application/json", "application/xml", STRATEGIC, "text/plain", ""]);
                let call = self.call(door, object.workspace, "PATCH", path);
                Operation::one("bad media type", call.content_type(content_type).text(valid))
            }
            _ => {
                let content_type = *self.dice.one(&types[..2]);
                let call = self.call(door, object.workspace, "POST", Self::collection(door, &object)).with("dryRun=All");
                Operation::one("bad media type", call.content_type(content_type).text(valid))
            }
        }
    }

    pub(super) fn delete(&mut self) -> Operation {
        let object = self.object();
        self.delete_of(&object)
    }

    pub(super) fn delete_of(&mut self, object: &Object) -> Operation {
        let door = self.door();
        let call = self.call(door, object.workspace, "DELETE", Self::path(door, object));
        self.delete_there(object);
        Operation::one("delete", call)
    }

    pub(super) fn delete_unusual(&mut self) -> Operation {
        let object = self.object();
        let door = self.door();
        let key = object.key();
        let call = self.call(door, object.workspace, "DELETE", Self::path(door, &object));
        let options = |fields: Value| {
            let mut options = json!({"kind": "DeleteOptions", "apiVersion": "v1"});
            merge(&mut options, fields);
            options
        };
        let call = match self.dice.below(10) {
            0 => call.body(&options(json!({"preconditions": {"uid": "11111111-1111-4111-8111-111111111111"}}))),
            1 => call.body(&options(json!({"preconditions": {"resourceVersion": format!("⟦oldrv:{key}⟧")}}))),
            2 => {
                self.delete_there(&object);
                call.body(&options(json!({"preconditions": {"uid": format!("⟦uid:{key}⟧"), "resourceVersion": format!("⟦rv:{key}⟧")}})))
            }
            3 => call.with("propagationPolicy=Nope"),
            4 => call.with("dryRun=All"),
            5 => call.text("{\"a\""),
            6 => call.body(&options(json!({"propagationPolicy": "Orphan", "orphanDependents": true}))),
            7 => call.with("gracePeriodSeconds=x"),
            _ => {
                let policy = *self.dice.one(&["Background", "Foreground", "Orphan"]);
                self.delete_there(&object);
                let gone = Call::get(Self::path(Door::Direct, &object));
                let delete = Step::Call(call.with(&format!("propagationPolicy={policy}")));
                let mut steps = vec![delete];
                if !self.held.contains(&object) {
                    // A change that was refused may have left a finalizer.
                    let release = Call::new(Who::Admin, "PATCH", Self::path(Door::Direct, &object)).content_type(MERGE);
                    steps.insert(0, Step::Call(release.body(&json!({"metadata": {"finalizers": null}}))));
                    steps.push(Step::Until(gone, Holds::Code(404), COLLECTED));
                }
                return Operation { kind: "delete with a policy", steps };
            }
        };
        Operation::one("unusual delete", call)
    }

    /// Only what has a label, since the rest of a lane lives off what is there; direct, since through the virtual workspace it would not
    /// stop at the claim.
    pub(super) fn delete_collection(&mut self) -> Operation {
        let object = self.object();
        let selector = *self.dice.one(&[
            "labelSelector=color%3Dblue",
            "labelSelector=none",
            "fieldSelector=metadata.name%3Da",
            "limit=1&labelSelector=color",
        ]);
        let path = format!("{}?{selector}", Self::collection(Door::Direct, &object));
        let call = self.call(Door::Direct, object.workspace, "DELETE", path);
        Operation::one("delete a collection", call)
    }
}
