//! Inserts: merges new points into the points of a tree.

use crate::device::{Layout, Region, Temp};
use crate::error::Result;
use crate::point::with_kernel_dims;
use crate::primitives::radix_sort::PairSort;
use crate::query::gpu::node_slots;
use crate::query::gpu::sums::SumsPlan;
use crate::rtree::gpu::{Points, as_words, as_words_mut};
use cuda_std::mem::Slice;
use kauri_kernels::query::grid::code_bits;
use kauri_kernels::rtree::insert::{PointWords, rtree_insert, rtree_new_slots};
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::measure::MAX_DIMS;

/// Scratch memory of an insert.
pub(super) struct InsertPlan {
    sort: PairSort<u64, u32>,
    is_new: Region<u32>,
    sums: SumsPlan,
}

impl InsertPlan {
    /// Plans an insert of `num_new` points, after which there are `num_slots` points.
    pub(super) fn plan(layout: &mut Layout, num_new: usize, num_slots: usize) -> Self {
        Self {
            sort: PairSort::plan(layout, num_new),
            is_new: layout.reserve(num_slots.div_ceil(32)),
            sums: SumsPlan::plan(layout, num_slots),
        }
    }

    /// Merges the points of a tree and new points into `to`, which has a slot for each of them and the same grid. The ids of the new points
    /// begin with `first_id`.
    ///
    /// # Safety
    /// There are points in the tree. Nothing else uses the memory until the stream has done the work.
    pub(super) unsafe fn run<C: Coord>(
        &self,
        temp: &Temp<'_>,
        from: &Points<C>,
        new_coords: Slice<'_, C>,
        first_id: u32,
        to: &mut Points<C>,
    ) -> Result<()> {
        let (stream, dims, grid) = (&temp.stream, from.index.dims, from.grid());
        let (tree, is_new) = (grid.points(from.index.coords()), temp.view(self.is_new));
        temp.clear(self.is_new)?;
        // SAFETY: passed on to the caller.
        unsafe {
            let write = |codes, numbers| grid.codes(stream, new_coords, codes, numbers);
            let (codes, numbers) = self.sort.run(temp, code_bits(dims), write)?;
            let args = (tree, grid.first_codes.slice(), from.index.ids.len() as u32, codes, is_new);
            with_kernel_dims!(dims, D in [2, 3] or MAX_DIMS => {
                stream.launch_items::<rtree_new_slots<C, D>>(codes.len() as u64, args)
            })?;
            let is_new = self.sums.run(temp, is_new.read_only())?;
            let old = PointWords { coords: as_words(from.index.coords()), ids: from.index.ids.slice() };
            let new = PointWords { coords: as_words(new_coords), ids: numbers };
            let index = &mut to.index;
            let slots = node_slots(stream, dims, index.padded_coords.slice_mut(), index.ids.slice_mut())?;
            let words_of_point = (dims * size_of::<C>() / size_of::<u32>()) as u32;
            let num_slots = slots.ids.len() as u64;
            let args = (old, new, first_id, is_new, words_of_point, as_words_mut(slots.coords), slots.ids);
            stream.launch_items::<rtree_insert>(num_slots, args)
        }
    }
}
