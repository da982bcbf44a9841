//! The best pairs by a selection from all pairs, without a threshold.

use super::best::BestPairs;
use super::cells::{Sets, Side, SidesPlan};
use super::grid::PackedGrid;
use super::pairs::CountingPlan;
use super::scored::ScoredView;
use crate::device::{Buffer, Layout, Stream, Workspace};
use crate::error::Result;
use crate::join::params::{JoinParams, TopKParams};
use crate::point::with_kernel_dims;
use crate::primitives::merge::OrderArgs;
use crate::primitives::merge_sort::MergeSort;
use crate::primitives::order::{Ascending, NoValue};
use crate::primitives::pairs::{Pairs, empty_view};
use crate::primitives::planned::carve;
use kauri_kernels::join::curve::MAX_DIMS;
use kauri_kernels::join::filter::join_filter;
use kauri_kernels::policy::JOIN;
use kauri_kernels::thread::coord::Float;
use kauri_kernels::thread::radix_key::Fold;
use kauri_kernels::thread::ranked::Ranked;
use kauri_kernels::thread::words::Bits128;

/// Returns the best pairs of two sets.
pub(super) fn best_pairs<C: Float>(
    stream: &Stream,
    workspace: &mut Workspace,
    params: &TopKParams<JoinParams<C>>,
    sets: [ScoredView<'_, C>; 2],
    grid: &PackedGrid,
) -> Result<Vec<Bits128>> {
    let num_rows = sets[1].len;
    let mut layout = Layout::new();
    let lens = sets.map(|set| set.len);
    let plan = SidesPlan::plan(&mut layout, grid, lens, Sets::TwoScored, Side::Probe);
    let counting = CountingPlan::plan(&mut layout, num_rows);
    let offsets = layout.reserve::<u64>(num_rows + 1);
    let temp = workspace.carve(stream, &layout, "top-k distance join")?;
    let coords = sets.map(|set| set.coords);
    // SAFETY: the sets are borrowed, nothing else uses the memory of the plan, and buffers wait for the device before they are freed.
    let mut all = unsafe {
        let sides = plan.run(&temp, grid, &params.join, coords, Some(sets))?;
        let offsets = temp.view(offsets);
        let total = counting.run(&temp, &sides, offsets)?;
        let pair_bytes = size_of::<Bits128>() as u64;
        let mut all = Buffer::<Bits128>::of_result(stream.gpu(), total, pair_bytes, "pairs of a join")?;
        let args = (sides.args(), sides.ranks(&params.scoring), offsets.read_only(), all.slice_mut());
        let n = num_rows as u64;
        with_kernel_dims!(grid.dims, D in [2, 3] or MAX_DIMS => stream.launch_items::<join_filter<C, D>>(n, args))?;
        all
    };
    select_best(stream, workspace, &mut all, params.k)
}

/// Returns the best `k` of pairs in device memory.
pub(in crate::join) fn select_best(
    stream: &Stream,
    workspace: &mut Workspace,
    all: &mut Buffer<Bits128>,
    k: usize,
) -> Result<Vec<Bits128>> {
    if JOIN.room(k) >= all.len() {
        let plan = |layout: &mut _| MergeSort::<Bits128, NoValue>::plan(layout, all.len());
        let (sort, temp) = carve(stream, workspace, "pairs in order", plan)?;
        let pairs = Pairs::of_keys(all.slice_mut());
        // SAFETY: the number of pairs is as planned, and they are borrowed.
        unsafe {
            let (count, by_key) = (empty_view().read_only(), OrderArgs::by_key(Fold::NONE));
            sort.run::<Ascending>(&temp, pairs.read_only(), pairs, count, by_key)
        }?;
        return all.front_to_vec(stream, k.min(all.len()));
    }
    let plan = |layout: &mut _| BestPairs::plan(layout, k);
    let (best, temp) = carve(stream, workspace, "top-k distance join", plan)?;
    // SAFETY: as above.
    best.run(&temp, Bits128::LAST, |running| unsafe { running.offer(all.slice()) })
}
