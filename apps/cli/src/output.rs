//! Output of the pairs of a join: file or standard output, and format.

use clap::Args;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::items::Item;
use super::names::{STANDARD_STREAM, has_extension, is_stream, standard_or_with_extension};
use super::tables::JoinTable;
use super::{CliError, Result};
use kauri::Error;
use kauri::io::{NO_ROW, Numbers, PairTable, Pairs, TakePairs, write_atomically_or};

/// Extensions of the files that pairs are written to.
const PAIRS: &[&str] = &["csv", "json", "parquet", "geoparquet"];

/// Options of the output of a join.
#[derive(Args)]
pub(super) struct Output {
    /// Write JSON instead of CSV: an array of {"left": row, "right": row, "distance_m": meters, "score": score}, with row numbers from 0;
    /// "distance" of planar points and of boxes is in the units of their coordinates; a left row without a match has nulls
    #[arg(long)]
    json: bool,
    /// Write the pairs to this file; its extension selects the format: .csv, .json, .parquet or .geoparquet; - is standard output,
    /// with CSV, or JSON if --json is given [default: -]
    #[arg(long, value_name = "FILE", value_parser = standard_or_with_extension(PAIRS))]
    out: Option<PathBuf>,
}

/// The validated output options: file and format.
pub(super) struct Destination<'a> {
    is_json: bool,
    /// `None` is standard output.
    path: Option<&'a Path>,
}

impl Output {
    /// Validates the options, before any work is done.
    pub(super) fn destination(&self) -> Result<Destination<'_>> {
        let path = self.out.as_deref().filter(|path| path.as_os_str() != STANDARD_STREAM);
        let is_named_json = path.is_some_and(|path| has_extension(path, "json"));
        if self.json && path.is_some_and(|path| !is_named_json && !is_stream(path)) {
            return Err(CliError::Arguments(
                "--json and the extension of --out select different formats: use the extension .json, or leave out --json",
            ));
        }
        Ok(Destination { is_json: self.json || is_named_json, path })
    }
}

impl Destination<'_> {
    /// Writes the pairs that `find` passes to its argument, batch by batch.
    pub(super) fn write<T: Item>(
        &self,
        out: &mut dyn Write,
        [left, right]: [&JoinTable<T>; 2],
        find: impl FnOnce(&mut TakePairs<'_>) -> Result<()>,
    ) -> Result<()> {
        let items = left.items_of_rows();
        let geometries = T::geometries(&items);
        let pairs = PairTable { left: &left.table, right: &right.table, geometries };
        let distance = geometries.distance_column();
        match (self.path, self.is_json) {
            (Some(path), true) => write_atomically_or(path, |file| as_json(path, file, distance, find)),
            (Some(path), false) => pairs.write(path, find),
            (None, true) => as_json(Path::new(""), out, distance, find).map_err(of_output),
            (None, false) => pairs.write_csv(out, find).map_err(of_output),
        }
    }
}

/// Adds standard output to an error without a path.
fn of_output(error: CliError) -> CliError {
    match error {
        CliError::Kauri(Error::Io { path, source }) if path.as_os_str().is_empty() => {
            CliError::Output(source)
        }
        error => error,
    }
}

fn as_json(
    path: &Path,
    to: &mut dyn Write,
    distance: &str,
    find: impl FnOnce(&mut TakePairs<'_>) -> Result<()>,
) -> Result<()> {
    let error = |source| Error::Io { path: path.into(), source };
    let mut before = "[";
    find(&mut |pairs| write_json(to, &mut before, distance, pairs).map_err(error))?;
    // Without pairs the array is empty.
    let begin = if before == "[" { "[" } else { "" };
    Ok(writeln!(to, "{begin}]").map_err(error)?)
}

/// Writes pairs as elements of an array, each after the text `before`. Distances have the name `distance`.
fn write_json(
    to: &mut dyn Write,
    before: &mut &'static str,
    distance: &str,
    pairs: Pairs<'_>,
) -> io::Result<()> {
    for (i, &[left, right]) in pairs.rows.iter().enumerate() {
        let mut value = json!({ "left": left, "right": Some(right).filter(|&right| right != NO_ROW) });
        if let Some(distances) = pairs.distances {
            // NaN becomes null.
            value[distance] = Value::from(distances[i]);
        }
        match pairs.scores {
            Some(Numbers::Integers(scores)) => value["score"] = Value::from(scores[i]),
            Some(Numbers::Floats(scores)) => value["score"] = Value::from(scores[i]),
            None => {}
        }
        to.write_all(std::mem::replace(before, ",").as_bytes())?;
        serde_json::to_writer(&mut *to, &value)?;
    }
    Ok(())
}
