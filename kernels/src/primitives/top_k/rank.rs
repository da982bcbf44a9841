//! Candidates to their places in the result.

use crate::policy::{PER_ITEM_THREADS, TOP_K};
use crate::thread::operator::Sum;
use crate::thread::ranked::*;
use crate::warp::scan::reduce;
use cuda_std::prelude::*;

const THREADS: usize = TOP_K.rank_threads;
const WARPS: usize = THREADS / 32;
/// Candidates that a warp finds the places of.
const ITEMS: usize = TOP_K.rank_items;
/// Candidates in shared memory.
const STAGED: usize = TOP_K.staged_items;
/// Candidates that a block finds the places of.
pub const BLOCK_ITEMS: usize = WARPS * ITEMS;

/// Writes each of the first `count` candidates to the place that it has among them, if that is in the output; a block
/// [`BLOCK_ITEMS`] candidates. If there are fewer than the output has places, the last ones become padding.
#[kernel(
    family = "primitives-top-k", block = THREADS, min_blocks = TOP_K.min_blocks,
    shared = RankSmem<<B as RankBits>::Ranked>, hot
)]
#[instance(u32)]
#[instance(u64)]
pub unsafe fn primitives_top_k_rank<B: RankBits>(
    candidates: Slice<<B as RankBits>::Ranked>,
    count: Slice<u64>,
    keys_out: SliceMut<B>,
    ids_out: SliceMut<u32>,
    order: u32,
) {
    let count = count.load(0) as usize;
    let ranks = KeyRanks::new(KeyOrder::from_bits(order));
    let best = Best { keys: keys_out, ids: ids_out, ranks };
    Rank { candidates: candidates.part(0, count), best }.run()
}

/// Writes candidates that are sorted to the output, and padding behind them; a thread an item of the output.
#[kernel(family = "primitives-top-k", block = PER_ITEM_THREADS)]
#[instance(u32)]
#[instance(u64)]
pub unsafe fn primitives_top_k_write<B: RankBits>(
    sorted: Slice<<B as RankBits>::Ranked>,
    count: Slice<u64>,
    keys_out: SliceMut<B>,
    ids_out: SliceMut<u32>,
    order: u32,
) {
    let i = thread::index_1d_u64() as usize;
    let best = Best { keys: keys_out, ids: ids_out, ranks: KeyRanks::new(KeyOrder::from_bits(order)) };
    if i < best.ids.len() {
        best.store(i, if (i as u64) < count.load(0) { sorted.load(i) } else { Ranked::LAST });
    }
}

/// Shared memory of the counting.
#[repr(C, align(16))]
pub struct RankSmem<R> {
    candidates: [R; STAGED],
}

/// The result.
#[derive(Clone, Copy)]
pub(in crate::primitives) struct Best<'a, B> {
    pub(in crate::primitives) keys: SliceMut<'a, B>,
    pub(in crate::primitives) ids: SliceMut<'a, u32>,
    pub(in crate::primitives) ranks: KeyRanks<B>,
}

impl<B: RankBits> Best<'_, B> {
    #[inline(always)]
    pub(in crate::primitives) unsafe fn store(&self, i: usize, item: B::Ranked) {
        self.keys.store(i, self.ranks.bits(item.rank()));
        self.ids.store(i, item.id());
    }
}

/// One block's candidates.
struct Rank<'a, B: RankBits> {
    candidates: Slice<'a, B::Ranked>,
    best: Best<'a, B>,
}

impl<B: RankBits> Rank<'_, B> {
    #[inline(always)]
    unsafe fn run(self) {
        let staged = shared_field!(shared_mem::<RankSmem<B::Ranked>>(), candidates);
        let len = self.candidates.len();
        let thread = thread::thread_idx_x() as usize;
        let (lane, warp) = (thread % 32, thread / 32);
        self.pad();
        // The whole block.
        if thread::block_idx_x() as usize * BLOCK_ITEMS >= len {
            return;
        }

        let first = thread::block_idx_x() as usize * BLOCK_ITEMS + warp * ITEMS;
        let mut own = [B::Ranked::LAST; ITEMS];
        let mut item = 0;
        while item < ITEMS {
            if first + item < len {
                own[item] = self.candidates.load(first + item);
            }
            item += 1;
        }

        let mut before = [0u32; ITEMS];
        let mut begin = 0;
        while begin < len {
            let num_staged = if len - begin < STAGED { len - begin } else { STAGED };
            let mut i = thread;
            while i < num_staged {
                staged.store(i, self.candidates.load(begin + i));
                i += THREADS;
            }
            thread::sync_threads();
            let mut i = lane;
            while i < num_staged {
                let other = staged.load(i);
                let mut item = 0;
                while item < ITEMS {
                    before[item] += u32::from(other.is_before(own[item]));
                    item += 1;
                }
                i += 32;
            }
            thread::sync_threads();
            begin += STAGED;
        }

        let mut item = 0;
        while item < ITEMS {
            let place = reduce::<u32, Sum>(before[item]) as usize;
            if lane == 0 && first + item < len && place < self.best.ids.len() {
                self.best.store(place, own[item]);
            }
            item += 1;
        }
    }

    /// Pads what the candidates do not fill.
    #[inline(always)]
    unsafe fn pad(&self) {
        let stride = thread::grid_dim_x() as usize * THREADS;
        let mut i = self.candidates.len() + thread::index_1d_u64() as usize;
        while i < self.best.ids.len() {
            self.best.store(i, Ranked::LAST);
            i += stride;
        }
    }
}
