//! Builds the sentences that a tenant reads, within their bound.
//!
//! Pure: names come from tenants and platforms, so each is clipped and shown without control characters, and lists end in
//! "and N more" when their budget is used up. Nothing is ever cut inside a character.

/// The longest message of a condition, in bytes (`api.md`; a status is read by many, and etcd keeps every version of it).
pub(super) const MAX: usize = 1024;
/// What a message shows of a name at most, in bytes: several of the longest legal ones (253) would crowd out the sentence.
const MAX_NAME: usize = 100;

/// The name as messages show it.
pub(super) fn shown(name: &str) -> String {
    clip(name.chars().map(|c| if c.is_control() { '?' } else { c }).collect(), MAX_NAME)
}

/// The text, or what fits of it before an ellipsis.
pub(super) fn clip(mut text: String, max: usize) -> String {
    const ELLIPSIS: &str = "…";
    if text.len() > max {
        let end = (0..=max.saturating_sub(ELLIPSIS.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        text.truncate(end);
        text.push_str(ELLIPSIS);
    }
    text
}

/// The items joined by `, `, as many as the budget allows, then how many there are besides.
///
/// The first item is always shown, clipped if it must be.
pub(super) fn list<I: Into<String>>(items: impl IntoIterator<Item = I>, budget: usize) -> String {
    let mut text = String::new();
    let mut items = items.into_iter();
    for item in items.by_ref() {
        let item = item.into();
        if text.is_empty() {
            text = clip(item, budget.saturating_sub(AND_MORE));
        } else if text.len() + item.len() + 2 + AND_MORE > budget {
            let more = items.count() + 1;
            return format!("{text} and {more} more");
        } else {
            text.push_str(", ");
            text.push_str(&item);
        }
    }
    text
}

/// The finalizers that something waits for.
pub(super) fn named(finalizers: &[String]) -> String {
    if finalizers.is_empty() { "no finalizer any more".to_owned() } else { list(finalizers.iter().map(|name| shown(name)), MAX / 2) }
}

/// What ` and N more` takes for any N that a catalog in memory has.
const AND_MORE: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(clip("äöü".to_owned(), 5), "ä…");
        assert_eq!(clip("äöü".to_owned(), 6), "äöü");
    }

    #[test]
    fn a_list_says_how_many_it_leaves_out_and_keeps_its_budget() {
        let names = || (0..1000).map(|n| format!("name-{n:03}"));
        assert_eq!(list(names(), 50), "name-000, name-001, name-002 and 997 more");
        assert!((1..400).all(|budget| list(names(), budget + 40).len() <= budget + 40));
        assert_eq!(list(["a", "b"], 50), "a, b");
        assert_eq!(list(["abcdef", "g"], 25), "ab… and 1 more");
    }

    #[test]
    fn control_characters_of_a_name_do_not_reach_a_terminal() {
        assert_eq!(shown("eu\u{1b}[31m-de"), "eu?[31m-de");
    }
}
