//! What changes the world that the other operations live in, and takes controllers time: each with what shows that they are done.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Call, Door, Generator, Kind, Object, Operation, Step, Who, direct, through};
use crate::plan::{Holds, MERGE};
use crate::setup::{self, APIS, RBAC, SOON, STRUCTURE, WRITE};

/// Informers in the server that no answer tells of have heard within this.
const HEARD: Duration = Duration::from_secs(1);
const WIDGETS: &str = "/apis/lab.example.org/v1/widgets";

impl Generator {
    pub(super) fn structure(&mut self) -> Operation {
        let make = self.dice.weighted(&[
            (3, Self::bind_or_unbind as fn(&mut Self) -> Operation),
            (3, Self::decide_claims),
            (2, Self::roll),
            (4, Self::grant_and_revoke),
            (1, Self::workspace_of_a_workspace),
            (4, Self::service_account),
            (3, Self::namespace),
            (6, Self::collect),
        ]);
        make(self)
    }

    /// `t2` comes and goes.
    fn bind_or_unbind(&mut self) -> Operation {
        if !self.bound {
            self.bound = true;
            let mut operation = setup::bind("t2", "lab", &setup::first_decision());
            operation.steps.extend([Step::Pause(HEARD), Self::labels_follow("t2")]);
            return operation;
        }
        self.bound = false;
        let leaving: Vec<Object> = self.there.iter().filter(|object| object.workspace == "t2").cloned().collect();
        let mut steps = Vec::new();
        let release = json!({"metadata": {"finalizers": null}});
        for object in &leaving {
            if object.kind != Kind::ConfigMap {
                // Nothing may keep the binding but what the plan says.
                let call = Call::new(Who::Admin, "PATCH", Self::path(Door::Direct, object)).content_type(MERGE);
                steps.push(Step::Call(call.body(&release)));
                self.release_there(object);
                self.held.remove(object);
                self.there.remove(object);
            }
        }
        let binding = format!("{}{APIS}/apibindings/lab", direct("t2"));
        let kept = Self::widget_named("t2", "keeper");
        let held = json!({"apiVersion": "lab.example.org/v1", "kind": "Widget", "metadata": {"name": "keeper", "finalizers": [super::objects::HOLD]}, "spec": {"size": "small"}});
        let remaining = Holds::Is("/status/conditions/2/status", "False".into());
        let late = |call: Call, holds: Holds| Step::Until(call, holds, STRUCTURE);
        steps.extend([
            Step::Call(Call::new(Who::Admin, "POST", Self::collection(Door::Direct, &kept)).body(&held)),
            Step::Call(Call::new(Who::Admin, "DELETE", binding.clone())),
            late(Call::get(binding.clone()), remaining),
            late(Call::get(format!("{}{WIDGETS}", direct("t2"))), Holds::Code(200)),
            Step::Call(Call::get(Self::path(Door::Virtual, &kept))),
            Step::Call(Call::new(Who::Admin, "POST", Self::collection(Door::Virtual, &kept)).body(&held)),
            Step::Call(Call::new(Who::Admin, "POST", Self::collection(Door::Direct, &kept)).body(&held)),
            Step::Call(Call::new(Who::Runtime, "PATCH", Self::path(Door::Virtual, &kept)).content_type(MERGE).body(&release)),
            late(Call::get(binding), Holds::Code(404)),
            late(Call::get(format!("{}{WIDGETS}", direct("t2"))), Holds::Code(404)),
            late(Call::get(format!("{}{WIDGETS}", through("lab", "t2"))), Holds::Code(403)),
            late(Call::get(format!("{}{WIDGETS}", through("lab", "*"))), Holds::Code(200)),
            late(Call::get(format!("{}/apis", direct("t2"))), Holds::Code(200)),
        ]);
        // Which of the claimed objects keep the label for now is luck: none does that is written again.
        self.made += 1;
        let touch = json!({"metadata": {"annotations": {"touched": self.made.to_string()}}});
        let given =
            ["default", "team"].map(|namespace| format!("{}/api/v1/namespaces/{namespace}/configmaps/kube-root-ca.crt", direct("t2")));
        let own = leaving.iter().filter(|object| object.kind == Kind::ConfigMap).map(|object| Self::path(Door::Direct, object));
        for path in given.into_iter().chain(own) {
            steps.push(Step::Call(Call::new(Who::Admin, "PATCH", path).content_type(MERGE).body(&touch)));
        }
        steps.push(Self::labels_follow("t2"));
        Operation { kind: "unbind", steps }
    }

    fn widget_named(workspace: &'static str, name: &str) -> Object {
        Object { workspace, kind: Kind::Widget, namespace: "default", name: name.to_owned() }
    }

    /// Claims accepted, rejected, narrowed, or not mentioned, and then the first decision again.
    fn decide_claims(&mut self) -> Operation {
        let mut decision = setup::first_decision();
        let verbs = *self.dice.one(&[WRITE.as_slice(), &["get", "list"], &["*"], &["get", "list", "watch", "create"]]);
        let all = decision.as_array_mut().into_iter().flatten();
        for claim in all {
            claim["state"] = (*self.dice.one(&["Accepted", "Rejected"])).into();
            if claim["resource"] == "configmaps" {
                claim["verbs"] = json!(verbs);
            }
        }
        let mut steps = Self::decide(&decision);
        for name in ["configmaps", "secrets"] {
            for workspace in ["t1", "*"] {
                // Whether it may be listed; what is found of a native kind is kcp's luck for a while.
                let list = Call::get(format!("{}/api/v1/{name}?fieldSelector=metadata.name%3Dno-such-name", through("lab", workspace)));
                steps.push(Step::Late(list, SOON));
            }
        }
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "decided"}, "data": {"a": "b"}});
        let collection = format!("{}/api/v1/namespaces/default/configmaps", through("lab", "t1"));
        steps.push(Step::Call(Call::new(Who::Runtime, "POST", collection.clone()).body(&body)));
        steps.push(Step::Call(Call::new(Who::Runtime, "GET", format!("{collection}/decided"))));
        steps.push(Step::Call(Call::new(Who::Runtime, "DELETE", format!("{collection}/decided"))));
        steps.extend(Self::decide(&setup::first_decision()));
        Operation { kind: "claims", steps }
    }

    fn decide(decision: &Value) -> Vec<Step> {
        let binding = format!("{}{APIS}/apibindings/lab", direct("t1"));
        let patch = json!({"spec": {"permissionClaims": decision}});
        let accepted = decision.as_array().into_iter().flatten().filter(|claim| claim["state"] == "Accepted").count();
        let exactly = |last, none| Holds::All(vec![Holds::Some(last), Holds::Is(none, Value::Null)]);
        let applied = match accepted {
            0 => Holds::Is("/status/appliedPermissionClaims", Value::Null),
            1 => exactly("/status/appliedPermissionClaims/0", "/status/appliedPermissionClaims/1"),
            2 => exactly("/status/appliedPermissionClaims/1", "/status/appliedPermissionClaims/2"),
            _ => Holds::Some("/status/appliedPermissionClaims/2"),
        };
        vec![
            Step::Call(Call::new(Who::Admin, "PATCH", binding.clone()).content_type(MERGE).body(&patch)),
            Step::Until(Call::get(binding), applied, SOON),
            Step::Pause(HEARD),
            Self::labels_follow("t1"),
        ]
    }

    /// The labels of claimed objects come and go after what decides of them.
    fn labels_follow(workspace: &str) -> Step {
        Step::Until(Call::get(format!("{}/api/v1/configmaps", direct(workspace))), Holds::Code(200), SOON)
    }

    /// Widgets get another field with a default, in every binding.
    fn roll(&mut self) -> Operation {
        self.rolls += 1;
        let version = format!("v{}", self.rolls + 1);
        let mut kind = setup::kinds().swap_remove(0);
        kind["versions"][0]["schema"]["properties"]["spec"]["properties"]["fresh"] = json!({"type": "string", "default": version});
        let name = format!("{version}.widgets.lab.example.org");
        let resource =
            |plural: &str, schema: &str| json!({"name": plural, "group": "lab.example.org", "schema": schema, "storage": {"crd": {}}});
        let resources = json!([
            resource("widgets", &name),
            resource("gadgets", "v1.gadgets.lab.example.org"),
            resource("boards", "v1.boards.lab.example.org")
        ]);
        let export = format!("{}{APIS}/apiexports/lab", direct("p"));
        let patch = json!({"spec": {"resources": resources}});
        let mut steps = vec![
            Step::Call(setup::schema(&version, &kind)),
            Step::Call(Call::new(Who::Admin, "PATCH", export).content_type(MERGE).body(&patch)),
        ];
        let tenants: &[&str] = if self.bound { &["t1", "t2"] } else { &["t1"] };
        for tenant in tenants {
            let up_to_date = Holds::All(vec![
                Holds::Is("/status/boundResources/0/schema/name", name.clone().into()),
                Holds::Is("/status/conditions/2/status", "True".into()),
            ]);
            steps.push(Step::Until(Call::get(format!("{}{APIS}/apibindings/lab", direct(tenant))), up_to_date, STRUCTURE));
        }
        steps.push(Step::Pause(HEARD));
        for tenant in tenants {
            let probe = Self::widget_named(tenant, "probe");
            let body =
                json!({"apiVersion": "lab.example.org/v1", "kind": "Widget", "metadata": {"name": "probe"}, "spec": {"size": "small"}});
            for door in [Door::Direct, Door::Virtual] {
                let create = Call::new(Who::Admin, "POST", Self::collection(door, &probe)).with("dryRun=All").body(&body);
                let has_default = Holds::Is("/spec/fresh", version.clone().into());
                steps.push(Step::Until(create, has_default, STRUCTURE));
                // An export applies its schema to what it shows by itself.
                steps.push(Step::Late(Call::get(Self::collection(door, &probe)), STRUCTURE));
            }
        }
        Operation { kind: "schema roll", steps }
    }

    /// `nobody` is somebody for a while.
    fn grant_and_revoke(&mut self) -> Operation {
        self.made += 1;
        let name = format!("grant-{}", self.made);
        let workspace = if self.bound { self.workspace() } else { "t1" };
        let verbs = *self.dice.one(&[&["get", "list"][..], &["list"], &["*"], &["list", "create"]]);
        let rules = json!([
            {"apiGroups": ["lab.example.org"], "resources": ["widgets"], "verbs": verbs},
            {"nonResourceURLs": ["/"], "verbs": ["access"]}
        ]);
        let widget = Self::widget_named(workspace, "a");
        let list = Call::get(format!("{}{WIDGETS}", direct(workspace))).by(Who::Nobody);
        let body = json!({"apiVersion": "lab.example.org/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": "small"}});
        let create = Call::new(Who::Nobody, "POST", Self::collection(Door::Direct, &widget)).with("dryRun=All").body(&body);
        let mut steps = setup::role(workspace, &name, &rules, &json!([setup::user("nobody")]));
        steps.extend([
            Step::Until(list.clone(), Holds::Code(200), SOON),
            Step::Call(Call::get(Self::path(Door::Direct, &widget)).by(Who::Nobody)),
            Step::Call(create),
            Step::Call(Call::get(format!("{}/apis/lab.example.org/v1/boards", direct(workspace))).by(Who::Nobody)),
            Step::Call(Call::new(Who::Admin, "DELETE", format!("{}{RBAC}/clusterrolebindings/{name}", direct(workspace)))),
            Step::Until(list, Holds::Code(403), SOON),
            Step::Call(Call::new(Who::Admin, "DELETE", format!("{}{RBAC}/clusterroles/{name}", direct(workspace)))),
        ]);
        Operation { kind: "rights", steps }
    }

    fn workspace_of_a_workspace(&mut self) -> Operation {
        self.made += 1;
        let name = format!("child-{}", self.made);
        let all = format!("{}/apis/tenancy.kcp.io/v1alpha1/workspaces", direct("t1"));
        let body = json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name},
            "spec": {"type": {"name": "universal", "path": "root"}}});
        let one = format!("{all}/{name}");
        let inside = format!("/clusters/⟦path:t1⟧:{name}/api/v1/namespaces");
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "b"}});
        let steps = vec![
            Step::Call(Call::new(Who::Admin, "POST", all).body(&body)),
            // The names that it gets are only compared by what may be done in it.
            Step::Until(Call::get(format!("{inside}/default")), Holds::Code(200), STRUCTURE),
            Step::Call(Call::new(Who::Admin, "POST", format!("{inside}/default/configmaps")).body(&map)),
            Step::Call(Call::get(format!("{inside}/default/configmaps/x"))),
            Step::Call(Call::get(inside.clone()).by(Who::Nobody)),
            // Deleted in the midst of its making, it is what kcp's controllers had got to.
            Step::Until(Call::get(one.clone()), Holds::Is("/status/phase", json!("Ready")), STRUCTURE),
            Step::Pause(HEARD),
            Step::Call(Call::new(Who::Admin, "DELETE", one.clone())),
            Step::Until(Call::get(one), Holds::Code(404), STRUCTURE),
            Step::Until(Call::get(inside), Holds::Code(403), STRUCTURE),
        ];
        Operation { kind: "workspace", steps }
    }

    /// An account, its token, what the token may, and that it ends with the account.
    fn service_account(&mut self) -> Operation {
        self.made += 1;
        let name = format!("bot-{}", self.made);
        let accounts = format!("{}/api/v1/namespaces/default/serviceaccounts", direct("t1"));
        let body = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
        let seconds = *self.dice.one(&[600, 3600, 10]);
        let request = |seconds: i64| json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": seconds}});
        let bearer = Who::Bearer(name.clone());
        let rules = json!([{"apiGroups": ["lab.example.org"], "resources": ["widgets"], "verbs": ["list"]}]);
        let subject = json!([{"kind": "ServiceAccount", "namespace": "default", "name": name}]);
        let list = Call::get(format!("{}{WIDGETS}", direct("t1"))).by(bearer.clone());
        let mut steps = vec![
            Step::Call(Call::new(Who::Admin, "POST", accounts.clone()).body(&body)),
            Step::Call(Call::new(Who::Admin, "POST", format!("{accounts}/{name}/token")).body(&request(seconds))),
            Step::Call(Call::new(Who::Admin, "POST", format!("{accounts}/{name}/token")).body(&request(600)).remember(name.clone())),
            Step::Call(Call::new(Who::Admin, "POST", format!("{accounts}/nobody-home/token")).body(&request(600))),
            Step::Call(
                Call::new(Who::Admin, "POST", format!("{}/api/v1/namespaces/default/serviceaccounts/{name}/token", through("lab", "t1")))
                    .body(&request(600)),
            ),
            Step::Until(list.clone(), Holds::Code(403), SOON),
            Step::Call(Call::get(format!("{}{WIDGETS}", direct("t2"))).by(bearer.clone())),
            Step::Call(Call::get("/apis/lab.example.org/v1/widgets").by(bearer)),
        ];
        steps.extend(setup::role("t1", &name, &rules, &subject));
        steps.extend([
            Step::Until(list.clone(), Holds::Code(200), SOON),
            Step::Call(Call::new(Who::Admin, "DELETE", format!("{}{RBAC}/clusterrolebindings/{name}", direct("t1")))),
            Step::Call(Call::new(Who::Admin, "DELETE", format!("{}{RBAC}/clusterroles/{name}", direct("t1")))),
            Step::Call(Call::new(Who::Admin, "DELETE", format!("{accounts}/{name}"))),
            Step::Until(list, Holds::Code(401), SOON),
        ]);
        Operation { kind: "service account", steps }
    }

    fn namespace(&mut self) -> Operation {
        self.made += 1;
        let name = format!("ns-{}", self.made);
        let all = format!("{}/api/v1/namespaces", direct("t1"));
        let one = format!("{all}/{name}");
        let widget =
            json!({"apiVersion": "lab.example.org/v1", "kind": "Widget", "metadata": {"name": "inside"}, "spec": {"size": "small"}});
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}});
        let widgets = format!("{}/apis/lab.example.org/v1/namespaces/{name}/widgets", direct("t1"));
        let steps = vec![
            Step::Call(Call::new(Who::Admin, "POST", widgets.clone()).body(&widget)),
            Step::Call(
                Call::new(Who::Admin, "POST", all)
                    .body(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"color": "red"}}})),
            ),
            Step::Until(Call::get(format!("{one}/configmaps/kube-root-ca.crt")), Holds::Code(200), SOON),
            Step::Until(Call::get(format!("{one}/serviceaccounts")), Holds::Code(200), SOON),
            Step::Call(Call::new(Who::Admin, "POST", widgets.clone()).body(&widget)),
            Step::Call(Call::new(Who::Admin, "DELETE", one.clone())),
            Step::Until(Call::get(one.clone()), Holds::Code(404), STRUCTURE),
            Step::Call(Call::get(widgets)),
            // What admission knows of namespaces is a little older.
            Step::Late(Call::new(Who::Admin, "POST", format!("{one}/configmaps")).body(&map), SOON),
        ];
        Operation { kind: "namespace", steps }
    }

    /// An owner, what it owns, and that the one goes with the other.
    fn collect(&mut self) -> Operation {
        self.made += 1;
        let name = format!("owner-{}", self.made);
        let owner = Object { workspace: "t1", kind: Kind::Gadget, namespace: "default", name };
        let dependent =
            Object { kind: *self.dice.one(&[Kind::Widget, Kind::ConfigMap]), name: format!("owned-{}", self.made), ..owner.clone() };
        let mut body = self.body(&dependent);
        let block = self.dice.percent(40);
        body["metadata"]["ownerReferences"] = json!([{"apiVersion": "lab.example.org/v1", "kind": "Gadget", "name": owner.name,
            "uid": format!("⟦uid:{}⟧", owner.key()), "blockOwnerDeletion": block}]);
        let owner_body = self.body(&owner);
        let policy = *self.dice.one(&["Background", "Foreground", "Orphan"]);
        let delete = Call::new(Who::Admin, "DELETE", Self::path(Door::Direct, &owner)).with(&format!("propagationPolicy={policy}"));
        let code = if policy == "Orphan" { 200 } else { 404 };
        let mut steps = vec![
            Step::Call(Call::new(Who::Admin, "POST", Self::collection(Door::Direct, &owner)).body(&owner_body)),
            Step::Call(Call::new(Who::Admin, "POST", Self::collection(Door::Direct, &dependent)).body(&body)),
            // The collector must know both before it can tell who owns whom.
            Step::Pause(HEARD),
            Step::Call(delete),
            Step::Until(Call::get(Self::path(Door::Direct, &owner)), Holds::Code(404), STRUCTURE),
            Step::Until(Call::get(Self::path(Door::Direct, &dependent)), Holds::Code(code), STRUCTURE),
        ];
        if policy == "Orphan" {
            steps.push(Step::Call(Call::new(Who::Admin, "DELETE", Self::path(Door::Direct, &dependent))));
        }
        Operation { kind: "owner", steps }
    }
}
