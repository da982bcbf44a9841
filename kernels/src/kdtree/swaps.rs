//! In-place sort of points by tag, coordinate and id: a bitonic sort by swaps (Batcher 1968). In each comparison the lower position
//! receives the item that comes first. Any number of items can be sorted: imaginary items after the end are the last ones already.

use super::tags::next_tag;
use crate::policy::{PER_ITEM_THREADS, SWAPS_THREADS};
use crate::query::left_balanced::in_order_rank;
use crate::thread::coord::Coord;
use crate::thread::items::{own_item, strided};
use crate::thread::ranked::Ranked;
use cuda_std::prelude::*;

/// Number of points of a tile, which a block sorts in shared memory.
pub const TILE: usize = 2 * SWAPS_THREADS;

/// Updates the tag of each point of the sorted order: left child, right child, or unchanged for the pivot (as `kdtree_update_tags`).
#[kernel(family = "research-kdtree", block = PER_ITEM_THREADS)]
pub unsafe fn kdtree_send_down(tags: SliceMut<u32>, level: u32) {
    let Some(i) = own_item(tags.len()) else { return };
    tags.store(i, next_tag(tags.load(i), i, level, tags.len() as u32));
}

/// Replaces each tag, a node, by its in-order rank.
#[kernel(family = "research-kdtree", block = PER_ITEM_THREADS)]
pub unsafe fn kdtree_tags_to_places(tags: SliceMut<u32>) {
    let Some(i) = own_item(tags.len()) else { return };
    tags.store(i, in_order_rank(tags.load(i), tags.len() as u32));
}

/// Compares and swaps pairs of points. The points of a pair are `stride` apart, or mirror each other in a range of `2 * stride` positions
/// if `mirrors` is not 0. One thread per pair.
#[kernel(family = "research-kdtree", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64, i32])]
pub unsafe fn kdtree_swap<C: Coord>(points: Tagged<'_, C>, stride: u64, mirrors: u32) {
    let (a, b) = pair(thread::index_1d_u64(), stride, mirrors != 0);
    if b < points.ids.len() as u64 {
        points.compare_and_swap(a as usize, b as usize);
    }
}

/// Sorts each tile if `first` is not 0. Otherwise performs the steps of a merge whose strides are within a tile. One block per tile.
#[kernel(family = "research-kdtree", block = SWAPS_THREADS, shared = SwapsSmem<<C as Coord>::Ranked>)]
#[instances(C = [f32, f64, i32])]
pub unsafe fn kdtree_swap_in_tiles<C: Coord>(points: Tagged<'_, C>, first: u32) {
    let begin = thread::block_idx_x() as usize * TILE;
    let rest = points.ids.len() - begin;
    let len = if rest < TILE { rest } else { TILE };
    Tile { points, begin, len, smem: shared_mem::<SwapsSmem<C::Ranked>>() }.run(first != 0)
}

/// Returns the positions of pair `i`.
#[inline(always)]
fn pair(i: u64, stride: u64, mirrors: bool) -> (u64, u64) {
    let (begin, offset) = ((i & !(stride - 1)) * 2, i & (stride - 1));
    (begin + offset, begin + if mirrors { 2 * stride - 1 - offset } else { stride + offset })
}

/// Points with tags.
#[derive(Clone, Copy, KernelArgs)]
pub struct Tagged<'a, C> {
    /// The coordinates, point after point.
    pub coords: SliceMut<'a, C>,
    /// The ids of the points.
    pub ids: SliceMut<'a, u32>,
    /// The tags of the points.
    pub tags: SliceMut<'a, u32>,
    /// The split axes of the nodes.
    pub axes: crate::query::axes::Axes<'a>,
}

impl<C: Coord> Tagged<'_, C> {
    /// Returns the sort key (coordinate, id) of point `i` on the axis of its tag.
    #[inline(always)]
    unsafe fn ranked(&self, i: usize, tag: u32) -> C::Ranked {
        let axis = self.axes.of(tag, self.axes.cycle());
        Ranked::new(self.coords.load(i * self.axes.dims as usize + axis).key(), self.ids.load(i))
    }

    /// Swaps two points unless they are in order.
    #[inline(always)]
    unsafe fn compare_and_swap(&self, a: usize, b: usize) {
        let (tag_a, tag_b) = (self.tags.load(a), self.tags.load(b));
        let swaps =
            tag_b < tag_a || (tag_a == tag_b && self.ranked(b, tag_b).is_before(self.ranked(a, tag_a)));
        if swaps {
            self.tags.store(a, tag_b);
            self.tags.store(b, tag_a);
            let (id_a, id_b) = (self.ids.load(a), self.ids.load(b));
            self.ids.store(a, id_b);
            self.ids.store(b, id_a);
            let dims = self.axes.dims as usize;
            for axis in 0..dims {
                let (at_a, at_b) = (self.coords.load(a * dims + axis), self.coords.load(b * dims + axis));
                self.coords.store(a * dims + axis, at_b);
                self.coords.store(b * dims + axis, at_a);
            }
        }
    }
}

/// Shared memory of a tile: the sort keys of its points, and the point at each position.
#[repr(C, align(16))]
pub struct SwapsSmem<R> {
    ranked: [R; TILE],
    tags: [u32; TILE],
    order: [u16; TILE],
}

/// The tile of a block.
struct Tile<'a, C: Coord> {
    points: Tagged<'a, C>,
    begin: usize,
    len: usize,
    smem: *mut SwapsSmem<C::Ranked>,
}

impl<C: Coord> Tile<'_, C> {
    #[inline(always)]
    unsafe fn run(self, first: bool) {
        let (ranked, tags) = (shared_field!(self.smem, ranked), shared_field!(self.smem, tags));
        let order = shared_field!(self.smem, order);
        for i in strided(thread::thread_idx_x() as usize, self.len, SWAPS_THREADS) {
            let tag = self.points.tags.load(self.begin + i);
            tags.store(i, tag);
            ranked.store(i, self.points.ranked(self.begin + i, tag));
            order.store(i, i as u16);
        }
        thread::sync_threads();
        let mut size = if first { 2 } else { 2 * TILE as u64 };
        while size <= TILE as u64 {
            self.compare_and_swap(size / 2, true);
            self.merge(size / 4);
            size *= 2;
        }
        if !first {
            self.merge(TILE as u64 / 2);
        }
        self.write();
    }

    /// Merges by strides from `stride` down.
    #[inline(always)]
    unsafe fn merge(&self, mut stride: u64) {
        while stride > 0 {
            self.compare_and_swap(stride, false);
            stride /= 2;
        }
    }

    /// Swaps each pair of points that is not in order.
    #[inline(always)]
    unsafe fn compare_and_swap(&self, stride: u64, mirrors: bool) {
        let (ranked, tags) = (shared_field!(self.smem, ranked), shared_field!(self.smem, tags));
        let order = shared_field!(self.smem, order);
        let (a, b) = pair(u64::from(thread::thread_idx_x()), stride, mirrors);
        if (b as usize) < self.len {
            let (at_a, at_b) = (order.load(a as usize), order.load(b as usize));
            let (tag_a, tag_b) = (tags.load(at_a as usize), tags.load(at_b as usize));
            let (item_a, item_b) = (ranked.load(at_a as usize), ranked.load(at_b as usize));
            if tag_b < tag_a || (tag_a == tag_b && item_b.is_before(item_a)) {
                order.store(a as usize, at_b);
                order.store(b as usize, at_a);
            }
        }
        thread::sync_threads();
    }

    /// Moves the points to their sorted positions.
    #[inline(always)]
    unsafe fn write(&self) {
        let (ranked, tags) = (shared_field!(self.smem, ranked), shared_field!(self.smem, tags));
        let order = shared_field!(self.smem, order);
        let thread = thread::thread_idx_x() as usize;
        let (points, dims) = (self.points, self.points.axes.dims as usize);
        for axis in 0..dims {
            // All coordinates are read before any is written.
            let mut coords = [C::ZERO; TILE / SWAPS_THREADS];
            for row in 0..TILE / SWAPS_THREADS {
                let i = thread + row * SWAPS_THREADS;
                if i < self.len {
                    coords[row] = points.coords.load((self.begin + order.load(i) as usize) * dims + axis);
                }
            }
            thread::sync_threads();
            for row in 0..TILE / SWAPS_THREADS {
                let i = thread + row * SWAPS_THREADS;
                if i < self.len {
                    points.coords.store((self.begin + i) * dims + axis, coords[row]);
                }
            }
        }
        for i in strided(thread, self.len, SWAPS_THREADS) {
            let from = order.load(i) as usize;
            points.ids.store(self.begin + i, ranked.load(from).id());
            points.tags.store(self.begin + i, tags.load(from));
        }
    }
}
