//! Each rule of the role that `init` gives the manager is needed: without it the manager says what it was refused.

use kcp_provider_runtime::api::manifest::rbac;
use kcp_provider_runtime::cli::kcp_admin::{AdminClient, Resource};
use kcp_provider_runtime::runtime::Options;
use serde_json::{Value, json};

use crate::support::platform::{CLUSTERS, CONFIGS, Manager, Platform, SOON, Tenant, eventually};

const ROLES: Resource = Resource::new("rbac.authorization.k8s.io", "v1", "clusterroles");
const REVIEWS: Resource = Resource::new("authorization.k8s.io", "v1", "subjectaccessreviews");

/// What is seen without a rule.
enum Without {
    /// A manager that starts is not ready, and says that it may not read this.
    NotReady(&'static str),
    /// A manager that runs is refused this request, of this verb.
    Refused(&'static str, Provocation),
}

/// What makes the manager send a request.
#[derive(Clone, Copy)]
enum Provocation {
    /// A new cluster.
    Order,
    /// A cluster that was ready is not any more.
    Report,
    /// A cluster is deleted.
    Deletion,
    /// The provider lets the projection of a deleted cluster go.
    Release,
    /// The configuration is changed.
    Configuration,
}

struct Bench {
    platform: Platform,
    tenant: Tenant,
    inside: AdminClient,
    rules: Vec<Value>,
    options: Options,
}

impl Bench {
    async fn new() -> Self {
        let platform = Platform::new().await;
        platform.small_catalog().await;
        let tenant = platform.tenant().await;
        tenant.provider("otc").await;
        let inside = platform.inside(&tenant).await;
        let role = platform.client().get(&ROLES, "", rbac::MANAGER_ROLE).await.unwrap();
        let options = platform.options().await;
        Self { rules: role["rules"].as_array().unwrap().clone(), platform, tenant, inside, options }
    }

    async fn allow(&self, rules: &[Value]) {
        self.platform.client().patch(&ROLES, "", rbac::MANAGER_ROLE, &json!({"rules": rules})).await.unwrap();
    }

    /// Takes away what a rule allows, and waits until the server knows.
    async fn take(&self, rule: &Value) {
        self.allow(&lacking(&self.rules, rule)).await;
        self.effective(rule, false).await;
    }

    async fn give_back(&self, rule: &Value) {
        self.allow(&self.rules).await;
        self.effective(rule, true).await;
    }

    async fn effective(&self, rule: &Value, allowed: bool) {
        for verb in texts(&rule["verbs"]) {
            let review = self.review(rule, verb);
            eventually("the change of the role is effective", async || {
                let answer = self.platform.client().create(&REVIEWS, "", &review).await.unwrap();
                answer["status"]["allowed"] == allowed
            })
            .await;
        }
    }

    fn review(&self, rule: &Value, verb: &str) -> Value {
        let workspace = self.platform.workspace.logical_cluster.as_str();
        let namespace = rbac::MANAGER_NAMESPACE;
        let mut spec = json!({
            "user": format!("system:serviceaccount:{namespace}:{}", rbac::MANAGER),
            "groups": ["system:serviceaccounts", format!("system:serviceaccounts:{namespace}"), "system:authenticated"],
            "extra": {"authentication.kubernetes.io/cluster-name": [workspace]},
        });
        let (resource, subresource) = texts(&rule["resources"]).next().map_or(("", ""), |text| text.split_once('/').unwrap_or((text, "")));
        spec["resourceAttributes"] = json!({"verb": verb, "group": rule["apiGroups"][0], "version": "*", "resource": resource,
            "subresource": subresource, "name": rule["resourceNames"][0].as_str().unwrap_or_default()});
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec})
    }

    /// A manager that starts without the rule names what it may not read, and is ready once the rule is there.
    async fn is_missed_at_the_start(&self, rule: &Value, resource: &str) {
        self.take(rule).await;
        let mut manager = Manager::start_unready(self.options.clone(), None);
        eventually(&format!("without {rule} the manager names {resource}"), async || {
            let missing = manager.handle.missing().unwrap_or_default();
            missing.iter().any(|line| line.starts_with(resource) && line.contains("LIST: ") && line.contains("forbidden"))
        })
        .await;
        self.give_back(rule).await;
        tokio::time::timeout(SOON, manager.handle.ready()).await.expect("it is ready with the rule");
        manager.stop().await;
    }

    /// A manager that runs without the rule is refused the request, says so, and does it once the rule is there.
    async fn is_missed_at_work(&self, manager: &Manager, rule: &Value, verb: &str, provocation: Provocation, name: &str) {
        if !matches!(provocation, Provocation::Order | Provocation::Configuration) {
            self.tenant.order(name, "eu-de", "1.34.2", "4", "16Gi").await;
            self.tenant.wait(name, "ProviderClusterReady", "False", "ProviderNotReady").await;
        }
        if matches!(provocation, Provocation::Release) {
            self.tenant.keep_projection(&self.inside, name, true).await;
            self.tenant.client().delete(&CLUSTERS, "default", name).await.unwrap();
            self.tenant.leaving_projection(name).await;
            self.tenant.wait(name, "Ready", "False", "Deleting").await;
        }
        let refusals = |manager: &Manager| manager.requests().get(&(verb.to_owned(), 403)).copied().unwrap_or_default();
        assert_eq!(refusals(manager), 0, "{verb} was allowed until now");
        self.take(rule).await;
        match provocation {
            Provocation::Order => drop(self.tenant.order(name, "eu-de", "1.34.2", "4", "16Gi").await),
            Provocation::Report => self.tenant.report(&self.inside, name, true, "all machines run").await,
            Provocation::Deletion => self.tenant.client().delete(&CLUSTERS, "default", name).await.unwrap(),
            Provocation::Release => self.tenant.keep_projection(&self.inside, name, false).await,
            Provocation::Configuration => {
                let patch = json!({"spec": {"pollInterval": "11m"}});
                drop(self.platform.client().patch(&CONFIGS, "", "kcm", &patch).await.unwrap());
            }
        }
        eventually(&format!("without {rule} the manager is refused to {verb}"), async || refusals(manager) > 0).await;
        self.give_back(rule).await;
        match provocation {
            Provocation::Order => drop(self.tenant.scheduled(name).await),
            Provocation::Report => drop(self.tenant.wait(name, "Ready", "True", "Ready").await),
            Provocation::Deletion | Provocation::Release => {
                self.tenant.client().wait_gone(&CLUSTERS, "default", name, SOON).await.unwrap();
            }
            Provocation::Configuration => return,
        }
        let denied = "reason=\"AccessDenied\"";
        assert!(manager.handle.metrics().text().contains(denied), "{}", manager.handle.metrics().text());
    }
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// The rules without what `taken` allows: a whole rule, or some verbs of one.
fn lacking(rules: &[Value], taken: &Value) -> Vec<Value> {
    let mut left = rules.to_vec();
    for rule in &mut left {
        let same = ["apiGroups", "resources", "resourceNames", "nonResourceURLs"].iter().all(|field| rule[field] == taken[field]);
        if same {
            let verbs: Vec<&str> = texts(&rule["verbs"]).filter(|verb| !texts(&taken["verbs"]).any(|gone| gone == *verb)).collect();
            rule["verbs"] = json!(verbs);
        }
    }
    left.retain(|rule| texts(&rule["verbs"]).next().is_some());
    assert_ne!(left, rules, "{taken} is no rule of the role");
    left
}

/// Every rule of the role, split where its verbs fail in different ways, and what is seen without it.
fn expectation(rule: &Value) -> Vec<(Value, Without)> {
    let only = |verbs: &[&str]| {
        let mut part = rule.clone();
        part["verbs"] = json!(verbs);
        part
    };
    let not_ready = |resource| vec![(rule.clone(), Without::NotReady(resource))];
    let name = rule["resources"][0].as_str().unwrap_or_default();
    match name {
        "apiexportendpointslices" => not_ready("apiexportendpointslices.apis.kcp.io"),
        "kubernetesclusterofferings" => not_ready("kubernetesclusterofferings.provider.kubernetes.edge-connect.eu"),
        "virtualmachinetypes" => not_ready("virtualmachinetypes.provider.edge-connect.eu"),
        // The verb `get` is for the look at `exports: Manage` before the start, which tests/kcp/manage.rs tries.
        "providerconfigs" => vec![(only(&["list", "watch"]), Without::NotReady("providerconfigs.config.edge-connect.eu"))],
        "providerconfigs/status" => {
            vec![(rule.clone(), Without::Refused("apply the status of the configuration", Provocation::Configuration))]
        }
        "apiexports/content" => vec![
            (only(&["list", "watch"]), Without::NotReady("kubernetesclusters.kubernetes.edge-connect.eu")),
            (only(&["create"]), Without::Refused("create", Provocation::Order)),
            (only(&["update"]), Without::Refused("update", Provocation::Order)),
            (only(&["patch"]), Without::Refused("apply the status of", Provocation::Report)),
            (only(&["delete"]), Without::Refused("delete", Provocation::Deletion)),
            (only(&["get"]), Without::Refused("get", Provocation::Release)),
        ],
        _ => panic!("nobody has said what is seen without {rule}"),
    }
}

#[tokio::test]
async fn a_manager_that_starts_without_a_rule_names_what_it_may_not_read() {
    let bench = Bench::new().await;
    for (rule, without) in bench.rules.iter().flat_map(expectation) {
        if let Without::NotReady(resource) = without {
            bench.is_missed_at_the_start(&rule, resource).await;
        }
    }
}

#[tokio::test]
async fn a_manager_that_lacks_a_rule_at_work_is_refused_and_goes_on_once_it_is_there() {
    let bench = Bench::new().await;
    let manager = Manager::start(bench.options.clone(), None).await;
    for (at, (rule, without)) in bench.rules.iter().flat_map(expectation).enumerate() {
        if let Without::Refused(verb, provocation) = without {
            bench.is_missed_at_work(&manager, &rule, verb, provocation, &format!("demo-{at}")).await;
        }
    }
    manager.stop().await;
}
