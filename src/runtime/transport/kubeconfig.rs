//! A way to a server from the text of a kubeconfig that somebody else wrote: what it may ask of this process, and what is said of it.
//!
//! No error here quotes the text, or what a library says of it, since either may show a credential.

use std::collections::BTreeMap;

use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::{Mutex, Semaphore};

use super::{Credentials, Transport, Ways, Wire, service, with_token, without_proxy};

impl Transport {
    /// Connects to nothing yet. A server that `wires` name is reached by its wire. After a 401 nothing is read again: whoever handed the text in
    /// hands in another one.
    pub(crate) async fn of_kubeconfig(text: &SecretString, requests: usize, wires: &BTreeMap<String, Wire>) -> Result<Self, String> {
        let kubeconfig = Kubeconfig::from_yaml(text.expose_secret()).map_err(|_| "it is no kubeconfig".to_owned())?;
        without_proxy(&kubeconfig)?;
        self_contained(&kubeconfig)?;
        let unusable = || "its current context leads to no server and user whose certificates can be used".to_owned();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.map_err(|_| unusable())?;
        let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let wire =
            wires.iter().find(|(base, _)| server.strip_prefix(base.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')));
        let service = match (wire, &config.auth_info.token) {
            (Some((_, wire)), Some(token)) => with_token(wire.0.clone(), token),
            (Some((_, wire)), None) => Ok(wire.0.clone()),
            (None, _) => service(&config),
        };
        let service = service.map_err(|_| "its certificates or its credentials cannot be used".to_owned())?;
        Ok(Self {
            // With the credentials in it, there is nothing to be read again.
            credentials: Credentials::Service { wire: Wire(service.clone()), server: server.clone(), token: SecretString::default() },
            ways: arc_swap::ArcSwap::from_pointee(Ways { own: service.clone(), bare: service, authority: None }),
            last_reload: Mutex::new(None),
            permits: Semaphore::new(requests.clamp(1, Semaphore::MAX_PERMITS)),
            server,
        })
    }
}

/// Refuses what would run a program of this machine, or read its files: the text comes from a Secret, whose author has no say here.
fn self_contained(kubeconfig: &Kubeconfig) -> Result<(), String> {
    let current = kubeconfig.contexts.iter().find(|context| Some(&context.name) == kubeconfig.current_context.as_ref());
    let Some(context) = current.and_then(|named| named.context.as_ref()) else { return Err("it has no current context".into()) };
    let user =
        kubeconfig.auth_infos.iter().find(|user| Some(&user.name) == context.user.as_ref()).and_then(|named| named.auth_info.as_ref());
    let cluster = kubeconfig.clusters.iter().find(|cluster| cluster.name == context.cluster).and_then(|named| named.cluster.as_ref());
    let runs = user.is_some_and(|user| user.exec.is_some() || user.auth_provider.is_some());
    let reads = user.is_some_and(|user| user.token_file.is_some() || user.client_certificate.is_some() || user.client_key.is_some())
        || cluster.is_some_and(|cluster| cluster.certificate_authority.is_some());
    match (runs, reads) {
        (true, _) => {
            Err("its user is authenticated by a program (exec, auth-provider), which is not supported: use a token or a certificate".into())
        }
        (_, true) => Err("it names files, which are not here: put what they hold into it (…-data, token)".into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(cluster: &str, user: &str) -> SecretString {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: here\ncontexts: [{{name: here, context: {{cluster: a, user: me}}}}]\n\
             clusters: [{{name: a, cluster: {{server: 'https://a.invalid:1/clusters/x'{cluster}}}}}]\nusers: [{{name: me, user: {{{user}}}}}]\n"
        )
        .into()
    }

    async fn problem(text: SecretString) -> String {
        Transport::of_kubeconfig(&text, 1, &BTreeMap::new()).await.err().expect("it is refused")
    }

    #[tokio::test]
    async fn a_kubeconfig_leads_to_its_server_and_runs_and_reads_nothing_here() {
        let good = Transport::of_kubeconfig(&text("", "token: canary"), 1, &BTreeMap::new()).await.unwrap();
        assert_eq!(good.server(), "https://a.invalid:1/clusters/x");
        for (text, says) in [
            (text(", proxy-url: 'http://canary@proxy'", "token: canary"), "proxy-url"),
            (text("", "exec: {apiVersion: client.authentication.k8s.io/v1, command: canary}"), "a program"),
            (text("", "auth-provider: {name: canary, config: {}}"), "a program"),
            (text("", "tokenFile: /canary"), "names files"),
            (text("", "client-certificate: /canary"), "names files"),
            (text(", certificate-authority: /canary", "token: canary"), "names files"),
            (text(", certificate-authority-data: canary", "token: canary"), "whose certificates"),
            ("canary: [".to_owned().into(), "no kubeconfig"),
            ("{}".to_owned().into(), "no current context"),
        ] {
            let said = problem(text).await;
            assert!(said.contains(says) && !said.contains("canary"), "{said} should say {says}");
        }
    }
}
