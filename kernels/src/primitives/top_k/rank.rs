//! Writing of the candidates to the result, in order.

pub use crate::block::counting_rank::BLOCK_ITEMS;
use crate::block::counting_rank::{CountingRankSmem, THREADS, rank_by_counting};
use crate::policy::{PER_ITEM_THREADS, TOP_K};
use crate::thread::ranked::*;
use cuda_std::prelude::*;

/// Ranks the first `count` candidates, and writes each one whose rank is within the output; a block per [`BLOCK_ITEMS`]
/// candidates. If there are fewer candidates than the output has entries, the rest is padded.
#[kernel(
    family = "primitives-top-k", block = THREADS, min_blocks = TOP_K.min_blocks,
    shared = CountingRankSmem<<B as RankBits>::Ranked>, hot
)]
#[instances(B = [u32, u64])]
pub unsafe fn primitives_top_k_rank<B: RankBits>(
    candidates: Slice<<B as RankBits>::Ranked>,
    count: Slice<u64>,
    keys_out: SliceMut<B>,
    ids_out: SliceMut<u32>,
    order: KeyOrder,
) {
    let count = count.load(0) as usize;
    let ranks = KeyRanks::new(order);
    let best = Best { keys: keys_out, ids: ids_out, ranks };
    best.pad(count);
    rank_by_counting(candidates.part(0, count), shared_mem(), |rank, item| {
        if rank < best.ids.len() {
            best.store(rank, item);
        }
    });
}

/// Writes sorted candidates to the output, padded; a thread per entry of the output.
#[kernel(family = "primitives-top-k", block = PER_ITEM_THREADS)]
#[instances(B = [u32, u64])]
pub unsafe fn primitives_top_k_write<B: RankBits>(
    sorted: Slice<<B as RankBits>::Ranked>,
    count: Slice<u64>,
    keys_out: SliceMut<B>,
    ids_out: SliceMut<u32>,
    order: KeyOrder,
) {
    let i = thread::index_1d_u64() as usize;
    let best = Best { keys: keys_out, ids: ids_out, ranks: KeyRanks::new(order) };
    if i < best.ids.len() {
        best.store(i, if (i as u64) < count.load(0) { sorted.load(i) } else { Ranked::LAST });
    }
}

/// The output of the best items.
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

    /// Pads the output behind `num_candidates` candidates.
    #[inline(always)]
    unsafe fn pad(&self, num_candidates: usize) {
        let stride = thread::grid_dim_x() as usize * THREADS;
        let mut i = num_candidates + thread::index_1d_u64() as usize;
        while i < self.ids.len() {
            self.store(i, Ranked::LAST);
            i += stride;
        }
    }
}
