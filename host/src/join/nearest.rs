//! The nearest points of one set for each point of another.

use super::distance::sets_on;
use super::{Curve, Near, Norm, checked_sets, gpu};
use crate::device::{Buffer, Device, Stream, Workspace};
use crate::error::Result;
use crate::kdtree::{KdTree, KdTreeOptions};
use crate::memory;
use crate::point::Point;
use crate::query::{DeviceQueries, Neighbors, QueryOptions, SpatialIndex};
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
/// assert_eq!(near.row(0).ids(), [1, 0]);
/// assert!(near.row(1).is_empty());
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

    /// Only points up to this distance, inclusive; for [`LonLat`](crate::LonLat) in meters.
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
        if let (Some(near), Some(gpu)) = (self.near_by_grid::<P>()?, device.gpu())
            && let Some(found) = self.by_grid(&Stream::new(gpu)?, &near, left, right)?
        {
            return Ok(found);
        }
        let tree = KdTree::build(device, left, &KdTreeOptions::default())?;
        tree.nearest_with(right, self.k, &self.options())
    }

    /// Joins two sets of points of type `P` in the memory of a GPU: ids, and distances as an index compares them (their squares under
    /// the Euclidean norm), in a row of `k` a right point, padded with `u32::MAX` and infinity.
    ///
    /// Coordinates have to be finite, which nobody checks.
    ///
    /// # Errors
    /// [`Error::WrongDevice`](crate::Error::WrongDevice), and those of [`run`](Self::run) that are not of points.
    pub fn run_on<P: Point<Coord = C>>(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        left: &Buffer<C>,
        right: &Buffer<C>,
    ) -> Result<(Buffer<u32>, Buffer<C>)> {
        let sets = sets_on(stream, P::DIMS, right, Some(left))?;
        if let Some(near) = self.near_by_grid::<P>()?
            && let Some(found) =
                gpu::nearest(stream, workspace, P::DIMS, sets, &near, self.k, self.is_grid())?
        {
            return Ok(found);
        }
        let tree = KdTree::<P>::build_on(stream, workspace, left, &KdTreeOptions::default())?;
        let prepared = tree.prepare(stream, &self.options())?;
        let len = (right.len() / P::DIMS).saturating_mul(self.k);
        let mut ids = Buffer::uninitialized(stream.gpu(), len, "ids of neighbors")?;
        let mut dist2 = Buffer::uninitialized(stream.gpu(), len, "distances of neighbors")?;
        let queries = DeviceQueries::Coordinates(right);
        tree.nearest_on(stream, workspace, queries, self.k, &prepared, &mut ids, &mut dist2)?;
        Ok((ids, dist2))
    }

    /// What is near, if a grid may be taken.
    fn near_by_grid<P: Point<Coord = C>>(&self) -> Result<Option<Near<C>>> {
        // Kernels have a 32-bit k.
        let is_k = self.k > 0 && u32::try_from(self.k).is_ok();
        let is_asked = P::DIMS <= MAX_DIMS && is_k && self.index != KnnIndex::Tree;
        let near = |epsilon| Near::of::<P>(epsilon, self.norm, Curve::Linear, Pairing::All);
        self.within.filter(|_| is_asked).map(near).transpose()
    }

    fn is_grid(&self) -> bool {
        self.index == KnnIndex::Grid
    }

    fn options<P: Point<Coord = C>>(&self) -> QueryOptions<P> {
        QueryOptions { radius: self.within, norm: self.norm, ..QueryOptions::default() }
    }

    /// By cells, unless a tree takes less.
    fn by_grid<P: Point<Coord = C>>(
        &self,
        stream: &Stream,
        near: &Near<C>,
        left: &[P],
        right: &[P],
    ) -> Result<Option<Neighbors<P>>> {
        let coords = checked_sets(left, right)?;
        let buffer = |coords: &[C]| Buffer::from_slice(stream, coords, "points of a join");
        let sets = [buffer(&coords[0])?, buffer(&coords[1])?];
        let mut workspace = Workspace::new(stream.gpu());
        let slices = [sets[0].slice(), sets[1].slice()];
        let found = gpu::nearest(stream, &mut workspace, P::DIMS, slices, near, self.k, self.is_grid())?;
        let Some((ids, dist2)) = found else { return Ok(None) };
        let bytes = ids.len() as u64 * (size_of::<u32>() + size_of::<C>()) as u64;
        memory::check(bytes, "nearest points").map_err(|error| error.of_result(ids.len() as u64, bytes))?;
        Ok(Some(Neighbors::new(right.len(), self.k, ids.to_vec(stream)?, dist2.to_vec(stream)?)))
    }
}
