//! Reading Rust as text: what is code, what is a test, which modules a file declares, and how long its functions are.

use std::path::{Path, PathBuf};

/// One file of the package.
pub(crate) struct File {
    /// From the package's root, for example `src/kcm/plan.rs`.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    /// The same text, of which comments and the insides of strings are blanked; lines and columns are as they were.
    pub(crate) code: String,
}

impl File {
    pub(crate) fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { path: path.into(), code: code(&text), text }
    }

    /// All Rust files below a folder of the package, in order.
    pub(crate) fn below(folder: &str) -> Vec<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut found = Vec::new();
        let mut open = vec![root.join(folder)];
        while let Some(dir) = open.pop() {
            for entry in std::fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display())) {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    open.push(path);
                } else if path.extension().is_some_and(|ending| ending == "rs") {
                    let text = std::fs::read_to_string(&path).unwrap();
                    found.push(Self::new(path.strip_prefix(root).unwrap(), text));
                }
            }
        }
        found.sort_by(|one, other| one.path.cmp(&other.path));
        assert!(!found.is_empty(), "there is Rust below {folder}");
        found
    }

    /// The module path in its crate: `[kcm, plan]`; empty for a crate's root.
    pub(crate) fn module(&self) -> Vec<String> {
        let mut parts: Vec<String> = self.path.with_extension("").iter().skip(1).map(|part| part.to_string_lossy().into_owned()).collect();
        if parts.last().is_some_and(|last| last == "mod" || (parts.len() == 1 && last == "lib")) {
            parts.pop();
        }
        parts
    }

    /// Whether all of it is compiled for tests only, by the names this project gives such files.
    pub(crate) fn is_test(&self) -> bool {
        let in_folder = self.path.iter().any(|part| part == "tests");
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy();
        in_folder || stem == "tests" || stem.ends_with("_tests")
    }

    /// Whether its first doc block says that it is pure.
    pub(crate) fn is_pure(&self) -> bool {
        self.marks().any(|line| line.starts_with("Pure:"))
    }

    /// Whether its first doc block seems to say so, in a form that is not read: `Pure.`, `pure:`, `Pure -`.
    pub(crate) fn is_nearly_pure(&self) -> bool {
        let near = |line: &str| line.get(..4).is_some_and(|word| word.eq_ignore_ascii_case("pure")) && !line.starts_with("Pure:");
        self.marks().any(|line| near(line) && !line[4..].starts_with(is_word))
    }

    /// The lines of the first doc block, without their marks.
    fn marks(&self) -> impl Iterator<Item = &str> {
        self.text.lines().take_while(|line| line.starts_with("//!")).map(|line| line.trim_start_matches("//!").trim_start())
    }
}

/// Blanks comments and the insides of string and character literals.
pub(crate) fn code(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out: Vec<char> = chars.clone();
    let mut at = 0;
    while at < chars.len() {
        let end = match (chars[at], chars.get(at + 1)) {
            ('/', Some('/')) => position(&chars, at, |rest| rest[0] == '\n'),
            ('/', Some('*')) => block_comment(&chars, at),
            ('"', _) => string(&chars, at),
            ('r' | 'b' | 'c', _) if !at.checked_sub(1).is_some_and(|before| is_word(chars[before])) => raw_string(&chars, at).unwrap_or(at),
            ('\'', _) => character(&chars, at),
            _ => at,
        };
        for blank in &mut out[at..end] {
            if *blank != '\n' {
                *blank = ' ';
            }
        }
        at = end.max(at + 1);
    }
    out.into_iter().collect()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn position(chars: &[char], from: usize, is: impl Fn(&[char]) -> bool) -> usize {
    (from..chars.len()).find(|at| is(&chars[*at..])).unwrap_or(chars.len())
}

fn block_comment(chars: &[char], from: usize) -> usize {
    let (mut depth, mut at) = (0, from);
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at.min(chars.len())
}

fn string(chars: &[char], from: usize) -> usize {
    let mut at = from + 1;
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

/// The end of `r"…"`, `r#"…"#`, `br"…"` that begins here, if one does.
fn raw_string(chars: &[char], from: usize) -> Option<usize> {
    let start = position(chars, from, |rest| !matches!(rest[0], 'r' | 'b' | 'c'));
    if start - from > 2 || !chars[from..start].contains(&'r') {
        return None;
    }
    let quote = position(chars, start, |rest| rest[0] != '#');
    if chars.get(quote) != Some(&'"') {
        return None;
    }
    let hashes = quote - start;
    let close = |rest: &[char]| rest[0] == '"' && rest.len() > hashes && rest[1..=hashes].iter().all(|c| *c == '#');
    Some((position(chars, quote + 1, close) + 1 + hashes).min(chars.len()))
}

/// The end of a character literal that begins here; a lifetime is none.
fn character(chars: &[char], from: usize) -> usize {
    match (chars.get(from + 1), chars.get(from + 2)) {
        (Some('\\'), _) => (position(chars, from + 3, |rest| rest[0] == '\'') + 1).min(chars.len()),
        (Some(_), Some('\'')) => from + 3,
        _ => from,
    }
}

/// Splits code into what is compiled always and the bodies of its `#[cfg(test)]` items; lines stay where they were.
pub(crate) fn split_tests(code: &str) -> (String, String) {
    let (mut always, mut tests) = (code.to_owned(), String::new());
    while let Some(start) = always.find("#[cfg(test)]") {
        let rest = &always[start..];
        let end = match (rest.find('{'), rest.find(';')) {
            (Some(open), semicolon) if semicolon.is_none_or(|semicolon| open < semicolon) => start + closing(rest, open) + 1,
            (_, Some(semicolon)) => start + semicolon + 1,
            (_, None) => always.len(),
        };
        tests.push_str(&always[start..end]);
        let blank: String = always[start..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
        always.replace_range(start..end, &blank);
    }
    (always, tests)
}

/// Where the brace closes that opens at `open`.
fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, c) in code.char_indices().skip_while(|(at, _)| *at < open) {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => return at,
            '}' => depth -= 1,
            _ => {}
        }
    }
    code.len().saturating_sub(1)
}

/// The words of code with where they begin; `::` and everything else lies between them.
pub(crate) fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let starts = code.char_indices().filter(|(at, c)| is_word(*c) && !code[..*at].chars().next_back().is_some_and(is_word));
    starts.map(|(at, _)| {
        let rest = &code[at..];
        (at, &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())])
    })
}

/// The modules that a file declares with `mod name;`.
pub(crate) fn declared(code: &str) -> Vec<String> {
    let all: Vec<_> = words(code).collect();
    let pairs = all.windows(2).filter(|pair| pair[0].1 == "mod");
    let declared = pairs.filter(|pair| {
        let (at, name) = pair[1];
        code[at + name.len()..].trim_start().starts_with(';')
    });
    declared.map(|pair| pair[1].1.to_owned()).collect()
}

/// Every function with a body: its name and how many lines it has from `fn` to its closing brace.
pub(crate) fn functions(code: &str) -> Vec<(String, usize)> {
    let all: Vec<_> = words(code).collect();
    let mut found = Vec::new();
    for pair in all.windows(2).filter(|pair| pair[0].1 == "fn") {
        let ((start, _), (named, name)) = (pair[0], pair[1]);
        // Not a type such as fn(&T) -> bool, and not a declaration without a body.
        let is_named = code[start + 2..named].trim().is_empty();
        let rest = &code[start..];
        if let Some(open) = body(rest).filter(|_| is_named) {
            found.push((name.to_owned(), rest[..=closing(rest, open)].lines().count()));
        }
    }
    found
}

/// Where the body of the function opens with which this begins; the semicolon of an array's length is none that ends it.
fn body(function: &str) -> Option<usize> {
    let mut depth = 0_i32;
    for (at, c) in function.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            '{' if depth == 0 => return Some(at),
            ';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// The folders of the crate that code names: `crate::x`, `crate::{x, y}`, and `super::` chains that leave the folder they are in.
pub(crate) fn folders(code: &str, depth: usize, folders: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut note = |path: &str| {
        let first: String = path.trim_start().chars().take_while(|c| is_word(*c)).collect();
        found.extend(folders.contains(&first.as_str()).then_some(first));
    };
    let all: Vec<_> = words(code).collect();
    for (nth, (at, word)) in all.iter().enumerate() {
        let supers = all[nth..].iter().take_while(|(_, word)| *word == "super").count();
        let from_root = *word == "crate" || *word == "kcp_provider_runtime";
        let is_chain = *word == "super" && !code[..*at].trim_end().ends_with("super::") && supers >= depth;
        let last = if is_chain { all[nth + supers - 1] } else { (*at, *word) };
        let Some(path) = code[last.0 + last.1.len()..].strip_prefix("::").filter(|_| from_root || is_chain) else { continue };
        match path.trim_start().strip_prefix('{') {
            Some(group) => top_level(group).into_iter().for_each(&mut note),
            None => note(path),
        }
    }
    found
}

/// The members of a `{…}` group of a `use`, without those of groups inside it.
fn top_level(group: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                found.push(&group[start..at]);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(&group[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_are_no_code() {
        let text =
            "a // tokio\nb /* x /* tokio */ tokio */ c \"tokio \\\" tokio\" r#\"tokio \" tokio\"# b\"tokio\" '\"' d<'tokio_free> '\\'' e";
        let code = code(text);
        assert_eq!(code.len(), text.len());
        assert!(!words(&code).any(|(_, word)| word == "tokio"), "{code}");
        for kept in ["a", "b", "c", "d", "e", "tokio_free"] {
            assert!(words(&code).any(|(_, word)| word == kept), "{kept} is code in {code}");
        }
    }

    #[test]
    fn test_items_are_told_from_the_rest() {
        let (always, tests) =
            split_tests("fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() { {} }\n}\nfn c() {}\n#[cfg(test)]\nmod d;\nfn e() {}");
        assert!(["a", "c", "e"].iter().all(|name| always.contains(&format!("fn {name}"))) && !always.contains("fn b"), "{always}");
        assert!(tests.contains("fn b") && tests.contains("mod d") && !tests.contains("fn c"), "{tests}");
        assert_eq!(always.lines().count(), 9);
    }

    #[test]
    fn modules_are_those_with_a_semicolon() {
        assert_eq!(declared("mod a;\npub(crate) mod b ;\nmod c { fn modest() {} }\n"), ["a", "b"]);
    }

    #[test]
    fn functions_are_measured_from_fn_to_brace() {
        let code = "trait T { fn none(&self); }\nfn one(a: [u8; 2]) { x }\nfn three() {\n if a { b }\n}\ntype F = fn(u8) -> u8;";
        assert_eq!(functions(code), [("one".to_owned(), 1), ("three".to_owned(), 3)]);
    }

    #[test]
    fn imports_are_found_however_they_are_written() {
        let known = ["api", "runtime", "kcm"];
        for (code, depth, wanted) in [
            ("use crate::runtime::queue;", 2, vec!["runtime"]),
            ("let x: crate::kcm::Plan;", 2, vec!["kcm"]),
            ("use crate::{api::{runtime, x}, kcm};", 2, vec!["api", "kcm"]),
            ("use super::super::runtime;", 2, vec!["runtime"]),
            ("use super::runtime;", 2, vec![]),
            ("use super::runtime;", 1, vec!["runtime"]),
            ("pub(crate) mod runtime;", 1, vec![]),
            ("use kcp_provider_runtime::runtime::X;", 0, vec!["runtime"]),
        ] {
            assert_eq!(folders(code, depth, &known), wanted, "{code} at depth {depth}");
        }
    }

    #[test]
    fn a_pure_file_says_so_in_its_first_doc_block() {
        for (text, pure) in [
            ("//! Pure: x", true),
            ("//! What it is.\n//!\n//! Pure: values.\n", true),
            ("//! Not so.\n\n//! Pure: too late\n", false),
            ("// Pure: no doc", false),
            ("//! A reconcile is not Pure: it writes", false),
        ] {
            assert_eq!(File::new("src/x.rs", text).is_pure(), pure, "{text}");
        }
    }

    #[test]
    fn a_file_knows_its_module() {
        for (path, module) in
            [("src/lib.rs", ""), ("src/kcm/mod.rs", "kcm"), ("src/kcm/plan.rs", "kcm/plan"), ("src/bin/kcm.rs", "bin/kcm")]
        {
            assert_eq!(File::new(path, "").module().join("/"), module, "{path}");
        }
    }
}
