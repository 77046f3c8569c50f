//! Whom a request is from.

use super::*;
use crate::embedded::access::tokens::{AUDIENCE, Tokens, token_answer, token_request};

const NOW: i64 = 1_796_008_978;

fn tokens() -> Tokens {
    Tokens::new("secret", [("t-admin".to_owned(), User { name: "kcp-admin".into(), groups: vec![KCP_ADMIN.into()], ..User::default() })])
}

fn here(workspace: &str, namespace: &str, name: &str, uid: &str) -> bool {
    (workspace, namespace, name, uid) == (TENANT, "default", "bot", "u1")
}

#[test]
fn a_static_token_is_a_user_who_has_logged_in() {
    let user = tokens().authenticate("t-admin", NOW, &here).unwrap();
    assert_eq!((user.name.as_str(), user.groups), ("kcp-admin", vec![KCP_ADMIN.to_owned(), AUTHENTICATED.to_owned()]));
    assert_eq!(tokens().authenticate("t-other", NOW, &here), None);
}

#[test]
fn an_issued_token_is_its_account_until_it_ends_or_the_account_is_another() {
    let tokens = tokens();
    let audience = [AUDIENCE.to_owned()];
    let (token, end) = tokens.issue(TENANT, "default", "bot", "u1", &audience, 600, NOW);
    assert_eq!(end, NOW + 600);
    let user = tokens.authenticate(&token, NOW, &here).unwrap();
    assert_eq!(user.name, "system:serviceaccount:default:bot");
    assert_eq!(user.uid, "u1");
    assert_eq!(user.groups, ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]);
    assert_eq!(user.extra[CLUSTER_NAME], [TENANT]);
    assert!(user.extra["authentication.kubernetes.io/credential-id"][0].starts_with("JTI="));
    assert!(tokens.authenticate(&token, end + 60, &here).is_some(), "a minute of grace");
    assert!(tokens.authenticate(&token, end + 61, &here).is_none());
    assert!(tokens.authenticate(&token, NOW - 61, &here).is_none(), "not yet");
    assert!(tokens.authenticate(&token, NOW, &|_, _, _, uid| uid == "u2").is_none(), "the account was made anew");
    let (again, _) = tokens.issue(TENANT, "default", "bot", "u1", &audience, 600, NOW);
    assert_ne!(token, again, "no two are the same");
    let (foreign, _) = tokens.issue(TENANT, "default", "bot", "u1", &["vault".to_owned()], 600, NOW);
    assert!(tokens.authenticate(&foreign, NOW, &here).is_none(), "a token for somebody else is none for us");
}

#[test]
fn a_token_of_another_server_or_with_changed_claims_is_refused() {
    let tokens = tokens();
    let (token, _) = tokens.issue(TENANT, "default", "bot", "u1", &[AUDIENCE.to_owned()], 600, NOW);
    assert!(Tokens::new("other", []).authenticate(&token, NOW, &here).is_none());
    for at in [5, token.len() / 2, token.len() - 3] {
        let other = if token.as_bytes()[at] == b'A' { "B" } else { "A" };
        let changed = format!("{}{other}{}", &token[..at], &token[at + 1..]);
        assert!(tokens.authenticate(&changed, NOW, &here).is_none(), "{changed}");
    }
    for odd in ["", ".", "..", "a.b.c", "a.b.ü"] {
        assert!(tokens.authenticate(odd, NOW, &here).is_none(), "{odd:?}");
    }
}

#[test]
fn the_token_of_a_secret_has_no_end_and_names_the_secret() {
    let token = tokens().issue_legacy(TENANT, "default", "bot", "u1", "bot-token");
    assert_eq!(token, tokens().issue_legacy(TENANT, "default", "bot", "u1", "bot-token"));
    let user = tokens().authenticate(&token, NOW * 2, &here).unwrap();
    assert_eq!(user, User::service_account(TENANT, "default", "bot", "u1"));
    let account = tokens().account(&token).unwrap();
    assert_eq!((account.workspace.as_str(), account.secret.as_deref()), (TENANT, Some("bot-token")));
    assert!(tokens().account("t-admin").is_none());
}

#[test]
fn a_token_request_is_checked_in_the_servers_words() {
    for (body, code, words) in [
        (
            json!({"spec": {"expirationSeconds": 5}}),
            422,
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: 5: \
             may not specify a duration less than 10 minutes",
        ),
        (
            json!({"spec": {"expirationSeconds": 99_999_999_999_i64}}),
            422,
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: 99999999999: \
             may not specify a duration larger than 2^32 seconds",
        ),
        (
            json!({"metadata": {"name": "x"}}),
            422,
            "TokenRequest.authentication.k8s.io \"bot\" is invalid: metadata.name: Invalid value: \"x\": \
             must match the service account name if specified",
        ),
        (
            json!({"metadata": {"namespace": "x"}}),
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (json!({"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"}}}), 404, "pods \"p\" not found"),
    ] {
        let refusal = token_request("default", "bot", &body).unwrap_err();
        assert_eq!((refusal.code, refusal.message.as_str()), (code, words));
    }
    let ask = token_request("default", "bot", &json!({"spec": {}})).unwrap();
    assert_eq!((ask.audiences.as_slice(), ask.seconds), (&[AUDIENCE.to_owned()][..], 3600));
    let answer = token_answer("default", "bot", &ask, "t", NOW);
    assert_eq!(answer["status"], json!({"token": "t", "expirationTimestamp": "2026-11-30T04:22:58Z"}));
}

fn headers(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn whom_an_administrator_acts_as_is_a_user_of_this_workspace_only() {
    let all = headers(&[
        ("Impersonate-User", "alice"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Uid", "u1"),
        ("Impersonate-Extra-Foo%2fbar", "baz"),
        ("Accept", "application/json"),
    ]);
    let acting = impersonate(&World::default(), TENANT, &admin(), &all).unwrap();
    assert_eq!(
        (acting.name.as_str(), acting.uid.as_str(), acting.groups.as_slice()),
        ("alice", "u1", &["dev".into(), AUTHENTICATED.into()][..])
    );
    let scope = (SCOPES.to_owned(), vec![format!("cluster:{TENANT}")]);
    assert_eq!(acting.extra, BTreeMap::from([scope, ("foo/bar".to_owned(), vec!["baz".to_owned()])]));
    let world = World::default().with(PROVIDER, [binding("a", "cluster-admin", &user("alice"))]);
    assert!(may(&world, PROVIDER, &alice(), &configmaps("list", "", "")));
    assert!(!may(&world, PROVIDER, &acting, &configmaps("list", "", "")), "not in another workspace");
    let account = headers(&[("impersonate-user", "system:serviceaccount:default:bot")]);
    let acting = impersonate(&World::default(), TENANT, &admin(), &account).unwrap();
    assert_eq!(acting.groups, ["system:serviceaccounts", "system:serviceaccounts:default", AUTHENTICATED]);
    let anonymous = impersonate(&World::default(), TENANT, &admin(), &headers(&[("Impersonate-User", ANONYMOUS)])).unwrap();
    assert_eq!(anonymous.groups, [UNAUTHENTICATED]);
    assert_eq!(impersonate(&World::default(), TENANT, &alice(), &headers(&[("Accept", "x")])).unwrap(), alice());
}

#[test]
fn nobody_acts_as_more_than_they_may() {
    let as_alice = ("Impersonate-User", "alice");
    let in_group = |group| ("Impersonate-Group", group);
    let special = "forbidden: impersonation is not allowed for the requestor";
    let users = r#"users "alice" is forbidden: User "user" cannot impersonate resource "users" in API group "" at the cluster scope: access denied"#;
    let alone = "Internal Server Error: requested [{Group  dev    }] without impersonating a user\n";
    for (who, list, code, words) in [
        (admin(), vec![as_alice, in_group(MASTERS)], 403, special),
        (alice(), vec![as_alice, in_group(KCP_ADMIN)], 403, special),
        (admin(), vec![in_group("dev")], 500, alone),
        (User::named("user", &[]), vec![as_alice], 403, users),
    ] {
        let refusal = impersonate(&World::default(), TENANT, &who, &headers(&list)).unwrap_err();
        assert_eq!((refusal.code, refusal.message.as_str()), (code, words));
    }
    let masters = User::named("shard-admin", &[MASTERS]);
    let acting = impersonate(&World::default(), TENANT, &masters, &headers(&[as_alice, in_group(KCP_ADMIN)])).unwrap();
    assert!(acting.is_in(KCP_ADMIN) && acting.extra.is_empty(), "{acting:?}");
}
