//! A kubeconfig for an identity of its own in the provider workspace: a `ServiceAccount`'s token, never an administrator's credentials.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::ByteString;
use kube::config::{AuthInfo, Cluster, Context, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext};
use secrecy::SecretString;
use serde_json::{Value, json};

use super::plan::{Desired, Ownership};
use super::upsert::upsert;
use crate::cli::connect::Connection;
use crate::cli::kcp_admin::{Resource, write_private};

/// kcp fills a token in less than a second; a busy machine gets longer.
const TOKEN_WITHIN: Duration = Duration::from_mins(1);

/// A `ServiceAccount`, and the export that it is there for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The account's namespace.
    pub namespace: String,
    /// The account's name.
    pub account: String,
    /// The export whose endpoint slice it may read: a new identity counts as usable once it can.
    pub export: String,
}

/// Makes the identity's token Secret if there is none, waits until the identity may read its endpoint slice, and writes its kubeconfig to `file`
/// with mode 0600. Waits at most two minutes. The token stands in the file and nowhere else.
pub async fn write_kubeconfig(connection: &Connection, identity: &Identity, file: &Path) -> anyhow::Result<()> {
    let Connection { client, .. } = connection;
    let Identity { namespace, account, export } = identity;
    let name = format!("{account}-token");
    let secret = Desired { object: token_secret(namespace, &name, account), ownership: Ownership::Kept };
    upsert(client, &[secret], false).await?;
    let secrets = Resource::new("", "v1", "secrets");
    let has_token = |secret: &Value| secret["data"]["token"].as_str().is_some_and(|token| !token.is_empty());
    let secret = client.wait_for(&secrets, namespace, &name, "to hold a token", TOKEN_WITHIN, has_token).await?;
    let token: ByteString = serde_json::from_value(secret["data"]["token"].clone()).context("the token is not base64")?;
    let token = SecretString::from(String::from_utf8(token.0).context("the token is not text")?);
    let slices = Resource::new("apis.kcp.io", "v1alpha1", "apiexportendpointslices");
    let user = client.in_workspace(&connection.path)?.as_bearer(token.clone())?;
    user.wait_for(&slices, "", export, "to be readable for the new identity", TOKEN_WITHIN, |_| true).await?;
    let cluster = inlined(&connection.cluster, user.url())?;
    // One line for each value, however long, as kubectl writes it.
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    let text = serde_saphyr::to_string_with_options(&kubeconfig(&format!("{namespace}-{account}"), cluster, token), options)?;
    write_private(file, &text).with_context(|| format!("cannot write {}", file.display()))
}

fn token_secret(namespace: &str, name: &str, account: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/service-account-token",
        "metadata": { "namespace": namespace, "name": name, "annotations": { "kubernetes.io/service-account.name": account } },
    })
}

/// The cluster at another URL, its CA inline: the file is to be carried elsewhere.
fn inlined(cluster: &Cluster, server: String) -> anyhow::Result<Cluster> {
    let mut cluster = Cluster { server: Some(server), ..cluster.clone() };
    if let (None, Some(file)) = (&cluster.certificate_authority_data, &cluster.certificate_authority) {
        let pem = std::fs::read(file).with_context(|| format!("cannot read the CA {file}"))?;
        cluster.certificate_authority_data = serde_json::to_value(ByteString(pem))?.as_str().map(ToOwned::to_owned);
    }
    cluster.certificate_authority = None;
    Ok(cluster)
}

fn kubeconfig(name: &str, cluster: Cluster, token: SecretString) -> Kubeconfig {
    let context = Context { cluster: "kcp".into(), user: Some(name.into()), ..Context::default() };
    Kubeconfig {
        api_version: Some("v1".into()),
        kind: Some("Config".into()),
        clusters: vec![NamedCluster { name: "kcp".into(), cluster: Some(cluster), ..NamedCluster::default() }],
        auth_infos: vec![NamedAuthInfo {
            name: name.into(),
            auth_info: Some(AuthInfo { token: Some(token), ..AuthInfo::default() }),
            ..NamedAuthInfo::default()
        }],
        contexts: vec![NamedContext { name: name.into(), context: Some(context), ..NamedContext::default() }],
        current_context: Some(name.into()),
        ..Kubeconfig::default()
    }
}
