//! Removals: checks the ids, and copies the points that stay.

use crate::device::{Layout, Region, Temp};
use crate::error::{Error, Result};
use crate::query::gpu::node_slots;
use crate::query::gpu::sums::SumsPlan;
use crate::rtree::gpu::{Points, as_words, as_words_mut};
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::rtree::insert::PointWords;
use kauri_kernels::rtree::remove::{rtree_mark, rtree_remove, rtree_slots_that_stay};
use kauri_kernels::thread::coord::Coord;

/// Scratch memory of a removal.
pub(super) struct RemovePlan {
    has_point: Region<u32>,
    least: Region<u64>,
    slots: Region<u32>,
    sums: SumsPlan,
}

impl RemovePlan {
    /// Plans a removal from `num_slots` points, of `num_ids` ids given.
    pub(super) fn plan(layout: &mut Layout, num_slots: usize, num_ids: usize) -> Self {
        Self {
            has_point: layout.reserve(num_ids.div_ceil(32)),
            least: layout.reserve(1),
            slots: layout.reserve(num_slots.div_ceil(32)),
            sums: SumsPlan::plan(layout, num_slots),
        }
    }

    /// Writes a bit for each id that has a point afterwards. Waits for the device; an error names the least id that has no point or that
    /// occurs twice.
    ///
    /// # Safety
    /// Nothing else uses the memory until the stream has done the work.
    pub(super) unsafe fn mark<C: Coord>(
        &self,
        temp: &Temp<'_>,
        from: &Points<C>,
        ids: Slice<'_, u32>,
        num_ids: usize,
        stays: SliceMut<'_, u32>,
    ) -> Result<()> {
        let (has_point, least) = (temp.view(self.has_point), temp.view(self.least));
        // SAFETY: passed on to the caller.
        let least = unsafe {
            from.write_has_point(&temp.stream, has_point)?;
            temp.stream.copy(stays, has_point.read_only())?;
            temp.stream.fill_bytes(least, 0xFF)?;
            let args = (ids, num_ids as u32, has_point.read_only(), stays, least);
            temp.stream.launch_items::<rtree_mark>(ids.len() as u64, args)?;
            temp.stream.read(least.read_only())?[0]
        };
        if least == u64::MAX {
            return Ok(());
        }
        let id = least as u32;
        let is_point = from.contains(&temp.stream, id, num_ids)?;
        Err(if is_point { Error::RepeatedId { id } } else { Error::UnknownId { id } })
    }

    /// Copies the points that stay to `to`, which has a slot for each of them.
    ///
    /// # Safety
    /// As [`mark`](Self::mark).
    pub(super) unsafe fn run<C: Coord>(
        &self,
        temp: &Temp<'_>,
        from: &Points<C>,
        to: &mut Points<C>,
    ) -> Result<()> {
        let (stream, dims, slots) = (&temp.stream, from.index.dims, temp.view(self.slots));
        let old = PointWords { coords: as_words(from.index.coords()), ids: from.index.ids.slice() };
        // SAFETY: passed on to the caller.
        unsafe {
            let args = (old.ids, to.index.has_point.slice(), slots);
            stream.launch_items::<rtree_slots_that_stay>(old.ids.len() as u64, args)?;
            let slots = self.sums.run(temp, slots.read_only())?;
            let index = &mut to.index;
            let places = node_slots(stream, dims, index.padded_coords.slice_mut(), index.ids.slice_mut())?;
            let words_of_point = (dims * size_of::<C>() / size_of::<u32>()) as u32;
            let args = (old, slots, words_of_point, as_words_mut(places.coords), places.ids);
            stream.launch_items::<rtree_remove>(old.ids.len() as u64, args)
        }
    }
}
