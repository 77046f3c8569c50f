//! Real servers: which versions are pinned, where their binaries are, and how they get there.
//!
//! A server is a Go module of ours with nothing but pins; its `go.mod` and `go.sum` are part of this program, so that it builds the
//! server wherever it runs. Binaries are cached under a hash of both files: a changed pin is another folder, never a stale binary.

mod build;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use sha2::{Digest as _, Sha256};

pub use build::BuildError;

/// The real kcp this package is tested with.
pub const KCP: Server = Server {
    name: "kcp",
    package: "github.com/kcp-dev/kcp/cmd/kcp",
    go_mod: include_str!("../../../tests/servers/kcp/go.mod"),
    go_sum: include_str!("../../../tests/servers/kcp/go.sum"),
    linker_flags: "",
    override_variable: "KCP_BINARY",
    known_build_time: "5 minutes on 2 idle cores, 9 on busy ones",
};

/// What kube-apiserver keeps its objects in.
pub const ETCD: Server = Server {
    name: "etcd",
    package: "go.etcd.io/etcd/server/v3",
    go_mod: include_str!("../../../tests/servers/etcd/go.mod"),
    go_sum: include_str!("../../../tests/servers/etcd/go.sum"),
    linker_flags: "",
    override_variable: "ETCD_BINARY",
    known_build_time: "40 seconds",
};

/// The real Kubernetes that stands for a workload cluster in tests.
pub const KUBE_APISERVER: Server = Server {
    name: "kube-apiserver",
    package: "k8s.io/kubernetes/cmd/kube-apiserver",
    go_mod: include_str!("../../../tests/servers/kube-apiserver/go.mod"),
    go_sum: include_str!("../../../tests/servers/kube-apiserver/go.sum"),
    // Else it answers that it is v0.0.0, and clients take it for older than they are.
    linker_flags: "-X k8s.io/component-base/version.gitVersion=v1.37.2",
    override_variable: "KUBE_APISERVER_BINARY",
    known_build_time: "9 minutes on 2 busy cores",
};

/// Every server that is pinned. `dev --kcp` and most tests need the first alone, and each caller builds no other than it needs.
pub const ALL: &[Server] = &[KCP, ETCD, KUBE_APISERVER];

/// Which servers to build.
#[derive(Debug, clap::Args)]
pub struct ServersArgs {
    /// Only these, in place of all
    #[arg(value_name = "NAME", value_parser = PossibleValuesParser::new(ALL.iter().map(|server| server.name)))]
    names: Vec<String>,
}

impl ServersArgs {
    /// Provides them. What is there already costs nothing.
    pub async fn run(&self) -> Result<(), BuildError> {
        for server in ALL.iter().filter(|server| self.names.is_empty() || self.names.iter().any(|name| name == server.name)) {
            let path = server.binary().await?;
            build::say(&format!("{} is at {}", server.name, path.display()));
        }
        Ok(())
    }
}

/// A server that is built from a pinned Go module.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    /// File name of the binary, and what messages call it.
    pub name: &'static str,
    /// The Go package with its `main`.
    pub package: &'static str,
    /// The whole `go.mod` that pins it.
    pub go_mod: &'static str,
    /// The whole `go.sum`: with it no checksum database needs to be reached.
    pub go_sum: &'static str,
    /// What `go build` is told with `-ldflags`, such as a version that releases are stamped with; mostly nothing.
    pub linker_flags: &'static str,
    /// Environment variable that names a binary to use instead.
    pub override_variable: &'static str,
    /// How long a cold build was measured to take, for people who wait.
    pub known_build_time: &'static str,
}

impl Server {
    /// The path of a binary that is ready to run: the one the override variable names, the cached one, or one built now.
    ///
    /// A build takes minutes, once, and reports on standard error every 15 s. Two callers, of any process, build once. May be
    /// cancelled: the build ends, and the next call starts anew.
    pub async fn binary(&self) -> Result<PathBuf, BuildError> {
        match self.locate(&|name| std::env::var_os(name))? {
            Located::Ready(path) => Ok(path),
            Located::Missing(path) => build::build(self, &path).await,
        }
    }

    /// First 16 hexadecimal digits of the SHA-256 of `go.mod` followed by `go.sum` and the linker's flags.
    pub fn pin_hash(&self) -> String {
        let digest = Sha256::new().chain_update(self.go_mod).chain_update(self.go_sum).chain_update(self.linker_flags).finalize();
        let first = digest.iter().take(8).fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
        format!("{first:016x}")
    }

    fn locate(&self, environment: &Environment<'_>) -> Result<Located, BuildError> {
        if let Some(path) = environment(self.override_variable).filter(|value| !value.is_empty()).map(PathBuf::from) {
            return if path.is_file() {
                Ok(Located::Ready(path))
            } else {
                Err(BuildError::OverrideMissing { variable: self.override_variable, path })
            };
        }
        let path = cache_root(environment)?.join(self.pin_hash()).join(self.name);
        Ok(if path.is_file() { Located::Ready(path) } else { Located::Missing(path) })
    }
}

/// A lookup of environment variables; a parameter, since a test cannot set the environment of a process with threads.
type Environment<'a> = dyn Fn(&str) -> Option<OsString> + Sync + 'a;

#[derive(Debug, PartialEq, Eq)]
enum Located {
    Ready(PathBuf),
    /// Where the binary belongs once it is built.
    Missing(PathBuf),
}

/// `$XDG_CACHE_HOME`, else `$HOME/.cache`, and in it the folder of this package.
fn cache_root(environment: &Environment<'_>) -> Result<PathBuf, BuildError> {
    // The XDG base directory specification says that a relative path is to be ignored.
    let stated = environment("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || environment("HOME").filter(|value| !value.is_empty()).map(|home| Path::new(&home).join(".cache"));
    let base = stated.or_else(home).ok_or(BuildError::NoCache)?;
    Ok(base.join("kcp-provider-runtime"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn located(variables: &[(&str, &str)]) -> Result<Located, BuildError> {
        KCP.locate(&|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value)))
    }

    #[test]
    fn the_binary_is_cached_under_the_hash_of_its_pins() {
        let in_folder = |folder: &str| Located::Missing(format!("{folder}/kcp-provider-runtime/{}/kcp", KCP.pin_hash()).into());
        for (why, variables, expected) in [
            ("the stated cache wins", &[("XDG_CACHE_HOME", "/x"), ("HOME", "/h")][..], in_folder("/x")),
            ("the home's cache is the default", &[("HOME", "/h")], in_folder("/h/.cache")),
            ("a relative cache is no cache", &[("XDG_CACHE_HOME", "x"), ("HOME", "/h")], in_folder("/h/.cache")),
            ("an empty override is none", &[("KCP_BINARY", ""), ("HOME", "/h")], in_folder("/h/.cache")),
        ] {
            assert_eq!(located(variables).unwrap(), expected, "{why}");
        }
    }

    #[test]
    fn another_pin_is_another_folder() {
        assert_eq!(KCP.pin_hash().len(), 16);
        let other_module = Server { go_mod: "module other", ..KCP };
        let other_sums = Server { go_sum: "", ..KCP };
        assert_ne!(KCP.pin_hash(), other_module.pin_hash());
        assert_ne!(KCP.pin_hash(), other_sums.pin_hash());
        let otherwise_linked = Server { linker_flags: "-s", ..KCP };
        assert_ne!(KCP.pin_hash(), otherwise_linked.pin_hash());
    }

    #[test]
    fn kubernetes_says_that_it_is_the_version_that_is_pinned() {
        let version = KUBE_APISERVER.linker_flags.rsplit('=').next().unwrap();
        assert!(KUBE_APISERVER.go_mod.contains(&format!("require k8s.io/kubernetes {version}\n")), "{version}");
    }

    #[test]
    fn no_two_servers_share_a_folder_or_an_override() {
        let of_all = |of: fn(&Server) -> String| ALL.iter().map(of).collect::<BTreeSet<_>>().len();
        assert_eq!(of_all(Server::pin_hash), ALL.len());
        assert_eq!(of_all(|server| server.override_variable.to_owned()), ALL.len());
    }

    #[test]
    fn an_override_is_used_as_it_is_and_must_exist() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        assert_eq!(located(&[("KCP_BINARY", path), ("HOME", "/h")]).unwrap(), Located::Ready(path.into()));
        let error = located(&[("KCP_BINARY", "/nowhere/kcp"), ("HOME", "/h")]).unwrap_err();
        assert_eq!(error.to_string(), "KCP_BINARY names /nowhere/kcp, which is not a file");
    }

    #[test]
    fn without_a_home_the_message_says_what_to_set() {
        let error = located(&[]).unwrap_err().to_string();
        assert!(error.contains("HOME") && error.contains("XDG_CACHE_HOME"), "{error}");
    }
}
