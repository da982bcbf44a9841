//! The output of a join of boxes: counts, rows of ids, or a list of pairs.

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
}
