//! Writing of the candidates to the result, in order.

pub use crate::block::counting_rank::BLOCK_ITEMS;
use crate::block::counting_rank::{CountingRankSmem, THREADS, rank_by_counting};
use crate::policy::{PER_ITEM_THREADS, TOP_K};
use crate::thread::items::strided;
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
    out: TopKOutput<'_, B>,
    order: KeyOrder,
) {
    let count = count.load(0) as usize;
    let best = Best { out, ranks: KeyRanks::new(order) };
    best.pad(count);
    rank_by_counting(candidates.part(0, count), shared_mem(), |rank, item| {
        if rank < best.out.ids.len() {
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
    out: TopKOutput<'_, B>,
    order: KeyOrder,
) {
    let i = thread::index_1d_u64() as usize;
    let best = Best { out, ranks: KeyRanks::new(order) };
    if i < best.out.ids.len() {
        best.store(i, if (i as u64) < count.load(0) { sorted.load(i) } else { Ranked::LAST });
    }
}

/// The output of the best keys and their indices.
#[derive(Clone, Copy, KernelArgs)]
pub struct TopKOutput<'a, B> {
    /// The keys.
    pub keys: SliceMut<'a, B>,
    /// The indices.
    pub ids: SliceMut<'a, u32>,
}

/// The output of the best items.
#[derive(Clone, Copy)]
pub(in crate::primitives) struct Best<'a, B> {
    pub(in crate::primitives) out: TopKOutput<'a, B>,
    pub(in crate::primitives) ranks: KeyRanks<B>,
}

impl<B: RankBits> Best<'_, B> {
    #[inline(always)]
    pub(in crate::primitives) unsafe fn store(&self, i: usize, item: B::Ranked) {
        self.out.keys.store(i, self.ranks.bits(item.rank()));
        self.out.ids.store(i, item.id());
    }

    /// Pads the output behind `num_candidates` candidates.
    #[inline(always)]
    unsafe fn pad(&self, num_candidates: usize) {
        let stride = thread::grid_dim_x() as usize * THREADS;
        for i in strided(num_candidates + thread::index_1d_u64() as usize, self.out.ids.len(), stride) {
            self.store(i, Ranked::LAST);
        }
    }
}
