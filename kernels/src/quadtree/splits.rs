//! Nodes that split, found in sorted keys without going from level to level, and their children.
//!
//! Two points share the cells of as many levels as their keys share digits. A cell of level `l` has more than `most` points if and only if
//! its first point and the point `most` places on share level `l`; and a point is the first of its cells below the level that it shares
//! with the point before. So every place knows by itself which splitting nodes begin there: those of the levels behind the one shared with
//! the point before, up to the one shared with the point `most` on. Listed level by level they are in breadth-first order, and so are their
//! children, 2^D of each: the k-th node that splits has the children from `2^D k` on.

use super::codes::Roots;
use super::frame::Frame;
use super::node::Node;
use crate::policy::{PER_ITEM_THREADS, QUADTREE_WARP_POINTS};
use crate::thread::radix_key::RadixKey;
use crate::thread::search::partition_point;
use crate::thread::words::{Bits128, computed};
use cuda_std::prelude::*;
use cuda_std::warp::WarpReductionOp;

/// The sorted keys of a round.
#[derive(Clone, Copy)]
struct Keys<'a, K, const D: usize> {
    keys: Slice<'a, K>,
    num_levels: u32,
    /// A node with more points splits.
    most: usize,
}

impl<K: RadixKey, const D: usize> Keys<'_, K, D> {
    #[inline(always)]
    unsafe fn key(&self, place: usize) -> u64 {
        self.keys.load(place).into()
    }

    /// The lowest level on which two points are in one cell, -1 if they are of different roots.
    #[inline(always)]
    unsafe fn shared(&self, a: usize, b: usize) -> i32 {
        // The digits that differ are as many as are left of this one.
        let bits = u64::BITS - (self.key(a) ^ self.key(b)).leading_zeros();
        let below = bits.div_ceil(D as u32);
        if below > self.num_levels { -1 } else { (self.num_levels - below) as i32 }
    }

    /// The levels on which a node that splits begins at a place, a bit each.
    #[inline(always)]
    unsafe fn levels(&self, place: usize) -> u32 {
        let len = self.keys.len();
        if place >= len || len - place <= self.most {
            return 0;
        }
        // Bits from the first of them on, and those behind the last.
        let from = |level: i32| u32::MAX << level;
        let above = if place == 0 { -1 } else { self.shared(place - 1, place) };
        from(above + 1) & !from(self.shared(place, place + self.most) + 1)
    }

    /// Calls `found` with each of the places of a warp at which nodes begin that split: the level, the lanes, and if the caller's is one of
    /// these its place. All lanes call.
    #[inline(always)]
    unsafe fn each_level(&self, warp: usize, mut found: impl FnMut(u32, u32, Option<usize>)) {
        let mut group = warp::lane_id();
        while group < QUADTREE_WARP_POINTS as u32 {
            let place = warp * QUADTREE_WARP_POINTS + group as usize;
            let own = self.levels(place);
            let mut all = warp::warp_reduce(warp::FULL_MASK, own, WarpReductionOp::Or);
            while all != 0 {
                let level = all.trailing_zeros();
                all &= all - 1;
                let begins = own >> level & 1 == 1;
                let lanes = warp::warp_vote_ballot(warp::FULL_MASK, begins);
                found(level, lanes, begins.then_some(place));
            }
            // Opaque, so that there is one vote for all groups.
            group = computed(group + 32);
        }
    }
}

/// Counts the nodes that split, on each level of a round, of at most 30, and the one below: a row a level, in it a number a warp, which
/// has as many [points](QUADTREE_WARP_POINTS); behind all rows a 0.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS, hot)]
#[instances(K = [u32, u64], D = [2, 3])]
pub unsafe fn quadtree_count<K: RadixKey, const D: usize>(
    keys: Slice<K>,
    num_levels: u32,
    most: u32,
    counts: SliceMut<u32>,
) {
    let (warp, num_warps) = (thread::index_1d_u64() as usize / 32, keys.len().div_ceil(QUADTREE_WARP_POINTS));
    // The whole warp.
    if warp >= num_warps {
        return;
    }
    let (lane, mut count) = (warp::lane_id(), 0);
    let keys = Keys::<K, D> { keys, num_levels, most: most as usize };
    keys.each_level(warp, |level, lanes, _| count += if level == lane { lanes.count_ones() } else { 0 });
    if lane <= num_levels {
        counts.store(lane as usize * num_warps + warp, count);
    }
    if warp == 0 && lane == 0 {
        counts.store(counts.len() - 1, 0);
    }
}

/// Writes where the rows of such counts begin once they have been scanned, and their sum; one block.
#[kernel(family = "quadtree", block = 32)]
pub unsafe fn quadtree_rows(counts: Slice<u32>, begins: SliceMut<u32>) {
    let (row, num_rows) = (thread::index_1d() as usize, begins.len() - 1);
    if row <= num_rows {
        begins.store(row, counts.load((counts.len() - 1) / num_rows * row));
    }
}

/// Writes the place at which each node begins that splits, in the order of levels, then of places; as
/// [`quadtree_count()`], whose counts have been scanned.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS, hot)]
#[instances(K = [u32, u64], D = [2, 3])]
pub unsafe fn quadtree_splits<K: RadixKey, const D: usize>(
    keys: Slice<K>,
    num_levels: u32,
    most: u32,
    counts: Slice<u32>,
    splits: SliceMut<u32>,
) {
    let (warp, num_warps) = (thread::index_1d_u64() as usize / 32, keys.len().div_ceil(QUADTREE_WARP_POINTS));
    // The whole warp.
    if warp >= num_warps {
        return;
    }
    let lane = warp::lane_id();
    let mut next = if lane <= num_levels { counts.load(lane as usize * num_warps + warp) } else { 0 };
    let keys = Keys::<K, D> { keys, num_levels, most: most as usize };
    keys.each_level(warp, |level, lanes, place| {
        let before =
            warp::shuffle_idx(warp::FULL_MASK, next, level) + (lanes & warp::lane_mask_lt()).count_ones();
        if let Some(place) = place {
            splits.store(before as usize, place as u32);
        }
        next += if level == lane { lanes.count_ones() } else { 0 };
    });
}

/// Writes the children of each node of a round that splits, and their cells, from node `first_node` on; and for nodes below the last level
/// of the round which node they are, where their points begin, and how many these are, so that they can be the roots of the next. The first
/// nodes that split are the roots. `counts` are those of [`quadtree_splits()`]. A warp 32 nodes
/// that split.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS, hot)]
#[instances(K = [u32, u64], D = [2, 3])]
pub unsafe fn quadtree_children<K: RadixKey, const D: usize>(
    keys: Slice<K>,
    num_levels: u32,
    most: u32,
    frame: Slice<u64>,
    level: u32,
    counts: Slice<u32>,
    splits: Slice<u32>,
    rows: Slice<u32>,
    roots: Slice<u32>,
    starts: Slice<u32>,
    offsets: Slice<u64>,
    first_node: u32,
    nodes: SliceMut<Bits128>,
    cells: SliceMut<u32>,
    deep: SliceMut<u32>,
    deep_starts: SliceMut<u32>,
    deep_lens: SliceMut<u64>,
) {
    let keys = Keys::<K, D> { keys, num_levels, most: most as usize };
    let of = Roots { starts, offsets };
    let round = Round { keys, level, counts, splits, rows, roots, of, first_node };
    let to = Targets { nodes, cells, deep, deep_starts, deep_lens };
    round.write(thread::index_1d_u64() as usize, Frame::<D>::load(frame).levels, &to);
}

/// What a round has found.
struct Round<'a, K, const D: usize> {
    keys: Keys<'a, K, D>,
    /// That of the roots.
    level: u32,
    /// How many nodes that split come before the places of each warp, on each level.
    counts: Slice<'a, u32>,
    splits: Slice<'a, u32>,
    /// Where the levels of these begin.
    rows: Slice<'a, u32>,
    /// The nodes that the roots are.
    roots: Slice<'a, u32>,
    of: Roots<'a>,
    first_node: u32,
}

/// A node that splits.
struct Split {
    /// From the round's roots.
    level: u32,
    root: u32,
    node: u32,
    /// Its points, by their places in the round.
    begin: usize,
    end: usize,
    /// Of its key the part that all of them share.
    key: u64,
}

impl Split {
    /// That of another lane. All lanes call.
    #[inline(always)]
    unsafe fn of_lane(&self, lane: u32) -> Self {
        let Self { level, root, node, begin, end, key } = *self;
        let [level, root, node, begin, end] = [level, root, node, begin as u32, end as u32]
            .map(|word| warp::shuffle_idx(warp::FULL_MASK, word, lane));
        let key = warp::shuffle_idx(warp::FULL_MASK, key, lane);
        Self { level, root, node, begin: begin as usize, end: end as usize, key }
    }
}

/// Where nodes are written, and the roots of the next round, if there is one.
struct Targets<'a> {
    nodes: SliceMut<'a, Bits128>,
    cells: SliceMut<'a, u32>,
    deep: SliceMut<'a, u32>,
    deep_starts: SliceMut<'a, u32>,
    deep_lens: SliceMut<'a, u64>,
}

impl<K: RadixKey, const D: usize> Round<'_, K, D> {
    /// Writes what there is to write of the caller's node, and the children of all nodes of the warp, a lane a child, in a root of so many
    /// levels. All lanes call.
    #[inline(always)]
    unsafe fn write(&self, k: usize, levels: u32, to: &Targets<'_>) {
        let (lane, num_levels) = (warp::lane_id(), self.keys.num_levels);
        // What has no children has none to write.
        let mut own = Split { level: num_levels, root: 0, node: 0, begin: 0, end: 0, key: 0 };
        if k < self.splits.len() {
            own = self.split(k);
            self.write_own(k, &own, to);
        }
        let mut turn = 0;
        while turn < 1 << D {
            let of = (turn << (5 - D)) + (lane >> D);
            let (split, k, child) = (own.of_lane(of), k - lane as usize + of as usize, lane & ((1 << D) - 1));
            let is_there = split.level < num_levels;
            let end = if is_there { self.end(&split, child) } else { 0 };
            let before = warp::shuffle_idx(warp::FULL_MASK, end as u32, lane.wrapping_sub(1) & 31) as usize;
            if is_there {
                let begin = if child == 0 { split.begin } else { before };
                let at = self.first_child(k) + child;
                to.nodes.store(at as usize, self.child(&split, begin, end).to_bits());
                self.write_cell(at, &split, child, levels, to.cells);
            }
            turn = computed(turn + 1);
        }
    }

    /// Writes of a root where its children are, of a node below the last level that it is one of the next round.
    #[inline(always)]
    unsafe fn write_own(&self, k: usize, split: &Split, to: &Targets<'_>) {
        if split.level == self.keys.num_levels {
            let i = k - self.rows.load(split.level as usize) as usize;
            if i < to.deep.len() {
                to.deep.store(i, split.node);
                to.deep_starts.store(i, self.of.place(split.root as usize, split.begin));
                to.deep_lens.store(i, (split.end - split.begin) as u64);
            }
        } else if split.level == 0 {
            let node = Node::from_bits(to.nodes.load(split.node as usize));
            let first_child = self.first_child(k);
            to.nodes.store(split.node as usize, Node { first_child, ..node }.to_bits());
        }
    }

    /// A node that splits.
    #[inline(always)]
    unsafe fn split(&self, k: usize) -> Split {
        let ends = |level: usize| self.rows.load(level + 1) as usize;
        let level = partition_point(0, self.keys.num_levels as usize, |level| ends(level) <= k) as u32;
        let begin = self.splits.load(k) as usize;
        let key = self.keys.key(begin);
        let root = (key >> (D as u32 * self.keys.num_levels)) as u32;
        let shift = D as u32 * (self.keys.num_levels - level);
        let node = if level == 0 {
            self.roots.load(root as usize)
        } else {
            // The last node of the level above that begins no later.
            self.first_child(self.num_before(level - 1, begin + 1) - 1) + (key >> shift) as u32 % (1 << D)
        };
        let end = self.first_behind(begin, key >> shift, shift);
        Split { level, root, node, begin, end, key: key >> shift }
    }

    /// How many nodes that split come before those of a level that begin at a place or behind it, which is not the last of all.
    #[inline(always)]
    unsafe fn num_before(&self, level: u32, place: usize) -> usize {
        let num_warps = self.keys.keys.len().div_ceil(QUADTREE_WARP_POINTS);
        let warp = level as usize * num_warps + place / QUADTREE_WARP_POINTS;
        let [first, end] = [warp, warp + 1].map(|warp| self.counts.load(warp) as usize);
        partition_point(first, end, |i| (self.splits.load(i) as usize) < place)
    }

    #[inline(always)]
    fn first_child(&self, k: usize) -> u32 {
        self.first_node + ((k as u32) << D)
    }

    /// The first place behind a node's points: more than `most` places on.
    #[inline(always)]
    unsafe fn first_behind(&self, begin: usize, key: u64, shift: u32) -> usize {
        let (mut low, mut step, len) = (begin + self.keys.most, 1, self.keys.keys.len());
        while low + step <= len && self.keys.key(low + step - 1) >> shift == key {
            low += step;
            step *= 2;
        }
        let high = if low + step - 1 < len { low + step - 1 } else { len };
        partition_point(low, high, |i| self.keys.key(i) >> shift == key)
    }

    /// Where the points of a child end.
    #[inline(always)]
    unsafe fn end(&self, split: &Split, child: u32) -> usize {
        let shift = D as u32 * (self.keys.num_levels - split.level - 1);
        let key = split.key << D | u64::from(child);
        partition_point(split.begin, split.end, |i| self.keys.key(i) >> shift <= key)
    }

    /// A child of a node that splits.
    #[inline(always)]
    unsafe fn child(&self, split: &Split, begin: usize, end: usize) -> Node {
        let level = split.level + 1;
        let [start, behind] = [begin, end].map(|at| self.of.place(split.root as usize, at));
        let mut node = Node { start, end: behind, first_child: 0, level: self.level + level };
        // Below the last level it is the next round's.
        if end - begin > self.keys.most && level < self.keys.num_levels {
            node.first_child = self.first_child(self.num_before(level, begin));
        }
        node
    }

    /// Writes the low corner of a child's cell, in units: its root's, and what its key says.
    #[inline(always)]
    unsafe fn write_cell(&self, at: u32, split: &Split, child: u32, levels: u32, cells: SliceMut<'_, u32>) {
        let (root, child_level) = (self.roots.load(split.root as usize) as usize, split.level + 1);
        let (key, mut axis) = (split.key << D | u64::from(child), 0);
        // Those of the root do not count.
        let key = key & !(u64::MAX << (D as u32 * child_level));
        while axis < D {
            let corner = cells.load(root * D + axis);
            let units = every_other::<D>(key >> (D - 1 - axis)) << (levels - self.level - child_level);
            cells.store(at as usize * D + axis, corner + units);
            axis += 1;
        }
    }
}

/// Each `D`-th bit of a number, from the lowest on.
#[inline(always)]
fn every_other<const D: usize>(x: u64) -> u32 {
    let x = if D == 2 {
        let x = x & 0x5555_5555_5555_5555;
        let x = (x | x >> 1) & 0x3333_3333_3333_3333;
        let x = (x | x >> 2) & 0x0F0F_0F0F_0F0F_0F0F;
        let x = (x | x >> 4) & 0x00FF_00FF_00FF_00FF;
        let x = (x | x >> 8) & 0x0000_FFFF_0000_FFFF;
        x | x >> 16
    } else {
        let x = x & 0x1249_2492_4924_9249;
        let x = (x | x >> 2) & 0x10C3_0C30_C30C_30C3;
        let x = (x | x >> 4) & 0x100F_00F0_0F00_F00F;
        let x = (x | x >> 8) & 0x001F_0000_FF00_00FF;
        let x = (x | x >> 16) & 0x001F_0000_0000_FFFF;
        x | x >> 32
    };
    x as u32
}
