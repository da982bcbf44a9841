//! Builds the left-balanced tree: partitions the points at the root's rank, then builds both subtrees in parallel.

use kauri_kernels::kdtree::axes::Cell;
use kauri_kernels::query::axes::AxisCycle;
use kauri_kernels::query::left_balanced::{in_order_rank, subtree_size};
use kauri_kernels::thread::coord::Coord;
use std::cmp::Ordering;

use crate::error::Result;
use crate::kdtree::cpu::varying::varying_axes;
use crate::kdtree::options::SplitRule;
use crate::memory;
use crate::parallel::{self, TASK_ITEMS};
use crate::primitives::cpu::bounds::bounds;
use crate::query::cpu::CpuIndex;
use crate::stats::Stats;

/// One task builds a subtree of at most this many points.
const MAX_TASK_POINTS: usize = 4096;

/// A point with its id. Points are moved whole, so that comparisons need no indirect loads.
#[derive(Clone, Copy)]
pub(crate) struct Item<C, const D: usize> {
    coords: [C; D],
    id: u32,
}

/// Builds the tree. Point `i` has id `ids[i]`, or `i` without ids.
pub(crate) fn build<C: Coord, const D: usize>(
    points: &[[C; D]],
    ids: Option<&[u32]>,
    rule: SplitRule,
    stats: &mut Stats,
) -> Result<CpuIndex<C>> {
    // The caller has checked that the ids fit.
    let n = points.len() as u32;
    let mut items: Vec<Item<C, D>> = memory::vec_with_capacity(points.len(), "points in build order")?;
    let num_axes = rule.num_stored_axes(points.len());
    let mut axes: Vec<u8> = memory::vec_with_capacity(num_axes, "axes of the nodes")?;
    // The axes in the order of `items`.
    let num_items = if num_axes > 0 { points.len() } else { 0 };
    let mut item_axes = memory::filled(num_items, 0, "axes of the points")?;
    let mut cycle = AxisCycle::all(D as u32);
    stats.phase("split", || {
        let item = |i: usize| Item { coords: points[i], id: ids.map_or(i as u32, |ids| ids[i]) };
        parallel::extend(&mut items, points.len(), TASK_ITEMS, item);
        match rule {
            SplitRule::RoundRobin => {
                cycle = varying_axes(points);
                split(&mut items, &mut [], 0, n, InTurn { cycle, axis: cycle.first() });
            }
            SplitRule::Widest => split(&mut items, &mut item_axes, 0, n, Cell::new(bounds(points))),
        }
    });
    stats.phase("permute", || {
        let axis = |s| item_axes[in_order_rank(s as u32, n) as usize];
        parallel::extend(&mut axes, num_axes, TASK_ITEMS, axis);
        CpuIndex::new(points.len(), axes.into(), cycle, None, |_, rank| (items[rank].coords, items[rank].id))
    })
}

/// Chooses the split axis of a node.
trait ChooseAxis<C, const D: usize>: Copy + Send + Sync {
    fn axis(&self) -> usize;
    /// Returns the values of the two children, after a split at a coordinate.
    fn children(self, at: C) -> [Self; 2];
}

/// Levels split on the axes of a cycle in turn.
#[derive(Clone, Copy)]
struct InTurn {
    cycle: AxisCycle,
    axis: usize,
}

impl<C, const D: usize> ChooseAxis<C, D> for InTurn {
    fn axis(&self) -> usize {
        self.axis
    }

    fn children(self, _: C) -> [Self; 2] {
        [Self { axis: self.cycle.next(self.axis), ..self }; 2]
    }
}

impl<C: Coord, const D: usize> ChooseAxis<C, D> for Cell<C, D> {
    fn axis(&self) -> usize {
        self.widest(D)
    }

    fn children(self, at: C) -> [Self; 2] {
        self.cut(self.widest(D), at)
    }
}

/// Arranges the points of subtree `s` of a tree over `n` points in in-order sequence (left subtree, node, right subtree). Writes the axes
/// of the nodes in the same order, unless `axes` is empty.
fn split<C: Coord, const D: usize, A: ChooseAxis<C, D>>(
    items: &mut [Item<C, D>],
    axes: &mut [u8],
    s: u32,
    n: u32,
    rule: A,
) {
    if items.len() <= 1 {
        return;
    }
    debug_assert_eq!(items.len(), subtree_size(s, n) as usize);
    // With two points or more the left child exists, so its number fits.
    let (left_child, axis) = (2 * s + 1, rule.axis());
    let pivot = subtree_size(left_child, n) as usize;
    let (left, item, right) = items.select_nth_unstable_by(pivot, |a, b| compare(a, b, axis));
    let (left_axes, rest) = axes.split_at_mut(pivot.min(axes.len()));
    let right_axes = match rest.split_first_mut() {
        Some((pivot_axis, right)) => {
            *pivot_axis = axis as u8;
            right
        }
        None => rest,
    };
    let [left_rule, right_rule] = rule.children(item.coords[axis]);
    // The sum can wrap only if the right subtree is empty; then the number is not used.
    let right_child = left_child.wrapping_add(1);
    if left.len() > MAX_TASK_POINTS {
        parallel::join(
            || split(left, left_axes, left_child, n, left_rule),
            || split(right, right_axes, right_child, n, right_rule),
        );
    } else {
        split(left, left_axes, left_child, n, left_rule);
        split(right, right_axes, right_child, n, right_rule);
    }
}

/// Compares two points by (coordinate, id) on one axis. Ids are distinct, so the result is never `Equal` for two points. The partition
/// only tests for `Less`, and this form of that test compiles to code without branches.
#[inline(always)]
fn compare<C: Coord, const D: usize>(a: &Item<C, D>, b: &Item<C, D>, axis: usize) -> Ordering {
    let less = |a: &Item<C, D>, b: &Item<C, D>| {
        let (x, y) = (a.coords[axis], b.coords[axis]);
        (x < y) | ((x == y) & (a.id < b.id))
    };
    if less(a, b) {
        Ordering::Less
    } else if less(b, a) {
        Ordering::Greater
    } else {
        Ordering::Equal
    }
}
