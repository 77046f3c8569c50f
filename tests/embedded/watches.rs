//! Watches: what they show, when they end, and what they say then.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt as _;
use kcp_provider_runtime::embedded::body::Body;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::lives::{BINDINGS, bound, export, schema, toy};
use crate::support::Client;

/// An open watch.
pub(crate) struct Watch {
    body: Body,
    read: String,
}

impl Watch {
    pub(crate) async fn open(client: &Client, path: &str) -> Self {
        let request = Request::get(path).header("authorization", "Bearer kcp-admin").body(Bytes::new()).unwrap();
        let response = client.control_plane.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
        Self { body: response.into_body(), read: String::new() }
    }

    /// The next event, or `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((line, rest)) = self.read.split_once('\n') {
                let event = serde_json::from_str(line).unwrap();
                self.read = rest.to_owned();
                return Some(event);
            }
            let frame = self.body.frame().await?.unwrap();
            self.read.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap());
        }
    }

    /// The type and the name of the next event.
    async fn sees(&mut self) -> (String, String) {
        let event = self.next().await.expect("the watch goes on");
        (event["type"].as_str().unwrap().to_owned(), event["object"]["metadata"]["name"].as_str().unwrap_or_default().to_owned())
    }

    /// Whether nothing comes for a while.
    async fn is_silent(&mut self) -> bool {
        tokio::time::timeout(Duration::from_secs(30), self.next()).await.is_err()
    }
}

const TOYS: &str = "apis/play.example.org/v1";

fn saw(type_: &str, name: &str) -> (String, String) {
    (type_.to_owned(), name.to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_watch_goes_on_where_a_list_ended() {
    let client = Client::new();
    let (_, tenant, through) = bound(&client).await;
    let toys = format!("/clusters/{tenant}/{TOYS}/namespaces/default/toys");
    client.post(&toys, &toy("before")).await;
    let list = client.get(&format!("{through}/clusters/*/{TOYS}/toys")).await;
    let version = list.body["metadata"]["resourceVersion"].as_str().unwrap();
    let mut watch = Watch::open(&client, &format!("{through}/clusters/*/{TOYS}/toys?watch=true&resourceVersion={version}")).await;
    client.post(&toys, &toy("car")).await;
    client.merge(&format!("{toys}/car"), &json!({"spec": {"size": 3}})).await;
    client.delete(&format!("{toys}/before")).await;
    assert_eq!(watch.sees().await, saw("ADDED", "car"));
    assert_eq!(watch.sees().await, saw("MODIFIED", "car"));
    assert_eq!(watch.sees().await, saw("DELETED", "before"));
    assert!(watch.is_silent().await);
}

#[tokio::test(start_paused = true)]
async fn what_leaves_the_selection_is_deleted_for_the_watch() {
    let client = Client::new();
    let (_, tenant, _) = bound(&client).await;
    let toys = format!("/clusters/{tenant}/{TOYS}/namespaces/default/toys");
    let mut watch = Watch::open(&client, &format!("/clusters/{tenant}/{TOYS}/toys?watch=true&labelSelector=kind%3Dfast")).await;
    client.post(&toys, &toy("car")).await;
    client.merge(&format!("{toys}/car"), &json!({"metadata": {"labels": {"kind": "fast"}}})).await;
    client.merge(&format!("{toys}/car"), &json!({"metadata": {"labels": {"kind": "slow"}}})).await;
    assert_eq!(watch.sees().await, saw("ADDED", "car"));
    assert_eq!(watch.sees().await, saw("DELETED", "car"));
    assert!(watch.is_silent().await);
}

#[tokio::test(start_paused = true)]
async fn initial_events_end_with_a_marked_bookmark() {
    let client = Client::new();
    let (_, tenant, _) = bound(&client).await;
    let toys = format!("/clusters/{tenant}/{TOYS}/namespaces/default/toys");
    client.post(&toys, &toy("car")).await;
    let query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = Watch::open(&client, &format!("{toys}?{query}")).await;
    assert_eq!(watch.sees().await, saw("ADDED", "car"));
    let end = watch.next().await.unwrap();
    assert_eq!(
        (&end["type"], &end["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"]),
        (&json!("BOOKMARK"), &json!("true"))
    );
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_once_a_minute_and_a_watch_ends_at_its_time() {
    let client = Client::new();
    let (_, tenant, _) = bound(&client).await;
    let mut watch =
        Watch::open(&client, &format!("/clusters/{tenant}/{TOYS}/toys?watch=true&allowWatchBookmarks=true&timeoutSeconds=130")).await;
    let began = tokio::time::Instant::now();
    assert_eq!(watch.next().await.unwrap()["type"], "BOOKMARK");
    assert_eq!(watch.next().await.unwrap()["type"], "BOOKMARK");
    assert_eq!(watch.next().await, None);
    assert_eq!(began.elapsed().as_secs(), 130);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_not_kept_any_more_is_an_expired_error_in_the_stream() {
    let client = Client::new();
    let (_, tenant, _) = bound(&client).await;
    let toys = format!("/clusters/{tenant}/{TOYS}/namespaces/default/toys");
    client.post(&toys, &toy("car")).await;
    client.control_plane.compact();
    let mut watch = Watch::open(&client, &format!("{toys}?watch=true&resourceVersion=1")).await;
    let event = watch.next().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["code"], &event["object"]["reason"]), (&json!("ERROR"), &json!(410), &json!("Expired")));
    assert_eq!(watch.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn an_open_watch_is_silent_after_the_last_unbinding_and_speaks_after_the_next_binding() {
    let client = Client::new();
    let (_, tenant, through) = bound(&client).await;
    let binding = client.get(&format!("/clusters/{tenant}/{BINDINGS}/toys")).await;
    let mut watch = Watch::open(&client, &format!("{through}/clusters/*/{TOYS}/toys?watch=true")).await;
    client.delete(&format!("/clusters/{tenant}/{BINDINGS}/toys")).await;
    assert!(watch.is_silent().await);
    let spec = binding.body["spec"].clone();
    let again = json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": {"name": "toys"}, "spec": spec});
    assert_eq!(client.post(&format!("/clusters/{tenant}/{BINDINGS}"), &again).await.code, 201);
    client.post(&format!("/clusters/{tenant}/{TOYS}/namespaces/default/toys"), &toy("car")).await;
    assert_eq!(watch.sees().await, saw("ADDED", "car"));
}

#[tokio::test(start_paused = true)]
async fn a_schema_roll_ends_watches_through_the_export_with_an_internal_error() {
    let client = Client::new();
    let (provider, _, through) = bound(&client).await;
    let mut watch = Watch::open(&client, &format!("{through}/clusters/*/{TOYS}/toys?watch=true")).await;
    client.post(&format!("/clusters/{provider}/apis/apis.kcp.io/v1alpha1/apiresourceschemas"), &schema("v2", "blue")).await;
    let resources = export("v2")["spec"]["resources"].clone();
    client
        .merge(&format!("/clusters/{provider}/apis/apis.kcp.io/v1alpha2/apiexports/toys"), &json!({"spec": {"resources": resources}}))
        .await;
    let event = watch.next().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(500)));
    assert_eq!(watch.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn all_watches_can_be_closed_at_once() {
    let client = Client::new();
    let (_, tenant, _) = bound(&client).await;
    let mut watch = Watch::open(&client, &format!("/clusters/{tenant}/{TOYS}/toys?watch=true")).await;
    assert!(watch.is_silent().await);
    client.control_plane.close_watches();
    assert_eq!(watch.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_page_goes_on_at_its_version_until_that_is_gone() {
    let client = Client::new();
    let (_, tenant, _) = bound(&client).await;
    let toys = format!("/clusters/{tenant}/{TOYS}/namespaces/default/toys");
    for name in ["a", "b", "c"] {
        client.post(&toys, &toy(name)).await;
    }
    let names = |page: &Value| {
        let items = page["items"].as_array().unwrap().iter();
        items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let first = client.get(&format!("{toys}?limit=2")).await.body;
    assert_eq!((names(&first), &first["metadata"]["remainingItemCount"]), (vec!["a".into(), "b".into()], &json!(1)));
    client.delete(&format!("{toys}/c")).await;
    let token = first["metadata"]["continue"].as_str().unwrap().replace('=', "%3D").replace('+', "%2B");
    let second = client.get(&format!("{toys}?limit=2&continue={token}")).await.body;
    assert_eq!(names(&second), ["c"], "the page is of the first one's version");
    client.control_plane.compact();
    let late = client.get(&format!("{toys}?limit=2&continue={token}")).await;
    assert_eq!((late.code, &late.body["reason"]), (410, &json!("Expired")));
}
