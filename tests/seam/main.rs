//! The seam, as a provider team sees it: a toy provider over public items alone, run by the real runtime against a server of this process.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod provider;
mod server;
mod strict;

use std::time::Duration;

use kcp_provider_runtime::runtime::{Credentials, Handle, Options, Runtime};
use provider::Painter;
use serde_json::{Value, json};
use server::{Server, Write};
use strict::Strict;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Long enough for a busy machine; what is waited for takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

struct Running {
    server: Server,
    calls: watch::Receiver<Vec<String>>,
    handle: Handle,
    task: JoinHandle<()>,
    _kubeconfig: tempfile::TempDir,
}

impl Running {
    async fn start(toys: &[(&str, &str, &str)]) -> Self {
        Self::begin(toys, false).await
    }

    async fn begin(toys: &[(&str, &str, &str)], strict: bool) -> Self {
        let server = Server::start().await;
        for (workspace, name, colour) in toys {
            server.create(workspace, name, *colour);
        }
        let dir = tempfile::tempdir().unwrap();
        let kubeconfig = dir.path().join("kubeconfig");
        std::fs::write(&kubeconfig, server.kubeconfig()).unwrap();
        let (told, calls) = watch::channel(Vec::new());
        let options = Options::new(Credentials::File(kubeconfig), "toys.test").with_workspace("root:provider");
        let runtime = Runtime::new(options);
        let runtime = if strict { runtime.serve(|_| Strict) } else { runtime.serve(move |_| Painter(told)) };
        let handle = runtime.handle();
        let task = tokio::spawn(async move { runtime.run().await.unwrap() });
        Self { server, calls, handle, task, _kubeconfig: dir }
    }

    /// Waits until a toy was called this often.
    async fn called(&mut self, toy: &str, times: usize) {
        let enough = |calls: &Vec<String>| calls.iter().filter(|call| *call == toy).count() >= times;
        tokio::time::timeout(PATIENCE, self.calls.wait_for(enough)).await.expect("it is called").unwrap();
    }

    async fn written(&self, times: usize) -> Vec<Write> {
        tokio::time::timeout(PATIENCE, self.server.wait_for(|writes| writes.len() >= times)).await.expect("it is written")
    }

    async fn stop(self) {
        self.handle.stop();
        tokio::time::timeout(PATIENCE, self.task).await.expect("it ends").unwrap();
    }
}

fn of<'a>(writes: &'a [Write], name: &str) -> Vec<&'a Write> {
    writes.iter().filter(|write| write.body["metadata"]["name"] == name).collect()
}

#[test]
fn a_provider_is_sixty_lines() {
    let lines = include_str!("provider.rs").lines().count();
    assert!(lines <= 60, "the toy provider has grown to {lines} lines: the seam asks for too much");
    assert!(!include_str!("provider.rs").contains("kube::"), "a provider needs no client library");
}

#[tokio::test]
async fn a_report_becomes_one_status_write_under_the_objects_identity() {
    let running = Running::start(&[("ws1", "car", "red")]).await;
    let mut writes = running.written(1).await;
    let Write { target, content_type, mut body } = writes.remove(0);
    assert_eq!(
        target,
        "PATCH /services/apiexport/1abc/toys.test/clusters/ws1/apis/toys.test/v1/namespaces/default/toys/car/status?fieldManager=painter&force=true"
    );
    assert_eq!(content_type, "application/apply-patch+yaml");
    let since = body["status"]["conditions"][0].as_object_mut().unwrap().remove("lastTransitionTime");
    let since: jiff::Timestamp = since.as_ref().and_then(Value::as_str).unwrap().parse().unwrap();
    assert!(jiff::Timestamp::now().duration_since(since).unsigned_abs() < Duration::from_mins(5), "{since}");
    let condition = json!({"type": "Painted", "status": "True", "reason": "Dry", "message": "it is red", "observedGeneration": 1});
    let metadata = json!({"name": "car", "namespace": "default", "uid": "uid-of-car", "resourceVersion": "2"});
    let status = json!({"colour": "red", "conditions": [condition]});
    assert_eq!(body, json!({"apiVersion": "toys.test/v1", "kind": "Toy", "metadata": metadata, "status": status}));
    running.stop().await;
}

#[tokio::test]
async fn an_object_that_is_as_it_should_be_costs_no_request() {
    let mut running = Running::start(&[("ws1", "car", "red")]).await;
    running.written(1).await;
    // Once for its making, once for our own write; each further call begins when the one before it, its writes included, has ended.
    for (at, note) in ["a", "b", "c"].into_iter().enumerate() {
        running.called("ws1/car", at + 2).await;
        running.server.touch("ws1/car", note);
    }
    running.called("ws1/car", 5).await;
    assert_eq!(running.server.writes().len(), 1);
    running.stop().await;
}

#[tokio::test]
async fn an_error_and_a_panic_are_their_objects_own() {
    let mut running = Running::start(&[("ws1", "ghost", "none"), ("ws1", "bomb", "explosive"), ("ws2", "car", "red")]).await;
    running.called("ws1/bomb", 2).await;
    running.called("ws1/ghost", 2).await;
    running.server.create("ws1", "kite", "blue");
    running.server.create("ws2", "ghost", "white");
    let writes = running.written(3).await;
    assert_eq!((of(&writes, "car").len(), of(&writes, "kite").len(), of(&writes, "bomb").len()), (1, 1, 0));
    let ghosts: Vec<_> = of(&writes, "ghost").into_iter().map(|write| write.target.contains("/clusters/ws2/")).collect();
    assert_eq!(ghosts, [true], "the same name in another workspace is another toy");
    let text = running.handle.metrics().text();
    assert!(text.contains(r#"controller="painter",reason="ReconcileFailed""#), "{text}");
    running.stop().await;
}

#[tokio::test]
async fn an_object_that_cannot_be_read_is_told_the_field_and_its_siblings_go_on() {
    let running = Running::start(&[("ws1", "car", "red")]).await;
    running.server.create("ws1", "wreck", 7);
    running.server.create("ws1", "kite", "blue");
    let writes = running.written(3).await;
    let colours: Vec<_> = ["car", "kite"].map(|name| of(&writes, name)[0].body["status"]["colour"].clone()).into();
    assert_eq!(colours, ["red", "blue"]);
    let told = &of(&writes, "wreck")[0].body["status"];
    let condition = &told["conditions"][0];
    let [type_, status, reason] = ["type", "status", "reason"].map(|field| condition[field].as_str().unwrap());
    assert_eq!([type_, status, reason], ["Painted", "False", "InvalidObject"]);
    let message = condition["message"].as_str().unwrap();
    assert!(message.starts_with("the object cannot be read: colour: invalid type: integer `7`"), "{message}");
    running.server.create("ws1", "wreck", "green");
    let mended = running.written(4).await;
    assert_eq!(of(&mended, "wreck")[1].body["status"]["colour"], "green", "it is mended by its tenant alone");
    running.stop().await;
}

#[tokio::test]
async fn a_runtime_is_ready_once_everything_was_listed() {
    let mut running = Running::start(&[]).await;
    tokio::time::timeout(PATIENCE, running.handle.ready()).await.expect("it becomes ready");
    assert_eq!(running.handle.missing(), Some(Vec::new()));
    running.server.create("ws1", "car", "green");
    assert_eq!(running.written(1).await[0].body["status"]["colour"], "green");
    running.stop().await;
}

#[tokio::test]
async fn without_a_configuration_and_without_defaults_an_object_is_told_so() {
    let running = Running::begin(&[("ws1", "car", "red")], true).await;
    let writes = running.written(1).await;
    let condition = &writes[0].body["status"]["conditions"][0];
    assert_eq!((&condition["type"], &condition["status"]), (&json!("Painted"), &json!("False")));
    assert_eq!((&condition["reason"], &condition["message"]), (&json!("ConfigUnavailable"), &json!("there is no configuration object")));
    assert_eq!(writes[0].body["status"]["coats"], 0, "no status field goes on telling of success");
    running.stop().await;
}
