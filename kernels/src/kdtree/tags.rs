//! Building by tags and sorting (Wald 2022, section 4): each point carries the node of the subtree it is in; a round
//! sorts by (tag, coordinate, id) and sends each point one level down.
//!
//! Each axis is ranked once by (coordinate, id). So a round sorts one 64-bit key, the tag above the rank on the round's
//! axis, whatever the coordinate type, and ties go by id as they must.

use crate::policy::PER_ITEM_THREADS;
use crate::query::axes::Axes;
use crate::query::left_balanced::{full_tree, in_order_rank, pivot};
use crate::thread::coord::Coord;
use cuda_std::prelude::*;

/// The key of a point: its tag above its rank.
#[inline(always)]
const fn tag_key(tag: u32, rank: u32) -> u64 {
    (tag as u64) << 32 | rank as u64
}

/// The tag in a key.
#[inline(always)]
const fn tag_of(key: u64) -> u32 {
    (key >> 32) as u32
}

/// The tag of point `i` of `n`, sorted on a level, on the next: the left or right child of its tag, or the same if it is that node.
#[inline(always)]
pub(super) const fn send_down(tag: u32, i: usize, level: u32, n: u32) -> u32 {
    // Finished nodes lie before the runs of this level.
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

/// Starts the ranking of one axis: the coordinate's key and the id of each point.
#[kernel(family = "kdtree-tags", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64])]
pub unsafe fn kdtree_coordinate_keys<C: Coord>(
    coords: Slice<C>,
    keys: SliceMut<<C as Coord>::Key>,
    ids: SliceMut<u32>,
    dims: u32,
    axis: u32,
) {
    let i = thread::index_1d_u64() as usize;
    if i < ids.len() {
        keys.store(i, coords.load(i * dims as usize + axis as usize).key());
        ids.store(i, i as u32);
    }
}

/// Ends the ranking of one axis: the place of each id in the order.
#[kernel(family = "kdtree-tags", block = PER_ITEM_THREADS)]
pub unsafe fn kdtree_ranks(ids: Slice<u32>, ranks: SliceMut<u32>) {
    let i = thread::index_1d_u64() as usize;
    if i < ids.len() {
        ranks.store(ids.load(i) as usize, i as u32);
    }
}

/// All points in the root's subtree, with their ranks on its axis. Of each axis `ranks` has those of all points; `axes` are those
/// of the nodes, empty if they go by levels.
#[kernel(family = "kdtree-tags", block = PER_ITEM_THREADS)]
pub unsafe fn kdtree_first_tags(
    ranks: Slice<u32>,
    axes: Slice<u8>,
    dims: u32,
    keys: SliceMut<u64>,
    ids: SliceMut<u32>,
) {
    let i = thread::index_1d_u64() as usize;
    if i < ids.len() {
        keys.store(i, tag_key(0, ranks.load(Axes { axes, dims }.of(0) * ids.len() + i)));
        ids.store(i, i as u32);
    }
}

/// Sends each point of the sorted order to the left or right child of its tag, and gives it its rank on that node's axis.
/// The pivot of a run keeps its tag: it is that node.
#[kernel(family = "kdtree-tags", block = PER_ITEM_THREADS)]
pub unsafe fn kdtree_update_tags(
    keys: SliceMut<u64>,
    ids: Slice<u32>,
    ranks: Slice<u32>,
    axes: Slice<u8>,
    dims: u32,
    level: u32,
) {
    let i = thread::index_1d_u64() as usize;
    if i < ids.len() {
        let tag = send_down(tag_of(keys.load(i)), i, level, ids.len() as u32);
        let axis = Axes { axes, dims }.of(tag);
        keys.store(i, tag_key(tag, ranks.load(axis * ids.len() + ids.load(i) as usize)));
    }
}

/// Puts each point where a walk in order meets the node of its tag.
#[kernel(family = "kdtree-tags", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64])]
pub unsafe fn kdtree_place<C: Coord>(
    keys: Slice<u64>,
    ids: Slice<u32>,
    coords: Slice<C>,
    node_ids: SliceMut<u32>,
    node_coords: SliceMut<C>,
    dims: u32,
) {
    let i = thread::index_1d_u64() as usize;
    if i < ids.len() {
        let (node, id) = (tag_of(keys.load(i)), ids.load(i));
        let place = in_order_rank(node, ids.len() as u32) as usize;
        node_ids.store(place, id);
        let mut axis = 0;
        while axis < dims as usize {
            node_coords.store(place * dims as usize + axis, coords.load(id as usize * dims as usize + axis));
            axis += 1;
        }
    }
}
