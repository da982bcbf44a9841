//! The bucket index as kernels see it.
//!
//! Points are stored in in-order sequence, so every subtree is a run of them. A bucket is a subtree of up to [`BUCKET_LEVELS`] levels and
//! the node that follows it in that order. The nodes above, on [`levels`] levels, hold the bounding boxes of their two children: the least
//! and the greatest corner of the left child, then those of the right child, contiguously.
//!
//! The runs of a left-balanced tree follow from the number of points. Subtrees of one level of a balanced tree differ by at most one
//! point, so their buckets have slots for the longest run, and slots without a point have the id [`NO_POINT`].

use super::axes::Axes;
use super::left_balanced::{full_tree, level, num_levels};
use super::traversal::GROUP;
use crate::block::tile::load_16;
use crate::policy::{BUCKET_LEVELS, PER_ITEM_THREADS};
use crate::thread::coord::Coord;
use crate::thread::items::{own_item, strided};
use crate::thread::measure::MAX_DIMS;
use crate::thread::point::load_point;
use cuda_std::prelude::*;

/// Returns the number of levels above the buckets in a left-balanced tree.
#[inline(always)]
pub const fn levels(num_points: u32) -> u32 {
    num_levels(num_points).saturating_sub(BUCKET_LEVELS)
}

/// Divides the slots of a tree into the runs of its subtrees; each run includes the node that follows the subtree.
#[derive(Clone, Copy)]
pub struct BucketLayout {
    /// Levels above the buckets.
    pub levels: u32,
    /// The level whose runs have `base_len` slots; the first `num_longer` of them have one more.
    pub base_level: u32,
    /// Slots of a run of the base level.
    pub base_len: u32,
    /// Number of runs of the base level with one slot more.
    pub num_longer: u32,
    /// Number of slots.
    pub num_slots: u32,
}

impl BucketLayout {
    /// The layout of a left-balanced tree.
    #[inline(always)]
    pub const fn left_balanced(num_points: u32) -> Self {
        // A run of the last level has a node of the levels above, and before it, while there are any, a node of the last level.
        let base_level = num_levels(num_points).saturating_sub(1);
        let num_longer = num_points - full_tree(base_level);
        Self { levels: levels(num_points), base_level, base_len: 1, num_longer, num_slots: num_points }
    }

    /// The layout of buckets with `bucket_len` slots each.
    #[inline(always)]
    pub const fn equal(num_slots: u32, bucket_len: u32) -> Self {
        let levels = num_levels(num_slots / bucket_len) - 1;
        Self { levels, base_level: levels, base_len: bucket_len, num_longer: 0, num_slots }
    }

    /// The layout of buckets with `bucket_len` slots each, or of a left-balanced tree if that is 0.
    #[inline(always)]
    pub const fn new(num_slots: u32, bucket_len: u32) -> Self {
        if bucket_len == 0 { Self::left_balanced(num_slots) } else { Self::equal(num_slots, bucket_len) }
    }

    /// Returns the first slot of run `i` of a level; the number of slots after the last run.
    #[inline(always)]
    pub const fn begin(&self, i: u32, level: u32) -> u32 {
        let first = i << (self.base_level - level);
        let begin = first * self.base_len + if first < self.num_longer { first } else { self.num_longer };
        if begin < self.num_slots { begin } else { self.num_slots }
    }

    /// Returns the bucket of slot `i` in a left-balanced tree.
    #[inline(always)]
    pub const fn bucket_of(&self, i: u32) -> u32 {
        // Runs of the base level with a node of the last level have two slots, the others one.
        let run = if i / 2 < self.num_longer { i / 2 } else { i - self.num_longer };
        run >> (self.base_level - self.levels)
    }
}

/// Returns the number of coordinates of all boxes in a tree with `levels` levels above the buckets.
pub const fn boxes_len(levels: u32, dims: usize) -> usize {
    4 * dims * full_tree(levels) as usize
}

/// Returns the number of nodes down to the buckets in a tree with `levels` levels above the buckets; each has a least id.
pub const fn least_ids_len(levels: u32) -> usize {
    if levels == 0 { 0 } else { full_tree(levels + 1) as usize }
}

/// The id of a slot without a point.
pub const NO_POINT: u32 = u32::MAX;

/// A bucket index in device memory: points in buckets, and the boxes and least ids of the nodes above.
#[derive(Clone, Copy, KernelArgs)]
pub struct Index<'a, C> {
    /// The coordinates, point after point in the order of the tree, padded to a whole [`GROUP`].
    pub coords: Slice<'a, C>,
    /// The id of each slot's point, or [`NO_POINT`].
    pub ids: Slice<'a, u32>,
    /// The bounding boxes of both children of each node above the buckets.
    pub boxes: Slice<'a, C>,
    /// The least id in each subtree down to the buckets; empty for kernels that do not compare ids.
    pub least_ids: Slice<'a, u32>,
    /// Number of dimensions.
    pub dims: u32,
    /// Slots of a bucket; 0 if the tree is left-balanced.
    pub bucket_len: u32,
}

impl<'a, C: Coord> Index<'a, C> {
    /// Returns the points of the index in their buckets.
    #[inline(always)]
    pub fn buckets(&self) -> BucketPoints<'a, C> {
        BucketPoints::new(self.coords, self.ids, self.dims, self.bucket_len)
    }
}

/// The points of a tree in their buckets.
#[derive(Clone, Copy)]
pub struct BucketPoints<'a, C> {
    /// The coordinates, point after point in the order of the tree, padded to a whole [`GROUP`]; NaN in slots without a point.
    pub coords: Slice<'a, C>,
    /// The id of each slot's point, or [`NO_POINT`].
    pub ids: Slice<'a, u32>,
    /// Coordinates of a point.
    pub dims: usize,
    /// Levels above the buckets; 0 to scan all points.
    pub levels: u32,
    layout: BucketLayout,
}

impl<'a, C: Coord> BucketPoints<'a, C> {
    /// The points of buckets with `bucket_len` slots, or of a left-balanced tree if that is 0.
    #[inline(always)]
    pub fn new(coords: Slice<'a, C>, ids: Slice<'a, u32>, dims: u32, bucket_len: u32) -> Self {
        let layout = BucketLayout::new(ids.len() as u32, bucket_len);
        Self { coords, ids, dims: dims as usize, levels: layout.levels, layout }
    }

    /// Returns the first slot of run `i` of a level, and its length.
    #[inline(always)]
    pub fn run(&self, i: u32, level: u32) -> (usize, u32) {
        let begin = self.layout.begin(i, level);
        (begin as usize, self.layout.begin(i + 1, level) - begin)
    }

    /// Returns the lowest level, at most `end`, whose runs have at least `num_points` slots; level 0 if there are fewer.
    #[inline(always)]
    pub fn lowest_level_with(&self, num_points: u32, end: u32) -> u32 {
        let height = u32::BITS - (num_points - 1).leading_zeros();
        let level = (self.layout.base_level + num_levels(self.layout.base_len) - 1).saturating_sub(height);
        if level < end { level } else { end }
    }

    /// Returns the bucket of slot `i` in a left-balanced tree.
    #[inline(always)]
    pub fn bucket_of(&self, i: u32) -> u32 {
        self.layout.bucket_of(i)
    }

    /// Loads the points from slot `first` on, a multiple of [`GROUP`]; the last group may end in padding.
    #[inline(always)]
    pub unsafe fn group<const D: usize>(&self, first: usize) -> [[C::Distance; D]; GROUP] {
        if D < MAX_DIMS {
            return load_group(self.coords, first);
        }
        let mut points = [[C::Distance::ZERO; D]; GROUP];
        for i in 0..GROUP {
            points[i] = self.point(first + i);
        }
        points
    }

    /// Loads the point of slot `i`; coordinates beyond the dimensions are 0.
    #[inline(always)]
    pub unsafe fn point<const D: usize>(&self, i: usize) -> [C::Distance; D] {
        load_point(self.coords, i, self.dims)
    }
}

/// Loads a [`GROUP`] of points from point `first` on, a multiple of [`GROUP`], as vectors of 16 bytes. The points have `D` coordinates.
#[inline(always)]
pub(super) unsafe fn load_group<C: Coord, const D: usize>(
    coords: Slice<'_, C>,
    first: usize,
) -> [[C::Distance; D]; GROUP] {
    let mut points = [[C::Distance::ZERO; D]; GROUP];
    let mut i = 0;
    while i < GROUP * D {
        let loaded = load_16(coords, first * D + i);
        for e in 0..C::PER_16 {
            points[(i + e) / D][(i + e) % D] = loaded[e].widen();
        }
        i += C::PER_16;
    }
    points
}

/// Writes the box of each bucket to its parent's boxes, and the bucket's least id; one thread per bucket.
#[kernel(family = "query", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64, i32])]
pub unsafe fn query_bucket_boxes<C: Coord>(
    coords: Slice<C>,
    ids: Slice<u32>,
    dims: u32,
    bucket_len: u32,
    boxes: SliceMut<C>,
    least_ids: SliceMut<u32>,
) {
    let buckets = BucketPoints::new(coords, ids, dims, bucket_len);
    let bucket = thread::index_1d_u64() as u32;
    if bucket < 1 << buckets.levels {
        let (begin, len) = buckets.run(bucket, buckets.levels);
        let node = full_tree(buckets.levels) + bucket;
        let to = child_box(boxes, node, buckets.dims);
        let mut least_id = NO_POINT;
        for i in 0..len as usize {
            let id = ids.load(begin + i);
            least_id = if id < least_id { id } else { least_id };
        }
        least_ids.store(node as usize, least_id);
        for axis in 0..buckets.dims {
            let first = coords.load(begin * buckets.dims + axis);
            let (mut low, mut high) = (first, first);
            for i in 1..len as usize {
                let coord = coords.load((begin + i) * buckets.dims + axis);
                (low, high) = (low.min(coord), high.max(coord));
            }
            to.store(axis, low);
            to.store(buckets.dims + axis, high);
        }
    }
}

/// Writes the boxes of the nodes on levels `root_level..end_level` to their parents, and their least ids; one block per node of level
/// `root_level`. The boxes and least ids of level `end_level` are already written.
#[kernel(family = "query", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64, i32])]
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
        for i in strided(thread::thread_idx_x() as usize, dims << depth, PER_ITEM_THREADS) {
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
        }
        thread::sync_threads();
    }
}

/// Returns the box of a node in its parent's boxes. The node is not the root.
#[inline(always)]
unsafe fn child_box<C>(boxes: SliceMut<'_, C>, node: u32, dims: usize) -> SliceMut<'_, C> {
    let (parent, is_right) = ((node - 1) / 2, node.is_multiple_of(2));
    boxes.part(4 * dims * parent as usize + if is_right { 2 * dims } else { 0 }, 2 * dims)
}

/// Writes the split plane of each node above the buckets, in level order; one thread per node.
#[kernel(family = "query", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64, i32])]
pub unsafe fn query_splits<C: Coord>(
    coords: Slice<C>,
    ids: Slice<u32>,
    axes: Axes<'_>,
    bucket_len: u32,
    splits: SliceMut<C>,
) {
    let dims = axes.dims;
    let Some(node) = own_item(splits.len()) else { return };
    let axis = axes.of(node as u32, axes.cycle());
    let (buckets, level) = (BucketPoints::new(coords, ids, dims, bucket_len), level(node as u32));
    // A node's point follows the points of its left subtree.
    let right = 2 * (node as u32 - full_tree(level)) + 1;
    let slot = buckets.run(right, level + 1).0 - 1;
    splits.store(node, coords.load(slot * dims as usize + axis));
}

/// Writes the start bucket of each query, and the number of the query; one thread per query.
#[kernel(family = "query", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64, i32])]
pub unsafe fn query_buckets<C: Coord>(
    splits: Slice<C>,
    axes: Axes<'_>,
    queries: Slice<C>,
    levels: u32,
    buckets: SliceMut<u32>,
    numbers: SliceMut<u32>,
) {
    let dims = axes.dims as usize;
    let Some(i) = own_item(numbers.len()) else { return };
    let cycle = axes.cycle();
    let (mut node, mut axis) = (0_usize, cycle.first());
    for _ in 0..levels {
        if !axes.axes.is_empty() {
            axis = axes.axes.load(node) as usize;
        }
        let is_right = queries.load(i * dims + axis) > splits.load(node);
        node = 2 * node + 1 + usize::from(is_right);
        axis = cycle.next(axis);
    }
    buckets.store(i, node as u32 - full_tree(levels));
    numbers.store(i, i as u32);
}
