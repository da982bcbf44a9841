//! Balanced k-d trees over distinct points (Brown 2015, *Building a Balanced k-d Tree in O(kn log n) Time*).
//!
//! Every node is the median of the points of its subtree, and equal points have one node. Choose this tree to have exact medians, the
//! nodes with their children, or a list of equal points; for queries alone a [`KdTree`](super::KdTree) takes less time to build.
//!
//! The table shows milliseconds of a build without the copy of the points to the device, for uniform points of 4 `f32` on H200s
//! (page `benches/results/pages/kdtree-multi-gpu.md`; four GPUs: of an earlier commit).
//!
//! | build | 2^24 points | 2^28 points | temporary memory |
//! |---|--:|--:|---|
//! | [`build`](BalancedKdTree::build) | 11 | 471 | 47 bytes per point ([`plan`](BalancedKdTree::plan)) |
//! | [`build_over`](BalancedKdTree::build_over) in two halves on one GPU | 12 | 368 | 44 bytes per point ([`plan_over`](BalancedKdTree::plan_over)) |
//! | `build_over` on 2 GPUs | 6.8 | 185 | that of one part |
//! | `build_over` on 4 GPUs | | 118 | that of one part |
//!
//! A GPU sorts one array of ids per axis with radix sorts and partitions the arrays by path codes. With the feature `research`, other
//! algorithms build the same tree; the module `research::balanced` compares them. [`build_on`](BalancedKdTree::build_on) builds the tree
//! over points in device memory, and [`DeviceIndex`](crate::query::DeviceIndex) has queries there.

mod backend;
mod cpu;
mod gpu;
mod multi_gpu;
mod on_device;
pub(crate) mod options;
#[cfg(feature = "io")]
mod stored;
mod super_key;

pub use options::BalancedOptions;

use kauri_kernels::balanced::NONE;
use kauri_kernels::query::left_balanced::{full_tree, num_levels};
use kauri_kernels::thread::coord::{Coord, Float};
use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::device::{Device, Gpu, gpu_of, gpus_of};
use crate::error::{Result, check_count};
use crate::host_coords::{Coords, HostCoords, build_over_coordinates};
use crate::memory::{self, MemoryPlan};
use crate::parallel::{self, TASK_ITEMS};
use crate::point::{
    Dispatch, DistanceOf, MAX_POINTS, PerCoordinate, Point, Typed, are_floats_copied, dims, points_by,
};
use crate::query::backend::QueryBackend;
use crate::query::{SealedIndex, SpatialIndex};
use crate::stats::Stats;
use backend::Backend;
use multi_gpu::MultiGpuTree;

/// A node of a [`BalancedKdTree`]: the id of its point, and the ids of the points of its children.
///
/// ```
/// use kauri::Device;
/// use kauri::balanced::{BalancedKdTree, Node};
/// let tree = BalancedKdTree::build(&Device::cpu(), &[[3.0f32], [1.0], [2.0]], &Default::default())?;
/// assert_eq!(tree.nodes()?[0], Node { id: 2, less: Some(1), greater: Some(0) });
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The id of its point.
    pub id: u32,
    /// The root of the subtree of the points before it, in the order of its level.
    pub less: Option<u32>,
    /// The root of the subtree of the points after it.
    pub greater: Option<u32>,
}

/// A point that was removed because it equals another point.
///
/// ```
/// use kauri::Device;
/// use kauri::balanced::{BalancedKdTree, Removed};
/// let tree = BalancedKdTree::build(&Device::cpu(), &[[3.0f32], [1.0], [3.0]], &Default::default())?;
/// assert_eq!(tree.removed()?, [Removed { id: 2, kept: 0 }]);
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed {
    /// The id of the removed point.
    pub id: u32,
    /// The id of the point that was kept: the first of all equal points.
    pub kept: u32,
}

/// A balanced k-d tree with one node per distinct point. Each node is the median of the points of its subtree (Brown 2015, *Building a
/// Balanced k-d Tree in O(kn log n) Time*; Robinson's KdTreeGPU on a GPU). The id of a point is its index in the input.
///
/// The points of level `l` are ordered by the *super key* of axis `a = l mod dims`: by the coordinate on axis `a`, ties by the coordinate
/// on axis `a + 1`, and so on, cyclically. -0.0 equals 0.0. The tree keeps the first of equal points and removes the others. Of n distinct
/// points in this order, point (n - 1) / 2, rounded down, is the root; the points before it are the less subtree, the points after it the
/// greater subtree. The tree has floor(log2 n) + 1 levels for any input, and is the same on every backend.
///
/// A GPU builds it level by level. The CPU builds it depth first, both subtrees in parallel.
///
/// ```
/// use kauri::Device;
/// use kauri::balanced::{BalancedKdTree, BalancedOptions};
/// let points = [[2.0f32, 3.0], [5.0, 4.0], [9.0, 6.0], [5.0, 4.0], [4.0, 7.0]];
/// let tree = BalancedKdTree::build(&Device::cpu(), &points, &BalancedOptions::default())?;
/// assert_eq!(tree.len(), 4);
/// assert_eq!(tree.removed()?[0].kept, 1);
/// assert_eq!(tree.nodes()?[0].id, 4);
/// # Ok::<(), kauri::Error>(())
/// ```
pub struct BalancedKdTree<P: Point> {
    devices: Vec<Device>,
    stats: Stats,
    num_points: usize,
    tree: Box<dyn Backend<DistanceOf<P>>>,
    /// Its address distinguishes the tree from all others, including dropped ones that have prepared queries.
    identity: Arc<()>,
    points: PhantomData<fn() -> P>,
}

/// [`Backend`] for each type of coordinates.
pub(crate) struct Backends;

impl PerCoordinate for Backends {
    type Of<C: Coord> = Box<dyn Backend<C>>;
}

/// The devices that a tree is built on.
#[derive(Clone, Copy)]
enum Place<'a> {
    Device(&'a Device),
    Gpus(&'a [Gpu]),
}

/// Builds the tree over coordinates; integers become `f64`, on a GPU in its memory. It is not generic over points, so it is
/// compiled once, in this crate.
fn build(
    place: Place<'_>,
    coords: Coords<'_>,
    options: &BalancedOptions,
    stats: &mut Stats,
) -> Result<Typed<Backends>> {
    Ok(match coords {
        Typed::F32(coords) => Typed::F32(build_of_floats(place, coords, options, stats)?),
        Typed::F64(coords) => Typed::F64(build_of_floats(place, coords, options, stats)?),
        Typed::I32(coords) => Typed::F64(match place {
            Place::Device(device) if let Some(gpu) = gpu_of!(device) => {
                Box::new(gpu::GpuTree::build_of_integers(gpu, coords, options, stats)?)
            }
            _ => {
                let floats = stats.phase("convert", || i32::widened(coords.checked()?.into()))?;
                build_of_floats(place, HostCoords::of_checked(&floats, coords.dims()), options, stats)?
            }
        }),
    })
}

fn build_of_floats<C: Float>(
    place: Place<'_>,
    coords: HostCoords<'_, C>,
    options: &BalancedOptions,
    stats: &mut Stats,
) -> Result<Box<dyn Backend<C>>> {
    Ok(match place {
        Place::Gpus(gpus) => Box::new(MultiGpuTree::build(gpus, coords, options, stats)?),
        Place::Device(device) => match gpu_of!(device) {
            None => Box::new(cpu::CpuTree::build(coords.checked()?, coords.dims(), stats)?),
            Some(gpu) => Box::new(gpu::GpuTree::build(gpu, coords, options, stats)?),
        },
    })
}

impl<P: Point> BalancedKdTree<P> {
    /// Builds the tree over `points` on `device`.
    ///
    /// - Cost: O(dims n log n). [`plan`](BalancedKdTree::plan) returns the memory. Phases of [`stats`](BalancedKdTree::stats): init, sort,
    ///   dedupe, partition.
    /// - Degenerate input: no points, one point, equal points and points on a line are valid.
    ///
    /// # Errors
    /// [`Error::TooManyItems`](crate::Error::TooManyItems) beyond [`MAX_POINTS`]; [`Error::NonFinite`](crate::Error::NonFinite),
    /// [`Error::CoordinateTooLarge`](crate::Error::CoordinateTooLarge) or [`Error::InvalidLonLat`](crate::Error::InvalidLonLat) for the first
    /// point that cannot be indexed; [`Error::OutOfMemory`](crate::Error::OutOfMemory); errors of the device.
    pub fn build(device: &Device, points: &[P], options: &BalancedOptions) -> Result<Self> {
        let _span =
            tracing::debug_span!("balanced_kdtree_build", points = points.len(), dims = P::DIMS).entered();
        let mut tree = Self::build_at(Place::Device(device), vec![device.clone()], points, options)?;
        tree.stats.temp_bytes = Self::plan(device, points.len(), options).temp_bytes;
        Ok(tree)
    }

    fn build_at(
        place: Place<'_>,
        devices: Vec<Device>,
        points: &[P],
        options: &BalancedOptions,
    ) -> Result<Self> {
        let (num_points, mut stats) = (points.len(), Stats::new(&devices[0]));
        check_count("points", num_points as u64, MAX_POINTS)?;
        let tree = build_over_coordinates(points, &devices[0], &mut stats, |coords, stats| {
            build(place, coords, options, stats)
        })?;
        Ok(Self::from_parts(devices, stats, num_points, DistanceOf::<P>::unwrap(tree)))
    }

    fn from_parts(
        devices: Vec<Device>,
        stats: Stats,
        num_points: usize,
        tree: Box<dyn Backend<DistanceOf<P>>>,
    ) -> Self {
        Self { devices, stats, num_points, tree, identity: Arc::new(()), points: PhantomData }
    }

    /// Builds the tree over the point that `point_of` makes of each item. The id of a point is the index of its item.
    ///
    /// The points are temporary memory, beside that of [`plan`](BalancedKdTree::plan).
    ///
    /// # Errors
    /// The errors of [`build`](BalancedKdTree::build).
    pub fn build_by<T: Sync>(
        device: &Device,
        items: &[T],
        point_of: impl Fn(&T) -> P + Send + Sync,
        options: &BalancedOptions,
    ) -> Result<Self> {
        let points = points_by(items, point_of)?;
        let mut tree = Self::build(device, &points, options)?;
        tree.stats.temp_bytes += size_of_val(&*points) as u64;
        Ok(tree)
    }

    /// Builds the tree on up to eight GPUs. Each GPU starts with an equal part of the points and ends with a subtree: a half of the tree, a
    /// quarter or an eighth. (With three GPUs, two share one half.) On one GPU the tree is built in two halves. A device may be in the list
    /// more than once.
    ///
    /// - Result: the medians, nodes and removed points of [`build`](BalancedKdTree::build), for any list of devices. Each subtree remains
    ///   in the memory of its GPU. Host memory holds the few nodes above the subtrees. If points were removed, the GPUs hold 8 to 16
    ///   bytes per point until the first call that needs the removed points; from then on host memory holds 4.
    /// - Cost: `build` over one part, and per level above the subtrees the selection of a median and one move of each point between
    ///   devices: directly if the devices have peer access, else through host memory. If points are equal, or thousands of them have the
    ///   first coordinate of a median, the parts are sorted and merged first, which costs a sort and a move more.
    ///   [`plan_over`](BalancedKdTree::plan_over) returns the memory.
    /// - Phases of [`stats`](BalancedKdTree::stats): init, sort (also the selections, and the removal of equal points within a part),
    ///   exchange, dedupe and partition. Of steps that run in parallel the longest counts. `temp_bytes` is that of the part with the most.
    /// - Files: a saved file equals the file that `build` would save, except that a removed point has the coordinates of the point that was
    ///   kept, so -0.0 may become 0.0 or the reverse. Loading puts the tree on one device.
    ///
    /// # Errors
    /// The errors of [`build`](BalancedKdTree::build); [`Error::NotOnGpu`](crate::Error::NotOnGpu) if a device is the CPU;
    /// [`Error::Shape`](crate::Error::Shape) if the list is empty; [`Error::TooManyItems`](crate::Error::TooManyItems) if it has more than
    /// eight devices. After an error of one device the others remain usable.
    pub fn build_over(devices: &[Device], points: &[P], options: &BalancedOptions) -> Result<Self> {
        let (gpus, count) = (gpus_of("devices to build on", devices)?, devices.len());
        let _span =
            tracing::debug_span!("balanced_kdtree_build_over", points = points.len(), dims = P::DIMS, count)
                .entered();
        Self::build_at(Place::Gpus(&gpus), devices.to_vec(), points, options)
    }

    /// Returns the bytes that a build over `num_points` distinct points on `device` takes. It allocates nothing. More than [`MAX_POINTS`]
    /// points count as [`MAX_POINTS`].
    pub fn plan(device: &Device, num_points: usize, options: &BalancedOptions) -> MemoryPlan {
        let num_points = num_points.min(MAX_POINTS as usize);
        let (mut plan, are_copied) = match gpu_of!(device) {
            None => (cpu::memory_plan::<DistanceOf<P>>(num_points, dims::<P>()), are_floats_copied::<P>()),
            // A GPU converts integers before it needs its temporary memory.
            Some(_) => (gpu::memory_plan::<DistanceOf<P>>(num_points, dims::<P>(), options), P::CONVERTED),
        };
        if are_copied {
            plan.temp_bytes += (num_points * dims::<P>() * size_of::<DistanceOf<P>>()) as u64;
        }
        plan
    }

    /// Returns the most bytes that [`build_over`](BalancedKdTree::build_over) takes on one of `num_devices` GPUs, for distinct points and
    /// distinct devices. `tree_bytes` are those of one subtree. It allocates nothing. More than [`MAX_POINTS`] points count as
    /// [`MAX_POINTS`].
    pub fn plan_over(num_devices: usize, num_points: usize, options: &BalancedOptions) -> MemoryPlan {
        let num_points = num_points.min(MAX_POINTS as usize);
        multi_gpu::memory_plan::<DistanceOf<P>>(num_points, num_devices, dims::<P>(), options)
    }

    /// Returns the number of nodes, which is the number of distinct points.
    pub fn len(&self) -> usize {
        self.tree.num_nodes()
    }

    /// Returns the number of levels: floor(log2 n) + 1 for n nodes, 0 for none.
    pub fn num_levels(&self) -> u32 {
        num_levels(self.len() as u32)
    }

    /// Returns true if there are no points.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of input points, including removed ones.
    pub fn num_points(&self) -> usize {
        self.num_points
    }

    /// Returns all nodes level by level, root first, and from less to greater within a level.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory); errors of the device.
    pub fn nodes(&self) -> Result<Vec<Node>> {
        let medians = self.tree.medians()?;
        let mut nodes = memory::vec_with_capacity(self.len(), "nodes of the tree")?;
        let node_at = |slot: usize| medians.get(slot).copied().filter(|&id| id != NONE);
        // Only the last level lacks nodes.
        let num_inner = full_tree(self.num_levels().saturating_sub(1)) as usize;
        parallel::fill(&mut nodes.spare_capacity_mut()[..num_inner], TASK_ITEMS, |slot| {
            let [less, greater] = [2 * slot + 1, 2 * slot + 2].map(node_at);
            Node { id: medians[slot], less, greater }
        });
        // SAFETY: the nodes have been written.
        unsafe { nodes.set_len(num_inner) };
        let last_level = (num_inner..medians.len()).filter_map(node_at);
        nodes.extend(last_level.map(|id| Node { id, less: None, greater: None }));
        Ok(nodes)
    }

    /// Returns the tree as an array without pointers. Level `l` has `2^l` addresses; levels are stored one after another. The entry of an
    /// address is the id of its point, or `u32::MAX` if there is no node. The children of address `i` of a level are the addresses `2 i`
    /// and `2 i + 1` of the next level.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory); errors of the device.
    pub fn medians(&self) -> Result<Vec<u32>> {
        self.tree.medians()
    }

    /// Returns the removed points, in the order of their ids.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory); errors of the device.
    pub fn removed(&self) -> Result<Vec<Removed>> {
        let representatives = self.tree.representatives()?;
        let mut removed = memory::vec_with_capacity(self.num_points - self.len(), "points removed")?;
        let pairs = representatives.into_iter().enumerate().map(|(id, kept)| Removed { id: id as u32, kept });
        removed.extend(pairs.filter(|pair| pair.id != pair.kept));
        Ok(removed)
    }

    /// Checks what [`build`](BalancedKdTree::build) promises: one node per distinct point, each node on the correct side of all its
    /// ancestors, and the shape of a balanced tree. O(n log n), on the device of the tree.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) with the index of the node in [`medians`](BalancedKdTree::medians) and the reason; errors of
    /// the device.
    pub fn verify(&self) -> Result<()> {
        self.tree.verify()
    }

    /// Returns the device that holds the tree; the first one if there are several.
    pub fn device(&self) -> &Device {
        &self.devices[0]
    }

    /// Returns the devices that hold the tree, in the order of the call.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// Returns the time and memory that the build took.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }
}

impl<P: Point> SealedIndex for BalancedKdTree<P> {}

/// Queries find the points that were kept. Masks and [`Queries::SelfQuery`](crate::query::Queries::SelfQuery) refer to all input points. As a query, a
/// removed point finds its kept point at distance 0.
///
/// The first query builds a bucket index, as a [`KdTree`](super::KdTree) has: on a GPU it takes the memory of such a tree, on the CPU up to
/// twice the memory of the points. A GPU answers [`Traversal`](crate::query::Traversal)s by nodes with the traversal over buckets.
///
/// Robinson's search (all points that differ by at most a distance on every axis) is the query for points within a radius with
/// [`Norm::Chebyshev`](crate::query::Norm::Chebyshev).
///
/// A tree on several devices queries all of them in parallel and merges their results. The rows equal those of the tree on one device. The
/// merge takes host memory for the result of each device; for nearest neighbors, at most that of 16 million entries per device. If the
/// queries are the points of the tree, their coordinates are first copied to the host.
impl<P: Point> SpatialIndex for BalancedKdTree<P> {
    type Point = P;
    type StoredCoord = DistanceOf<P>;

    fn to_stored(coords: Cow<'_, [P::Coord]>) -> Result<Cow<'_, [DistanceOf<P>]>> {
        P::Coord::widened(coords)
    }

    fn device(&self) -> &Device {
        self.device()
    }

    fn num_points(&self) -> usize {
        self.num_points
    }

    fn query_backend(&self) -> Result<&dyn QueryBackend<DistanceOf<P>>> {
        self.tree.query_backend()
    }
}

impl<P: Point> std::fmt::Debug for BalancedKdTree<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BalancedKdTree")
            .field("len", &self.len())
            .field("num_points", &self.num_points)
            .field("devices", &self.devices)
            .finish_non_exhaustive()
    }
}
