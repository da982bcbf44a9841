//! Points of Arrow arrays, and results as record batches.

use kauri::arrow::arrow_array::cast::AsArray;
use kauri::arrow::arrow_array::types::{Float32Type, Float64Type, Int64Type, UInt32Type};
use kauri::arrow::arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, FixedSizeListArray, Float32Array, Float64Array,
    LargeBinaryArray, RecordBatch, StructArray, ffi, make_array,
};
use kauri::arrow::{ArrowPoint, IntoRecordBatch, Nulls, points, points_of_columns};
use kauri::join::{Scored, TopKDistanceJoin};
use kauri::query::QueryOptions;
use kauri::{Device, Error, KdTree, KdTreeOptions, LonLat, SpatialIndex};
use std::sync::Arc;

/// Returns interleaved points, of which the third is null.
fn interleaved() -> FixedSizeListArray {
    let rows = [Some([0.0, 1.0]), Some([2.0, 3.0]), None, Some([4.0, 5.0])];
    FixedSizeListArray::from_iter_primitive::<Float64Type, _, _>(
        rows.map(|row| row.map(|axes| axes.map(Some))),
        2,
    )
}

/// Returns separated points, of which the third has no `y`.
fn separated() -> StructArray {
    let x: ArrayRef = Arc::new(Float64Array::from(vec![0.0, 2.0, 8.0, 4.0]));
    let y: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.0), Some(3.0), None, Some(5.0)]));
    StructArray::try_from(vec![("x", x), ("y", y)]).unwrap()
}

#[test]
fn points_of_all_layouts() {
    let expected = [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]];
    let separated = separated();
    for array in [&interleaved() as &dyn Array, &separated] {
        let found = points::<[f64; 2]>(array, Nulls::Skip).unwrap();
        assert_eq!(*found, expected);
        assert_eq!([0, 1, 2].map(|id| found.row(id)), [0, 1, 3]);
        assert!(!found.is_borrowed());
        assert_eq!(
            *points::<LonLat>(array, Nulls::Skip).unwrap(),
            expected.map(|[lon, lat]| LonLat::new(lon, lat))
        );
        let refused = points::<[f64; 2]>(array, Nulls::Refuse).unwrap_err();
        assert!(matches!(refused, Error::NullRow { row: 2 }), "{refused}");
    }
    let columns: Vec<&dyn Array> = separated.columns().iter().map(AsRef::as_ref).collect();
    assert_eq!(*points_of_columns::<[f64; 2]>(&columns, Nulls::Skip).unwrap(), expected);
}

/// A part of an array has its own points, in the array's memory.
#[test]
fn points_are_borrowed() {
    let array = interleaved();
    let part = array.slice(0, 2);
    let found = points::<[f64; 2]>(&part, Nulls::Refuse).unwrap();
    assert!(found.is_borrowed());
    assert_eq!(found.as_ptr().cast(), array.values().as_primitive::<Float64Type>().values().as_ptr());
    let last = array.slice(3, 1);
    assert_eq!(*points::<LonLat>(&last, Nulls::Refuse).unwrap(), [LonLat::new(4.0, 5.0)]);
    assert!(points::<[f64; 2]>(&array.slice(1, 0), Nulls::Refuse).unwrap().is_empty());
}

/// Rows without a point stay where they are, and a list is borrowed with them.
#[test]
fn rows_without_a_point_are_kept() {
    let (list, columns) = (interleaved(), separated());
    for (array, is_borrowed) in [(&list as &dyn Array, true), (&columns, false)] {
        let found = points::<[f64; 2]>(array, Nulls::Keep).unwrap();
        assert_eq!((found.len(), found[3], found.row(3)), (4, [4.0, 5.0], 3));
        assert_eq!(found.is_borrowed(), is_borrowed);
        let has_point: Vec<bool> = found.nulls().unwrap().iter().collect();
        assert_eq!(has_point, [true, true, false, true]);
    }
    assert!(points::<[f64; 2]>(&list.slice(0, 2), Nulls::Keep).unwrap().nulls().is_none());
}

#[test]
fn heights_are_ignored() {
    let rows = [Some([Some(1.0), Some(2.0), None]), None, Some([Some(3.0), Some(4.0), Some(9.0)])];
    let list = FixedSizeListArray::from_iter_primitive::<Float64Type, _, _>(rows, 3);
    assert_eq!(*points::<[f64; 2]>(&list, Nulls::Skip).unwrap(), [[1.0, 2.0], [3.0, 4.0]]);
    assert_eq!(*points::<LonLat>(&list.slice(2, 1), Nulls::Refuse).unwrap(), [LonLat::new(3.0, 4.0)]);
    assert_eq!(*points::<[f64; 1]>(&separated().slice(0, 2), Nulls::Refuse).unwrap(), [[0.0], [2.0]]);
}

#[test]
fn points_in_well_known_binary() {
    let encode = |x: f64, y: f64| [&[1, 1, 0, 0, 0][..], &x.to_le_bytes(), &y.to_le_bytes()].concat();
    let (a, empty, b) = (encode(1.0, 2.0), encode(f64::NAN, f64::NAN), encode(3.0, 4.0));
    let rows = [Some(&a[..]), None, Some(&empty), Some(&b)];
    let arrays: [ArrayRef; 3] = [
        Arc::new(BinaryArray::from_iter(rows)),
        Arc::new(LargeBinaryArray::from_iter(rows)),
        Arc::new(BinaryViewArray::from_iter(rows)),
    ];
    for array in arrays {
        let found = points::<[f64; 2]>(&array, Nulls::Skip).unwrap();
        assert_eq!((&*found, found.row(1)), ([[1.0, 2.0], [3.0, 4.0]].as_slice(), 3));
        let found = points::<LonLat>(&array, Nulls::Keep).unwrap();
        assert_eq!((found[3], found.nulls().unwrap().null_count()), (LonLat::new(3.0, 4.0), 2));
        let part = array.slice(2, 2);
        assert!(matches!(points::<[f64; 2]>(&part, Nulls::Refuse), Err(Error::NullRow { row: 0 })));
        assert!(matches!(points::<[f32; 2]>(&array, Nulls::Skip), Err(Error::NotPoints { .. })));
        assert!(matches!(points::<[f64; 3]>(&array, Nulls::Skip), Err(Error::NotPoints { .. })));
    }
    let polygon = [&[1, 3, 0, 0, 0][..], &a[5..]].concat();
    for (bytes, expected) in [
        (&polygon[..], "row 1: a polygon; expected a point"),
        (&a[..20], "row 1: 20 bytes that are not well-known binary"),
    ] {
        let array = BinaryArray::from_iter([Some(&a[..]), Some(bytes)]);
        let refused = points::<[f64; 2]>(&array, Nulls::Skip).unwrap_err();
        assert!(matches!(refused, Error::InvalidWkb { row: 1, .. }), "{refused}");
        assert_eq!(refused.to_string(), expected);
    }
}

#[test]
fn a_coordinate_of_a_list_may_be_null() {
    let rows = [Some([Some(1.0), None, Some(0.0)]), Some([Some(1.0), Some(2.0), Some(3.0)])];
    let array = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(rows, 3);
    assert_eq!(*points::<[f32; 3]>(&array, Nulls::Skip).unwrap(), [[1.0, 2.0, 3.0]]);
    assert!(matches!(points::<[f32; 3]>(&array, Nulls::Refuse), Err(Error::NullRow { row: 0 })));
}

#[test]
fn other_arrays_are_refused() {
    fn refused<P: ArrowPoint + std::fmt::Debug>(array: &dyn Array) -> bool {
        matches!(points::<P>(array, Nulls::Skip), Err(Error::NotPoints { .. }))
    }
    let (list, columns) = (interleaved(), separated());
    assert!(refused::<[f32; 2]>(&list) && refused::<[f64; 3]>(&list) && refused::<[f32; 2]>(&columns));
    assert!(refused::<[f64; 3]>(&columns) && refused::<[f64; 2]>(&Float64Array::from(vec![1.0])));
    let (short, long) = (Float32Array::from(vec![1.0]), Float32Array::from(vec![1.0, 2.0]));
    let error = points_of_columns::<[f32; 2]>(&[&short, &long], Nulls::Skip).unwrap_err();
    assert!(error.to_string().contains("[1, 2]"), "{error}");
}

/// By the C data interface, as another language would pass them.
#[test]
fn arrays_of_other_languages() {
    let (array, schema) = ffi::to_ffi(&separated().slice(1, 3).to_data()).unwrap();
    // SAFETY: both are as `to_ffi` made them.
    let array = make_array(unsafe { ffi::from_ffi(array, &schema) }.unwrap());
    let found = points::<[f64; 2]>(&array, Nulls::Skip).unwrap();
    assert_eq!((&*found, found.row(1)), ([[2.0, 3.0], [4.0, 5.0]].as_slice(), 2));
}

#[test]
fn results_become_record_batches() {
    let points = [[0.0f32, 0.0], [3.0, 4.0], [1.0, 0.0]];
    let tree = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default()).unwrap();
    let schema = |batch: &RecordBatch| {
        batch.schema().fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>()
    };

    let near = tree.nearest(&[[0.0, 0.0], [9.0, 9.0]], 4).unwrap().into_record_batch().unwrap();
    assert_eq!((schema(&near), near.num_rows()), (vec!["ids".to_owned(), "dist2".to_owned()], 2));
    let ids = near.column(0).as_fixed_size_list().value(0);
    assert_eq!(
        ids.as_primitive::<UInt32Type>().iter().collect::<Vec<_>>(),
        [Some(0), Some(2), Some(1), None]
    );
    let dist2 = near.column(1).as_fixed_size_list().value(0);
    assert_eq!(
        dist2.as_primitive::<Float32Type>().iter().collect::<Vec<_>>(),
        [Some(0.0), Some(1.0), Some(25.0), None]
    );
    let none = tree.nearest(&[[0.0, 0.0]], 0).unwrap().into_record_batch().unwrap();
    assert_eq!((none.num_rows(), none.column(0).as_fixed_size_list().value_length()), (1, 0));
    let no_queries: [[f32; 2]; 0] = [];
    let most = tree.nearest(&no_queries, i32::MAX as usize).unwrap().into_record_batch().unwrap();
    assert_eq!((most.num_rows(), most.column(1).as_fixed_size_list().value_length()), (0, i32::MAX));
    let refused = tree.nearest(&no_queries, 1 << 31).unwrap().into_record_batch().unwrap_err();
    assert!(matches!(refused, Error::OutOfRange { value: 0x8000_0000, .. }), "{refused}");

    let sorted = QueryOptions::default().sorted();
    let within = tree.within(&[[9.0, 9.0], [0.0, 0.0]], 2.0, &sorted).unwrap().into_record_batch().unwrap();
    let rows = within.column(0).as_list::<i64>();
    assert_eq!((rows.value_length(0), rows.value_length(1)), (0, 2));
    assert_eq!(rows.value(1).as_struct().column(0).as_primitive::<UInt32Type>().values().as_ref(), [0, 2]);

    let join = kauri::DistanceJoin::new(1.0f32);
    let pairs = join.rows(&Device::cpu(), &points, &points).unwrap().into_record_batch().unwrap();
    assert_eq!(pairs.column(0).as_list::<i64>().value(1).as_primitive::<UInt32Type>().values().as_ref(), [1]);

    let scored = Scored::new(&points, &[7u32, 1, 2]).unwrap();
    let best = TopKDistanceJoin::new(1.0, 2)
        .run(&Device::cpu(), scored, scored)
        .unwrap()
        .into_record_batch()
        .unwrap();
    assert_eq!(best.column(2).as_primitive::<Int64Type>().values().as_ref(), [14, 9]);
    let scored = Scored::new(&points, &[7.5f32, 1.0, 2.0]).unwrap();
    let best = TopKDistanceJoin::new(1.0, 1)
        .run(&Device::cpu(), scored, scored)
        .unwrap()
        .into_record_batch()
        .unwrap();
    assert_eq!(best.column(2).as_primitive::<Float64Type>().values().as_ref(), [15.0]);
    assert_eq!(best.column(0).as_primitive::<UInt32Type>().values().as_ref(), [0]);
}
