//! Text for people: numbers, times, tables.

use indicatif::HumanCount;
use std::time::Duration;

/// Formats an integer with thousands separators.
pub(super) fn thousands(number: usize) -> String {
    HumanCount(number as u64).to_string()
}

/// Formats a time in milliseconds.
pub(super) fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// Shortens a text to `width` characters; the last one is an ellipsis if the text is longer.
pub(super) fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.into();
    }
    text.chars().take(width - 1).chain(['…']).collect()
}

/// Formats rows as aligned columns. The first row is the header.
pub(super) fn table<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> String {
    let mut widths = [0; COLUMNS];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> =
            row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        text += cells.join("  ").trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_columns() {
        assert_eq!(
            [0, 999, 1000, 135_233, 1_000_000].map(thousands).join(" "),
            "0 999 1,000 135,233 1,000,000"
        );
        assert_eq!(shortened("Zürich", 6), "Zürich");
        assert_eq!(shortened("Zürich", 3), "Zü…");
        let rows = [["a", "b"], ["Zürich", ""], ["x", "y"]].map(|row| row.map(String::from));
        assert_eq!(table(&rows), "a       b\nZürich\nx       y\n");
    }
}
