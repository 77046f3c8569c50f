//! Pure: the administrator's kubeconfig with one context for each workspace.

use kube::config::{Context, Kubeconfig, NamedCluster, NamedContext};

/// The current user of `admin`, with a context `name` for each `(name, workspace path)`; the first is the current one.
///
/// `base` is the server without a workspace.
pub(super) fn contexts(admin: &Kubeconfig, base: &str, workspaces: &[(String, String)]) -> Option<Kubeconfig> {
    let current = admin.current_context.as_ref()?;
    let context = admin.contexts.iter().find(|named| &named.name == current)?.context.as_ref()?;
    let cluster = admin.clusters.iter().find(|named| named.name == context.cluster)?;
    let user = admin.auth_infos.iter().find(|named| Some(&named.name) == context.user.as_ref())?;
    let mut kubeconfig = Kubeconfig {
        api_version: Some("v1".into()),
        kind: Some("Config".into()),
        auth_infos: vec![user.clone()],
        current_context: workspaces.first().map(|(name, _)| name.clone()),
        ..Kubeconfig::default()
    };
    for (name, path) in workspaces {
        let mut named = NamedCluster { name: name.clone(), ..cluster.clone() };
        if let Some(cluster) = &mut named.cluster {
            cluster.server = Some(format!("{base}/clusters/{path}"));
        }
        kubeconfig.clusters.push(named);
        let context = Context { cluster: name.clone(), user: Some(user.name.clone()), ..Context::default() };
        kubeconfig.contexts.push(NamedContext { name: name.clone(), context: Some(context), ..NamedContext::default() });
    }
    Some(kubeconfig)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_workspace_is_a_context_of_the_current_user_alone() {
        let admin = Kubeconfig::from_yaml(
            "{current-context: root, contexts: [{name: base, context: {cluster: b, user: other}}, {name: root, context: {cluster: r, user: admin}}], \
             clusters: [{name: b, cluster: {server: 'https://b'}}, {name: r, cluster: {server: 'https://r/clusters/root', \
             certificate-authority-data: Y2E=}}], users: [{name: other, user: {token: x}}, {name: admin, user: {token: y}}]}",
        )
        .unwrap();
        let workspaces = [("acme".into(), "root:acme".into()), ("provider".into(), "root:provider".into())];
        let made = contexts(&admin, "https://r", &workspaces).unwrap();
        assert_eq!(made.current_context.as_deref(), Some("acme"));
        let servers: Vec<_> = made.clusters.iter().map(|named| named.cluster.as_ref().unwrap().server.as_deref().unwrap()).collect();
        assert_eq!(servers, ["https://r/clusters/root:acme", "https://r/clusters/root:provider"]);
        assert!(made.clusters.iter().all(|named| named.cluster.as_ref().unwrap().certificate_authority_data.as_deref() == Some("Y2E=")));
        let users: Vec<_> = made.auth_infos.iter().map(|user| user.name.as_str()).collect();
        assert_eq!(users, ["admin"]);
        assert!(contexts(&Kubeconfig::default(), "https://r", &workspaces).is_none());
    }
}
