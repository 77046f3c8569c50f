//! Pure: rows as a table, changes of rows as lines, and the frames of a screen that is drawn in place.

use std::collections::BTreeMap;

use comfy_table::{Cell, Color, ContentArrangement, Table, presets};

use super::rows::{CONDITIONS, Row, Shown};

/// How a table is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Columns of the terminal; `None` for as wide as it takes.
    pub width: Option<u16>,
    /// Whether True and False are told apart by colour too.
    pub colour: bool,
}

/// The look of a file or a pipe.
pub const PLAIN: Look = Look { width: None, colour: false };

/// The table, and below it the first sentence of each cluster that is not ready. Ends with a line break.
pub fn table(rows: &[Row], look: Look) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).force_no_tty();
    if look.colour {
        table.enforce_styling();
    }
    if let Some(width) = look.width {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    table.set_header(["WORKSPACE", "CLUSTER", "PROVIDER", "SCHEDULED", "PROJECTED", "PROVIDER READY", "READY"]);
    for row in rows {
        let mut cells = vec![
            Cell::new(&row.workspace),
            Cell::new(format!("{}/{}", row.namespace, row.name)),
            Cell::new(row.provider.as_deref().unwrap_or("-")),
        ];
        cells.extend(CONDITIONS.iter().map(|type_| cell(row.conditions.get(*type_), look.colour)));
        table.add_row(cells);
    }
    let mut text = format!("{}\n", table.trim_fmt());
    for line in rows.iter().filter_map(sentence) {
        text.push_str(&cut(&line, look.width));
        text.push('\n');
    }
    text
}

fn cell(shown: Option<&Shown>, colour: bool) -> Cell {
    let Some(shown) = shown else { return Cell::new("-") };
    let cell = Cell::new(word(shown));
    match (colour, shown.current, shown.status) {
        (true, true, "True") => cell.fg(Color::Green),
        (true, true, "False") => cell.fg(Color::Red),
        (true, ..) => cell.fg(Color::Yellow),
        (false, ..) => cell,
    }
}

/// `True`, `False (Pending)`; with `?` where it speaks of an older generation.
fn word(shown: &Shown) -> String {
    let age = if shown.current { "" } else { "?" };
    if shown.status == "True" { format!("True{age}") } else { format!("{}{age} ({})", shown.status, shown.reason) }
}

/// Why a cluster is not ready, in the words of the first condition that does not hold.
fn sentence(row: &Row) -> Option<String> {
    let first = CONDITIONS.iter().find_map(|type_| row.conditions.get(*type_).filter(|shown| shown.status != "True"))?;
    Some(format!("  {} {}/{}: {}", row.workspace, row.namespace, row.name, first.message))
}

fn cut(line: &str, width: Option<u16>) -> String {
    let width = width.map_or(usize::MAX, usize::from);
    if line.chars().count() <= width {
        return line.to_owned();
    }
    line.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// What changed from one look to the next, a line for each condition, for a log instead of a screen.
pub fn changes(before: &[Row], after: &[Row]) -> Vec<String> {
    let key = |row: &Row| (row.workspace.clone(), row.namespace.clone(), row.name.clone());
    let known: BTreeMap<_, &Row> = before.iter().map(|row| (key(row), row)).collect();
    let mut lines = Vec::new();
    for row in after {
        let old = known.get(&key(row));
        let title = format!("{} {}/{}", row.workspace, row.namespace, row.name);
        for type_ in CONDITIONS {
            let (was, is) = (old.and_then(|old| old.conditions.get(type_)), row.conditions.get(type_));
            if let Some(is) = is.filter(|is| was.map(word) != Some(word(is))) {
                lines.push(format!("{title} {type_}={}", word(is)));
            }
        }
        if old.is_none() && row.conditions.is_empty() {
            lines.push(format!("{title} ordered"));
        }
    }
    let left = |row: &&Row| !after.iter().any(|now| key(now) == key(row));
    lines.extend(before.iter().filter(left).map(|row| format!("{} {}/{} gone", row.workspace, row.namespace, row.name)));
    lines
}

/// The bytes that replace a table of `drawn` lines by `line`, which stays, and the new `table` below it.
pub fn frame(drawn: usize, line: Option<&str>, table: &str) -> String {
    let erase = if drawn == 0 { String::new() } else { format!("\x1b[{drawn}A\x1b[J") };
    let line = line.map_or(String::new(), |line| format!("{line}\n"));
    format!("{erase}{line}{table}")
}

#[cfg(test)]
mod tests {
    use super::super::expectations::Stage;
    use super::super::expectations::tests::perfect;
    use super::*;

    #[test]
    fn the_table_shows_reasons_and_below_it_what_is_missing() {
        let text = table(&perfect(Stage::Ordered)[3..], PLAIN);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0].join(" "), "WORKSPACE CLUSTER PROVIDER SCHEDULED PROJECTED PROVIDER READY READY");
        assert_eq!(lines[1], ["root:globex", "default/batch", "otc", "True", "True", "True", "True"]);
        assert_eq!(lines[2][..5], ["root:initech", "default/payroll", "-", "False", "(ProviderNotConfigured)"]);
        assert_eq!(lines[3].join(" "), "root:initech default/payroll: the workspace has no Provider for otc");
        assert_eq!(lines.len(), 4);
        assert!(!text.contains('\x1b'), "a file gets no colours");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_a_terminal_gets_colours() {
        let look = Look { width: Some(80), colour: false };
        let text = table(&perfect(Stage::Ordered), look);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(table(&perfect(Stage::Ordered), Look { colour: true, ..look }).contains("\x1b["));
        assert_eq!(cut("abcdef", Some(4)), "abc…");
        assert_eq!(cut("äöüß", Some(4)), "äöüß");
    }

    #[test]
    fn a_condition_of_an_older_generation_is_marked() {
        let mut rows = perfect(Stage::Mended);
        rows[0].conditions.get_mut("Ready").unwrap().current = false;
        assert!(table(&rows[..1], PLAIN).contains("True?"));
    }

    #[test]
    fn a_change_is_a_line_and_no_change_is_none() {
        let (ordered, mended) = (perfect(Stage::Ordered), perfect(Stage::Mended));
        assert_eq!(changes(&ordered, &ordered), Vec::<String>::new());
        let lines = changes(&ordered, &mended);
        assert_eq!(lines.len(), 4, "{lines:?}");
        assert_eq!(lines[0], "root:initech default/payroll Scheduled=True");
        assert_eq!(changes(&mended, &mended[1..]), ["root:acme default/shop gone"]);
        let mut fresh = mended[0].clone();
        fresh.conditions.clear();
        assert_eq!(changes(&[], &[fresh]), ["root:acme default/shop ordered"]);
    }

    #[test]
    fn a_frame_erases_what_was_drawn_and_keeps_what_was_said() {
        assert_eq!(frame(0, Some("kcp is ready"), ""), "kcp is ready\n");
        assert_eq!(frame(3, Some("said"), "a\nb\n"), "\x1b[3A\x1b[Jsaid\na\nb\n");
        assert_eq!(frame(2, None, "a\n"), "\x1b[2A\x1b[Ja\n");
    }
}
