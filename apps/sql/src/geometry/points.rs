//! Points of Arrow arrays.

use super::wkb::decode_wkb;
use crate::error::Error;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, FixedSizeListArray, StructArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Fields, Float64Type};
use kauri::LonLat;

/// The geometries of an array: a value for each row, and which rows have one. Rows without one have a default value.
#[derive(Clone, Debug)]
pub struct Geometries<T> {
    /// The value of each row.
    pub values: Vec<T>,
    /// The rows that have a value; `None` if all have one.
    pub present: Option<NullBuffer>,
}

impl<T> Geometries<T> {
    /// Returns true if a row has a value.
    pub fn has(&self, row: usize) -> bool {
        self.present.as_ref().is_none_or(|present| present.is_valid(row))
    }
}

/// Returns the type of points that functions return.
pub fn point_type() -> DataType {
    let axis = |name| Field::new(name, DataType::Float64, true);
    DataType::Struct(Fields::from(vec![axis("x"), axis("y")]))
}

/// Returns true for the types that [`decode_points`] decodes.
pub fn is_point_type(data_type: &DataType) -> bool {
    match data_type {
        DataType::Struct(fields) => axis_of(fields, "x").is_some() && axis_of(fields, "y").is_some(),
        DataType::FixedSizeList(item, size) => *size >= 2 && item.data_type().is_numeric(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::Null => true,
        _ => false,
    }
}

/// Decodes the points of an array. `column` names it in errors, and its rows are counted from `first_row`.
///
/// # Errors
/// [`Error::NotPoints`], [`Error::NotFinite`], [`Error::InvalidWkb`].
pub fn decode_points(array: &dyn Array, column: &str, first_row: u64) -> Result<Geometries<[f64; 2]>, Error> {
    let not_points = || Error::NotPoints { column: column.into(), found: array.data_type().clone() };
    let points = match array.data_type() {
        DataType::Struct(_) => of_struct(array.as_struct()).ok_or_else(not_points)?,
        DataType::FixedSizeList(..) => of_list(array.as_fixed_size_list()).ok_or_else(not_points)?,
        DataType::Binary => decode_wkb(array.as_binary::<i32>().iter(), column, first_row)?,
        DataType::LargeBinary => decode_wkb(array.as_binary::<i64>().iter(), column, first_row)?,
        DataType::BinaryView => decode_wkb(array.as_binary_view().iter(), column, first_row)?,
        DataType::Null => Geometries {
            values: vec![[0.0; 2]; array.len()],
            present: Some(NullBuffer::new_null(array.len())),
        },
        _ => return Err(not_points()),
    };
    check_finite(&points, column, first_row)?;
    Ok(points)
}

/// Checks that coordinates are longitudes and latitudes in degrees.
///
/// # Errors
/// [`Error::NotOnEarth`].
pub fn check_lon_lat(points: &Geometries<[f64; 2]>, column: &str, first_row: u64) -> Result<(), Error> {
    let limits = [("longitude", LonLat::MAX_LON), ("latitude", LonLat::MAX_LAT)];
    for (row, point) in points.values.iter().enumerate() {
        for (&value, (axis, limit)) in point.iter().zip(limits) {
            if value.abs() > limit && points.has(row) {
                let row = first_row + row as u64;
                return Err(Error::NotOnEarth { column: column.into(), row, axis, value, limit });
            }
        }
    }
    Ok(())
}

/// Checks the values of the rows that have one.
pub(super) fn check_finite<const D: usize>(
    geometries: &Geometries<[f64; D]>,
    column: &str,
    first_row: u64,
) -> Result<(), Error> {
    let is_finite = |values: &[f64; D]| values.iter().all(|value| value.is_finite());
    let invalid =
        geometries.values.iter().enumerate().find(|&(row, values)| !is_finite(values) && geometries.has(row));
    invalid.map_or(Ok(()), |(row, values)| {
        let value = *values.iter().find(|value| !value.is_finite()).expect("one is not finite");
        Err(Error::NotFinite { column: column.into(), row: first_row + row as u64, value })
    })
}

/// Returns the index of a numeric field with this name, in any case.
pub(super) fn axis_of(fields: &Fields, name: &str) -> Option<usize> {
    fields.iter().position(|field| field.name().eq_ignore_ascii_case(name) && field.data_type().is_numeric())
}

/// Returns a numeric child of a struct as `f64`.
pub(super) fn axis_values(array: &StructArray, name: &str) -> Option<ArrayRef> {
    cast(array.column(axis_of(array.fields(), name)?), &DataType::Float64).ok()
}

fn of_struct(array: &StructArray) -> Option<Geometries<[f64; 2]>> {
    let (x, y) = (axis_values(array, "x")?, axis_values(array, "y")?);
    let present = NullBuffer::union(array.nulls(), NullBuffer::union(x.nulls(), y.nulls()).as_ref());
    let (x, y) = (x.as_primitive::<Float64Type>().values(), y.as_primitive::<Float64Type>().values());
    Some(Geometries { values: x.iter().zip(y).map(|(&x, &y)| [x, y]).collect(), present })
}

fn of_list(array: &FixedSizeListArray) -> Option<Geometries<[f64; 2]>> {
    let size = array.value_length() as usize;
    if !is_point_type(array.data_type()) {
        return None;
    }
    let values = cast(array.values(), &DataType::Float64).ok()?;
    let values = values.as_primitive::<Float64Type>();
    let has = |row: usize| (0..2).all(|axis| values.is_valid(row * size + axis));
    let children = (values.null_count() > 0).then(|| (0..array.len()).map(has).collect::<NullBuffer>());
    Some(Geometries {
        values: values.values().chunks_exact(size).map(|point| [point[0], point[1]]).collect(),
        present: NullBuffer::union(array.nulls(), children.as_ref()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Float64Array, StringArray};
    use std::sync::Arc;

    #[test]
    fn interleaved_points() {
        let item = Arc::new(Field::new("xy", DataType::Float64, false));
        let values = Arc::new(Float64Array::from(vec![9.0, 9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
        let nulls = NullBuffer::from(vec![true, true, false, true]);
        let points = FixedSizeListArray::new(item, 2, values, Some(nulls)).slice(1, 3);
        let points = decode_points(&points, "p", 0).unwrap();
        assert_eq!((points.values[0], points.values[2]), ([1.0, 2.0], [5.0, 6.0]));
        assert_eq!([0, 1, 2].map(|row| points.has(row)), [true, false, true]);
        let text = StringArray::from(vec!["POINT(1 2)"]);
        assert!(matches!(decode_points(&text, "p", 0), Err(Error::NotPoints { .. })));
    }
}
