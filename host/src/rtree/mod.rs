//! R-trees of points, packed along a Hilbert curve (Kamel, Faloutsos 1993, *On packing R-trees*).
//!
//! The points are sorted by their positions on a Hilbert curve through a grid over their bounding box, and then by id. Runs of
//! them are buckets, and a binary tree above has the bounding box of each run. The order and the boxes are the same bits on every
//! backend. An R-tree answers the queries of a [`KdTree`](crate::KdTree), with the same results except for the order of points in a range
//! query that is not sorted. Its build is one sort of codes.
//!
//! The grid has 16 bits an axis in three dimensions (24 in two): where most points are in one cell, because few others are very far away,
//! queries among them are slow, and a [`KdTree`](crate::KdTree) is the better index.
//!
//! ```
//! use kauri::{Device, RTree, SpatialIndex};
//! let tree = RTree::build(&Device::cpu(), &[[0.0f32, 0.0], [3.0, 4.0], [1.0, 0.0]])?;
//! assert_eq!(tree.nearest(&[[2.0, 3.0]], 1)?.ids(), [1]);
//! # Ok::<(), kauri::Error>(())
//! ```

mod backend;
mod cpu;
mod gpu;
mod on_device;

use crate::device::{Device, gpu_of};
use crate::error::{Result, check_count};
use crate::memory::MemoryPlan;
use crate::point::{
    Coords, Dispatch, MAX_POINTS, PerCoordinate, Point, Slice, Typed, checked_coordinates, dims,
    with_coordinate,
};
use crate::query::backend::QueryBackend;
use crate::query::{SealedIndex, SpatialIndex};
use crate::stats::Stats;
use backend::{Backend, GpuBackend};
use gpu::GpuTree;
use kauri_kernels::thread::coord::Coord;
use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

/// An R-tree over a set of points: a fast build, and the queries of [`SpatialIndex`]. The id of a point is its index in the input.
///
/// The tree copies the points. It is immutable: if points change, build another, or [`rebuild_on`](RTree::rebuild_on) it over points in
/// device memory.
///
/// ```
/// use kauri::{Device, RTree, SpatialIndex};
/// let tree = RTree::build(&Device::cpu(), &[[0.0f32, 0.0], [3.0, 4.0], [1.0, 0.0]])?;
/// let near = tree.nearest(&[[0.0, 0.0]], 2)?;
/// assert_eq!(near.row(0).ids(), [0, 2]);
/// assert_eq!(near.row(0).dist2(), [0.0, 1.0]);
/// # Ok::<(), kauri::Error>(())
/// ```
pub struct RTree<P: Point> {
    device: Device,
    stats: Stats,
    storage: Storage<P::Coord>,
    /// Its address distinguishes the tree from all others, including dropped ones that have prepared queries.
    identity: Arc<()>,
    points: PhantomData<fn() -> P>,
}

/// A tree in the memory of its device.
enum Storage<C> {
    Cpu(Box<dyn Backend<C>>),
    Gpu(Box<dyn GpuBackend<C>>),
}

/// [`Storage`] for each type of coordinates.
struct Storages;

impl PerCoordinate for Storages {
    type Of<C: Coord> = Storage<C>;
}

impl<P: Point> RTree<P> {
    /// Builds the tree over `points` on `device`.
    ///
    /// - Cost: a sort of 48-bit codes. [`RTree::plan`] returns the memory.
    /// - Result: the same bits on every backend and in every run. Points in one cell are ordered by id.
    /// - Degenerate input: no points, one point, equal points and points on a line are valid.
    ///
    /// # Errors
    /// [`Error::TooManyItems`](crate::Error::TooManyItems) beyond [`MAX_POINTS`]; [`Error::NonFinite`](crate::Error::NonFinite),
    /// [`Error::CoordinateTooLarge`](crate::Error::CoordinateTooLarge) or [`Error::InvalidLonLat`](crate::Error::InvalidLonLat) for the
    /// first point that cannot be indexed; [`Error::OutOfMemory`](crate::Error::OutOfMemory); errors of the device.
    pub fn build(device: &Device, points: &[P]) -> Result<Self> {
        check_count("points", points.len() as u64, MAX_POINTS)?;
        let _span = tracing::debug_span!("rtree_build", points = points.len(), dims = P::DIMS).entered();
        let mut stats = Stats::new(device);
        stats.temp_bytes = Self::plan(device, points.len()).temp_bytes;
        let coords = stats.phase("validate", || checked_coordinates(points, "point"))?;
        let storage = build(device, P::Coord::wrap::<Slice<'_>>(&coords), P::DIMS, &mut stats)?;
        Ok(Self::from_parts(device.clone(), stats, P::Coord::unwrap(storage)))
    }

    fn from_parts(device: Device, stats: Stats, storage: Storage<P::Coord>) -> Self {
        Self { device, stats, storage, identity: Arc::new(()), points: PhantomData }
    }

    /// Returns the bytes that a build over `num_points` points on `device` takes. It allocates nothing. More than [`MAX_POINTS`] points
    /// count as [`MAX_POINTS`].
    pub fn plan(device: &Device, num_points: usize) -> MemoryPlan {
        let num_points = num_points.min(MAX_POINTS as usize);
        let coords_bytes = (num_points * dims::<P>() * size_of::<P::Coord>()) as u64;
        let converted_bytes = if P::CONVERTED { coords_bytes } else { 0 };
        let (tree_bytes, build_bytes) = match gpu_of!(device) {
            None => (
                cpu::tree_bytes::<P::Coord>(num_points, P::DIMS),
                cpu::temp_bytes::<P::Coord>(num_points, P::DIMS),
            ),
            Some(_) => (
                gpu::tree_bytes::<P::Coord>(num_points, P::DIMS),
                gpu::temp_bytes::<P::Coord>(num_points, P::DIMS),
            ),
        };
        MemoryPlan { tree_bytes, temp_bytes: converted_bytes + build_bytes }
    }

    /// Returns the number of points.
    pub fn len(&self) -> usize {
        self.backend().num_points()
    }

    /// Returns true if there are no points.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn backend(&self) -> &dyn Backend<P::Coord> {
        match &self.storage {
            Storage::Cpu(tree) => &**tree,
            Storage::Gpu(tree) => &**tree,
        }
    }

    /// Returns the device that holds the tree.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns the time and memory that the build took.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }
}

impl<P: Point> SealedIndex for RTree<P> {}

impl<P: Point> SpatialIndex for RTree<P> {
    type Point = P;
    type StoredCoord = P::Coord;

    fn to_stored(coords: Cow<'_, [P::Coord]>) -> Result<Cow<'_, [P::Coord]>> {
        Ok(coords)
    }

    fn device(&self) -> &Device {
        &self.device
    }

    fn num_points(&self) -> usize {
        self.len()
    }

    fn query_backend(&self) -> Result<&dyn QueryBackend<P::Coord>> {
        Ok(self.backend().query_backend())
    }
}

impl<P: Point> std::fmt::Debug for RTree<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RTree")
            .field("len", &self.len())
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

/// Builds the tree over validated coordinates. It is not generic over points, so it is compiled once, in this crate.
fn build(device: &Device, coords: Coords<'_>, dims: usize, stats: &mut Stats) -> Result<Typed<Storages>> {
    Ok(with_coordinate!(coords, C, coords => match gpu_of!(device) {
        Some(gpu) => Storage::<C>::Gpu(Box::new(GpuTree::build(gpu, coords, dims, stats)?)),
        None => Storage::Cpu(Box::new(cpu::build(coords, dims, stats)?)),
    }))
}
