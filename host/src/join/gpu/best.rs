//! The best pairs so far: kernels append candidates, and the best k of them are kept between launches.

use crate::device::{Layout, Region, Temp};
use crate::error::Result;
use crate::primitives::merge::OrderArgs;
use crate::primitives::merge_sort::MergeSort;
use crate::primitives::order::{Ascending, NoValue};
use crate::primitives::pairs::{Pairs, Source};
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::block::counting_rank::BLOCK_ITEMS;
use kauri_kernels::join::best::{join_clip, join_keep_best, join_offer, join_settle, state};
use kauri_kernels::policy::JOIN;
use kauri_kernels::thread::radix_key::Fold;
use kauri_kernels::thread::ranked::Ranked;
use kauri_kernels::thread::words::Bits128;

/// Length of the state in pairs.
const STATE: usize = state::LEN / 2;

/// Scratch memory of the best pairs.
pub(in crate::join) struct BestPairs {
    k: usize,
    /// Two arrays of the state and the candidate pairs, which swap after each selection.
    pairs: [Region<Bits128>; 2],
    /// The sort that selects the best pairs if k is large, and the number of pairs to sort.
    sort: Option<(MergeSort<Bits128, NoValue>, Region<u64>)>,
}

impl BestPairs {
    pub(in crate::join) fn plan(layout: &mut Layout, k: usize) -> Self {
        let capacity = JOIN.room(k);
        let sort = (k > JOIN.counted_pairs).then(|| (MergeSort::plan(layout, capacity), layout.reserve(1)));
        let mut array = || layout.reserve(STATE + capacity);
        Self { k, pairs: [array(), array()], sort }
    }

    /// Returns the best of the pairs that `offer` offers, none after `threshold`. If the candidates overflowed, calls `offer` again
    /// with the threshold that was found, until no pair is lost.
    pub(in crate::join) fn run<'p, 'a>(
        &'p self,
        temp: &'p Temp<'a>,
        mut threshold: Bits128,
        mut offer: impl FnMut(&mut RunningBest<'p, 'a>) -> Result<()>,
    ) -> Result<Vec<Bits128>> {
        loop {
            let mut running = self.begin(temp, threshold)?;
            offer(&mut running)?;
            let result = running.read()?;
            if !result.has_overflowed {
                return Ok(result.pairs);
            }
            threshold = result.threshold;
        }
    }

    /// Begins without pairs and with a threshold.
    pub(super) fn begin<'p, 'a>(
        &'p self,
        temp: &'p Temp<'a>,
        threshold: Bits128,
    ) -> Result<RunningBest<'p, 'a>> {
        let arrays = self.pairs.map(|array| {
            let all = temp.view(array);
            // SAFETY: the first pairs of the array hold the words of the state.
            unsafe {
                let state = SliceMut::from_raw_parts(all.as_ptr().cast(), state::LEN);
                PairArray { all, state, pairs: all.part(STATE, all.len() - STATE) }
            }
        });
        let state = arrays[0].state;
        if threshold == Bits128::LAST {
            // Without a threshold no upload is needed.
            // SAFETY: nothing else uses the memory of the plan.
            unsafe {
                temp.stream.fill_bytes(state, 0)?;
                temp.stream.fill_bytes(state.part(state::THRESHOLD, 2), 0xFF)?;
            }
        } else {
            temp.upload(state, &[0, 0, threshold.0, threshold.1, 0, 0])?;
        }
        Ok(RunningBest { plan: self, temp, arrays })
    }
}

/// The state and the candidate pairs in one array.
#[derive(Clone, Copy)]
struct PairArray<'a> {
    all: SliceMut<'a, Bits128>,
    state: SliceMut<'a, u64>,
    pairs: SliceMut<'a, Bits128>,
}

/// The best pairs and the running threshold during a join.
pub(in crate::join) struct RunningBest<'p, 'a> {
    plan: &'p BestPairs,
    temp: &'p Temp<'a>,
    /// The array that kernels append to, and the array for the next selection.
    arrays: [PairArray<'a>; 2],
}

/// The best pairs after a join.
pub(super) struct BestPairsResult {
    /// The pairs in order, the best first.
    pub(super) pairs: Vec<Bits128>,
    /// True if candidates were lost. A second run that begins with `threshold` finds them.
    pub(super) has_overflowed: bool,
    /// The worst pair that may still be among the best.
    pub(super) threshold: Bits128,
    /// The greatest rank of a pair with a point that was not joined; see [`state::EXCLUDED`].
    pub(super) best_excluded: u64,
}

impl<'a> RunningBest<'_, 'a> {
    /// Returns the array that kernels append pairs to, and the state.
    pub(super) fn candidates(&self) -> (SliceMut<'a, Bits128>, SliceMut<'a, u64>) {
        (self.arrays[0].pairs, self.arrays[0].state)
    }

    /// Keeps the best k pairs, and updates the threshold.
    ///
    /// # Safety
    /// Nothing else uses the memory until the stream has done the work.
    pub(super) unsafe fn select_best(&mut self) -> Result<()> {
        let (stream, k) = (&self.temp.stream, self.plan.k as u64);
        let [PairArray { state, pairs, .. }, to] = self.arrays;
        let state = state.read_only();
        // SAFETY: the arrays are those of the plan; the rest is passed on to the caller.
        unsafe {
            match &self.plan.sort {
                None => {
                    let num_blocks = pairs.len().div_ceil(BLOCK_ITEMS) as u64;
                    let args = (pairs.read_only(), state, k, to.pairs, to.state);
                    stream.launch::<join_keep_best>(num_blocks, args)?;
                }
                Some((sort, count)) => {
                    let count = self.temp.view(*count);
                    stream.launch::<join_clip>(1, (state, pairs.len() as u64, count))?;
                    let (from, into) = (Source::of_keys(pairs.read_only()), Pairs::of_keys(to.pairs));
                    let (count, order) = (count.read_only(), OrderArgs::by_key(Fold::NONE));
                    sort.run::<Ascending>(self.temp, from, into, count, order)?;
                    stream.launch::<join_settle>(1, (to.pairs.read_only(), state, k, to.state))?;
                }
            }
        }
        self.arrays.swap(0, 1);
        Ok(())
    }

    /// Offers pairs in memory, in growing parts, so that each part raises the threshold for the next.
    ///
    /// # Safety
    /// The requirements of [`select_best`](Self::select_best), which also apply to `offered`.
    pub(super) unsafe fn offer(&mut self, offered: Slice<'_, Bits128>) -> Result<()> {
        let (mut begin, mut len) = (0, JOIN.first_part);
        while begin < offered.len() {
            let part = len.min(offered.len() - begin);
            let (pairs, state) = self.candidates();
            // SAFETY: passed on to the caller.
            unsafe {
                let args = (offered.part(begin, part), pairs, state);
                self.temp.stream.launch_items::<join_offer>(part as u64, args)?;
                self.select_best()?;
            }
            begin += part;
            len = len.saturating_mul(JOIN.growth(self.plan.k));
        }
        Ok(())
    }

    /// Waits for the stream and reads the result.
    pub(super) fn read(&self) -> Result<BestPairsResult> {
        let all = self.arrays[0].all;
        // For a small k all k pairs are read together with the state; the selection has filled the array.
        let first = STATE + if self.plan.sort.is_none() { self.plan.k } else { 0 };
        // SAFETY: the range is in the array.
        let mut pairs = unsafe { self.temp.stream.read(all.part(0, first).read_only()) }?;
        let word = |word: usize| if word.is_multiple_of(2) { pairs[word / 2].0 } else { pairs[word / 2].1 };
        let (has_overflowed, best_excluded) = (word(state::OVERFLOWED) != 0, word(state::EXCLUDED));
        let (count, threshold) = (word(state::COUNT) as usize, pairs[state::THRESHOLD / 2]);
        if STATE + count > first {
            // SAFETY: as above.
            pairs.extend(unsafe {
                self.temp.stream.read(all.part(first, STATE + count - first).read_only())
            }?);
        }
        pairs.truncate(STATE + count);
        pairs.drain(..STATE);
        Ok(BestPairsResult { pairs, has_overflowed, threshold, best_excluded })
    }

    /// Returns the state.
    pub(super) fn state(&self) -> SliceMut<'a, u64> {
        self.arrays[0].state
    }
}
