//! The best pairs of boxes by a running threshold: the boxes of both sets search each other in parts, and each part raises the threshold
//! for the next.

use super::cells::SidesPlan;
use crate::device::{Layout, Stream, Workspace};
use crate::error::Result;
use crate::join::boxes::grid::PackedGrid;
use crate::join::boxes::params::BoxParams;
use crate::join::gpu::best::BestPairs;
use crate::join::gpu::cells::RanksPlan;
use crate::join::gpu::scored::ScoredView;
use crate::join::gpu::threshold::{Part, offer_in_parts};
use crate::join::params::TopKParams;
use crate::point::with_kernel_dims;
use kauri_kernels::join::boxes::search;
use kauri_kernels::join::boxes::threshold::{BoxRanks, BoxScores, join_boxes_rising};
use kauri_kernels::join::curve::MAX_DIMS;
use kauri_kernels::join::neighbor_cells;
use kauri_kernels::policy::JOIN_THREADS;
use kauri_kernels::thread::coord::Float;
use kauri_kernels::thread::words::Bits128;

const _: () = assert!(search::GROUP <= neighbor_cells::GROUP, "ranks have padding for a group");

/// Returns the best pairs of a left and a right set.
pub(super) fn best_pairs<C: Float>(
    stream: &Stream,
    workspace: &mut Workspace,
    params: &TopKParams<BoxParams<C>>,
    sets: [ScoredView<'_, C>; 2],
    grid: &PackedGrid,
) -> Result<Vec<Bits128>> {
    let mut layout = Layout::new();
    let lens = sets.map(|set| set.len);
    let plan = ThresholdPlan::new(&mut layout, grid, lens, &params.join, params.k);
    let temp = workspace.carve(stream, &layout, "top-k box join")?;
    // SAFETY: the sets are borrowed, and nothing else uses the memory of the plan.
    let (sides, [left, right]) = unsafe {
        let sides = plan.sides.run(&temp, grid, &params.join, [sets[1].coords, sets[0].coords])?;
        let ranks = |set: usize, ids| {
            let [ranks, extremes] = plan.ranks[set].run(&temp, ids, Some(sets[set]))?;
            Ok(BoxRanks { ranks, extremes })
        };
        (sides, [ranks(0, sides.left.ids)?, ranks(1, sides.right.ids)?])
    };
    let scores = BoxScores { left, right, scoring: params.scoring.args() };
    let [_, (right_pass, _)] = sides.passes();
    let num_blocks = lens.map(|len| len.div_ceil(JOIN_THREADS) as u64);
    plan.best.run(&temp, params.threshold, |running| {
        let launch = |part: Part<'_>| {
            let Part { first_block, num_blocks, stride, pairs, state, .. } = part;
            let args = (sides.args(), scores, right_pass.to_word(), first_block, stride, pairs, state);
            // SAFETY: as above.
            unsafe {
                with_kernel_dims!(sides.dims, D in [2, 3] or MAX_DIMS => {
                    stream.launch::<join_boxes_rising<C, D>>(num_blocks, args)
                })
            }
        };
        // SAFETY: as above.
        unsafe { offer_in_parts(running, num_blocks[0] + num_blocks[1], params.k, launch) }
    })
}

/// Scratch memory of a join by a running threshold.
struct ThresholdPlan<C> {
    sides: SidesPlan<C>,
    /// The ranks of the left and the right set.
    ranks: [RanksPlan; 2],
    best: BestPairs,
}

impl<C: Float> ThresholdPlan<C> {
    /// Plans the best `k` pairs of sets of `lens` boxes, given as [left, right].
    fn new(
        layout: &mut Layout,
        grid: &PackedGrid,
        lens: [usize; 2],
        params: &BoxParams<C>,
        k: usize,
    ) -> Self {
        Self {
            sides: SidesPlan::plan(layout, grid, [lens[1], lens[0]], params),
            ranks: lens.map(|len| RanksPlan::plan(layout, len, true)),
            best: BestPairs::plan(layout, k),
        }
    }
}

/// Returns the scratch bytes of the best `k` pairs of sets of `lens` boxes by the largest grid.
pub(super) fn scratch_bytes<C: Float>(lens: [usize; 2], params: &BoxParams<C>, k: usize) -> u64 {
    let mut layout = Layout::new();
    ThresholdPlan::new(&mut layout, &PackedGrid::largest(params.test.dims), lens, params, k);
    layout.bytes()
}
