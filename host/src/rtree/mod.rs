//! R-trees of points, packed along a Hilbert curve (Kamel, Faloutsos 1993, *On packing R-trees*).
//!
//! The points are sorted by their positions on a Hilbert curve through a grid over their bounding box, and then by id. Runs of them are
//! buckets, and a binary tree above has the bounding box of each run. The order and the boxes are the same bits on every backend. An
//! R-tree answers the queries of a [`KdTree`](crate::KdTree), with the same results except for the order of points in a range query that is
//! not sorted. A build is one sort. A batch of new points is sorted and merged with the others, and a removal copies the points that stay,
//! so queries never become slower.
//!
//! 10M points `f32` x 3 on an H200 (`benches/results/rtree-h200.md`):
//!
//! | | R-tree | k-d tree |
//! |---|--:|--:|
//! | build, uniform points | 1.39 ms | 5.67 ms |
//! | insert, remove 100,000 points | 0.44, 0.44 ms | |
//! | insert, remove 1M points | 0.77, 0.54 ms | |
//! | nearest, uniform points | 3.81 ms | 3.51 ms |
//! | 8 nearest, uniform points | 10.3 ms | 9.7 ms |
//! | nearest, clustered points | 4.65 ms | 3.46 ms |
//!
//! The grid has 16 bits an axis in three dimensions, 24 in two, and keeps its place when points are inserted. If most points are in few
//! of its cells, because some points are very far away or all new ones are outside, queries become slow but stay correct: build another
//! tree, or choose a [`KdTree`](crate::KdTree).
//!
//! Memory on a GPU: that of [`RTree::plan`]. The first change takes as much again, and a 32nd more, for the second tree that each change
//! writes; after a removal, a bit for each id. After a removal
//! the first query for all points computes 4 bytes for a point, and waits for the device. A change takes up to 25 bytes for each new point, and half a byte
//! for each point, until it is done.
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
#[cfg(feature = "io")]
mod stored;

use crate::device::{Device, gpu_of};
use crate::error::{Result, check_count};
use crate::host_coords::{Coords, build_over_coordinates};
use crate::memory::MemoryPlan;
use crate::point::{
    Dispatch, MAX_POINTS, PerCoordinate, Point, Typed, checked_coordinates, dims, points_by, with_coordinate,
};
use crate::query::backend::QueryBackend;
use crate::query::{SealedIndex, SpatialIndex};
use crate::stats::Stats;
use backend::{Backend, GpuBackend};
use gpu::GpuTree;
use kauri_kernels::thread::coord::Coord;
use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

/// An R-tree over points: fast to build, and points may be inserted and removed in batches. The [module](self) has its costs.
///
/// The id of a point is its index in the input, and new points get the next ids. A point keeps its id, and no id is given twice. The trait
/// [`SpatialIndex`] has the queries. A mask has a bit for each id that was given; a query for all points has a row for each point, in the
/// order of [`ids`](RTree::ids). A change makes prepared queries ([`DeviceIndex::prepare`](crate::query::DeviceIndex::prepare)) invalid. The
/// feature `io` adds `save`, `load` and `map` for index files: a loaded tree changes as the saved one does.
///
/// ```
/// use kauri::{Device, RTree, SpatialIndex};
/// let tree = RTree::build(&Device::cpu(), &[[0.0f32, 0.0], [3.0, 4.0], [1.0, 0.0]])?;
/// let near = tree.nearest(&[[0.0, 0.0]], 2)?;
/// assert_eq!(near.row(0).ids(), [0, 2]);
/// assert_eq!(near.row(0).dist2(), [0.0, 1.0]);
///
/// let mut tree = tree;
/// tree.remove(&[2])?;
/// assert_eq!(tree.insert(&[[0.5, 0.0]])?, 3..4);
/// assert_eq!(tree.nearest(&[[0.0, 0.0]], 2)?.row(0).ids(), [0, 3]);
/// assert_eq!(tree.ids()?, [0, 1, 3]);
/// # Ok::<(), kauri::Error>(())
/// ```
pub struct RTree<P: Point> {
    device: Device,
    stats: Stats,
    storage: Storage<P::Coord>,
    /// Its address distinguishes the tree in its state from all others, including dropped ones that have prepared queries.
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
        let storage =
            build_over_coordinates(points, device, &mut stats, |coords, stats| build(device, coords, stats))?;
        Ok(Self::from_parts(device.clone(), stats, P::Coord::unwrap(storage)))
    }

    /// Builds the tree over the point that `point_of` makes of each item. The id of a point is the index of its item.
    ///
    /// The points are temporary memory, beside that of [`RTree::plan`].
    ///
    /// ```
    /// use kauri::{Device, RTree, SpatialIndex};
    /// struct City { name: &'static str, x: f64, y: f64 }
    /// let cities = [City { name: "Uppsala", x: 17.6, y: 59.9 }, City { name: "Turku", x: 22.3, y: 60.5 }];
    /// let tree = RTree::build_by(&Device::cpu(), &cities, |city| [city.x, city.y])?;
    /// let nearest = tree.nearest_one(&[18.1, 59.3])?.expect("there are cities");
    /// assert_eq!(cities[nearest.id as usize].name, "Uppsala");
    /// # Ok::<(), kauri::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`RTree::build`].
    pub fn build_by<T: Sync>(
        device: &Device,
        items: &[T],
        point_of: impl Fn(&T) -> P + Send + Sync,
    ) -> Result<Self> {
        let points = points_by(items, point_of)?;
        let mut tree = Self::build(device, &points)?;
        tree.stats.temp_bytes += size_of_val(&*points) as u64;
        Ok(tree)
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

    /// Inserts points, and returns their ids, which follow the last id given.
    ///
    /// - Cost: a sort of the new points, and one pass over all points, however few are new.
    ///
    /// # Errors
    /// All errors leave the tree as it was: [`Error::TooManyItems`](crate::Error::TooManyItems) if there are no ids left, because ids are
    /// 32-bit; the errors of [`build`](Self::build) for the first point that cannot be indexed;
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory); errors of the device.
    pub fn insert(&mut self, points: &[P]) -> Result<Range<u32>> {
        let _span = tracing::debug_span!("rtree_insert", points = points.len()).entered();
        let ids = self.next_ids(points.len())?;
        let coords = checked_coordinates(points, "point")?;
        self.backend_mut().insert(&coords)?;
        self.renew(points.len());
        Ok(ids)
    }

    /// Removes the points with these ids.
    ///
    /// - Cost: one pass over all points, however few are removed.
    ///
    /// # Errors
    /// All errors leave the tree as it was: [`Error::UnknownId`](crate::Error::UnknownId) and
    /// [`Error::RepeatedId`](crate::Error::RepeatedId) for the least id that does not belong to a point or that occurs twice;
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory); errors of the device.
    pub fn remove(&mut self, ids: &[u32]) -> Result<()> {
        let _span = tracing::debug_span!("rtree_remove", points = ids.len()).entered();
        self.backend_mut().remove(ids)?;
        self.renew(ids.len());
        Ok(())
    }

    /// Returns true if a point has this id: it has been given, and the point has not been removed.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn contains(&self, id: u32) -> Result<bool> {
        self.backend().contains(id)
    }

    /// Returns the ids of all points in ascending order, which is the order of the rows of a query for all points.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory); errors of the device.
    pub fn ids(&self) -> Result<Vec<u32>> {
        self.backend().ids()
    }

    /// Returns the ids of the next points.
    fn next_ids(&self, num_points: usize) -> Result<Range<u32>> {
        let first = self.backend().num_ids() as u64;
        let end = first.saturating_add(num_points as u64);
        check_count("ids of points", end, MAX_POINTS)?;
        Ok(first as u32..end as u32)
    }

    /// Makes prepared queries invalid if points have changed.
    fn renew(&mut self, num_changed: usize) {
        if num_changed > 0 {
            self.identity = Arc::new(());
        }
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

    fn backend_mut(&mut self) -> &mut dyn Backend<P::Coord> {
        match &mut self.storage {
            Storage::Cpu(tree) => &mut **tree,
            Storage::Gpu(tree) => &mut **tree,
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

    fn num_ids(&self) -> usize {
        self.backend().num_ids()
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

/// Builds the tree over coordinates. It is not generic over points, so it is compiled once, in this crate.
fn build(device: &Device, coords: Coords<'_>, stats: &mut Stats) -> Result<Typed<Storages>> {
    Ok(with_coordinate!(coords, C, coords => match gpu_of!(device) {
        Some(gpu) => Storage::<C>::Gpu(Box::new(GpuTree::build(gpu, coords, stats)?)),
        None => Storage::Cpu(Box::new(cpu::build(coords.checked()?, coords.dims(), stats)?)),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn ids_are_exhausted() {
        let num_ids = MAX_POINTS as usize - 2;
        let mut tree = RTree::<[f32; 2]>::build(&Device::cpu(), &[]).unwrap();
        tree.storage = Storage::Cpu(Box::new(cpu::with_num_ids(2, num_ids).unwrap()));
        assert_eq!(tree.next_ids(2).unwrap(), (num_ids as u32)..MAX_POINTS as u32);
        let error = tree.insert(&[[0.0, 0.0]; 3]).unwrap_err();
        assert!(
            matches!(error, Error::TooManyItems { count, max: MAX_POINTS, .. } if count == MAX_POINTS + 1)
        );
        assert_eq!((tree.len(), tree.num_ids()), (0, num_ids));
    }
}
