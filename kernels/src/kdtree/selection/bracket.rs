//! Brackets: two points that enclose the pivot of a node with high probability, for all nodes of a run in a round.
//!
//! The samples of a run are split level by level at their own pivots. The bracket of a node is a range of its samples around the expected
//! rank of the pivot. Samples within the range are the ends of its bins.

use super::{COUNTS, MAX_LEVELS, Points, Round, Run};
use crate::block::segments::SegmentSort;
use crate::policy::SELECTION;
use crate::primitives::generate::splitmix64;
use crate::thread::coord::Coord;
use crate::thread::items::strided;
use crate::thread::ranked::{RankBits, Ranked};
use crate::thread::words::Words;
use cuda_std::prelude::*;

const THREADS: usize = SELECTION.bracket_threads;

/// Returns the most samples of a run.
pub const fn max_samples<C>() -> usize {
    THREADS * if size_of::<C>() == 4 { SELECTION.bracket_items[0] } else { SELECTION.bracket_items[1] }
}

/// Writes the ends of the bins of all nodes of a round, and clears their counters. Of `2^log_samples` samples per run, the ends are
/// `gaps` ranks apart, from half the bins below the expected rank of the pivot to half the bins above; beyond the samples, an end is before or
/// after all points. One block per run.
#[kernel(family = "kdtree", block = THREADS, min_blocks = 1, shared = BracketSmem<C, ITEMS>, hot)]
#[instances(C = [f32, i32], ITEMS = [8])]
#[instance(f64, 4)]
pub unsafe fn kdtree_bracket<C: Coord, const ITEMS: usize>(
    round: Round<'_, C>,
    log_samples: u32,
    gaps: u32,
) {
    let run = thread::block_idx_x();
    let smem = shared_mem();
    let root = round.run(run, 1);
    Bracket::<C, ITEMS> { points: round.points(), round, run, root, log_samples, gaps, smem }.run();
}

/// Shared memory of a block.
#[repr(C, align(16))]
pub struct BracketSmem<C: Coord, const ITEMS: usize> {
    exchange: [[C::Ranked; THREADS]; ITEMS],
    /// The number of samples of each node of the run, and the expected rank of its pivot among them.
    num_samples: [u32; 1 << MAX_LEVELS],
    expected: [u32; 1 << MAX_LEVELS],
}

/// The brackets of a run.
struct Bracket<'a, C: Coord, const ITEMS: usize> {
    points: Points<'a, C>,
    round: Round<'a, C>,
    run: u32,
    root: Run,
    log_samples: u32,
    gaps: u32,
    smem: *mut BracketSmem<C, ITEMS>,
}

impl<C: Coord, const ITEMS: usize> Bracket<'_, C, ITEMS> {
    #[inline(always)]
    unsafe fn run(self) {
        self.clear();
        let sort = SegmentSort::<C::Ranked, ITEMS> { exchange: shared_field!(self.smem, exchange) };
        let first = thread::thread_idx_x() * ITEMS as u32;
        // The low half word of an item is the number of its sample, the high one the rank of the sample's id.
        let mut items = [C::Ranked::LAST; ITEMS];
        for i in 0..ITEMS {
            if first + (i as u32) < 1 << self.log_samples {
                let id = u64::from(self.points.id(self.position(first + i as u32)));
                items[i] = C::Ranked::new(C::Key::from_high_bits(id << 32), first + i as u32);
            }
        }
        sort.sort(&mut items, self.log_samples);
        for i in 0..ITEMS {
            let rank = first + i as u32;
            items[i] = self.with_key(items[i], rank << 16 | items[i].id() & 0xFFFF, 0);
        }
        let mut depth = 0;
        while depth < self.round.num_levels {
            let log_len = self.log_samples - depth;
            self.expect(depth);
            sort.sort(&mut items, log_len);
            let exchange = shared_field!(self.smem, exchange);
            thread::sync_threads();
            for i in 0..ITEMS {
                exchange.store((first + i as u32) as usize, items[i]);
            }
            thread::sync_threads();
            self.write_ends(depth);
            depth += 1;
            if depth < self.round.num_levels {
                self.move_to_halves(&mut items, log_len);
                for i in 0..ITEMS {
                    items[i] = self.with_key(items[i], items[i].id(), depth);
                }
            }
        }
    }

    /// Clears the counters of the run.
    #[inline(always)]
    unsafe fn clear(&self) {
        let nodes = 1 << self.round.num_levels;
        for i in strided(thread::thread_idx_x(), 2 * nodes * COUNTS as u32, THREADS as u32) {
            let (code, count) = (i / COUNTS as u32, i % COUNTS as u32);
            if code > 0 {
                self.round.counts(self.run, code).store(count as usize, 0);
            }
        }
        let num_bins = self.round.num_bins.before(self.round.num_levels);
        for i in strided(thread::thread_idx_x() as usize, num_bins, THREADS) {
            self.round.bins.store(self.run as usize * num_bins + i, 0);
        }
        if thread::thread_idx_x() == 0 {
            shared_field!(self.smem, num_samples).store(1, 1 << self.log_samples);
        }
    }

    /// Returns the position of a sample: a random number of 32 bits, scaled to the length of the run.
    #[inline(always)]
    fn position(&self, sample: u32) -> usize {
        let random = splitmix64(u64::from(self.root.node) << 32 | u64::from(sample)) >> 32;
        self.root.begin + ((random * u64::from(self.root.len)) >> 32) as usize
    }

    /// Returns a sample with its key on the axis of a level, unless the slot is empty.
    #[inline(always)]
    unsafe fn with_key(&self, item: C::Ranked, id: u32, depth: u32) -> C::Ranked {
        if item.is_before(C::Ranked::LAST) {
            let position = self.position(id & 0xFFFF);
            let axis = self.round.axis(self.run, depth);
            C::Ranked::new(self.points.coord(position, axis).key(), id)
        } else {
            item
        }
    }

    /// Computes the expected ranks of the pivots of a level, and the numbers of samples of the next level.
    #[inline(always)]
    unsafe fn expect(&self, depth: u32) {
        let num_samples = shared_field!(self.smem, num_samples);
        thread::sync_threads();
        let code = (1 << depth) + thread::thread_idx_x();
        if thread::thread_idx_x() < 1 << depth {
            let node = self.round.run(self.run, code);
            let num = num_samples.load(code as usize);
            let expected = if node.len == 0 {
                0
            } else {
                u64::from(node.left_len) * u64::from(num) / u64::from(node.len)
            };
            shared_field!(self.smem, expected).store(code as usize, expected as u32);
            if depth + 1 < self.round.num_levels {
                let half = 1 << (self.log_samples - depth - 1);
                let (left, right) = (expected as u32, num - expected as u32);
                num_samples.store(2 * code as usize, if left < half { left } else { half });
                num_samples.store(2 * code as usize + 1, if right < half { right } else { half });
            }
        }
        thread::sync_threads();
    }

    /// Writes the ends of the bins of the nodes of a level, whose samples are sorted.
    #[inline(always)]
    unsafe fn write_ends(&self, depth: u32) {
        let log_len = self.log_samples - depth;
        let num_bins = self.round.num_bins.get(depth);
        let half = self.gaps * (num_bins / 2);
        let axis = self.round.axis(self.run, depth);
        let ends_per_node = num_bins + 1;
        for i in strided(thread::thread_idx_x(), ends_per_node << depth, THREADS as u32) {
            let (code, end) = ((1 << depth) + i / ends_per_node, i % ends_per_node);
            let rank = end * self.gaps + shared_field!(self.smem, expected).load(code as usize);
            let sample = if rank < half {
                C::Ranked::ZEROS
            } else if rank - half >= shared_field!(self.smem, num_samples).load(code as usize) {
                C::Ranked::LAST
            } else {
                let slot = ((code - (1 << depth)) << log_len) + rank - half;
                let item = shared_field!(self.smem, exchange).load(slot as usize);
                self.points.ranked(self.position(item.id() & 0xFFFF), axis)
            };
            self.round.ends(self.run, code).store(end as usize, sample);
        }
    }

    /// Moves the samples before the expected rank of each node to the lower half of its segment, and the others to the upper one. Of samples
    /// that do not fit, evenly spaced ones remain. The samples are in the exchange memory.
    #[inline(always)]
    unsafe fn move_to_halves(&self, items: &mut [C::Ranked; ITEMS], log_len: u32) {
        let exchange = shared_field!(self.smem, exchange);
        let first = thread::thread_idx_x() * ITEMS as u32;
        let half = 1_u32 << (log_len - 1);
        let depth = self.log_samples - log_len;
        for i in 0..ITEMS {
            let slot = first + i as u32;
            items[i] = C::Ranked::LAST;
            if slot < 1 << self.log_samples {
                let code = (1 << depth) + (slot >> log_len);
                let segment = slot >> log_len << log_len;
                let num = shared_field!(self.smem, num_samples).load(code as usize);
                let expected = shared_field!(self.smem, expected).load(code as usize);
                let is_left = slot & half == 0;
                let (begin, len) = if is_left { (0, expected) } else { (expected, num - expected) };
                let rank = slot & (half - 1);
                let from = if len > half { rank * len / half } else { rank };
                if from < len {
                    items[i] = exchange.load((segment + begin + from) as usize);
                }
            }
        }
        thread::sync_threads();
    }
}
