//! Reading: one object, lists, streams.

use std::time::Duration;

use super::{Call, Door, Generator, Kind, Object, Operation, Step, direct, through};

/// A watch cache follows its storage within this.
const CACHES_LAG: Duration = Duration::from_secs(5);
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io, application/json";
const PARTIAL: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const PARTIAL_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

impl Generator {
    pub(super) fn get(&mut self) -> Operation {
        let (object, door) = (self.object(), self.door());
        let mut path = Self::path(door, &object);
        if object.kind.has_status() && self.dice.percent(10) {
            path.push_str("/status");
        }
        let call = self.call(door, object.workspace, "GET", path);
        let late = self.dice.percent(10);
        if late {
            // From the cache, which may lag.
            return Operation { kind: "get", steps: vec![Step::Late(call.with("resourceVersion=0"), CACHES_LAG)] };
        }
        Operation::one("get", call)
    }

    /// A collection: of a namespace, of a workspace, or of all bound workspaces.
    fn a_collection(&mut self) -> (Door, Object, String) {
        let (object, door) = (self.object(), self.door());
        // The labels by which kcp finds claimed objects of native kinds come and go for many seconds after a claim was decided.
        let door = if object.kind == Kind::ConfigMap { Door::Direct } else { door };
        let whole = format!("{}/{}", object.kind.group_path(), object.kind.plural());
        let path = match self.dice.below(3) {
            0 if door == Door::Virtual => format!("{}{whole}", through(object.kind.export(), "*")),
            0 | 1 => format!("{}{whole}", Self::prefix(door, &object)),
            _ => Self::collection(door, &object),
        };
        (door, object, path)
    }

    pub(super) fn list(&mut self) -> Operation {
        let (door, object, path) = self.a_collection();
        let call = self.call(door, object.workspace, "GET", path.clone());
        match self.dice.below(6) {
            0 => Operation { kind: "list from the cache", steps: vec![Step::Late(call.with("resourceVersion=0"), CACHES_LAG)] },
            1 => {
                let remember = call.clone().remember("list");
                let again = *self.dice.one(&["resourceVersionMatch=Exact", "resourceVersionMatch=NotOlderThan", "limit=500"]);
                let exact = call.with("resourceVersion=⟦list⟧").with(again);
                Operation { kind: "list at a version", steps: vec![Step::Call(remember), Step::Late(exact, CACHES_LAG)] }
            }
            _ => Operation::one("list", call),
        }
    }

    pub(super) fn pages(&mut self) -> Operation {
        let (door, object, path) = self.a_collection();
        let limit = 1 + self.dice.below(4);
        let call = self.call(door, object.workspace, "GET", path).with(&format!("limit={limit}"));
        Operation { kind: "list in pages", steps: vec![Step::Pages(call)] }
    }

    pub(super) fn list_selected(&mut self) -> Operation {
        let (door, object, path) = self.a_collection();
        let selector = *self.dice.one(&[
            "labelSelector=color%3Dred",
            "labelSelector=color",
            "labelSelector=%21color",
            "labelSelector=color%21%3Dred",
            "labelSelector=color%20in%20(red,blue),shape",
            "labelSelector=color%20notin%20(red)",
            "labelSelector=color%3D%3D%3Dred",
            "labelSelector=a%20b",
            "labelSelector=shape%3Dround,color%3Dblue",
            "fieldSelector=metadata.name%3Da",
            "fieldSelector=metadata.name%21%3Da",
            "fieldSelector=metadata.namespace%3Ddefault",
            "fieldSelector=metadata.name%3Da,metadata.namespace%3Dteam",
            "fieldSelector=spec.size%3Dsmall",
            "fieldSelector=type%3DOpaque",
            "fieldSelector=status.phase%3DActive",
            "fieldSelector=metadata.name",
            "labelSelector=color%3Dred&limit=1",
            "limit=x",
            "limit=0",
            "resourceVersionMatch=Exact",
            "resourceVersion=1&resourceVersionMatch=Foo",
            "resourceVersion=0&resourceVersionMatch=Exact",
            "resourceVersion=x",
            "continue=abc",
            "timeoutSeconds=x",
            "unknownParameter=1",
        ]);
        let call = self.call(door, object.workspace, "GET", path).with(selector);
        Operation::one("list with parameters", call)
    }

    pub(super) fn as_table(&mut self) -> Operation {
        if self.dice.percent(50) {
            let (object, door) = (self.object(), self.door());
            let accept = *self.dice.one(&[
                TABLE,
                PARTIAL,
                PARTIAL_LIST,
                "application/yaml;q=0.1,*/*",
                "text/html",
                "application/json;as=Table;v=v9;g=meta.k8s.io",
            ]);
            let path = Self::path(door, &object);
            return Operation::one("other forms", self.call(door, object.workspace, "GET", path).accept(accept));
        }
        let (door, object, path) = self.a_collection();
        let accept = *self.dice.one(&[TABLE, PARTIAL_LIST, PARTIAL, "application/json;as=Nonsense;v=v1;g=meta.k8s.io, application/json"]);
        let mut call = self.call(door, object.workspace, "GET", path).accept(accept);
        if self.dice.percent(20) {
            call = call.with(self.dice.one::<&str>(&["includeObject=None", "includeObject=Object", "includeObject=Metadata"]));
        }
        Operation::one("other forms", call)
    }

    /// A list, some changes, and what a watch from that list's version tells of them.
    pub(super) fn watch(&mut self) -> Operation {
        let (door, object, path) = self.a_collection();
        let list = self.call(door, object.workspace, "GET", path);
        let mut steps = vec![Step::Call(list.clone().remember("list"))];
        for _ in 0..=self.dice.below(3) {
            steps.extend(self.change(&object));
        }
        let mut watch = list.with("watch=1&timeoutSeconds=8&resourceVersion=⟦list⟧");
        match self.dice.below(8) {
            0 => watch = watch.with("labelSelector=color"),
            1 => watch = watch.with("allowWatchBookmarks=true"),
            2 => watch = watch.with("fieldSelector=metadata.name%3Da"),
            3 => watch = watch.accept(PARTIAL),
            _ => {}
        }
        steps.push(Step::Watch(watch));
        Operation { kind: "watch", steps }
    }

    /// A change that a watch on objects like this one sees.
    fn change(&mut self, like: &Object) -> Vec<Step> {
        let fits = |object: &Object| object.kind == like.kind && object.workspace == like.workspace;
        let operation = match self.existing(fits) {
            Some(object) if self.dice.percent(70) => match self.dice.below(3) {
                0 => self.merge_into(&object),
                1 => self.delete_of(&object),
                _ => self.put_over(&object),
            },
            _ => {
                let mut object = self.new_object();
                (object.kind, object.workspace, object.namespace) = (like.kind, like.workspace, like.namespace);
                self.create_of(&object)
            }
        };
        operation.steps
    }

    pub(super) fn initial_events(&mut self) -> Operation {
        let (door, object, path) = self.a_collection();
        let list = self.call(door, object.workspace, "GET", path);
        let parameters = *self.dice.one(&[
            "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan",
            "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&labelSelector=color",
            "sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
            "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=⟦list⟧",
            "sendInitialEvents=true&allowWatchBookmarks=true",
            "resourceVersion=0",
            "resourceVersionMatch=NotOlderThan",
            "resourceVersion=x",
            "",
        ]);
        let remember = list.clone().remember("list");
        let watch = list.with("watch=true&timeoutSeconds=8").with(parameters);
        Operation { kind: "watch with initial events", steps: vec![Step::Call(remember), Step::Watch(watch)] }
    }

    pub(super) fn discovery(&mut self) -> Operation {
        let workspace = self.workspace();
        let door =
            if self.dice.percent(40) { through("lab", if self.dice.percent(50) { "*" } else { workspace }) } else { direct(workspace) };
        let path = *self.dice.one(&[
            "/api",
            "/api/v1",
            "/apis",
            "/apis/lab.example.org",
            "/apis/lab.example.org/v1",
            "/apis/store.example.org/v1",
            "/apis/apis.kcp.io/v1alpha2",
            "/apis/apis.kcp.io",
            "/apis/lab.example.org/v2",
            "/apis/nowhere.example.org",
            "/apis/coordination.k8s.io/v1",
            "/apis/rbac.authorization.k8s.io/v1",
        ]);
        Operation { kind: "discovery", steps: vec![Step::Late(Call::get(format!("{door}{path}")), CACHES_LAG)] }
    }
}
