//! The points of a cloud as a source of points.

use super::{Attributes, CloudFiles};
use crate::error::Result;
use crate::memory;
use crate::point::{PointChunk, PointSource, VisitPoints};

/// The first `D` coordinates of the points of a cloud, in chunks. [`CloudFiles::points`] and [`CloudFiles::plane`] return it.
///
/// ```no_run
/// use kauri::io::CloudFiles;
/// use kauri::{Device, Quadtree, QuadtreeOptions};
/// // A cloud larger than memory becomes a file.
/// let files = CloudFiles::open(&["tiles/*.laz"])?;
/// let mut progress = |step: kauri::Step| {
///     eprintln!("{}: {} points, {} bytes", step.phase, step.done, step.bytes);
///     std::ops::ControlFlow::Continue(())
/// };
/// let options = QuadtreeOptions::default().leaf_points(100);
/// Quadtree::build_to_file(&Device::best()?, files.plane(), "scan.kauri", &options, &mut progress)?;
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CloudPoints<'a, const D: usize> {
    pub(super) files: &'a CloudFiles,
}

/// A chunk is one of a file.
impl<const D: usize> PointSource for CloudPoints<'_, D> {
    type Point = [i32; D];

    fn num_points(&self) -> Option<u64> {
        self.files.num_chosen_points().ok()
    }

    fn for_each_chunk(&mut self, visit: &mut VisitPoints<'_, [i32; D]>) -> Result<()> {
        self.files.for_each_chunk(&Attributes::default(), |chunk| {
            let first_axes = |point: &[i32; 3]| std::array::from_fn(|axis| point[axis]);
            let points = memory::collect(chunk.points.iter().map(first_axes), "points of a cloud")?;
            visit(PointChunk { points: &points, num_read: chunk.num_read, bytes: chunk.bytes })
        })
    }
}
