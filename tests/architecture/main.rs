//! The rules of the code base that a compiler does not know: who may import whom, what is pure, and what documents must say.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod scan;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kcp_provider_runtime::api::reason::Reason;
use scan::{File, declared, folders, functions, split_tests, words};

/// The folders of the crate, and what each may import. Our own providers have no door that others have not.
const MAY_IMPORT: [(&str, &[&str]); 9] = [
    ("api", &[]),
    ("reconciler", &["api"]),
    ("runtime", &["api", "reconciler"]),
    ("kcm", &["api", "reconciler"]),
    ("kairon", &["api", "reconciler"]),
    ("embedded", &["api"]),
    ("kit", &["api", "reconciler", "runtime", "embedded"]),
    ("cli", &["api", "reconciler", "runtime", "kcm", "kairon", "embedded", "kit"]),
    ("bin", &["cli"]),
];

/// What a pure file must not name: clients, clocks, concurrency, dice, and maps whose order is not always the same.
const IMPURE: [&str; 20] = [
    "async",
    "await",
    "tokio",
    "futures",
    "hyper",
    "kube",
    "reqwest",
    "LivePort",
    "Clock",
    "Instant",
    "SystemTime",
    "rand",
    "random",
    "HashMap",
    "HashSet",
    "thread",
    "sleep",
    "PlatformClient",
    "WorkspaceClient",
    "WorkloadClient",
];

const MAX_FILE: usize = 450;
const MAX_FUNCTION: usize = 100;

fn text_of(path: &str) -> Option<String> {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).ok()
}

fn none(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

fn all() -> Vec<File> {
    let mut files = File::below("src");
    files.extend(File::below("tests"));
    files
}

fn imports(file: &File) -> Vec<String> {
    let known: Vec<&str> = MAY_IMPORT.iter().map(|(folder, _)| *folder).collect();
    let module = file.module();
    let Some((folder, allowed)) = MAY_IMPORT.iter().find(|(folder, _)| module.first().is_some_and(|first| first == folder)) else {
        return Vec::new();
    };
    let (always, _) = split_tests(&file.code);
    let code = if file.is_test() { "" } else { &always };
    let named = folders(code, module.len(), &known).into_iter().filter(|named| named != folder && !allowed.contains(&named.as_str()));
    named.map(|named| format!("{}: {folder} may not import {named}", file.path.display())).collect()
}

#[test]
fn folders_import_in_one_direction() {
    let files = File::below("src");
    none(&files.iter().flat_map(imports).collect::<Vec<_>>());
    let folders: BTreeSet<String> =
        files.iter().filter(|file| file.path.iter().count() > 2).filter_map(|file| file.module().first().cloned()).collect();
    let unknown = folders.iter().filter(|folder| !MAY_IMPORT.iter().any(|(known, _)| known == folder));
    none(&unknown.map(|folder| format!("src/{folder} has no rule of what it may import")).collect::<Vec<_>>());
}

#[test]
fn an_import_against_the_direction_is_found() {
    for (path, text, found) in [
        ("src/kcm/x.rs", "use crate::runtime::Runtime;", 1),
        ("src/kcm/x.rs", "use crate::{api, runtime::queue};", 1),
        ("src/kcm/mod.rs", "use super::runtime;", 1),
        ("src/api/x.rs", "//! [`crate::runtime`]\nuse crate::reconciler::Port;", 1),
        ("src/bin/x.rs", "kcp_provider_runtime::kcm::run()", 1),
        ("src/cli/x.rs", "use crate::{kcm, runtime};", 0),
        ("src/kcm/x.rs", "use crate::reconciler::Context; // crate::runtime", 0),
    ] {
        assert_eq!(imports(&File::new(path, text)).len(), found, "{path}: {text}");
    }
}

fn impurities(file: &File) -> Vec<String> {
    let (always, _) = split_tests(&file.code);
    // A kubeconfig is a value, though a client library's.
    let is_value = |at: usize, word: &str| always[at + word.len()..].starts_with("::config::");
    let is_now = |at: usize, word: &str| word == "now" && always[..at].ends_with("::");
    let named = words(&always).filter(|(at, word)| is_now(*at, word) || (IMPURE.contains(word) && !is_value(*at, word)));
    named.map(|(at, word)| format!("{}:{} is pure and names {word}", file.path.display(), always[..at].lines().count())).collect()
}

#[test]
fn pure_files_name_no_client_no_clock_and_no_chance() {
    let pure: Vec<File> = File::below("src").into_iter().filter(File::is_pure).collect();
    assert!(pure.len() > 20, "only {} files are pure: is the mark still read?", pure.len());
    none(&pure.iter().flat_map(impurities).collect::<Vec<_>>());
}

#[test]
fn a_file_says_that_it_is_pure_in_the_one_form_that_is_read() {
    let near = all().into_iter().filter(File::is_nearly_pure);
    none(&near.map(|file| format!("{} seems to be pure: write \"Pure:\" and what it is made of", file.path.display())).collect::<Vec<_>>());
}

#[test]
fn a_near_miss_of_the_mark_is_found() {
    for (text, found) in [
        ("//! A file.\n//!\n//! Pure.\n", true),
        ("//! Pure. Verbs are written out.\n", true),
        ("//! pure: constants\n", true),
        ("//! Pure - constants\n", true),
        ("//! Pure: constants\n", false),
        ("//! Purely a list.\n", false),
        ("//! A file.\n\n/// Pure.\nfn a() {}\n", false),
    ] {
        assert_eq!(File::new("src/x.rs", text).is_nearly_pure(), found, "{text}");
    }
}

#[test]
fn an_impurity_is_found() {
    for (text, found) in [
        ("async fn a() {}", 1),
        ("let now = jiff::Timestamp::now();", 1),
        ("use std::collections::HashMap;", 1),
        ("use kube::Client;", 1),
        ("use kube::config::Kubeconfig;", 0),
        ("fn a(now: Duration) -> Moment { clock::later(now) } // tokio", 0),
        ("#[cfg(test)]\nmod tests { use tokio::test; }", 0),
    ] {
        assert_eq!(impurities(&File::new("src/x.rs", text)).len(), found, "{text}");
    }
}

/// The file of a module that `file` declares.
fn candidates(file: &Path, name: &str) -> [PathBuf; 2] {
    let is_root = file.file_stem().is_some_and(|stem| stem == "mod" || stem == "lib" || stem == "main")
        || file.parent().is_some_and(|dir| dir == Path::new("tests") || dir.ends_with("bin"));
    let dir = if is_root { file.parent().unwrap_or(file).to_owned() } else { file.with_extension("") };
    [dir.join(format!("{name}.rs")), dir.join(name).join("mod.rs")]
}

fn unreachable(files: &[File]) -> Vec<String> {
    let by_path: BTreeMap<&Path, &File> = files.iter().map(|file| (file.path.as_path(), file)).collect();
    let is_root = |path: &Path| {
        let depth = path.iter().count();
        path == Path::new("src/lib.rs")
            || path.starts_with("src/bin")
            || (path.starts_with("tests") && (depth == 2 || (depth == 3 && path.ends_with("main.rs"))))
    };
    let mut reached: BTreeSet<&Path> = by_path.keys().copied().filter(|path| is_root(path)).collect();
    let mut open: Vec<&Path> = reached.iter().copied().collect();
    while let Some(path) = open.pop() {
        for name in declared(&by_path[path].code) {
            let found = candidates(path, &name).into_iter().find_map(|file| by_path.get_key_value(file.as_path()).map(|(path, _)| *path));
            open.extend(found.filter(|path| reached.insert(path)));
        }
    }
    by_path.keys().filter(|path| !reached.contains(*path)).map(|path| format!("{} is in no module", path.display())).collect()
}

#[test]
fn every_file_is_compiled() {
    none(&unreachable(&all()));
}

#[test]
fn a_file_that_no_module_declares_is_found() {
    let file = |path: &str, text: &str| File::new(path, text);
    let files = [
        file("src/lib.rs", "mod a;"),
        file("src/a/mod.rs", "mod b; // mod lost;"),
        file("src/a/b.rs", "mod c;"),
        file("src/a/b/c.rs", ""),
        file("src/a/lost.rs", ""),
        file("tests/x.rs", "mod help;"),
        file("tests/help.rs", ""),
        file("tests/y/main.rs", "mod z;"),
        file("tests/y/z.rs", ""),
        file("tests/y/lost.rs", ""),
    ];
    assert_eq!(unreachable(&files), ["src/a/lost.rs is in no module", "tests/y/lost.rs is in no module"]);
}

/// Modules of the real kcp's tests that are about what the embedded one has not: a process of its own, admission policies that are called, a real
/// workload cluster beside it.
const OF_THE_REAL_ONE: [&str; 3] = ["guard", "kube", "leash"];

#[test]
fn what_is_asked_of_the_real_kcp_is_asked_of_the_embedded_one() {
    let files = all();
    let modules = |path: &str| {
        let file = files.iter().find(|file| file.path == Path::new(path)).expect(path);
        declared(&file.code).into_iter().filter(|module| !OF_THE_REAL_ONE.contains(&module.as_str())).collect::<BTreeSet<_>>()
    };
    assert_eq!(modules("tests/kcp/main.rs"), modules("tests/kcp_embedded/main.rs"));
}

#[test]
fn files_and_functions_stay_readable() {
    let mut problems = Vec::new();
    for file in all() {
        let lines = file.text.lines().count();
        if lines > MAX_FILE && file.path.starts_with("src") {
            problems.push(format!("{} has {lines} lines", file.path.display()));
        }
        let long = functions(&file.code).into_iter().filter(|(_, lines)| *lines > MAX_FUNCTION);
        problems.extend(long.map(|(name, lines)| format!("{}: {name} has {lines} lines", file.path.display())));
    }
    none(&problems);
}

#[test]
fn nothing_is_left_for_later_and_no_test_sleeps() {
    let mut problems = Vec::new();
    for file in all() {
        let (_, tests) = split_tests(&file.code);
        let tests = if file.is_test() { &file.code } else { &tests };
        let all: Vec<(&str, &str)> = [("todo!", &file.code), ("unimplemented!", &file.code), ("#[ignore", &file.code), ("sleep(", tests)]
            .map(|(word, code)| (word, code.as_str()))
            .to_vec();
        let found = all.into_iter().filter(|(word, code)| code.contains(word));
        problems.extend(found.map(|(word, _)| format!("{} holds {word}", file.path.display())));
    }
    none(&problems);
}

#[test]
fn the_seam_names_no_type_of_a_client_library() {
    let mut problems = Vec::new();
    for file in File::below("src/reconciler") {
        let found = words(&file.code).any(|(_, word)| ["kube", "k8s_openapi", "hyper", "http"].contains(&word));
        problems.extend(found.then(|| format!("{} names a client library", file.path.display())));
    }
    none(&problems);
}

/// The backticked words in the columns called `reason` of all tables.
fn reasons(document: &str) -> BTreeSet<String> {
    let cells = |line: &str| line.trim().trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let mut column = None;
    let mut found = BTreeSet::new();
    for line in document.lines() {
        if !line.trim_start().starts_with('|') {
            column = None;
            continue;
        }
        let cells = cells(line);
        match column {
            None => column = Some(cells.iter().position(|cell| cell.eq_ignore_ascii_case("reason"))),
            Some(Some(column)) => {
                let cell = cells.get(column).map_or("", String::as_str);
                found.extend(cell.split('`').skip(1).step_by(2).map(str::to_owned));
            }
            Some(None) => {}
        }
    }
    found
}

#[test]
fn every_reason_is_documented_and_every_documented_one_exists() {
    let document = text_of("docs/CONDITIONS.md").expect("docs/CONDITIONS.md is there");
    let known: BTreeSet<String> = Reason::ALL.iter().map(ToString::to_string).collect();
    assert_eq!(reasons(&document), known);
}

#[test]
fn reasons_are_read_from_their_column() {
    let document = "`No`\n| status | Reason | means |\n|---|---|---|\n| `True` | `A`, `B` | `C` |\n\n| other |\n|---|\n| `D` |\n";
    assert_eq!(reasons(document), BTreeSet::from(["A".to_owned(), "B".to_owned()]));
}

/// The targets that a text asks `make` for: where `make` begins a command, in a script or in backticks.
fn asked(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in text.lines() {
        let commands = line.match_indices("make ").filter(|(at, _)| {
            let before = line[..*at].trim_end();
            before.is_empty() || before.ends_with(['`', '"', '$', '&', ';', '|'])
        });
        for (at, word) in commands {
            let target = line[at + word.len()..].split_whitespace().find(|word| !word.starts_with('-') && !word.contains('='));
            let target = target.map(|target| target.trim_end_matches(|c: char| !c.is_alphanumeric()).to_owned());
            found.extend(target.filter(|target| !target.is_empty()));
        }
    }
    found
}

#[test]
fn scripts_and_documents_ask_for_targets_that_exist() {
    let makefile = text_of("Makefile").expect("there is a Makefile");
    let targets: BTreeSet<&str> = makefile.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name).collect();
    let mut problems = Vec::new();
    for path in [".ci/run", "README.md", "docs/ARCHITECTURE.md", "docs/OPERATIONS.md", "docs/PROVIDERS.md"] {
        let Some(text) = text_of(path) else { continue };
        let asked = asked(&text);
        assert!(path != ".ci/run" || asked.contains("test"), "{asked:?}: is the script still read?");
        problems.extend(asked.iter().filter(|name| !targets.contains(name.as_str())).map(|name| format!("{path}: make has no {name}")));
    }
    none(&problems);
}

#[test]
fn targets_are_read_where_make_is_a_command() {
    let text = "step \"tests\" make -s test\n`make dev` runs it\nthat will make sense\n    make lint\nfoo && make X=1 doc";
    assert_eq!(asked(text), ["dev", "doc", "lint", "test"].map(str::to_owned).into());
}

/// The blocks of Rust in a document.
fn quoted(document: &str) -> Vec<&str> {
    document.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn documents_quote_code_that_is_compiled() {
    let code: Vec<File> = ["src", "examples", "tests"].into_iter().flat_map(File::below).collect();
    let mut problems = Vec::new();
    for path in ["README.md", "docs/ARCHITECTURE.md", "docs/PROVIDERS.md"] {
        let text = text_of(path).unwrap_or_else(|| panic!("{path} is not there"));
        let strange = quoted(&text).into_iter().filter(|block| !code.iter().any(|file| file.text.contains(block)));
        problems.extend(strange.map(|block| format!("{path} shows code that is in no file:\n{block}")));
    }
    none(&problems);
}

#[test]
fn blocks_of_rust_are_read_and_no_others() {
    assert_eq!(quoted("a\n```rust\nfn a() {}\n```\n```sh\nb\n```\n```rust\nfn c() {}\n```\n"), ["fn a() {}\n", "fn c() {}\n"]);
}

/// The words in backticks in the column called `how we stand`: tests, all of them.
fn tests_named(document: &str) -> Vec<&str> {
    let rows = document.lines().filter(|line| line.starts_with("| ") && line.split('|').count() == 5);
    rows.filter_map(|line| line.split('|').nth(3)).flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect()
}

/// Rows of tables of three columns: what stands in the first one and in the last one.
fn answers(document: &str) -> Vec<(&str, &str)> {
    let cells = |line| str::split(line, '|').map(str::trim).collect::<Vec<_>>();
    let rows = document.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| # ")).map(cells).filter(|row| row.len() == 5);
    rows.map(|row| (row[1], row[3])).collect()
}

/// What is wrong with such rows: each is answered by a test or by a sentence, and those of one letter are numbered in their order.
fn unanswered(document: &str) -> Vec<String> {
    let (mut problems, mut last) = (Vec::new(), BTreeMap::new());
    for (id, answer) in answers(document) {
        if !answer.contains('`') && answer.split(' ').count() < 4 {
            problems.push(format!("row {id} has neither a test nor a sentence"));
        }
        let (series, number) = id.split_at(id.find(|c: char| c.is_ascii_digit()).unwrap_or(id.len()));
        let expected = last.entry(series).and_modify(|last| *last += 1).or_insert(1);
        if !number.is_empty() && number != expected.to_string() {
            problems.push(format!("row {id} should be {series}{expected}"));
        }
    }
    problems
}

/// Whether this is a test of that name: an attribute that makes one stands before it.
fn holds_test(file: &File, name: &str) -> bool {
    let lines: Vec<&str> = file.text.lines().map(str::trim).collect();
    let begins = |line: &str| [format!("fn {name}("), format!("async fn {name}(")].iter().any(|start| line.starts_with(start.as_str()));
    let made = |at: usize| lines[..at].iter().rev().take_while(|line| line.starts_with("#[")).any(|line| line.contains("test"));
    // Those of `proptest!` have their attribute inside of the macro, too.
    lines.iter().enumerate().any(|(at, line)| begins(line) && made(at))
}

#[test]
fn every_report_has_an_answer_and_every_test_that_answers_one_exists() {
    let document = text_of("docs/RELIABILITY.md").expect("docs/RELIABILITY.md is there");
    let answered: Vec<usize> = document.lines().filter_map(|line| line.strip_prefix("| ")?.split(' ').next()?.parse().ok()).collect();
    assert_eq!(answered, (1..=45).collect::<Vec<_>>());
    none(&unanswered(&document));
    let files = all();
    let named = tests_named(&document);
    assert!(named.len() > 40, "only {} tests are named: is the table still read?", named.len());
    let strange = named.iter().filter(|name| !files.iter().any(|file| holds_test(file, name)));
    none(&strange.map(|name| format!("docs/RELIABILITY.md names {name}, which is no test")).collect::<Vec<_>>());
    let reports = files.iter().filter(|file| file.path.starts_with("tests/reports"));
    let tests = reports.flat_map(|file| functions(&file.code).into_iter().map(move |(name, _)| (file, name)));
    let unnamed = tests.filter(|(file, name)| holds_test(file, name) && !named.contains(&name.as_str()));
    none(&unnamed.map(|(_, name)| format!("docs/RELIABILITY.md does not name {name}")).collect::<Vec<_>>());
}

#[test]
fn tests_are_read_from_their_column_and_only_what_is_a_test_counts() {
    let document = "`no`\n| number | report | how we stand |\n|---|---|---|\n| 1 | `a` | `b`, and `c` |\n| 2 | d | e |\n";
    assert_eq!(tests_named(document), ["b", "c"]);
    assert!(
        unanswered("| # | report | how we stand |\n|---|---|---|\n| 1 | a | `b` |\n| p1 | a | it cannot happen here |\n| a | b | `c` |")
            .is_empty()
    );
    assert_eq!(
        unanswered("| 1 | a | not yet |\n| p2 | a | `b` |\n"),
        ["row 1 has neither a test nor a sentence", "row p2 should be p1"].map(str::to_owned)
    );
    let file = File::new("tests/x.rs", "#[tokio::test]\nasync fn a() {}\nfn b() {}\n#[test]\n#[should_panic]\nfn c() {}\n");
    assert_eq!(["a", "b", "c", "d"].map(|name| holds_test(&file, name)), [true, false, true, false]);
}
