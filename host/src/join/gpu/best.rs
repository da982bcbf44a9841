//! The best pairs so far: those that kernels append, of which the best k are kept between launches.

use crate::device::{Layout, Region, Stream, Temp};
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

/// Pairs whose memory the state takes.
const STATE: usize = state::LEN / 2;

/// Temporary memory of the best pairs.
pub(super) struct Best {
    k: usize,
    /// The state, then pairs; of this launch, and of the one after it.
    pairs: [Region<Bits128>; 2],
    /// Of many pairs.
    sort: Option<(MergeSort<Bits128, NoValue>, Region<u64>)>,
}

impl Best {
    pub(super) fn plan(layout: &mut Layout, k: usize) -> Self {
        let room = JOIN.room(k);
        let sort = (k > JOIN.counted_pairs).then(|| (MergeSort::plan(layout, room), layout.reserve(1)));
        let mut side = || layout.reserve(STATE + room);
        Self { k, pairs: [side(), side()], sort }
    }

    /// The best pairs of those that `offer` offers, not behind a limit; it does so again, with the limit that was found, if there was no
    /// room for all that were good until then.
    pub(super) fn of<'p, 'a>(
        &'p self,
        stream: &'p Stream,
        temp: &'p Temp<'a>,
        mut limit: Bits128,
        mut offer: impl FnMut(&mut Keeping<'p, 'a>) -> Result<()>,
    ) -> Result<Vec<Bits128>> {
        loop {
            let mut keeping = self.begin(stream, temp, limit)?;
            offer(&mut keeping)?;
            let kept = keeping.kept()?;
            if !kept.has_lost {
                return Ok(kept.pairs);
            }
            // All that was lost was worse, or comes now.
            limit = kept.limit;
        }
    }

    /// Begins with no pair and a limit.
    pub(super) fn begin<'p, 'a>(
        &'p self,
        stream: &'p Stream,
        temp: &'p Temp<'a>,
        limit: Bits128,
    ) -> Result<Keeping<'p, 'a>> {
        let sides = self.pairs.map(|side| {
            let all = temp.view(side);
            // SAFETY: the first of them are words.
            unsafe {
                let state = SliceMut::from_raw_parts(all.as_ptr().cast(), state::LEN);
                Side { all, state, pairs: all.part(STATE, all.len() - STATE) }
            }
        });
        let keeping = Keeping { best: self, stream, temp, sides };
        keeping.restart(limit)?;
        Ok(keeping)
    }
}

#[derive(Clone, Copy)]
struct Side<'a> {
    all: SliceMut<'a, Bits128>,
    state: SliceMut<'a, u64>,
    pairs: SliceMut<'a, Bits128>,
}

/// The best pairs while they are looked for.
pub(super) struct Keeping<'p, 'a> {
    best: &'p Best,
    stream: &'p Stream,
    temp: &'p Temp<'a>,
    /// Where kernels append to, and where the best of these go.
    sides: [Side<'a>; 2],
}

/// What was found.
pub(super) struct Kept {
    /// The best first.
    pub(super) pairs: Vec<Bits128>,
    /// Pairs were lost: nothing better than the limit is missing only with that limit from the begin.
    pub(super) has_lost: bool,
    /// The worst pair that may be among the best.
    pub(super) limit: Bits128,
    /// The rank of the best score that pairs may have of which a point was left out.
    pub(super) left_out: u64,
}

impl<'a> Keeping<'_, 'a> {
    /// Forgets all pairs.
    pub(super) fn restart(&self, limit: Bits128) -> Result<()> {
        let state = self.sides[0].state;
        if limit != Bits128::LAST {
            return self.temp.upload(self.stream, state, &[0, 0, limit.0, limit.1, 0, 0]);
        }
        // No need to wait for a copy.
        // SAFETY: of the plan's own memory.
        unsafe {
            self.stream.fill_bytes(state, 0)?;
            self.stream.fill_bytes(state.part(state::LIMIT, 2), 0xFF)
        }
    }

    /// Where kernels append pairs, and the state.
    pub(super) fn room(&self) -> (SliceMut<'a, Bits128>, SliceMut<'a, u64>) {
        (self.sides[0].pairs, self.sides[0].state)
    }

    /// Keeps the best pairs, and the limit that they make.
    ///
    /// # Safety
    /// The memory is used by nothing else until the stream has done the work.
    pub(super) unsafe fn keep_best(&mut self) -> Result<()> {
        let (stream, k) = (self.stream, self.best.k as u64);
        let [Side { state, pairs, .. }, to] = self.sides;
        let state = state.read_only();
        // SAFETY: the plan's own memory; the rest is passed on to the caller.
        unsafe {
            match &self.best.sort {
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
                    sort.run::<Ascending>(stream, self.temp, from, into, count, order)?;
                    stream.launch::<join_settle>(1, (to.pairs.read_only(), state, k, to.state))?;
                }
            }
        }
        self.sides.swap(0, 1);
        Ok(())
    }

    /// Offers pairs in memory, in parts so that the limit rises.
    ///
    /// # Safety
    /// As [`keep_best`](Self::keep_best); the pairs too.
    pub(super) unsafe fn offer(&mut self, offered: Slice<'_, Bits128>) -> Result<()> {
        let (mut begin, mut len) = (0, JOIN.first_part);
        while begin < offered.len() {
            let part = len.min(offered.len() - begin);
            let (pairs, state) = self.room();
            // SAFETY: passed on to the caller.
            unsafe {
                let args = (offered.part(begin, part), pairs, state);
                self.stream.launch_items::<join_offer>(part as u64, args)?;
                self.keep_best()?;
            }
            begin += part;
            len = len.saturating_mul(JOIN.growth(self.best.k));
        }
        Ok(())
    }

    /// What has been kept; waits.
    pub(super) fn kept(&self) -> Result<Kept> {
        let all = self.sides[0].all;
        // Few pairs are read with the state: there is something in all their places.
        let first = STATE + if self.best.sort.is_none() { self.best.k } else { 0 };
        // SAFETY: within the plan's memory.
        let mut pairs = unsafe { self.stream.read(all.part(0, first).read_only()) }?;
        let word = |word: usize| if word.is_multiple_of(2) { pairs[word / 2].0 } else { pairs[word / 2].1 };
        let (has_lost, left_out) = (word(state::LOST) != 0, word(state::LEFT_OUT));
        let (count, limit) = (word(state::COUNT) as usize, pairs[state::LIMIT / 2]);
        if STATE + count > first {
            // SAFETY: as above.
            pairs.extend(unsafe { self.stream.read(all.part(first, STATE + count - first).read_only()) }?);
        }
        pairs.truncate(STATE + count);
        pairs.drain(..STATE);
        Ok(Kept { pairs, has_lost, limit, left_out })
    }

    /// Where the state is.
    pub(super) fn state(&self) -> SliceMut<'a, u64> {
        self.sides[0].state
    }
}
