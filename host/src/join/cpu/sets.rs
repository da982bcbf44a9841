//! The two sides of a join on the CPU, and the search for the points near a probe point.

use super::cells::Cells;
use super::overfull_cells::{NodeFilter, Segment, Subtree, TreeNode, TreePoint, TreeVisitor};
use crate::error::Result;
use crate::join::grid::grid_of;
use crate::join::params::JoinParams;
use crate::parallel::{self, Ranges};
use crate::primitives::cpu::bounds::bounds;
use kauri_kernels::join::cells::Pairing;
use kauri_kernels::join::grid::Grid;
use kauri_kernels::thread::coord::Float;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most probe points of a task.
const TASK: usize = 1 << 10;

/// The sides of a join: each probe point searches the build side. Positions are those in the order of cells.
pub(super) struct JoinSides<'a, C, const D: usize> {
    pub(super) grid: Grid<D>,
    pub(super) params: &'a JoinParams<C>,
    pub(super) build: Arc<Cells<C, D>>,
    /// The build side itself if a set is joined with itself.
    pub(super) probe: Arc<Cells<C, D>>,
    /// Number of points of the whole probe side before the points of this part.
    pub(super) num_before: u32,
}

/// Receives the build points near a probe point.
pub(super) trait MatchVisitor<C, const D: usize> {
    /// Visits the build point at a position.
    fn visit(&mut self, position: usize);

    /// Visits the points near `point` in an overfull cell, which has these positions.
    fn visit_overfull_cell(
        &mut self,
        sides: &JoinSides<'_, C, D>,
        tree: Subtree<'_, C, D>,
        positions: Range<usize>,
        point: &[C; D],
    ) -> Result<()>;
}

/// Returns the grid of two sets, or `None` if no pair is possible.
pub(super) fn grid_of_points<C: Float, const D: usize>(
    points: [&[[C; D]]; 2],
    params: &JoinParams<C>,
) -> Option<Grid<D>> {
    if points.iter().any(|points| points.is_empty()) {
        return None;
    }
    grid_of(points.map(bounds), params).map(|of| of.grid)
}

impl<'a, C: Float, const D: usize> JoinSides<'a, C, D> {
    /// Sorts both sides, given as [build, probe], by cell. Returns `None` if no pair is possible.
    pub(super) fn new(coords: [&[C]; 2], params: &'a JoinParams<C>) -> Result<Option<Self>> {
        let points = coords.map(|coords| coords.as_chunks::<D>().0);
        let Some(grid) = grid_of_points(points, params) else { return Ok(None) };
        let build = Arc::new(Cells::searchable(points[0], &grid)?);
        let probe = if params.pairing.is_self_join() {
            build.clone()
        } else {
            Arc::new(Cells::new(points[1], &grid)?)
        };
        Ok(Some(Self { grid, params, build, probe, num_before: 0 }))
    }

    /// Counts the pairs. In a self join the probe side must be the whole set.
    pub(super) fn count(&self) -> Result<u64> {
        let total = AtomicU64::new(0);
        let tasks = self.tasks();
        parallel::try_for_each(tasks.num(), &|task| {
            let mut count = 0;
            self.try_for_each(tasks.get(task), |probe, segments| {
                count += self.count_near::<false>(probe, segments)?;
                Ok(())
            })?;
            total.fetch_add(count, Ordering::Relaxed);
            Ok(())
        })?;
        let count = total.into_inner();
        // In a self join each point is near itself, and all other pairs are counted in both directions.
        let num_probes = self.probe.ids.len() as u64;
        Ok(match self.params.pairing {
            Pairing::All | Pairing::Swapped => count,
            Pairing::Both => count - num_probes,
            Pairing::Once => (count - num_probes) / 2,
        })
    }

    /// Counts the build points near a probe point, including the point itself in a self join; if `SMALLER`, only those with smaller ids
    /// than the probe point.
    pub(super) fn count_near<const SMALLER: bool>(&self, probe: usize, segments: &[Segment]) -> Result<u64> {
        let (ids, probe_id) = (&self.build.ids[..], self.probe_id(probe));
        let mut counter = Counter::<SMALLER> { ids, probe_id, count: 0 };
        self.search(probe, segments, &mut counter)?;
        Ok(counter.count)
    }

    /// Returns the id of a probe point in the whole set.
    pub(super) fn probe_id(&self, probe: usize) -> u32 {
        self.probe.ids[probe] + self.num_before
    }

    /// Divides the probe positions into tasks.
    pub(super) fn tasks(&self) -> Ranges {
        Ranges::even(self.probe.ids.len(), TASK)
    }

    /// Calls `visit` for each probe position, with the segments of the build side in the neighbor cells.
    pub(super) fn try_for_each<E>(
        &self,
        probes: impl Iterator<Item = usize>,
        mut visit: impl FnMut(usize, &[Segment]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let (mut segments, mut code) = (Vec::new(), None);
        for probe in probes {
            if code != Some(self.probe.codes[probe]) {
                code = Some(self.probe.codes[probe]);
                self.build.neighbor_segments(&self.grid, &self.probe.points[probe], &mut segments);
            }
            visit(probe, &segments)?;
        }
        Ok(())
    }

    /// Visits the build points near a probe point, segment by segment. Points of a segment that is no overfull cell are visited in the
    /// order of positions.
    #[inline(always)]
    pub(super) fn search(
        &self,
        probe: usize,
        segments: &[Segment],
        visitor: &mut impl MatchVisitor<C, D>,
    ) -> Result<()> {
        let point = &self.probe.points[probe];
        for Segment { positions, tree } in segments {
            match tree {
                None => self.scan(positions.clone(), point, visitor),
                Some(tree) => {
                    let tree = self.build.overfull.tree(*tree);
                    visitor.visit_overfull_cell(self, tree, positions.clone(), point)?;
                }
            }
        }
        Ok(())
    }

    /// Visits the points near `point` by a scan of all positions.
    #[inline(always)]
    pub(super) fn scan(
        &self,
        positions: Range<usize>,
        point: &[C; D],
        visitor: &mut impl MatchVisitor<C, D>,
    ) {
        for position in positions {
            if self.params.is_near(&self.build.points[position], point) {
                visitor.visit(position);
            }
        }
    }
}

/// Counts build points; if `SMALLER`, only those with smaller ids than the probe point.
struct Counter<'a, const SMALLER: bool> {
    ids: &'a [u32],
    probe_id: u32,
    count: u64,
}

impl<C: Float, const D: usize, const SMALLER: bool> MatchVisitor<C, D> for Counter<'_, SMALLER> {
    #[inline(always)]
    fn visit(&mut self, position: usize) {
        self.count += u64::from(!SMALLER || self.ids[position] < self.probe_id);
    }

    fn visit_overfull_cell(
        &mut self,
        sides: &JoinSides<'_, C, D>,
        tree: Subtree<'_, C, D>,
        positions: Range<usize>,
        point: &[C; D],
    ) -> Result<()> {
        // Positions in a cell are in the order of ids.
        let end = match SMALLER {
            true => positions.start + self.ids[positions].partition_point(|&id| id < self.probe_id),
            false => positions.end,
        };
        let mut counter = CountBefore { end: end as u32, count: 0 };
        let _ = tree.search(point, sides.params, &mut counter);
        self.count += counter.count;
        Ok(())
    }
}

/// Counts points of an overfull cell before a position.
struct CountBefore {
    end: u32,
    count: u64,
}

impl<C: Float, const D: usize> TreeVisitor<C, D> for CountBefore {
    fn filter(&self, node: &TreeNode<C, D>, _: usize) -> NodeFilter {
        match node.positions {
            [first, _] if first >= self.end => NodeFilter::Skip,
            [_, last] if last >= self.end => NodeFilter::Descend,
            _ => NodeFilter::TakeAll,
        }
    }

    fn visit_all(&mut self, points: &[TreePoint<C, D>]) -> ControlFlow<()> {
        self.count += points.len() as u64;
        ControlFlow::Continue(())
    }

    fn visit(&mut self, point: &TreePoint<C, D>) -> ControlFlow<()> {
        self.count += u64::from(point.position < self.end);
        ControlFlow::Continue(())
    }
}
