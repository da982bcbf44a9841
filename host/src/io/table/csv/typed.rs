//! The fields of CSV files as values with types, for Parquet files.

use super::{Csv, number};
use crate::error::Result;
use crate::io::table::Values;
use crate::memory;

/// The type of a column: integers or floats if all its nonempty fields are, else text. Integers are floats too, and all fields are text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Kind {
    Integers,
    Floats,
    Texts,
}

impl Csv {
    /// Returns the types of all columns. A column without values is text.
    pub(in super::super) fn kinds(&self) -> Result<Vec<Kind>> {
        let mut kinds = vec![None; self.num_columns];
        self.each(|_, record| {
            for (kind, field) in kinds.iter_mut().zip(record) {
                if *kind != Some(Kind::Texts) {
                    *kind = (*kind).max(kind_of(&String::from_utf8_lossy(field)));
                }
            }
            Ok(())
        })?;
        Ok(kinds.into_iter().map(|kind| kind.unwrap_or(Kind::Texts)).collect())
    }

    /// Reads all columns of these rows, which must be in ascending order. The columns must have these types.
    pub(in super::super) fn values(&self, kinds: &[Kind], rows: &[u32]) -> Result<Vec<Values>> {
        let mut columns: Vec<Builder> = kinds.iter().map(|&kind| Builder::new(kind)).collect();
        self.each_of(rows, |record| {
            for (column, field) in columns.iter_mut().zip(record) {
                column.push(&String::from_utf8_lossy(field))?.ok_or_else(|| self.input.changed())?;
            }
            Ok(())
        })?;
        Ok(columns.into_iter().map(Builder::finish).collect())
    }
}

/// Returns the type of a field; `None` for an empty field.
fn kind_of(text: &str) -> Option<Kind> {
    let text = text.trim();
    match text {
        "" => None,
        _ if !is_plain(text) => Some(Kind::Texts),
        _ if text.parse::<i64>().is_ok() => Some(Kind::Integers),
        _ if number(text).is_ok() => Some(Kind::Floats),
        _ => Some(Kind::Texts),
    }
}

/// Returns true for a plain number. A field with leading zeros or a plus sign is a code, not a number.
fn is_plain(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    match digits {
        [b'0', second, ..] => !second.is_ascii_digit(),
        [first, ..] => first.is_ascii_digit(),
        [] => false,
    }
}

/// A column that is being read.
struct Builder {
    fields: Fields,
    /// False for an empty field of numbers, which is a null.
    has_value: Vec<bool>,
}

enum Fields {
    Integers(Vec<i64>),
    Floats(Vec<f64>),
    Texts(Vec<String>),
}

impl Builder {
    fn new(kind: Kind) -> Self {
        let fields = match kind {
            Kind::Integers => Fields::Integers(Vec::new()),
            Kind::Floats => Fields::Floats(Vec::new()),
            Kind::Texts => Fields::Texts(Vec::new()),
        };
        Self { fields, has_value: Vec::new() }
    }

    /// Appends a field. Returns `None` for a field of another type.
    fn push(&mut self, text: &str) -> Result<Option<()>> {
        const LABEL: &str = "values of a column";
        let trimmed = text.trim();
        let has_value = !trimmed.is_empty() || matches!(self.fields, Fields::Texts(_));
        memory::reserve_more(&mut self.has_value, 1, LABEL)?;
        self.has_value.push(has_value);
        if !has_value {
            return Ok(Some(()));
        }
        match &mut self.fields {
            Fields::Integers(all) => push(all, trimmed.parse().ok(), LABEL),
            Fields::Floats(all) => push(all, number(trimmed).ok(), LABEL),
            Fields::Texts(all) => push(all, Some(memory::copy_text(text, LABEL)?), LABEL),
        }
    }

    fn finish(self) -> Values {
        let values = match self.fields {
            Fields::Integers(all) => Values::integers(all),
            Fields::Floats(all) => Values::floats(all),
            Fields::Texts(all) => Values::texts(all.into_iter()),
        };
        values.with_nulls(self.has_value.into_iter())
    }
}

fn push<T>(all: &mut Vec<T>, value: Option<T>, label: &'static str) -> Result<Option<()>> {
    memory::reserve_more(all, 1, label)?;
    Ok(value.map(|value| all.push(value)))
}
