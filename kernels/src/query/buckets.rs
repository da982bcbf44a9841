//! The tree as buckets for queries.
//!
//! Points are stored in the order of a walk in order, so that every subtree is a run of them. A bucket is a subtree of up to
//! [`BUCKET_LEVELS`] levels with the node that follows it in that order. The nodes above, which are on [`levels`] levels, hold
//! the boxes of their two children: all corners of one node lie together, the least and the greatest of the left child, then
//! those of the right.
//!
//! Of a left-balanced tree it is known where runs begin. Subtrees of a level of a balanced tree differ by one point, here and there; so
//! their buckets have a place for each point of the longest, and where there is none it says so.

use super::axes::Axes;
use super::left_balanced::{full_tree, level, num_levels};
use super::walk::GROUP;
use crate::block::tile::load_16;
use crate::policy::{BUCKET_LEVELS, PER_ITEM_THREADS};
use crate::thread::coord::Coord;
use crate::thread::measure::MAX_DIMS;
use crate::thread::point::load_point;
use cuda_std::prelude::*;

/// Levels of nodes with boxes, above the buckets.
#[inline(always)]
pub const fn levels(num_points: u32) -> u32 {
    num_levels(num_points).saturating_sub(BUCKET_LEVELS)
}

/// How the points of a tree are cut into the runs of its subtrees, each with the node that follows it. There are full subtrees on all
/// levels that are asked for.
#[derive(Clone, Copy)]
pub struct Cut {
    /// Levels above the buckets.
    pub levels: u32,
    /// The level whose subtrees have `stride` points, and the first ones, `more` of them, one more.
    pub base: u32,
    /// Points of each of these subtrees.
    pub stride: u32,
    /// How many of them have one more.
    pub more: u32,
    /// Number of points.
    pub end: u32,
}

impl Cut {
    /// That of a left-balanced tree.
    #[inline(always)]
    pub const fn left_balanced(num_points: u32) -> Self {
        // A subtree of the last level but one has its root, or the node that follows it, and as far as there are some a node on the last.
        let base = num_levels(num_points).saturating_sub(1);
        let more = num_points - full_tree(base);
        Self { levels: levels(num_points), base, stride: 1, more, end: num_points }
    }

    /// That of buckets with so many places each.
    #[inline(always)]
    pub const fn equal(num_places: u32, bucket_len: u32) -> Self {
        let levels = num_levels(num_places / bucket_len) - 1;
        Self { levels, base: levels, stride: bucket_len, more: 0, end: num_places }
    }

    /// That of buckets with so many places, or of a left-balanced tree if it is 0.
    #[inline(always)]
    pub const fn of(num_places: u32, bucket_len: u32) -> Self {
        if bucket_len == 0 { Self::left_balanced(num_places) } else { Self::equal(num_places, bucket_len) }
    }

    /// Where the run of subtree number `i` of a level begins; behind the last one the number of points.
    #[inline(always)]
    pub const fn begin(&self, i: u32, level: u32) -> u32 {
        let above = i << (self.base - level);
        let begin = above * self.stride + if above < self.more { above } else { self.more };
        if begin < self.end { begin } else { self.end }
    }

    /// Number of the bucket that has point `i` of a left-balanced tree.
    #[inline(always)]
    pub const fn bucket_of(&self, i: u32) -> u32 {
        // Up to the end of the lowest level every second point is of it.
        let above = if i / 2 < self.more { i / 2 } else { i - self.more };
        above >> (self.base - self.levels)
    }
}

/// Coordinates of all boxes of a tree with so many levels above the buckets.
pub const fn boxes_len(levels: u32, dims: usize) -> usize {
    4 * dims * full_tree(levels) as usize
}

/// Nodes of a tree with so many levels above the buckets whose least ids are known: all down to the buckets.
pub const fn least_ids_len(levels: u32) -> usize {
    if levels == 0 { 0 } else { full_tree(levels + 1) as usize }
}

/// The id of a slot without a point.
pub const NO_POINT: u32 = u32::MAX;

/// A bucket index as kernels take it: points in buckets, and what the nodes above the buckets hold.
#[derive(Clone, Copy, KernelArgs)]
pub struct Index<'a, C> {
    /// The coordinates of point after point, in the order of the tree, padded to a whole group.
    pub coords: Slice<'a, C>,
    /// The ids of the points, or [`NO_POINT`].
    pub ids: Slice<'a, u32>,
    /// The bounding boxes of both children of each node above the buckets.
    pub boxes: Slice<'a, C>,
    /// The least id in each subtree down to the buckets; kernels that do not compare ids may be given none.
    pub least_ids: Slice<'a, u32>,
    /// Number of dimensions.
    pub dims: u32,
    /// Slots of a bucket; 0 if the tree is left-balanced.
    pub bucket_len: u32,
}

impl<'a, C: Coord> Index<'a, C> {
    /// The points of the index.
    #[inline(always)]
    pub fn buckets(&self) -> Buckets<'a, C> {
        Buckets::new(self.coords, self.ids, self.dims, self.bucket_len)
    }
}

/// The points of a tree, and its boxes.
#[derive(Clone, Copy)]
pub struct Buckets<'a, C> {
    /// The coordinates of point after point, in order, and of as many as a whole group takes.
    pub coords: Slice<'a, C>,
    /// Their ids, or [`NO_POINT`]; the coordinates there are not numbers.
    pub ids: Slice<'a, u32>,
    /// Coordinates of a point.
    pub dims: usize,
    /// Levels above the buckets that are walked through.
    pub levels: u32,
    cut: Cut,
}

impl<'a, C: Coord> Buckets<'a, C> {
    /// Of points in order, in buckets of so many places, or of a left-balanced tree if that is 0.
    #[inline(always)]
    pub fn new(coords: Slice<'a, C>, ids: Slice<'a, u32>, dims: u32, bucket_len: u32) -> Self {
        let cut = Cut::of(ids.len() as u32, bucket_len);
        Self { coords, ids, dims: dims as usize, levels: cut.levels, cut }
    }

    /// The first point of subtree number `i` of a level, with the node that follows it, and how many there are.
    #[inline(always)]
    pub fn run(&self, i: u32, level: u32) -> (usize, u32) {
        let begin = self.cut.begin(i, level);
        (begin as usize, self.cut.begin(i + 1, level) - begin)
    }

    /// The lowest level, above `end`, whose subtrees have at least so many places, each with the node that follows it; the root's
    /// where there are fewer.
    #[inline(always)]
    pub fn level_of(&self, num_points: u32, end: u32) -> u32 {
        let height = u32::BITS - (num_points - 1).leading_zeros();
        let level = (self.cut.base + num_levels(self.cut.stride) - 1).saturating_sub(height);
        if level < end { level } else { end }
    }

    /// Number of the bucket that has point `i` of a left-balanced tree.
    #[inline(always)]
    pub fn bucket_of(&self, i: u32) -> u32 {
        self.cut.bucket_of(i)
    }

    /// The points from `first` on, a multiple of [`GROUP`]; the last group ends in room that there is behind the points.
    #[inline(always)]
    pub unsafe fn group<const D: usize>(&self, first: usize) -> [[C; D]; GROUP] {
        let mut points = [[C::ZERO; D]; GROUP];
        let mut i = 0;
        if D == MAX_DIMS {
            while i < GROUP {
                points[i] = self.point(first + i);
                i += 1;
            }
            return points;
        }
        while i < GROUP * D {
            let coords = load_16(self.coords, first * D + i);
            let mut e = 0;
            while e < C::PER_16 {
                points[(i + e) / D][(i + e) % D] = coords[e];
                e += 1;
            }
            i += C::PER_16;
        }
        points
    }

    /// Point `i`; coordinates beyond the dimensions are 0.
    #[inline(always)]
    pub unsafe fn point<const D: usize>(&self, i: usize) -> [C; D] {
        load_point(self.coords, i, self.dims)
    }
}

/// Writes the box of each bucket to its parent's boxes, and its least id; a thread a bucket.
#[kernel(family = "query", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64])]
pub unsafe fn query_bucket_boxes<C: Coord>(
    coords: Slice<C>,
    ids: Slice<u32>,
    dims: u32,
    bucket_len: u32,
    boxes: SliceMut<C>,
    least_ids: SliceMut<u32>,
) {
    let buckets = Buckets::new(coords, ids, dims, bucket_len);
    let bucket = thread::index_1d_u64() as u32;
    if bucket < 1 << buckets.levels {
        let (begin, len) = buckets.run(bucket, buckets.levels);
        let node = full_tree(buckets.levels) + bucket;
        let to = child_box(boxes, node, buckets.dims);
        let (mut least_id, mut i) = (NO_POINT, 0);
        while i < len as usize {
            let id = ids.load(begin + i);
            least_id = if id < least_id { id } else { least_id };
            i += 1;
        }
        least_ids.store(node as usize, least_id);
        let mut axis = 0;
        while axis < buckets.dims {
            let first = coords.load(begin * buckets.dims + axis);
            let (mut low, mut high) = (first, first);
            let mut i = 1;
            while i < len as usize {
                let coord = coords.load((begin + i) * buckets.dims + axis);
                (low, high) = (low.min(coord), high.max(coord));
                i += 1;
            }
            to.store(axis, low);
            to.store(buckets.dims + axis, high);
            axis += 1;
        }
    }
}

/// Writes the boxes of the nodes of levels `root_level..end_level` to their parents, and their least ids; a block a node of the first of
/// them. The boxes and ids of the next level are there.
#[kernel(family = "query", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64])]
pub unsafe fn query_inner_boxes<C: Coord>(
    boxes: SliceMut<C>,
    least_ids: SliceMut<u32>,
    dims: u32,
    root_level: u32,
    end_level: u32,
) {
    let dims = dims as usize;
    let mut level = end_level;
    while level > root_level {
        level -= 1;
        let depth = level - root_level;
        let first = full_tree(level) + (thread::block_idx_x() << depth);
        let mut i = thread::thread_idx_x() as usize;
        while i < dims << depth {
            let (node, axis) = (first + (i / dims) as u32, i % dims);
            let from = boxes.part(4 * dims * node as usize, 4 * dims);
            let low = from.load(axis).min(from.load(2 * dims + axis));
            let high = from.load(dims + axis).max(from.load(3 * dims + axis));
            let to = child_box(boxes, node, dims);
            to.store(axis, low);
            to.store(dims + axis, high);
            if axis == 0 {
                let [left, right] = [1, 2].map(|child| least_ids.load(2 * node as usize + child));
                least_ids.store(node as usize, if left < right { left } else { right });
            }
            i += PER_ITEM_THREADS;
        }
        thread::sync_threads();
    }
}

/// Where the parent of a node, which is not the root, has its box.
#[inline(always)]
unsafe fn child_box<C>(boxes: SliceMut<'_, C>, node: u32, dims: usize) -> SliceMut<'_, C> {
    let (parent, is_right) = ((node - 1) / 2, node.is_multiple_of(2));
    boxes.part(4 * dims * parent as usize + if is_right { 2 * dims } else { 0 }, 2 * dims)
}

/// Writes where each node above the buckets splits, in level order; a thread a node.
#[kernel(family = "query", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64])]
pub unsafe fn query_splits<C: Coord>(
    coords: Slice<C>,
    ids: Slice<u32>,
    axes: Slice<u8>,
    dims: u32,
    bucket_len: u32,
    splits: SliceMut<C>,
) {
    let node = thread::index_1d_u64() as usize;
    if node < splits.len() {
        let axis = Axes { axes, dims }.of(node as u32);
        let (buckets, level) = (Buckets::new(coords, ids, dims, bucket_len), level(node as u32));
        // It follows its left subtree.
        let right = 2 * (node as u32 - full_tree(level)) + 1;
        let place = buckets.run(right, level + 1).0 - 1;
        splits.store(node, coords.load(place * dims as usize + axis));
    }
}

/// Writes the bucket that each query is in, or would be, and its number; a thread a query.
#[kernel(family = "query", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64])]
pub unsafe fn query_buckets<C: Coord>(
    splits: Slice<C>,
    axes: Slice<u8>,
    queries: Slice<C>,
    dims: u32,
    levels: u32,
    buckets: SliceMut<u32>,
    numbers: SliceMut<u32>,
) {
    let (i, dims) = (thread::index_1d_u64() as usize, dims as usize);
    if i < numbers.len() {
        let (mut node, mut axis, mut depth) = (0_usize, 0, 0);
        while depth < levels {
            if !axes.is_empty() {
                axis = axes.load(node) as usize;
            }
            let is_right = queries.load(i * dims + axis) > splits.load(node);
            node = 2 * node + 1 + usize::from(is_right);
            axis = if axis + 1 == dims { 0 } else { axis + 1 };
            depth += 1;
        }
        buckets.store(i, node as u32 - full_tree(levels));
        numbers.store(i, i as u32);
    }
}
