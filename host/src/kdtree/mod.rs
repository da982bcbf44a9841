//! Left-balanced k-d trees (Wald 2022).
//!
//! A complete binary tree without pointers: node 0 is the root, node `s` has the children `2s + 1` and `2s + 2`, and splits
//! on the axis that a [`SplitRule`] says. The order on an axis is (coordinate, id), which leaves no ties, so there is exactly
//! one left-balanced tree by a rule over a set of points and every backend builds it, to the last bit.
//!
//! What a [`Builder`] takes on a GPU, beside points and tree, and in how much time: 10M uniform points on an H200, `benches/results`
//! has the run. Temporary memory is for each point: `w` are the words of 4 bytes of its coordinates.
//!
//! | builder | passes over the points | temporary bytes a point | `f32` x 3 | by [`SplitRule::Widest`] |
//! |---|---|---|---|---|
//! | [`Selection`](Builder::Selection) | a level down to subtrees of 2047, 1023 for `f64` or 5 and more dimensions; then one | 4 w + 4, and about 2.3 | 6.5 ms | 7.1 ms |
//! | [`SelectionInPlace`](Builder::SelectionInPlace) | the same of ids; then one for each word | 4 | 7.8 ms | |
//! | [`Tags`](Builder::Tags) | a sort of 5 to 8 passes a level | 4 D + 24, and about 0.3 | 20 ms | |
//! | [`TagsInPlace`](Builder::TagsInPlace) | a sort of O(log^2 n) passes a level | 4 | 247 ms | |

mod backend;
pub(crate) mod cpu;
mod gpu;
mod on_device;
#[cfg(feature = "io")]
pub(crate) mod stored;

use crate::device::{Device, Gpu};
use crate::error::{Error, Result};
use crate::memory;
use crate::memory::MemoryPlan;
use crate::point::{
    Coords, Dispatch, MAX_POINTS, NoValue, PerCoordinate, Point, Slice, Typed, checked_coordinates, dims,
    with_coordinate,
};
use crate::query::backend::QueryBackend;
use crate::query::on_device::Identity;
use crate::query::{SealedIndex, SpatialIndex};
use crate::stats::Stats;
use backend::{Backend, GpuBackend};
use kauri_kernels::thread::coord::Coord;
use std::marker::PhantomData;

/// How a [`KdTree`] is built.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct KdTreeOptions {
    /// How a GPU builds it; the tree is the same.
    pub builder: Builder,
    /// On which axis each node splits.
    pub split: SplitRule,
}

impl KdTreeOptions {
    /// With this builder.
    pub fn builder(mut self, builder: Builder) -> Self {
        self.builder = builder;
        self
    }

    /// With this rule.
    pub fn split(mut self, split: SplitRule) -> Self {
        self.split = split;
        self
    }
}

/// On which axis each node of a tree splits. Results of queries do not depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SplitRule {
    /// Nodes of level `l` split on axis `l mod dims`. Where all points lie on a line along one axis, only every `dims`-th level separates
    /// them, and a query visits O(n^(1 - 1 / dims)) nodes; [`Widest`](Self::Widest) keeps O(log n).
    #[default]
    RoundRobin,
    /// On the widest axis of the node's cell, of equally wide ones the lower: for points that lie much farther apart on some axes
    /// than on others. The cell of the root is the box of all points; every node cuts its cell in two (Wald 2022, section 5).
    /// Takes a byte for every second point.
    Widest,
}

/// How a GPU builds a tree. All build the same, to the last bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Builder {
    /// A pass over the points a level, which splits every subtree at its pivot; the fastest.
    #[default]
    Selection,
    /// The same with the least memory: only ids are moved, and coordinates brought to them at last, in their place.
    SelectionInPlace,
    /// A sort a level, by tag and rank (Wald 2022, section 4).
    Tags,
    /// The same by swaps of points alone, in their place, with a tag each (bitonic sort, Batcher 1968): O(n log^3 n).
    TagsInPlace,
}

/// A left-balanced k-d tree over a set of points. The id of a point is its index in the input.
///
/// The points are copied; nothing of the caller's is borrowed. Queries are those of [`SpatialIndex`].
///
/// ```
/// use kauri::{Device, KdTree, KdTreeOptions, SpatialIndex};
/// let points = [[0.0f32, 0.0], [3.0, 4.0], [1.0, 0.0]];
/// let tree = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default())?;
/// let near = tree.nearest(&[[0.0, 0.0]], 2)?;
/// assert_eq!(near.row(0), (&[0, 2][..], &[0.0, 1.0][..]));
/// # Ok::<(), kauri::Error>(())
/// ```
pub struct KdTree<P: Point> {
    device: Device,
    stats: Stats,
    storage: Storage<P::Coord>,
    identity: Identity,
    points: PhantomData<fn() -> P>,
}

/// The tree in the memory of its device.
pub(crate) enum Storage<C> {
    Cpu(Box<dyn Backend<C>>),
    Gpu(Box<dyn GpuBackend<C>>),
}

impl<P: Point> KdTree<P> {
    /// Builds the tree over `points` on `device`.
    ///
    /// - Cost: O(n log n), with [`Builder::Tags`] O(n log^2 n) on a GPU; memory by [`KdTree::plan`].
    /// - Result: the same bits on every backend and in every run. Equal coordinates are ordered by id, -0.0 equals 0.0.
    /// - Degenerate input: no points, one point, all points equal, points on a line are all fine.
    ///
    /// # Errors
    /// [`Error::TooManyItems`] beyond [`MAX_POINTS`]; [`Error::NonFinite`], [`Error::CoordinateTooLarge`] or
    /// [`Error::InvalidLonLat`] for the first point that cannot be indexed; [`Error::OutOfMemory`]; errors of the device.
    pub fn build(device: &Device, points: &[P], options: &KdTreeOptions) -> Result<Self> {
        if points.len() as u64 > MAX_POINTS {
            return Err(Error::TooManyItems { what: "points", count: points.len() as u64, max: MAX_POINTS });
        }
        let _span = tracing::debug_span!("kdtree_build", points = points.len(), dims = P::DIMS).entered();
        let mut stats = Stats::new(device);
        stats.temp_bytes = Self::plan(device, points.len(), options).temp_bytes;
        let coords = stats.phase("validate", || checked_coordinates(points, "point"))?;
        let storage = build(device, P::Coord::wrap::<Slice<'_>>(&coords), P::DIMS, options, &mut stats)?;
        Ok(Self::of(device.clone(), stats, P::Coord::unwrap(storage)))
    }

    fn of(device: Device, stats: Stats, storage: Storage<P::Coord>) -> Self {
        Self { device, stats, storage, identity: Identity::new(), points: PhantomData }
    }

    /// Bytes that building a tree over `num_points` points on `device` takes, for [`MAX_POINTS`] if there are more;
    /// nothing is allocated.
    pub fn plan(device: &Device, num_points: usize, options: &KdTreeOptions) -> MemoryPlan {
        let num_points = num_points.min(MAX_POINTS as usize);
        let coords_bytes = (num_points * dims::<P>() * size_of::<P::Coord>()) as u64;
        let converted_bytes = if P::CONVERTED { coords_bytes } else { 0 };
        let build_bytes = match device.gpu() {
            None => cpu::temp_bytes::<P::Coord>(num_points as u64, P::DIMS, options.split),
            Some(_) => gpu::temp_bytes::<P::Coord>(num_points, P::DIMS, options),
        };
        let tree_bytes = num_axes(num_points, options.split) as u64
            + match device.gpu() {
                None => coords_bytes + (num_points * size_of::<u32>()) as u64,
                Some(_) => gpu::tree_bytes::<P::Coord>(num_points, P::DIMS),
            };
        MemoryPlan { tree_bytes, temp_bytes: converted_bytes + build_bytes }
    }

    /// Checks that the tree is what [`KdTree::build`] promises: every id once, every node in its place by the order
    /// (coordinate, id) against all its ancestors, and split on the axis that its rule says. O(n log n), where the tree is.
    ///
    /// # Errors
    /// [`Error::Corrupt`] with the node and the reason; errors of the device.
    pub fn verify(&self) -> Result<()> {
        self.backend().verify()
    }

    /// The ids of the points in level order: entry `s` is the point that is node `s`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; errors of the device.
    pub fn node_ids(&self) -> Result<Vec<u32>> {
        self.backend().node_ids()
    }

    /// Payloads in level order, as [`node_ids`](KdTree::node_ids): entry `s` belongs to the point that is node `s`. `payloads` are in
    /// the order of ids.
    ///
    /// ```
    /// # use kauri::{Device, KdTree, KdTreeOptions};
    /// let tree = KdTree::build(&Device::cpu(), &[[3.0f32], [1.0], [2.0]], &KdTreeOptions::default())?;
    /// assert_eq!(tree.payloads_by_node(&["c", "a", "b"])?, ["b", "a", "c"]);
    /// # Ok::<(), kauri::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] unless there is one for every point; [`Error::OutOfMemory`]; errors of the device.
    pub fn payloads_by_node<T: Copy>(&self, payloads: &[T]) -> Result<Vec<T>> {
        if payloads.len() != self.len() {
            let (expected, got) = (self.len() as u64, payloads.len() as u64);
            return Err(Error::Shape { what: "payloads of the points", expected, got });
        }
        let mut by_node = memory::vec_with_capacity(payloads.len(), "payloads of the nodes")?;
        by_node.extend(self.node_ids()?.into_iter().map(|id| payloads[id as usize]));
        Ok(by_node)
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.backend().num_points()
    }

    /// True if there are no points.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn backend(&self) -> &dyn Backend<P::Coord> {
        match &self.storage {
            Storage::Cpu(tree) => &**tree,
            Storage::Gpu(tree) => &**tree,
        }
    }

    /// The device that the tree lives on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// What the build cost.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }
}

impl<P: Point> SealedIndex for KdTree<P> {}

impl<P: Point> SpatialIndex for KdTree<P> {
    type Point = P;

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

/// Nodes of which the axis is stored: those that have children, unless levels tell it.
fn num_axes(num_points: usize, split: SplitRule) -> usize {
    match split {
        SplitRule::RoundRobin => 0,
        SplitRule::Widest => num_points / 2,
    }
}

/// [`Storage`] for each type of coordinates.
pub(crate) struct Storages;

impl PerCoordinate for Storages {
    type Of<C: Coord> = Storage<C>;
}

/// Builds the tree over validated coordinates on a device.
fn build(
    device: &Device,
    coords: Coords<'_>,
    dims: usize,
    options: &KdTreeOptions,
    stats: &mut Stats,
) -> Result<Typed<Storages>> {
    Ok(with_coordinate!(coords, C, coords => match device.gpu() {
        None => Storage::Cpu(Box::new(cpu::build(coords, dims, options.split, stats)?)),
        Some(gpu) => Storage::Gpu(Box::new(gpu::GpuTree::build(gpu, coords, dims, options, stats)?)),
    }))
}

/// Allocates a tree over `num_points` points in device memory.
fn allocate(
    coordinate: Typed<NoValue>,
    gpu: &Gpu,
    num_points: usize,
    dims: usize,
    rule: SplitRule,
) -> Result<Typed<Storages>> {
    Ok(with_coordinate!(coordinate, C, () => {
        Storage::Gpu(Box::new(gpu::GpuTree::<C>::uninitialized(gpu, num_points, dims, rule)?))
    }))
}
