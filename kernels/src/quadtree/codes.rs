//! Sort keys of points.
//!
//! A tree is built in rounds of several levels. The roots of a round are nodes with too many points; the first round has one, the root of
//! the tree. The key of a point consists of the index of its root and its [code](Frame::code) below that root.

pub mod children;
pub mod order;
pub mod splits;

use super::frame::Frame;
use crate::policy::PER_ITEM_THREADS;
use crate::thread::coord::Coord;
use crate::thread::items::own_item;
use crate::thread::point::load_point;
use crate::thread::search::partition_point;
use cuda_std::prelude::*;

/// Writes the keys and ids of the points in the first round, whose only root has index 0. One thread per point.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS, hot)]
#[instances(C = [f32, f64, i32], D = [2, 3])]
pub unsafe fn quadtree_codes<C: Coord, const D: usize>(
    coords: Slice<C>,
    frame: Slice<u64>,
    num_levels: u32,
    keys: SliceMut<u32>,
    ids: SliceMut<u32>,
) {
    let Some(i) = own_item(keys.len()) else { return };
    let frame = Frame::<D>::load(frame);
    keys.store(i, frame.code(frame.unit(load_point(coords, i, D)), 0, num_levels));
    ids.store(i, i as u32);
}

/// The roots of a round.
#[derive(Clone, Copy, KernelArgs)]
pub struct Roots<'a> {
    /// Their node numbers.
    pub nodes: Slice<'a, u32>,
    /// The first point of each root in tree order.
    pub starts: Slice<'a, u32>,
    /// The offset of each root's points among the points of the round.
    pub offsets: Slice<'a, u64>,
}

impl Roots<'_> {
    /// Returns the index of the root of point `i` of the round.
    #[inline(always)]
    unsafe fn root(&self, i: usize) -> usize {
        // The search for the warp's first point loads the same offsets in all lanes. At most 16 roots begin among the warp's other
        // points, since each root has at least two points.
        let begins_by = |i: usize| move |root| self.offsets.load(root) as usize <= i;
        let first = partition_point(1, self.starts.len(), begins_by(i & !31));
        let end = if first + 16 < self.starts.len() { first + 16 } else { self.starts.len() };
        partition_point(first, end, begins_by(i)) - 1
    }

    /// Returns the index in tree order of point `i` of the round, which belongs to this root.
    #[inline(always)]
    pub(super) unsafe fn tree_index(&self, root: usize, i: usize) -> u32 {
        (i as u32).wrapping_sub(self.offsets.load(root) as u32).wrapping_add(self.starts.load(root))
    }
}

/// Writes the keys and ids of the points of a later round, from level `level` on. One thread per point of the round.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS, hot)]
#[instances(C = [f32, f64, i32], D = [2, 3])]
pub unsafe fn quadtree_deep_codes<C: Coord, const D: usize>(
    coords: Slice<C>,
    frame: Slice<u64>,
    level: u32,
    num_levels: u32,
    roots: Roots<'_>,
    ids: Slice<u32>,
    keys: SliceMut<u64>,
    round_ids: SliceMut<u32>,
) {
    let Some(i) = own_item(keys.len()) else { return };
    let (frame, root) = (Frame::<D>::load(frame), roots.root(i));
    let id = ids.load(roots.tree_index(root, i) as usize);
    let unit = frame.unit(load_point::<C, D>(coords, id as usize, D));
    let code = frame.long_code(unit, level, num_levels);
    keys.store(i, (root as u64) << (num_levels * D as u32) | code);
    round_ids.store(i, id);
}

/// Writes the sorted ids of a later round to their root's range in tree order. One thread per id. The low `code_bits` bits of a key are its
/// code.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS)]
pub unsafe fn quadtree_place(
    keys: Slice<u64>,
    round_ids: Slice<u32>,
    code_bits: u32,
    roots: Roots<'_>,
    ids: SliceMut<u32>,
) {
    let Some(i) = own_item(keys.len()) else { return };
    let root = (keys.load(i) >> code_bits) as usize;
    ids.store(roots.tree_index(root, i) as usize, round_ids.load(i));
}
