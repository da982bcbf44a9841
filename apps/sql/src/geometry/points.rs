//! Points of Arrow arrays.

use super::{Measure, TASK_ROWS};
use crate::error::Error;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, FixedSizeListArray, StructArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Fields, Float64Type};
use kauri::LonLat;
use kauri::arrow::{ArrowPoints, Nulls, points, points_of_columns};
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};
use rayon::slice::ParallelSlice;
use std::borrow::Cow;
use std::sync::Arc;

/// The geometries of an array: a value for each row, and which rows have one. The values of other rows are arbitrary.
#[derive(Clone, Debug)]
pub struct Geometries<'a, T: Clone> {
    /// The value of each row, in the memory of the array where its layout allows.
    pub values: Cow<'a, [T]>,
    /// The rows that have a value; `None` if all have one.
    pub present: Option<NullBuffer>,
}

impl<T: Clone> Geometries<'_, T> {
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
/// [`Error::NotPoints`], [`Error::NotFinite`], [`Error::InvalidWkb`], [`Error::Library`].
pub fn decode_points<'a>(
    array: &'a dyn Array,
    column: &str,
    first_row: u64,
) -> Result<Geometries<'a, [f64; 2]>, Error> {
    let not_points = || Error::NotPoints { column: column.into(), found: array.data_type().clone() };
    let invalid = |error| match error {
        kauri::Error::NotPoints { .. } => not_points(),
        kauri::Error::InvalidWkb { row, what } => {
            Error::InvalidWkb { column: column.into(), row: first_row + row, reason: what }
        }
        other => Error::Library(Box::new(other)),
    };
    let points = match array.data_type() {
        DataType::Struct(_) => of_struct(array.as_struct()),
        DataType::FixedSizeList(item, _) if *item.data_type() != DataType::Float64 => {
            of_list(array.as_fixed_size_list())
        }
        DataType::Null => {
            let present = Some(NullBuffer::new_null(array.len()));
            return Ok(Geometries { values: vec![[0.0; 2]; array.len()].into(), present });
        }
        _ => Some(points(array, Nulls::Keep).map(geometries)),
    };
    let points = points.ok_or_else(not_points)?.map_err(invalid)?;
    check_finite(&points, column, first_row)?;
    Ok(points)
}

/// Checks the points of an array as [`decode_points`] and [`check_lon_lat`] do, and returns the rows that have one; `None` if all have.
///
/// # Errors
/// The errors of [`decode_points`] and [`check_lon_lat`].
pub fn check_points(
    array: &dyn Array,
    measure: Measure,
    column: &str,
    first_row: u64,
) -> Result<Option<NullBuffer>, Error> {
    let limits = match measure {
        Measure::Planar => [f64::MAX; 2],
        Measure::LonLat => [LonLat::MAX_LON, LonLat::MAX_LAT],
    };
    // Columns of valid numbers need no copy.
    if let Some(points) = array.as_struct_opt() {
        let axis = |name| points.column(axis_of(points.fields(), name)?).as_primitive_opt::<Float64Type>();
        if let [Some(x), Some(y)] = ["x", "y"].map(axis)
            && are_within(x.values(), limits[0])
            && are_within(y.values(), limits[1])
        {
            let present = NullBuffer::union(x.nulls(), y.nulls());
            return Ok(NullBuffer::union(points.nulls(), present.as_ref()));
        }
    }
    let points = decode_points(array, column, first_row)?;
    if measure == Measure::LonLat {
        check_lon_lat(&points, column, first_row)?;
    }
    Ok(points.present)
}

/// Checks that coordinates are longitudes and latitudes in degrees.
///
/// # Errors
/// [`Error::NotOnEarth`].
pub fn check_lon_lat(points: &Geometries<'_, [f64; 2]>, column: &str, first_row: u64) -> Result<(), Error> {
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

/// Returns true if no value is NaN or beyond a limit.
fn are_within(values: &[f64], limit: f64) -> bool {
    // Without a branch for each value.
    values.iter().fold(true, |all_are, value| all_are & (value.abs() <= limit))
}

/// Checks the values of the rows that have one.
pub(super) fn check_finite<const D: usize>(
    geometries: &Geometries<'_, [f64; D]>,
    column: &str,
    first_row: u64,
) -> Result<(), Error> {
    if geometries.values.par_chunks(TASK_ROWS).all(|values| are_within(values.as_flattened(), f64::MAX)) {
        return Ok(());
    }
    let is_finite = |values: &[f64; D]| values.iter().all(|value| value.is_finite());
    let is_invalid = |&(row, values): &(usize, &[f64; D])| !is_finite(values) && geometries.has(row);
    let invalid = geometries.values.par_iter().with_min_len(TASK_ROWS).enumerate().find_first(is_invalid);
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

/// Takes the points of the fields x and y, of any numeric types and in any order; `None` if the fields are missing.
fn of_struct(array: &StructArray) -> Option<kauri::Result<Geometries<'static, [f64; 2]>>> {
    let (x, y) = (axis_values(array, "x")?, axis_values(array, "y")?);
    let points = points_of_columns(&[&x, &y], Nulls::Keep).map(geometries);
    let with_nulls = |Geometries { values, present }| {
        let present = NullBuffer::union(array.nulls(), present.as_ref());
        Geometries { values, present }
    };
    Some(points.map(with_nulls))
}

/// Takes points of another numeric type than `f64`; `None` if they are not numbers.
fn of_list(array: &FixedSizeListArray) -> Option<kauri::Result<Geometries<'static, [f64; 2]>>> {
    if !is_point_type(array.data_type()) {
        return None;
    }
    let numbers = cast(array.values(), &DataType::Float64).ok()?;
    let item = Arc::new(Field::new_list_field(DataType::Float64, true));
    let nulls = array.nulls().cloned();
    let list = FixedSizeListArray::try_new(item, array.value_length(), numbers, nulls).ok()?;
    let points = points(&list, Nulls::Keep).map(geometries);
    Some(points.map(|Geometries { values, present }| {
        let values = Cow::Owned(values.into_owned());
        Geometries { values, present }
    }))
}

fn geometries(points: ArrowPoints<'_, [f64; 2]>) -> Geometries<'_, [f64; 2]> {
    let present = points.nulls().cloned();
    Geometries { values: points.into_cow(), present }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{BinaryArray, Float32Array, Float64Array, StringArray};
    use datafusion::arrow::datatypes::Int32Type;

    #[test]
    fn interleaved_points() {
        let item = Arc::new(Field::new("xy", DataType::Float64, false));
        let values = Arc::new(Float64Array::from(vec![9.0, 9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
        let nulls = NullBuffer::from(vec![true, true, false, true]);
        let points = FixedSizeListArray::new(item, 2, values, Some(nulls)).slice(1, 3);
        let points = decode_points(&points, "p", 0).unwrap();
        assert_eq!((points.values[0], points.values[2]), ([1.0, 2.0], [5.0, 6.0]));
        assert_eq!([0, 1, 2].map(|row| points.has(row)), [true, false, true]);
        assert!(matches!(points.values, Cow::Borrowed(_)));
        let text = StringArray::from(vec!["POINT(1 2)"]);
        assert!(matches!(decode_points(&text, "p", 0), Err(Error::NotPoints { .. })));
    }

    /// Numbers of other types are converted, a height is ignored, and the names of fields decide.
    #[test]
    fn points_of_other_numbers() {
        let rows = [Some([Some(1), Some(2), Some(9)]), None, Some([Some(3), None, Some(9)])];
        let list = FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(rows, 3);
        let points = decode_points(&list, "p", 0).unwrap();
        assert_eq!(points.values[0], [1.0, 2.0]);
        assert_eq!([0, 1, 2].map(|row| points.has(row)), [true, false, false]);
        let numbers = |values: [f32; 2]| Arc::new(Float32Array::from(values.to_vec())) as ArrayRef;
        let columns = [("z", [9.0, 9.0]), ("Y", [2.0, 4.0]), ("x", [1.0, 3.0])];
        let fields = columns.map(|(name, values)| (name, numbers(values)));
        let points = StructArray::try_from(fields.to_vec()).unwrap();
        assert_eq!(*decode_points(&points, "p", 0).unwrap().values, [[1.0, 2.0], [3.0, 4.0]]);
        let no_points = StructArray::try_from(vec![("x", numbers([1.0, 2.0]))]).unwrap();
        assert!(matches!(decode_points(&no_points, "p", 0), Err(Error::NotPoints { .. })));
    }

    #[test]
    fn errors_name_the_row() {
        let point = [&[1, 1, 0, 0, 0][..], &[0; 16]].concat();
        let array = BinaryArray::from(vec![&point[..], &point[..20]]);
        let error = decode_points(&array, "p", 40).unwrap_err();
        let expected = "column 'p', row 41: 20 bytes that are not well-known binary";
        assert!(error.to_string().starts_with(expected), "{error}");
        let error = decode_points(&Float64Array::from(vec![1.0]), "p", 0).unwrap_err();
        assert!(matches!(error, Error::NotPoints { .. }));
    }
}
