//! What is seldom asked gets the answer of a real kcp v0.28, as the differential test found it.

use http::Method;
use kcp_provider_runtime::embedded::Options;
use serde_json::{Value, json};

use crate::lives::{bound, toy};
use crate::support::Client;

const MERGE: &str = "application/merge-patch+json";

fn version(answer: &crate::support::Answer) -> String {
    answer.body["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_replacement_without_the_clusters_annotation_is_always_a_new_version() {
    let client = Client::new();
    let (_, tenant, _) = bound(&client).await;
    let maps = format!("/clusters/{tenant}/api/v1/namespaces/default/configmaps");
    let bare = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "b"}});
    let mut marked = bare.clone();
    marked["metadata"]["annotations"] = json!({"kcp.io/cluster": tenant});
    let mut before = version(&client.post(&maps, &bare).await);
    for (body, is_new, why) in [
        (&bare, true, "as it was made"),
        (&bare, true, "as it was replaced"),
        (&marked, true, "with what it shows"),
        (&marked, false, "as it is stored"),
        (&bare, true, "without it again"),
    ] {
        let put = client.put(&format!("{maps}/a"), body).await;
        assert_eq!(version(&put) != before, is_new, "{why}");
        assert_eq!(put.body["metadata"]["annotations"]["kcp.io/cluster"], tenant.as_str(), "{why}");
        before = version(&put);
    }
}

#[tokio::test]
async fn a_refused_list_names_the_one_object_that_it_asks_for() {
    let mut options = Options::default();
    options.users.push(("nobody".into(), "nobody".into(), Vec::new()));
    let client = Client::with(options);
    let (_, tenant, _) = bound(&client).await;
    let nobody = client.as_bearer("nobody");
    let maps = format!("/clusters/{tenant}/api/v1/configmaps?fieldSelector=metadata.name");
    for (selector, name) in [("%3Da", json!("a")), ("%3D%3Da", json!("a")), ("!%3Da", Value::Null), ("%3Da%2Fb", Value::Null)] {
        let refused = nobody.get(&format!("{maps}{selector}")).await;
        assert_eq!((refused.code, &refused.body["details"]["name"]), (403, &name), "{selector}: {refused:?}");
    }
}

#[tokio::test]
async fn a_patch_that_makes_another_kind_of_an_object_is_refused_in_the_words_of_its_door() {
    let client = Client::new();
    let (_, tenant, through) = bound(&client).await;
    let core = format!("/clusters/{tenant}/api/v1/namespaces/default/configmaps");
    let toys = format!("/clusters/{tenant}/apis/play.example.org/v1/namespaces/default/toys");
    client.post(&core, &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "car"}})).await;
    client.post(&toys, &toy("car")).await;
    let status = json!({"apiVersion": "v1", "kind": "Status"});
    for (path, patch, code, words) in [
        (
            format!("{toys}/car"),
            &status,
            422,
            "Status \"car\" is invalid: [kind: Invalid value: \"Status\": must be Toy, apiVersion: Invalid value: \"v1\": must be play.example.org/v1]",
        ),
        (
            format!("{through}{toys}/car"),
            &status,
            400,
            "the API version in the data (v1) does not match the expected API version (play.example.org/v1)",
        ),
        (format!("{core}/car"), &status, 422, "converting (v1.Status) to (core.ConfigMap): unknown conversion"),
        (format!("{core}/car"), &json!({"kind": "Nope"}), 422, "no kind \"Nope\" is registered for version \"v1\""),
        (format!("{toys}/car"), &Value::Null, 400, "Invalid JSON Patch"),
        (format!("{toys}/car"), &json!(true), 400, "json: cannot unmarshal bool into Go value of type map[string]interface {}"),
    ] {
        let refused = client.send(Method::PATCH, &path, MERGE, patch.to_string().into()).await;
        let message = refused.body["message"].as_str().unwrap_or_default();
        assert!(refused.code == code && message.contains(words), "{path} {patch}: {refused:?}");
    }
    let kept =
        client.send(Method::PATCH, &format!("{core}/car"), "application/strategic-merge-patch+json", status.to_string().into()).await;
    assert_eq!((kept.code, &kept.body["kind"]), (200, &json!("ConfigMap")), "Go knows what it patches");
}

#[tokio::test]
async fn through_an_export_a_native_kind_is_like_any_other() {
    let client = Client::new();
    let (_, tenant, through) = bound(&client).await;
    let found = client.get(&format!("{through}/clusters/*/api/v1")).await;
    assert_eq!((&found.body["resources"][0]["name"], &found.body["resources"][0]["shortNames"]), (&json!("configmaps"), &Value::Null));
    let maps = format!("{through}/clusters/{tenant}/api/v1/namespaces/default/configmaps");
    let table = client.accepting("application/json;as=Table;v=v1;g=meta.k8s.io").get(&maps).await;
    assert_eq!(table.body["columnDefinitions"].as_array().map(Vec::len), Some(1), "{table:?}");
    for (path, accept, words) in [
        (maps.clone(), "text/html", "only the following media types are accepted: application/json, application/yaml"),
        (
            format!("/clusters/{tenant}/api/v1/configmaps"),
            "text/html",
            "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch",
        ),
        (
            format!("/clusters/{tenant}/api/v1/configmaps"),
            "application/json;as=Table;v=v9;g=meta.k8s.io",
            "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf",
        ),
    ] {
        let refused = client.accepting(accept).get(&path).await;
        assert_eq!((refused.code, &refused.body["message"]), (406, &json!(words)), "{path} {accept}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_status_that_is_as_it_was_is_no_new_version_whatever_else_is_sent_and_however_late() {
    let client = Client::new();
    let (_, tenant, through) = bound(&client).await;
    let toys = format!("{through}/clusters/{tenant}/apis/play.example.org/v1/namespaces/default/toys");
    let mut before = version(&client.post(&toys, &toy("car")).await);
    for (size, is_new) in [(3, true), (4, false), (5, false)] {
        let mut body = toy("car");
        body["metadata"] = json!({"name": "car", "resourceVersion": before, "labels": {"size": size.to_string()}});
        body["status"] = json!({"phase": "Ready"});
        let put = client.put(&format!("{toys}/car/status"), &body).await;
        assert_eq!((put.code, version(&put) != before), (200, is_new), "{put:?}");
        before = version(&put);
        tokio::time::advance(std::time::Duration::from_secs(2)).await;
    }
}

#[tokio::test]
async fn an_apply_that_takes_all_of_a_status_is_refused_and_through_an_export_takes_it() {
    let client = Client::new();
    let (_, tenant, through) = bound(&client).await;
    let direct = format!("/clusters/{tenant}/apis/play.example.org/v1/namespaces/default/toys");
    client.post(&direct, &toy("car")).await;
    let apply = async |path: &str, status: Value| {
        let body = json!({"apiVersion": "play.example.org/v1", "kind": "Toy", "metadata": {"name": "car"}, "status": status});
        let path = format!("{path}/car/status?fieldManager=keeper");
        client.send(Method::PATCH, &path, "application/apply-patch+yaml", body.to_string().into()).await
    };
    assert_eq!(apply(&direct, json!({"phase": "Ready"})).await.code, 200);
    let refused = apply(&direct, json!({})).await;
    let words = "Toy.play.example.org \"car\" is invalid: status: Invalid value: \"null\":  in body must be of type object: \"null\"";
    assert_eq!((refused.code, &refused.body["message"]), (422, &json!(words)));
    let taken = apply(&format!("{through}{direct}"), json!({})).await;
    assert_eq!((taken.code, taken.body.get("status")), (200, None), "{taken:?}");
}

#[tokio::test(start_paused = true)]
async fn a_native_kind_is_selected_by_its_own_fields_and_refuses_others_in_its_own_words() {
    let client = Client::new();
    let (_, tenant, _) = bound(&client).await;
    let list = async |path: &str, fields: &str| client.get(&format!("/clusters/{tenant}/{path}?fieldSelector={fields}")).await;
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"kind": "Toy", "name": "car", "namespace": "default"}, "reason": "Built"});
    client.post(&format!("/clusters/{tenant}/api/v1/namespaces/default/events"), &event).await;
    for (path, fields, found) in [
        ("api/v1/events", "involvedObject.name%3Dcar,reason%3DBuilt", 1),
        ("api/v1/events", "involvedObject.name%3Dboat", 0),
        ("apis/events.k8s.io/v1/events", "regarding.name%3Dcar", 1),
        ("api/v1/namespaces", "status.phase%3DActive,metadata.name%3Ddefault", 1),
    ] {
        let answer = list(path, fields).await;
        assert_eq!(answer.body["items"].as_array().map(Vec::len), Some(found), "{path} {fields}: {answer:?}");
    }
    let both = format!("/clusters/{tenant}/apis/events.k8s.io/v1/namespaces/default/events");
    let kept = client.send(Method::DELETE, &format!("{both}?fieldSelector=regarding.name!%3Dcar"), "", Vec::new().into()).await;
    assert_eq!((kept.code, kept.body["items"].as_array().map(Vec::len)), (200, Some(0)), "{kept:?}");
    let watch = format!("{both}?watch=true&timeoutSeconds=1&fieldSelector=regarding.name%3Dcar");
    let seen = client.get(&watch).await;
    assert_eq!(seen.body["object"]["regarding"]["name"], "car", "the one event: {seen:?}");
    let other = client.get(&format!("/clusters/{tenant}/apis/events.k8s.io/v1/namespaces/default/events/e")).await;
    assert_eq!((&other.body["regarding"]["name"], other.body.get("involvedObject")), (&json!("car"), None), "one event in two groups");
    for (path, words) in [
        ("api/v1/configmaps", "\"spec.size\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""),
        ("api/v1/secrets", "field label not supported: spec.size"),
        ("apis/play.example.org/v1/toys", "field label not supported: spec.size"),
    ] {
        let refused = list(path, "spec.size%3Dsmall").await;
        assert_eq!((refused.code, &refused.body["message"]), (400, &json!(words)), "{path}");
    }
}
