//! Merge sort of points by super key.

use super::merge::OrderArgs;
use super::merge_sort::{MergeSort, SortKernels};
use super::order::{Lookup, SuperKey};
use super::pairs::{Pairs, empty_view};
use super::planned::{bytes_of, carve};
use crate::device::{Buffer, Layout, Stream, Temp, Workspace};
use crate::error::{Error, Result, check_count};
use cuda_std::mem::Slice;
use cust_core::DeviceCopy;
use kauri_kernels::primitives::merge_sort::primitives_super_keys;
use kauri_kernels::primitives::sort_points::{
    primitives_sort_points_merge, primitives_sort_points_partition, primitives_sort_points_tiles,
};
use kauri_kernels::thread::coord::Float;
use kauri_kernels::thread::radix_key::Fold;

/// Returns the bytes of temporary memory that [`sort_points`] takes for `len` points.
pub fn plan_points<C: Float>(len: usize) -> u64 {
    bytes_of(|layout| SortPoints::<C>::plan(layout, len))
}

/// Sorts points of `D` coordinates by the super key that begins on axis `axis`: by the coordinate on this axis, then on
/// the following axes cyclically, then by id, which is the index in the input (Brown 2015). -0.0 equals 0.0. NaNs come
/// first or last.
///
/// Writes the ids and the coordinate of each point on axis `axis`. Points are looked up only where two of these
/// coordinates are equal.
///
/// # Errors
/// [`Error::Shape`] if the lengths differ or there is no such axis, [`Error::TooManyItems`] for more than 2^32 points,
/// [`Error::WrongDevice`], [`Error::OutOfMemory`], and errors of the driver.
pub fn sort_points<C: Float, const D: usize>(
    stream: &Stream,
    workspace: &mut Workspace,
    points: &Buffer<[C; D]>,
    axis: usize,
    sorted_coords: &mut Buffer<C>,
    sorted_ids: &mut Buffer<u32>,
) -> Result<()>
where
    [C; D]: DeviceCopy,
{
    let len = points.len();
    check_count("points to sort", len as u64, 1 << 32)?;
    if axis >= D {
        let what = "number of axes to sort on this one";
        return Err(Error::Shape { what, expected: axis as u64 + 1, got: D as u64 });
    }
    points.check_device(stream)?;
    sorted_coords.check(stream, "sorted keys", len)?;
    sorted_ids.check(stream, "sorted values", len)?;
    let (sort, temp) = carve(stream, workspace, "merge sort", |layout| SortPoints::plan(layout, len))?;
    let points = points.slice();
    let output = Pairs { keys: sorted_coords.slice_mut(), values: sorted_ids.slice_mut() };
    // SAFETY: points are arrays of coordinates. The lengths agree, the borrows keep buffers apart, and buffers wait for
    // the device before they are freed.
    unsafe {
        let coords = Slice::from_raw_parts(points.as_ptr().cast::<C>(), len * D);
        sort.run(&temp, Lookup { coords, dims: D as u32, axis: axis as u32 }, output)
    }
}

/// The temporary memory of sorts of up to a number of points.
pub(crate) struct SortPoints<C>(MergeSort<C, u32>);

impl<C: Float> SortPoints<C> {
    /// Plans sorts of up to `len` points.
    pub(crate) fn plan(layout: &mut Layout, len: usize) -> Self {
        Self(MergeSort::plan(layout, len))
    }

    /// Sorts the planned number of points by the super key that begins on the axis of `points`.
    ///
    /// # Safety
    /// The output has a key and a value for each point, and does not overlap the points. Nothing else uses
    /// the views until the stream has done the work.
    pub(crate) unsafe fn run(
        &self,
        temp: &Temp<'_>,
        points: Lookup<'_, C>,
        output: Pairs<'_, C, u32>,
    ) -> Result<()> {
        let order = OrderArgs { fold: Fold::NONE, lookup: points };
        let (input, all) = (output.read_only(), empty_view().read_only());
        // SAFETY: passed on to the caller; ids are less than the number of points.
        unsafe {
            let num_points = output.keys.len() as u64;
            temp.stream.launch_items::<primitives_super_keys<C>>(num_points, (points, output))?;
            self.0.run_with::<SuperKey>(temp, input, output, all, order)
        }
    }
}

impl<C: Float> SortKernels<C, u32> for SuperKey {
    type SortTiles<const ITEMS: usize> = primitives_sort_points_tiles<C, ITEMS>;
    type Partition = primitives_sort_points_partition<C>;
    type MergeRuns<const ITEMS: usize> = primitives_sort_points_merge<C, ITEMS>;
}
