//! The threshold, estimated from a random sample of the keys.
//!
//! Each warp takes the best of some samples, and the last block selects the n-th of these minima. So few numbers are
//! sorted for many samples.

use super::State;
use crate::block::nth::{NthSmem, nth};
use crate::policy::TOP_K;
use crate::primitives::generate::splitmix64;
use crate::thread::operator::Operator;
use crate::thread::ranked::*;
use crate::warp::scan::reduce;
use cuda_std::prelude::*;

const THREADS: usize = TOP_K.sample_threads;
const WARPS: usize = THREADS / 32;
/// Samples that a lane loads at once.
const BATCH: usize = TOP_K.sample_batch;
/// Minima that a thread of the last block holds.
const ITEMS: usize = TOP_K.sample_max_blocks * WARPS / THREADS;
const _: () = assert!(ITEMS * THREADS == TOP_K.sample_max_blocks * WARPS);

/// Sets the threshold of `state` to the `n`-th, from 0, of the minima of all warps. Each minimum is over `32 *
/// lane_samples` keys.
#[kernel(family = "primitives-top-k", block = THREADS, min_blocks = TOP_K.sample_min_blocks, shared = SampleSmem, hot)]
#[instances(B = [u32, u64])]
pub unsafe fn primitives_top_k_sample<B: RankBits>(
    keys: Slice<B>,
    minima: SliceMut<<B as RankBits>::Ranked>,
    state: SliceMut<u64>,
    order: KeyOrder,
    lane_samples: u32,
    n: u64,
) {
    let ranks = KeyRanks::new(order);
    Sample { keys, ranks, minima, state: State { words: state } }.run(lane_samples, n)
}

/// Shared memory of sampling.
#[repr(C)]
pub struct SampleSmem {
    nth: NthSmem,
    is_last: [u32; 1],
}

/// Returns the index of sample `i` among `len` items, of which there are at most 2^32.
#[inline(always)]
pub const fn sample_index(i: u64, len: usize) -> usize {
    // The upper half of a product with a random 32-bit number.
    (((splitmix64(i) >> 32) * len as u64) >> 32) as usize
}

/// The samples of one block.
struct Sample<'a, B: RankBits> {
    keys: Slice<'a, B>,
    ranks: KeyRanks<B>,
    /// One minimum per warp.
    minima: SliceMut<'a, B::Ranked>,
    state: State<'a>,
}

impl<B: RankBits> Sample<'_, B> {
    #[inline(always)]
    unsafe fn run(self, lane_samples: u32, n: u64) {
        let smem = shared_mem::<SampleSmem>();
        let is_last = shared_field!(smem, is_last);
        let thread = thread::thread_idx_x() as usize;

        let best = reduce::<B::Ranked, First>(self.best_of_lane(lane_samples));
        if warp::lane_id() == 0 {
            self.minima.store(thread::block_idx_x() as usize * WARPS + thread / 32, best);
        }
        thread::sync_threads();
        if thread == 0 {
            let blocks_before = self.state.arrive(State::SAMPLED_BLOCKS);
            is_last.store(0, u32::from(blocks_before + 1 == thread::grid_dim_x().into()));
        }
        thread::sync_threads();
        if is_last.load(0) != 0 {
            self.choose(n, &raw mut (*smem).nth);
        }
    }

    /// Returns the best of the lane's samples.
    #[inline(always)]
    unsafe fn best_of_lane(&self, lane_samples: u32) -> B::Ranked {
        let mut best = B::Ranked::LAST;
        let first = thread::index_1d_u64() * u64::from(lane_samples);
        let last = u64::from(lane_samples) - 1;
        let mut begin = 0;
        while begin <= last {
            // All loads of a batch are in flight before the first one is used. Loads beyond the last one repeat it.
            let mut keys = [B::ZERO; BATCH];
            let mut ids = [0; BATCH];
            for s in 0..BATCH {
                let sample = begin + s as u64;
                let index = sample_index(first + if sample < last { sample } else { last }, self.keys.len());
                keys[s] = self.keys.load(index);
                ids[s] = index as u32;
            }
            for s in 0..BATCH {
                best = First::combine(best, B::Ranked::new(self.ranks.rank(keys[s]), ids[s]));
            }
            begin += BATCH as u64;
        }
        best
    }

    #[inline(always)]
    unsafe fn choose(&self, n: u64, smem: *mut NthSmem) {
        let thread = thread::thread_idx_x() as usize;
        let mut items = [B::Ranked::LAST; ITEMS];
        for item in 0..ITEMS {
            let i = item * THREADS + thread;
            if i < self.minima.len() {
                items[item] = self.minima.load(i);
            }
        }
        let threshold = nth(items, n, smem);
        if thread == 0 {
            self.state.set_threshold(threshold);
        }
    }
}
