//! The client against servers that refuse, wait and restart.

use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::http::HeaderMap;
use axum::routing::get;

use super::*;

fn kubeconfig(server: &str, of_cluster: &str, of_user: &str) -> tempfile::NamedTempFile {
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: here\ncontexts: [{{name: here, context: {{cluster: kcp, user: me}}}}]\n\
         clusters: [{{name: other, cluster: {{server: 'http://other', proxy-url: 'http://proxy'}}}}, \
         {{name: kcp, cluster: {{server: '{server}'{of_cluster}}}}}]\nusers: [{{name: me, user: {{token: secret{of_user}}}}}]\n"
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

#[tokio::test]
async fn whom_a_kubeconfig_impersonates_the_server_hears() {
    let said = |headers: HeaderMap| async move {
        let all = |name| headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect::<Vec<_>>().join("+");
        format!("{} as {} in {}", all("authorization"), all("impersonate-user"), all("impersonate-group"))
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move { axum::serve(listener, Router::new().route("/", get(said))).await });
    for (user, heard) in [(", as: alice, as-groups: [a, b]", "Bearer secret as alice in a+b"), ("", "Bearer secret as  in ")] {
        let file = kubeconfig(&server, "", user);
        let transport = Transport::new(Credentials::File(file.path().to_owned()), 1).await.unwrap();
        let reply = transport.send(&Ask::get(format!("{server}/"), "*/*"), Duration::from_secs(10)).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&reply.body), heard);
    }
    serving.abort();
}

#[tokio::test]
async fn a_kubeconfig_with_a_proxy_is_refused_and_one_whose_other_cluster_has_one_is_not() {
    let file = kubeconfig("http://kcp", ", proxy-url: 'http://user:password@proxy'", "");
    let refused = Credentials::File(file.path().to_owned()).config().await.unwrap_err();
    assert!(refused.contains("proxy-url") && !refused.contains("password"), "{refused}");
    let file = kubeconfig("http://kcp", "", "");
    assert!(Credentials::File(file.path().to_owned()).config().await.is_ok());
}

#[tokio::test]
async fn a_server_of_this_process_hears_the_token_and_is_asked_once_though_it_refuses() {
    let heard: Arc<parking_lot::Mutex<Vec<String>>> = Arc::default();
    let telling = heard.clone();
    let refusing = tower::service_fn(move |ask: Request<Bytes>| {
        let token = ask.headers()[AUTHORIZATION].to_str().unwrap().to_owned();
        telling.lock().push(format!("{} {} {token}", ask.method(), ask.uri()));
        async { Ok::<_, std::convert::Infallible>(Response::builder().status(401).body(Full::new(Bytes::from("who?"))).unwrap()) }
    });
    let credentials = Credentials::Service { wire: Wire::new(refusing), server: "https://it.invalid/".into(), token: "t".into() };
    let transport = Transport::new(credentials, 1).await.unwrap();
    assert_eq!(transport.server(), "https://it.invalid");
    let reply = transport.send(&Ask::get("https://it.invalid/a?b=c".into(), "*/*"), Duration::from_secs(10)).await.unwrap();
    assert_eq!((reply.status.as_u16(), &*reply.body), (401, &b"who?"[..]));
    assert_eq!(*heard.lock(), ["GET https://it.invalid/a?b=c Bearer t"]);
}

#[tokio::test]
async fn credentials_that_are_refused_are_read_again_once_and_the_request_is_sent_again() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    // As kcp after a restart: the token from before is not known any more.
    let restarted = move |headers: HeaderMap| async move {
        counted.fetch_add(1, Ordering::SeqCst);
        if headers["authorization"] == "Bearer secret2" { StatusCode::OK } else { StatusCode::UNAUTHORIZED }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move { axum::serve(listener, Router::new().route("/", get(restarted))).await });
    let file = kubeconfig(&server, "", "");
    let transport = Transport::new(Credentials::File(file.path().to_owned()), 8).await.unwrap();
    let fresh = std::fs::read_to_string(file.path()).unwrap().replace("secret", "secret2");
    std::fs::write(file.path(), fresh).unwrap();
    let ask = Ask::get(format!("{server}/"), "*/*");
    let replies = futures::future::join_all((0..8).map(|_| transport.send(&ask, Duration::from_secs(10)))).await;
    assert!(replies.iter().all(|reply| reply.as_ref().unwrap().status == 200), "{replies:?}");
    assert!(asked.load(Ordering::SeqCst) <= 16, "each request is sent twice at most");
    serving.abort();
}

#[tokio::test]
async fn no_more_requests_wait_for_their_headers_than_may() {
    for (may, wanted) in [(1, 1), (2, 2), (64, 4)] {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (seen, peak) = (now.clone(), most.clone());
        let slow = move || {
            let (now, most) = (now.clone(), most.clone());
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                // Long enough for every request that may come to have come, whatever the order of tasks.
                while most.load(Ordering::SeqCst) < wanted {
                    tokio::task::yield_now().await;
                }
                for _ in 0..1000 {
                    tokio::task::yield_now().await;
                }
                now.fetch_sub(1, Ordering::SeqCst);
                "done"
            }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let serving = tokio::spawn(async move { axum::serve(listener, Router::new().route("/", get(slow))).await });
        let file = kubeconfig(&server, "", "");
        let transport = Transport::new(Credentials::File(file.path().to_owned()), may).await.unwrap();
        let ask = Ask::get(format!("{server}/"), "*/*");
        let replies = futures::future::join_all((0..4).map(|_| transport.send(&ask, Duration::from_secs(30)))).await;
        assert!(replies.iter().all(Result::is_ok), "{replies:?}");
        assert_eq!((peak.load(Ordering::SeqCst), seen.load(Ordering::SeqCst)), (wanted, 0), "{may} may wait at once");
        serving.abort();
    }
}
