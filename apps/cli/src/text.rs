//! Text for people: numbers, times, tables.

use std::time::Duration;

/// An integer with thousands separators.
pub(super) fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A time in milliseconds.
pub(super) fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// At most `width` characters of a text, the last one an ellipsis if there are more.
pub(super) fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.into();
    }
    text.chars().take(width - 1).chain(['…']).collect()
}

/// Lines of columns, each as wide as its widest cell; the first line is the header.
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
