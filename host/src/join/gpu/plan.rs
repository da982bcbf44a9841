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
use kauri_kernels::thread::coord::Coord;
#[cfg(feature = "research")]
use kauri_kernels::thread::words::Bits128;

/// Computes the scratch memory of joins of two sets.
pub(in crate::join) struct MemoryPlan<C> {
    pub(in crate::join) params: JoinParams<C>,
    /// Number of points of the build side and of the probe side.
    pub(in crate::join) lens: [usize; 2],
    /// `None` if no pair is possible.
    grid: Option<PackedGrid>,
}

impl<C: Coord> MemoryPlan<C> {
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
    pub(in crate::join) fn of_top_k(&self, params: &TopKParams<C>) -> u64 {
        let all_pairs = self.lens[0] as u128 * self.lens[1] as u128;
        let k = usize::try_from(all_pairs).map_or(params.k, |all| params.k.min(all));
        if k == 0 {
            return 0;
        }
        let best_bytes = |mut layout: Layout| {
            BestPairs::plan(&mut layout, k);
            layout.bytes()
        };
        match params.strategy {
            Strategy::NestedLoop => best_bytes(Layout::new()),
            Strategy::Threshold => {
                let (_, points) = nested::num_best_points(params, k, self.lens);
                let mut layout = Layout::new();
                for len in self.lens {
                    TopScores::plan(&mut layout, params.score_type, len, len.min(points));
                }
                best_bytes(layout).max(self.of_threshold(k))
            }
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
            Strategy::Filter => {
                let all_pairs = self.of_sides(Sets::TwoScored, |layout| self.plan_offsets(layout));
                best_bytes(Layout::new()).max(all_pairs)
            }
            _ => self.of_threshold(k),
        }
    }

    /// Returns the scratch bytes of the best pairs by a running threshold.
    fn of_threshold(&self, k: usize) -> u64 {
        let mut layout = Layout::new();
        if let Some(grid) = &self.grid {
            threshold::plan::<C>(&mut layout, grid, self.lens, k);
        }
        layout.bytes().max(bounds_bytes::<C>(self.params.dims))
    }

    /// Returns the scratch bytes of two sides, with the memory that `add` plans after them.
    fn of_sides(&self, sets: Sets, add: impl FnOnce(&mut Layout)) -> u64 {
        let mut layout = Layout::new();
        if let Some(grid) = &self.grid {
            SidesPlan::<C>::plan(&mut layout, grid, self.lens, sets, Side::Probe);
            add(&mut layout);
        }
        layout.bytes().max(bounds_bytes::<C>(self.params.dims))
    }

    /// Plans the counts and the offsets of the rows.
    fn plan_offsets(&self, layout: &mut Layout) {
        CountingPlan::plan(layout, self.lens[1]);
        layout.reserve::<u64>(self.lens[1] + 1);
    }
}
