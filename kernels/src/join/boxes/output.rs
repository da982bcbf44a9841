//! The output of a join of boxes: counts, rows of ids, or a list of pairs.

use crate::thread::operator::Sum;
use crate::warp::scan::reduce;
use cuda_std::prelude::*;

/// Where a join writes its pairs. A row belongs to a left box; its items are right boxes.
#[derive(Clone, Copy, KernelArgs)]
pub struct PairOutput<'a> {
    /// The number of pairs of each row so far, zeros at first; empty if only the total is counted.
    pub counts: SliceMut<'a, u32>,
    /// The total; empty if the rows are counted.
    pub total: SliceMut<'a, u64>,
    /// Where the rows begin, and the end of the last one; empty while pairs are only counted.
    pub offsets: Slice<'a, u64>,
    /// The ids of the rows.
    pub ids: SliceMut<'a, u32>,
    /// The pairs in place of the ids: the left id in the low half, the right id in the high half.
    pub pairs: SliceMut<'a, u64>,
}

impl PairOutput<'_> {
    /// Writes item number `index` of a row that begins at `begin`, unless it exceeds the capacity.
    #[inline(always)]
    pub(super) unsafe fn write(&self, begin: u64, row: u32, index: u32, item: u32) {
        let at = begin as usize + index as usize;
        if at < self.ids.len() {
            self.ids.store(at, item);
        }
        if at < self.pairs.len() {
            self.pairs.store(at, u64::from(item) << 32 | u64::from(row));
        }
    }

    /// Returns where a row begins.
    #[inline(always)]
    pub(super) unsafe fn begin(&self, row: u32) -> u64 {
        self.offsets.load(row as usize)
    }

    /// Reserves `num` items of a row that several threads write, and returns the index of the first.
    #[inline(always)]
    pub(super) unsafe fn reserve(&self, row: u32, num: u32) -> u32 {
        self.counts.atomic_add(row as usize, num, Ordering::Relaxed, Scope::Device)
    }

    /// Appends a pair: adds it to its row or to the total, and writes it if the offsets are known.
    #[inline(always)]
    pub(super) unsafe fn append(&self, row: u32, item: u32) {
        if self.counts.is_empty() {
            self.total.atomic_add(0, 1, Ordering::Relaxed, Scope::Device);
            return;
        }
        let index = self.reserve(row, 1);
        if !self.offsets.is_empty() {
            self.write(self.begin(row), row, index, item);
        }
    }

    /// Adds the pairs that the threads of a warp have counted to the total, unless the rows are counted.
    ///
    /// # Safety
    /// All lanes call.
    #[inline(always)]
    pub(super) unsafe fn add_to_total(&self, count: u32) {
        if !self.counts.is_empty() {
            return;
        }
        // The sum of a warp can exceed `u32`.
        let sum = reduce::<u64, Sum>(count.into());
        if warp::lane_id() == 0 && sum > 0 {
            self.total.atomic_add(0, sum, Ordering::Relaxed, Scope::Device);
        }
    }
}
