//! Reads documents: YAML with several of them, JSON values one after another, and lists of either.
//!
//! A document is known by its file and its number, as its author counts them, so that every complaint can name both.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

/// The most that one file may hold. A catalog of the largest size that the schemas admit is a few MiB; this keeps a wrong file
/// (an archive, a disk image, an endless pipe) from filling the memory.
const MAX_FILE: u64 = 64 << 20;

/// One object, and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Document {
    pub(super) place: Place,
    pub(super) value: Value,
}

/// Where an object stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    file: Arc<str>,
    /// From 1; `None` for what concerns the whole file.
    document: Option<usize>,
    /// The line where the document begins, from 1.
    line: usize,
    /// The item of a list, such as `items[2]`; empty outside of lists.
    item: String,
}

/// What is wrong with a file: the file, the document, the field, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {field}{}{problem}", if field.is_empty() { "" } else { ": " })]
pub(super) struct BadInput {
    place: Place,
    field: String,
    problem: String,
}

impl Place {
    fn file(path: &Path) -> Self {
        let file = if is_stdin(path) { "stdin".into() } else { path.display().to_string().into() };
        Self { file, document: None, line: 0, item: String::new() }
    }

    /// A problem here; `field` is a path such as `spec.nodePools[0].name`, empty for the object as a whole.
    pub(super) fn bad(&self, field: &str, problem: impl Into<String>) -> BadInput {
        BadInput { place: self.clone(), field: self.field(field), problem: printable(&problem.into()) }
    }

    /// The field's path from the root of the document.
    pub(super) fn field(&self, field: &str) -> String {
        let dot = if self.item.is_empty() || field.is_empty() { "" } else { "." };
        printable(&format!("{}{dot}{field}", self.item))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(&self.file))?;
        match self.document {
            Some(number) => write!(f, ": document {number} (line {})", self.line),
            None => Ok(()),
        }
    }
}

/// What a terminal may be shown of text from a file.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Reads every document of the files, in their order; `-` is standard input. Blocks.
pub(super) fn read(paths: &[PathBuf]) -> Result<Vec<Document>, Vec<BadInput>> {
    let (mut documents, mut problems) = (Vec::new(), Vec::new());
    for (at, path) in paths.iter().enumerate() {
        let place = Place::file(path);
        let text = if is_stdin(path) && paths[..at].contains(path) {
            Err(place.bad("", "standard input can be read once only"))
        } else {
            text(path).map_err(|error| place.bad("", format!("cannot be read: {error}")))
        };
        match text {
            Ok(text) => split(&place, text.strip_prefix('\u{feff}').unwrap_or(&text), &mut documents, &mut problems),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(documents) } else { Err(problems) }
}

fn text(path: &Path) -> io::Result<String> {
    let source: Box<dyn Read> = if is_stdin(path) { Box::new(io::stdin().lock()) } else { Box::new(File::open(path)?) };
    if path.is_dir() {
        return Err(io::Error::other("it is a folder; name the files in it, such as folder/*.yaml"));
    }
    let mut bytes = Vec::new();
    if source.take(MAX_FILE + 1).read_to_end(&mut bytes)? as u64 > MAX_FILE {
        return Err(io::Error::other(format!("it is larger than {} MiB", MAX_FILE >> 20)));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8 text"))
}

/// The documents of one text. JSON values may follow one another without a marker, as `kubectl get -o json` writes them.
fn split(place: &Place, text: &str, documents: &mut Vec<Document>, problems: &mut Vec<BadInput>) {
    if text.trim_start().starts_with(['{', '[']) {
        match json(place, text) {
            Ok(found) => return documents.extend(found),
            // What begins with a brace may be YAML in its flow style, unless the file says that it is not.
            Err(problem) if Path::new(&*place.file).extension().is_some_and(|extension| extension == "json") => {
                return problems.push(problem);
            }
            Err(_) => {}
        }
    }
    for (number, (line, chunk)) in chunks(text).into_iter().enumerate() {
        let place = Place { document: Some(number + 1), line, ..place.clone() };
        match yaml(&place, chunk) {
            // A document that holds nothing counts, as its author counts it, and says nothing.
            Ok(Value::Null) => {}
            Ok(value) => documents.push(Document { place, value }),
            Err(problem) => problems.push(problem),
        }
    }
}

fn json(place: &Place, text: &str) -> Result<Vec<Document>, BadInput> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let mut documents = Vec::new();
    loop {
        let rest = &text[values.byte_offset()..];
        let start = text.len() - rest.trim_start().len();
        let line = 1 + text[..start].matches('\n').count();
        let place = Place { document: Some(documents.len() + 1), line, ..place.clone() };
        match values.next() {
            None => return Ok(documents),
            Some(Ok(value)) => documents.push(Document { place, value }),
            Some(Err(error)) => return Err(place.bad("", format!("is not JSON: {error}"))),
        }
    }
}

fn yaml(place: &Place, chunk: &str) -> Result<Value, BadInput> {
    serde_saphyr::from_str(chunk).map_err(|error| {
        let at = error.location().and_then(|location| usize::try_from(location.line()).ok()).filter(|line| *line > 0);
        let at = at.map_or_else(String::new, |line| format!(" at line {}", place.line + line - 1));
        let plain = error.without_snippet().render();
        place.bad("", format!("is not YAML{at}: {}", plain.lines().next().unwrap_or_default()))
    })
}

/// The documents of a YAML stream, each with the number of its first line.
///
/// Every line that begins with the marker `---` begins a document; what stands before the first one is a document unless it is blank.
/// A marker cannot be part of a value: YAML forbids it at the beginning of a line even inside quotes.
fn chunks(text: &str) -> Vec<(usize, &str)> {
    let mut starts = vec![(1, 0)];
    let mut offset = 0;
    for (at, line) in text.split_inclusive('\n').enumerate() {
        if line.strip_prefix("---").is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace)) {
            starts.push((at + 1, offset));
        }
        offset += line.len();
    }
    let ends = starts.iter().skip(1).map(|(_, start)| *start).chain([text.len()]).collect::<Vec<_>>();
    let chunks = starts.iter().zip(ends).map(|((line, start), end)| (*line, &text[*start..end]));
    chunks.enumerate().filter(|(at, (_, chunk))| *at > 0 || !is_blank(chunk)).map(|(_, chunk)| chunk).collect()
}

/// Whether the text holds nothing but comments and directives.
fn is_blank(text: &str) -> bool {
    text.lines().map(str::trim).all(|line| line.is_empty() || line.starts_with(['#', '%']))
}

/// An object, or the items of a list; `is_list` says whether an `apiVersion` and `kind` are those of a list of known objects.
///
/// An item of a typed list (`KubernetesClusterList`) need not say its own `apiVersion` and `kind`.
pub(super) fn flatten(document: Document, is_list: impl Fn(&str, &str) -> bool) -> Result<Vec<Document>, BadInput> {
    let Document { place, mut value } = document;
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if !is_list(&api_version, &kind) {
        return Ok(vec![Document { place, value }]);
    }
    if value["metadata"]["continue"].as_str().is_some_and(|token| !token.is_empty()) {
        return Err(place.bad("metadata.continue", "the list is one page of several; an incomplete catalog would decide otherwise"));
    }
    let items = match value.get_mut("items").map_or(Value::Null, Value::take) {
        Value::Array(items) => items,
        Value::Null => Vec::new(),
        _ => return Err(place.bad("items", "must be a list")),
    };
    let items = items.into_iter().enumerate().map(|(at, mut item)| {
        if let (Some(fields), Some(item_kind)) = (item.as_object_mut(), kind.strip_suffix("List").filter(|kind| !kind.is_empty())) {
            fields.entry("apiVersion").or_insert_with(|| api_version.as_str().into());
            fields.entry("kind").or_insert_with(|| item_kind.into());
        }
        Document { place: Place { item: format!("items[{at}]"), ..place.clone() }, value: item }
    });
    Ok(items.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(text: &str) -> Vec<(usize, String)> {
        let (mut documents, mut problems) = (Vec::new(), Vec::new());
        split(&Place::file(Path::new("x.yaml")), text, &mut documents, &mut problems);
        assert_eq!(problems, []);
        documents.into_iter().map(|document| (document.place.document.unwrap(), document.value.to_string())).collect()
    }

    #[test]
    fn documents_are_counted_as_their_author_counts_them() {
        for (why, text, expected) in [
            ("no marker is needed for one", "a: 1\n", vec![(1, r#"{"a":1}"#)]),
            (
                "a comment before the first marker is no document",
                "# head\n---\na: 1\n---\nb: 2\n",
                vec![(1, r#"{"a":1}"#), (2, r#"{"b":2}"#)],
            ),
            ("an empty document in between counts", "a: 1\n---\n# nothing\n---\nb: 2\n---\n", vec![(1, r#"{"a":1}"#), (3, r#"{"b":2}"#)]),
            ("a marker may carry a comment", "--- # first\na: 1\n", vec![(1, r#"{"a":1}"#)]),
            ("dashes inside a value are none", "a: |\n  ---\n  x\nb: ----\n", vec![(1, r#"{"a":"---\nx\n","b":"----"}"#)]),
            ("JSON values follow one another", "{\"a\": 1}\n{\"b\":\n2}", vec![(1, r#"{"a":1}"#), (2, r#"{"b":2}"#)]),
            ("flow style is YAML", "{a: 1}\n---\n{b: 2}\n", vec![(1, r#"{"a":1}"#), (2, r#"{"b":2}"#)]),
            ("nothing is nothing", "\n", vec![]),
        ] {
            let expected: Vec<_> = expected.into_iter().map(|(number, value)| (number, value.to_owned())).collect();
            assert_eq!(starts(text), expected, "{why}");
        }
    }
}
