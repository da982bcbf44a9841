//! Points with scores in device memory.

use crate::device::{Buffer, Stream};
use crate::error::Result;
use crate::join::scored::Score;
use cuda_std::mem::Slice;
use kauri_kernels::join::score::ScoreType;
use kauri_kernels::thread::coord::Coord;

/// Points in device memory, each with a score: a set of [`TopKDistanceJoin::run_on`](crate::join::TopKDistanceJoin::run_on). The
/// coordinates of each point are contiguous.
///
/// ```no_run
/// use kauri::device::{Buffer, Stream, Workspace};
/// use kauri::join::{DeviceScored, TopKDistanceJoin};
/// let device = kauri::Device::best()?;
/// let Some(gpu) = device.gpu() else { return Ok(()) };
/// let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
/// let coords = Buffer::from_slice(&stream, &[0.0f32, 0.0, 5.0, 5.0], "hotels")?;
/// let scores = Buffer::from_slice(&stream, &[3u32, 5], "scores of hotels")?;
/// let set = DeviceScored { coords: &coords, scores: &scores };
/// let best = TopKDistanceJoin::new(1.0, 2).run_on::<[f32; 2], u32>(&stream, &mut workspace, set, set)?;
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DeviceScored<'a, C, S> {
    /// The coordinates.
    pub coords: &'a Buffer<C>,
    /// The scores.
    pub scores: &'a Buffer<S>,
}

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
