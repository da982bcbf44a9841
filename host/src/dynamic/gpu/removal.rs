//! Checks the ids of points to remove, and removes the points.

use crate::device::{Buffer, Layout, Region, Stream, Temp};
use crate::error::{Error, Result};
use crate::query::gpu::GivenIds;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::dynamic::removal::{dynamic_mark, dynamic_remove};

/// Plan and scratch memory of the check.
pub(super) struct MarkPlan {
    marked: Region<u32>,
    least: Region<u64>,
}

impl MarkPlan {
    pub(super) fn plan<C>(layout: &mut Layout, given: &GivenIds<C>) -> Self {
        Self { marked: layout.reserve(given.removed.len()), least: layout.reserve(1) }
    }

    /// Returns a bit for each id, set for the ids of points to remove; waits for the device. An error names the least id that does not belong
    /// to a point or that occurs twice.
    ///
    /// # Safety
    /// Nothing else uses the ids until the stream has done the work.
    pub(super) unsafe fn run<'a, C>(
        &self,
        temp: &Temp<'a>,
        given: &GivenIds<C>,
        ids: Slice<'_, u32>,
    ) -> Result<Slice<'a, u32>> {
        let (marked, least, removed) = (temp.view(self.marked), temp.view(self.least), given.removed.slice());
        temp.clear(self.marked)?;
        // SAFETY: passed on to the caller.
        let least = unsafe {
            temp.stream.fill_bytes(least, 0xFF)?;
            let args = (ids, given.num as u32, removed, marked, least);
            temp.stream.launch_items::<dynamic_mark>(ids.len() as u64, args)?;
            temp.stream.read(least.read_only())?[0]
        };
        if least == u64::MAX {
            return Ok(marked.read_only());
        }
        let id = least as u32;
        let is_point = has_point(given, &temp.stream, id)?;
        Err(if is_point { Error::RepeatedId { id } } else { Error::UnknownId { id } })
    }
}

/// True if a point has the id.
pub(super) fn has_point<C>(given: &GivenIds<C>, stream: &Stream, id: u32) -> Result<bool> {
    if id as usize >= given.num {
        return Ok(false);
    }
    let word = id as usize / 32;
    Ok(given.removed.part_to_vec(stream, word..word + 1)?[0] >> (id % 32) & 1 == 0)
}

/// Removes the marked points from the ids of slots of two indexes, and adds them to the bits of removed points.
///
/// # Safety
/// `removed` has as many words as `marked`. Nothing else uses the memory until the stream has done the work.
pub(super) unsafe fn remove(
    stream: &Stream,
    marked: Slice<'_, u32>,
    removed: &mut Buffer<u32>,
    ids: [SliceMut<'_, u32>; 2],
) -> Result<()> {
    let num_threads = ids.iter().map(|ids| ids.len()).max().unwrap_or(0).max(marked.len()) as u64;
    // SAFETY: passed on to the caller.
    unsafe {
        let args = (marked, removed.slice_mut(), ids[0], ids[1]);
        stream.launch_items::<dynamic_remove>(num_threads, args)
    }
}
