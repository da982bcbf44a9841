//! Removal of equal points from sorted arrays, in two passes.

use cuda_std::kernel::Kernel;
use cuda_std::mem::SliceMut;
use kauri_kernels::balanced::distinct::{Pieces, balanced_distinct_close_gaps, balanced_distinct_pieces};
use kauri_kernels::primitives::select_two_pass::CloseGaps;
use kauri_kernels::thread::coord::Float;

use crate::balanced::gpu::plan::BuildContext;
use crate::device::{Layout, Region};
use crate::error::{Error, Result};
use crate::primitives::pairs::Source;

/// Scratch memory for arrays of one length.
pub(crate) struct Distinct {
    /// Number of points that a warp compacts.
    piece: usize,
    /// The output of the first pass.
    pub(crate) compacted: Region<u32>,
    /// The number of points that each warp keeps.
    counts: Region<u64>,
    /// The number of kept points, and the first position that is not sorted.
    found: Region<u64>,
}

impl Distinct {
    /// Plans for `len` points and at most `warps` warps.
    pub(crate) fn plan(layout: &mut Layout, len: usize, warps: u32) -> Self {
        let piece = len.div_ceil(warps as usize).next_multiple_of(32).max(32);
        let (compacted, counts) = (layout.reserve(len), layout.reserve(len.div_ceil(piece)));
        Self { piece, compacted, counts, found: layout.reserve(2) }
    }

    /// Keeps the first of equal points of an array that is sorted by the super key of an axis. Returns the number of kept points.
    pub(crate) fn run<C: Float>(
        &self,
        context: BuildContext<'_, C>,
        axis: usize,
        sorted: Source<'_, C, u32>,
        to: SliceMut<'_, u32>,
    ) -> Result<usize> {
        self.run_by::<C, balanced_distinct_pieces<C>>(context, axis, sorted, to)
    }

    /// Does what [`run`](Self::run) does, with a kernel for the first pass.
    pub(crate) fn run_by<C: Float, K: for<'a> Kernel<Args<'a> = (Pieces<'a, C>,)>>(
        &self,
        context: BuildContext<'_, C>,
        axis: usize,
        sorted: Source<'_, C, u32>,
        to: SliceMut<'_, u32>,
    ) -> Result<usize> {
        let BuildContext { temp, .. } = context;
        let (compacted, counts) = (temp.view(self.compacted), temp.view(self.counts));
        let (threads, piece) = (32 * counts.len() as u64, self.piece as u64);
        let found = temp.view(self.found);
        // SAFETY: the arrays of a plan do not overlap, there is one warp per piece, and `found` has two items.
        let found: Vec<u64> = unsafe {
            temp.stream.fill_bytes(found, 0xff)?;
            let (count, failed) = (found.part(0, 1), found.part(1, 1));
            let points = context.points(axis);
            let pieces = Pieces { sorted, points, compacted, counts, failed, piece };
            temp.stream.launch_items::<K>(threads, (pieces,))?;
            let (compacted, counts) = (compacted.read_only(), counts.read_only());
            let gaps = CloseGaps { compacted, counts, kept: to, count, piece };
            temp.stream.launch_items::<balanced_distinct_close_gaps>(threads, (gaps,))?;
            temp.stream.read(found.read_only())?
        };
        match found[..] {
            [count, u64::MAX] => Ok(count as usize),
            ref found => {
                let what = format!("the sort on axis {axis} left a point behind the next one");
                Err(Error::corrupt(found[1] as usize, what))
            }
        }
    }
}
