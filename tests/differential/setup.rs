//! What every lane begins with: a provider with two exports, two bound tenants and one that is not. Itself compared, step by step.

use std::time::Duration;

use serde_json::{Value, json};

use super::plan::{Call, Holds, Operation, Step, Who};

/// The provider's exports.
pub(crate) const EXPORTS: [&str; 2] = ["lab", "store"];
/// The workspaces of a lane: the provider, two tenants that begin bound, one that begins unbound.
pub(crate) const WORKSPACES: [&str; 4] = ["p", "t1", "t2", "t3"];
/// A bind takes 5 s on an idle kcp, and much more on one that does ten of them.
pub(crate) const STRUCTURE: Duration = Duration::from_secs(90);
/// Controllers that watch what a request changed.
pub(crate) const SOON: Duration = Duration::from_secs(20);

pub(crate) const APIS: &str = "/apis/apis.kcp.io/v1alpha2";
pub(crate) const APIS_1: &str = "/apis/apis.kcp.io/v1alpha1";
pub(crate) const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
pub(crate) const WRITE: [&str; 7] = ["get", "list", "watch", "create", "update", "patch", "delete"];

/// The schemas of the test kinds: one per rule that a structural schema may have.
pub(crate) fn kinds() -> Vec<Value> {
    serde_json::from_str(include_str!("kinds.json")).expect("kinds.json is JSON")
}

/// The path of a workspace.
pub(crate) fn direct(workspace: &str) -> String {
    format!("/clusters/⟦{workspace}⟧")
}

/// The path of a workspace, or of all, in an export's virtual workspace.
pub(crate) fn through(export: &str, workspace: &str) -> String {
    let consumer = if workspace == "*" { "*".to_owned() } else { format!("⟦{workspace}⟧") };
    format!("/services/apiexport/⟦p⟧/{export}/clusters/{consumer}")
}

/// A new version of a kind's schema; `edit` says what is new in it.
pub(crate) fn schema(version: &str, kind: &Value) -> Call {
    let name = format!("{version}.{}.{}", kind["names"]["plural"].as_str().unwrap_or_default(), kind["group"].as_str().unwrap_or_default());
    let body = json!({"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIResourceSchema", "metadata": {"name": name}, "spec": kind});
    Call::new(Who::Admin, "POST", format!("{}{APIS_1}/apiresourceschemas", direct("p"))).body(&body)
}

/// What the export `lab` may ask for.
pub(crate) fn claims() -> Value {
    json!([
        {"group": "", "resource": "configmaps", "verbs": WRITE},
        {"group": "", "resource": "secrets", "verbs": ["get", "list"]},
        {"group": "", "resource": "events", "verbs": WRITE}
    ])
}

fn export(name: &str, resources: &[(&str, &str)], claims: &Value) -> Operation {
    let resources: Vec<Value> = resources
        .iter()
        .map(|(plural, group)| json!({"name": plural, "group": group, "schema": format!("v1.{plural}.{group}"), "storage": {"crd": {}}}))
        .collect();
    let body = json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": {"name": name},
        "spec": {"resources": resources, "permissionClaims": claims}});
    let ready = Holds::All(vec![Holds::Some("/status/identityHash"), Holds::Is("/status/conditions/0/status", "True".into())]);
    Operation {
        kind: "export",
        steps: vec![
            Step::Call(Call::new(Who::Admin, "POST", format!("{}{APIS}/apiexports", direct("p"))).body(&body)),
            Step::Until(Call::get(format!("{}{APIS}/apiexports/{name}", direct("p"))), ready, SOON),
            Step::Until(
                Call::get(format!("{}{APIS_1}/apiexportendpointslices/{name}", direct("p"))),
                Holds::Is("/status/conditions/1/status", "True".into()),
                SOON,
            ),
            Step::Until(Call::get(format!("{}/api/v1/namespaces/kcp-system", direct("p"))), Holds::Code(200), SOON),
        ],
    }
}

/// A binding of one tenant, until everything of it is served.
pub(crate) fn bind(workspace: &str, export: &str, claims: &Value) -> Operation {
    let body = json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": {"name": export},
        "spec": {"reference": {"export": {"path": "⟦path:p⟧", "name": export}}, "permissionClaims": claims}});
    let up_to_date = Holds::All(vec![
        Holds::Is("/status/phase", "Bound".into()),
        Holds::Is("/status/conditions/2/status", "True".into()),
        Holds::Is("/status/conditions/4/status", "True".into()),
    ]);
    let (plural, group) = if export == "lab" { ("widgets", "lab.example.org") } else { ("crates", "store.example.org") };
    let list = format!("/apis/{group}/v1/{plural}");
    Operation {
        kind: "bind",
        steps: vec![
            Step::Call(Call::new(Who::Admin, "POST", format!("{}{APIS}/apibindings", direct(workspace))).body(&body)),
            Step::Until(Call::get(format!("{}{APIS}/apibindings/{export}", direct(workspace))), up_to_date, STRUCTURE),
            Step::Until(Call::get(format!("{}{list}", direct(workspace))), Holds::Code(200), STRUCTURE),
            Step::Until(Call::get(format!("{}{list}", through(export, workspace))), Holds::Code(200), STRUCTURE),
            Step::Until(Call::get(format!("{}{list}", through(export, "*"))), Holds::Code(200), STRUCTURE),
            Step::Until(
                Call::get(format!("{}{APIS_1}/apiexportendpointslices/{export}", direct("p"))),
                Holds::Some("/status/endpoints/0/url"),
                SOON,
            ),
            Step::Until(Call::get(format!("{}{APIS}/apibindings", through(export, workspace))), Holds::Code(200), SOON),
            Step::Until(Call::get(format!("{}/apis/{group}/v1", direct(workspace))), Holds::Code(200), SOON),
        ],
    }
}

/// A `ClusterRole` with these rules and its binding to these subjects.
pub(crate) fn role(workspace: &str, name: &str, rules: &Value, subjects: &Value) -> Vec<Step> {
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}, "subjects": subjects});
    vec![
        Step::Call(Call::new(Who::Admin, "POST", format!("{}{RBAC}/clusterroles", direct(workspace))).body(&role)),
        Step::Call(Call::new(Who::Admin, "POST", format!("{}{RBAC}/clusterrolebindings", direct(workspace))).body(&binding)),
    ]
}

/// A user as a subject.
pub(crate) fn user(name: &str) -> Value {
    json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name})
}

/// `configmaps` and `events` accepted, `secrets` rejected.
pub(crate) fn first_decision() -> Value {
    json!([
        {"group": "", "resource": "configmaps", "verbs": WRITE, "selector": {"matchAll": true}, "state": "Accepted"},
        {"group": "", "resource": "secrets", "verbs": ["get", "list"], "selector": {"matchAll": true}, "state": "Rejected"},
        {"group": "", "resource": "events", "verbs": WRITE, "selector": {"matchAll": true}, "state": "Accepted"}
    ])
}

/// The rights of the users of a lane.
fn rights() -> Vec<Operation> {
    let account = json!({"kind": "ServiceAccount", "namespace": "default", "name": "runtime"});
    let content = json!([
        {"apiGroups": ["apis.kcp.io"], "resources": ["apiexports/content"], "resourceNames": EXPORTS, "verbs": ["*"]},
        {"nonResourceURLs": ["/"], "verbs": ["access"]}
    ]);
    let everything = json!([
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["*"]}
    ]);
    let reading = json!([
        {"apiGroups": ["lab.example.org"], "resources": ["widgets"], "verbs": ["get", "list", "watch"]},
        {"nonResourceURLs": ["/"], "verbs": ["access"]}
    ]);
    let create = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "runtime"}});
    let token = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}});
    let accounts = format!("{}/api/v1/namespaces/default/serviceaccounts", direct("p"));
    let mut steps = role("p", "content", &content, &json!([user("runtime"), account]));
    steps.extend(role("t1", "everything", &everything, &json!([user("tenant")])));
    steps.extend(role("t2", "reading", &reading, &json!([user("tenant")])));
    let list = |who: Who, path: String| Step::Until(Call::get(path).by(who), Holds::Code(200), SOON);
    let sa = Who::Bearer("sa".to_owned());
    let token_path = format!("{accounts}/runtime/token");
    let widgets = "/apis/lab.example.org/v1/widgets";
    vec![
        Operation { kind: "rights", steps },
        Operation {
            kind: "rights",
            steps: vec![
                Step::Until(Call::get(format!("{}/api/v1/namespaces/default", direct("p"))), Holds::Code(200), SOON),
                Step::Call(Call::new(Who::Admin, "POST", accounts).body(&create)),
                Step::Call(Call::new(Who::Admin, "POST", token_path).body(&token).remember("sa")),
                list(sa, format!("{}{widgets}", through("lab", "*"))),
                list(Who::Runtime, format!("{}{widgets}", through("lab", "*"))),
                list(Who::Tenant, format!("{}{widgets}", direct("t1"))),
                list(Who::Tenant, format!("{}{widgets}", direct("t2"))),
            ],
        },
    ]
}

/// Everything up to the first random operation.
pub(crate) fn operations() -> Vec<Operation> {
    let mut all = vec![Operation { kind: "schema", steps: kinds().iter().map(|kind| Step::Call(schema("v1", kind))).collect() }];
    let lab = [("widgets", "lab.example.org"), ("gadgets", "lab.example.org"), ("boards", "lab.example.org")];
    all.push(export("lab", &lab, &claims()));
    all.push(export("store", &[("crates", "store.example.org")], &json!([])));
    let unbound = format!("{}/apis/lab.example.org/v1/widgets", through("lab", "*"));
    all.push(Operation::one("unserved", Call::get(unbound)));
    all.push(bind("t1", "lab", &first_decision()));
    all.push(bind("t2", "lab", &first_decision()));
    all.push(bind("t1", "store", &json!([])));
    all.extend(rights());
    for tenant in ["t1", "t2"] {
        let team = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}});
        all.push(Operation {
            kind: "namespace",
            steps: vec![
                Step::Until(Call::get(format!("{}/api/v1/namespaces/default", direct(tenant))), Holds::Code(200), SOON),
                Step::Call(Call::new(Who::Admin, "POST", format!("{}/api/v1/namespaces", direct(tenant))).body(&team)),
                Step::Until(
                    Call::get(format!("{}/api/v1/namespaces/team", direct(tenant))),
                    Holds::Is("/status/phase", "Active".into()),
                    SOON,
                ),
            ],
        });
    }
    all
}
