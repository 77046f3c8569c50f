//! The `fieldPath` of a rule: `.spec.replicas`, `['a-b'].c` (apiextensions-apiserver `cel.ValidFieldPath`).
//!
//! Pure: text to text.

use super::node::Node;

/// The path as `field.Path` writes it, without a dot in front; `None` if it does not lead through the schema.
pub(super) fn normalized(node: &Node, path: &str) -> Option<String> {
    let (mut node, mut rest, mut out) = (node, path, String::new());
    while !rest.is_empty() {
        let name;
        if let Some(after) = rest.strip_prefix("['") {
            let end = closing(after)?;
            name = unescaped(&after[..end])?;
            rest = after[end + 1..].strip_prefix(']')?;
        } else {
            let after = rest.strip_prefix('.')?;
            let end = after.find(['.', '[', ']']).unwrap_or(after.len());
            name = after[..end].to_owned();
            rest = &after[end..];
        }
        if name.is_empty() {
            return None;
        }
        if node.properties.is_empty() {
            node = node.additional.as_deref().filter(|_| node.rules.additional_flag.is_none())?;
            out = format!("{out}[{name}]");
        } else {
            node = node.properties.get(&name)?;
            out = if out.is_empty() { name } else { format!("{out}.{name}") };
        }
    }
    Some(out)
}

/// Where the quote ends, past escaped ones.
fn closing(text: &str) -> Option<usize> {
    text.match_indices('\'').map(|(at, _)| at).find(|at| !text[..*at].ends_with('\\'))
}

fn unescaped(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        out.push(match letter {
            '\\' => match letters.next()? {
                'a' => '\u{7}',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\u{b}',
                same @ ('\'' | '\\') => same,
                _ => return None,
            },
            plain => plain,
        });
    }
    Some(out)
}
