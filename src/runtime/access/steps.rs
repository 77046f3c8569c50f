//! Pure: what is made in a workspace for an account, and what is made of the answers.
//!
//! An account is a `ServiceAccount` with one `ClusterRole` of the same name. Where nobody may ask for its tokens from outside, it asks itself,
//! with the token of a Secret that kcp fills for it: the one chain of claims alone that works on kcp v0.28.

use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::meta::KindRef;
use crate::api::names::{LogicalCluster, ObjectName};
use crate::reconciler::AccessRule;

/// Where accounts are: kcp makes this namespace in every workspace.
pub(crate) const NAMESPACE: &str = "default";
/// How long a token is asked for.
pub(crate) const LIFE: Duration = Duration::from_hours(1);
const MANAGED: (&str, &str) = ("app.kubernetes.io/managed-by", "kcp-provider-runtime");
const RBAC: &str = "rbac.authorization.k8s.io";

const ACCOUNT: KindRef = KindRef { group: "", version: "v1", kind: "ServiceAccount", plural: "serviceaccounts", namespaced: true };
const SECRET: KindRef = KindRef { group: "", version: "v1", kind: "Secret", plural: "secrets", namespaced: true };
const ROLE: KindRef = KindRef { group: RBAC, version: "v1", kind: "ClusterRole", plural: "clusterroles", namespaced: false };
const BINDING: KindRef =
    KindRef { group: RBAC, version: "v1", kind: "ClusterRoleBinding", plural: "clusterrolebindings", namespaced: false };

/// Who is to be let in, and what for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    /// The name of all of its objects.
    pub(crate) name: String,
    pub(crate) rules: Vec<AccessRule>,
}

/// One of the objects of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Account,
    Role,
    Binding,
    Secret,
}

/// In the order in which they are made: nobody has rights before the role says which. They go in the opposite order.
pub(crate) const PARTS: [Part; 3] = [Part::Account, Part::Role, Part::Binding];
/// The order in which they go: first the token, then the rights, then the account.
pub(crate) const ENDS: [Part; 4] = [Part::Secret, Part::Binding, Part::Role, Part::Account];

impl Part {
    pub(crate) const fn kind(self) -> KindRef {
        match self {
            Self::Account => ACCOUNT,
            Self::Role => ROLE,
            Self::Binding => BINDING,
            Self::Secret => SECRET,
        }
    }
}

impl Account {
    /// The account of a controller, whatever its export.
    pub(crate) fn of(controller: &str, rules: Vec<AccessRule>) -> Self {
        Self { name: format!("kcp-provider-{controller}"), rules }
    }

    /// The same of the controller behind an export: two providers may call their controllers alike, and one workspace may bind both.
    pub(crate) fn behind(&self, export: &str) -> Self {
        Self { name: format!("{}.{export}", self.name), rules: self.rules.clone() }
    }

    pub(crate) fn object(&self, part: Part) -> ObjectName {
        if part.kind().namespaced {
            return ObjectName::namespaced(NAMESPACE, self.name.as_str());
        }
        ObjectName::cluster_scoped(self.name.as_str())
    }

    /// The object as it is to be.
    pub(crate) fn body(&self, part: Part) -> Value {
        let kind = part.kind();
        let mut metadata = json!({"name": self.name, "labels": {MANAGED.0: MANAGED.1}});
        if kind.namespaced {
            metadata["namespace"] = NAMESPACE.into();
        }
        let mut body = json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": metadata});
        match part {
            Part::Account => {}
            Part::Role => {
                let own =
                    json!({"apiGroups": [""], "resources": ["serviceaccounts/token"], "resourceNames": [self.name], "verbs": ["create"]});
                let rules = self.rules.iter().map(|rule| json!(rule));
                body["rules"] = rules.chain([own]).collect();
            }
            Part::Binding => {
                body["roleRef"] = json!({"apiGroup": RBAC, "kind": "ClusterRole", "name": self.name});
                body["subjects"] = json!([{"kind": "ServiceAccount", "namespace": NAMESPACE, "name": self.name}]);
            }
            Part::Secret => {
                body["type"] = "kubernetes.io/service-account-token".into();
                body["metadata"]["annotations"] = json!({"kubernetes.io/service-account.name": self.name});
            }
        }
        body
    }

    /// The live role with these rights, where it has others.
    pub(crate) fn mended(&self, mut live: Value) -> Option<Value> {
        let rules = self.body(Part::Role)["rules"].take();
        (live["rules"] != rules).then(|| {
            live["rules"] = rules;
            live
        })
    }
}

/// What is posted for a token.
pub(crate) fn request() -> Value {
    json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": LIFE.as_secs()}})
}

/// A token and for how long it was given.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) text: SecretString,
    pub(crate) life: Duration,
}

/// Reads the answer to a `TokenRequest`. Only the server's own times are compared: its clock may be another one than ours.
pub(crate) fn token(answer: &[u8]) -> Result<Token, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Answer {
        metadata: Metadata,
        status: Status,
    }
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Metadata {
        creation_timestamp: Option<jiff::Timestamp>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Status {
        token: SecretString,
        expiration_timestamp: jiff::Timestamp,
    }
    // The error must not show what was read.
    let Answer { metadata, status } = serde_json::from_slice(answer).map_err(|_| "the server's answer holds no token".to_owned())?;
    let given = metadata.creation_timestamp.map(|from| status.expiration_timestamp.duration_since(from));
    let life = given.and_then(|life| Duration::try_from(life).ok()).filter(|life| !life.is_zero());
    Ok(Token { text: status.token, life: life.unwrap_or(LIFE) })
}

/// The token that kcp has put into a Secret; `None` while it has not.
pub(crate) fn filled(secret: &Value, decode: impl Fn(&str) -> Option<Vec<u8>>) -> Option<SecretString> {
    let text = secret.pointer("/data/token")?.as_str()?;
    String::from_utf8(decode(text)?).ok().filter(|text| !text.is_empty()).map(SecretString::from)
}

/// When a token is replaced: at four fifths of its time, and up to a twentieth of it later, so that workspaces that came at once do not stay
/// together. The spread of a workspace is always the same one.
pub(crate) fn refresh_after(life: Duration, workspace: &LogicalCluster) -> Duration {
    // FNV-1a: any hash that is the same everywhere would do.
    let hash = workspace.as_str().bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let share = f64::from(hash) / f64::from(u32::MAX);
    life.mul_f64(0.8 + 0.05 * share)
}

/// The text of a kubeconfig. `server` leads to the workspace; `authority` is the PEM in base64, where there is one.
pub(crate) fn kubeconfig(server: &str, authority: Option<&str>, name: &str, token: &SecretString) -> SecretString {
    let authority = authority.map(|authority| format!("\n    certificate-authority-data: {authority}")).unwrap_or_default();
    let server = json!(server);
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: workspace\nclusters:\n- name: workspace\n  cluster:\n    server: {server}{authority}\nusers:\n\
         - name: {name}\n  user:\n    token: {token}\ncontexts:\n- name: workspace\n  context:\n    cluster: workspace\n    user: {name}\n    \
         namespace: {NAMESPACE}\n",
        token = token.expose_secret()
    )
    .into()
}

/// Whether bindings grant a verb on a kind, by `status.appliedPermissionClaims`: lists as JSON, one after the other.
pub(crate) fn is_granted(claims: &str, kind: KindRef, verb: &str) -> bool {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Claim {
        group: String,
        resource: String,
        verbs: Vec<String>,
    }
    let lists = serde_json::Deserializer::from_str(claims).into_iter::<Option<Vec<Claim>>>();
    let all = lists.filter_map(Result::ok).flatten().flatten();
    let mut of_kind = all.filter(|claim| (claim.group.as_str(), claim.resource.as_str()) == (kind.group, kind.plural));
    of_kind.any(|claim| claim.verbs.iter().any(|granted| granted == verb || granted == "*"))
}

/// What the missing claim on a kind is, for whoever can accept it.
pub(crate) fn missing_claim(kind: KindRef, verb: &str) -> String {
    format!(
        "the APIBinding of this workspace does not accept the permission claim on {kind} ({verb}), which access for the provider's worker needs"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account() -> Account {
        Account::of("painter", vec![AccessRule::new("", &["configmaps"], &["get", "list"])])
    }

    #[test]
    fn an_account_may_do_what_was_declared_and_ask_for_its_own_tokens() {
        let role = account().body(Part::Role);
        let own = json!({"apiGroups": [""], "resources": ["serviceaccounts/token"], "resourceNames": ["kcp-provider-painter"], "verbs": ["create"]});
        assert_eq!(role["rules"], json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}, own]));
        assert_eq!(account().mended(role.clone()), None);
        let mut narrower = role.clone();
        narrower["rules"].as_array_mut().unwrap().remove(0);
        narrower["metadata"]["resourceVersion"] = "7".into();
        let mended = account().mended(narrower).unwrap();
        assert_eq!((&mended["rules"], &mended["metadata"]["resourceVersion"]), (&role["rules"], &json!("7")));
    }

    #[test]
    #[should_panic(expected = "never *")]
    fn rights_to_everything_are_refused() {
        let _ = AccessRule::new("", &["*"], &["get"]);
    }

    #[test]
    fn a_token_lasts_as_long_as_the_server_gave_it_by_its_own_clock_and_is_never_shown() {
        let answer = json!({"metadata": {"creationTimestamp": "1990-01-01T00:00:00Z"},
            "status": {"token": "canary", "expirationTimestamp": "1990-01-01T00:10:00Z"}});
        let token = token(answer.to_string().as_bytes()).unwrap();
        assert_eq!(token.life, Duration::from_mins(10));
        assert!(!format!("{token:?}").contains("canary"));
        assert_eq!(super::token(br#"{"status": {"token": "canary"}}"#).unwrap_err(), "the server's answer holds no token");
    }

    #[test]
    fn tokens_are_replaced_at_four_fifths_and_not_all_at_once() {
        let at = |name: &str| refresh_after(LIFE, &LogicalCluster::new(name));
        let all: Vec<Duration> = (0..100).map(|number| at(&format!("w{number}"))).collect();
        assert!(all.iter().all(|at| (2880..=3060).contains(&at.as_secs())), "{all:?}");
        assert!(all.iter().max().unwrap().saturating_sub(*all.iter().min().unwrap()) > Duration::from_mins(1));
        assert_eq!(at("w1"), at("w1"));
    }

    #[test]
    fn a_claim_is_granted_word_by_word() {
        let claims = r#"null[{"group": "", "resource": "secrets", "verbs": ["get"], "state": "Accepted"}, {"resource": "serviceaccounts", "verbs": ["*"]}][]"#;
        assert!(is_granted(claims, SECRET, "get") && is_granted(claims, ACCOUNT, "delete"));
        assert!(!is_granted(claims, SECRET, "create") && !is_granted(claims, ROLE, "get") && !is_granted("", SECRET, "get"));
    }

    #[test]
    fn a_kubeconfig_is_what_clients_read() {
        let text = kubeconfig("https://kcp:6443/clusters/1abc", Some("Q0E="), "kcp-provider-painter", &"tok".to_owned().into());
        let read = kube::config::Kubeconfig::from_yaml(text.expose_secret()).unwrap();
        let cluster = read.clusters[0].cluster.as_ref().unwrap();
        assert_eq!(cluster.server.as_deref(), Some("https://kcp:6443/clusters/1abc"));
        assert_eq!(cluster.certificate_authority_data.as_deref(), Some("Q0E="));
        assert_eq!(read.auth_infos[0].auth_info.as_ref().unwrap().token.as_ref().unwrap().expose_secret(), "tok");
        assert_eq!(read.current_context.as_deref(), Some("workspace"));
    }
}
