//! What a request asks for: a door, a verb, a kind, an object.
//!
//! Pure: from method, URL and headers to a value. The rules are those of `k8s.io/apiserver/pkg/endpoints/request` and of kcp's path handling.

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, Method};
use secrecy::SecretString;

/// Which way a request came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    /// `/clusters/<path or logical cluster>/…`; `*` is written so.
    Direct(String),
    /// `/services/apiexport/<logical cluster>/<export>/clusters/<logical cluster or *>/…`.
    Virtual {
        /// The logical cluster of the export, as written.
        provider: String,
        /// The export's name.
        export: String,
        /// The logical cluster, or `*`.
        workspace: String,
    },
    /// A virtual workspace's URL that names no logical cluster.
    Broken,
    /// Neither: the server itself, or whatever the token says.
    Server,
}

/// One kind, and maybe one object of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) resource: String,
    /// `None` is every namespace, or a kind without.
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    /// `status`, `token`, or `""`.
    pub(crate) subresource: String,
}

/// What is behind the door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// `/api`.
    Versions,
    /// `/apis`.
    Groups,
    /// `/apis/<group>`.
    Group(String),
    /// `/api/v1`, `/apis/<group>/<version>`.
    Resources(String, String),
    /// Objects.
    Objects(Target),
    /// Anything else, such as `/version`.
    Other(String),
}

/// The query, parsed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(query: &str) -> Self {
        Self(form_urlencoded(query))
    }

    /// The first value of a parameter; `None` where it is absent or empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Whether a parameter is true, as Go reads it: `1` and `true`, and the empty value of one that is there.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.0.iter().find(|(key, _)| key == name).is_some_and(|(_, value)| !matches!(value.to_lowercase().as_str(), "0" | "false"))
    }

    /// Whether the parameter is there at all.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key == name)
    }
}

/// A request in full.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) door: Door,
    pub(crate) what: What,
    pub(crate) method: Method,
    pub(crate) query: Query,
    pub(crate) accept: String,
    pub(crate) content_type: String,
    pub(crate) bearer: Option<SecretString>,
    /// `Impersonate-…` headers.
    pub(crate) impersonation: Vec<(String, String)>,
    /// Whoever writes without naming a field manager: the user agent up to the first slash.
    pub(crate) agent: String,
    pub(crate) body: Bytes,
    /// The whole path, as sent.
    pub(crate) raw_path: String,
    /// The shard that was asked: the prefix `/shards/<number>` names another than the first.
    pub(crate) shard: usize,
    /// How often the shard had moved when the URL was valid: that many zeros stand before its number. `None` without a prefix.
    pub(crate) moves: Option<usize>,
}

impl Request {
    pub(crate) fn parse(method: Method, uri: &http::Uri, headers: &HeaderMap, body: Bytes) -> Self {
        let text = |name| headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok()).unwrap_or_default().to_owned();
        let (shard, moves, path) = shard(uri.path());
        let (door, rest) = door(path);
        let impersonation = headers.iter().filter(|(name, _)| name.as_str().starts_with("impersonate-"));
        let bearer = text(AUTHORIZATION);
        Self {
            door,
            what: what(rest),
            method,
            query: Query::parse(uri.query().unwrap_or_default()),
            accept: text(ACCEPT),
            content_type: text(CONTENT_TYPE).split(';').next().unwrap_or_default().trim().to_owned(),
            bearer: bearer.strip_prefix("Bearer ").map(SecretString::from),
            impersonation: impersonation.map(|(name, value)| (name.to_string(), value.to_str().unwrap_or_default().to_owned())).collect(),
            agent: text(USER_AGENT).split('/').next().unwrap_or_default().to_owned(),
            body,
            raw_path: uri.path().to_owned(),
            shard,
            moves,
        }
    }

    /// The verb that access rules know.
    pub(crate) fn verb(&self) -> &'static str {
        let named = matches!(&self.what, What::Objects(Target { name: Some(_), .. }));
        match self.method.as_str() {
            "GET" | "HEAD" if !matches!(self.what, What::Objects(_)) => "get",
            "GET" | "HEAD" if self.query.is("watch") => "watch",
            "GET" | "HEAD" if named => "get",
            "GET" | "HEAD" => "list",
            "POST" => "create",
            "PUT" => "update",
            "PATCH" => "patch",
            "DELETE" if named => "delete",
            "DELETE" => "deletecollection",
            _ => "",
        }
    }

    /// Who writes, for managed fields.
    pub(crate) fn manager(&self) -> &str {
        self.query.get("fieldManager").unwrap_or(if self.agent.is_empty() { "unknown" } else { &self.agent })
    }

    /// The path behind the door, for answers.
    pub(crate) fn path(&self) -> String {
        match &self.what {
            What::Versions => "/api".into(),
            What::Groups => "/apis".into(),
            What::Group(group) => format!("/apis/{group}"),
            What::Resources(group, version) if group.is_empty() => format!("/api/{version}"),
            What::Resources(group, version) => format!("/apis/{group}/{version}"),
            What::Other(path) => path.clone(),
            What::Objects(_) => String::new(),
        }
    }
}

fn shard(path: &str) -> (usize, Option<usize>, &str) {
    let numbered = path.strip_prefix("/shards/").map(head).and_then(|(number, rest)| {
        let shard: usize = number.parse().ok()?;
        Some((shard, number.len().checked_sub(shard.to_string().len()), rest))
    });
    numbered.unwrap_or((0, None, path))
}

fn door(path: &str) -> (Door, &str) {
    if let Some(rest) = path.strip_prefix("/clusters/") {
        let (workspace, rest) = head(rest);
        return (Door::Direct(workspace.to_owned()), rest);
    }
    let Some(rest) = path.strip_prefix("/services/apiexport/") else { return (Door::Server, path) };
    let (provider, rest) = head(rest);
    let (export, rest) = head(rest.trim_start_matches('/'));
    let Some(rest) = rest.strip_prefix("/clusters/") else { return (Door::Broken, "/") };
    let (workspace, rest) = head(rest);
    if provider.is_empty() || export.is_empty() || workspace.is_empty() {
        return (Door::Broken, "/");
    }
    (Door::Virtual { provider: provider.to_owned(), export: export.to_owned(), workspace: workspace.to_owned() }, rest)
}

/// The first part of a path, and the rest with its slash.
fn head(path: &str) -> (&str, &str) {
    path.find('/').map_or((path, ""), |at| path.split_at(at))
}

fn what(path: &str) -> What {
    let decoded: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(decode).collect();
    let parts: Vec<&str> = decoded.iter().map(String::as_str).collect();
    match parts.as_slice() {
        ["api"] => What::Versions,
        ["apis"] => What::Groups,
        ["api", version] => What::Resources(String::new(), (*version).to_owned()),
        ["apis", group] => What::Group((*group).to_owned()),
        ["apis", group, version] => What::Resources((*group).to_owned(), (*version).to_owned()),
        ["api", version, rest @ ..] => objects("", version, rest).map_or_else(|| What::Other(path.to_owned()), What::Objects),
        ["apis", group, version, rest @ ..] => objects(group, version, rest).map_or_else(|| What::Other(path.to_owned()), What::Objects),
        _ => What::Other(if path.is_empty() { "/".to_owned() } else { path.to_owned() }),
    }
}

fn objects(group: &str, version: &str, rest: &[&str]) -> Option<Target> {
    let target = |namespace: Option<&str>, resource: &str, name: Option<&str>, subresource: &str| Target {
        group: group.to_owned(),
        version: version.to_owned(),
        resource: resource.to_owned(),
        namespace: namespace.map(ToOwned::to_owned),
        name: name.map(ToOwned::to_owned),
        subresource: subresource.to_owned(),
    };
    Some(match *rest {
        [resource] => target(None, resource, None, ""),
        // Below a namespace are kinds; only these two are of the namespace itself.
        ["namespaces", name, subresource @ ("status" | "finalize")] => target(None, "namespaces", Some(name), subresource),
        ["namespaces", name] => target(None, "namespaces", Some(name), ""),
        ["namespaces", namespace, resource] => target(Some(namespace), resource, None, ""),
        ["namespaces", namespace, resource, name] => target(Some(namespace), resource, Some(name), ""),
        [resource, name] => target(None, resource, Some(name), ""),
        // What follows a subresource is not looked at.
        ["namespaces", namespace, resource, name, subresource, ..] => target(Some(namespace), resource, Some(name), subresource),
        [resource, name, subresource, ..] => target(None, resource, Some(name), subresource),
        _ => return None,
    })
}

/// `%2A` and `+` (a space in a query only).
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok()).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (bytes[at], hex) {
            (b'%', Some(byte)) => {
                out.push(byte);
                at += 3;
            }
            (byte, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn form_urlencoded(query: &str) -> Vec<(String, String)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let plain = |text: &str| decode(&text.replace('+', " "));
    pairs.map(|pair| pair.split_once('=').map_or_else(|| (plain(pair), String::new()), |(key, value)| (plain(key), plain(value)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(method: &str, url: &str) -> Request {
        Request::parse(method.parse().unwrap(), &url.parse().unwrap(), &HeaderMap::new(), Bytes::new())
    }

    #[test]
    fn a_door_is_told_from_the_path() {
        for (why, url, door) in [
            ("a path", "/clusters/root:a/api", Door::Direct("root:a".into())),
            ("all", "/clusters/*/api", Door::Direct("*".into())),
            (
                "an export's content",
                "/services/apiexport/1a/x.y/clusters/2b/api",
                Door::Virtual { provider: "1a".into(), export: "x.y".into(), workspace: "2b".into() },
            ),
            ("no logical cluster", "/services/apiexport/1a/x.y/api", Door::Broken),
            ("the server", "/version", Door::Server),
        ] {
            assert_eq!(parsed("GET", url).door, door, "{why}");
        }
    }

    #[test]
    fn a_target_and_its_verb_are_told_from_the_path() {
        for (method, url, verb, expected) in [
            ("GET", "/api/v1/namespaces/a/configmaps/b", "get", ("", "configmaps", Some("a"), Some("b"), "")),
            ("GET", "/api/v1/configmaps?limit=1", "list", ("", "configmaps", None, None, "")),
            ("GET", "/api/v1/configmaps?watch=true", "watch", ("", "configmaps", None, None, "")),
            ("GET", "/api/v1/configmaps?watch=0", "list", ("", "configmaps", None, None, "")),
            ("DELETE", "/api/v1/namespaces/a", "delete", ("", "namespaces", None, Some("a"), "")),
            ("PUT", "/api/v1/namespaces/a/finalize", "update", ("", "namespaces", None, Some("a"), "finalize")),
            ("POST", "/api/v1/namespaces/a/serviceaccounts/s/token", "create", ("", "serviceaccounts", Some("a"), Some("s"), "token")),
            ("DELETE", "/apis/x.y/v1/namespaces/a/toys", "deletecollection", ("x.y", "toys", Some("a"), None, "")),
            ("PATCH", "/apis/x.y/v1/toys/t/status", "patch", ("x.y", "toys", None, Some("t"), "status")),
        ] {
            let request = parsed(method, &format!("/clusters/w{url}"));
            let What::Objects(target) = &request.what else { panic!("{url}: {:?}", request.what) };
            let (group, resource, namespace, name, subresource) = expected;
            assert_eq!(request.verb(), verb, "{url}");
            let found = (target.group.as_str(), target.resource.as_str(), target.namespace.as_deref(), target.name.as_deref());
            assert_eq!((found, target.subresource.as_str()), ((group, resource, namespace, name), subresource), "{url}");
        }
    }

    #[test]
    fn a_query_is_decoded() {
        let query = Query::parse("labelSelector=a%3Db%2Cc+in+%28d%29&watch&limit=");
        assert_eq!(query.get("labelSelector"), Some("a=b,c in (d)"));
        assert!(query.is("watch") && !query.is("force") && query.has("limit"));
        assert_eq!(query.get("limit"), None);
    }
}
