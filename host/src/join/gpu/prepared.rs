//! Validated arguments of a top-k distance join on a GPU.

use crate::device::{Buffer, Stream};
use crate::error::Result;
use crate::join::params::JoinParams;
use crate::join::scored::Score;
use cuda_std::mem::Slice;
use kauri_kernels::join::score::{ScoreType, Scoring};
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::words::Bits128;

/// Points with scores in device memory. The coordinates of each point are contiguous.
#[derive(Debug)]
pub struct DeviceScored<'a, C, S> {
    /// The coordinates.
    pub coords: &'a Buffer<C>,
    /// The scores.
    pub scores: &'a Buffer<S>,
}

impl<C, S> Clone for DeviceScored<'_, C, S> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<C, S> Copy for DeviceScored<'_, C, S> {}

impl<'a, C: Coord, S: Score> DeviceScored<'a, C, S> {
    /// Checks lengths and devices.
    pub(in crate::join) fn check(&self, stream: &Stream, dims: usize) -> Result<()> {
        self.coords.check(
            stream,
            "coordinates of points with scores",
            self.scores.len().saturating_mul(dims),
        )?;
        self.scores.check_device(stream)
    }

    pub(super) fn view(&self) -> ScoredView<'a, C> {
        ScoredView {
            coords: self.coords.slice(),
            scores: score_words(self.scores),
            score_type: S::TYPE,
            len: self.scores.len(),
        }
    }
}

/// Points with scores in device memory, independent of the type of the scores.
#[derive(Clone, Copy)]
pub(super) struct ScoredView<'a, C> {
    pub(super) coords: Slice<'a, C>,
    /// The scores as words of 4 bytes.
    pub(super) scores: Slice<'a, u32>,
    pub(super) score_type: ScoreType,
    pub(super) len: usize,
}

/// Returns scores as words of 4 bytes.
pub(super) fn score_words<S: Score>(scores: &Buffer<S>) -> Slice<'_, u32> {
    let words = size_of::<S>() / size_of::<u32>() * scores.len();
    // SAFETY: the view covers the memory of the scores, which consist of words; it keeps the buffer borrowed.
    unsafe { Slice::from_raw_parts(scores.slice().as_ptr().cast(), words) }
}

/// A validated top-k distance join.
pub(in crate::join) struct PreparedJoin<'a, C> {
    pub(in crate::join) stream: &'a Stream,
    pub(in crate::join) dims: usize,
    pub(in crate::join) params: &'a JoinParams<C>,
    pub(in crate::join) scoring: &'a Scoring,
    /// From 1 to the number of all pairs.
    pub(in crate::join) k: usize,
    /// Most bytes for the best pairs of each right point.
    pub(in crate::join) result_bytes: u64,
    /// Points of each set that are joined first for a threshold; `None` for the default.
    pub(in crate::join) best_points: Option<usize>,
    /// Pairs after this one are not in the result.
    pub(in crate::join) threshold: Bits128,
}
