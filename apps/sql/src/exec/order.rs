//! An order of right rows that does not depend on the order in which they come.
//!
//! Ids decide among points at equal distances, so a join gives ids in this order: by x, by y, then by the other columns. Only rows that are
//! equal in all columns may change places.

use super::rows::BatchedRows;
use crate::error::from_kauri;
use crate::geometry::TASK_ROWS;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::row::{RowConverter, Rows, SortField};
use datafusion::error::Result;
use kauri::Device;
use kauri::device::{Buffer, Stream, Workspace};
use kauri::primitives::radix_sort::{RadixSortOptions, sort_pairs};
use kauri::primitives::{generate, permute};
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;
use std::cmp::Ordering;
use std::ops::Range;

/// Brings points and their rows into the canonical order. `rows` has the row of each point; `None` if that is its index.
pub(super) fn in_canonical_order(
    device: &Device,
    points: &[[f64; 2]],
    rows: Option<&[u32]>,
    columns: &BatchedRows,
) -> Result<(Vec<[f64; 2]>, Vec<u32>)> {
    let order = ids_by_coordinates(device, points).map_err(from_kauri)?;
    let ordered = order.par_iter().with_min_len(TASK_ROWS);
    let points: Vec<[f64; 2]> = ordered.clone().map(|&id| points[id as usize]).collect();
    let mut rows = match rows {
        Some(rows) => ordered.map(|&id| rows[id as usize]).collect(),
        None => order,
    };
    let is_repeated = |&i: &usize| compare_points(points[i], points[i - 1]).is_eq();
    let repeated: Vec<usize> =
        (1..points.len()).into_par_iter().with_min_len(TASK_ROWS).filter(is_repeated).collect();
    let group = |repeated: &[usize]| repeated[0] - 1..repeated[0] + repeated.len();
    let groups: Vec<_> = repeated.chunk_by(|a, b| a + 1 == *b).map(group).collect();
    sort_by_columns(&mut rows, &groups, columns)?;
    Ok((points, rows))
}

/// Compares points as the canonical order does.
pub(super) fn compare_points(a: [f64; 2], b: [f64; 2]) -> Ordering {
    a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1]))
}

/// Returns keys in the order of all columns; `None` if a column's type has no order.
pub(super) fn keys(batch: &RecordBatch) -> Result<Option<Rows>> {
    let fields: Vec<SortField> =
        batch.schema().fields().iter().map(|field| SortField::new(field.data_type().clone())).collect();
    if fields.is_empty() || !RowConverter::supports_fields(&fields) {
        return Ok(None);
    }
    Ok(Some(RowConverter::new(fields)?.convert_columns(batch.columns())?))
}

/// Returns the ids of points in the order of x and y.
fn ids_by_coordinates(device: &Device, points: &[[f64; 2]]) -> kauri::Result<Vec<u32>> {
    let Some(gpu) = device.gpu() else {
        let ids = (0..points.len() as u32).into_par_iter().with_min_len(TASK_ROWS);
        let mut keyed: Vec<([f64; 2], u32)> = ids.map(|id| (points[id as usize], id)).collect();
        keyed.par_sort_unstable_by(|(a, id), (b, other)| compare_points(*a, *b).then(id.cmp(other)));
        return Ok(keyed.par_iter().with_min_len(TASK_ROWS).map(|&(_, id)| id).collect());
    };
    let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
    let upload = |axis: usize| {
        let values: Vec<f64> = points.par_iter().with_min_len(TASK_ROWS).map(|point| point[axis]).collect();
        Buffer::from_slice(&stream, &values, "coordinates of right points")
    };
    let (x, mut keys) = (upload(0)?, upload(1)?);
    let mut sorted_keys = Buffer::uninitialized(gpu, points.len(), "sorted coordinates of right points")?;
    let ids = || Buffer::uninitialized(gpu, points.len(), "ids of right points");
    let (mut ids, mut sorted_ids) = (ids()?, ids()?);
    generate::iota(&stream, 0, 1, &mut ids)?;
    // The sort is stable, so the last one decides first.
    let options = RadixSortOptions::default();
    sort_pairs(&stream, &mut workspace, &keys, &ids, &mut sorted_keys, &mut sorted_ids, &options)?;
    permute::gather(&stream, &x, &sorted_ids, &mut keys)?;
    sort_pairs(&stream, &mut workspace, &keys, &sorted_ids, &mut sorted_keys, &mut ids, &options)?;
    ids.to_vec(&stream)
}

/// Sorts groups of rows by all columns, if their types have an order.
fn sort_by_columns(rows: &mut [u32], groups: &[Range<usize>], columns: &BatchedRows) -> Result<()> {
    let grouped: Vec<u32> = groups.iter().flat_map(|group| &rows[group.clone()]).copied().collect();
    if grouped.is_empty() {
        return Ok(());
    }
    let Some(keys) = keys(&columns.take(&grouped)?)? else { return Ok(()) };
    let mut begin = 0;
    for group in groups {
        let mut order: Vec<usize> = (begin..begin + group.len()).collect();
        order.sort_by(|&a, &b| keys.row(a).cmp(&keys.row(b)));
        for (row, index) in rows[group.clone()].iter_mut().zip(order) {
            *row = grouped[index];
        }
        begin += group.len();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order of a GPU, which the simulator runs, is that of the CPU.
    #[test]
    fn devices_agree() {
        let coordinate =
            |i: u32| [0.0, -0.0, -1.5, 1e300, 2.0, -1e-300][i.wrapping_mul(0x9E37_79B9) as usize % 6];
        let points: Vec<[f64; 2]> = (0..500).map(|i| [coordinate(i), coordinate(i + 1000)]).collect();
        let order = |name| ids_by_coordinates(&Device::from_name(name).unwrap(), &points).unwrap();
        let ids = order("cpu");
        assert!(ids.is_sorted_by(|&a, &b| {
            compare_points(points[a as usize], points[b as usize]).then(a.cmp(&b)).is_lt()
        }));
        assert_eq!(ids, order("sim"));
    }
}
