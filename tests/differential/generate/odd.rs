//! What nobody should ask, and who may not.

use serde_json::json;

use super::{Call, Door, Generator, Kind, Object, Operation, Step, Who, direct, through};
use crate::plan::MERGE;
use crate::setup::SOON;
use crate::setup::{APIS, APIS_1};

impl Generator {
    pub(super) fn wrong_method(&mut self) -> Operation {
        let (object, door) = (self.object(), self.door());
        let (path, collection) = (Self::path(door, &object), Self::collection(door, &object));
        let body = self.body(&object);
        let call = match self.dice.below(10) {
            0 => Call::new(Who::Admin, "POST", path).body(&body),
            1 => Call::new(Who::Admin, "PUT", collection).body(&body),
            2 => Call::new(Who::Admin, "PATCH", collection).content_type(MERGE).body(&json!({})),
            3 => Call::new(Who::Admin, "POST", format!("{path}/status")).body(&body),
            4 => Call::new(Who::Admin, "DELETE", format!("{path}/status")),
            5 => Call::get(format!("{path}/scale")),
            6 => Call::get(format!("{path}/nothing")),
            7 => Call::new(Who::Admin, "PUT", format!("{path}/nothing")).body(&body),
            8 => Call::new(Who::Admin, "OPTIONS", path),
            _ => Call::get(format!("{path}/status/more")),
        };
        // A POST on the path of an object creates it.
        if call.method == "POST" {
            self.there.insert(object);
        }
        Operation::one("wrong method", call)
    }

    pub(super) fn unknown(&mut self) -> Operation {
        let workspace = self.workspace();
        let door = if self.dice.percent(40) { through("lab", workspace) } else { direct(workspace) };
        let lab = "/apis/lab.example.org/v1";
        let path = *self.dice.one(&[
            "/apis/lab.example.org/v1/nopes",
            "/apis/lab.example.org/v1/namespaces/default/nopes/x",
            "/apis/lab.example.org/v9/widgets",
            "/apis/no.example.org/v1/x",
            "/api/v1/pods",
            "/api/v1/namespaces/default/pods/x",
            "/api/v2",
            "/nonsense",
            "/apis/lab.example.org/v1/widgets/a",
            "/apis/lab.example.org/v1/namespaces/default/boards",
            "/apis/lab.example.org/v1/namespaces/nowhere/widgets",
            "/apis/lab.example.org/v1/namespaces/nowhere/widgets/a",
        ]);
        if self.dice.percent(25) {
            let object = Object { workspace, kind: Kind::Widget, namespace: "nowhere", name: "a".to_owned() };
            let path = *self.dice.one(&["/namespaces/nowhere/widgets", "/widgets", "/namespaces/default/boards", "/nopes"]);
            let body = self.body(&object);
            return Operation::one("unknown", Call::new(Who::Admin, "POST", format!("{door}{lab}{path}")).body(&body));
        }
        Operation::one("unknown", Call::get(format!("{door}{path}")))
    }

    /// URLs of virtual workspaces that lead nowhere, and requests that they do not serve.
    pub(super) fn virtual_oddity(&mut self) -> Operation {
        let widgets = "/apis/lab.example.org/v1/widgets";
        let in_default = "/apis/lab.example.org/v1/namespaces/default/widgets";
        let workspace = self.workspace();
        let object = Object { workspace, kind: Kind::Widget, namespace: "default", name: "a".to_owned() };
        let binding = format!("{APIS}/apibindings/lab");
        let call = match self.dice.below(22) {
            0 => Call::get(format!("/services/apiexport/⟦path:p⟧/lab/clusters/*{widgets}")),
            1 => Call::get(format!("{}{widgets}", through("nope", "*"))),
            2 => Call::get(format!("/services/apiexport/⟦p⟧/lab/clusters/⟦path:{workspace}⟧{widgets}")),
            3 => Call::get(format!("/services/apiexport/⟦p⟧/lab{widgets}")),
            4 => Call::get("/services/apiexport/⟦p⟧/lab"),
            5 => Call::get(format!("/services/apiexport/⟦p⟧/lab/clusters/nosuchcluster{widgets}")),
            6 => Call::get(format!("{}{widgets}", through("lab", "t3"))),
            7 => Call::get(format!("{}{in_default}/a", through("lab", "t3"))),
            8 => Call::new(Who::Admin, "POST", format!("{}{in_default}", through("lab", "t3"))).body(&self.body(&object)),
            9 => Call::get(format!("{}{in_default}", through("lab", "*"))),
            10 => Call::get(format!("{}{in_default}/a", through("lab", "*"))),
            11 => Call::get(format!("{}/apis/lab.example.org/v1/boards/a", through("lab", "*"))),
            12 => Call::new(Who::Admin, "POST", format!("{}{in_default}", through("lab", "*"))).body(&self.body(&object)),
            13 => Call::new(Who::Admin, "DELETE", format!("{}{in_default}/a", through("lab", "*"))),
            14 => Call::get(format!("{}/version", through("lab", "*"))),
            15 => Call::get(format!("{}{binding}", through("lab", workspace))),
            16 => Call::new(Who::Admin, "PATCH", format!("{}{binding}", through("lab", workspace)))
                .content_type(MERGE)
                .body(&json!({"metadata": {"labels": {"a": "b"}}})),
            17 => Call::new(Who::Admin, "DELETE", format!("{}{binding}", through("lab", workspace))),
            18 => Call::get(format!("{}{APIS_1}/apibindings", through("store", "*"))),
            19 => Call::get(format!("{}/apis/store.example.org/v1/crates", through("lab", "t1"))),
            20 => Call::get(format!("{}{widgets}", through("store", "*"))),
            _ => Call::get(format!("{}/api/v1/serviceaccounts", through("lab", if self.dice.percent(50) { "*" } else { workspace }))),
        };
        let unsteady = call.path.contains("apibindings") || call.path.contains("/clusters/*");
        let step = if unsteady { super::Step::Late(call, std::time::Duration::from_secs(5)) } else { super::Step::Call(call) };
        Operation { kind: "virtual oddity", steps: vec![step] }
    }

    /// The same requests by those who may not, or not everywhere.
    pub(super) fn identity(&mut self) -> Operation {
        let (object, door) = (self.object(), self.door());
        let who = [Who::Tenant, Who::Nobody, Who::Runtime, Who::Anonymous, Who::Impostor];
        let who = self.dice.one(&who).clone();
        let (path, collection) = (Self::path(door, &object), Self::collection(door, &object));
        let body = self.body(&object);
        let call = match self.dice.below(12) {
            0 => Call::get(path),
            1 => Call::get(collection),
            2 => Call::new(Who::Admin, "POST", collection).body(&body).with("dryRun=All"),
            3 => Call::new(Who::Admin, "PATCH", path)
                .content_type(MERGE)
                .body(&json!({"metadata": {"labels": {"x": "y"}}}))
                .with("dryRun=All"),
            4 => Call::new(Who::Admin, "PUT", format!("{path}/status")).body(&body).with("dryRun=All"),
            5 => Call::new(Who::Admin, "DELETE", path).with("dryRun=All"),
            6 => Call::new(Who::Admin, "DELETE", collection).with("dryRun=All&labelSelector=none"),
            7 => Call::get(format!("{}/apis", Self::prefix(door, &object))),
            8 => Call::get(format!("{}{}/{}", through(object.kind.export(), "*"), object.kind.group_path(), object.kind.plural())),
            9 => Call::get(format!("/clusters/*{}/{}", object.kind.group_path(), object.kind.plural())),
            10 => Call::get(*self.dice.one(&[
                "/version",
                "/clusters/nosuchcluster/api/v1/namespaces",
                "/clusters/A_B/api",
                "/clusters/root:nope/apis",
                "/api/v1/namespaces",
            ])),
            _ => Call::get(collection).with("watch=1&timeoutSeconds=1"),
        };
        let call = call.by(if door == Door::Direct && who == Who::Runtime { Who::Nobody } else { who });
        if call.path.contains("watch=1") {
            return Operation { kind: "identity", steps: vec![super::Step::Watch(call)] };
        }
        Operation::one("identity", call)
    }

    /// Kinds that every workspace has: claimed, rejected, or not asked for.
    pub(super) fn built_in(&mut self) -> Operation {
        let (workspace, door) = (self.workspace(), self.door());
        let prefix = if door == Door::Virtual { through("lab", workspace) } else { direct(workspace) };
        let core = format!("{prefix}/api/v1/namespaces/default");
        let name = *self.dice.one(&["x", "y"]);
        self.made += 1;
        let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": format!("{name}.{}", self.made)}, "type": "Normal", "reason": "Tested", "message": "m",
            "involvedObject": {"apiVersion": "lab.example.org/v1", "kind": "Widget", "namespace": "default", "name": "a"}});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"a": "b"}});
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes":
            {"verb": *self.dice.one(&["get", "create", "bind"]), "group": "lab.example.org", "resource": "widgets", "namespace": "default"}}});
        let review_path = format!("{}/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", direct(workspace));
        let call = match self.dice.below(14) {
            0 | 1 => Call::new(Who::Admin, "POST", format!("{core}/events")).body(&event),
            // Not the events: the labeler takes claims' labels from new ones at times, for a while.
            2 => Call::get(format!("{core}/secrets")),
            3 | 4 => Call::new(Who::Admin, "POST", format!("{core}/secrets")).body(&secret),
            5 => Call::get(format!("{core}/secrets/{name}")),
            6 => Call::new(Who::Admin, "DELETE", format!("{core}/secrets/{name}")),
            7 => Call::new(Who::Admin, "PATCH", format!("{core}/secrets/{name}")).content_type(MERGE).body(&json!({"data": {"c": "ZA=="}})),
            8 => Call::get(format!("{prefix}/api/v1/namespaces")),
            9 => Call::get(format!("{core}/serviceaccounts")),
            10 => Call::get(format!("{prefix}/apis/rbac.authorization.k8s.io/v1/clusterroles")),
            11 => {
                let who = [Who::Admin, Who::Tenant, Who::Nobody];
                Call::new(self.dice.one(&who).clone(), "POST", review_path).body(&review)
            }
            12 => Call::get(format!("{core}/configmaps")),
            _ => Call::get(format!("{prefix}/api/v1/secrets")),
        };
        // The labels of claimed objects and the annotations of roles come late.
        let step = if call.method == "GET" { Step::Late(call, SOON) } else { Step::Call(call) };
        Operation { kind: "built-in", steps: vec![step] }
    }
}
