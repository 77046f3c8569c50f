//! A kubeconfig for the embedded control plane, like kcp's `admin.kubeconfig`.
//!
//! Pure: from names to text. JSON is YAML, and every client reads both.

use serde_json::{Value, json};

/// A kubeconfig. `url` is the server's base; `users` are names with bearer tokens; `contexts` are (name, workspace path, user), where an
/// empty path is the server itself. The first context is the current one.
pub fn kubeconfig(url: &str, ca_pem: &str, users: &[(&str, &str)], contexts: &[(&str, &str, &str)]) -> String {
    let authority = super::base64(ca_pem.as_bytes());
    let server = |path: &str| if path.is_empty() { url.to_owned() } else { format!("{url}/clusters/{path}") };
    let cluster = |(name, path, _): &(&str, &str, &str)| {
        let cluster = json!({"server": server(path), "certificate-authority-data": authority});
        json!({"name": name, "cluster": cluster})
    };
    let context = |(name, _, user): &(&str, &str, &str)| json!({"name": name, "context": {"cluster": name, "user": user}});
    let user = |(name, token): &(&str, &str)| json!({"name": name, "user": {"token": token}});
    let all = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": contexts.first().map_or("", |(name, _, _)| *name),
        "clusters": contexts.iter().map(cluster).collect::<Vec<Value>>(),
        "contexts": contexts.iter().map(context).collect::<Vec<Value>>(),
        "users": users.iter().map(user).collect::<Vec<Value>>(),
    });
    format!("{all:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_leads_to_its_workspace() {
        let contexts = [("root", "root", "admin"), ("base", "", "admin")];
        let text = kubeconfig("https://127.0.0.1:1", "PEM", &[("admin", "t")], &contexts);
        let config: kube::config::Kubeconfig = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(config.current_context.as_deref(), Some("root"));
        let server = |at: usize| config.clusters[at].cluster.as_ref().unwrap().server.as_deref();
        assert_eq!((server(0), server(1)), (Some("https://127.0.0.1:1/clusters/root"), Some("https://127.0.0.1:1")));
        assert_eq!(config.clusters[0].cluster.as_ref().unwrap().certificate_authority_data.as_deref(), Some("UEVN"));
    }
}
