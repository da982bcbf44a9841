//! Points and boxes with scores in device memory.

use crate::device::{Buffer, Stream, Workspace};
use crate::error::Result;
use crate::join::params::TopKParams;
use crate::join::scored::Score;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::join::nested::NestedSets;
use kauri_kernels::join::score::{PairScores, ScoreType};
use kauri_kernels::thread::coord::Float;
use kauri_kernels::thread::words::Bits128;

/// Points or boxes in device memory, each with a score: a set of [`TopKDistanceJoin::run_on`](crate::join::TopKDistanceJoin::run_on) or
/// [`TopKBoxJoin::run_on`](crate::join::TopKBoxJoin::run_on). The coordinates of each point are contiguous; those of a box are its low
/// corner, then its high corner.
///
/// ```
/// use kauri::device::{Buffer, Stream, Workspace};
/// use kauri::join::{DeviceScored, ScoredPair, TopKDistanceJoin};
/// fn best_pairs(
///     stream: &Stream,
///     workspace: &mut Workspace,
///     coords: &Buffer<f32>,
///     scores: &Buffer<u32>,
/// ) -> kauri::Result<Vec<ScoredPair>> {
///     let set = DeviceScored { coords, scores };
///     TopKDistanceJoin::new(1.0, 2).run_on::<[f32; 2], u32>(stream, workspace, set, set)
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DeviceScored<'a, C, S> {
    /// The coordinates.
    pub coords: &'a Buffer<C>,
    /// The scores.
    pub scores: &'a Buffer<S>,
}

impl<'a, C: Float, S: Score> DeviceScored<'a, C, S> {
    /// Checks lengths and devices; each item has `width` coordinates.
    pub(in crate::join) fn check(&self, stream: &Stream, width: usize) -> Result<()> {
        let num_coords = self.scores.len().saturating_mul(width);
        self.coords.check(stream, "coordinates of points with scores", num_coords)?;
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

/// Points or boxes with scores in device memory, independent of the type of the scores.
#[derive(Clone, Copy)]
pub(in crate::join) struct ScoredView<'a, C> {
    pub(in crate::join) coords: Slice<'a, C>,
    /// The scores as words of 4 bytes.
    pub(in crate::join) scores: Slice<'a, u32>,
    pub(in crate::join) score_type: ScoreType,
    pub(in crate::join) len: usize,
}

/// A join of points or of boxes, whose best-scored pairs are found.
pub(in crate::join) trait ScoredJoin: Copy + Send + Sync {
    /// The type of coordinates.
    type Coord: Float;

    /// Returns the number of dimensions.
    fn dims(&self) -> usize;

    /// Returns the number of coordinates of an item.
    fn width(&self) -> usize;

    /// Returns the largest gap of a pair along an axis.
    fn reach(&self) -> f64;

    /// Returns the largest distance of a pair, as the norm computes it.
    fn bound(&self) -> f64;

    /// Returns the condition for a pair as an argument of kernels without a grid.
    fn shape_without_grid(&self) -> u32;

    /// Launches the kernel of a nested loop.
    ///
    /// # Safety
    /// The ids are valid. Nothing else uses the arguments until the stream has done the work.
    unsafe fn launch_nested(
        &self,
        stream: &Stream,
        num_blocks: u64,
        args: (NestedSets<'_, Self::Coord>, PairScores<'_>, SliceMut<'_, Bits128>, SliceMut<'_, u64>),
    ) -> Result<()>;

    /// Returns the best pairs of two sets by a strategy with a grid.
    fn best_by_cells(
        stream: &Stream,
        workspace: &mut Workspace,
        params: &TopKParams<Self>,
        sets: [ScoredView<'_, Self::Coord>; 2],
    ) -> Result<Vec<Bits128>>;

    /// Returns an upper bound of the scratch bytes for sets of `lens` items by any grid; the strategy has been chosen.
    fn scratch_bytes(params: &TopKParams<Self>, lens: [usize; 2]) -> u64;
}

/// Returns scores as words of 4 bytes.
pub(super) fn score_words<S: Score>(scores: &Buffer<S>) -> Slice<'_, u32> {
    let words = size_of::<S>() / size_of::<u32>() * scores.len();
    // SAFETY: the view covers the memory of the scores, which consist of words; it keeps the buffer borrowed.
    unsafe { Slice::from_raw_parts(scores.slice().as_ptr().cast(), words) }
}
