//! Writes Parquet files.

use parquet::basic::Compression;
use parquet::column::writer::{ColumnWriter, ColumnWriterImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::NO_ROW;
use super::values::{Data, Values};
use crate::error::{Error, Result};

/// A column of a file.
pub(crate) struct Column<'a> {
    pub(crate) name: String,
    pub(crate) values: &'a Values,
    /// The rows of `values` to write, [`NO_ROW`] for a null; `None` for all rows in order.
    pub(crate) rows: Option<&'a [u32]>,
    /// True if any row group may have nulls in this column.
    pub(crate) may_have_nulls: bool,
}

/// Writes a Parquet file row group by row group, compressed with Snappy.
pub(crate) struct ParquetWriter<'w> {
    path: PathBuf,
    writer: SerializedFileWriter<&'w mut (dyn Write + Send)>,
}

impl<'w> ParquetWriter<'w> {
    /// Begins a file with the names and types of these columns.
    ///
    /// # Errors
    /// [`Error::Io`] with `path`, which is used only in messages.
    pub(crate) fn new(
        path: &Path,
        file: &'w mut (dyn Write + Send),
        columns: &[Column<'_>],
        metadata: Option<(String, String)>,
    ) -> Result<Self> {
        let types = columns
            .iter()
            .map(|column| column.values.type_in_file(&column.name, column.may_have_nulls).map(Arc::new));
        let schema = types
            .collect::<Result<_, _>>()
            .and_then(|types| Type::group_type_builder("schema").with_fields(types).build());
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("kauri version ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_key_value_metadata(metadata.map(|(key, value)| vec![KeyValue::new(key, value)]))
            .build();
        let writer =
            schema.and_then(|schema| SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties)));
        Ok(Self { path: path.into(), writer: writer.map_err(|error| write_error(path, error))? })
    }

    /// Begins a row group, which readers can read separately.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn group(&mut self) -> Result<GroupWriter<'_, 'w>> {
        let path = &self.path;
        Ok(GroupWriter {
            path,
            group: self.writer.next_row_group().map_err(|error| write_error(path, error))?,
        })
    }

    /// Completes the file.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn finish(self) -> Result<()> {
        let Self { path, writer } = self;
        writer.close().map(drop).map_err(|error| write_error(&path, error))
    }
}

/// Writes a row group, column by column in the order of the file.
pub(crate) struct GroupWriter<'p, 'w> {
    path: &'p Path,
    group: SerializedRowGroupWriter<'p, &'w mut (dyn Write + Send)>,
}

impl GroupWriter<'_, '_> {
    /// Writes the next column.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn write(&mut self, column: &Column<'_>) -> Result<()> {
        let written = self.group.next_column().and_then(|to| {
            // Cannot be missing: the columns are those of the file.
            let Some(mut to) = to else { return Ok(()) };
            column.write(to.untyped())?;
            to.close()
        });
        written.map_err(|error| write_error(self.path, error))
    }

    /// Completes the row group.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn finish(self) -> Result<()> {
        self.group.close().map(drop).map_err(|error| write_error(self.path, error))
    }
}

/// Converts an error of the writer; an error of the system keeps its kind.
fn write_error(path: &Path, error: ParquetError) -> Error {
    let source = match error {
        ParquetError::External(error) => {
            error.downcast::<io::Error>().map_or_else(io::Error::other, |error| *error)
        }
        error => io::Error::other(error),
    };
    Error::Io { path: path.into(), source }
}

impl Column<'_> {
    fn write(&self, to: &mut ColumnWriter<'_>) -> Result<(), ParquetError> {
        match (to, &self.values.data) {
            (ColumnWriter::BoolColumnWriter(to), Data::Bools(all)) => self.write_values(all, to),
            (ColumnWriter::Int32ColumnWriter(to), Data::Int32s(all)) => self.write_values(all, to),
            (ColumnWriter::Int64ColumnWriter(to), Data::Int64s(all)) => self.write_values(all, to),
            (ColumnWriter::Int96ColumnWriter(to), Data::Int96s(all)) => self.write_values(all, to),
            (ColumnWriter::FloatColumnWriter(to), Data::Floats(all)) => self.write_values(all, to),
            (ColumnWriter::DoubleColumnWriter(to), Data::Doubles(all)) => self.write_values(all, to),
            (ColumnWriter::ByteArrayColumnWriter(to), Data::Bytes(all)) => self.write_values(all, to),
            (ColumnWriter::FixedLenByteArrayColumnWriter(to), Data::Fixed(all)) => self.write_values(all, to),
            // Cannot happen: the column's type was derived from its data.
            _ => Err(ParquetError::General(format!("the type of column '{}'", self.name))),
        }
    }

    fn write_values<T: DataType>(
        &self,
        all: &[T::T],
        to: &mut ColumnWriterImpl<'_, T>,
    ) -> Result<(), ParquetError> {
        let num_rows = self.rows.map_or(self.values.len(), <[u32]>::len);
        let indices = (0..num_rows).map(|row| match self.rows.map(|rows| rows[row]) {
            Some(NO_ROW) => None,
            Some(row) => self.values.value_index(row as usize),
            None => self.values.value_index(row),
        });
        let (mut values, mut levels) = (Vec::with_capacity(indices.len()), Vec::with_capacity(indices.len()));
        for index in indices {
            levels.push(i16::from(index.is_some()));
            values.extend(index.map(|index| all[index].clone()));
        }
        // The levels are ignored for a column without nulls.
        to.write_batch(&values, Some(&levels), None)?;
        Ok(())
    }
}
