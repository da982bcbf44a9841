//! The best pairs by a running threshold: the probe points are joined in parts, and each part raises the threshold for the next.

use super::best::{BestPairs, RunningBest};
use super::cells::{Sets, Side, SidesPlan, SortedSides};
use super::grid::{PackedGrid, grid_of_device_sets};
use super::scored::ScoredView;
use crate::device::{Layout, Region, Stream, Workspace};
use crate::error::Result;
use crate::join::params::{JoinParams, TopKParams};
use crate::primitives::pairs::empty_view;
use crate::primitives::planned::carve;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::join::cells::Pairing;
use kauri_kernels::join::curve::MAX_DIMS;
use kauri_kernels::join::score::Scoring;
use kauri_kernels::join::threshold::{CustomScoreLaunch, ThresholdArgs, join_rising, join_rising_rest};
use kauri_kernels::policy::{JOIN, JOIN_SEGMENT, JOIN_THREADS};
use kauri_kernels::thread::coord::Float;
use kauri_kernels::thread::words::Bits128;

/// Returns the best pairs of two sets.
pub(super) fn best_pairs<C: Float>(
    stream: &Stream,
    workspace: &mut Workspace,
    mut params: TopKParams<JoinParams<C>>,
    mut sets: [ScoredView<'_, C>; 2],
    grid: &PackedGrid,
) -> Result<Vec<Bits128>> {
    // A much smaller set becomes the build side.
    if JOIN.is_small_beside(sets[1].len, sets[0].len) {
        params.join.pairing = Pairing::Swapped;
        params.scoring.weights.reverse();
        sets.reverse();
    }
    let launch = match grid.dims {
        2 => launch_part::<C, 2>,
        3 => launch_part::<C, 3>,
        _ => launch_part::<C, MAX_DIMS>,
    };
    let coords = sets.map(|set| set.coords);
    join_in_parts(stream, workspace, &params, coords, Some(sets), grid, |sides, part| {
        launch(stream, &params.scoring, sides, part)
    })
}

/// Launches the kernels of one part of the probe points.
fn launch_part<C: Float, const D: usize>(
    stream: &Stream,
    scoring: &Scoring,
    sides: &SortedSides<'_, C>,
    part: Part<'_>,
) -> Result<()> {
    let (ranks, extremes) = (sides.ranks(scoring), sides.build.extremes);
    let Part { first_block, num_blocks, stride, pairs, state, tasks } = part;
    let args = ThresholdArgs { sides: sides.args(), ranks, extremes, pairs, state };
    let num_warps = num_blocks as usize * (JOIN_THREADS / 32);
    let tasks_per_warp = u32::try_from(tasks.len() / num_warps).unwrap_or(u32::MAX);
    // SAFETY: the sets are borrowed, and nothing else uses the memory of the plan.
    unsafe {
        let part = (args, first_block, stride, tasks_per_warp, tasks);
        stream.launch::<join_rising<C, D>>(num_blocks, part)?;
        // Only larger build sides have points beyond the first segment, which become tasks.
        if sides.build.points.ids.len() <= JOIN_SEGMENT {
            return Ok(());
        }
        stream.launch::<join_rising_rest<C, D>>(JOIN.task_blocks, (args, tasks.read_only()))
    }
}

/// Returns the best pairs of two sets by a custom score, whose kernel `launch` launches.
pub(in crate::join) fn top_k_by_custom_score<C: Float>(
    stream: &Stream,
    workspace: &mut Workspace,
    params: &TopKParams<JoinParams<C>>,
    coords: [Slice<'_, C>; 2],
    mut launch: impl FnMut(u64, CustomScoreLaunch<'_, C>) -> Result<()>,
) -> Result<Vec<Bits128>> {
    let Some(grid) = grid_of_device_sets(stream, workspace, coords, &params.join)? else {
        return Ok(Vec::new());
    };
    join_in_parts(stream, workspace, params, coords, None, &grid, |sides, part| {
        let arguments = CustomScoreLaunch {
            sides: sides.args(),
            first_block: part.first_block,
            stride: part.stride,
            pairs: part.pairs,
            state: part.state,
        };
        launch(part.num_blocks, arguments)
    })
}

/// A part of the probe items, as a range of their blocks, and the memory of a launch.
pub(in crate::join) struct Part<'a> {
    pub(in crate::join) first_block: u64,
    pub(in crate::join) num_blocks: u64,
    pub(in crate::join) stride: u64,
    pub(in crate::join) pairs: SliceMut<'a, Bits128>,
    pub(in crate::join) state: SliceMut<'a, u64>,
    /// Work that the first kernel leaves to the second.
    tasks: SliceMut<'a, u64>,
}

/// Sorts two sides, and lets `launch` offer the pairs of growing parts of the probe points, until no candidate is lost.
fn join_in_parts<C: Float>(
    stream: &Stream,
    workspace: &mut Workspace,
    params: &TopKParams<JoinParams<C>>,
    coords: [Slice<'_, C>; 2],
    scores: Option<[ScoredView<'_, C>; 2]>,
    grid: &PackedGrid,
    mut launch: impl FnMut(&SortedSides<'_, C>, Part<'_>) -> Result<()>,
) -> Result<Vec<Bits128>> {
    let (lens, k) = (coords.map(|coords| coords.len() / grid.dims), params.k);
    let sets = if scores.is_some() { Sets::TwoScored } else { Sets::Two };
    let plan = |layout: &mut _| ThresholdPlan::new(layout, grid, lens, k, sets);
    let (plan, temp) = carve(stream, workspace, "top-k distance join", plan)?;
    let ThresholdPlan { sides, best, tasks } = plan;
    // SAFETY: the sets are borrowed, and nothing else uses the memory of the plan.
    let sides = unsafe { sides.run(&temp, grid, &params.join, coords, scores) }?;
    let tasks = temp.view(tasks);
    let all_blocks = lens[1].div_ceil(JOIN_THREADS) as u64;
    best.run(&temp, params.threshold, |running| {
        // SAFETY: as above.
        unsafe { offer_in_parts(running, all_blocks, k, |part| launch(&sides, Part { tasks, ..part })) }
    })
}

/// Lets `launch` offer the pairs of growing parts of `all_blocks` blocks of probe items. The parts have no memory for tasks.
///
/// # Safety
/// The requirements of [`RunningBest::select_best`].
pub(in crate::join) unsafe fn offer_in_parts<'a>(
    running: &mut RunningBest<'_, 'a>,
    all_blocks: u64,
    k: usize,
    mut launch: impl FnMut(Part<'a>) -> Result<()>,
) -> Result<()> {
    let stride = stride(all_blocks);
    let (mut first_block, mut blocks) = (0, (JOIN.first_part / JOIN_THREADS) as u64);
    while first_block < all_blocks {
        let num_blocks = blocks.min(all_blocks - first_block);
        let ((pairs, state), tasks) = (running.candidates(), empty_view());
        launch(Part { first_block, num_blocks, stride, pairs, state, tasks })?;
        // SAFETY: passed on to the caller.
        unsafe { running.select_best() }?;
        first_block += num_blocks;
        blocks = blocks.saturating_mul(JOIN.growth(k) as u64);
    }
    Ok(())
}

/// Scratch memory of a join by a running threshold.
struct ThresholdPlan<C> {
    sides: SidesPlan<C>,
    best: BestPairs,
    tasks: Region<u64>,
}

impl<C: Float> ThresholdPlan<C> {
    fn new(layout: &mut Layout, grid: &PackedGrid, lens: [usize; 2], k: usize, sets: Sets) -> Self {
        // If the build side is small and few probe points have neighbors, sorting the probe side costs more than it saves.
        let is_sparse = sets == Sets::TwoScored
            && JOIN.is_small_beside(lens[0], lens[1])
            && grid.density(lens[0]) <= JOIN.unordered_to;
        let probe_side = if is_sparse { Side::UnsortedProbe } else { Side::Probe };
        Self {
            sides: SidesPlan::plan(layout, grid, lens, sets, probe_side),
            best: BestPairs::plan(layout, k),
            tasks: layout.reserve(max_tasks(lens)),
        }
    }
}

/// Plans the scratch memory of the best `k` pairs of two sets.
pub(super) fn plan<C: Float>(layout: &mut Layout, grid: &PackedGrid, lens: [usize; 2], k: usize) {
    let [left, right] = lens;
    let lens = if JOIN.is_small_beside(right, left) { [right, left] } else { lens };
    ThresholdPlan::<C>::new(layout, grid, lens, k, Sets::TwoScored);
}

/// Returns the most tasks of a launch; 0 if the build side is no longer than a segment.
fn max_tasks(lens: [usize; 2]) -> usize {
    if lens[0] <= JOIN_SEGMENT {
        return 0;
    }
    let num_warps = lens[1].div_ceil(JOIN_THREADS) * (JOIN_THREADS / 32);
    JOIN.tasks.max(num_warps.saturating_mul(JOIN.tasks_of_warp))
}

/// Returns a number coprime to `len`, so that its multiples modulo `len` visit each block once.
fn stride(len: u64) -> u64 {
    let gcd = |mut a: u64, mut b: u64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    // The golden ratio spreads consecutive multiples evenly.
    let begin = (len as f64 * 0.618_034) as u64 | 1;
    (begin..).find(|&stride| gcd(stride, len) == 1).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiples_of_the_stride_visit_each_block_once() {
        for len in [1, 2, 3, 7, 30, 128, 1000, 7813] {
            let mut seen = vec![false; len as usize];
            for block in 0..len {
                let at = (block * stride(len) % len) as usize;
                assert!(!std::mem::replace(&mut seen[at], true), "{len}");
            }
        }
    }
}
