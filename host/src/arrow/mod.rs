//! Arrow arrays: points from them, and results as record batches, without a copy where the layout allows.
//!
//! | points from | GeoArrow's name | copied |
//! |---|---|---|
//! | [`points`]: `FixedSizeList` of floats | interleaved points | if a row is null and left out, or has a height that is ignored |
//! | [`points`]: `Struct` of floats | separated points | always: their coordinates are put together |
//! | [`points`]: `Binary`, `LargeBinary`, `BinaryView` | well-known binary | always |
//! | [`points_of_columns`]: an array for each axis | | always |
//!
//! | record batch of | columns |
//! |---|---|
//! | [`Neighbors`](crate::Neighbors) | for each query a `FixedSizeList` of ids and one of squared distances, with nulls where fewer points are found |
//! | `Rows<u32>` | for each row a `LargeList` of ids |
//! | `Rows<Neighbor<C>>` | for each row a `LargeList` of ids with squared distances |
//! | [`TopPairs`](crate::join::TopPairs) | `left`, `right`, `score` |
//!
//! A record batch takes over the memory of a result ([`IntoRecordBatch`]); only pairs, and rows with padding, are passed over.
//!
//! ```
//! use kauri::arrow::arrow_array::types::Float64Type;
//! use kauri::arrow::arrow_array::{Array, FixedSizeListArray};
//! use kauri::arrow::{IntoRecordBatch, Nulls, points};
//! use kauri::{Device, KdTree, KdTreeOptions, SpatialIndex};
//!
//! let wells = [Some([0.0, 0.0]), None, Some([3.0, 4.0])].map(|well| well.map(|axes| axes.map(Some)));
//! let wells = FixedSizeListArray::from_iter_primitive::<Float64Type, _, _>(wells, 2);
//! assert!(points::<[f64; 2]>(&wells, Nulls::Refuse).is_err());
//! let wells = points::<[f64; 2]>(&wells, Nulls::Skip)?;
//! let tree = KdTree::build(&Device::cpu(), &wells, &KdTreeOptions::default())?;
//! let nearest = tree.nearest_one(&[3.0, 3.0])?.unwrap();
//! assert_eq!(wells.row(nearest.id), 2);
//! let batch = tree.nearest(&wells, 1)?.into_record_batch()?;
//! assert_eq!((batch.num_rows(), batch.schema().field(1).name().as_str()), (2, "dist2"));
//! # Ok::<(), kauri::Error>(())
//! ```
//!
//! Arrays come from other languages, and go there, by Arrow's C data interface, `arrow_array::ffi`:
//!
//! ```
//! use kauri::arrow::arrow_array::{Array, ArrayRef, FixedSizeListArray, ffi, make_array, types::Float32Type};
//! use kauri::arrow::{Nulls, points};
//!
//! # let array = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>([Some([Some(1.0), Some(2.0)])], 2);
//! # let (array, schema) = ffi::to_ffi(&array.to_data()).unwrap();
//! // SAFETY: `array` and `schema`, which a library in C has filled, keep what the interface promises.
//! let array: ArrayRef = make_array(unsafe { ffi::from_ffi(array, &schema) }.unwrap());
//! assert_eq!(*points::<[f32; 2]>(&array, Nulls::Refuse)?, [[1.0, 2.0]]);
//! # Ok::<(), kauri::Error>(())
//! ```

mod batches;
mod points;

pub use arrow_array;
pub use arrow_buffer;
pub use batches::IntoRecordBatch;
pub use points::{ArrowPoint, ArrowPoints, Nulls, points, points_of_columns};
