//! Build by tags (Wald 2022, section 4). The tag of a point is the root of the subtree that contains it. Each level sorts the points by
//! (tag, coordinate, id) and updates every tag to a child.
//!
//! Each axis is ranked once by (coordinate, id). A level then sorts one 64-bit key for any coordinate type: the tag above the rank on the
//! split axis. The rank also breaks ties by id.

use super::axes::Cell;
use super::selection::{Points, PointsMut};
use crate::policy::PER_ITEM_THREADS;
use crate::query::axes::Axes;
use crate::query::left_balanced::{full_tree, in_order_rank, pivot};
use crate::thread::coord::Coord;
use crate::thread::items::own_item;
use crate::thread::measure::MAX_DIMS;
use cuda_std::prelude::*;

/// Returns the sort key of a point: its tag above its rank.
#[inline(always)]
const fn tag_key(tag: u32, rank: u32) -> u64 {
    (tag as u64) << 32 | rank as u64
}

/// Returns the tag of a sort key.
#[inline(always)]
const fn tag_of(key: u64) -> u32 {
    (key >> 32) as u32
}

/// Updates the tag at sorted position `i` of `n`: left child, right child, or unchanged for the pivot and for nodes of the levels above.
#[inline(always)]
pub const fn next_tag(tag: u32, i: usize, level: u32, n: u32) -> u32 {
    // The nodes of the levels above come before the runs of this level.
    if i < full_tree(level) as usize {
        return tag;
    }
    let pivot = pivot(tag, n) as usize;
    if i < pivot {
        2 * tag + 1
    } else if i > pivot {
        2 * tag + 2
    } else {
        tag
    }
}

/// Writes the coordinate key on an axis and the id of each point.
#[kernel(family = "kdtree", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64, i32])]
pub unsafe fn kdtree_coordinate_keys<C: Coord>(
    coords: Slice<C>,
    keys: SliceMut<<C as Coord>::Key>,
    ids: SliceMut<u32>,
    dims: u32,
    axis: u32,
) {
    let Some(i) = own_item(ids.len()) else { return };
    keys.store(i, coords.load(i * dims as usize + axis as usize).key());
    ids.store(i, i as u32);
}

/// Writes the rank of each id in a sorted order.
#[kernel(family = "research-kdtree", block = PER_ITEM_THREADS)]
pub unsafe fn kdtree_ranks(ids: Slice<u32>, ranks: SliceMut<u32>) {
    let Some(i) = own_item(ids.len()) else { return };
    ranks.store(ids.load(i) as usize, i as u32);
}

/// Initializes the sort keys: all points are in the subtree of the root, with their ranks on its axis. `ranks` holds the ranks of all
/// points, axis by axis.
#[kernel(family = "research-kdtree", block = PER_ITEM_THREADS)]
pub unsafe fn kdtree_first_tags(ranks: Slice<u32>, axes: Axes<'_>, keys: SliceMut<u64>, ids: SliceMut<u32>) {
    let Some(i) = own_item(ids.len()) else { return };
    keys.store(i, tag_key(0, ranks.load(axes.of(0, axes.cycle()) * ids.len() + i)));
    ids.store(i, i as u32);
}

/// Updates the tag of each point of the sorted order to the left or right child, with the rank on the split axis of that node. The pivot of
/// a run keeps its tag: it is that node.
#[kernel(family = "research-kdtree", block = PER_ITEM_THREADS)]
pub unsafe fn kdtree_update_tags(
    keys: SliceMut<u64>,
    ids: Slice<u32>,
    ranks: Slice<u32>,
    axes: Axes<'_>,
    level: u32,
) {
    let Some(i) = own_item(ids.len()) else { return };
    let tag = next_tag(tag_of(keys.load(i)), i, level, ids.len() as u32);
    keys.store(i, tag_key(tag, ranks.load(axes.of(tag, axes.cycle()) * ids.len() + ids.load(i) as usize)));
}

/// Writes each point to the in-order rank of its node.
#[kernel(family = "research-kdtree", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64, i32])]
pub unsafe fn kdtree_place<C: Coord>(
    keys: Slice<u64>,
    ids: Slice<u32>,
    coords: Slice<C>,
    nodes: PointsMut<'_, C>,
    dims: u32,
) {
    let Some(i) = own_item(ids.len()) else { return };
    let rank = in_order_rank(tag_of(keys.load(i)), ids.len() as u32) as usize;
    nodes.set(rank, Points { coords, ids, dims: dims as usize, by_id: true }, i);
}

/// Writes the widest axis of each inner node of a level, for points that are sorted by the tags of the level above. The nodes of the levels
/// before that one are at the positions of their numbers; the nodes of that level are at the pivots of their subtrees. Position `i` is
/// point `ids[i]`, or point `i` if `ids` is empty. One thread per node.
#[kernel(family = "research-kdtree", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64, i32])]
pub unsafe fn kdtree_widest_axes_by_tags<C: Coord>(
    corners: Slice<C>,
    coords: Slice<C>,
    ids: Slice<u32>,
    dims: u32,
    first_node: u32,
    axes: SliceMut<u8>,
) {
    let (node, dims) = (u64::from(first_node) + thread::index_1d_u64(), dims as usize);
    if node <= 2 * u64::from(first_node) && node < axes.len() as u64 {
        let (code, num_points) = (node as u32 + 1, (coords.len() / dims) as u32);
        let plane = |ancestor: u32| {
            let node = ancestor - 1;
            let position = if ancestor == code / 2 { pivot(node, num_points) } else { node } as usize;
            let point = if ids.is_empty() { position } else { ids.load(position) as usize };
            let axis = axes.load(node as usize) as usize;
            (axis, coords.load(point * dims + axis))
        };
        let cell = Cell::<C, MAX_DIMS>::load(corners, dims).of_descendant(1, code, plane);
        axes.store(node as usize, cell.widest(dims) as u8);
    }
}
