//! Sorts of many segments at once, each by itself, stable.
//!
//! A warp takes segments of up to 32 items and sorts them in registers. Longer ones it puts on one of two lists, and
//! blocks, which take segments from those by ticket, sort them in shared memory, or, where they do not fit, tile by tile
//! through global memory.

pub mod blocks;
pub mod warps;

use crate::thread::radix_key::DigitReader;
use cuda_std::prelude::*;

/// Where segment `s` begins, and its length: from the begins of all segments and the end of the last one. Never beyond
/// `num_items`, whatever the offsets say.
#[inline(always)]
unsafe fn segment(offsets: Slice<'_, u64>, s: usize, num_items: usize) -> (usize, usize) {
    let within = |offset: u64| if offset < num_items as u64 { offset as usize } else { num_items };
    let (begin, end) = (within(offsets.load(s)), within(offsets.load(s + 1)));
    (begin, end.saturating_sub(begin))
}

/// The bits by which items are sorted, and how keys are read and written.
#[derive(Clone, Copy)]
struct SortBy<K> {
    begin_bit: u32,
    end_bit: u32,
    /// For items that are read from the input and written to the output.
    reader: DigitReader<K, true>,
}
