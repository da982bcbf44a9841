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
#[instance(u32, 2)]
#[instance(u32, 3)]
#[instance(u64, 2)]
#[instance(u64, 3)]
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
#[instance(u32, 2)]
#[instance(u32, 3)]
#[instance(u64, 2)]
#[instance(u64, 3)]
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
/// nodes that split are the roots. A thread a node that splits.
#[kernel(family = "quadtree", block = PER_ITEM_THREADS, hot)]
#[instance(u32, 2)]
#[instance(u32, 3)]
#[instance(u64, 2)]
#[instance(u64, 3)]
pub unsafe fn quadtree_children<K: RadixKey, const D: usize>(
    keys: Slice<K>,
    num_levels: u32,
    most: u32,
    frame: Slice<u64>,
    level: u32,
    splits: Slice<u32>,
    rows: Slice<u32>,
    roots: Slice<u32>,
    starts: Slice<u32>,
    offsets: Slice<u32>,
    first_node: u32,
    nodes: SliceMut<Bits128>,
    cells: SliceMut<u32>,
    deep: SliceMut<u32>,
    deep_starts: SliceMut<u32>,
    deep_lens: SliceMut<u32>,
) {
    let k = thread::index_1d_u64() as usize;
    if k < splits.len() {
        let keys = Keys::<K, D> { keys, num_levels, most: most as usize };
        let round = Round { keys, splits, rows, roots, of: Roots { starts, offsets }, first_node };
        let split = round.split(k);
        if split.level < num_levels {
            let levels = Frame::<D>::load(frame).levels;
            round.write_children(k, &split, level, levels, nodes, cells);
        } else if let Some(i) = k.checked_sub(rows.load(num_levels as usize) as usize) {
            // If there is a next round.
            if i < deep.len() {
                deep.store(i, split.node);
                deep_starts.store(i, round.of.place(split.root, split.begin));
                deep_lens.store(i, (split.end - split.begin) as u32);
            }
        }
    }
}

/// What a round has found.
struct Round<'a, K, const D: usize> {
    keys: Keys<'a, K, D>,
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
    root: usize,
    node: u32,
    /// Its points, by their places in the round.
    begin: usize,
    end: usize,
    /// Of its key the part that all of them share.
    key: u64,
}

impl<K: RadixKey, const D: usize> Round<'_, K, D> {
    /// A node that splits.
    #[inline(always)]
    unsafe fn split(&self, k: usize) -> Split {
        let mut level = 0;
        while self.rows.load(level as usize + 1) as usize <= k {
            level += 1;
        }
        let begin = self.splits.load(k) as usize;
        let key = self.keys.key(begin);
        let root = (key >> (D as u32 * self.keys.num_levels)) as usize;
        let shift = D as u32 * (self.keys.num_levels - level);
        let node = if level == 0 {
            self.roots.load(root)
        } else {
            // The last node of the level above that begins no later.
            let [first, end] = [level - 1, level].map(|row| self.rows.load(row as usize) as usize);
            let parent = partition_point(first, end, |i| self.splits.load(i) as usize <= begin) - 1;
            self.first_child(parent) + (key >> shift) as u32 % (1 << D)
        };
        let end = self.first_behind(begin, key >> shift, shift);
        Split { level, root, node, begin, end, key: key >> shift }
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

    #[inline(always)]
    unsafe fn write_children(
        &self,
        k: usize,
        split: &Split,
        level: u32,
        levels: u32,
        nodes: SliceMut<'_, Bits128>,
        cells: SliceMut<'_, u32>,
    ) {
        let (num_levels, most) = (self.keys.num_levels, self.keys.most);
        let first_child = self.first_child(k);
        if split.level == 0 {
            // It is of the round before.
            let node = Node::from_bits(nodes.load(split.node as usize));
            nodes.store(split.node as usize, Node { first_child, ..node }.to_bits());
        }
        let corner = self.corner(split, level, levels, cells);
        // Units on a child's side.
        let child_level = split.level + 1;
        let side = 1 << (levels - level - child_level);
        let shift = D as u32 * (num_levels - child_level);
        let (mut begin, mut child) = (split.begin, 0);
        while child < 1 << D {
            let key = split.key << D | u64::from(child);
            let end = partition_point(begin, split.end, |i| self.keys.key(i) >> shift <= key);
            let mut node = Node {
                start: self.of.place(split.root, begin),
                end: self.of.place(split.root, end),
                first_child: 0,
                level: level + child_level,
            };
            // Below the last level it is the next round's.
            if end - begin > most && child_level < num_levels {
                let [first, last] =
                    [child_level, child_level + 1].map(|row| self.rows.load(row as usize) as usize);
                let own = partition_point(first, last, |i| (self.splits.load(i) as usize) < begin);
                node.first_child = self.first_child(own);
            }
            let at = (first_child + child) as usize;
            nodes.store(at, node.to_bits());
            let mut axis = 0;
            while axis < D {
                let is_upper = child >> (D - 1 - axis) & 1;
                cells.store(at * D + axis, corner[axis] + is_upper * side);
                axis += 1;
            }
            begin = end;
            child += 1;
        }
    }

    /// The low corner of a node, in units: its root's, and what its key says.
    #[inline(always)]
    unsafe fn corner(&self, split: &Split, level: u32, levels: u32, cells: SliceMut<'_, u32>) -> [u32; D] {
        let (mut corner, mut axis) = ([0; D], 0);
        let root = self.roots.load(split.root) as usize;
        while axis < D {
            corner[axis] = cells.load(root * D + axis);
            axis += 1;
        }
        let mut below = 0;
        while below < split.level {
            // The last digit is that of the lowest level.
            let digit = (split.key >> (D as u32 * below)) as u32;
            let mut axis = 0;
            while axis < D {
                corner[axis] += (digit >> (D - 1 - axis) & 1) << (levels - level - split.level + below);
                axis += 1;
            }
            below += 1;
        }
        corner
    }
}
