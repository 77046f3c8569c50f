//! What a run does: operations that name everything by symbols, so that the same plan runs on any server and can lose parts.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use serde_json::Value;

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Who {
    /// A member of `system:kcp:admin`.
    Admin,
    /// The user `tenant`: what it may do is up to each workspace.
    Tenant,
    /// The user `nobody`, who may do nothing.
    Nobody,
    /// The user `runtime`, whom the provider lets use the export's content.
    Runtime,
    /// A token that an earlier answer had: remembered under this name.
    Bearer(String),
    /// No credentials at all.
    Anonymous,
    /// Credentials that are nobody's.
    Impostor,
}

/// One request. Path and body may have `⟦symbols⟧`, which each side replaces by what they are there.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) who: Who,
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) content_type: &'static str,
    pub(crate) accept: &'static str,
    pub(crate) body: Option<String>,
    /// Under which name the answer's `resourceVersion`, `continue` or token is kept for later symbols.
    pub(crate) remember: Option<String>,
}

pub(crate) const JSON: &str = "application/json";
pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";

impl Call {
    pub(crate) fn new(who: Who, method: &'static str, path: impl Into<String>) -> Self {
        Self { who, method, path: path.into(), content_type: JSON, accept: JSON, body: None, remember: None }
    }

    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Who::Admin, "GET", path)
    }

    pub(crate) fn body(mut self, body: &Value) -> Self {
        self.body = Some(body.to_string());
        self
    }

    pub(crate) fn text(mut self, body: impl Into<String>) -> Self {
        self.body = Some(body.into());
        self
    }

    pub(crate) fn content_type(mut self, content_type: &'static str) -> Self {
        self.content_type = content_type;
        self
    }

    pub(crate) fn accept(mut self, accept: &'static str) -> Self {
        self.accept = accept;
        self
    }

    pub(crate) fn by(mut self, who: Who) -> Self {
        self.who = who;
        self
    }

    pub(crate) fn remember(mut self, name: impl Into<String>) -> Self {
        self.remember = Some(name.into());
        self
    }

    /// The direct path of the one object that this is about, if it is of a test kind.
    fn object(&self) -> Option<String> {
        let path = self.path.split('?').next().unwrap_or_default();
        let path = &path[path.rfind("/clusters/⟦")?..];
        let parts: Vec<&str> = path.split('/').collect();
        let plural = parts.iter().position(|part| ["widgets", "gadgets", "boards", "crates", "configmaps"].contains(part))?;
        let name = match parts.get(plural + 1) {
            Some(name) => (*name).to_owned(),
            None => serde_json::from_str::<Value>(self.body.as_ref()?).ok()?["metadata"]["name"].as_str()?.to_owned(),
        };
        Some(format!("{}/{name}", parts[..=plural].join("/")))
    }

    /// Another parameter.
    pub(crate) fn with(mut self, parameter: &str) -> Self {
        self.path.push(if self.path.contains('?') { '&' } else { '?' });
        self.path.push_str(parameter);
        self
    }
}

/// What an answer must be like before it is compared.
#[derive(Clone, Debug)]
pub(crate) enum Holds {
    /// The code is this.
    Code(u16),
    /// The value at a JSON pointer is this.
    Is(&'static str, Value),
    /// There is something at a JSON pointer.
    Some(&'static str),
    /// All of these.
    All(Vec<Holds>),
}

impl Holds {
    pub(crate) fn check(&self, code: u16, body: &Value) -> bool {
        match self {
            Self::Code(expected) => code == *expected,
            Self::Is(pointer, expected) => body.pointer(pointer).unwrap_or(&Value::Null) == expected,
            Self::Some(pointer) => body.pointer(pointer).is_some_and(|value| !value.is_null()),
            Self::All(all) => all.iter().all(|each| each.check(code, body)),
        }
    }
}

/// A part of an operation: one answer that is compared.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Asked once, compared at once: the settling window is nothing.
    Call(Call),
    /// Asked once; a difference is looked at again for this long, since caches may lag.
    Late(Call, Duration),
    /// A watch, until nothing came for a while; a difference is looked at again with more patience.
    Watch(Call),
    /// All pages of a list, as one list and the sizes of the pages.
    Pages(Call),
    /// Asked until it holds on both sides and the answers are the same, or until this long is over.
    Until(Call, Holds, Duration),
    /// Nothing for this long: what has no answer that shows its end.
    Pause(Duration),
}

impl Step {
    fn call(&self) -> Option<&Call> {
        match self {
            Self::Call(call) | Self::Late(call, _) | Self::Watch(call) | Self::Pages(call) | Self::Until(call, ..) => Some(call),
            Self::Pause(_) => None,
        }
    }
}

/// A few requests that belong together.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    /// What the report counts it as.
    pub(crate) kind: &'static str,
    pub(crate) steps: Vec<Step>,
}

impl Operation {
    pub(crate) fn one(kind: &'static str, call: Call) -> Self {
        Self { kind, steps: vec![Step::Call(call)] }
    }

    /// The direct paths of the objects of the test kinds that this writes or reads by name.
    pub(crate) fn objects(&self) -> BTreeSet<String> {
        self.steps.iter().filter_map(|step| step.call()?.object()).collect()
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.who != Who::Admin {
            write!(f, "{:?}: ", self.who)?;
        }
        write!(f, "{} {}", self.method, self.path)?;
        if self.accept != JSON {
            write!(f, " accept {}", self.accept)?;
        }
        if let Some(body) = &self.body {
            if self.content_type != JSON {
                write!(f, " {}", self.content_type)?;
            }
            write!(f, " {body}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(call) => write!(f, "{call}"),
            Self::Late(call, within) => write!(f, "{call} (within {} s)", within.as_secs()),
            Self::Watch(call) => write!(f, "{call} (until quiet)"),
            Self::Pages(call) => write!(f, "{call} (all pages)"),
            Self::Until(call, holds, within) => write!(f, "{call} until {holds:?} within {} s", within.as_secs()),
            Self::Pause(pause) => write!(f, "wait {} ms", pause.as_millis()),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.steps.iter().enumerate() {
            write!(f, "{}{step}", if index == 0 { format!("[{}] ", self.kind) } else { "\n      ".to_owned() })?;
        }
        Ok(())
    }
}
