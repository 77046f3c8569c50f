//! The server and its tenants, in a process of their own: told by lines what tenants do, and saying when they have done it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;

use kcp_provider_runtime::api::manifest::binding::binding;
use kcp_provider_runtime::api::manifest::{export, samples};
use kcp_provider_runtime::embedded::ADMIN;
use kcp_provider_runtime::embedded::front::kubeconfig::kubeconfig;
use kcp_provider_runtime::embedded::front::listener::Listener;
use kcp_provider_runtime::kit::{Client, Workspace, World};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::furnish::furnish;

/// The word of the command line after which the file for the kubeconfig stands.
pub(crate) const SERVE: &str = "--serve";
/// What is said when it was done.
const DONE: &str = "done";
const BINDINGS: &str = "/apis/apis.kcp.io/v1alpha2/apibindings";
const WORKSPACES: &str = "/apis/tenancy.kcp.io/v1alpha1/workspaces";

/// Serves until nobody tells anything any more.
pub(crate) async fn serve(file: &str) {
    let mut world = World::new().await;
    furnish(&mut world).await;
    let listener = Listener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), world.control_plane().clone()).await.unwrap();
    std::fs::write(file, kubeconfig(&listener.url(), listener.ca_pem(), &[(ADMIN, ADMIN)], &[("root", "root", ADMIN)])).unwrap();
    say(&format!("{} {}", world.control_plane().url(), listener.url()));
    let (sender, mut told) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || std::io::stdin().lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let mut tenants = Tenants::default();
    while let Some(line) = told.recv().await {
        let words: Vec<&str> = line.split(' ').collect();
        let [what, from, to] = words[..] else { panic!("{line:?} is no order") };
        for at in from.parse::<usize>().unwrap()..to.parse().unwrap() {
            tenants.act(&world, what, at).await;
            // Whoever watches is served meanwhile.
            tokio::task::yield_now().await;
        }
        say(DONE);
    }
}

/// Who has come so far; workspaces stay when their bindings go.
#[derive(Default)]
struct Tenants {
    idle: BTreeMap<usize, Client>,
    busy: BTreeMap<usize, Workspace>,
}

impl Tenants {
    async fn act(&mut self, world: &World, what: &str, at: usize) {
        match what {
            "bind" => {
                let tenant = match self.idle.entry(at) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(new) => new.insert(idle(world, &format!("idle-{at}")).await),
                };
                let claims: Vec<Value> = export::claims().iter().map(export::Claim::to_value).collect();
                tenant.create(BINDINGS, &binding("root:provider", export::EXPORT, &claims)).await.ok().unwrap();
            }
            "unbind" => drop(self.idle[&at].delete(&format!("{BINDINGS}/{}", export::EXPORT)).await.ok().unwrap()),
            "order" => {
                match self.busy.get(&at) {
                    Some(tenant) => tenant.bind().await,
                    None => drop(self.busy.insert(at, world.workspace(&format!("busy-{at}")).await)),
                }
                for object in samples::tenant() {
                    self.busy[&at].apply(object).await;
                }
            }
            "leave" => self.busy[&at].unbind().await,
            other => panic!("nobody knows how to {other}"),
        }
    }
}

/// A workspace that has bound nothing, and its administrator: with as few requests as it takes, for there are many.
async fn idle(world: &World, name: &str) -> Client {
    let root = world.client().at("/clusters/root");
    let body = json!({ "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": { "name": name } });
    root.create(WORKSPACES, &body).await.ok().unwrap();
    let made = root.get(&format!("{WORKSPACES}/{name}")).await.ok().unwrap();
    root.at(format!("/clusters/{}", made["spec"]["cluster"].as_str().unwrap()))
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

    /// Has tenants do something: idle ones `bind` and `unbind`, others `order` (bind, and have a cluster) and `leave`.
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
