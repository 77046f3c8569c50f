//! Which representation a client wants.
//!
//! Pure: from the header `Accept` to a decision, with the words of `k8s.io/apiserver/pkg/endpoints/handlers`. We make JSON only: who
//! accepts nothing but YAML or protobuf is refused.

use crate::embedded::errors::Refusal;

const ACCEPTED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
const ACCEPTED_STREAMS: &str = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";

/// Whether a client accepts none of the media types that there are, whatever the form.
pub fn is_foreign(accept: &str) -> bool {
    !accept.trim().is_empty() && !accepts(accept, &["*", "json", "yaml", "vnd.kubernetes.protobuf"])
}

fn accepts(accept: &str, subtypes: &[&str]) -> bool {
    let known = |clause: Clause<'_>| match clause.type_ {
        "*" => subtypes.contains(&"*"),
        type_ => type_ == "application" && subtypes.contains(&clause.subtype),
    };
    accept.split(',').filter_map(Clause::parse).any(known)
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One object.
    One,
    /// A list.
    List,
    /// A watch.
    Watch,
}

/// How the answer looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Representation {
    /// The objects themselves.
    Object,
    /// A table.
    Table {
        /// In `meta.k8s.io/v1` rather than `v1beta1`.
        v1: bool,
    },
    /// Metadata: `PartialObjectMetadata`, and for a list `PartialObjectMetadataList`.
    Partial {
        /// In `meta.k8s.io/v1` rather than `v1beta1`.
        v1: bool,
    },
}

/// Decides by the header, empty when it lacks.
///
/// # Errors
/// 406 when we can make nothing of what is accepted, and for metadata of one object where a list is asked for; 500, as the real server has
/// it, for the other way round.
pub fn negotiate(accept: &str, shape: Shape) -> Result<Representation, Refusal> {
    if accept.trim().is_empty() {
        return Ok(Representation::Object);
    }
    let mut clauses: Vec<Clause<'_>> = accept.split(',').filter_map(Clause::parse).collect();
    // The sort is stable: what is preferred equally keeps the client's order, but a wildcard comes after a name.
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality).then_with(|| a.wildcards().cmp(&b.wildcards())));
    let wanted = clauses.iter().find_map(Clause::wanted);
    match (wanted, shape) {
        (Some(Wanted::Object), _) => Ok(Representation::Object),
        (Some(Wanted::Table { v1 }), _) => Ok(Representation::Table { v1 }),
        (Some(Wanted::One { v1 }), Shape::One | Shape::Watch) | (Some(Wanted::List { v1 }), Shape::List) => {
            Ok(Representation::Partial { v1 })
        }
        (Some(Wanted::One { .. }), Shape::List) => {
            let words = "you requested PartialObjectMetadata, but the requested object is a list (*unstructured.UnstructuredList)";
            Err(Refusal { message: words.into(), ..Refusal::not_acceptable("") })
        }
        (Some(Wanted::List { .. }), Shape::One | Shape::Watch) => Err(Refusal::unreasoned(500, "content is not a list")),
        (None, Shape::Watch) if accepts(accept, &["yaml"]) => Err(Refusal::not_acceptable(ACCEPTED_STREAMS)),
        (None, _) => Err(Refusal::not_acceptable(ACCEPTED)),
    }
}

#[derive(Clone, Copy)]
enum Wanted {
    Object,
    Table { v1: bool },
    One { v1: bool },
    List { v1: bool },
}

/// One accepted media type.
struct Clause<'a> {
    type_: &'a str,
    subtype: &'a str,
    quality: f64,
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let media = parts.next()?;
        let (type_, subtype) = match media.split_once('/') {
            Some((type_, subtype)) => (type_.trim(), subtype.trim()),
            None if media == "*" => ("*", "*"),
            None => return None,
        };
        let mut parameters: Vec<_> = parts.filter_map(|part| part.split_once('=')).map(|(key, value)| (key.trim(), value.trim())).collect();
        let quality = parameters.iter().find(|(key, _)| *key == "q").and_then(|(_, value)| value.parse().ok()).unwrap_or(1.0);
        parameters.retain(|(key, _)| *key != "q");
        Some(Self { type_, subtype, quality, parameters })
    }

    fn wildcards(&self) -> (bool, bool) {
        (self.type_ == "*", self.subtype == "*")
    }

    fn parameter(&self, name: &str) -> &'a str {
        self.parameters.iter().rev().find(|(key, _)| *key == name).map_or("", |(_, value)| value)
    }

    /// What this clause asks for, if it is something that we make.
    fn wanted(&self) -> Option<Wanted> {
        let json = matches!((self.type_, self.subtype), ("application", "json" | "*") | ("*", "*"));
        let known_stream = matches!(self.parameter("stream"), "" | "watch") && self.parameter("sv").is_empty();
        if !json || !known_stream {
            return None;
        }
        let (kind, group, version) = (self.parameter("as"), self.parameter("g"), self.parameter("v"));
        if (kind, group, version) == ("", "", "") {
            return Some(Wanted::Object);
        }
        let v1 = match (group, version) {
            ("meta.k8s.io", "v1") => true,
            ("meta.k8s.io", "v1beta1") => false,
            _ => return None,
        };
        match kind {
            "Table" => Some(Wanted::Table { v1 }),
            "PartialObjectMetadata" => Some(Wanted::One { v1 }),
            "PartialObjectMetadataList" => Some(Wanted::List { v1 }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_gets_the_best_that_we_make() {
        let table = Representation::Table { v1: true };
        for (accept, shape, representation, why) in [
            ("", Shape::One, Representation::Object, "no header"),
            ("application/json, */*", Shape::One, Representation::Object, "kubectl, of discovery"),
            (
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
                Shape::List,
                table,
                "kubectl get",
            ),
            ("application/json;as=Table;v=v1beta1;g=meta.k8s.io", Shape::List, Representation::Table { v1: false }, "an old kubectl"),
            ("application/vnd.kubernetes.protobuf,application/json", Shape::One, Representation::Object, "a typed Go client"),
            (
                "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json",
                Shape::One,
                Representation::Object,
                "no protobuf",
            ),
            (
                "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io,application/json",
                Shape::One,
                Representation::Object,
                "unknown",
            ),
            ("text/html;q=0.9,*/*;q=0.8", Shape::One, Representation::Object, "a browser"),
            ("application/json;q=0.1,application/json;as=Table;v=v1;g=meta.k8s.io", Shape::One, table, "the better quality"),
            ("*/*,application/json;as=Table;v=v1;g=meta.k8s.io", Shape::One, table, "the more specific"),
            ("application/json;stream=watch", Shape::Watch, Representation::Object, "a stream"),
            (
                "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
                Shape::Watch,
                Representation::Partial { v1: true },
                "metadata",
            ),
            (
                "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
                Shape::List,
                Representation::Partial { v1: true },
                "metadata",
            ),
        ] {
            assert_eq!(negotiate(accept, shape).unwrap(), representation, "{why}");
        }
    }

    #[test]
    fn what_we_cannot_make_is_refused_in_the_words_of_the_real_server() {
        let all = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf";
        for (accept, shape, code, message) in [
            ("text/html", Shape::One, 406, all),
            ("text/html", Shape::Watch, 406, all),
            ("application/vnd.kubernetes.protobuf", Shape::List, 406, all),
            ("application/json;as=Table;v=v2;g=meta.k8s.io", Shape::List, 406, all),
            ("application/json;as=Foo;v=v1;g=meta.k8s.io", Shape::List, 406, all),
            (
                "application/yaml",
                Shape::Watch,
                406,
                "only the following media types are accepted: \
                 application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch",
            ),
            (
                "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
                Shape::List,
                406,
                "you requested PartialObjectMetadata, but the requested object is a list (*unstructured.UnstructuredList)",
            ),
            ("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", Shape::One, 500, "content is not a list"),
        ] {
            let refusal = negotiate(accept, shape).unwrap_err();
            assert_eq!((refusal.code, refusal.message.as_str()), (code, message), "{accept}");
        }
    }
}
