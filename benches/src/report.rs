//! Results: the rows of a suite and the machine, as JSON and as a Markdown table.

use crate::figures::{Figure, FigurePoint};
use crate::hardware::Hardware;
use crate::interface::{Caller, Moment};
use crate::measure::Timing;
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write;

/// The results of a suite.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The suite's name.
    pub suite: &'static str,
    /// The machine.
    pub hardware: Hardware,
    /// Seed of the random input.
    pub seed: u64,
    /// The measurements.
    pub rows: Vec<Row>,
    /// The figures of a published experiment; rows have points in them.
    #[serde(skip)]
    pub figures: &'static [Figure],
    /// Is told of each row, if there is one.
    #[serde(skip)]
    pub caller: Option<Caller>,
}

/// Reason for which rows of some work miss their goal.
#[derive(Clone, Copy, Debug)]
pub struct Note {
    work: &'static str,
    input: &'static str,
    from: u64,
    text: &'static str,
}

impl Note {
    /// Creates a note for rows with this work (a trailing `*` matches any ending), an input with this prefix, and at least
    /// `from` items.
    pub const fn new(work: &'static str, input: &'static str, from: u64, text: &'static str) -> Self {
        Self { work, input, from, text }
    }

    fn fits(&self, row: &Row) -> bool {
        let is_work = match self.work.strip_suffix('*') {
            Some(begin) => row.work.starts_with(begin),
            None => row.work == self.work,
        };
        is_work && row.input.starts_with(self.input) && row.n >= self.from
    }
}

/// Goal of rows that count bytes, for `LARGE` and more items: this share of the copy bandwidth.
const GOAL: f64 = 0.9;
const LARGE: u64 = 128_000_000;

/// Last part of an input's name without skew.
const UNIFORM: &str = "uniform";

/// One measurement.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    /// The measured system; empty for kauri.
    pub system: String,
    /// The work: `build`, `nearest k=8` …
    pub work: String,
    /// The input: `f32 x 3, uniform`.
    pub input: String,
    /// Size of the input.
    pub n: u64,
    /// The times; `None` if the row was not measured.
    pub timing: Option<Timing>,
    /// Units of work, for the throughput: points built, queries answered, points found.
    pub items: Option<u64>,
    /// Bytes read and written, for the bandwidth.
    pub bytes: Option<u64>,
    /// Temporary bytes, without input and result.
    pub temp_bytes: Option<u64>,
    /// How the result was verified, if it was.
    pub check: Option<&'static str>,
    /// If a goal was missed: the bound.
    pub bound: Option<&'static str>,
    /// A remark, such as the reason for which the row was not measured.
    pub note: Option<String>,
    /// Times of the phases, if known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<Phase>,
    /// Points in figures of a published experiment.
    #[serde(rename = "places", skip_serializing_if = "Vec::is_empty")]
    pub figure_points: Vec<FigurePoint>,
}

/// A phase of the work of a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// Name of the phase.
    pub name: String,
    /// Time in milliseconds.
    pub ms: f64,
}

impl Phase {
    /// Creates phases from names and times. Negative times, which differences of measurements may have, become 0.
    pub fn all<const N: usize>(parts: [(&str, f64); N]) -> Vec<Phase> {
        parts.map(|(name, ms)| Phase { name: name.to_owned(), ms: ms.max(0.0) }).into()
    }
}

impl Report {
    /// Creates a report without rows.
    pub fn new(suite: &'static str, hardware: Hardware, seed: u64) -> Report {
        Report { suite, hardware, seed, rows: Vec::new(), figures: &[], caller: None }
    }

    /// Adds a row, and prints it to the error stream, because suites take minutes, or tells the caller.
    pub fn push(&mut self, row: Row) {
        if let Some(caller) = self.caller {
            caller.tell(Moment::Row, &row.key());
            return self.rows.push(row);
        }
        let median = row.timing.as_ref().map(|timing| format!("{:.3} ms", timing.median_ms));
        let parts = [median, row.note.clone()].into_iter().flatten().collect::<Vec<_>>().join(", ");
        eprintln!("{}  {parts}", row.key());
        self.rows.push(row);
    }

    /// Adds rows of other systems, given as the lines of JSON that their programs print. Each row follows the rows of equal
    /// work, input and size.
    ///
    /// # Errors
    /// The first line that is not a row.
    pub fn add_rivals(&mut self, lines: &str) -> Result<(), String> {
        for line in lines.lines().filter(|line| line.starts_with('{')) {
            let mut row = Row::of_rival(line).ok_or_else(|| format!("no row of a rival: {line}"))?;
            let own = self.rows.iter().find(|own| own.is_kauri() && own.is_like(&row));
            row.figure_points = own.map_or(Vec::new(), |own| own.figure_points.clone());
            row.figure_points.iter_mut().for_each(|point| point.set_system(&row.system));
            let last = self.rows.iter().rposition(|other| other.is_like(&row));
            self.rows.insert(last.map_or(self.rows.len(), |last| last + 1), row);
        }
        Ok(())
    }

    /// Sets the bound of kauri's rows that are slower than a rival's, or far from the copy bandwidth: the first matching note,
    /// or a remark that there is none.
    pub fn explain(&mut self, notes: &[Note]) {
        let copied = self.rows.iter().find(|row| row.work == "device copy").and_then(Row::bytes_per_ms);
        for i in 0..self.rows.len() {
            let row = &self.rows[i];
            if !row.is_kauri() {
                continue;
            }
            let is_behind = self.rows.iter().any(|rival| {
                row.is_like(rival) && self.advantage(rival).is_some_and(|advantage| advantage < 1.0)
            });
            let is_far = match (row.bytes_per_ms(), copied) {
                (Some(own), Some(copied)) => row.n >= LARGE && own < GOAL * copied,
                _ => false,
            };
            if is_behind || is_far {
                let note = notes.iter().find(|note| note.fits(row));
                self.rows[i].bound = Some(note.map_or("not known yet", |note| note.text));
            }
        }
    }

    /// Returns kauri's speed-up over this row of a rival.
    fn advantage(&self, rival: &Row) -> Option<f64> {
        let own = self.rows.iter().find(|row| row.is_kauri() && row.is_like(rival))?;
        let ratio = rival.timing.as_ref()?.median_ms / own.timing.as_ref()?.median_ms;
        (!rival.is_kauri()).then_some(ratio)
    }

    /// Returns the report as Markdown tables.
    pub fn to_markdown(&self) -> String {
        let hardware = &self.hardware;
        let driver = hardware.gpu.as_ref().and_then(|gpu| gpu.driver.clone());
        let driver = driver.map_or(String::new(), |version| format!(", driver {version}"));
        let mut text = format!(
            "{} on {}{driver}, kauri {} ({}), seed {}\n\n",
            self.suite, hardware.device, hardware.kauri, hardware.git_revision, self.seed
        );
        text += "| work | input | n | system | clock | median ms | min | max | runs | rate | ns each | temp | kauri is |\n";
        text += "|---|---|--:|---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n";
        for row in &self.rows {
            let ms = |value: fn(&Timing) -> f64| {
                row.timing.as_ref().map_or("-".to_owned(), |t| format!("{:.3}", value(t)))
            };
            let clock = row.timing.as_ref().map_or("-", |timing| timing.clock);
            let runs = row.timing.as_ref().map_or(0, |timing| timing.runs);
            writeln!(
                text,
                "| {} | {} | {} | {} | {clock} | {} | {} | {} | {runs} | {} | {} | {} | {} |",
                row.work,
                row.input,
                row.n,
                if row.is_kauri() { "kauri" } else { &row.system },
                ms(|t| t.median_ms),
                ms(|t| t.min_ms),
                ms(|t| t.max_ms),
                row.rate(),
                row.ns_each().map_or("-".to_owned(), |ns| format!("{ns:.3}")),
                row.temp_bytes.map_or("-".to_owned(), |bytes| format!("{:.1} MB", bytes as f64 / 1e6)),
                self.advantage(row)
                    .map(|ratio| format!("{ratio:.2} x as fast"))
                    .or(row.note.clone())
                    .unwrap_or_default(),
            )
            .expect("writing to a string");
        }
        text + &self.shares() + &self.skew() + &self.bounds()
    }

    /// Returns the table of phases.
    fn shares(&self) -> String {
        let mut text = String::new();
        for row in self.rows.iter().filter(|row| !row.phases.is_empty()) {
            let all: f64 = row.phases.iter().map(|phase| phase.ms).sum();
            let part =
                |phase: &Phase| format!("{} {:.3} ms, {:.0} %", phase.name, phase.ms, phase.ms / all * 100.0);
            let parts: Vec<_> = row.phases.iter().map(part).collect();
            let system = if row.is_kauri() { "kauri" } else { &row.system };
            let (work, input, n) = (&row.work, &row.input, row.n);
            writeln!(text, "| {work} | {input} | {n} | {system} | {} |", parts.join("; "))
                .expect("writing to a string");
        }
        if text.is_empty() {
            return text;
        }
        format!(
            "\nParts of the work:\n\n| work | input | n | system | parts |\n|---|---|--:|---|---|\n{text}"
        )
    }

    /// Returns the table of times an item for skewed input, relative to uniform input of equal size.
    fn skew(&self) -> String {
        let mut text = String::new();
        for row in self.rows.iter().filter(|row| row.is_kauri()) {
            let Some((kind, how)) = row.input.rsplit_once(", ").filter(|(_, how)| *how != UNIFORM) else {
                continue;
            };
            let input = format!("{kind}, {UNIFORM}");
            let is_its = |other: &&Row| {
                other.is_kauri() && (&other.work, &other.input, other.n) == (&row.work, &input, row.n)
            };
            let uniform = self.rows.iter().find(is_its).and_then(Row::ns_each);
            if let (Some(each), Some(uniform)) = (row.ns_each(), uniform) {
                writeln!(text, "| {} | {kind} | {} | {how} | {:.2} |", row.work, row.n, each / uniform)
                    .expect("writing to a string");
            }
        }
        if text.is_empty() {
            return text;
        }
        let head = "| work | input | n | which is | times |\n|---|---|--:|---|--:|\n";
        format!("\nTime for an item, relative to uniform input:\n\n{head}{text}")
    }

    /// Returns the bounds of rows that missed a goal, each with its rows.
    fn bounds(&self) -> String {
        let mut reasons: Vec<&str> = Vec::new();
        for reason in self.rows.iter().filter_map(|row| row.bound) {
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        let mut text = String::new();
        for reason in reasons {
            let rows = self.rows.iter().filter(|row| row.bound == Some(reason));
            let rows: Vec<_> = rows.map(|row| format!("{} ({}) {}", row.work, row.input, row.n)).collect();
            write!(text, "\n**{reason}.** {}\n", rows.join("; ")).expect("writing to a string");
        }
        if text.is_empty() { text } else { format!("\nWhat bounds the rows that miss a goal:\n{text}") }
    }
}

impl Row {
    fn bytes_per_ms(&self) -> Option<f64> {
        Some(self.bytes? as f64 / self.timing.as_ref()?.median_ms)
    }

    pub(crate) fn is_kauri(&self) -> bool {
        self.system.is_empty()
    }

    /// Returns the text that identifies the row in a report.
    fn key(&self) -> String {
        let system = if self.is_kauri() { String::new() } else { format!("  ({})", self.system) };
        format!("{}  {}  n={}{system}", self.work, self.input, self.n)
    }

    fn is_like(&self, other: &Row) -> bool {
        (&self.work, &self.input, self.n) == (&other.work, &other.input, other.n)
    }

    fn of_rival(line: &str) -> Option<Row> {
        let row: Value = serde_json::from_str(line).ok()?;
        let text = |name: &str| row[name].as_str().map(str::to_owned);
        let n = row["n"].as_u64()?;
        let timing = Timing {
            clock: "device events",
            runs: row["runs"].as_u64()? as usize,
            median_ms: row["median_ms"].as_f64()?,
            min_ms: row["min_ms"].as_f64()?,
            max_ms: row["max_ms"].as_f64()?,
            spread: f64::NAN,
            times_ms: Vec::new(),
        };
        let phase = |phase: &Value| {
            Some(Phase { name: phase["name"].as_str()?.to_owned(), ms: phase["ms"].as_f64()? })
        };
        let phases = row["phases"].as_array().into_iter().flatten().map(phase).collect::<Option<_>>()?;
        Some(Row {
            system: text("system")?,
            work: text("work")?,
            input: text("input")?,
            n,
            timing: Some(timing),
            items: row["items"].as_u64().or(Some(n)),
            bytes: row["bytes"].as_u64(),
            temp_bytes: row["temp_bytes"].as_u64(),
            phases,
            ..Row::default()
        })
    }

    /// Returns the nanoseconds an item.
    fn ns_each(&self) -> Option<f64> {
        Some(self.timing.as_ref()?.median_ms * 1e6 / self.items? as f64)
    }

    fn rate(&self) -> String {
        let Some(timing) = &self.timing else { return "-".to_owned() };
        let per_second = |count: u64| count as f64 / timing.median_ms * 1e3;
        match (self.bytes, self.items) {
            (Some(bytes), _) => format!("{:.2} GB/s", per_second(bytes) / 1e9),
            (None, Some(items)) => format!("{:.1} M/s", per_second(items) / 1e6),
            (None, None) => "-".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kauri::Device;

    #[test]
    fn rivals_stand_beside_their_rows() {
        let mut report = Report::new("test", Hardware::of(&Device::cpu()), 1);
        let timing = |median_ms| Timing::of("wall", &[std::time::Duration::from_secs_f64(median_ms / 1e3)]);
        for n in [10, 20] {
            let (work, input) = ("sort".to_owned(), "u32".to_owned());
            report.rows.push(Row { work, input, n, timing: Some(timing(2.0)), ..Row::default() });
        }
        let line = r#"{"system":"CUB","work":"sort","input":"u32","n":10,"median_ms":3.0,"min_ms":3.0,"max_ms":4.0,"runs":5}"#;
        report.add_rivals(&format!("some talk\n{line}\n")).unwrap();
        assert_eq!(report.rows.iter().map(|row| row.system.as_str()).collect::<Vec<_>>(), ["", "CUB", ""]);
        assert!(report.to_markdown().contains("1.50 x as fast"), "{}", report.to_markdown());
        assert!(report.add_rivals("{}").is_err());
    }

    #[test]
    fn rivals_have_parts_and_figure_points() {
        let mut report = Report::new("test", Hardware::of(&Device::cpu()), 1);
        let point = |panel: &str, line: &str| FigurePoint::new("time", panel, line, 10.0);
        let (work, input) = ("sort".to_owned(), "u32".to_owned());
        let figure_points = vec![point("all", "registers"), point("registers", "")];
        report.rows.push(Row { work, input, n: 10, figure_points, ..Row::default() });
        let line = r#"{"system":"CUB","work":"sort","input":"u32","n":10,"median_ms":3.0,"min_ms":3.0,"max_ms":4.0,"runs":5,
            "phases":[{"name":"count","ms":1.0},{"name":"move","ms":3.0}]}"#;
        report.add_rivals(&line.replace('\n', "")).unwrap();
        assert_eq!(
            report.rows[1].figure_points,
            [point("all", "CUB, registers"), point("CUB, registers", "")]
        );
        assert_eq!(report.rows[1].phases, Phase::all([("count", 1.0), ("move", 3.0)]));
        let text = report.to_markdown();
        assert!(
            text.contains("| sort | u32 | 10 | CUB | count 1.000 ms, 25 %; move 3.000 ms, 75 % |"),
            "{text}"
        );
    }

    #[test]
    fn skewed_input_is_compared_with_uniform_input() {
        let mut report = Report::new("test", Hardware::of(&Device::cpu()), 1);
        let timing = |ms: f64| Some(Timing::of("wall", &[std::time::Duration::from_secs_f64(ms / 1e3)]));
        let row = |input: &str, ms, items| Row {
            work: "within".to_owned(),
            input: input.to_owned(),
            n: 10,
            timing: timing(ms),
            items: Some(items),
            ..Row::default()
        };
        report.rows = vec![row("f32 x 3, uniform", 1.0, 100), row("f32 x 3, clustered", 3.0, 200)];
        report.push(Row {
            note: Some("left out".to_owned()),
            timing: None,
            ..row("f32 x 4, clustered", 1.0, 1)
        });
        let text = report.to_markdown();
        assert!(text.contains("| within | f32 x 3 | 10 | clustered | 1.50 |\n"), "{text}");
        assert!(text.contains("| - | - | left out |\n") && text.matches("clustered").count() == 3, "{text}");
    }

    #[test]
    fn rows_that_miss_a_goal_are_explained() {
        let mut report = Report::new("test", Hardware::of(&Device::cpu()), 1);
        let timing = |ms: f64| Some(Timing::of("wall", &[std::time::Duration::from_secs_f64(ms / 1e3)]));
        let row = |system: &str, work: &str, n, ms, bytes| Row {
            system: system.to_owned(),
            work: work.to_owned(),
            n,
            timing: timing(ms),
            bytes,
            ..Row::default()
        };
        report.rows = vec![
            row("", "device copy", 1, 1.0, Some(1000)),
            row("", "merge", 10, 2.0, None),
            row("CUB", "merge", 10, 1.0, None),
            row("", "merge sort", 10, 2.0, None),
            row("CUB", "merge sort", 10, 1.0, None),
            row("", "scan sum", LARGE, 1.0, Some(899)),
            row("", "scan max", LARGE, 1.0, Some(901)),
        ];
        report.explain(&[Note::new("merge", "", 0, "merging"), Note::new("scan*", "", LARGE, "scanning")]);
        let bounds: Vec<_> = report.rows.iter().map(|row| row.bound).collect();
        let (merging, scanning, unknown) = (Some("merging"), Some("scanning"), Some("not known yet"));
        assert_eq!(bounds, [None, merging, None, unknown, None, scanning, None]);
        assert!(report.to_markdown().contains("**merging.** merge () 10\n"), "{}", report.to_markdown());
    }
}
