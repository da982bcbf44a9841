//! Stable sorts of many independent segments in a few launches.
//!
//! A warp sorts segments of up to 128 items in registers, and puts longer ones on one of two lists. Blocks take segments
//! from the lists by ticket. They sort them in shared memory if they fit, else tile by tile through global memory.

pub mod blocks;
pub mod warps;

use cuda_std::prelude::*;

/// A sort of segments.
#[derive(Clone, Copy, KernelArgs)]
pub struct SegmentedSort<'a, K, V> {
    /// The items.
    pub source: crate::thread::carried::Source<'a, K, V>,
    /// The begins of the segments, and the end of the last one.
    pub offsets: Slice<'a, u64>,
    /// The sorted items.
    pub target: crate::thread::carried::Pairs<'a, K, V>,
    /// The bits and the order of the keys.
    pub by: crate::thread::radix_key::SortBy,
}

impl<K: Copy, V> SegmentedSort<'_, K, V> {
    /// Returns the begin and length of segment `s`.
    #[inline(always)]
    unsafe fn segment(&self, s: usize) -> (usize, usize) {
        segment(self.offsets, s, self.source.keys.len())
    }
}

/// Returns the begin and length of segment `s`, never beyond `num_items`, whatever the offsets are.
#[inline(always)]
unsafe fn segment(offsets: Slice<'_, u64>, s: usize, num_items: usize) -> (usize, usize) {
    let within = |offset: u64| if offset < num_items as u64 { offset as usize } else { num_items };
    let (begin, end) = (within(offsets.load(s)), within(offsets.load(s + 1)));
    (begin, end.saturating_sub(begin))
}
