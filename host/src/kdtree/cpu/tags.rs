//! Build by tags on all threads (Wald 2022, section 4), as on a GPU: each level sorts the points by (tag, coordinate, id) and updates every
//! tag to a child. Finished nodes are at the front, and the levels below skip them.

use kauri_kernels::kdtree::axes::Cell;
use kauri_kernels::kdtree::tags::next_tag;
use kauri_kernels::query::axes::AxisCycle;
use kauri_kernels::query::left_balanced::{full_tree, num_levels, pivot};
use kauri_kernels::thread::coord::Coord;
use rayon::prelude::*;

use crate::error::Result;
use crate::kdtree::cpu::varying::varying_axes;
use crate::kdtree::options::SplitRule;
use crate::memory;
use crate::parallel::{self, TASK_ITEMS};
use crate::primitives::cpu::bounds::bounds;
use crate::query::cpu::CpuIndex;
use crate::stats::Stats;

/// A point with its tag: the root of the subtree that contains it.
#[derive(Clone, Copy)]
pub(crate) struct Tagged<C, const D: usize> {
    tag: u32,
    id: u32,
    coords: [C; D],
}

/// Builds the tree.
pub(crate) fn build<C: Coord, const D: usize>(
    points: &[[C; D]],
    rule: SplitRule,
    stats: &mut Stats,
) -> Result<CpuIndex<C>> {
    let mut tagged: Vec<Tagged<C, D>> = memory::vec_with_capacity(points.len(), "points with tags")?;
    let mut axes = memory::filled(rule.num_stored_axes(points.len()), 0, "axes of the nodes")?;
    let mut cycle = AxisCycle::all(D as u32);
    stats.phase("tags", || {
        let in_root = |id: usize| Tagged { tag: 0, id: id as u32, coords: points[id] };
        parallel::extend(&mut tagged, points.len(), TASK_ITEMS, in_root);
        let mut root_cell = None;
        match rule {
            SplitRule::RoundRobin => cycle = varying_axes(points),
            SplitRule::Widest => root_cell = Some(Cell::new(bounds(points))),
        }
        sort_levels(&mut tagged, &mut axes, cycle, root_cell);
    });
    stats.phase("permute", || {
        CpuIndex::new(points.len(), axes.into(), cycle, None, |node, _| {
            (tagged[node].coords, tagged[node].id)
        })
    })
}

/// Sorts and updates the tags level by level, and brings the points into level order. Nodes split on the axes of `cycle` in turn, or on the
/// widest axis of their cell if there is a cell of the root.
fn sort_levels<C: Coord, const D: usize>(
    tagged: &mut [Tagged<C, D>],
    axes: &mut [u8],
    cycle: AxisCycle,
    root_cell: Option<Cell<C, D>>,
) {
    let n = tagged.len() as u32;
    let write_axes = |tagged: &[Tagged<C, D>], level: u32, axes: &mut [u8]| {
        if let Some(cell) = root_cell {
            write_widest_axes(cell, tagged, level, axes);
        }
    };
    write_axes(tagged, 0, axes);
    // The last level needs no sort of its own: each of its subtrees is one point.
    for level in 0..num_levels(n).saturating_sub(1) {
        // The nodes of the level above are still among the points of their subtrees; the nodes before are at the front.
        let from = full_tree(level.saturating_sub(1)) as usize;
        let in_turn = cycle.of_level(level, D as u32);
        tagged[from..].par_sort_unstable_by(|a, b| {
            a.tag.cmp(&b.tag).then_with(|| {
                let axis = axes.get(a.tag as usize).map_or(in_turn, |&axis| axis.into());
                (a.coords[axis].key(), a.id).cmp(&(b.coords[axis].key(), b.id))
            })
        });
        write_axes(tagged, level + 1, axes);
        let from = full_tree(level) as usize;
        parallel::for_chunks(&mut tagged[from..], TASK_ITEMS, |chunk, points| {
            for (i, point) in (from + chunk * TASK_ITEMS..).zip(points) {
                point.tag = next_tag(point.tag, i, level, n);
            }
        });
    }
    // The tags of the last two levels are nodes now.
    let from = full_tree(num_levels(n).saturating_sub(2)) as usize;
    tagged[from..].par_sort_unstable_by_key(|point| point.tag);
}

/// Writes the widest axis of each inner node of a level, for points that are sorted by the tags of the level above. The nodes of the levels
/// before that one are at the positions of their numbers; the nodes of that level are at the pivots of their subtrees.
fn write_widest_axes<C: Coord, const D: usize>(
    root_cell: Cell<C, D>,
    tagged: &[Tagged<C, D>],
    level: u32,
    axes: &mut [u8],
) {
    let [first, end] = [level, level + 1].map(|level| axes.len().min(full_tree(level) as usize));
    let (above, of_level) = axes[..end].split_at_mut(first);
    parallel::for_chunks(of_level, TASK_ITEMS, |chunk, axes| {
        for (code, axis) in ((first + chunk * TASK_ITEMS) as u32 + 1..).zip(axes) {
            let plane = |ancestor: u32| {
                let node = ancestor - 1;
                let is_parent = ancestor == code / 2;
                let position = if is_parent { pivot(node, tagged.len() as u32) } else { node };
                let axis = usize::from(above[node as usize]);
                (axis, tagged[position as usize].coords[axis])
            };
            *axis = root_cell.of_descendant(1, code, plane).widest(D) as u8;
        }
    });
}
