//! The values of a column in memory, with their Parquet type.

use parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray, Int96};
use parquet::errors::ParquetError;
use parquet::record::Field;
use parquet::schema::types::{ColumnDescPtr, Type, TypePtr};
use std::sync::Arc;

use super::{Numbers, finite, wkb};
use crate::error::{FileLocation, Result};
use crate::io::decode_error::DecodeError;
use crate::memory;

/// The number of values read at a time.
const BATCH: usize = 1 << 16;
/// The value index of a null.
const NULL: u32 = u32::MAX;
/// The largest distance from 1970, in milliseconds, of a date that can be formatted.
const MAX_MILLIS: i64 = 8_000_000_000_000_000;

/// The values of a column, one per row.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    /// The name and type in the file.
    pub(super) parquet_type: TypePtr,
    pub(super) data: Data,
    /// The index of each row's value; `None` if no row is null.
    value_indices: Option<Vec<u32>>,
}

/// The non-null values, by type in the file.
#[derive(Clone, Debug)]
pub(super) enum Data {
    Bools(Vec<bool>),
    Int32s(Vec<i32>),
    Int64s(Vec<i64>),
    Int96s(Vec<Int96>),
    Floats(Vec<f32>),
    Doubles(Vec<f64>),
    Bytes(Vec<ByteArray>),
    Fixed(Vec<FixedLenByteArray>),
}

impl Data {
    /// Returns no values of this type.
    fn empty(&self) -> Self {
        match self {
            Self::Bools(_) => Self::Bools(Vec::new()),
            Self::Int32s(_) => Self::Int32s(Vec::new()),
            Self::Int64s(_) => Self::Int64s(Vec::new()),
            Self::Int96s(_) => Self::Int96s(Vec::new()),
            Self::Floats(_) => Self::Floats(Vec::new()),
            Self::Doubles(_) => Self::Doubles(Vec::new()),
            Self::Bytes(_) => Self::Bytes(Vec::new()),
            Self::Fixed(_) => Self::Fixed(Vec::new()),
        }
    }

    /// Appends some values of equal type.
    fn append(&mut self, from: &Self, indices: &[usize]) -> Result<()> {
        // A clone of bytes would keep the whole page in memory.
        let bytes = |bytes: &ByteArray| ByteArray::from(bytes.data().to_vec());
        match (self, from) {
            (Self::Bools(to), Self::Bools(from)) => append(to, from, indices, Clone::clone),
            (Self::Int32s(to), Self::Int32s(from)) => append(to, from, indices, Clone::clone),
            (Self::Int64s(to), Self::Int64s(from)) => append(to, from, indices, Clone::clone),
            (Self::Int96s(to), Self::Int96s(from)) => append(to, from, indices, Clone::clone),
            (Self::Floats(to), Self::Floats(from)) => append(to, from, indices, Clone::clone),
            (Self::Doubles(to), Self::Doubles(from)) => append(to, from, indices, Clone::clone),
            (Self::Bytes(to), Self::Bytes(from)) => append(to, from, indices, bytes),
            (Self::Fixed(to), Self::Fixed(from)) => append(to, from, indices, |fixed| bytes(fixed).into()),
            _ => unreachable!("columns of equal type"),
        }
    }
}

fn append<T>(to: &mut Vec<T>, from: &[T], indices: &[usize], copy: impl Fn(&T) -> T) -> Result<()> {
    memory::reserve_more(to, indices.len(), "values of a column")?;
    to.extend(indices.iter().map(|&index| copy(&from[index])));
    Ok(())
}

/// The logical type of values, as far as numbers and text depend on it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Meaning {
    Integers,
    Unsigned,
    /// Decimal numbers with this many digits after the point.
    Decimals(i32),
    Floats,
    Texts,
    Dates,
    /// Timestamps, with this number of units per second.
    Timestamps(i64),
    Other,
}

/// The location of an invalid value in its column, and the reason.
pub(super) type CellError = (FileLocation, String);

impl Values {
    /// Creates a column of integers without nulls.
    pub(crate) fn integers(values: Vec<i64>) -> Self {
        Self::new(Physical::INT64, None, Data::Int64s(values))
    }

    pub(crate) fn floats(values: Vec<f64>) -> Self {
        Self::new(Physical::DOUBLE, None, Data::Doubles(values))
    }

    pub(crate) fn texts(values: impl Iterator<Item = String>) -> Self {
        let values = values.map(|text| ByteArray::from(text.into_bytes())).collect();
        Self::new(Physical::BYTE_ARRAY, Some(LogicalType::String), Data::Bytes(values))
    }

    /// Creates a column of points in well-known binary.
    pub(crate) fn points(points: impl Iterator<Item = [f64; 2]>) -> Self {
        let values = points.map(|point| ByteArray::from(wkb::to_wkb(point))).collect();
        Self::new(Physical::BYTE_ARRAY, None, Data::Bytes(values))
    }

    /// Creates a column of boxes as polygons in well-known binary.
    pub(crate) fn boxes(boxes: impl Iterator<Item = [[f64; 2]; 2]>) -> Self {
        let values = boxes.map(|bounds| ByteArray::from(wkb::box_to_wkb(bounds))).collect();
        Self::new(Physical::BYTE_ARRAY, None, Data::Bytes(values))
    }

    /// Copies the values of these rows.
    pub(super) fn select(&self, rows: &[u32]) -> Result<Self> {
        let mut selected = ColumnBuilder::like(self);
        selected.append(self, rows.iter().map(|&row| row as usize))?;
        Ok(selected.finish())
    }

    /// Inserts nulls in the rows without a value.
    pub(crate) fn with_nulls(mut self, has_value: impl Iterator<Item = bool>) -> Self {
        let mut indices = ValueIndices::default();
        has_value.for_each(|has_value| indices.push(has_value));
        self.value_indices = indices.finish();
        self
    }

    fn new(physical: Physical, logical: Option<LogicalType>, data: Data) -> Self {
        let parquet_type =
            Type::primitive_type_builder("values", physical).with_logical_type(logical).build();
        Self { parquet_type: Arc::new(parquet_type.expect("a valid type")), data, value_indices: None }
    }

    /// Returns the number of rows.
    pub(super) fn len(&self) -> usize {
        let num_values = match &self.data {
            Data::Bools(all) => all.len(),
            Data::Int32s(all) => all.len(),
            Data::Int64s(all) => all.len(),
            Data::Int96s(all) => all.len(),
            Data::Floats(all) => all.len(),
            Data::Doubles(all) => all.len(),
            Data::Bytes(all) => all.len(),
            Data::Fixed(all) => all.len(),
        };
        self.value_indices.as_ref().map_or(num_values, Vec::len)
    }

    /// Returns the least number of bytes of a value in memory.
    pub(super) fn bytes_each(column: &ColumnDescPtr) -> u64 {
        let bytes = match column.physical_type() {
            Physical::BOOLEAN => size_of::<bool>(),
            Physical::INT32 | Physical::FLOAT => size_of::<i32>(),
            Physical::INT64 | Physical::DOUBLE => size_of::<i64>(),
            Physical::INT96 => size_of::<Int96>(),
            Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY => size_of::<ByteArray>(),
        };
        bytes as u64
    }

    /// Returns the bytes of the texts of all rows, for types whose texts have no fixed length. A few bytes of a file can
    /// encode very long texts.
    pub(super) fn bytes_of_texts(&self) -> u64 {
        let num_rows = self.value_indices.as_ref().map_or(usize::MAX, Vec::len);
        let sum = |len: &dyn Fn(usize) -> Option<usize>| {
            (0..num_rows)
                .map_while(|row| self.value_index(row).map_or(Some(0), len))
                .map(|len| len as u64)
                .sum::<u64>()
        };
        match &self.data {
            Data::Bytes(all) if self.meaning() == Meaning::Texts => sum(&|index| Some(all.get(index)?.len())),
            Data::Bytes(all) => 2 * sum(&|index| Some(all.get(index)?.len())),
            Data::Fixed(all) => 2 * sum(&|index| Some(all.get(index)?.len())),
            _ => 0,
        }
    }

    /// Returns the Parquet type of a column with this name and such values, with or without nulls.
    pub(super) fn type_in_file(&self, name: &str, may_have_nulls: bool) -> Result<Type, ParquetError> {
        let repetition = if may_have_nulls { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let info = self.parquet_type.get_basic_info();
        let mut builder = Type::primitive_type_builder(name, self.parquet_type.get_physical_type())
            .with_repetition(repetition)
            .with_converted_type(info.converted_type())
            .with_logical_type(info.logical_type_ref().cloned());
        if let Type::PrimitiveType { type_length, scale, precision, .. } = &*self.parquet_type {
            builder = builder.with_length(*type_length).with_scale(*scale).with_precision(*precision);
        }
        builder.build()
    }

    /// Returns the index of a row's value among the non-null values.
    pub(super) fn value_index(&self, row: usize) -> Option<usize> {
        match &self.value_indices {
            None => Some(row),
            Some(indices) => Some(indices[row]).filter(|&index| index != NULL).map(|index| index as usize),
        }
    }

    /// Returns the numbers of all rows. A null is an error.
    pub(super) fn numbers(&self) -> Result<Numbers, CellError> {
        match self.value_indices.as_ref().and_then(|indices| indices.iter().position(|&index| index == NULL))
        {
            Some(row) => Err((FileLocation::Row(row as u64), "null; expected a number".into())),
            None => self.present_numbers(),
        }
    }

    /// Returns the numbers of all rows. A null is an error, or NaN if it `may_be_missing`.
    pub(super) fn coordinates(&self, may_be_missing: bool) -> Result<Vec<f64>, CellError> {
        match &self.value_indices {
            Some(_) if may_be_missing => {
                let numbers = self.present_numbers()?.into_floats();
                let number = |row| self.value_index(row).map_or(f64::NAN, |index| numbers[index]);
                Ok((0..self.len()).map(number).collect())
            }
            _ => Ok(self.numbers()?.into_floats()),
        }
    }

    /// Returns the numbers of the rows without a null.
    fn present_numbers(&self) -> Result<Numbers, CellError> {
        let row_of = |index: usize| match &self.value_indices {
            Some(indices) => indices.iter().position(|&other| other as usize == index).unwrap_or(index),
            None => index,
        };
        let floats = |floats: Vec<f64>| {
            let first = floats.iter().enumerate().find_map(|(i, &value)| Some((i, finite(value).err()?)));
            match first {
                None => Ok(Numbers::Floats(floats)),
                Some((index, what)) => Err((FileLocation::Row(row_of(index) as u64), what)),
            }
        };
        match (&self.data, self.meaning()) {
            (Data::Int32s(all), Meaning::Integers) => {
                Ok(Numbers::Integers(all.iter().map(|&value| value.into()).collect()))
            }
            (Data::Int32s(all), Meaning::Unsigned) => {
                Ok(Numbers::Integers(all.iter().map(|&value| (value as u32).into()).collect()))
            }
            (Data::Int32s(all), Meaning::Decimals(scale)) => {
                floats(all.iter().map(|&value| f64::from(value) / 10_f64.powi(scale)).collect())
            }
            (Data::Int64s(all), Meaning::Integers) => Ok(Numbers::Integers(all.clone())),
            (Data::Int64s(all), Meaning::Unsigned) if all.iter().all(|&value| value >= 0) => {
                Ok(Numbers::Integers(all.clone()))
            }
            (Data::Int64s(all), Meaning::Unsigned) => {
                floats(all.iter().map(|&value| value as u64 as f64).collect())
            }
            (Data::Int64s(all), Meaning::Decimals(scale)) => {
                floats(all.iter().map(|&value| value as f64 / 10_f64.powi(scale)).collect())
            }
            (Data::Floats(all), _) => floats(all.iter().map(|&value| value.into()).collect()),
            (Data::Doubles(all), _) => floats(all.clone()),
            _ => Err((FileLocation::Whole, format!("it has {}; expected numbers", self.type_name()))),
        }
    }

    /// Returns the bytes of a row; `None` for a null. The error is the reason why there are none; `expected` names what they encode.
    pub(super) fn bytes(&self, row: usize, expected: &str) -> Result<Option<&[u8]>, String> {
        match &self.data {
            Data::Bytes(all) => Ok(self.value_index(row).map(|index| all[index].data())),
            _ => Err(format!("it has {}; expected {expected} as bytes", self.type_name())),
        }
    }

    /// Returns the value of a row as text. A null is an empty text.
    pub(super) fn text(&self, row: usize) -> String {
        let Some(index) = self.value_index(row) else { return String::new() };
        let timestamp = |value: i64, in_second: i64| {
            let millis = i128::from(value) * 1000 / i128::from(in_second);
            match i64::try_from(millis) {
                Ok(millis) if millis.abs() < MAX_MILLIS => match in_second {
                    1_000_000 => Field::TimestampMicros(value).to_string(),
                    _ => Field::TimestampMillis(millis).to_string(),
                },
                _ => value.to_string(),
            }
        };
        let meaning = self.meaning();
        match &self.data {
            Data::Bools(all) => all[index].to_string(),
            Data::Int32s(all) => match (all[index], meaning) {
                (value, Meaning::Unsigned) => (value as u32).to_string(),
                (value, Meaning::Decimals(scale)) => decimal(value.into(), scale),
                (value, Meaning::Dates) if i64::from(value).abs() < MAX_MILLIS / 86_400_000 => {
                    Field::Date(value).to_string()
                }
                (value, _) => value.to_string(),
            },
            Data::Int64s(all) => match (all[index], meaning) {
                (value, Meaning::Unsigned) => (value as u64).to_string(),
                (value, Meaning::Decimals(scale)) => decimal(value, scale),
                (value, Meaning::Timestamps(in_second)) => timestamp(value, in_second),
                (value, _) => value.to_string(),
            },
            Data::Int96s(all) => timestamp(all[index].to_millis(), 1000),
            Data::Floats(all) => all[index].to_string(),
            Data::Doubles(all) => all[index].to_string(),
            Data::Bytes(all) if meaning == Meaning::Texts => {
                String::from_utf8_lossy(all[index].data()).into_owned()
            }
            Data::Bytes(all) => hexadecimal(all[index].data()),
            Data::Fixed(all) => hexadecimal(all[index].data()),
        }
    }

    fn type_name(&self) -> &'static str {
        match (&self.data, self.meaning()) {
            (_, Meaning::Texts) => "text",
            (_, Meaning::Dates) => "dates",
            (_, Meaning::Timestamps(_)) | (Data::Int96s(_), _) => "timestamps",
            (_, Meaning::Integers | Meaning::Unsigned | Meaning::Decimals(_) | Meaning::Floats) => "numbers",
            (Data::Bools(_), _) => "booleans",
            (Data::Bytes(_) | Data::Fixed(_), _) => "bytes",
            _ => "values of another type",
        }
    }

    fn meaning(&self) -> Meaning {
        let info = self.parquet_type.get_basic_info();
        let in_second = |unit: &TimeUnit| match unit {
            TimeUnit::MILLIS => 1000,
            TimeUnit::MICROS => 1_000_000,
            TimeUnit::NANOS => 1_000_000_000,
        };
        match info.logical_type_ref() {
            Some(LogicalType::Integer(of)) if of.is_signed => return Meaning::Integers,
            Some(LogicalType::Integer(_)) => return Meaning::Unsigned,
            Some(LogicalType::Decimal(of)) if of.scale == 0 => return Meaning::Integers,
            Some(LogicalType::Decimal(of)) => return Meaning::Decimals(of.scale),
            Some(LogicalType::Date) => return Meaning::Dates,
            Some(LogicalType::Timestamp(of)) => return Meaning::Timestamps(in_second(&of.unit)),
            Some(LogicalType::String | LogicalType::Enum | LogicalType::Json) => return Meaning::Texts,
            Some(_) => return Meaning::Other,
            None => {}
        }
        match (info.converted_type(), self.parquet_type.get_physical_type()) {
            (ConvertedType::UINT_8 | ConvertedType::UINT_16, _)
            | (ConvertedType::UINT_32 | ConvertedType::UINT_64, _) => Meaning::Unsigned,
            (ConvertedType::DECIMAL, _) if self.parquet_type.get_scale() == 0 => Meaning::Integers,
            (ConvertedType::DECIMAL, _) => Meaning::Decimals(self.parquet_type.get_scale()),
            (ConvertedType::DATE, _) => Meaning::Dates,
            (ConvertedType::TIMESTAMP_MILLIS, _) => Meaning::Timestamps(1000),
            (ConvertedType::TIMESTAMP_MICROS, _) => Meaning::Timestamps(1_000_000),
            (ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON, _) => Meaning::Texts,
            (ConvertedType::INT_8 | ConvertedType::INT_16, _)
            | (ConvertedType::INT_32 | ConvertedType::INT_64, _)
            | (ConvertedType::NONE, Physical::INT32 | Physical::INT64) => Meaning::Integers,
            (ConvertedType::NONE, Physical::FLOAT | Physical::DOUBLE) => Meaning::Floats,
            _ => Meaning::Other,
        }
    }
}

/// Builder of the value indices of rows.
#[derive(Default)]
struct ValueIndices {
    indices: Vec<u32>,
    num_values: u32,
}

impl ValueIndices {
    fn push(&mut self, has_value: bool) {
        self.indices.push(if has_value { self.num_values } else { NULL });
        self.num_values += u32::from(has_value);
    }

    /// Returns the indices, or `None` if no row is null.
    fn finish(self) -> Option<Vec<u32>> {
        (self.indices.len() > self.num_values as usize).then_some(self.indices)
    }
}

/// A column that is being read, row group by row group.
pub(super) struct ColumnBuilder {
    parquet_type: TypePtr,
    data: Data,
    rows: Rows,
}

/// The rows that have been read.
struct Rows {
    value_indices: ValueIndices,
    /// The definition level of values that are not null.
    max_level: i16,
    len: usize,
}

impl ColumnBuilder {
    pub(super) fn new(column: &ColumnDescPtr) -> Self {
        let data = match column.physical_type() {
            Physical::BOOLEAN => Data::Bools(Vec::new()),
            Physical::INT32 => Data::Int32s(Vec::new()),
            Physical::INT64 => Data::Int64s(Vec::new()),
            Physical::INT96 => Data::Int96s(Vec::new()),
            Physical::FLOAT => Data::Floats(Vec::new()),
            Physical::DOUBLE => Data::Doubles(Vec::new()),
            Physical::BYTE_ARRAY => Data::Bytes(Vec::new()),
            Physical::FIXED_LEN_BYTE_ARRAY => Data::Fixed(Vec::new()),
        };
        let max_level = column.max_def_level();
        let rows = Rows { value_indices: ValueIndices::default(), max_level, len: 0 };
        Self { parquet_type: column.self_type_ptr(), data, rows }
    }

    /// Returns a builder of a column of the type of `values`.
    fn like(values: &Values) -> Self {
        let rows = Rows { value_indices: ValueIndices::default(), max_level: 1, len: 0 };
        Self { parquet_type: Arc::clone(&values.parquet_type), data: values.data.empty(), rows }
    }

    /// Appends some rows of a column of equal type.
    pub(super) fn append(&mut self, from: &Values, rows: impl ExactSizeIterator<Item = usize>) -> Result<()> {
        let mut indices = memory::vec_with_capacity(rows.len(), "values of a column")?;
        memory::reserve_more(&mut self.rows.value_indices.indices, rows.len(), "values of a column")?;
        for row in rows {
            let index = from.value_index(row);
            self.rows.value_indices.push(index.is_some());
            self.rows.len += 1;
            indices.extend(index);
        }
        self.data.append(&from.data, &indices)
    }

    /// Returns the number of rows so far.
    pub(super) fn len(&self) -> usize {
        self.rows.len
    }

    pub(super) fn finish(self) -> Values {
        let Self { parquet_type, data, rows } = self;
        Values { parquet_type, data, value_indices: rows.value_indices.finish() }
    }

    /// Appends the rows of a row group, at most `most` of them.
    pub(super) fn read(&mut self, reader: ColumnReader, most: usize) -> Result<(), DecodeError> {
        use ColumnReader as Reader;
        let rows = &mut self.rows;
        match (reader, &mut self.data) {
            (Reader::BoolColumnReader(reader), Data::Bools(all)) => rows.append(reader, all, most),
            (Reader::Int32ColumnReader(reader), Data::Int32s(all)) => rows.append(reader, all, most),
            (Reader::Int64ColumnReader(reader), Data::Int64s(all)) => rows.append(reader, all, most),
            (Reader::Int96ColumnReader(reader), Data::Int96s(all)) => rows.append(reader, all, most),
            (Reader::FloatColumnReader(reader), Data::Floats(all)) => rows.append(reader, all, most),
            (Reader::DoubleColumnReader(reader), Data::Doubles(all)) => rows.append(reader, all, most),
            (Reader::ByteArrayColumnReader(reader), Data::Bytes(all)) => rows.append(reader, all, most),
            (Reader::FixedLenByteArrayColumnReader(reader), Data::Fixed(all)) => {
                rows.append(reader, all, most)
            }
            _ => Err("a column has another type in one of its row groups".into()),
        }
    }
}

impl Rows {
    fn append<T: DataType>(
        &mut self,
        mut reader: ColumnReaderImpl<T>,
        values: &mut Vec<T::T>,
        most: usize,
    ) -> Result<(), DecodeError> {
        let mut levels = Vec::new();
        // One additional row, to detect excess rows.
        let mut remaining = most + 1;
        while remaining > 0 {
            levels.clear();
            let batch = remaining.min(BATCH);
            memory::reserve_more(values, batch, "values of a column")?;
            let levels_too = (self.max_level > 0).then_some(&mut levels);
            let (num_rows, _, _) = reader.read_records(batch, levels_too, None, values)?;
            if num_rows == 0 {
                break;
            }
            if self.max_level > 0 {
                memory::reserve_more(&mut self.value_indices.indices, levels.len(), "values of a column")?;
                levels.iter().for_each(|&level| self.value_indices.push(level == self.max_level));
            }
            self.len += num_rows;
            remaining -= num_rows.min(remaining);
        }
        Ok(())
    }
}

/// Formats a number with a decimal point before its last digits.
fn decimal(value: i64, scale: i32) -> String {
    let scale = scale.max(0) as usize;
    let digits = format!("{:0width$}", value.unsigned_abs(), width = scale + 1);
    let (whole, part) = digits.split_at(digits.len() - scale);
    let sign = if value < 0 { "-" } else { "" };
    if part.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{part}") }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(physical: Physical, logical: LogicalType, data: Data) -> Values {
        Values::new(physical, Some(logical), data)
    }

    #[test]
    fn values_as_text() {
        assert_eq!([decimal(-12345, 2), decimal(5, 3), decimal(7, 0)].join(" "), "-123.45 0.005 7");
        let dates = typed(Physical::INT32, LogicalType::Date, Data::Int32s(vec![0, -1, i32::MAX]));
        assert_eq!([0, 1, 2].map(|row| dates.text(row)).join(" "), "1970-01-01 1969-12-31 2147483647");
        let of = LogicalType::timestamp(true, TimeUnit::MICROS);
        let moments = typed(Physical::INT64, of, Data::Int64s(vec![1_500_000, i64::MIN]));
        assert!(moments.text(0).starts_with("1970-01-01 00:00:01.5"), "{}", moments.text(0));
        assert_eq!(moments.text(1), i64::MIN.to_string());
        let large = typed(Physical::INT64, LogicalType::integer(64, false), Data::Int64s(vec![-1]));
        assert_eq!(large.text(0), u64::MAX.to_string());
        assert_eq!(large.numbers().ok(), Some(Numbers::Floats(vec![u64::MAX as f64])));
        assert_eq!(Values::points([[0.0; 2]].into_iter()).text(0), format!("0101{}", "0".repeat(38)));
        let texts = Values::texts(["a".to_owned(), "ü".to_owned()].into_iter());
        let texts = texts.with_nulls([true, false, true].into_iter());
        assert_eq!([0, 1, 2].map(|row| texts.text(row)), ["a", "", "ü"]);
    }
}
