//! The best pairs of boxes by a selection from all pairs, without a threshold.

use super::pairs::pair_list;
use crate::device::{Buffer, Stream, Workspace};
use crate::error::Result;
use crate::join::boxes::params::BoxParams;
use crate::join::gpu::filter::select_best;
use crate::join::gpu::nested::pair_scores;
use crate::join::gpu::scored::ScoredView;
use crate::join::params::TopKParams;
use kauri_kernels::join::boxes::filter::join_boxes_scored;
use kauri_kernels::thread::coord::Float;
use kauri_kernels::thread::words::Bits128;

/// Bytes of a pair, as ids and with the rank of its score.
const PAIR_BYTES: u64 = (size_of::<u64>() + size_of::<Bits128>()) as u64;

/// Returns the best pairs of a left and a right set.
pub(super) fn best_pairs<C: Float>(
    stream: &Stream,
    workspace: &mut Workspace,
    params: &TopKParams<BoxParams<C>>,
    sets: [ScoredView<'_, C>; 2],
) -> Result<Vec<Bits128>> {
    let found = pair_list(stream, workspace, [sets[1].coords, sets[0].coords], &params.join)?;
    let len = found.len() as u64;
    let mut pairs = Buffer::<Bits128>::of_result(stream.gpu(), len, PAIR_BYTES, "pairs of a join")?;
    let args = (found.slice(), pair_scores(sets, &params.scoring), pairs.slice_mut());
    // SAFETY: there is a pair for each item of the list, and buffers wait for the device before they are freed.
    unsafe { stream.launch_items::<join_boxes_scored>(len, args) }?;
    drop(found);
    select_best(stream, workspace, &mut pairs, params.k)
}
