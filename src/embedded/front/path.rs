//! The part of `JSONPath` that columns use.
//!
//! Pure: finds values in a value. As in `k8s.io/client-go/util/jsonpath` with missing keys allowed: a path that leads nowhere finds
//! nothing.

use serde_json::Value;

/// One step of a path.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// `.name`, `['name']`.
    Field(String),
    /// `[0]`, `[-1]`: from the end.
    Index(i64),
    /// `[*]`, `.*`.
    All,
    /// `[?(@.type=="Ready")]`; without a comparison the path must find something.
    Filter(Vec<Step>, Option<(bool, Value)>),
}

/// What `path` (`.status.conditions[?(@.type=="Ready")].reason`) finds first. What is no path of this kind finds nothing.
pub fn first<'a>(path: &str, object: &'a Value) -> Option<&'a Value> {
    find(&parse(path)?, object).first().copied()
}

fn find<'a>(steps: &[Step], object: &'a Value) -> Vec<&'a Value> {
    steps.iter().fold(vec![object], |found, step| found.into_iter().flat_map(|value| walk(step, value)).collect())
}

fn walk<'a>(step: &Step, value: &'a Value) -> Vec<&'a Value> {
    match (step, value) {
        (Step::Field(name), _) => value.get(name).into_iter().collect(),
        (Step::Index(index), Value::Array(list)) => {
            let at = if *index < 0 { i64::try_from(list.len()).unwrap_or(i64::MAX) + index } else { *index };
            usize::try_from(at).ok().and_then(|at| list.get(at)).into_iter().collect()
        }
        (Step::All, Value::Array(list)) => list.iter().collect(),
        (Step::All, Value::Object(map)) => map.values().collect(),
        (Step::Filter(path, wanted), Value::Array(list)) => list.iter().filter(|entry| holds(path, wanted.as_ref(), entry)).collect(),
        _ => Vec::new(),
    }
}

fn holds(path: &[Step], wanted: Option<&(bool, Value)>, entry: &Value) -> bool {
    let found = find(path, entry);
    match wanted {
        None => !found.is_empty(),
        Some((equal, wanted)) => found.first().is_some_and(|found| (*found == wanted) == *equal),
    }
}

fn parse(path: &str) -> Option<Vec<Step>> {
    let (mut rest, mut steps) = (path, Vec::new());
    while !rest.is_empty() {
        let (step, after) = match rest.strip_prefix('[') {
            Some(inner) => bracket(inner)?,
            None => field(rest.strip_prefix('.').unwrap_or(rest))?,
        };
        steps.extend(step);
        rest = after;
    }
    Some(steps)
}

/// A name up to the next step; `\.` is a dot of the name. Before a bracket there may be no name.
fn field(text: &str) -> Option<(Option<Step>, &str)> {
    let (mut name, mut characters) = (String::new(), text.char_indices());
    let mut end = text.len();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => name.push(characters.next()?.1),
            '.' | '[' => {
                end = at;
                break;
            }
            other => name.push(other),
        }
    }
    let step = match name.as_str() {
        "" if text.starts_with('.') => return None,
        "" => None,
        "*" => Some(Step::All),
        _ => Some(Step::Field(name)),
    };
    Some((step, &text[end..]))
}

/// What stands between brackets, and what comes after them.
fn bracket(inner: &str) -> Option<(Option<Step>, &str)> {
    if let Some(filter) = inner.strip_prefix("?(") {
        let end = filter.find(")]")?;
        return Some((Some(condition(filter[..end].trim())?), &filter[end + 2..]));
    }
    if let Some(quote) = inner.chars().next().filter(|first| matches!(first, '\'' | '"')) {
        let end = inner[1..].find(quote)? + 1;
        let after = inner[end + 1..].strip_prefix(']')?;
        return Some((Some(Step::Field(inner[1..end].replace("\\.", "."))), after));
    }
    let end = inner.find(']')?;
    let step = if &inner[..end] == "*" { Step::All } else { Step::Index(inner[..end].trim().parse().ok()?) };
    Some((Some(step), &inner[end + 1..]))
}

fn condition(text: &str) -> Option<Step> {
    let path = |text: &str| parse(text.trim().strip_prefix('@')?);
    let sides = ["==", "!="].into_iter().find_map(|sign| text.split_once(sign).map(|sides| (sign == "==", sides)));
    let Some((equal, (left, right))) = sides else {
        return Some(Step::Filter(path(text)?, None));
    };
    Some(Step::Filter(path(left)?, Some((equal, literal(right.trim())?))))
}

/// `"text"`, `'text'`, a number, `true`.
fn literal(text: &str) -> Option<Value> {
    match text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')) {
        Some(text) => Some(text.into()),
        None => serde_json::from_str(text).ok(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_find_their_values() {
        let object = json!({
            "spec": {"n": 3, "list": [1, 2, 3], "nothing": null},
            "metadata": {"labels": {"a.b/c": "x"}},
            "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "n": 5, "on": true}]},
        });
        for (path, found, why) in [
            (".spec.n", json!(3), "a field"),
            ("spec.n", json!(3), "the leading dot may lack"),
            (".spec.list[0]", json!(1), "an entry"),
            (".spec.list[-1]", json!(3), "an entry from the end"),
            (".spec.list[*]", json!(1), "the first of all"),
            (".spec.list", json!([1, 2, 3]), "a list"),
            (r".metadata.labels.a\.b/c", json!("x"), "a dot in a name"),
            (".metadata.labels['a.b/c']", json!("x"), "a name in quotes"),
            (r".metadata.labels['a\.b/c']", json!("x"), "both"),
            (r#".status.conditions[?(@.type=="Ready")].status"#, json!("True"), "an entry by a field"),
            (".status.conditions[?(@.type == 'Other')].n", json!(5), "other quotes and spaces"),
            (".status.conditions[?(@.type != 'Ready')].n", json!(5), "by what it is not"),
            (".status.conditions[?(@.n)].type", json!("Other"), "by what is there"),
            (".status.conditions[?(@.on==true)].type", json!("Other"), "by a boolean"),
        ] {
            assert_eq!(first(path, &object), Some(&found), "{why}: {path}");
        }
        for path in
            [".spec.x", ".spec.list[9]", ".spec.list[-9]", ".spec.n.x", ".status.conditions[?(@.type=='X')].n", ".spec[", "..n", ".spec[x]"]
        {
            assert_eq!(first(path, &object), None, "{path}");
        }
        assert_eq!(first(".spec.nothing", &object), Some(&Value::Null));
    }
}
