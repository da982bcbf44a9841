//! The functions `ST_…` of SQL.
//!
//! | function | result |
//! |---|---|
//! | `ST_Point(x, y [, crs])` | a point; with `'OGC:CRS84'` a longitude and a latitude in degrees |
//! | `ST_SetCRS(point, crs)` | the point in a reference system |
//! | `ST_X(point)`, `ST_Y(point)` | a coordinate |
//! | `ST_Distance(a, b)` | the distance: meters for longitudes and latitudes, otherwise the unit of the coordinates |
//! | `ST_DWithin(a, b, d)` | true if the distance is at most `d` |
//! | `ST_KNN(a, b, k)` | in a join: `b` is one of the `k` points nearest to `a` |
//! | `ST_MakeBox(xmin, ymin, xmax, ymax)` | a box |
//! | `ST_Intersects(a, b)` | true if two boxes have a common point |
//! | `ST_Contains(a, b)` | true if box `b` is inside box `a`; borders may touch |

mod arguments;
mod boxes;
mod distance;
mod knn;
mod point;

pub use boxes::{StContains, StIntersects, StMakeBox};
pub use distance::{StDWithin, StDistance, point_distance};
pub(crate) use distance::{squared, unit_vectors};
pub use knn::{ADVICE as KNN_ADVICE, StKnn};
pub use point::{StPoint, StSetCrs, StX, StY};

use datafusion::logical_expr::ScalarUDF;

/// Returns all functions.
pub fn all() -> Vec<ScalarUDF> {
    vec![
        ScalarUDF::from(StPoint::default()),
        ScalarUDF::from(StSetCrs::default()),
        ScalarUDF::from(StX::default()),
        ScalarUDF::from(StY::default()),
        ScalarUDF::from(StDistance::default()),
        ScalarUDF::from(StDWithin::default()),
        ScalarUDF::from(StKnn::default()),
        ScalarUDF::from(StMakeBox::default()),
        ScalarUDF::from(StIntersects::default()),
        ScalarUDF::from(StContains::default()),
    ]
}
