use super::*;
use crate::cli::servers::KCP;

/// A server of one file that needs no download, so that the real `go` is exercised in a second.
const TINY: Server = Server { name: "tiny", package: "tiny", go_mod: "module tiny\n\ngo 1.20\n", go_sum: "", ..KCP };

#[test]
fn versions_compare_by_number() {
    for (why, found, needed, usable) in [
        ("the same", "go1.24.0", "1.24.0", true),
        ("two digits are not text", "go1.9", "1.24", false),
        ("a later minor", "go1.26.8", "1.24.0", true),
        ("a release candidate counts as new", "go1.24rc1", "1.24", true),
        ("a development build counts as new", "devel +abc", "1.24", true),
        ("one minor too old", "go1.23.12", "1.24.0", false),
    ] {
        assert_eq!(go_version(found) >= go_version(needed), usable, "{why}: {found}");
    }
}

#[test]
fn the_needed_version_is_the_one_of_the_pins() {
    assert_eq!(needed_go(KCP.go_mod), "1.24.0");
}

#[test]
fn a_missing_go_is_explained() {
    let error = BuildError::NoGo { name: "kcp", problem: "Go is missing".into(), needed: "1.24.0".into(), variable: "KCP_BINARY" };
    let text = error.to_string();
    for part in ["Go is missing", "Go 1.24.0 or newer", "PATH", INSTALLED_GO, "KCP_BINARY", "`make test-fast` needs only Rust"] {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

#[tokio::test]
async fn a_second_builder_takes_what_the_first_built() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("pins/tiny");
    std::fs::create_dir_all(target.parent().unwrap()).unwrap();
    let first = lock(&TINY, &target.with_extension("lock")).await.unwrap();
    let second = tokio::spawn({
        let target = target.clone();
        async move { build(&TINY, &target).await }
    });
    // Were it not held by the lock, the second builder would run Go here, and fail: the module has no source.
    tokio::task::yield_now().await;
    std::fs::write(&target, "built by the first").unwrap();
    drop(first);
    assert_eq!(second.await.unwrap().unwrap(), target);
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "built by the first");
}

#[test]
fn leftovers_of_killed_builds_go_and_the_binary_stays() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["tiny", "tiny.17.partial", "tiny.lock"] {
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    remove_leftovers(folder.path());
    let mut left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["tiny", "tiny.lock"]);
}
