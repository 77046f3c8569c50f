//! Who is made when: whatever does not wait for something else begins at once, so that the first cluster is there as soon as the control plane allows.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::Context as _;
use futures::future::try_join_all;
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use super::provider::Provider;
use super::scenario::{self, Tenant};
use super::screen::Screen;
use super::site::{self, Site};
use crate::api::manifest::door::Door;
use crate::api::manifest::{binding, export};
use crate::api::names::LogicalCluster;
use crate::cli::connect::Connection;
use crate::cli::init::{self, Identity};
use crate::kcm::{Readiness, Scheduler};
use crate::runtime::{Credentials, Options, Runtime};

/// How long a provider pretends to build a cluster.
const BUILD: Duration = Duration::from_secs(2);

/// A controller to be run, and what it is called.
pub(super) type Controller = (String, Runtime);

/// One set-up under way.
pub(super) struct Setup<'a> {
    site: &'a Site,
    screen: &'a Screen,
    controllers: mpsc::Sender<Controller>,
    /// The bindings that tenants may apply by now, by export.
    bindings: watch::Sender<BTreeMap<String, Value>>,
    provider: OnceLock<LogicalCluster>,
}

impl<'a> Setup<'a> {
    /// Sends every controller to be run into `controllers`.
    pub(super) fn new(site: &'a Site, screen: &'a Screen, controllers: mpsc::Sender<Controller>) -> Self {
        Self { site, screen, controllers, bindings: watch::Sender::default(), provider: OnceLock::new() }
    }

    /// The logical cluster of the provider workspace, once it is there.
    pub(super) fn provider(&self) -> Option<&LogicalCluster> {
        self.provider.get()
    }

    /// Makes everything that the scenario names. Returns the tenants' workspaces in its order.
    pub(super) async fn run(&self) -> anyhow::Result<Vec<LogicalCluster>> {
        let tenants = try_join_all(scenario::TENANTS.iter().map(|tenant| self.tenant(tenant)));
        tokio::try_join!(self.platform(), tenants).map(|((), workspaces)| workspaces)
    }

    async fn platform(&self) -> anyhow::Result<()> {
        let making = self.site.workspace(scenario::PROVIDER_WORKSPACE);
        let workspace = self.screen.step("root:provider: make the workspace", "3 to 10 s", making).await?;
        let connection = self.site.connection().await?;
        // Tenants wait for the export alone, and a real kcp takes longest to serve what they bind: it comes before all else that `init` makes.
        let work = init::upsert_exports(&connection.client);
        self.screen.step("root:provider: the export", "1 to 3 s", work).await?;
        // Only ever set here.
        let _ = self.provider.set(workspace.clone());
        self.offer(&connection, export::EXPORT).await?;
        let catalog = async {
            let client = self.site.inside(&workspace)?;
            try_join_all(scenario::catalog().iter().map(|object| site::put(&client, object))).await
        };
        tokio::try_join!(self.manager(&connection), catalog, self.doors(&connection))?;
        Ok(())
    }

    async fn manager(&self, connection: &Connection) -> anyhow::Result<()> {
        let work = self.site.init(connection, None);
        let identity = self.screen.step("root:provider: the catalog's kinds, roles, the manager's identity", "3 to 10 s", work).await?;
        let runtime = Runtime::new(self.options(connection, &identity).await?).serve(Scheduler::new).serve(Readiness::new);
        self.start("the manager", runtime).await
    }

    /// One after the other: both doors are written into the one workspace type.
    async fn doors(&self, connection: &Connection) -> anyhow::Result<()> {
        for name in scenario::PROVIDERS {
            let work = self.site.init(connection, Some(name));
            let identity = self.screen.step(&format!("root:provider: a door for provider {name}"), "1 to 3 s", work).await?;
            self.offer(connection, &identity.export).await?;
            let runtime = Runtime::new(self.options(connection, &identity).await?).serve(|inputs| Provider::new(inputs, name, BUILD));
            self.start(&format!("provider {name}"), runtime).await?;
        }
        Ok(())
    }

    async fn options(&self, connection: &Connection, identity: &Identity) -> anyhow::Result<Options> {
        let credentials = Credentials::File(self.site.issue(connection, identity).await?);
        let options = Options::new(credentials, identity.export.as_str()).with_workspace(connection.path.as_str());
        Ok(Options { requests: self.site.requests.unwrap_or(options.requests), ..options })
    }

    async fn start(&self, name: &str, runtime: Runtime) -> anyhow::Result<()> {
        self.controllers.send((name.to_owned(), runtime)).await.ok().context("nobody runs controllers any more")?;
        self.screen.say(&format!("{name} runs, as an identity of its own that is no administrator"));
        Ok(())
    }

    /// Lets tenants bind an export from now on.
    async fn offer(&self, connection: &Connection, export: &str) -> anyhow::Result<()> {
        let claims = self.site.claims(connection, export).await?;
        let binding = binding::binding(&connection.path, export, &claims);
        self.bindings.send_modify(|offered| drop(offered.insert(export.to_owned(), binding)));
        Ok(())
    }

    async fn offered(&self, export: &str) -> anyhow::Result<Value> {
        let mut bindings = self.bindings.subscribe();
        let offered = bindings.wait_for(|offered| offered.contains_key(export)).await?;
        offered.get(export).cloned().context("it was offered a moment ago")
    }

    async fn tenant(&self, tenant: &Tenant) -> anyhow::Result<LogicalCluster> {
        let what = format!("root:{}: make the workspace", tenant.name);
        let workspace = self.screen.step(&what, "3 to 10 s", self.site.workspace(tenant.name)).await?;
        let client = self.site.inside(&workspace)?;
        let main = async {
            self.site.bind(&client, &self.offered(export::EXPORT).await?).await?;
            self.order(tenant, &workspace).await
        };
        let doors = try_join_all(scenario::PROVIDERS.iter().map(async |provider| {
            let export = Door::new(provider, "").map_err(anyhow::Error::msg)?.export_name();
            self.site.bind(&client, &self.offered(&export).await?).await
        }));
        tokio::try_join!(main, doors)?;
        Ok(workspace)
    }

    async fn order(&self, tenant: &Tenant, workspace: &LogicalCluster) -> anyhow::Result<()> {
        let client = self.site.inside(workspace)?;
        let what = format!("root:{}: order {}", tenant.name, tenant.clusters.iter().map(|order| order.name).collect::<Vec<_>>().join(", "));
        let work = async {
            // A cluster is scheduled at once, with the providers that are there by then.
            for name in tenant.providers {
                site::put(&client, &scenario::provider(name)).await?;
            }
            let clusters: Vec<Value> = tenant.clusters.iter().map(scenario::cluster).collect();
            try_join_all(clusters.iter().map(|cluster| site::put(&client, cluster))).await.map(drop)
        };
        self.screen.step(&what, "2 to 10 s, until what was bound is served", work).await
    }
}
