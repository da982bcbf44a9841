//! The triangles of large nodes, 256 of a node at a time: their boxes, and the ways to the children.
//!
//! As in Zhou et al. 2008 a chunk is a block and a triangle a thread. What blocks do together comes in two kinds, as in Chang, Seo, Ihm: what a
//! block adds up goes through segmented scans and reductions over all blocks, or by atomics to its node; and within blocks values go through
//! shared memory, or from lane to lane (`LANES` 1 or 32).

use super::aabb::{Aabb, of_axis};
use super::clip::clipped;
use super::extent::EXTENT_WORDS;
use super::large::{Large, Plan};
use super::model::{is_above, is_below};
use super::triangle::Corners;
use crate::block::scan::{ScanSmem, exclusive_sum};
use crate::policy::{PER_ITEM_THREADS, SAH_CHUNK_TRIANGLES as THREADS};
use crate::thread::search::partition_point;
use cuda_std::float::{f32_from_key, f32_to_key};
use cuda_std::prelude::*;
use cuda_std::warp::WarpReductionOp;

/// Numbers of a box.
pub const BOX_WORDS: usize = 6;

/// A box as keys, the least of which are those of the box around several: of the low corner, and of the high one inverted.
#[inline(always)]
pub(super) fn to_keys(bounds: Aabb) -> [u32; BOX_WORDS] {
    let [a, b, c, d, e, f] = bounds.to_words().map(f32_to_key);
    [a, b, c, !d, !e, !f]
}

/// The box of keys.
#[inline(always)]
pub fn from_keys([a, b, c, d, e, f]: [u32; BOX_WORDS]) -> Aabb {
    Aabb::from_words([a, b, c, !d, !e, !f].map(f32_from_key))
}

/// A node's box in rows of keys, one of each for every node.
#[inline(always)]
pub(super) unsafe fn load_box(keys: Slice<'_, u32>, node: usize) -> Aabb {
    let row = keys.len() / BOX_WORDS;
    from_keys([0, 1, 2, 3, 4, 5].map(|i| keys.load(i * row + node)))
}

/// Writes which node each chunk is of, 1 for each first chunk of a node and 0 for the others, and the first chunk of each node, as offsets; and makes
/// ready what the level adds up: keys the greatest, counts and what is left zeros. A thread a chunk, of which there are as many as nodes at least.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_chunk_nodes(
    nodes: Slice<Large>,
    of_chunks: SliceMut<u32>,
    heads: SliceMut<u8>,
    offsets: SliceMut<u64>,
    keys: SliceMut<u32>,
    counts: SliceMut<u32>,
    left: SliceMut<u64>,
) {
    let chunk = thread::index_1d_u64() as usize;
    if chunk >= of_chunks.len() {
        return;
    }
    let node = partition_point(0, nodes.len(), |node| nodes.load(node).chunk as usize <= chunk) - 1;
    let is_first = nodes.load(node).chunk as usize == chunk;
    of_chunks.store(chunk, node as u32);
    heads.store(chunk, is_first.into());
    if is_first {
        offsets.store(node, chunk as u64);
    }
    if chunk + 1 == of_chunks.len() {
        offsets.store(nodes.len(), of_chunks.len() as u64);
    }
    if chunk < nodes.len() {
        let mut i = 0;
        while i < BOX_WORDS {
            keys.store(i * nodes.len() + chunk, u32::MAX);
            i += 1;
        }
        counts.store(chunk, 0);
        counts.store(nodes.len() + chunk, 0);
    }
    if chunk == 0 {
        let mut i = 0;
        while i < left.len() {
            left.store(i, 0);
            i += 1;
        }
    }
}

/// The triangles of a level's nodes.
#[derive(Clone, Copy)]
struct Items<'a> {
    nodes: Slice<'a, Large>,
    of_chunks: Slice<'a, u32>,
    listed: Slice<'a, u32>,
    /// Of each triangle, or of each on the list if they are clipped.
    boxes: Slice<'a, Aabb>,
    are_clipped: bool,
}

/// What a thread has: the triangle, if there is one, of its node.
struct Own {
    node: usize,
    large: Large,
    triangle: u32,
    bounds: Aabb,
    is_there: bool,
}

impl Items<'_> {
    #[inline(always)]
    unsafe fn own(&self) -> Own {
        let chunk = thread::block_idx_x() as usize;
        let node = self.of_chunks.load(chunk) as usize;
        let large = self.nodes.load(node);
        let i = (chunk - large.chunk as usize) * THREADS + thread::thread_idx_x() as usize;
        let is_there = i < large.len as usize;
        let mut own = Own { node, large, triangle: 0, bounds: Aabb::EMPTY, is_there };
        if is_there {
            let place = large.place() + i;
            own.triangle = self.listed.load(place);
            own.bounds = self.boxes.load(if self.are_clipped { place } else { own.triangle as usize });
        }
        own
    }
}

/// Shared memory of a block.
#[repr(C)]
pub struct ChunkSmem {
    keys: [[u32; THREADS]; EXTENT_WORDS],
    sums: ScanSmem,
    bases: [u32; 2],
}

/// The least of each key of all threads, key `i` for thread `i`. All threads call.
#[inline(always)]
pub(super) unsafe fn least_keys<const LANES: usize, const WORDS: usize>(
    own: [u32; WORDS],
    smem: *mut ChunkSmem,
) -> u32 {
    let (keys, thread) = (shared_field!(smem, keys), thread::thread_idx_x() as usize);
    let mut i = 0;
    if LANES == 1 {
        while i < WORDS {
            keys.store(i * THREADS + thread, own[i]);
            i += 1;
        }
        thread::sync_threads();
        let mut half = THREADS / 2;
        while half > 0 {
            if thread < half {
                let mut i = 0;
                while i < WORDS {
                    let at = i * THREADS + thread;
                    keys.store(at, keys.load(at).min(keys.load(at + half)));
                    i += 1;
                }
            }
            thread::sync_threads();
            half /= 2;
        }
    } else {
        while i < WORDS {
            let least = warp::warp_reduce(warp::FULL_MASK, own[i], WarpReductionOp::Min);
            if warp::lane_id() == 0 {
                keys.store(i * THREADS + thread / 32, least);
            }
            i += 1;
        }
        thread::sync_threads();
    }
    let mut least = u32::MAX;
    if thread < WORDS {
        let (num, mut i) = (if LANES == 1 { 1 } else { THREADS / 32 }, 0);
        while i < num {
            least = least.min(keys.load(thread * THREADS + i));
            i += 1;
        }
    }
    least
}

/// Finds the box of each node's triangles by atomics; a block a chunk.
#[kernel(family = "sah", block = THREADS, shared = ChunkSmem)]
#[instances(LANES = [1, 32])]
pub unsafe fn sah_boxes<const LANES: usize>(
    nodes: Slice<Large>,
    of_chunks: Slice<u32>,
    listed: Slice<u32>,
    boxes: Slice<Aabb>,
    are_clipped: u32,
    keys: SliceMut<u32>,
) {
    let own = Items { nodes, of_chunks, listed, boxes, are_clipped: are_clipped != 0 }.own();
    let least = least_keys::<LANES, _>(to_keys(own.bounds), shared_mem::<ChunkSmem>());
    let word = thread::thread_idx_x() as usize;
    if word < BOX_WORDS {
        keys.atomic_min(word * nodes.len() + own.node, least, Ordering::Relaxed, Scope::Device);
    }
}

/// Writes the box of each chunk's triangles; a block a chunk.
#[kernel(family = "sah", block = THREADS, shared = ChunkSmem)]
#[instances(LANES = [1, 32])]
pub unsafe fn sah_chunk_boxes<const LANES: usize>(
    nodes: Slice<Large>,
    of_chunks: Slice<u32>,
    listed: Slice<u32>,
    boxes: Slice<Aabb>,
    are_clipped: u32,
    keys: SliceMut<u32>,
) {
    let own = Items { nodes, of_chunks, listed, boxes, are_clipped: are_clipped != 0 }.own();
    let least = least_keys::<LANES, _>(to_keys(own.bounds), shared_mem::<ChunkSmem>());
    let word = thread::thread_idx_x() as usize;
    if word < BOX_WORDS {
        keys.store(word * of_chunks.len() + thread::block_idx_x() as usize, least);
    }
}

/// The triangle of a thread on both sides of its node's plane.
struct Sides {
    own: Own,
    /// The box of what is on each side, if something is.
    parts: [Aabb; 2],
    are_there: [bool; 2],
}

/// The triangles of a level's nodes, and the planes that cut them.
#[derive(Clone, Copy)]
struct Cut<'a> {
    items: Items<'a>,
    /// The boxes of nodes' triangles.
    keys: Slice<'a, u32>,
    empty_space: f32,
    corners: Slice<'a, Corners>,
}

/// The lists of the next level.
#[derive(Clone, Copy)]
struct Next<'a> {
    listed: SliceMut<'a, u32>,
    boxes: SliceMut<'a, Aabb>,
    are_clipped: bool,
}

impl Cut<'_> {
    #[inline(always)]
    unsafe fn sides(&self) -> Sides {
        let own = self.items.own();
        let plan = Plan::new(&own.large, load_box(self.keys, own.node), self.empty_space);
        let (low, high) = (of_axis(own.bounds.low, plan.axis), of_axis(own.bounds.high, plan.axis));
        let is_there = own.is_there && plan.has_plane();
        let mut are_there =
            [is_there && is_below(low, high, plan.plane), is_there && is_above(high, plan.plane)];
        let mut parts = [own.bounds; 2];
        if self.items.are_clipped && are_there[0] && are_there[1] {
            let corners = self.corners.load(own.triangle as usize).places();
            parts[0] = clipped(corners, own.bounds, plan.axis, plan.plane, false);
            parts[1] = clipped(corners, own.bounds, plan.axis, plan.plane, true);
            are_there = [!parts[0].is_empty(), !parts[1].is_empty()];
        }
        Sides { own, parts, are_there }
    }
}

impl Next<'_> {
    /// Stores a triangle's parts on the next list, given how many of the node's are before them on each side.
    #[inline(always)]
    unsafe fn store(&self, sides: &Sides, before: [u32; 2]) {
        let mut side = 0;
        while side < 2 {
            if sides.are_there[side] {
                let room = sides.own.large.room(side == 1) as usize * THREADS;
                let place = room + before[side] as usize;
                self.listed.store(place, sides.own.triangle);
                if self.are_clipped {
                    self.boxes.store(place, sides.parts[side]);
                }
            }
            side += 1;
        }
    }
}

impl Sides {
    /// Of both sides how many triangles of the block are before the thread's, and how many there are. All threads call.
    #[inline(always)]
    unsafe fn places<const LANES: usize>(&self, smem: *mut ChunkSmem) -> ([u32; 2], [u32; 2]) {
        // Two sums of up to 256 in one.
        let own = u32::from(self.are_there[0]) | u32::from(self.are_there[1]) << 16;
        let (before, all) = if LANES == 1 {
            exclusive_sum_by_memory(own, shared_field!(smem, keys))
        } else {
            exclusive_sum(own, &raw mut (*smem).sums)
        };
        ([before & 0xFFFF, before >> 16], [all & 0xFFFF, all >> 16])
    }
}

/// Each thread's sum of the values of the threads below, and the sum over the block, without shuffles (Hillis, Steele 1986). All threads call.
#[inline(always)]
unsafe fn exclusive_sum_by_memory(value: u32, sums: SharedSlice<'_, u32>) -> (u32, u32) {
    let thread = thread::thread_idx_x() as usize;
    let (mut sum, mut delta) = (value, 1);
    sums.store(thread, value);
    thread::sync_threads();
    while delta < THREADS {
        let below = if thread >= delta { sums.load(thread - delta) } else { 0 };
        thread::sync_threads();
        sum += below;
        sums.store(thread, sum);
        thread::sync_threads();
        delta *= 2;
    }
    let all = sums.load(THREADS - 1);
    thread::sync_threads();
    (sum - value, all)
}

/// Moves triangles to the sides of their nodes' planes, and counts those of each side; a block a chunk, which asks two counters of its node for
/// places.
#[kernel(family = "sah", block = THREADS, shared = ChunkSmem)]
#[instances(LANES = [1, 32])]
pub unsafe fn sah_sort<const LANES: usize>(
    nodes: Slice<Large>,
    of_chunks: Slice<u32>,
    listed: Slice<u32>,
    boxes: Slice<Aabb>,
    are_clipped: u32,
    keys: Slice<u32>,
    empty_space: f32,
    corners: Slice<Corners>,
    counts: SliceMut<u32>,
    next_listed: SliceMut<u32>,
    next_boxes: SliceMut<Aabb>,
) {
    let items = Items { nodes, of_chunks, listed, boxes, are_clipped: are_clipped != 0 };
    let cut = Cut { items, keys, empty_space, corners };
    let next = Next { listed: next_listed, boxes: next_boxes, are_clipped: are_clipped != 0 };
    let (sides, smem) = (cut.sides(), shared_mem::<ChunkSmem>());
    let (before, all) = sides.places::<LANES>(smem);
    let (bases, thread) = (shared_field!(smem, bases), thread::thread_idx_x() as usize);
    if thread < 2 {
        let count = if thread == 0 { all[0] } else { all[1] };
        let of_side = thread * nodes.len() + sides.own.node;
        bases.store(thread, counts.atomic_add(of_side, count, Ordering::Relaxed, Scope::Device));
    }
    thread::sync_threads();
    next.store(&sides, [bases.load(0) + before[0], bases.load(1) + before[1]]);
}

/// Writes how many triangles of each chunk are on both sides of their node's plane, a row a side; a block a chunk.
#[kernel(family = "sah", block = THREADS, shared = ChunkSmem)]
#[instances(LANES = [1, 32])]
pub unsafe fn sah_count<const LANES: usize>(
    nodes: Slice<Large>,
    of_chunks: Slice<u32>,
    listed: Slice<u32>,
    boxes: Slice<Aabb>,
    are_clipped: u32,
    keys: Slice<u32>,
    empty_space: f32,
    corners: Slice<Corners>,
    counts: SliceMut<u32>,
) {
    let items = Items { nodes, of_chunks, listed, boxes, are_clipped: are_clipped != 0 };
    let sides = Cut { items, keys, empty_space, corners }.sides();
    let (_, all) = sides.places::<LANES>(shared_mem::<ChunkSmem>());
    let thread = thread::thread_idx_x() as usize;
    if thread < 2 {
        let count = if thread == 0 { all[0] } else { all[1] };
        counts.store(thread * of_chunks.len() + thread::block_idx_x() as usize, count);
    }
}

/// Moves triangles to the sides of their nodes' planes, given how many of the node's are before those of each chunk; a block a chunk.
#[kernel(family = "sah", block = THREADS, shared = ChunkSmem)]
#[instances(LANES = [1, 32])]
pub unsafe fn sah_scatter<const LANES: usize>(
    nodes: Slice<Large>,
    of_chunks: Slice<u32>,
    listed: Slice<u32>,
    boxes: Slice<Aabb>,
    are_clipped: u32,
    keys: Slice<u32>,
    empty_space: f32,
    corners: Slice<Corners>,
    before_chunks: Slice<u32>,
    next_listed: SliceMut<u32>,
    next_boxes: SliceMut<Aabb>,
) {
    let items = Items { nodes, of_chunks, listed, boxes, are_clipped: are_clipped != 0 };
    let next = Next { listed: next_listed, boxes: next_boxes, are_clipped: are_clipped != 0 };
    let sides = Cut { items, keys, empty_space, corners }.sides();
    let (before, _) = sides.places::<LANES>(shared_mem::<ChunkSmem>());
    let chunk = thread::block_idx_x() as usize;
    let bases = [before_chunks.load(chunk), before_chunks.load(of_chunks.len() + chunk)];
    next.store(&sides, [bases[0] + before[0], bases[1] + before[1]]);
}

/// Adds up the triangles of each node on each side, given the counts of chunks and how many are before each; a thread a node.
#[kernel(family = "sah", block = PER_ITEM_THREADS)]
pub unsafe fn sah_node_counts(
    nodes: Slice<Large>,
    of_chunks: Slice<u32>,
    counts: Slice<u32>,
    before_chunks: Slice<u32>,
    of_nodes: SliceMut<u32>,
) {
    let node = thread::index_1d_u64() as usize;
    if node < nodes.len() {
        let large = nodes.load(node);
        let last = (large.chunk + large.num_chunks() - 1) as usize;
        let mut side = 0;
        while side < 2 {
            let at = side * of_chunks.len() + last;
            of_nodes.store(side * nodes.len() + node, before_chunks.load(at) + counts.load(at));
            side += 1;
        }
    }
}

/// Moves the triangles of nodes that stay as they are to the next list; a block a chunk.
#[kernel(family = "sah", block = THREADS)]
pub unsafe fn sah_stay(
    nodes: Slice<Large>,
    of_chunks: Slice<u32>,
    listed: Slice<u32>,
    boxes: Slice<Aabb>,
    are_clipped: u32,
    stays: Slice<u8>,
    next_listed: SliceMut<u32>,
    next_boxes: SliceMut<Aabb>,
) {
    let own = Items { nodes, of_chunks, listed, boxes, are_clipped: are_clipped != 0 }.own();
    if own.is_there && stays.load(own.node) != 0 {
        let chunk = thread::block_idx_x() - own.large.chunk + own.large.room(false);
        let place = chunk as usize * THREADS + thread::thread_idx_x() as usize;
        next_listed.store(place, own.triangle);
        if are_clipped != 0 {
            // By words, so that the box is never in local memory.
            next_boxes.store(place, Aabb::from_words(own.bounds.to_words()));
        }
    }
}
