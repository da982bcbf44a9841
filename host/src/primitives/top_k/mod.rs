//! Top-k: the k best keys, sorted, with their indices.
//!
//! Keys are `u32`, `i32`, `f32`, `u64`, `i64`, `f64`; the best are the smallest or the largest. Equal keys keep the
//! order of the input. Floats have IEEE 754's total order, in which -0.0 is less than 0.0, but NaNs are never better
//! than numbers.
//!
//! [`top_k_segmented`] finds the k best keys of every segment of an array, by a warp per segment (k up to 32) or a
//! block per segment (k up to 1024).
//!
//! The keys are read once. A random sample gives a threshold that k items, or a few more, reach; one pass collects
//! these candidates, which are then ranked by counting, or sorted if they are many. The sample is the same on every
//! run. If its threshold fails (about once in 10^9 inputs), further passes of the same launches count digits. Results
//! are the same on every run either way, and the host never waits.
//!
//! | keys | k | candidates expected / capacity | temporary memory, f32 |
//! |---|---|---|---|
//! | 100M | 1 | 760 / 6,300 | 92 KB |
//! | 100M | 1024 | 3,700 / 8,900 | 113 KB |
//! | 100M | 100,000 | 151,000 / 218,000 | 3.5 MB |
//! | any | more than an eighth of the keys | all | 16 bytes per key |

mod sampling;
mod segmented;

use super::merge::OrderArgs;
use super::merge_sort::MergeSort;
use super::order::{Ascending, NoValue, Order};
use super::pairs::Pairs;
use super::planned::{bytes_of, carve};
use crate::device::{Buffer, Layout, Region, Stream, Temp, Workspace};
use crate::error::{self, Result};
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::block::tile::tile_items;
use kauri_kernels::policy::{STREAM_ROWS, TOP_K};
use kauri_kernels::primitives::top_k::State;
use kauri_kernels::primitives::top_k::filter::primitives_top_k_filter;
pub(crate) use kauri_kernels::primitives::top_k::rank::TopKOutput;
use kauri_kernels::primitives::top_k::rank::{BLOCK_ITEMS, primitives_top_k_rank, primitives_top_k_write};
use kauri_kernels::primitives::top_k::sample::primitives_top_k_sample;
use kauri_kernels::primitives::top_k::select::primitives_top_k_select;
use kauri_kernels::thread::radix_key::{Fold, KeyOrder};
use kauri_kernels::thread::ranked::RankBits;
pub use kauri_kernels::thread::ranked::RankKey;
use sampling::Sampling;
pub use segmented::{plan_segmented, top_k_segmented};

/// The most keys: indices are 32-bit, and `u32::MAX` means none.
const MAX_KEYS: u64 = u32::MAX as u64;

/// The keys that count as best.
///
/// ```
/// use kauri::primitives::cpu::top_k::top_k;
/// use kauri::primitives::top_k::Best;
///
/// let keys = [5u32, 1, 4, 2];
/// assert_eq!(top_k(&keys, 2, Best::Smallest).0, [1, 2]);
/// assert_eq!(top_k(&keys, 2, Best::Largest).0, [5, 4]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Best {
    /// The smallest keys.
    Smallest,
    /// The largest keys.
    Largest,
}

impl Best {
    /// Returns the order that puts the best keys first.
    pub(crate) fn order<K: RankKey>(self) -> KeyOrder {
        match self {
            Best::Smallest => K::ORDER,
            Best::Largest => K::ORDER.with(KeyOrder::DESCENDING),
        }
    }
}

/// The temporary memory of top-k of up to a number of keys.
pub(crate) struct TopK<B: RankBits> {
    state: Region<u64>,
    candidates: Region<B::Ranked>,
    sample: Option<(Sampling, Region<B::Ranked>)>,
    /// `None` if the candidates are few enough to be ranked by counting.
    sort: Option<MergeSort<B::Ranked, NoValue>>,
}

impl<B: RankBits> TopK<B>
where
    Ascending: Order<B::Ranked, NoValue>,
{
    /// Plans the `k` best of `len` keys; there is at least one key.
    pub(crate) fn plan(layout: &mut Layout, len: usize, k: usize) -> Self {
        let sampling = Sampling::new(len, k);
        let candidates = sampling.map_or(len, |sampling| sampling.candidates);
        Self {
            state: layout.reserve(State::WORDS),
            candidates: layout.reserve(candidates),
            sample: sampling.map(|sampling| (sampling, layout.reserve(sampling.num_minima()))),
            sort: (candidates > TOP_K.ranked_items).then(|| MergeSort::plan(layout, candidates)),
        }
    }

    /// Writes as many of the best keys as were planned.
    ///
    /// # Safety
    /// There are as many keys as planned. Keys and output do not overlap, and nothing else uses them until the stream
    /// has done the work.
    pub(crate) unsafe fn run(
        &self,
        temp: &Temp<'_>,
        keys: Slice<'_, B>,
        order: KeyOrder,
        out: TopKOutput<'_, B>,
    ) -> Result<()> {
        temp.clear(self.state)?;
        let (state, candidates) = (temp.view(self.state), temp.view(self.candidates));
        let num_tiles = keys.len().div_ceil(tile_items::<B, STREAM_ROWS>());
        // SAFETY: passed on to the caller; the state is zeros.
        unsafe {
            if let Some((sampling, minima)) = &self.sample {
                let args =
                    (keys, temp.view(*minima), state, order, sampling.lane_samples, sampling.rank as u64);
                temp.stream.launch::<primitives_top_k_sample<B>>(sampling.num_blocks as u64, args)?;
            }
            let num_blocks = num_tiles.min(TOP_K.filter_max_blocks) as u64;
            let has_threshold = u32::from(self.sample.is_some());
            let args = (keys, candidates, state, order, has_threshold);
            temp.stream.launch::<primitives_top_k_filter<B>>(num_blocks, args)?;
            let mut count = State::FOUND;
            if self.sample.is_some() {
                let num_blocks = num_tiles.min(TOP_K.select_max_blocks) as u64;
                let args = (keys, candidates, state, order, out.ids.len() as u64);
                temp.stream.launch::<primitives_top_k_select<B>>(num_blocks, args)?;
                count = State::SELECTED;
            }
            let count = state.part(count, 1).read_only();
            self.write(temp, candidates, count, order, out)
        }
    }

    /// Writes the candidates to the output, in order.
    ///
    /// # Safety
    /// Like [`run`](Self::run).
    unsafe fn write(
        &self,
        temp: &Temp<'_>,
        candidates: SliceMut<'_, B::Ranked>,
        count: Slice<'_, u64>,
        order: KeyOrder,
        out: TopKOutput<'_, B>,
    ) -> Result<()> {
        let args = (candidates.read_only(), count, out, order);
        // SAFETY: passed on to the caller.
        unsafe {
            if let Some(sort) = &self.sort {
                let (items, by_key) = (Pairs::of_keys(candidates), OrderArgs::by_key(Fold::NONE));
                sort.run::<Ascending>(temp, items.read_only(), items, count, by_key)?;
                temp.stream.launch_items::<primitives_top_k_write<B>>(out.ids.len() as u64, args)
            } else {
                // At least one block, which writes the padding.
                let num_blocks = candidates.len().div_ceil(BLOCK_ITEMS).max(1) as u64;
                temp.stream.launch::<primitives_top_k_rank<B>>(num_blocks, args)
            }
        }
    }
}

/// Returns the bytes of temporary memory for the `k` best of `len` keys.
pub fn plan<K: RankKey>(len: usize, k: usize) -> u64
where
    Ascending: Order<<K::Bits as RankBits>::Ranked, NoValue>,
{
    bytes_of(|layout| TopK::<K::Bits>::plan(layout, len, k))
}

/// Writes the k best keys in order to `best_keys`, and their indices to `ids`; k is the length of both. If there are
/// fewer keys than k, the last entries have index `u32::MAX` and the key NaN, or for integers the worst key of the
/// type.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) if the outputs differ in length, [`Error::TooManyItems`](crate::Error::TooManyItems) for 2^32 keys
/// or more, [`Error::WrongDevice`](crate::Error::WrongDevice), [`Error::OutOfMemory`](crate::Error::OutOfMemory), and errors of the driver.
pub fn top_k<K: RankKey>(
    stream: &Stream,
    workspace: &mut Workspace,
    keys: &Buffer<K>,
    best: Best,
    best_keys: &mut Buffer<K>,
    ids: &mut Buffer<u32>,
) -> Result<()>
where
    Ascending: Order<<K::Bits as RankBits>::Ranked, NoValue>,
{
    keys.check_device(stream)?;
    best_keys.check(stream, "best keys", ids.len())?;
    ids.check_device(stream)?;
    check_count(keys.len())?;
    if ids.is_empty() {
        return Ok(());
    }
    let plan = |layout: &mut _| TopK::<K::Bits>::plan(layout, keys.len(), ids.len());
    let (top_k, temp) = carve(stream, workspace, "top-k", plan)?;
    let out = TopKOutput { keys: best_keys.bits_mut(), ids: ids.slice_mut() };
    // SAFETY: the lengths agree, the borrows keep buffers apart, and buffers wait for the device before they are freed.
    unsafe { top_k.run(&temp, keys.bits(), best.order::<K>(), out) }
}

/// Returns an error for more keys than there are indices.
pub(super) fn check_count(len: usize) -> Result<()> {
    error::check_count("keys", len as u64, MAX_KEYS)
}
