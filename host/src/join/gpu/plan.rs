//! Computes the device memory of joins from the sets in host memory, without a GPU.

use super::best::BestPairs;
use super::cells::{PointOrder, Sets, SidesPlan};
use super::grid::{PackedGrid, bounds_bytes, grid_of_host_sets};
use super::heaps::{self, HeapMemory};
use super::nested::{self, TopScores};
use super::pairs::CountingPlan;
use super::threshold;
use crate::device::Layout;
use crate::error::Result;
use crate::join::params::{JoinParams, Lookup};
use crate::join::strategy::Strategy;
use kauri_kernels::join::score::{ScoreType, Scoring};
use kauri_kernels::policy::JOIN;
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::words::Bits128;

/// Computes the scratch memory of joins of two sets.
pub(in crate::join) struct MemoryPlan {
    dims: usize,
    /// Number of points of the build side and of the probe side.
    lens: [usize; 2],
    /// `None` if no pair is possible.
    grid: Option<PackedGrid>,
}

/// The options of a top-k distance join that determine its memory.
pub(in crate::join) struct TopKPlan<'a> {
    pub(in crate::join) k: usize,
    pub(in crate::join) strategy: Strategy,
    pub(in crate::join) result_bytes: u64,
    pub(in crate::join) best_points: Option<usize>,
    pub(in crate::join) scoring: &'a Scoring,
    pub(in crate::join) score_type: ScoreType,
}

impl MemoryPlan {
    pub(in crate::join) fn new<C: Coord>(dims: usize, coords: [&[C]; 2], params: &JoinParams<C>) -> Self {
        let lens = coords.map(|coords| coords.len() / dims);
        Self { dims, lens, grid: grid_of_host_sets(dims, coords, params) }
    }

    /// Plans for the largest grid of sets of `lens` points.
    pub(super) fn upper_bound(dims: usize, lens: [usize; 2], lookup: Lookup) -> Self {
        Self { dims, lens, grid: Some(PackedGrid::largest(dims, lookup)) }
    }

    /// Returns the number of cells, and the bits of their codes; `None` if no pair is possible.
    pub(in crate::join) fn grid(&self) -> Option<(f64, u32)> {
        self.grid.as_ref().map(|grid| (grid.num_cells(), grid.code_bits))
    }

    /// True if neighbor cells have so many points that the search of a tree for `k` points is faster.
    pub(in crate::join) fn is_dense(&self, k: usize) -> bool {
        let density = self.grid.as_ref().map_or(0.0, |grid| grid.neighbor_fraction() * self.lens[0] as f64);
        density > JOIN.nearest_by_cells_to(k)
    }

    /// Returns the scratch bytes of a join for the nearest points.
    pub(in crate::join) fn of_nearest<C: Coord>(&self) -> u64 {
        self.of_sides::<C>(Sets::Two, |_| {}).max(bounds_bytes::<C>(self.dims))
    }

    /// Returns the scratch bytes and the bytes of the offsets of a join for all pairs.
    pub(in crate::join) fn of_rows<C: Coord>(&self, is_self_join: bool) -> u64 {
        let sets = if is_self_join { Sets::One } else { Sets::Two };
        self.of_sides::<C>(sets, |layout| self.plan_offsets(layout)).max(bounds_bytes::<C>(self.dims))
    }

    /// Returns the strategy of a top-k distance join, and an upper bound of its scratch bytes.
    ///
    /// # Errors
    /// [`Error::StrategyLimit`](crate::Error::StrategyLimit).
    pub(in crate::join) fn of_top_k<C: Coord>(&self, plan: &TopKPlan<'_>) -> Result<(Strategy, u64)> {
        let &TopKPlan { strategy, result_bytes, best_points, scoring, score_type, .. } = plan;
        let all_pairs = self.lens[0] as u128 * self.lens[1] as u128;
        let k = usize::try_from(all_pairs).map_or(plan.k, |all| plan.k.min(all));
        let strategy = strategy.choose(scoring, score_type, self.lens, k)?;
        if k == 0 {
            return Ok((strategy, 0));
        }
        let mut best = Layout::new();
        BestPairs::plan(&mut best, k);
        let heaps = |memory| {
            self.of_sides::<C>(Sets::TwoScored, |layout| {
                let (row_len, batch) = heaps::row_len_and_batch(k, memory, self.lens[1], result_bytes);
                layout.reserve::<Bits128>(batch * row_len);
                BestPairs::plan(layout, k);
            })
        };
        let bytes = match strategy {
            Strategy::NestedLoop => return Ok((strategy, best.bytes())),
            Strategy::Threshold => {
                let (_, points) = nested::num_best_points(k, best_points, self.lens);
                let mut layout = Layout::new();
                for len in self.lens {
                    TopScores::plan(&mut layout, score_type, len, len.min(points));
                }
                BestPairs::plan(&mut layout, k);
                layout.bytes().max(self.of_threshold::<C>(k))
            }
            Strategy::RegisterHeap => heaps(HeapMemory::Registers),
            Strategy::SharedHeap => heaps(HeapMemory::Shared),
            Strategy::Filter => {
                let filter = self.of_sides::<C>(Sets::TwoScored, |layout| self.plan_offsets(layout));
                best.bytes().max(filter)
            }
            _ => self.of_threshold::<C>(k),
        };
        Ok((strategy, bytes.max(bounds_bytes::<C>(self.dims))))
    }

    /// Returns the scratch bytes of the best pairs by a running threshold.
    fn of_threshold<C: Coord>(&self, k: usize) -> u64 {
        let mut layout = Layout::new();
        if let Some(grid) = &self.grid {
            threshold::plan::<C>(&mut layout, self.dims, grid, self.lens, k);
        }
        layout.bytes()
    }

    /// Returns the scratch bytes of two sides, and of what `add` plans after them.
    fn of_sides<C: Coord>(&self, sets: Sets, add: impl FnOnce(&mut Layout)) -> u64 {
        let Some(grid) = &self.grid else { return 0 };
        let mut layout = Layout::new();
        SidesPlan::<C>::plan(&mut layout, self.dims, grid, self.lens, sets, PointOrder::ByCell);
        add(&mut layout);
        layout.bytes()
    }

    /// Plans the counts and the offsets of the rows.
    fn plan_offsets(&self, layout: &mut Layout) {
        CountingPlan::plan(layout, self.lens[1]);
        layout.reserve::<u64>(self.lens[1] + 1);
    }
}
