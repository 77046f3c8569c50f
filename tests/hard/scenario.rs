//! A busy time: tenants order, change and delete, the provider reports and holds on, the operator changes the catalog, all by dice with a seed.

use std::time::{Duration, Instant};

use kcp_provider_runtime::cli::kcp_admin::AdminClient;
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::stage::{Stage, report};
use crate::support::platform::{CLUSTERS, MACHINE_TYPES, OFFERINGS, PROJECTIONS, PROVIDERS, Tenant};
use crate::support::provider::MACHINES;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// What goes on; each turn is one thing that somebody does, and that may well be refused.
pub(crate) struct Scenario {
    dice: Dice,
    providers: Vec<AdminClient>,
}

impl Scenario {
    pub(crate) async fn new(stage: &Stage, seed: u64) -> Self {
        let providers = futures::future::join_all(stage.tenants.iter().map(|tenant| stage.provider(tenant))).await;
        Self { dice: Dice::new(seed, 0), providers }
    }

    /// One thing happens.
    pub(crate) async fn turn(&mut self, stage: &Stage) {
        let at = usize::try_from(self.dice.below(stage.tenants.len() as u64)).unwrap();
        let (tenant, provider) = (stage.tenants[at].client(), self.providers[at].clone());
        let name = *self.dice.one(&NAMES);
        let name = &named(&stage.tenants[at], name);
        match self.dice.weighted(&[(6, 0), (3, 1), (2, 2), (4, 3), (2, 4), (1, 5), (1, 6), (1, 7)]) {
            0 => ignored(tenant.create(&CLUSTERS, "default", &self.order(name)).await),
            1 => {
                let pools = self.pools();
                ignored(tenant.patch(&CLUSTERS, "default", name, &json!({"spec": {"nodePools": pools}})).await);
            }
            2 => ignored(tenant.delete(&CLUSTERS, "default", name).await),
            3 => {
                let ready = self.dice.percent(80);
                if let Ok(Some(projection)) = provider.find(&PROJECTIONS, "default", name).await {
                    ignored(provider.patch(&PROJECTIONS.subresource("status"), "default", name, &report(&projection, ready)).await);
                }
            }
            4 => {
                let holds = self.dice.percent(40).then(|| json!([MACHINES]));
                hold(&provider, name, holds.unwrap_or_default()).await;
            }
            5 => self.catalog(stage).await,
            6 => {
                // A tenant that takes its account away, and one that opens it again.
                let account = json!({"apiVersion": PROVIDERS.api_version(), "kind": "Provider", "metadata": {"name": "otc"},
                    "spec": {"credentialsSecretRef": {"namespace": "default", "name": "account"}}});
                if self.dice.percent(30) {
                    ignored(tenant.delete(&PROVIDERS, "", "otc").await);
                } else {
                    ignored(tenant.create(&PROVIDERS, "", &account).await);
                }
            }
            _ => {
                // A tenant that takes our finalizer away, as it may.
                ignored(tenant.patch(&CLUSTERS, "default", name, &json!({"metadata": {"finalizers": null}})).await);
            }
        }
    }

    /// For so long one thing happens after the other.
    pub(crate) async fn busy(&mut self, stage: &Stage, time: Duration) {
        let began = Instant::now();
        while began.elapsed() < time {
            self.turn(stage).await;
        }
    }

    /// Everything that holds a deletion up is let go of, and the catalog and the accounts are whole.
    pub(crate) async fn calm(&mut self, stage: &Stage) {
        stage.platform.small_catalog().await;
        for (tenant, provider) in stage.tenants.iter().zip(&self.providers) {
            if tenant.client().find(&PROVIDERS, "", "otc").await.unwrap().is_none() {
                tenant.provider("otc").await;
            }
            for name in NAMES {
                hold(provider, &named(tenant, name), Value::Null).await;
            }
        }
    }

    async fn catalog(&mut self, stage: &Stage) {
        let client = stage.platform.client();
        match self.dice.below(4) {
            0 => ignored(client.delete(&OFFERINGS, "", "otc-standard").await),
            1 => ignored(client.delete(&MACHINE_TYPES, "", "m-4-16").await),
            _ => stage.platform.small_catalog().await,
        }
    }

    fn order(&mut self, name: &str) -> Value {
        json!({"apiVersion": CLUSTERS.api_version(), "kind": "KubernetesCluster", "metadata": {"name": name, "namespace": "default"},
            "spec": {"region": "eu-de", "version": "1.34.2", "nodePools": self.pools()}})
    }

    fn pools(&mut self) -> Value {
        let pools = 1 + self.dice.below(3);
        let pool = |at: u64, dice: &mut Dice| {
            let (cpu, memory) = *dice.one(&[("2", "8Gi"), ("4000m", "16Gi"), ("8", "32Gi"), ("64", "1Ti")]);
            json!({"name": format!("pool-{at}"), "replicas": 1 + dice.below(5), "capabilities": {"cpu": cpu, "memory": memory}})
        };
        (0..pools).map(|at| pool(at, &mut self.dice)).collect()
    }
}

/// No name is in two workspaces: a line about what is not there says its name alone.
fn named(tenant: &Tenant, name: &str) -> String {
    format!("{name}-{}", tenant.workspace.logical_cluster)
}

async fn hold(provider: &AdminClient, name: &str, finalizers: Value) {
    ignored(provider.patch(&PROJECTIONS, "default", name, &json!({"metadata": {"finalizers": finalizers}})).await);
}

/// What is refused in a busy time is refused: the thing was not there, or another was faster.
fn ignored<T, E>(done: Result<T, E>) {
    drop(done);
}
