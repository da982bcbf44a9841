//! The k-nearest-neighbor join: the nearest points of one set for each point of another.

use super::gpu;
use super::params::JoinParams;
use super::sets::{UploadedSides, checked_sets, sides_on_device};
use crate::device::{Buffer, Device, Stream, Workspace, gpu_of};
use crate::error::Result;
use crate::host_coords::HostCoords;
use crate::kdtree::{KdTree, KdTreeOptions};
use crate::memory;
use crate::point::Point;
use crate::query::{DeviceIndex, DeviceQueries, Neighbors, QueryOptions, SpatialIndex, item_bytes};
use kauri_kernels::join::cells::Pairing;
use kauri_kernels::join::curve::{Curve, MAX_DIMS};
use kauri_kernels::policy::JOIN;
use kauri_kernels::thread::coord::{Coord, Float};
use kauri_kernels::thread::measure::Norm;

/// The index that a [`KnnJoin`] searches. Results do not depend on it.
///
/// Milliseconds on an H200, for 1M uniform points of each set, build included (benches/results/pages/join.md):
///
/// | | grid | tree |
/// |---|---|---|
/// | 1 nearest, 4 points within the distance | 0.47 | 1.42 |
/// | 8 nearest, 30 points within the distance | 2.2 | 1.9 |
/// | 32 nearest, 100 points within the distance | 11 | 3.2 |
///
/// ```
/// use kauri::join::{KnnIndex, KnnJoin};
/// let points = [[0.0f32], [1.0], [5.0]];
/// let join = KnnJoin::new(2).within(1.5).index(KnnIndex::Grid);
/// assert_eq!(join.run(&kauri::Device::cpu(), &points, &points)?.row(0).ids(), [0, 1]);
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum KnnIndex {
    /// [`Grid`](Self::Grid) for a join within a distance that few points are within, [`Tree`](Self::Tree) otherwise.
    #[default]
    Auto,
    /// A [`KdTree`] over the left points.
    Tree,
    /// On a GPU, a grid whose cells are as long as the distance. Without a distance, on the CPU and for more than 6 dimensions, a tree.
    Grid,
}

/// K-nearest-neighbor join: the `k` nearest left points of each right point, optionally within a distance.
///
/// The left points are searched, and a row of the result belongs to a right point. The program's `kauri knn` names the tables the other
/// way around: it finds right places for each left place.
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
    within: Option<C>,
    norm: Norm,
    index: KnnIndex,
}

impl<C: Float> KnnJoin<C> {
    /// Creates a join with the `k` nearest points at any distance.
    pub fn new(k: usize) -> Self {
        Self { k, within: None, norm: Norm::Euclidean, index: KnnIndex::Auto }
    }

    setters! {
        /// Limits the join to points within `within`, inclusive. For [`LonLat`](crate::LonLat) `within` is in meters.
        within: C = Some(within);

        /// Sets the norm of distances.
        norm: Norm;

        /// Sets the index to search.
        index: KnnIndex;
    }

    /// Joins two sets. The result has a row for each right point, as [`SpatialIndex::nearest`] returns it.
    ///
    /// Memory: 4 bytes and a distance for each of `k` neighbors of each right point; see [`plan`](Self::plan).
    ///
    /// # Errors
    /// The errors of [`KdTree::build`] for points; [`Error::InvalidLength`](crate::Error::InvalidLength) for a distance that is negative
    /// or NaN; [`Error::OutOfMemory`](crate::Error::OutOfMemory), or the driver's.
    pub fn run<P: Point<Coord: Coord<Distance = C>>>(
        &self,
        device: &Device,
        left: &[P],
        right: &[P],
    ) -> Result<Neighbors<P>> {
        let _span =
            tracing::debug_span!("knn_join", k = self.k, left = left.len(), right = right.len()).entered();
        if let (Some(params), Some(gpu)) = (self.grid_params::<P>()?, gpu_of!(device))
            && let Some(neighbors) = self.run_by_grid(&Stream::new(gpu)?, &params, left, right)?
        {
            return Ok(neighbors);
        }
        let tree = KdTree::build(device, left, &KdTreeOptions::default())?;
        tree.nearest_with(right, self.k, &self.options())
    }

    /// Joins two sets of points of type `P` in the memory of a GPU. Returns ids and distances (squared under the Euclidean norm), a row of
    /// `k` for each right point, padded with `u32::MAX` and infinity.
    ///
    /// Coordinates must be finite; this is not checked.
    ///
    /// # Errors
    /// [`Error::WrongDevice`](crate::Error::WrongDevice), and the errors of [`run`](Self::run) that do not concern points.
    pub fn run_on<P: Point<Coord = C>>(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        left: &Buffer<C>,
        right: &Buffer<C>,
    ) -> Result<(Buffer<u32>, Buffer<C>)> {
        let sides = sides_on_device(stream, P::DIMS, right, Some(left))?;
        if let Some(params) = self.grid_params::<P>()?
            && let Some(rows) = gpu::nearest(stream, workspace, sides, &params, self.k, self.max_density())?
        {
            return Ok(rows);
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

    /// Validates the distance. Returns the parameters of a join by a grid, if a grid is possible.
    pub(super) fn grid_params<P: Point<Coord: Coord<Distance = C>>>(&self) -> Result<Option<JoinParams<C>>> {
        let params = |epsilon| JoinParams::of_any_dims::<P>(epsilon, self.norm, Curve::Linear, Pairing::All);
        // Kernels have a 32-bit k.
        let is_k_valid = self.k > 0 && u32::try_from(self.k).is_ok();
        let may_use_grid = P::DIMS <= MAX_DIMS && is_k_valid && self.index != KnnIndex::Tree;
        Ok(self.within.map(params).transpose()?.filter(|_| may_use_grid))
    }

    /// Returns the largest average number of points in the neighbor cells of a point for which a grid is searched.
    pub(super) fn max_density(&self) -> f64 {
        if self.index == KnnIndex::Grid { f64::INFINITY } else { JOIN.nearest_by_cells_to(self.k) }
    }

    fn options<P: Point<Coord: Coord<Distance = C>>>(&self) -> QueryOptions<P> {
        QueryOptions { radius: self.within, norm: self.norm, ..QueryOptions::default() }
    }

    /// Joins sets in host memory by a grid on a GPU, or returns `None` if a tree is faster.
    fn run_by_grid<P: Point<Coord: Coord<Distance = C>>>(
        &self,
        stream: &Stream,
        params: &JoinParams<C>,
        left: &[P],
        right: &[P],
    ) -> Result<Option<Neighbors<P>>> {
        let coords = checked_sets(left, right)?;
        let sides = coords.each_ref().map(|coords| HostCoords::of_checked(coords, P::DIMS));
        let sides = UploadedSides::new(stream, sides, false)?;
        let mut workspace = Workspace::new(stream.gpu());
        let density = self.max_density();
        let rows = gpu::nearest(stream, &mut workspace, sides.slices(), params, self.k, density)?;
        let Some((ids, dist2)) = rows else { return Ok(None) };
        memory::check_result(ids.len() as u64, item_bytes::<C>(), "nearest points")?;
        Ok(Some(Neighbors::new(right.len(), self.k, ids.to_vec(stream)?, dist2.to_vec(stream)?)))
    }
}
