//! Label and field selectors of lists and watches.
//!
//! Pure: text to a predicate. The grammar and the words are those of `k8s.io/apimachinery/pkg/labels` and `…/fields`.

use serde_json::Value;

use super::errors::Refusal;

/// One demand on a label.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Demand {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Missing(String),
}

/// What a list or watch is narrowed to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selector {
    labels: Vec<Demand>,
    /// `(JSON pointer, value, whether it must be equal)`.
    fields: Vec<(String, String, bool)>,
}

/// The fields of a kind that a selector may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fields {
    /// Name and namespace, as of every kind that is a custom resource.
    Plain,
    /// Name and namespace of a native kind that has no others, which says so when asked for another.
    Native,
    /// Name, namespace and these: what they are called, and where they are in what is stored.
    Own(&'static [(&'static str, &'static str)]),
}

impl Fields {
    /// Those of a native kind, as `pkg/apis/…/conversion.go` registers them.
    pub(crate) fn of_native(group: &str, plural: &str) -> Self {
        match (group, plural) {
            ("", "secrets") => Self::Own(&[("type", "/type")]),
            ("", "namespaces") => Self::Own(&[("status.phase", "/status/phase")]),
            ("", "events") => Self::Own(&[
                ("involvedObject.kind", "/involvedObject/kind"),
                ("involvedObject.namespace", "/involvedObject/namespace"),
                ("involvedObject.name", "/involvedObject/name"),
                ("involvedObject.uid", "/involvedObject/uid"),
                ("involvedObject.apiVersion", "/involvedObject/apiVersion"),
                ("involvedObject.resourceVersion", "/involvedObject/resourceVersion"),
                ("involvedObject.fieldPath", "/involvedObject/fieldPath"),
                ("reason", "/reason"),
                ("reportingComponent", "/reportingComponent"),
                ("source", "/source/component"),
                ("type", "/type"),
            ]),
            ("events.k8s.io", "events") => Self::Own(&[
                ("regarding.kind", "/involvedObject/kind"),
                ("regarding.namespace", "/involvedObject/namespace"),
                ("regarding.name", "/involvedObject/name"),
                ("regarding.uid", "/involvedObject/uid"),
                ("regarding.apiVersion", "/involvedObject/apiVersion"),
                ("regarding.resourceVersion", "/involvedObject/resourceVersion"),
                ("regarding.fieldPath", "/involvedObject/fieldPath"),
                ("reason", "/reason"),
                ("reportingController", "/reportingComponent"),
                ("type", "/type"),
            ]),
            _ => Self::Native,
        }
    }

    /// Where a field is.
    fn place(self, name: &str) -> Result<String, String> {
        let own: &[(&str, &str)] = if let Self::Own(own) = self { own } else { &[] };
        let found = [("metadata.name", "/metadata/name"), ("metadata.namespace", "/metadata/namespace")].iter().chain(own);
        let place = found.clone().find_map(|(known, place)| (*known == name).then(|| (*place).to_owned()));
        place.ok_or_else(|| match self {
            Self::Native => format!("{name:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""),
            Self::Plain | Self::Own(_) => format!("field label not supported: {name}"),
        })
    }
}

impl Selector {
    pub(crate) fn parse(labels: Option<&str>, fields: Option<&str>, known: Fields) -> Result<Self, Refusal> {
        Ok(Self {
            labels: labels.map_or(Ok(Vec::new()), parse_labels).map_err(Refusal::bad_request)?,
            fields: fields.map_or(Ok(Vec::new()), |text| parse_fields(text, known)).map_err(Refusal::bad_request)?,
        })
    }

    /// Demands one more label.
    pub(crate) fn with_label(mut self, key: &str, value: &str) -> Self {
        self.labels.push(Demand::In(key.to_owned(), vec![value.to_owned()]));
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether an object is selected.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        let metadata = &object["metadata"];
        let label = |key: &str| metadata["labels"][key].as_str();
        let holds = |demand: &Demand| match demand {
            Demand::In(key, values) => label(key).is_some_and(|value| values.iter().any(|wanted| wanted == value)),
            Demand::NotIn(key, values) => label(key).is_none_or(|value| values.iter().all(|wanted| wanted != value)),
            Demand::Exists(key) => label(key).is_some(),
            Demand::Missing(key) => label(key).is_none(),
        };
        let field = |place: &str| object.pointer(place).and_then(Value::as_str).unwrap_or_default();
        self.labels.iter().all(holds) && self.fields.iter().all(|(place, value, equal)| (field(place) == value) == *equal)
    }
}

fn parse_labels(text: &str) -> Result<Vec<Demand>, String> {
    let mut demands = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (demand, after) = demand(rest)?;
        demands.push(demand);
        let after = after.trim_start();
        rest = match after.strip_prefix(',') {
            Some(next) if next.trim().is_empty() => {
                return Err("unable to parse requirement: found '', expected: identifier after ','".into());
            }
            Some(next) => next.trim_start(),
            None if after.is_empty() => "",
            None => return Err(format!("unable to parse requirement: found '{}', expected: ',' or 'end of string'", word(after).0)),
        };
    }
    Ok(demands)
}

fn demand(text: &str) -> Result<(Demand, &str), String> {
    if let Some(rest) = text.strip_prefix('!') {
        let (key, rest) = key(rest.trim_start())?;
        return Ok((Demand::Missing(key), rest));
    }
    let (key, rest) = key(text)?;
    let rest = rest.trim_start();
    if rest.is_empty() || rest.starts_with(',') {
        return Ok((Demand::Exists(key), rest));
    }
    for operator in ["==", "!=", "="] {
        if let Some(rest) = rest.strip_prefix(operator) {
            let rest = rest.trim_start();
            if let Some(found) = rest.chars().next().filter(|first| "=!()<>".contains(*first)) {
                return Err(format!("unable to parse requirement: found '{found}', expected: identifier"));
            }
            let (value, rest) = word(rest);
            let values = vec![value.to_owned()];
            return Ok((if operator == "!=" { Demand::NotIn(key, values) } else { Demand::In(key, values) }, rest));
        }
    }
    let (operator, rest) = word(rest);
    let rest = rest.trim_start();
    let inside = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    match (operator, inside) {
        ("in" | "notin", Some((list, rest))) => {
            let values = list.split(',').map(|value| value.trim().to_owned()).collect();
            Ok((if operator == "in" { Demand::In(key, values) } else { Demand::NotIn(key, values) }, rest))
        }
        ("in" | "notin", None) => Err(format!("unable to parse requirement: found '{}' expected: '('", word(rest).0)),
        _ => Err(format!("unable to parse requirement: found '{operator}', expected: in, notin, =, ==, !=, gt, lt")),
    }
}

fn key(text: &str) -> Result<(String, &str), String> {
    let (key, rest) = word(text);
    if key.is_empty() {
        let found = text.chars().next().map_or_else(String::new, |found| found.to_string());
        return Err(format!("unable to parse requirement: found '{found}', expected: !, identifier, or 'end of string'"));
    }
    Ok((key.to_owned(), rest))
}

fn word(text: &str) -> (&str, &str) {
    let end = text.find(|letter: char| ",=!()<> ".contains(letter)).unwrap_or(text.len());
    text.split_at(end)
}

/// The one name that a selector of fields lets through, as an authorizer sees it: none where it could not be a part of a path.
pub(crate) fn name_asked_for(fields: &str) -> Option<&str> {
    let name = fields.split(',').find_map(|term| {
        let (field, value) = term.split_once('=').filter(|(field, _)| !field.ends_with('!'))?;
        (field == "metadata.name").then(|| value.strip_prefix('=').unwrap_or(value))
    })?;
    (!matches!(name, "" | "." | "..") && !name.contains(['/', '%'])).then_some(name)
}

fn parse_fields(text: &str, known: Fields) -> Result<Vec<(String, String, bool)>, String> {
    let mut fields = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (name, value, equal) = if let Some((name, value)) = part.split_once("!=") {
            (name, value, false)
        } else if let Some((name, value)) = part.split_once("==") {
            (name, value, true)
        } else if let Some((name, value)) = part.split_once('=') {
            (name, value, true)
        } else {
            return Err(format!("invalid selector: '{text}'; can't understand '{part}'"));
        };
        fields.push((known.place(name)?, value.to_owned(), equal));
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_selector_chooses_as_kubernetes_does() {
        let object = json!({"metadata": {"name": "a", "namespace": "n", "labels": {"tier": "web", "x/y": "1"}}});
        for (labels, fields, chosen) in [
            ("", "", true),
            ("tier=web", "", true),
            ("tier==web,x/y", "", true),
            ("tier!=web", "", false),
            ("other!=web", "", true),
            ("tier in (db, web)", "", true),
            ("tier notin (db,web)", "", false),
            ("!other", "", true),
            ("!tier", "", false),
            ("", "metadata.name=a,metadata.namespace!=m", true),
            ("", "metadata.name=b", false),
        ] {
            let selector = Selector::parse(Some(labels), Some(fields), Fields::Plain).unwrap();
            assert_eq!(selector.matches(&object), chosen, "{labels} {fields}");
        }
    }

    #[test]
    fn the_name_that_an_authorizer_sees_could_be_a_part_of_a_path() {
        for (fields, name) in [
            ("metadata.name=a", Some("a")),
            ("spec.x=y,metadata.name==a", Some("a")),
            ("metadata.name!=a", None),
            ("metadata.name=", None),
            ("metadata.name=..", None),
            ("metadata.name=a/b", None),
            ("", None),
        ] {
            assert_eq!(name_asked_for(fields), name, "{fields}");
        }
    }

    #[test]
    fn what_cannot_be_understood_is_refused_in_kubernetes_words() {
        for (labels, fields, words) in [
            ("a===", "", "unable to parse requirement: found '=', expected: identifier"),
            ("", "spec.size=small", "field label not supported: spec.size"),
        ] {
            let refusal = Selector::parse(Some(labels), Some(fields), Fields::Plain).unwrap_err();
            assert_eq!((refusal.code, refusal.message.as_str()), (400, words));
        }
    }
}
