//! Boxes of the space in which rows are sent to parts.

use crate::error::Error;
use crate::functions::unit_vectors;
use crate::geometry::{Geometries, Measure, check_lon_lat, decode_boxes, decode_points};
use datafusion::arrow::array::Array;
use datafusion::error::Result;
use kauri::LonLat;

/// A place: x, y and 0, or the unit vector of a longitude and a latitude.
pub(super) type Place = [f64; 3];

/// The least and the greatest corner of a box.
pub(super) type Region = [Place; 2];

/// A region without places.
pub(super) const EMPTY: Region = [[f64::INFINITY; 3], [f64::NEG_INFINITY; 3]];

/// Returns the bounding box of two regions.
pub(super) fn union([a, b]: Region, [c, d]: Region) -> Region {
    [std::array::from_fn(|axis| a[axis].min(c[axis])), std::array::from_fn(|axis| b[axis].max(d[axis]))]
}

/// Returns the distance of two regions: 0 if they have a common place.
pub(super) fn distance([a, b]: &Region, [c, d]: &Region) -> f64 {
    let gap = |axis: usize| (c[axis] - b[axis]).max(a[axis] - d[axis]).max(0.0);
    length([gap(0), gap(1), gap(2)])
}

/// Returns the length of a vector.
pub(super) fn length(vector: Place) -> f64 {
    vector.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Returns the regions of the geometries of an array: places, or boxes if `measure` is `None`. `column` names it in errors, and its rows are
/// counted from `first_row`.
///
/// # Errors
/// [`Error`] for geometries that are not valid.
pub(super) fn regions(
    array: &dyn Array,
    measure: Option<Measure>,
    column: &str,
    first_row: u64,
) -> Result<Geometries<'static, Region>> {
    let Some(measure) = measure else {
        let boxes = decode_boxes(array, column, first_row).map_err(Error::in_execution)?;
        let region = |&[x0, y0, x1, y1]: &[f64; 4]| [[x0, y0, 0.0], [x1, y1, 0.0]];
        return Ok(Geometries { values: boxes.values.iter().map(region).collect(), present: boxes.present });
    };
    let points = decode_points(array, column, first_row).map_err(Error::in_execution)?;
    let values = match measure {
        Measure::Planar => points.values.iter().map(|&[x, y]| [[x, y, 0.0]; 2]).collect(),
        Measure::LonLat => {
            check_lon_lat(&points, column, first_row).map_err(Error::in_execution)?;
            let places: Vec<LonLat> = points.values.iter().map(|&[lon, lat]| LonLat::new(lon, lat)).collect();
            unit_vectors(&places)?.as_chunks::<3>().0.iter().map(|&place| [place; 2]).collect()
        }
    };
    Ok(Geometries { values, present: points.present })
}
