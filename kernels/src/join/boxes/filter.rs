//! All pairs of boxes with their scores, for a selection without a threshold.

use crate::join::best::pair;
use crate::join::score::PairScores;
use crate::policy::PER_ITEM_THREADS;
use crate::thread::items::own_item;
use crate::thread::words::Bits128;
use cuda_std::prelude::*;

/// Scores pairs, whose left id is in the low half of a word and whose right id is in the high half; a thread per pair.
#[kernel(family = "join-boxes", block = PER_ITEM_THREADS)]
pub unsafe fn join_boxes_scored(found: Slice<u64>, scores: PairScores<'_>, pairs: SliceMut<Bits128>) {
    let Some(i) = own_item(found.len()) else { return };
    let (left, right) = (found.load(i) as u32, (found.load(i) >> 32) as u32);
    let [left_scores, right_scores] = scores.of_sets();
    let ranks = (left_scores.rank(left as usize), right_scores.rank(right as usize));
    pairs.store(i, pair(scores.scoring.scoring().rank(ranks.0, ranks.1), left, right));
}
