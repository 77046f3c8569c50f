//! The server and its tenants, in a process of their own: told by lines what tenants do, and saying when they have done it.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;

use kcp_provider_runtime::api::manifest::samples;
use kcp_provider_runtime::embedded::ADMIN;
use kcp_provider_runtime::embedded::front::kubeconfig::kubeconfig;
use kcp_provider_runtime::embedded::front::listener::Listener;
use kcp_provider_runtime::kit::{Workspace, World};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::furnish::furnish;

/// The word of the command line after which the file for the kubeconfig stands.
pub(crate) const SERVE: &str = "--serve";
/// What is said when it was done.
const DONE: &str = "done";

/// Serves until nobody tells anything any more.
pub(crate) async fn serve(file: &str) {
    let mut world = World::new().await;
    furnish(&mut world).await;
    let listener = Listener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), world.control_plane().clone()).await.unwrap();
    std::fs::write(file, kubeconfig(&listener.url(), listener.ca_pem(), &[(ADMIN, ADMIN)], &[("root", "root", ADMIN)])).unwrap();
    say(&format!("{} {}", world.control_plane().url(), listener.url()));
    let (sender, mut told) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || std::io::stdin().lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let mut tenants = BTreeMap::new();
    while let Some(line) = told.recv().await {
        let words: Vec<&str> = line.split(' ').collect();
        let [what, from, to] = words[..] else { panic!("{line:?} is no order") };
        for at in from.parse::<usize>().unwrap()..to.parse().unwrap() {
            act(&world, &mut tenants, what, at).await;
            // Whoever watches is served meanwhile.
            tokio::task::yield_now().await;
        }
        say(DONE);
    }
}

async fn act(world: &World, tenants: &mut BTreeMap<usize, Workspace>, what: &str, at: usize) {
    match what {
        "unbind" => tenants[&at].unbind().await,
        "bind" | "order" => {
            match tenants.get(&at) {
                Some(tenant) => tenant.bind().await,
                None => drop(tenants.insert(at, world.workspace(&format!("tenant-{at}")).await)),
            }
            let objects = if what == "order" { samples::tenant() } else { Vec::new() };
            for object in objects {
                tenants[&at].apply(object).await;
            }
        }
        other => panic!("nobody knows how to {other}"),
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).unwrap();
}

/// The other process, and the way to tell it things. Dropped, it ends.
pub(crate) struct Server {
    child: Child,
    to: ChildStdin,
    from: Lines<BufReader<ChildStdout>>,
    /// The prefix of the URLs that it publishes, and the one by which it is reached.
    pub(crate) reached: (String, String),
}

impl Server {
    /// Starts it; it writes an administrator's kubeconfig into this file.
    pub(crate) async fn start(kubeconfig: &std::path::Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg(SERVE)
            .arg(kubeconfig)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut from = BufReader::new(from).lines();
        let line = from.next_line().await.unwrap().expect("the server says where it is");
        let (published, real) = line.split_once(' ').unwrap();
        Self { reached: (published.to_owned(), real.to_owned()), child, to, from }
    }

    /// Has tenants do something: `bind`, `order` (bind, and have a cluster), `unbind`.
    pub(crate) async fn tell(&mut self, what: &str, tenants: std::ops::Range<usize>) {
        self.to.write_all(format!("{what} {} {}\n", tenants.start, tenants.end).as_bytes()).await.unwrap();
        assert_eq!(self.from.next_line().await.unwrap().as_deref(), Some(DONE), "the server lives");
    }

    /// Ends it.
    pub(crate) async fn stop(mut self) {
        drop(self.to);
        self.child.wait().await.unwrap();
    }
}
