//! Keys of points: the ways to their units.
//!
//! Trees are built in rounds of some levels each. A round has roots, which are nodes with too many points (in the first round the root of
//! the tree), and the points of these. A key is the number of the root that a point is in, then its [code](Frame::code) from there.

use super::frame::Frame;
use crate::policy::PER_ITEM_THREADS;
use crate::thread::coord::Coord;
use crate::thread::point::load_point;
use crate::thread::search::partition_point;
use cuda_std::prelude::*;

/// Writes the keys of the first round, where there is one root, and ids; a thread a point.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS, hot)]
#[instances(C = [f32, f64], D = [2, 3])]
pub unsafe fn quadtree_codes<C: Coord, const D: usize>(
    coords: Slice<C>,
    frame: Slice<u64>,
    num_levels: u32,
    keys: SliceMut<u32>,
    ids: SliceMut<u32>,
) {
    let i = thread::index_1d_u64() as usize;
    if i < keys.len() {
        let frame = Frame::<D>::load(frame);
        keys.store(i, frame.code(frame.unit(load_point(coords, i, D)), 0, num_levels));
        ids.store(i, i as u32);
    }
}

/// The roots of a round.
#[derive(Clone, Copy)]
pub(super) struct Roots<'a> {
    /// Where the points of each begin among all points.
    pub(super) starts: Slice<'a, u32>,
    /// Where they begin among the points of the round, and the number of these.
    pub(super) offsets: Slice<'a, u64>,
}

impl Roots<'_> {
    /// The root of a place among the points of the round.
    #[inline(always)]
    unsafe fn root(&self, at: usize) -> usize {
        // Of the warp's first place all lanes look at the same offsets; and each root has two points or more.
        let begins = |place: usize| move |root| self.offsets.load(root) as usize <= place;
        let first = partition_point(1, self.starts.len(), begins(at & !31));
        let end = if first + 16 < self.starts.len() { first + 16 } else { self.starts.len() };
        partition_point(first, end, begins(at)) - 1
    }

    /// The place among all points of a place among those of the round, which are of this root.
    #[inline(always)]
    pub(super) unsafe fn place(&self, root: usize, at: usize) -> u32 {
        (at as u32).wrapping_sub(self.offsets.load(root) as u32).wrapping_add(self.starts.load(root))
    }
}

/// Writes the keys of a later round, from level `level` on, and ids; a thread a point of the round.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS, hot)]
#[instances(C = [f32, f64], D = [2, 3])]
pub unsafe fn quadtree_deep_codes<C: Coord, const D: usize>(
    coords: Slice<C>,
    frame: Slice<u64>,
    level: u32,
    num_levels: u32,
    starts: Slice<u32>,
    offsets: Slice<u64>,
    ids: Slice<u32>,
    keys: SliceMut<u64>,
    round_ids: SliceMut<u32>,
) {
    let at = thread::index_1d_u64() as usize;
    if at < keys.len() {
        let (frame, roots) = (Frame::<D>::load(frame), Roots { starts, offsets });
        let root = roots.root(at);
        let id = ids.load(roots.place(root, at) as usize);
        let unit = frame.unit(load_point::<C, D>(coords, id as usize, D));
        let code = frame.long_code(unit, level, num_levels);
        keys.store(at, (root as u64) << (num_levels * D as u32) | code);
        round_ids.store(at, id);
    }
}

/// Puts the ids of a later round, which have been sorted, where the points of their roots are; a thread an id. Keys have `code_bits`
/// bits of codes.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS)]
pub unsafe fn quadtree_place(
    keys: Slice<u64>,
    round_ids: Slice<u32>,
    code_bits: u32,
    starts: Slice<u32>,
    offsets: Slice<u64>,
    ids: SliceMut<u32>,
) {
    let at = thread::index_1d_u64() as usize;
    if at < keys.len() {
        let root = (keys.load(at) >> code_bits) as usize;
        ids.store(Roots { starts, offsets }.place(root, at) as usize, round_ids.load(at));
    }
}
