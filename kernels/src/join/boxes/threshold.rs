//! The best pairs of boxes by a running threshold. The boxes of both sets search each other in growing parts, and each part raises the
//! threshold for the next. The blocks of a part are spread over both passes.

use super::search::{BoxSides, Pass, bits_of};
use crate::join::best::{CandidateList, pair};
use crate::join::threshold::spread_block;
use crate::policy::{JOIN_THREADS, join_boxes_rising_min_blocks};
use crate::thread::coord::Float;
use crate::thread::words::Bits128;
use cuda_std::prelude::*;

/// The ranks of the scores of a set.
#[derive(Clone, Copy, KernelArgs)]
pub struct BoxRanks<'a> {
    /// The ranks, in the order of the keys. They have padding of [`GROUP`](super::search::GROUP) numbers.
    pub ranks: Slice<'a, u64>,
    /// The least and the greatest rank.
    pub extremes: Slice<'a, u64>,
}

/// The scores of two sets, and the score function.
#[derive(Clone, Copy, KernelArgs)]
pub struct BoxScores<'a> {
    /// The ranks of the left set.
    pub left: crate::join::boxes::threshold::BoxRanks<'a>,
    /// The ranks of the right set.
    pub right: crate::join::boxes::threshold::BoxRanks<'a>,
    /// The score function.
    pub scoring: crate::join::score::ScoringArgs,
}

/// Offers the pairs of a part of both passes, a thread per probe box. The blocks of the pass that probes the left boxes come first in the
/// list of all blocks. Block `b` of the launch joins block `(b + first_block) * stride` of this list, modulo its length, which is coprime
/// to `stride`. `right_pass` is the other pass.
#[kernel(family = "join-boxes", block = JOIN_THREADS, min_blocks = join_boxes_rising_min_blocks(D, size_of::<C>()), hot)]
#[instances(C = [f32, f64], D = [2, 3, 6])]
pub unsafe fn join_boxes_rising<C: Float, const D: usize>(
    sides: BoxSides<'_, C>,
    scores: BoxScores<'_>,
    right_pass: u32,
    first_block: u64,
    stride: u64,
    pairs: SliceMut<Bits128>,
    state: SliceMut<u64>,
) {
    let [num_left, num_right] =
        [sides.left, sides.right].map(|set| set.ids.len().div_ceil(JOIN_THREADS) as u64);
    let block = spread_block(num_left + num_right, first_block, stride);
    let right_pass = Pass::from_word(right_pass);
    let left_pass = Pass { probes_left: true, finds_equal: !right_pass.finds_equal };
    let probes_left = block < num_left;
    let (pass, block) = if probes_left { (left_pass, block) } else { (right_pass, block - num_left) };
    let search = sides.search::<D>(pass);
    let i = block as usize * JOIN_THREADS + thread::thread_idx_x() as usize;
    if i >= search.probe.ids.len() {
        return;
    }

    let candidates = CandidateList::new(pairs, state);
    let scoring = scores.scoring.scoring();
    let (probe, build, scoring) = if probes_left {
        (scores.left, scores.right, scoring.swapped())
    } else {
        (scores.right, scores.left, scoring)
    };
    let probe_rank = probe.ranks.load(i);
    let all = [build.extremes.load(0), build.extremes.load(1)];
    let Some((first, last)) = scoring.left_ranks_reaching(candidates.least_rank(), probe_rank, all) else {
        return;
    };
    let own_id = search.probe.ids.load(i);
    search.for_each_group(
        i,
        || candidates.has_capacity(),
        |position| build.ranks.load(position).wrapping_sub(first) <= last - first,
        |position, hits| {
            for member in bits_of(hits) {
                let position = position + member as usize;
                let id = search.build.ids.load(position);
                let (left, right) = if probes_left { (own_id, id) } else { (id, own_id) };
                candidates.offer(pair(scoring.rank(build.ranks.load(position), probe_rank), left, right));
            }
        },
    );
}
