//! The binary tree, by merges of nearest clusters (Benthin, Drabinski, Tessari, Dittebrandt 2024: H-PLOC, Hierarchical Parallel
//! Locally-Ordered Clustering for Bounding Volume Hierarchy Construction).
//!
//! The triangles are sorted by their codes, whose common prefixes are a binary radix tree. A thread starts at each triangle and ascends:
//! of the two threads that reach a node, the second goes on (Apetrei 2014: Fast and Simple Agglomerative LBVH Construction). The subtrees
//! of a node are at most [`MAX_CLUSTERS`] clusters each. Where a node has more triangles than that, its warp merges the clusters of both,
//! pair after pair of nearest neighbors, until as many are left. The tree does not depend on the schedule.

use super::node::WIDTH;
use super::subtree::Subtree;
use crate::plain::plain;
use crate::policy::{BVH_CLUSTER_THREADS as THREADS, BVH_RADIUS};
use crate::rays::aabb::Aabb;
use crate::thread::words::{join, split};
use cuda_std::atomic::fence;
use cuda_std::prelude::*;

/// The most clusters of a subtree: half a warp, so that a warp holds those of both children.
pub const MAX_CLUSTERS: u32 = 16;

/// The clusters of a subtree end with this one if there are fewer than [`MAX_CLUSTERS`].
const NO_CLUSTER: u64 = u64::MAX;
/// The end of a subtree that no thread has reached yet: all bits are set.
const NO_END: u64 = u64::MAX;
/// The level above the root.
const TOP: u32 = u32::MAX;

/// A node of the binary tree.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BinaryNode {
    /// The bounding box of its triangles.
    pub bounds: Aabb,
    /// The children: a triangle is one of a few, and an index of a few more is that of their node.
    pub children: [Subtree; 2],
}

plain! { BinaryNode { Aabb, [Subtree; 2] } }

/// The nodes of a binary tree over triangles.
#[derive(Clone, Copy, KernelArgs)]
pub struct BinaryTree<'a> {
    /// The nodes. The root is the only cluster at the end.
    pub nodes: Slice<'a, crate::bvh::clusters::BinaryNode>,
    /// The bounding box of each triangle.
    pub boxes: Slice<'a, crate::rays::aabb::Aabb>,
}

impl BinaryTree<'_> {
    /// Returns the bounding box of a subtree.
    #[inline(always)]
    pub(super) unsafe fn bounds(&self, of: Subtree) -> Aabb {
        let i = of.index() as usize;
        if of.num_few() == Some(1) { self.boxes.load(i) } else { self.nodes.load(i).bounds }
    }

    /// Returns the children of a node.
    #[inline(always)]
    pub(super) unsafe fn children(&self, of: Subtree) -> [Subtree; 2] {
        self.nodes.load(of.index() as usize).children
    }
}

/// The result of a build for each node of the binary tree, by its number. The first number has no node.
#[derive(Clone, Copy, KernelArgs)]
pub struct BinaryTreeMut<'a> {
    /// The nodes.
    pub nodes: SliceMut<'a, crate::bvh::clusters::BinaryNode>,
    /// The [shapes](Shape) of nodes with more than a few triangles.
    pub shapes: SliceMut<'a, u32>,
    /// The [size](Shape::size) of each node that is one in the tree of rays, 0 for the others. One more element is 0.
    pub sizes: SliceMut<'a, u64>,
}

/// The place of a node of the binary tree in the tree of rays, whose nodes have up to [`WIDTH`] children: a node itself, or a part of the node
/// above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape(pub u32);

impl Shape {
    /// A few triangles.
    pub const FEW: Self = Self(0);

    #[inline(always)]
    const fn new(height: u32, num_children: u32, num_triangles: u32) -> Self {
        Self(height << 8 | num_children << 4 | num_triangles)
    }

    /// The number of levels of nodes below.
    #[inline(always)]
    pub const fn height(self) -> u32 {
        self.0 >> 8
    }

    /// The number of children: those of the node, and of its parts.
    #[inline(always)]
    const fn num_children(self) -> u32 {
        self.0 >> 4 & 15
    }

    /// The size of a node: in the upper half 1, and in the lower half the triangles of those of its children that have few.
    #[inline(always)]
    pub const fn size(self) -> u64 {
        1 << 32 | (self.0 & 15) as u64
    }
}

/// A child of a node that is made: its subtree, its shape, and how likely a ray reaches it.
#[derive(Clone, Copy)]
pub struct Part {
    /// The subtree.
    pub subtree: Subtree,
    /// Its shape.
    pub shape: Shape,
    /// Half the surface of its box.
    pub area: f32,
}

impl Part {
    /// The number of children that this one takes in its parent: its own ones if it is a part of it.
    #[inline(always)]
    const fn width(&self, is_part: bool) -> u32 {
        if is_part { self.shape.num_children() } else { 1 }
    }

    #[inline(always)]
    const fn num_triangles(&self, is_part: bool) -> u32 {
        match self.subtree.num_few() {
            Some(few) => few,
            None if is_part => self.shape.0 & 15,
            None => 0,
        }
    }

    #[inline(always)]
    const fn height(&self, is_part: bool) -> u32 {
        if is_part || !self.subtree.is_node() { self.shape.height() } else { self.shape.height() + 1 }
    }
}

/// Returns the shape of a node with more than a few triangles, and whether each child is a part of it: both if there is room for the children of
/// both, or one, the larger one if possible.
#[inline(always)]
pub fn shape(a: Part, b: Part) -> (Shape, [bool; 2]) {
    let (can_a, can_b) = (a.subtree.is_node(), b.subtree.is_node());
    let fits = |is_part: [bool; 2]| a.width(is_part[0]) + b.width(is_part[1]) <= WIDTH as u32;
    let (only_a, only_b) = ([can_a, false], [false, can_b]);
    let (larger, smaller) = if a.area >= b.area { (only_a, only_b) } else { (only_b, only_a) };
    let is_part = if fits([can_a, can_b]) {
        [can_a, can_b]
    } else if fits(larger) {
        larger
    } else if fits(smaller) {
        smaller
    } else {
        [false; 2]
    };
    let height = a.height(is_part[0]).max(b.height(is_part[1]));
    let num_triangles = a.num_triangles(is_part[0]) + b.num_triangles(is_part[1]);
    (Shape::new(height, a.width(is_part[0]) + b.width(is_part[1]), num_triangles), is_part)
}

const WARPS: usize = THREADS / 32;

/// Shared memory of a block.
#[repr(C)]
pub struct ClusterSmem {
    /// The lanes whose clusters stay.
    stays: [[u32; 32]; WARPS],
}

/// Merges all triangles, in the order of their codes, to a binary tree; one thread per triangle. The first of the `clusters` is the root at
/// the end. `ends` has all bits set at the start.
#[kernel(family = "bvh", block = THREADS, shared = ClusterSmem, hot)]
pub unsafe fn bvh_clusters(
    codes: Slice<u64>,
    triangles: Slice<u32>,
    boxes: Slice<Aabb>,
    clusters: SliceMut<u64>,
    ends: SliceMut<u64>,
    tree: BinaryTreeMut<'_>,
) {
    let stays = shared_field!(shared_mem::<ClusterSmem>(), stays);
    let stays = stays.part((thread::thread_idx_x() as usize / 32) * 32, 32);
    Builder { codes, triangles, boxes, clusters, ends, tree, stays }.ascend();
}

/// A cluster and its box. A cluster is a [`Subtree`] and, in the upper half, the number of the node that is made when it is merged into
/// a cluster before it: clusters start with different numbers, and a merge keeps the number of the first one.
#[derive(Clone, Copy)]
struct Cluster {
    id: u64,
    bounds: Aabb,
    shape: Shape,
}

/// A range of triangles: those of a node of the radix tree, the second of whose children begins at `middle`.
#[derive(Clone, Copy)]
struct Range {
    first: u32,
    last: u32,
    middle: u32,
    /// The levels of the nodes that separate the range from the triangles before and behind it. The lower one is its parent.
    before: u32,
    behind: u32,
}

impl Range {
    #[inline(always)]
    fn len(&self) -> u32 {
        self.last - self.first + 1
    }

    /// True if the clusters of the range are in memory. Those of a few triangles are the triangles.
    #[inline(always)]
    fn has_clusters(&self) -> bool {
        self.len() > MAX_CLUSTERS
    }
}

struct Builder<'a> {
    codes: Slice<'a, u64>,
    triangles: Slice<'a, u32>,
    boxes: Slice<'a, Aabb>,
    clusters: SliceMut<'a, u64>,
    ends: SliceMut<'a, u64>,
    tree: BinaryTreeMut<'a>,
    stays: SharedSlice<'a, u32>,
}

impl Builder<'_> {
    /// Ascends from the triangle of the thread to the root, as far as it is the second of two threads to reach a node.
    #[inline(always)]
    unsafe fn ascend(&self) {
        let n = self.triangles.len() as u32;
        let i = thread::index_1d_u64();
        let mut goes_on = i < u64::from(n);
        let i = i as u32;
        let mut range = Range { first: i, last: i, middle: i, before: TOP, behind: TOP };
        if goes_on {
            (range.before, range.behind) = (self.level_before(i), self.level_before(i + 1));
            if i == 0 {
                self.tree.sizes.store(0, 0);
                self.tree.sizes.store(n as usize, 0);
            }
        }
        while warp::warp_vote_any(warp::FULL_MASK, goes_on) {
            // One triangle is the root.
            if goes_on && range.len() < n {
                goes_on = self.ascend_once(&mut range);
            }
            let is_root = range.len() == n;
            let mut merging =
                warp::warp_vote_ballot(warp::FULL_MASK, goes_on && (range.has_clusters() || is_root));
            while merging != 0 {
                let lane = merging.trailing_zeros();
                let [first, last, middle] = [range.first, range.last, range.middle]
                    .map(|of| warp::shuffle_idx(warp::FULL_MASK, of, lane));
                let of_lane = Range { first, last, middle, ..range };
                self.merge(of_lane, if of_lane.len() == n { 1 } else { MAX_CLUSTERS });
                merging &= merging - 1;
            }
            goes_on = goes_on && !is_root;
        }
    }

    /// Extends a range to that of its parent, if the other child is complete.
    #[inline(always)]
    unsafe fn ascend_once(&self, range: &mut Range) -> bool {
        let Range { first, last, before, behind, .. } = *range;
        let is_first_child = behind < before;
        let (boundary, end, level) =
            if is_first_child { (last, first, before) } else { (first - 1, last, behind) };
        let end = join([end, level, 0, 0]);
        // The other child takes what this one has written, and the other way round.
        let other = if range.has_clusters() {
            self.ends.atomic_exchange(boundary as usize, end, Ordering::AcqRel, Scope::Device)
        } else {
            self.ends.atomic_exchange(boundary as usize, end, Ordering::Relaxed, Scope::Device)
        };
        if other == NO_END {
            return false;
        }
        let [end, level, ..] = split(other);
        if !range.has_clusters() {
            // Few ascents need it, and an exchange that acquires would drop the cache of all.
            let num_others = if is_first_child { end - last } else { first - end };
            if num_others > MAX_CLUSTERS {
                fence(Ordering::Acquire, Scope::Device);
            }
        }
        *range = if is_first_child {
            Range { last: end, middle: last + 1, behind: level, ..*range }
        } else {
            Range { first: end, middle: first, before: level, ..*range }
        };
        true
    }

    /// Returns the level of the node of the radix tree that separates a triangle from the one before it: how far up the bits are in which their
    /// codes differ. Equal codes are told apart by their positions.
    #[inline(always)]
    unsafe fn level_before(&self, i: u32) -> u32 {
        if i == 0 || i as usize == self.codes.len() {
            return TOP;
        }
        let code = self.codes.load(i as usize) ^ self.codes.load(i as usize - 1);
        if code == 0 {
            u32::BITS - (i ^ (i - 1)).leading_zeros()
        } else {
            u32::BITS + u64::BITS - code.leading_zeros()
        }
    }

    /// Returns the cluster at a place of a child that has a number of triangles.
    #[inline(always)]
    unsafe fn cluster(&self, len: u32, place: u32) -> u64 {
        if len > MAX_CLUSTERS {
            self.clusters.load(place as usize)
        } else {
            join([Subtree::few(self.triangles.load(place as usize), 1).0, place, 0, 0])
        }
    }

    /// Merges the clusters of both children of a range until at most `most` are left.
    #[inline(always)]
    unsafe fn merge(&self, range: Range, most: u32) {
        let lane = warp::lane_id();
        // The clusters were written by other lanes and warps; the lane that ascended has waited for them.
        warp::sync_warp(warp::FULL_MASK);
        let mut cluster = Cluster { id: NO_CLUSTER, bounds: Aabb::EMPTY, shape: Shape::FEW };
        let lens = [range.middle - range.first, range.last + 1 - range.middle];
        if lane < lens[0].min(MAX_CLUSTERS) {
            cluster.id = self.cluster(lens[0], range.first + lane);
        }
        let num_first = warp::warp_vote_ballot(warp::FULL_MASK, cluster.id != NO_CLUSTER).count_ones();
        if lane >= num_first && lane < num_first + lens[1].min(MAX_CLUSTERS) {
            cluster.id = self.cluster(lens[1], range.middle + lane - num_first);
        }
        let mut num = warp::warp_vote_ballot(warp::FULL_MASK, cluster.id != NO_CLUSTER).count_ones();
        if lane < num {
            let tree = BinaryTree { nodes: self.tree.nodes.read_only(), boxes: self.boxes };
            let subtree = subtree(cluster.id);
            cluster.bounds = tree.bounds(subtree);
            if subtree.is_node() {
                cluster.shape = Shape(self.tree.shapes.load(subtree.index() as usize));
            }
        }
        while num > most {
            (cluster, num) = self.merge_nearest(cluster, num);
        }
        if most == 1 && lane == 0 {
            self.settle(subtree(cluster.id), cluster.shape, false);
        }
        if lane < range.len().min(MAX_CLUSTERS) {
            let id = if lane < num { cluster.id } else { NO_CLUSTER };
            self.clusters.store((range.first + lane) as usize, id);
        }
        warp::sync_warp(warp::FULL_MASK);
    }

    /// Merges each two clusters that are nearest to one another: whose common box has the least surface. Returns the cluster of the lane,
    /// and the number of clusters.
    #[inline(always)]
    unsafe fn merge_nearest(&self, cluster: Cluster, num: u32) -> (Cluster, u32) {
        let lane = warp::lane_id();
        let partner = nearest(cluster.bounds, num);
        let is_mutual = warp::shuffle_idx(warp::FULL_MASK, partner, partner) == lane && lane < num;
        let other = of_lane(cluster, partner);
        let mut cluster = cluster;
        if is_mutual && lane < partner {
            cluster = self.merged(cluster, other);
        }
        let stays = lane < num && !(is_mutual && lane > partner);
        let lanes = warp::warp_vote_ballot(warp::FULL_MASK, stays);
        if stays {
            self.stays.store((lanes & warp::lane_mask_lt()).count_ones() as usize, lane);
        }
        warp::sync_warp(warp::FULL_MASK);
        let num = lanes.count_ones();
        let from = if lane < num { self.stays.load(lane as usize) } else { lane };
        // Before the list is written again.
        warp::sync_warp(warp::FULL_MASK);
        let cluster = of_lane(cluster, from);
        let id = if lane < num { cluster.id } else { NO_CLUSTER };
        (Cluster { id, ..cluster }, num)
    }
}

impl Builder<'_> {
    /// Makes a node of two clusters. Returns its cluster.
    #[inline(always)]
    unsafe fn merged(&self, a: Cluster, b: Cluster) -> Cluster {
        let children = [subtree(a.id), subtree(b.id)];
        let ([_, own_number, ..], [_, number, ..]) = (split(a.id), split(b.id));
        let bounds = a.bounds.union(b.bounds);
        self.tree.nodes.store(number as usize, BinaryNode { bounds, children });
        let few =
            children[0].num_few().unwrap_or(WIDTH as u32) + children[1].num_few().unwrap_or(WIDTH as u32);
        let (subtree, shape) = if few <= Subtree::MOST_FEW {
            self.tree.sizes.store(number as usize, 0);
            (Subtree::few(number, few), Shape::FEW)
        } else {
            let part = |subtree, of: Cluster| Part { subtree, shape: of.shape, area: half_area(of.bounds) };
            let (shape, [is_part_a, is_part_b]) = shape(part(children[0], a), part(children[1], b));
            self.tree.shapes.store(number as usize, shape.0);
            self.settle(children[0], a.shape, is_part_a);
            self.settle(children[1], b.shape, is_part_b);
            (Subtree::node(number), shape)
        };
        Cluster { id: join([subtree.0, own_number, 0, 0]), bounds, shape }
    }

    /// Writes the size of a child of a node.
    #[inline(always)]
    unsafe fn settle(&self, child: Subtree, shape: Shape, is_part: bool) {
        if child.is_node() {
            self.tree.sizes.store(child.index() as usize, if is_part { 0 } else { shape.size() });
        }
    }
}

/// Returns the subtree of a cluster.
#[inline(always)]
fn subtree(id: u64) -> Subtree {
    let [subtree, ..] = split(id);
    Subtree(subtree)
}

/// Returns the cluster of another lane.
#[inline(always)]
unsafe fn of_lane(cluster: Cluster, lane: u32) -> Cluster {
    let words = cluster.bounds.to_words();
    Cluster {
        id: warp::shuffle_idx(warp::FULL_MASK, cluster.id, lane),
        bounds: Aabb::from_words(words.map(|word| warp::shuffle_idx(warp::FULL_MASK, word, lane))),
        shape: Shape(warp::shuffle_idx(warp::FULL_MASK, cluster.shape.0, lane)),
    }
}

/// Returns the lane whose cluster is nearest to that of the caller, of the first `num` lanes and up to [`BVH_RADIUS`] lanes away.
#[inline(always)]
unsafe fn nearest(bounds: Aabb, num: u32) -> u32 {
    let lane = warp::lane_id();
    let words = bounds.to_words();
    let mut best = u32::MAX;
    let mut by = 1;
    while by <= BVH_RADIUS {
        let above = Aabb::from_words(words.map(|word| warp::shuffle_down(warp::FULL_MASK, word, by)));
        let area = half_area(bounds.union(above));
        let area_below = warp::shuffle_up(warp::FULL_MASK, area, by);
        if lane + by < num {
            best = best.min(distance(area, lane, lane + by));
        }
        if lane >= by && lane < num {
            best = best.min(distance(area_below, lane, lane - by));
        }
        by += 1;
    }
    lane ^ best & 31
}

/// Returns a number that orders pairs of clusters by the surface of their common box, without its last bits. In these are the bits in which the
/// lanes differ: pairs of equal surfaces whose lanes differ in the least bits come first, so that equal boxes are merged in pairs. The number
/// is that of both clusters of a pair, hence there is always a pair that are nearest to one another.
#[inline(always)]
pub fn distance(area: f32, lane: u32, other: u32) -> u32 {
    area.to_bits() & !31 | lane ^ other
}

/// Returns half the surface of a box.
#[inline(always)]
pub fn half_area(of: Aabb) -> f32 {
    let [x, y, z] = of.extents();
    x * y + y * z + z * x
}
