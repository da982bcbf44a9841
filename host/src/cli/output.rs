//! What a join has found, and where it goes.

use clap::Args;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::PathBuf;

use super::places::Places;
use super::{CliError, Result};
use crate::io::{Numbers, PairTable, write_atomically};
use crate::point::LonLat;

/// Where results go, and how.
#[derive(Args)]
pub(super) struct Output {
    /// Write an array of {"left": row, "right": row, "distance_m": d, "score": s}, rows counted from 0
    #[arg(long)]
    json: bool,
    /// Write to a file, of the form that its name says: .parquet, else CSV [default: CSV to standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Pairs of rows, left and right.
#[derive(Default)]
pub(super) struct Found {
    pub(super) rows: Vec<[u32; 2]>,
    pub(super) metres: Vec<f64>,
    pub(super) scores: Option<Numbers>,
}

impl Found {
    /// Pairs without scores.
    pub(super) fn of(rows: Vec<[u32; 2]>, left: &[LonLat], right: &[LonLat]) -> Self {
        let metres = |&[l, r]: &[u32; 2]| left[l as usize].metres_to(&right[r as usize]);
        let metres = rows.iter().map(metres).collect();
        Self { rows, metres, scores: None }
    }
}

impl Output {
    /// Refuses what cannot be written before any work is done for it.
    pub(super) fn check(&self) -> Result<()> {
        if self.json && self.out.as_ref().is_some_and(PairTable::is_parquet) {
            return Err(CliError::Arguments("--json and an --out of Parquet: only one of them can be had"));
        }
        Ok(())
    }

    pub(super) fn write(
        &self,
        out: &mut dyn Write,
        left: &Places,
        right: &Places,
        found: &Found,
    ) -> Result<()> {
        let pairs = PairTable {
            left: &left.table,
            right: &right.table,
            places: &left.points,
            rows: &found.rows,
            metres: &found.metres,
            scores: found.scores.as_ref(),
        };
        match (&self.out, self.json) {
            (Some(path), true) => Ok(write_atomically(path, |file| as_json(file, found))?),
            (Some(path), false) => Ok(pairs.write(path)?),
            (None, true) => Ok(as_json(out, found)?),
            (None, false) => pairs.write_csv(out).map_err(|error| match error {
                // Without a path it is standard output.
                crate::Error::Io { path, source } if path.as_os_str().is_empty() => CliError::Output(source),
                error => error.into(),
            }),
        }
    }
}

fn as_json(to: &mut dyn Write, found: &Found) -> io::Result<()> {
    let pair = |i: usize| {
        let [left, right] = found.rows[i];
        let mut value = json!({ "left": left, "right": right, "distance_m": found.metres[i] });
        match &found.scores {
            Some(Numbers::Integers(scores)) => value["score"] = Value::from(scores[i]),
            Some(Numbers::Floats(scores)) => value["score"] = Value::from(scores[i]),
            None => {}
        }
        value
    };
    let values: Vec<Value> = (0..found.rows.len()).map(pair).collect();
    serde_json::to_writer(&mut *to, &values)?;
    writeln!(to)
}
