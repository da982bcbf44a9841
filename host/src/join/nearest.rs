//! The nearest points of one set for each point of another.

use super::top_k::check_count;
use super::{Curve, Near, Norm, gpu};
use crate::device::{Buffer, Device, Stream, Workspace};
use crate::error::Result;
use crate::kdtree::{KdTree, KdTreeOptions, Neighbors, QueryOptions, SpatialIndex};
use crate::memory;
use crate::point::Point;
use kauri_kernels::join::cells::Pairing;
use kauri_kernels::join::curve::MAX_DIMS;
use kauri_kernels::thread::coord::Coord;

/// What the nearest points are found by; they are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum KnnIndex {
    /// [`Grid`](Self::Grid) if there is a distance and few points are near, [`Tree`](Self::Tree) otherwise.
    #[default]
    Auto,
    /// A [`KdTree`] over the left points.
    Tree,
    /// Cells as long as the distance, on a GPU; without a distance, on the CPU and for more than 6 dimensions a tree.
    Grid,
}

/// The `k` nearest left points of each right point, maybe only those within a distance.
///
/// ```
/// use kauri::join::KnnJoin;
/// use kauri::Device;
/// let lamps = [[0.0f32, 0.0], [1.0, 0.0], [5.0, 5.0]];
/// let doors = [[0.9f32, 0.0], [9.0, 9.0]];
/// let near = KnnJoin::new(2).within(1.0).run(&Device::cpu(), &lamps, &doors)?;
/// assert_eq!(near.row(0).0, [1, 0]);
/// assert_eq!(near.row(1).0, [u32::MAX; 2]);
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct KnnJoin<C> {
    pub(super) k: usize,
    pub(super) within: Option<C>,
    pub(super) norm: Norm,
    pub(super) index: KnnIndex,
}

impl<C: Coord> KnnJoin<C> {
    /// The `k` nearest, however far.
    pub fn new(k: usize) -> Self {
        Self { k, within: None, norm: Norm::Euclidean, index: KnnIndex::Auto }
    }

    /// Only points up to this distance, inclusive; for [`LonLat`](crate::LonLat) in metres.
    pub fn within(mut self, epsilon: C) -> Self {
        self.within = Some(epsilon);
        self
    }

    /// With distances by this norm.
    pub fn norm(mut self, norm: Norm) -> Self {
        self.norm = norm;
        self
    }

    /// By this index.
    pub fn index(mut self, index: KnnIndex) -> Self {
        self.index = index;
        self
    }

    /// Joins two sets: a row a right point, as [`SpatialIndex::nearest`] gives it.
    ///
    /// # Errors
    /// Those of points as of [`KdTree::build`]; [`Error::InvalidLength`](crate::Error::InvalidLength) for a distance that is negative
    /// or NaN; [`Error::OutOfMemory`](crate::Error::OutOfMemory), or the driver's.
    pub fn run<P: Point<Coord = C>>(&self, device: &Device, left: &[P], right: &[P]) -> Result<Neighbors<P>> {
        let _span =
            tracing::debug_span!("knn_join", k = self.k, left = left.len(), right = right.len()).entered();
        match (self.within, device.gpu()) {
            (Some(epsilon), Some(gpu))
                if P::DIMS <= MAX_DIMS && self.k > 0 && self.index != KnnIndex::Tree =>
            {
                let stream = Stream::new(gpu)?;
                let near = Near::of::<P>(epsilon, self.norm, Curve::Linear, Pairing::All)?;
                match self.by_grid(&stream, &near, left, right)? {
                    Some(found) => Ok(found),
                    None => self.by_tree(device, left, right),
                }
            }
            _ => self.by_tree(device, left, right),
        }
    }

    fn by_tree<P: Point<Coord = C>>(&self, device: &Device, left: &[P], right: &[P]) -> Result<Neighbors<P>> {
        let options = QueryOptions { radius: self.within, norm: self.norm, ..QueryOptions::default() };
        KdTree::build(device, left, &KdTreeOptions::default())?.nearest_with(right, self.k, &options)
    }

    /// By cells, unless a tree takes less.
    fn by_grid<P: Point<Coord = C>>(
        &self,
        stream: &Stream,
        near: &Near<C>,
        left: &[P],
        right: &[P],
    ) -> Result<Option<Neighbors<P>>> {
        check_count(left.len())?;
        check_count(right.len())?;
        let coords = [P::coordinates(left, "left point")?, P::coordinates(right, "right point")?];
        let buffer = |coords: &[C]| Buffer::from_slice(stream, coords, "points of a join");
        let sets = [buffer(&coords[0])?, buffer(&coords[1])?];
        let mut workspace = Workspace::new(stream.gpu());
        let is_forced = self.index == KnnIndex::Grid;
        let slices = [sets[0].slice(), sets[1].slice()];
        let found = gpu::nearest(stream, &mut workspace, P::DIMS, slices, near, self.k, is_forced)?;
        let Some((ids, dist2)) = found else { return Ok(None) };
        let bytes = ids.len() as u64 * (size_of::<u32>() + size_of::<C>()) as u64;
        memory::check(bytes, "nearest points").map_err(|error| error.of_result(ids.len() as u64, bytes))?;
        Ok(Some(Neighbors::new(right.len(), self.k, ids.to_vec(stream)?, dist2.to_vec(stream)?)))
    }
}
