//! Top-k of every segment.

use super::{Best, TopKOutput, check_count};
use crate::device::{Buffer, Layout, Region, Stream, Temp, Workspace};
use crate::error::{Error, Result};
use crate::primitives::merge::OrderArgs;
use crate::primitives::merge_sort::MergeSort;
use crate::primitives::order::{Ascending, NoValue, Order};
use crate::primitives::pairs::{Pairs, empty_view};
use crate::primitives::planned::{bytes_of, carve};
use cuda_std::mem::Slice;
use kauri_kernels::policy::TOP_K;
use kauri_kernels::primitives::top_k::segments::{
    BLOCK_K, WARP_K, primitives_top_k_by_blocks, primitives_top_k_by_warps, primitives_top_k_compose,
    primitives_top_k_pick,
};
use kauri_kernels::thread::radix_key::{Fold, KeyOrder};
use kauri_kernels::thread::ranked::{RankBits, RankKey};
use kauri_kernels::thread::words::Bits128;

/// Segments of keys, and the number of best keys of each.
#[derive(Clone, Copy)]
struct Segments<'a, B> {
    keys: Slice<'a, B>,
    offsets: Slice<'a, u64>,
    k: u32,
}

/// The method by which the best keys of a segment are found.
enum Method {
    Warps,
    Blocks,
    /// All items are packed and sorted.
    Sort(Region<Bits128>, MergeSort<Bits128, NoValue>),
}

impl Method {
    fn plan(layout: &mut Layout, len: usize, num_segments: usize, k: usize) -> Self {
        if k <= WARP_K && len / num_segments.max(1) <= TOP_K.warp_segment_items {
            Method::Warps
        } else if k <= BLOCK_K {
            Method::Blocks
        } else {
            Method::Sort(layout.reserve(len), MergeSort::plan(layout, len))
        }
    }

    /// # Safety
    /// There are as many keys and segments as planned. Input and output do not overlap, and nothing else uses them
    /// until the stream has done the work.
    unsafe fn run<B: RankBits>(
        &self,
        temp: &Temp<'_>,
        segments: Segments<'_, B>,
        order: KeyOrder,
        out: TopKOutput<'_, B>,
    ) -> Result<()>
    where
        Ascending: Order<B::Ranked, NoValue>,
    {
        let Segments { keys, offsets, k } = segments;
        let num_segments = offsets.len() - 1;
        let args = (keys, offsets, out, order, k);
        // SAFETY: passed on to the caller.
        unsafe {
            match self {
                Method::Warps => {
                    temp.stream.launch_items::<primitives_top_k_by_warps<B>>(32 * num_segments as u64, args)
                }
                Method::Blocks => {
                    temp.stream.launch::<primitives_top_k_by_blocks<B>>(num_segments as u64, args)
                }
                Method::Sort(composed, sort) => {
                    let composed = temp.view(*composed);
                    let starts = offsets.part(0, num_segments);
                    let args = (keys, starts, composed, order);
                    temp.stream.launch_items::<primitives_top_k_compose<B>>(keys.len() as u64, args)?;
                    let (items, all) = (Pairs::of_keys(composed), empty_view().read_only());
                    let by_key = OrderArgs::by_key(Fold::NONE);
                    sort.run::<Ascending>(temp, items.read_only(), items, all, by_key)?;
                    let args = (composed.read_only(), offsets, out, order, k);
                    temp.stream.launch_items::<primitives_top_k_pick<B>>(out.ids.len() as u64, args)
                }
            }
        }
    }
}

/// Returns the bytes of temporary memory for the `k` best keys of each segment: 0 for k up to 1024.
pub fn plan_segmented(len: usize, num_segments: usize, k: usize) -> u64 {
    bytes_of(|layout| Method::plan(layout, len, num_segments, k))
}

/// Writes the `k` best keys of every segment, in order, to its row of `best_keys`, and their indices in `keys` to its
/// row of `ids`. Rows of segments with fewer keys are padded like the output of [`top_k`](super::top_k).
///
/// `offsets` has the begin of each segment and, at the end, the number of keys; it ascends from 0. (With other offsets
/// the output is undefined.)
///
/// # Errors
/// [`Error::Shape`] unless the outputs have k entries per segment and there is an offset; [`Error::TooManyItems`] for
/// 2^32 keys, segments or entries per segment; [`Error::WrongDevice`], [`Error::OutOfMemory`], and errors of the
/// driver.
#[expect(clippy::too_many_arguments, reason = "three inputs, two outputs, and their parameters")]
pub fn top_k_segmented<K: RankKey>(
    stream: &Stream,
    workspace: &mut Workspace,
    keys: &Buffer<K>,
    offsets: &Buffer<u64>,
    k: usize,
    best: Best,
    best_keys: &mut Buffer<K>,
    ids: &mut Buffer<u32>,
) -> Result<()>
where
    Ascending: Order<<K::Bits as RankBits>::Ranked, NoValue>,
{
    let Some(num_segments) = offsets.len().checked_sub(1) else {
        return Err(Error::Shape { what: "offsets, one more than segments", expected: 1, got: 0 });
    };
    [keys.len(), num_segments, k].into_iter().try_for_each(check_count)?;
    keys.check_device(stream)?;
    offsets.check_device(stream)?;
    ids.check(stream, "indices of the best keys", num_segments.saturating_mul(k))?;
    best_keys.check(stream, "best keys", ids.len())?;
    if ids.is_empty() {
        return Ok(());
    }
    let plan = |layout: &mut _| Method::plan(layout, keys.len(), num_segments, k);
    let (method, temp) = carve(stream, workspace, "top-k of segments", plan)?;
    let out = TopKOutput { keys: best_keys.bits_mut::<K::Bits>(), ids: ids.slice_mut() };
    let segments = Segments { keys: keys.bits(), offsets: offsets.slice(), k: k as u32 };
    // SAFETY: the lengths agree, the borrows keep buffers apart, and buffers wait for the device before they are freed.
    unsafe { method.run(&temp, segments, best.order::<K>(), out) }
}
