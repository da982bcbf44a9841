//! Computes the device memory of joins from the sets in host memory, without a GPU.

use super::best::BestPairs;
use super::cells::{Sets, Side, SidesPlan};
use super::grid::{PackedGrid, bounds_bytes, grid_of_host_sets};
use super::nested::{self, TopScores};
use super::pairs::CountingPlan;
use super::threshold;
#[cfg(feature = "research")]
use super::{append, heaps};
use crate::device::Layout;
use crate::join::params::{JoinParams, TopKParams};
use crate::join::strategy::Strategy;
use crate::primitives::planned::bytes_of;
use kauri_kernels::thread::coord::Float;
#[cfg(feature = "research")]
use kauri_kernels::thread::words::Bits128;

/// Returns an upper bound of the scratch bytes of a top-k join of sets of `lens` items, whose strategy has been chosen. `by_cells` returns
/// the bytes of the part of the strategy that has a grid, for the best `k` pairs.
pub(in crate::join) fn top_k_bytes<J>(
    params: &TopKParams<J>,
    lens: [usize; 2],
    by_cells: impl FnOnce(usize) -> u64,
) -> u64 {
    let all_pairs = lens[0] as u128 * lens[1] as u128;
    let k = usize::try_from(all_pairs).map_or(params.k, |all| params.k.min(all));
    if k == 0 {
        return 0;
    }
    let best_bytes = bytes_of(|layout| BestPairs::plan(layout, k));
    match params.strategy {
        Strategy::NestedLoop => best_bytes,
        Strategy::Threshold => {
            let (_, items) = nested::num_best_points(params, k, lens);
            let top_scores = |layout: &mut _| {
                lens.map(|len| TopScores::plan(layout, params.score_type, len, len.min(items)))
            };
            bytes_of(top_scores).saturating_add(best_bytes).max(by_cells(k))
        }
        Strategy::Filter => best_bytes.max(by_cells(k)),
        _ => by_cells(k),
    }
}

/// Computes the scratch memory of joins of two sets.
pub(in crate::join) struct MemoryPlan<C> {
    pub(in crate::join) params: JoinParams<C>,
    /// Number of points of the build side and of the probe side.
    pub(in crate::join) lens: [usize; 2],
    /// `None` if no pair is possible.
    grid: Option<PackedGrid>,
}

impl<C: Float> MemoryPlan<C> {
    /// Takes validated coordinates as [build, probe].
    pub(in crate::join) fn new(coords: [&[C]; 2], params: &JoinParams<C>) -> Self {
        let lens = coords.map(|coords| coords.len() / params.dims);
        Self { params: *params, lens, grid: grid_of_host_sets(coords, params) }
    }

    /// Plans for the largest grid of sets of `lens` points.
    pub(super) fn upper_bound(lens: [usize; 2], params: &JoinParams<C>) -> Self {
        Self { params: *params, lens, grid: Some(PackedGrid::largest(params.dims, params.lookup)) }
    }

    /// Returns the number of cells, and the bits of their codes; `None` if no pair is possible.
    pub(in crate::join) fn grid(&self) -> Option<(f64, u32)> {
        self.grid.as_ref().map(|grid| (grid.num_cells(), grid.code_bits))
    }

    /// Returns the average number of build points in the neighbor cells of a point.
    pub(in crate::join) fn density(&self) -> f64 {
        self.grid.as_ref().map_or(0.0, |grid| grid.density(self.lens[0]))
    }

    /// Returns the scratch bytes of a join for the nearest points.
    pub(in crate::join) fn of_nearest(&self) -> u64 {
        self.of_sides(Sets::Two, |_| {})
    }

    /// Returns the scratch bytes and the bytes of the offsets of a join for all pairs.
    pub(in crate::join) fn of_rows(&self) -> u64 {
        self.of_sides(Sets::of(&self.params), |layout| self.plan_offsets(layout))
    }

    /// Returns an upper bound of the scratch bytes of a top-k distance join, whose strategy has been chosen.
    pub(in crate::join) fn of_top_k(&self, params: &TopKParams<JoinParams<C>>) -> u64 {
        top_k_bytes(params, self.lens, |k| match params.strategy {
            #[cfg(feature = "research")]
            Strategy::RegisterHeap | Strategy::SharedHeap => self.of_sides(Sets::TwoScored, |layout| {
                let (row_len, batch) = heaps::row_len_and_batch(params, k, self.lens[1]);
                layout.reserve::<Bits128>(batch * row_len);
                BestPairs::plan(layout, k);
            }),
            #[cfg(feature = "research")]
            Strategy::AppendSort => self.grid.as_ref().map_or(0, |grid| {
                let mut layout = Layout::new();
                append::AppendPlan::<C>::first(&mut layout, grid, self.lens, params.heap_bytes);
                layout.bytes().max(bounds_bytes::<C>(self.params.dims))
            }),
            Strategy::Filter => self.of_sides(Sets::TwoScored, |layout| self.plan_offsets(layout)),
            _ => self.with_grid(|layout, grid| threshold::plan::<C>(layout, grid, self.lens, k)),
        })
    }

    /// Returns the scratch bytes of two sides, with the memory that `add` plans after them.
    fn of_sides(&self, sets: Sets, add: impl FnOnce(&mut Layout)) -> u64 {
        self.with_grid(|layout, grid| {
            SidesPlan::<C>::plan(layout, grid, self.lens, sets, Side::Probe);
            add(layout);
        })
    }

    /// Returns the scratch bytes of `plan` or of the computation of the grid, whichever is more: they are not needed together.
    fn with_grid(&self, plan: impl FnOnce(&mut Layout, &PackedGrid)) -> u64 {
        let bytes = self.grid.as_ref().map_or(0, |grid| bytes_of(|layout| plan(layout, grid)));
        bytes.max(bounds_bytes::<C>(self.params.dims))
    }

    /// Plans the counts and the offsets of the rows.
    fn plan_offsets(&self, layout: &mut Layout) {
        CountingPlan::plan(layout, self.lens[1]);
        layout.reserve::<u64>(self.lens[1] + 1);
    }
}
