//! Points that arrive in chunks.

use std::ops::ControlFlow;

use super::{MAX_POINTS, Point};
use crate::error::{Error, Result, check_count};
use crate::memory;
use crate::progress::{Progress, Step};

/// Points in chunks, of which a few are in memory at a time: the points of files, or of any iterator over chunks.
///
/// [`CellTree::build_to_file`](crate::quadtree::CellTree::build_to_file) builds a tree of more points than memory holds. The other indexes
/// take the points that [`read_all`](PointSource::read_all) returns.
///
/// ```
/// use kauri::{PointSource, Result};
/// // A number of points that nobody knows before the last chunk.
/// let mut chunks = (0..3).map(|i| -> Result<Vec<[i32; 2]>> { Ok(vec![[i, 0], [i, 1]]) });
/// let points = chunks.read_all(&mut |_| std::ops::ControlFlow::Continue(()))?;
/// assert_eq!(points, [[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1]]);
/// # Ok::<(), kauri::Error>(())
/// ```
pub trait PointSource {
    /// The type of the points.
    type Point: Point;

    /// Returns the number of points that are going to be read, if it is known; it is used for progress alone. Points that a filter leaves
    /// out count.
    fn num_points(&self) -> Option<u64>;

    /// Calls `visit` with the chunks one after another, until it breaks or fails. The id of a point is the number of points before it.
    ///
    /// # Errors
    /// The errors of the source and of `visit`.
    fn for_each_chunk(&mut self, visit: &mut VisitPoints<'_, Self::Point>) -> Result<()>;

    /// Reads all points into memory; `progress` hears of the phase "points".
    ///
    /// # Errors
    /// The errors of the source; [`Error::TooManyItems`] beyond [`MAX_POINTS`]; [`Error::OutOfMemory`]; [`Error::Stopped`] if `progress`
    /// stopped the call.
    fn read_all(&mut self, progress: &mut dyn Progress) -> Result<Vec<Self::Point>> {
        let mut points = Vec::new();
        read_chunks(self, progress, &mut |chunk, _| {
            memory::reserve_more(&mut points, chunk.len(), "points of a source")?;
            points.extend_from_slice(chunk);
            Ok(())
        })?;
        Ok(points)
    }
}

/// The function that receives the points of a [`PointSource`].
pub type VisitPoints<'a, P> = dyn FnMut(PointChunk<'_, P>) -> Result<ControlFlow<()>> + 'a;

/// Consecutive points of a [`PointSource`].
#[derive(Clone, Copy, Debug)]
pub struct PointChunk<'a, P> {
    /// The points.
    pub points: &'a [P],
    /// The number of points that were read for them, with those that a filter left out.
    pub num_read: u64,
    /// The bytes of files that were read for them.
    pub bytes: u64,
}

/// Chunks of points as an iterator makes them.
impl<P: Point, I: Iterator<Item = Result<Vec<P>>>> PointSource for I {
    type Point = P;

    fn num_points(&self) -> Option<u64> {
        None
    }

    fn for_each_chunk(&mut self, visit: &mut VisitPoints<'_, P>) -> Result<()> {
        for points in self {
            let points = &*points?;
            let (num_read, bytes) = (points.len() as u64, size_of_val(points) as u64);
            if visit(PointChunk { points, num_read, bytes })?.is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// Passes the chunks of a source and the number of points before each to `take`, and reports the progress. Returns the number of points,
/// at most [`MAX_POINTS`].
pub(crate) fn read_chunks<P: Point, S: PointSource<Point = P> + ?Sized>(
    source: &mut S,
    progress: &mut dyn Progress,
    take: &mut dyn FnMut(&[P], u64) -> Result<()>,
) -> Result<u64> {
    let mut step = Step { phase: "points", done: 0, total: source.num_points(), bytes: 0 };
    let stopped = |step: Step| Error::Stopped { phase: step.phase, done: step.done, total: step.total };
    if progress.report(step).is_break() {
        return Err(stopped(step));
    }
    let mut num_points = 0;
    source.for_each_chunk(&mut |PointChunk { points, num_read, bytes }| {
        check_count("points", num_points + points.len() as u64, MAX_POINTS)?;
        take(points, num_points).map_err(|error| error.behind(num_points))?;
        num_points += points.len() as u64;
        step.done += num_read;
        step.bytes += bytes;
        if progress.report(step).is_break() { Err(stopped(step)) } else { Ok(ControlFlow::Continue(())) }
    })?;
    Ok(num_points)
}
