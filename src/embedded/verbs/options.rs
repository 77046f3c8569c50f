//! What a query says about a write or a list.
//!
//! Pure: text to values, with the words of `k8s.io/apimachinery/pkg/apis/meta/v1/validation`.

use crate::embedded::errors::{About, Cause, Refusal};
use crate::embedded::request::Query;

/// What becomes of fields that a schema does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    Ignore,
    Warn,
    Strict,
}

/// How to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WriteOptions {
    pub(super) dry_run: bool,
    pub(super) unknown: Unknown,
    pub(super) force: bool,
    /// Whether it is an apply that makes what is not there: it may name a version.
    pub(super) applied: bool,
}

/// Reads the options of a create, update or patch; `kind` is `CreateOptions`, `UpdateOptions` or `PatchOptions`.
pub(super) fn write(query: &Query, kind: &str, apply: bool) -> Result<WriteOptions, Refusal> {
    let mut causes = Vec::new();
    if apply && query.get("fieldManager").is_none() {
        causes.push(Cause::new("FieldValueRequired", "fieldManager", "Required value: is required for apply patch"));
    }
    if let Some(manager) = query.get("fieldManager") {
        if manager.len() > 128 {
            causes.push(Cause::new("FieldValueTooLong", "fieldManager", "Too long: may not be more than 128 bytes"));
        }
        if let Some((at, letter)) = manager.chars().enumerate().find(|(_, letter)| letter.is_control()) {
            let message = format!("Invalid value: {manager:?}: invalid character U+{:04X} (at position {at})", u32::from(letter));
            causes.push(Cause::new("FieldValueInvalid", "fieldManager", message));
        }
    }
    if !apply && kind == "PatchOptions" && query.has("force") {
        causes.push(Cause::new("FieldValueForbidden", "force", "Forbidden: may not be specified for non-apply patch"));
    }
    dry_run(query, &mut causes);
    let unknown = match query.get("fieldValidation") {
        None | Some("Warn") => Unknown::Warn,
        Some("Ignore") => Unknown::Ignore,
        Some("Strict") => Unknown::Strict,
        Some(other) => {
            let message = format!("Unsupported value: {other:?}: supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"");
            causes.push(Cause::new("FieldValueNotSupported", "fieldValidation", message));
            Unknown::Warn
        }
    };
    refuse(kind, &causes)?;
    Ok(WriteOptions { dry_run: query.get("dryRun").is_some(), unknown, force: query.is("force"), applied: false })
}

pub(super) fn dry_run(query: &Query, causes: &mut Vec<Cause>) {
    if let Some(other) = query.get("dryRun").filter(|value| *value != "All") {
        let message = format!("Unsupported value: []string{{{other:?}}}: supported values: \"All\"");
        causes.push(Cause::new("FieldValueNotSupported", "dryRun", message));
    }
}

/// 422 of the options themselves.
pub(super) fn refuse(kind: &str, causes: &[Cause]) -> Result<(), Refusal> {
    if causes.is_empty() { Ok(()) } else { Err(Refusal::invalid(About { group: "meta.k8s.io", kind, name: "" }, causes)) }
}

/// At which version to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// The latest.
    Latest,
    /// Any that is not older.
    NotOlderThan(u64),
    /// This one.
    Exact(u64),
}

/// How to list or watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListOptions {
    pub(super) at: At,
    pub(super) limit: Option<usize>,
    pub(super) continue_: Option<String>,
    pub(super) bookmarks: bool,
    pub(super) initial_events: bool,
    /// Seconds.
    pub(super) timeout: Option<u64>,
}

pub(super) fn list(query: &Query, watch: bool) -> Result<ListOptions, Refusal> {
    let number = |name: &str| match query.get(name) {
        None => Ok(None),
        Some(text) => {
            text.parse::<i64>().map(Some).map_err(|_| Refusal::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax")))
        }
    };
    let limit = number("limit")?.and_then(|limit| usize::try_from(limit).ok()).filter(|limit| *limit > 0);
    let timeout = number("timeoutSeconds")?.and_then(|seconds| u64::try_from(seconds).ok());
    let (version, exactness) = (query.get("resourceVersion"), query.get("resourceVersionMatch"));
    let initial_events = query.has("sendInitialEvents");
    let mut causes = Vec::new();
    let forbidden = |message: &str| Cause::new("FieldValueForbidden", "resourceVersionMatch", format!("Forbidden: {message}"));
    if initial_events {
        if !watch {
            causes.push(Cause::new("FieldValueForbidden", "sendInitialEvents", "Forbidden: sendInitialEvents is forbidden for list"));
        } else if exactness != Some("NotOlderThan") {
            causes.push(forbidden("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"));
        }
    } else if watch && exactness.is_some() {
        causes.push(forbidden("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"));
    } else if let Some(exactness) = exactness {
        match (exactness, version) {
            (_, None) => causes.push(forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided")),
            ("Exact", Some("0")) => causes.push(forbidden("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"")),
            ("Exact" | "NotOlderThan", _) => {}
            (other, _) => {
                let message = format!("Unsupported value: {other:?}: supported values: \"Exact\", \"NotOlderThan\", \"\"");
                causes.push(Cause::new("FieldValueNotSupported", "resourceVersionMatch", message));
            }
        }
        if query.get("continue").is_some() {
            causes.push(forbidden("resourceVersionMatch is forbidden when continue is provided"));
        }
    }
    refuse("ListOptions", &causes)?;
    let version = match version {
        None => None,
        Some(text) => Some(text.parse::<u64>().map_err(|_| {
            let why = format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax");
            Refusal::unreasoned(500, why)
        })?),
    };
    if query.get("continue").is_some() && version.is_some_and(|version| version > 0) {
        return Err(Refusal::bad_request("specifying resource version is not allowed when using continue"));
    }
    let at = match (version, exactness) {
        (None, _) => At::Latest,
        (Some(version), Some("Exact")) => At::Exact(version),
        // A page of an older version is that version: the watch cache cannot cut it.
        (Some(version), None) if limit.is_some() && version > 0 && !watch => At::Exact(version),
        (Some(version), _) => At::NotOlderThan(version),
    };
    Ok(ListOptions {
        at,
        limit,
        continue_: query.get("continue").map(ToOwned::to_owned),
        bookmarks: query.is("allowWatchBookmarks"),
        initial_events: query.is("sendInitialEvents"),
        timeout,
    })
}
