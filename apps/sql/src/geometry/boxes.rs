//! Bounding boxes of Arrow arrays.

use super::points::{Geometries, axis_of, axis_values, check_finite};
use crate::error::Error;
use datafusion::arrow::array::{Array, AsArray, StructArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, Field, Fields, Float64Type};

/// The fields of a box.
pub const CORNERS: [&str; 4] = ["xmin", "ymin", "xmax", "ymax"];

/// Returns the type of boxes.
pub fn box_type() -> DataType {
    DataType::Struct(
        CORNERS.iter().map(|&name| Field::new(name, DataType::Float64, true)).collect::<Fields>(),
    )
}

/// Returns true for the types that [`decode_boxes`] decodes.
pub fn is_box_type(data_type: &DataType) -> bool {
    match data_type {
        DataType::Struct(fields) => CORNERS.iter().all(|name| axis_of(fields, name).is_some()),
        DataType::Null => true,
        _ => false,
    }
}

/// Decodes the boxes of an array: least x, least y, greatest x, greatest y. `column` names it in errors, and its rows are counted from
/// `first_row`.
///
/// # Errors
/// [`Error::NotBoxes`], [`Error::NotFinite`], [`Error::InvertedBox`].
pub fn decode_boxes(
    array: &dyn Array,
    column: &str,
    first_row: u64,
) -> Result<Geometries<'static, [f64; 4]>, Error> {
    let not_boxes = || Error::NotBoxes { column: column.into(), found: array.data_type().clone() };
    let boxes = match array.data_type() {
        DataType::Struct(_) => of_struct(array.as_struct()).ok_or_else(not_boxes)?,
        DataType::Null => Geometries {
            values: vec![[0.0; 4]; array.len()].into(),
            present: Some(NullBuffer::new_null(array.len())),
        },
        _ => return Err(not_boxes()),
    };
    check_finite(&boxes, column, first_row)?;
    check_order(&boxes, column, first_row)?;
    Ok(boxes)
}

fn check_order(boxes: &Geometries<'_, [f64; 4]>, column: &str, first_row: u64) -> Result<(), Error> {
    for (row, &[x0, y0, x1, y1]) in boxes.values.iter().enumerate() {
        let inverted = [(x0, x1), (y0, y1)].into_iter().find(|(low, high)| low > high);
        if let Some((low, high)) = inverted.filter(|_| boxes.has(row)) {
            return Err(Error::InvertedBox { column: column.into(), row: first_row + row as u64, low, high });
        }
    }
    Ok(())
}

fn of_struct(array: &StructArray) -> Option<Geometries<'static, [f64; 4]>> {
    let corners = CORNERS.iter().map(|name| axis_values(array, name)).collect::<Option<Vec<_>>>()?;
    let present = corners
        .iter()
        .fold(array.nulls().cloned(), |nulls, corner| NullBuffer::union(nulls.as_ref(), corner.nulls()));
    let values: Vec<&[f64]> =
        corners.iter().map(|corner| &corner.as_primitive::<Float64Type>().values()[..]).collect();
    let values = (0..array.len()).map(|row| [0, 1, 2, 3].map(|corner| values[corner][row])).collect();
    Some(Geometries { values, present })
}
