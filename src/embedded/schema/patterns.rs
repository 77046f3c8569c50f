//! Regular expressions of Go, for a library that reads some signs otherwise.
//!
//! Pure: text to text.

use regex::{Error, Regex};

use super::node::Pattern;

/// Compiles a pattern as Go's `regexp` reads it.
pub(super) fn compile(text: &str) -> Result<Pattern, Error> {
    Ok(Pattern { text: text.to_owned(), regex: Regex::new(&translated(text))? })
}

/// In Go, `\d`, `\w` and `\s` are ASCII, and `[`, `&&`, `--` and `~~` within a class are plain letters.
fn translated(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut letters = text.chars().peekable();
    let mut in_class = false;
    let mut at_start = false;
    while let Some(letter) = letters.next() {
        let was_start = std::mem::take(&mut at_start);
        match letter {
            '\\' => {
                let Some(escaped) = letters.next() else {
                    out.push('\\');
                    break;
                };
                match class_of(escaped) {
                    Some(class) if in_class && !escaped.is_uppercase() => out.push_str(&class[1..class.len() - 1]),
                    Some(class) => out.push_str(class),
                    None => out.extend(['\\', escaped]),
                }
            }
            '[' if !in_class => {
                in_class = true;
                at_start = true;
                out.push('[');
                if letters.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
            }
            '[' if letters.peek() == Some(&':') => {
                out.push('[');
                for inner in letters.by_ref() {
                    out.push(inner);
                    if inner == ']' {
                        break;
                    }
                }
            }
            ']' if was_start => out.push_str("\\]"),
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            '[' | '&' | '~' if in_class => out.extend(['\\', letter]),
            other => out.push(other),
        }
    }
    out
}

fn class_of(escaped: char) -> Option<&'static str> {
    Some(match escaped {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        'w' => "[0-9A-Za-z_]",
        'W' => "[^0-9A-Za-z_]",
        's' => "[\\t\\n\\x0C\\r ]",
        'S' => "[^\\t\\n\\x0C\\r ]",
        'b' => "(?-u:\\b)",
        'z' => "\\z",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_means_what_it_means_in_go() {
        for (pattern, text, matches) in [
            (r"^\d+$", "12", true),
            (r"^\d+$", "١", false),
            (r"^[\d.]+$", "1.2", true),
            (r"^[a[]+$", "a[", true),
            (r"^[^\s]+$", "a b", false),
            (r"^[]a]+$", "]a", true),
            (r"^[[:alpha:]_]+$", "ab_", true),
            (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "a-b", true),
            (r"^[\w&&x]+$", "&x", true),
            (r"^[\D]+$", "ab", true),
            (r"^a\.b\/c$", "a.b/c", true),
        ] {
            assert_eq!(compile(pattern).unwrap().regex.is_match(text), matches, "{pattern} {text}");
        }
        assert!(compile("(").is_err());
    }
}
