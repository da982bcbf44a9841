//! Stable partition of every segment by the class of its items, in one array: first the items of class 0, then of class
//! 1, then of class 2.
//!
//! The first pass turns classes into bits and bits into ranks, with one look-back over all segments. The second pass
//! moves each item independently by its rank, whatever the number and lengths of segments. Any number of arrays can be
//! moved by the same ranks.

use crate::block::scan::exclusive_over_warps;
use crate::policy::{PARTITION_ITEMS, TILE_THREADS as THREADS, partition_min_blocks};
use crate::thread::items::strided;
use crate::thread::operator::{Counts, Operator, Sum};
use crate::thread::ranks::{Ranks, num_words};
use crate::thread::segments::segment_of;
use crate::thread::words::*;
use crate::warp::look_back::{Decoupled, LookBack, Ticket};
use crate::warp::scan::{exclusive_of, inclusive};
use crate::warp::search::partition_point;
use cuda_std::prelude::*;

const WARPS: usize = THREADS / 32;

/// Words of bits of a block of the first pass: a word per lane.
pub const TILE_WORDS: usize = THREADS;

/// Classes that a lane of the first pass loads at once.
const MARK_BATCH: usize = 16;

/// Computes the ranks of the classes; a block per tile.
#[kernel(family = "primitives-select", block = THREADS, shared = MarkSmem, hot)]
pub unsafe fn primitives_partition_mark(mark: Mark<'_>) {
    mark.run()
}

/// Moves the items of every segment by the ranks of their classes. Segments begin at `offsets`.
#[kernel(family = "primitives-select", block = THREADS, min_blocks = partition_min_blocks(size_of::<T>()), hot)]
#[instances(T = [u32, u64, Bits128])]
pub unsafe fn primitives_partition_move<T: Words>(
    input: Slice<T>,
    bits: Slice<u32>,
    before: Slice<u64>,
    offsets: Slice<u64>,
    output: SliceMut<T>,
) {
    let planes = Planes::new(bits, before, input.len());
    Move { input, planes, offsets, output }.run()
}

/// Writes the numbers of items of class 0 and class 1 of every segment; a thread per segment.
#[kernel(family = "primitives-select", block = THREADS)]
pub unsafe fn primitives_partition_counts(
    bits: Slice<u32>,
    before: Slice<u64>,
    offsets: Slice<u64>,
    counts: SliceMut<u64>,
    num_items: u64,
) {
    let segment = thread::index_1d_u64() as usize;
    if 2 * segment < counts.len() {
        let planes = Planes::new(bits, before, num_items as usize);
        let (begin, end) = bounds(offsets, segment, num_items);
        counts.store(2 * segment, planes.first.get(end).1 - planes.first.get(begin).1);
        counts.store(2 * segment + 1, planes.second.get(end).1 - planes.second.get(begin).1);
    }
}

/// Returns the begin and end of a segment; the last one ends with the items.
#[inline(always)]
unsafe fn bounds(offsets: Slice<u64>, segment: usize, num_items: u64) -> (u64, u64) {
    let clamp = |i: u64| if i < num_items { i } else { num_items };
    let end = if segment + 1 < offsets.len() { offsets.load(segment + 1) } else { num_items };
    (clamp(offsets.load(segment)), clamp(end))
}

/// The ranks of the classes 0 and 1.
struct Planes<'a> {
    first: Ranks<'a>,
    second: Ranks<'a>,
}

impl<'a> Planes<'a> {
    #[inline(always)]
    unsafe fn new(bits: Slice<'a, u32>, before: Slice<'a, u64>, num_items: usize) -> Self {
        let len = num_words(num_items);
        let plane = |i: usize| Ranks { bits: bits.part(i * len, len), before: before.part(i * len, len) };
        Self { first: plane(0), second: plane(1) }
    }
}

/// Shared memory of the first pass.
#[repr(C)]
pub struct MarkSmem {
    warp_counts: [Counts; WARPS],
    before: [Counts; 1],
    ticket: [u64; 1],
}

/// The first pass, of which each block handles one tile.
#[derive(Clone, Copy, KernelArgs)]
pub struct Mark<'a> {
    /// The class of each item.
    pub classes: Slice<'a, u8>,
    /// The bits of class 0, then the bits of class 1: two planes of [`num_words`] words.
    pub bits: SliceMut<'a, u32>,
    /// The prefix counts of the bits, in planes as well.
    pub before: SliceMut<'a, u64>,
    /// Zeros: the ticket, then the words of the look-back.
    pub words: SliceMut<'a, u64>,
}

impl Mark<'_> {
    #[inline(always)]
    unsafe fn run(self) {
        let smem = shared_mem::<MarkSmem>();
        let before = shared_field!(smem, before);
        let tile = Ticket { counter: self.words.part(0, 1) }.take(shared_field!(smem, ticket));
        let lane = warp::lane_id() as usize;
        let warp_word = tile * TILE_WORDS + (thread::thread_idx_x() as usize & !31);

        let (first, second) = self.gather_bits(warp_word);
        let own = Counts(first.count_ones().into(), second.count_ones().into());
        let (lanes_before, warp_sum) = exclusive_of::<Counts, Sum>(inclusive::<Counts, Sum>(own));
        let warp_counts = shared_field!(smem, warp_counts);
        let (warps_before, sum) = exclusive_over_warps::<Counts, Sum>(warp_sum, warp_counts);
        if thread::thread_idx_x() < 32 {
            let words = self.words.part(1, self.words.len() - 1);
            let num_tiles = thread::grid_dim_x() as usize;
            if lane == 0 {
                Decoupled::publish(words, num_tiles, tile, sum);
            }
            let tiles_before = Decoupled::exclusive_prefix::<Counts, Sum>(words, num_tiles, tile, sum);
            if lane == 0 {
                before.store(0, tiles_before);
            }
        }
        thread::sync_threads();

        let before = Sum::combine(Sum::combine(before.load(0), warps_before), lanes_before);
        let (word, len) = (warp_word + lane, num_words(self.classes.len()));
        if word < len {
            self.bits.store(word, first);
            self.bits.store(len + word, second);
            self.before.store(word, before.0);
            self.before.store(len + word, before.1);
        }
    }

    /// Returns the lane's word of each plane. The warp's words begin at `warp_word`.
    #[inline(always)]
    unsafe fn gather_bits(&self, warp_word: usize) -> (u32, u32) {
        let lane = warp::lane_id();
        let len = self.classes.len();
        if len == 0 {
            return (0, 0);
        }
        let item = |round: u32| (warp_word + round as usize) * 32 + lane as usize;
        let (mut first, mut second) = (0, 0);
        for begin in strided(0, 32, MARK_BATCH as u32) {
            // All loads of a batch are in flight before the first one is used. Loads beyond the last item repeat it.
            let mut classes = [0; MARK_BATCH];
            for j in 0..MARK_BATCH {
                let i = item(begin + j as u32);
                classes[j] = computed(u32::from(self.classes.load(if i < len { i } else { len - 1 })));
            }
            for j in 0..MARK_BATCH {
                let round = begin + j as u32;
                let exists = item(round) < len;
                let is_first = warp::warp_vote_ballot(warp::FULL_MASK, exists && classes[j] == 0);
                let is_second = warp::warp_vote_ballot(warp::FULL_MASK, exists && classes[j] == 1);
                if lane == round {
                    (first, second) = (is_first, is_second);
                }
            }
        }
        (first, second)
    }
}

/// The second pass for one block.
struct Move<'a, T> {
    input: Slice<'a, T>,
    planes: Planes<'a>,
    offsets: Slice<'a, u64>,
    output: SliceMut<'a, T>,
}

impl<T: Words> Move<'_, T> {
    #[inline(always)]
    unsafe fn run(self) {
        let num_items = self.input.len() as u64;
        let begin = u64::from(thread::block_idx_x()) * (THREADS * PARTITION_ITEMS) as u64;
        let end = begin + (THREADS * PARTITION_ITEMS) as u64;
        let last = if end < num_items { end - 1 } else { num_items - 1 };
        // With long segments the block is usually within one, and items need not search.
        let num_segments = self.offsets.len();
        let segment_of_block = |i: u64, low: usize| {
            partition_point::<32>(low + 1, num_segments, |s| self.offsets.load(s) <= i) - 1
        };
        let low = segment_of_block(begin, 0);
        let high = segment_of_block(last, low);
        if low == high {
            let segment = self.segment(low);
            self.move_items(begin, |_| segment)
        } else {
            self.move_items(begin, |i| self.segment(segment_of(self.offsets, i, low, high)))
        }
    }

    /// Moves the block's items from `begin` on; `segment` returns the segment of an item.
    #[inline(always)]
    unsafe fn move_items(&self, begin: u64, segment: impl Fn(u64) -> Segment) {
        let num_items = self.input.len() as u64;
        let item = |j: usize| begin + (j * THREADS) as u64 + u64::from(thread::thread_idx_x());
        // All loads are in flight before the first item is written. Loads beyond the last item repeat it.
        let mut items = [T::ZEROS; PARTITION_ITEMS];
        let mut targets = [0; PARTITION_ITEMS];
        for j in 0..PARTITION_ITEMS {
            let i = if item(j) < num_items { item(j) } else { num_items - 1 };
            items[j] = computed(self.input.load(i as usize));
            targets[j] = computed(segment(i).target(&self.planes, i));
        }
        for j in 0..PARTITION_ITEMS {
            // Only offsets that do not ascend can give a target beyond the items.
            if item(j) < num_items && targets[j] < num_items {
                self.output.store(targets[j] as usize, items[j]);
            }
        }
    }

    #[inline(always)]
    unsafe fn segment(&self, segment: usize) -> Segment {
        let Planes { first, second } = &self.planes;
        let (begin, end) = bounds(self.offsets, segment, self.input.len() as u64);
        let (first_before, second_before) = (first.get(begin).1, second.get(begin).1);
        let second_begin = begin.wrapping_add(first.get(end).1).wrapping_sub(first_before);
        let third_begin = second_begin.wrapping_add(second.get(end).1).wrapping_sub(second_before);
        Segment { begin, first_before, second_before, second_begin, third_begin }
    }
}

/// The layout of a segment's output.
#[derive(Clone, Copy)]
struct Segment {
    begin: u64,
    /// Items of class 0 before the segment.
    first_before: u64,
    /// Items of class 1 before the segment.
    second_before: u64,
    /// The begin of class 1.
    second_begin: u64,
    /// The begin of class 2.
    third_begin: u64,
}

impl Segment {
    /// Returns the output index of item `i`.
    #[inline(always)]
    unsafe fn target(&self, Planes { first, second }: &Planes<'_>, i: u64) -> u64 {
        let ((is_first, rank_first), (is_second, rank_second)) = (first.get(i), second.get(i));
        let in_first = rank_first.wrapping_sub(self.first_before);
        let in_second = rank_second.wrapping_sub(self.second_before);
        let in_third = i.wrapping_sub(self.begin).wrapping_sub(in_first).wrapping_sub(in_second);
        // All three are computed: with a branch, the loads of an item would wait for those of the previous one.
        let first = computed(self.begin.wrapping_add(in_first));
        let second = computed(self.second_begin.wrapping_add(in_second));
        let third = computed(self.third_begin.wrapping_add(in_third));
        if is_first {
            first
        } else if is_second {
            second
        } else {
            third
        }
    }
}
