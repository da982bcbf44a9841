//! Rows of reports: finds the rows that measure equal work in all variants, names the others, and prints the ratios.

use super::statistics::{ALPHA, Ratio};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt::Write;

/// A row of a report that was measured.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    /// Work, input, size and system, as `kauri-bench` prints them.
    pub(super) key: String,
    /// True for a row of another system, which no variant changes.
    pub(super) is_rival: bool,
    /// The values that must be equal in a comparison, with their names: clock, items, bytes.
    units: Vec<(&'static str, String)>,
    pub(super) median_ms: f64,
    /// The runs in their order; empty in reports of earlier versions.
    pub(super) times_ms: Vec<f64>,
}

/// The rows of a variant.
pub(super) struct Rows {
    pub(super) label: String,
    /// The device's name and properties.
    pub(super) device: String,
    pub(super) rows: Vec<Option<Row>>,
    /// False for a saved report, whose runs did not take turns with others.
    pub(super) takes_turns: bool,
}

/// A row that all variants have.
pub(super) struct Matched {
    pub(super) key: String,
    /// The row of each variant.
    pub(super) rows: Vec<Row>,
    /// The ratio of each variant but the first to the first one; `None` if the row took no time.
    pub(super) ratios: Vec<Option<Ratio>>,
}

/// Reads all rows of a report. Rows that were not measured have no time.
pub(super) fn read(report: &Value) -> Vec<Row> {
    let rows = report["rows"].as_array();
    let mut seen = HashMap::<String, usize>::new();
    let read = |row: &Value| {
        let text = |name: &str| row[name].as_str().unwrap_or_default();
        let mut key = format!("{}  {}  n={}", text("work"), text("input"), row["n"]);
        let is_rival = !text("system").is_empty();
        if is_rival {
            write!(key, "  ({})", text("system")).expect("writing to a string");
        }
        let count = seen.entry(key.clone()).or_default();
        *count += 1;
        if *count > 1 {
            write!(key, "  #{count}").expect("writing to a string");
        }
        let timing = &row["timing"];
        let units = [("clock", &timing["clock"]), ("items", &row["items"]), ("bytes", &row["bytes"])];
        let times = timing["times_ms"].as_array().into_iter().flatten();
        Row {
            key,
            is_rival,
            units: units.map(|(name, value)| (name, value.to_string())).into(),
            median_ms: timing["median_ms"].as_f64().unwrap_or(f64::NAN),
            times_ms: times.filter_map(Value::as_f64).collect(),
        }
    };
    rows.into_iter().flatten().map(read).collect()
}

impl Rows {
    pub(super) fn of(label: &str, report: &Value, takes_turns: bool) -> Rows {
        let device = report["hardware"]["device"].as_str().unwrap_or("an unknown device").to_owned();
        let rows = read(report).into_iter().map(|row| (!row.median_ms.is_nan()).then_some(row)).collect();
        Rows { label: label.to_owned(), device, rows, takes_turns }
    }

    fn measured(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().flatten()
    }

    fn find(&self, key: &str) -> Option<&Row> {
        self.measured().find(|row| row.key == key)
    }
}

/// Finds the rows that contain `text` and that all variants have with equal units, on equal devices. The second value names the others
/// with the reason, one line each.
pub(super) fn matched(variants: &[Rows], text: &str, alpha: f64) -> (Vec<Matched>, Vec<String>) {
    let (mut matched, mut others) = (Vec::new(), Vec::new());
    let Some((first, rest)) = variants.split_first() else { return (matched, others) };
    let selected = |row: &&Row| row.key.contains(text);
    if let Some(other) = rest.iter().find(|other| other.device != first.device) {
        let reason =
            format!("{} was measured on {}, {} on {}", first.label, first.device, other.label, other.device);
        let keys = first.measured().chain(other.measured()).filter(selected).map(|row| row.key.clone());
        let mut keys: Vec<String> = keys.collect();
        keys.sort();
        keys.dedup();
        others.extend(keys.into_iter().map(|key| format!("{key}: {reason}")));
        return (matched, others);
    }
    // Rows after the first difference have measurements of other numbers, so their runs did not take turns.
    let keys = |variant: &Rows| {
        variant.rows.iter().map(|row| row.as_ref().map(|row| row.key.clone())).collect::<Vec<_>>()
    };
    let first_keys = keys(first);
    let is_aligned = rest.iter().all(|other| keys(other) == first_keys);
    let takes_turns = is_aligned && variants.iter().all(|variant| variant.takes_turns);
    for row in first.measured().filter(selected) {
        let mut rows = vec![row.clone()];
        for other in rest {
            match other.find(&row.key) {
                None => others.push(format!("{}: {} has no such row", row.key, other.label)),
                Some(partner) => {
                    let differs = row.units.iter().zip(&partner.units).find(|(a, b)| a != b);
                    match differs {
                        Some(((name, a), (_, b))) => others.push(format!(
                            "{}: {name} {a} in {}, {b} in {}",
                            row.key, first.label, other.label
                        )),
                        None => rows.push(partner.clone()),
                    }
                }
            }
        }
        if rows.len() == variants.len() {
            let ratio = |other: &Row| ratio(row, other, takes_turns, alpha);
            let ratios = rows[1..].iter().map(ratio).collect();
            matched.push(Matched { key: row.key.clone(), rows, ratios });
        }
    }
    for other in rest {
        let missing = other.measured().filter(selected).filter(|row| first.find(&row.key).is_none());
        others.extend(missing.map(|row| format!("{}: {} has no such row", row.key, first.label)));
    }
    (matched, others)
}

fn ratio(before: &Row, after: &Row, takes_turns: bool, alpha: f64) -> Option<Ratio> {
    match (takes_turns, before.times_ms.is_empty() || after.times_ms.is_empty()) {
        (true, false) => Ratio::of_pairs(&before.times_ms, &after.times_ms, alpha),
        (false, false) => Ratio::of_samples(&before.times_ms, &after.times_ms, alpha),
        (_, true) => {
            let has_time = before.median_ms > 0.0 && after.median_ms > 0.0;
            has_time.then(|| Ratio { median: after.median_ms / before.median_ms, interval: None })
        }
    }
}

/// Returns the letter of a variant: A, B, … Z, 27, …
pub(super) fn letter(index: usize) -> String {
    u8::try_from(index)
        .ok()
        .filter(|i| *i < 26)
        .map_or((index + 1).to_string(), |i| char::from(b'A' + i).to_string())
}

/// Returns the comparison as Markdown: the variants, a table of the matched rows, and the rows without a partner.
pub(super) fn table(variants: &[Rows], text: &str) -> (String, Vec<Matched>) {
    let (matched, others) = matched(variants, text, ALPHA);
    let mut out = String::new();
    for (i, variant) in variants.iter().enumerate() {
        let saved =
            if variant.takes_turns { "" } else { " (saved: its runs did not take turns with the others)" };
        writeln!(out, "- {}: `{}`{saved}", letter(i), variant.label).expect("writing to a string");
    }
    if !matched.is_empty() {
        let device = variants.first().map_or("", |variant| variant.device.as_str());
        let level = format!("{:.0}", (1.0 - ALPHA) * 100.0);
        writeln!(out, "\nMedian ms on {device}; ratios to A with {level} % interval, below 1 is faster:\n")
            .expect("writing to a string");
        out += "| row | runs | A |";
        let letters: Vec<String> = (1..variants.len()).map(letter).collect();
        letters.iter().for_each(|letter| out += &format!(" {letter} | {letter} / A | |"));
        out += &format!("\n|---|--:|--:|{}\n", "--:|--:|---|".repeat(letters.len()));
    }
    for row in &matched {
        let runs = row.rows.iter().map(|row| row.times_ms.len()).min().unwrap_or_default();
        let runs = if runs == 0 { "-".to_owned() } else { runs.to_string() };
        write!(out, "| {} | {runs} | {} |", row.key, ms(row.rows[0].median_ms)).expect("writing to a string");
        for (other, ratio) in row.rows[1..].iter().zip(&row.ratios) {
            let (shown, verdict) =
                ratio.map_or(("-".to_owned(), ""), |ratio| (ratio.shown(), ratio.verdict()));
            write!(out, " {} | {shown} | {verdict} |", ms(other.median_ms)).expect("writing to a string");
        }
        out.push('\n');
    }
    if !others.is_empty() {
        out += "\nNot compared:\n\n";
        others.iter().for_each(|other| writeln!(out, "- {other}").expect("writing to a string"));
    }
    (out, matched)
}

/// Returns milliseconds with three or more significant digits.
pub(super) fn ms(ms: f64) -> String {
    if ms < 1.0 { format!("{ms:.4}") } else { format!("{ms:.3}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report(device: &str, rows: &[(&str, u64, &str, u64, f64)]) -> Value {
        let row = |&(work, n, clock, items, ms): &(&str, u64, &str, u64, f64)| {
            let times: Vec<f64> = (0..10).map(|i| ms + 0.001 * f64::from(i)).collect();
            json!({ "system": "", "work": work, "input": "u32", "n": n, "items": items, "bytes": null,
                "timing": { "clock": clock, "median_ms": ms, "times_ms": times } })
        };
        json!({ "hardware": { "device": device }, "rows": rows.iter().map(row).collect::<Vec<_>>() })
    }

    #[test]
    fn rows_without_a_partner_are_named() {
        let one = report(
            "gpu",
            &[("sort", 10, "wall", 10, 2.0), ("scan", 10, "wall", 10, 1.0), ("old", 10, "wall", 10, 1.0)],
        );
        let two = report(
            "gpu",
            &[
                ("sort", 10, "wall", 10, 1.0),
                ("sort", 20, "wall", 20, 1.0),
                ("scan", 10, "device events", 10, 1.0),
            ],
        );
        let variants = [Rows::of("one", &one, true), Rows::of("two", &two, true)];
        let (text, matched) = table(&variants, "");
        assert_eq!(matched.iter().map(|row| row.key.as_str()).collect::<Vec<_>>(), ["sort  u32  n=10"]);
        // The rows differ, so these runs did not take turns.
        assert!(text.contains("| sort  u32  n=10 | 10 | 2.000 | 1.000 | 0.501 ["), "{text}");
        for line in [
            "- old  u32  n=10: two has no such row",
            "- sort  u32  n=20: one has no such row",
            "- scan  u32  n=10: clock \"wall\" in one, \"device events\" in two",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        assert_eq!(table(&variants, "scan").1.len(), 0);
    }

    #[test]
    fn devices_do_not_mix() {
        let variants = ["H100", "H200"]
            .map(|device| Rows::of(device, &report(device, &[("sort", 1, "wall", 1, 1.0)]), true));
        let (matched, others) = matched(&variants, "", ALPHA);
        assert!(matched.is_empty());
        assert_eq!(others, ["sort  u32  n=1: H100 was measured on H100, H200 on H200"]);
    }

    #[test]
    fn saved_reports_without_single_runs_have_no_interval() {
        let rows = |ms: f64| json!([{ "work": "sort", "input": "u32", "n": 1, "timing": { "median_ms": ms } }, { "work": "not measured", "n": 1 }]);
        let of = |ms| Rows::of("saved", &json!({ "hardware": {}, "rows": rows(ms) }), false);
        let (matched, others) = matched(&[of(2.0), of(1.0)], "", ALPHA);
        assert_eq!(matched[0].ratios, [Some(Ratio { median: 0.5, interval: None })]);
        assert_eq!((matched.len(), others.len()), (1, 0));
    }

    #[test]
    fn repeated_keys_are_numbered() {
        let rows = read(&report("gpu", &[("sort", 1, "wall", 1, 1.0), ("sort", 1, "wall", 1, 2.0)]));
        assert_eq!((rows[0].key.as_str(), rows[1].key.as_str()), ("sort  u32  n=1", "sort  u32  n=1  #2"));
    }
}
