//! Left-balanced k-d trees (Wald 2022).
//!
//! The tree is a complete binary tree without pointers. Node 0 is the root. Node `s` has the children `2s + 1` and `2s + 2`; a
//! [`SplitRule`] chooses its split axis. Points are ordered on an axis by (coordinate, id). This order has no ties, so a split rule and a
//! set of points determine the left-balanced tree, and every backend builds it to the last bit. Public calls and files have the nodes
//! in this level order; a GPU keeps them in in-order sequence, in which the points of every subtree are consecutive.
//!
//! The table shows what each [`BuildAlgorithm`] costs on a GPU: 10M uniform points on an H200, run in `benches/results`. `w` is the number
//! of 4-byte words of a point's coordinates. Temporary bytes do not include the points and the tree.
//!
//! | algorithm | passes over the points | temporary bytes per point | `f32` x 3 | `f32` x 3, [`SplitRule::Widest`] |
//! |---|---|---|---|---|
//! | [`Selection`](BuildAlgorithm::Selection) | one per level down to subtrees of 2047 points (1023 for `f64`), then one | 4 w + 4, plus about 2.3 | 5.7 ms | 6.4 ms |
//! | [`SelectionInPlace`](BuildAlgorithm::SelectionInPlace) | the passes of `Selection` over ids, then one per word | 4 | 8.4 ms | |
//!
//! The feature `research` adds the algorithms of Wald's paper (`kauri::research::kdtree`).
//!
//! ```
//! use kauri::{Device, KdTree, KdTreeOptions, SpatialIndex};
//! let points = [[0.0f32, 0.0], [3.0, 4.0], [1.0, 0.0]];
//! let tree = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default())?;
//! assert_eq!(tree.node_ids()?, [2, 0, 1]);
//! assert_eq!(tree.nearest_one(&[2.0, 3.0])?.map(|nearest| nearest.id), Some(1));
//! # Ok::<(), kauri::Error>(())
//! ```

mod backend;
pub(crate) mod cpu;
mod gpu;
mod on_device;
mod options;
#[cfg(feature = "io")]
pub(crate) mod stored;

pub use options::{BuildAlgorithm, KdTreeOptions, SplitRule};

use crate::device::{Device, gpu_of};
use crate::error::{Result, check_count, check_len};
use crate::host_coords::{Coords, build_over_coordinates};
use crate::memory::{self, MemoryPlan};
use crate::point::{Dispatch, MAX_POINTS, PerCoordinate, Point, Typed, dims, points_by, with_coordinate};
use crate::query::backend::QueryBackend;
use crate::query::{SealedIndex, SpatialIndex};
use crate::stats::Stats;
use backend::{Backend, GpuBackend};
use gpu::GpuTree;
use kauri_kernels::thread::coord::Coord;
use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

/// A left-balanced k-d tree over a set of points. The id of a point is its index in the input.
///
/// The tree copies the points. The trait [`SpatialIndex`] has the queries. The tree is immutable: if points change, build another, or
/// [`rebuild_on`](KdTree::rebuild_on) it over points in device memory. The feature `io` adds `save`, `load` and `map` for index files.
///
/// ```
/// use kauri::{Device, KdTree, KdTreeOptions, SpatialIndex};
/// let points = [[0.0f32, 0.0], [3.0, 4.0], [1.0, 0.0]];
/// let tree = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default())?;
/// let near = tree.nearest(&[[0.0, 0.0]], 2)?;
/// assert_eq!(near.row(0).ids(), [0, 2]);
/// assert_eq!(near.row(0).dist2(), [0.0, 1.0]);
/// # Ok::<(), kauri::Error>(())
/// ```
pub struct KdTree<P: Point> {
    device: Device,
    stats: Stats,
    storage: Storage<P::Coord>,
    /// Its address distinguishes the tree from all others, including dropped ones that have prepared queries.
    identity: Arc<()>,
    points: PhantomData<fn() -> P>,
}

/// A tree in the memory of its device.
pub(crate) enum Storage<C> {
    Cpu(Box<dyn Backend<C>>),
    Gpu(Box<dyn GpuBackend<C>>),
}

/// [`Storage`] for each type of coordinates.
pub(crate) struct Storages;

impl PerCoordinate for Storages {
    type Of<C: Coord> = Storage<C>;
}

impl<P: Point> KdTree<P> {
    /// Builds the tree over `points` on `device`.
    ///
    /// - Cost: O(n log n). [`KdTree::plan`] returns the memory.
    /// - Result: the same bits on every backend and in every run. Equal coordinates are ordered by id; -0.0 equals 0.0.
    /// - Degenerate input: no points, one point, equal points and points on a line are valid.
    ///
    /// # Errors
    /// [`Error::TooManyItems`](crate::Error::TooManyItems) beyond [`MAX_POINTS`]; [`Error::NonFinite`](crate::Error::NonFinite),
    /// [`Error::CoordinateTooLarge`](crate::Error::CoordinateTooLarge) or [`Error::InvalidLonLat`](crate::Error::InvalidLonLat) for the
    /// first point that cannot be indexed; [`Error::OutOfMemory`](crate::Error::OutOfMemory); errors of the device.
    pub fn build(device: &Device, points: &[P], options: &KdTreeOptions) -> Result<Self> {
        check_count("points", points.len() as u64, MAX_POINTS)?;
        let _span = tracing::debug_span!("kdtree_build", points = points.len(), dims = P::DIMS).entered();
        let mut stats = Stats::new(device);
        stats.temp_bytes = Self::plan(device, points.len(), options).temp_bytes;
        let storage = build_over_coordinates(points, device, &mut stats, |coords, stats| {
            build(device, coords, options, stats)
        })?;
        Ok(Self::from_parts(device.clone(), stats, P::Coord::unwrap(storage)))
    }

    /// Builds the tree over the point that `point_of` makes of each item. The id of a point is the index of its item.
    ///
    /// The points are temporary memory, beside that of [`KdTree::plan`].
    ///
    /// ```
    /// use kauri::{Device, KdTree, KdTreeOptions, SpatialIndex};
    /// struct City { name: &'static str, x: f64, y: f64 }
    /// let cities = [City { name: "Uppsala", x: 17.6, y: 59.9 }, City { name: "Turku", x: 22.3, y: 60.5 }];
    /// let tree = KdTree::build_by(&Device::cpu(), &cities, |city| [city.x, city.y], &KdTreeOptions::default())?;
    /// let nearest = tree.nearest_one(&[18.1, 59.3])?.expect("there are cities");
    /// assert_eq!(cities[nearest.id as usize].name, "Uppsala");
    /// # Ok::<(), kauri::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`KdTree::build`].
    pub fn build_by<T: Sync>(
        device: &Device,
        items: &[T],
        point_of: impl Fn(&T) -> P + Send + Sync,
        options: &KdTreeOptions,
    ) -> Result<Self> {
        let points = points_by(items, point_of)?;
        let mut tree = Self::build(device, &points, options)?;
        tree.stats.temp_bytes += size_of_val(&*points) as u64;
        Ok(tree)
    }

    fn from_parts(device: Device, stats: Stats, storage: Storage<P::Coord>) -> Self {
        Self { device, stats, storage, identity: Arc::new(()), points: PhantomData }
    }

    /// Returns the bytes that a build over `num_points` points on `device` takes. It allocates nothing. More than [`MAX_POINTS`] points
    /// count as [`MAX_POINTS`].
    pub fn plan(device: &Device, num_points: usize, options: &KdTreeOptions) -> MemoryPlan {
        let num_points = num_points.min(MAX_POINTS as usize);
        let coords_bytes = (num_points * dims::<P>() * size_of::<P::Coord>()) as u64;
        let converted_bytes = if P::CONVERTED { coords_bytes } else { 0 };
        let build_bytes = match gpu_of!(device) {
            None => cpu::temp_bytes::<P::Coord>(num_points as u64, P::DIMS, options),
            Some(_) => gpu::temp_bytes::<P::Coord>(num_points, P::DIMS, options),
        };
        let tree_bytes = options.split.num_stored_axes(num_points) as u64
            + match gpu_of!(device) {
                None => cpu::tree_bytes::<P::Coord>(num_points, P::DIMS),
                Some(_) => gpu::tree_bytes::<P::Coord>(num_points, P::DIMS, options.split),
            };
        MemoryPlan { tree_bytes, temp_bytes: converted_bytes + build_bytes }
    }

    /// Checks what [`KdTree::build`] promises: each id occurs once, each node is on the correct side of all its ancestors in the order
    /// (coordinate, id), and each node splits on the axis of the split rule. O(n log n), on the device of the tree.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) with the node and the reason; errors of the device.
    pub fn verify(&self) -> Result<()> {
        self.backend().verify()
    }

    /// Returns the ids of the points in level order: entry `s` is the id of the point of node `s`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory); errors of the device.
    pub fn node_ids(&self) -> Result<Vec<u32>> {
        self.backend().node_ids()
    }

    /// Returns the payloads in level order: entry `s` is the payload of the point of node `s`. `payloads[i]` is the payload of point `i`.
    ///
    /// ```
    /// # use kauri::{Device, KdTree, KdTreeOptions};
    /// let tree = KdTree::build(&Device::cpu(), &[[3.0f32], [1.0], [2.0]], &KdTreeOptions::default())?;
    /// assert_eq!(tree.payloads_by_node(&["c", "a", "b"])?, ["b", "a", "c"]);
    /// # Ok::<(), kauri::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) unless there is one payload per point; [`Error::OutOfMemory`](crate::Error::OutOfMemory);
    /// errors of the device.
    pub fn payloads_by_node<T: Copy>(&self, payloads: &[T]) -> Result<Vec<T>> {
        check_len("payloads of the points", self.len(), payloads.len())?;
        memory::collect(self.node_ids()?.into_iter().map(|id| payloads[id as usize]), "payloads of the nodes")
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

impl<P: Point> SealedIndex for KdTree<P> {}

impl<P: Point> SpatialIndex for KdTree<P> {
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

impl<P: Point> std::fmt::Debug for KdTree<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KdTree")
            .field("len", &self.len())
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

/// Builds the tree over coordinates. It is not generic over points, so it is compiled once, in this crate. The macro runs the
/// `match` for the coordinate type that `coords` contains.
fn build(
    device: &Device,
    coords: Coords<'_>,
    options: &KdTreeOptions,
    stats: &mut Stats,
) -> Result<Typed<Storages>> {
    Ok(with_coordinate!(coords, C, coords => match gpu_of!(device) {
        Some(gpu) => Storage::<C>::Gpu(Box::new(GpuTree::build(gpu, coords, options, stats)?)),
        None => Storage::Cpu(Box::new(cpu::build(coords.checked()?, coords.dims(), options, stats)?)),
    }))
}
