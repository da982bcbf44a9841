//! Balanced trees over distinct points, from sorted arrays.

mod cpu;
mod gpu;
#[cfg(feature = "io")]
mod stored;

use kauri_kernels::balanced::NONE;
use kauri_kernels::thread::coord::Coord;
use std::marker::PhantomData;

use crate::device::{Device, Gpu};
use crate::error::{Error, Result};
use crate::memory;
use crate::memory::MemoryPlan;
use crate::point::{
    Coords, Dispatch, MAX_POINTS, PerCoordinate, Point, Slice, Typed, checked_coordinates, dims,
    with_coordinate,
};
use crate::query::backend::QueryBackend;
use crate::query::union::MAX_SETS;
use crate::query::{SealedIndex, SpatialIndex};
use crate::stats::Stats;

/// How a GPU builds a [`BalancedKdTree`]. Both build the same, to the last bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum BalancedBuilder {
    /// Sorts by radix sorts. Every point has a byte that tells the last levels of its way from the root; an array is put in the order of
    /// a level only when that is split on its axis, by those bytes alone, and runs of up to 4096 points, 2048 of more than four
    /// coordinates, are split in shared memory. The fastest.
    #[default]
    Paths,
    /// Sorts by merges, by super key; every array compares the coordinates of its points with those of the median (Robinson).
    Robinson,
}

/// How a [`BalancedKdTree`] is built.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BalancedOptions {
    /// How a GPU builds it.
    pub builder: BalancedBuilder,
    /// Warps that a GPU partitions with, rounded up to a power of two, by [`Robinson`](BalancedBuilder::Robinson)'s builder. The tree does not
    /// depend on it.
    pub warps: u32,
    /// Numbers points anew on the way down although they are few: for tests of what is done with many.
    #[doc(hidden)]
    pub numbered_anew: bool,
}

impl Default for BalancedOptions {
    fn default() -> Self {
        Self {
            builder: BalancedBuilder::default(),
            warps: kauri_kernels::policy::BALANCED_WARPS,
            numbered_anew: false,
        }
    }
}

impl BalancedOptions {
    /// With this builder.
    pub fn builder(mut self, builder: BalancedBuilder) -> Self {
        self.builder = builder;
        self
    }

    /// With that many warps.
    pub fn warps(mut self, warps: u32) -> Self {
        self.warps = warps;
        self
    }
}

/// A node of a [`BalancedKdTree`]: a point, by its id, and its children, which are nodes of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The point.
    pub id: u32,
    /// The root of those before it in the order of its level.
    pub less: Option<u32>,
    /// The root of those behind it.
    pub greater: Option<u32>,
}

/// A point that was removed, because another is equal to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed {
    /// The point, by its id.
    pub id: u32,
    /// The one that stays, of all equal ones the first.
    pub stays: u32,
}

/// A balanced k-d tree: one node a distinct point, each the median of its subtree's points (Brown 2015, *Building a Balanced k-d Tree
/// in O(kn log n) Time*; Robinson's KdTreeGPU on a GPU). The id of a point is its index in the input.
///
/// Points are ordered on level `l` by the *super key* of axis `a = l mod dims`: by the coordinate on axis `a`, where that is equal by
/// the next axis, and so on around to the one before it; -0.0 equals 0.0. Of points that agree on all axes the first stays. Of n
/// distinct points in that order number (n - 1) / 2, rounded down, is the root, those before it are its less subtree, those behind it
/// its greater one. So the tree has floor(log2 n) + 1 levels, whatever the points are like, and is the same on every backend.
///
/// It is built level by level on a GPU, and on the CPU depth first, both branches at the same time.
///
/// ```
/// use kauri::Device;
/// use kauri::balanced::{BalancedKdTree, BalancedOptions};
/// let points = [[2.0f32, 3.0], [5.0, 4.0], [9.0, 6.0], [5.0, 4.0], [4.0, 7.0]];
/// let tree = BalancedKdTree::build(&Device::cpu(), &points, &BalancedOptions::default())?;
/// assert_eq!(tree.len(), 4);
/// assert_eq!(tree.removed()?[0].stays, 1);
/// assert_eq!(tree.nodes()?[0].id, 4);
/// # Ok::<(), kauri::Error>(())
/// ```
pub struct BalancedKdTree<P: Point> {
    devices: Vec<Device>,
    stats: Stats,
    num_points: usize,
    tree: Box<dyn BalancedTree<P::Coord>>,
    points: PhantomData<fn() -> P>,
}

/// A tree where it lives.
pub trait BalancedTree<C: Coord>: Send + Sync {
    /// Number of nodes.
    fn num_nodes(&self) -> usize;
    /// Checks every node against its ancestors.
    fn verify(&self) -> Result<()>;
    /// The node at each address of each level, or [`NONE`].
    fn medians(&self) -> Result<Vec<u32>>;
    /// Of each point the one that stays for it, most often itself; empty if all do.
    fn stays(&self) -> Result<Vec<u32>>;
    /// What answers queries, which the first one makes.
    fn query_backend(&self) -> Result<&dyn QueryBackend<C>>;
    /// What a file holds of the tree.
    #[cfg(feature = "io")]
    fn stored(&self) -> Result<stored::Sections<'_, C>>;
}

/// [`BalancedTree`] for each type of coordinates.
pub(crate) struct Trees;

impl PerCoordinate for Trees {
    type Of<C: Coord> = Box<dyn BalancedTree<C>>;
}

/// Builds the tree over validated coordinates on a device.
fn build_tree(
    device: &Device,
    coords: Coords<'_>,
    dims: usize,
    options: &BalancedOptions,
    stats: &mut Stats,
) -> Result<Typed<Trees>> {
    Ok(with_coordinate!(coords, C, coords => match device.gpu() {
        None => Box::new(cpu::CpuTree::build(coords, dims, stats)?) as Box<dyn BalancedTree<C>>,
        Some(gpu) => Box::new(gpu::GpuTree::build(gpu, coords, dims, options, stats)?),
    }))
}

/// Most parts of a tree over several devices. A union answers for the subtrees of the parts and for the nodes above them.
pub(crate) const MAX_PARTS: usize = 8;
const _: () = assert!(2 * MAX_PARTS - 1 <= MAX_SETS);

/// Builds the tree over validated coordinates on several GPUs, at least one.
fn build_tree_over(
    gpus: &[Gpu],
    coords: Coords<'_>,
    dims: usize,
    options: &BalancedOptions,
    stats: &mut Stats,
) -> Result<Typed<Trees>> {
    Ok(with_coordinate!(coords, C, coords => {
        Box::new(gpu::several::MultiGpuTree::build(gpus, coords, dims, options, stats)?) as Box<dyn BalancedTree<C>>
    }))
}

impl<P: Point> BalancedKdTree<P> {
    /// Builds the tree over `points` on `device`.
    ///
    /// - Cost: O(dims n log n); memory by [`plan`](BalancedKdTree::plan). Phases of [`stats`](BalancedKdTree::stats): init, sort, dedupe,
    ///   partition.
    /// - Degenerate input: no points, one point, all points equal, points on a line are all fine.
    ///
    /// # Errors
    /// [`Error::TooManyItems`] beyond [`MAX_POINTS`]; [`Error::NonFinite`], [`Error::CoordinateTooLarge`] or
    /// [`Error::InvalidLonLat`] for the first point that cannot be indexed; [`Error::OutOfMemory`]; errors of the device.
    pub fn build(device: &Device, points: &[P], options: &BalancedOptions) -> Result<Self> {
        if points.len() as u64 > MAX_POINTS {
            return Err(Error::TooManyItems { what: "points", count: points.len() as u64, max: MAX_POINTS });
        }
        let _span =
            tracing::debug_span!("balanced_kdtree_build", points = points.len(), dims = P::DIMS).entered();
        let mut stats = Stats::new(device);
        stats.temp_bytes = Self::plan(device, points.len(), options).temp_bytes;
        let coords = stats.phase("validate", || checked_coordinates(points, "point"))?;
        let tree = build_tree(device, P::Coord::wrap::<Slice<'_>>(&coords), P::DIMS, options, &mut stats)?;
        let tree = P::Coord::unwrap(tree);
        let devices = vec![device.clone()];
        Ok(Self { devices, stats, num_points: points.len(), tree, points: PhantomData })
    }

    /// Builds the same tree over several GPUs, up to eight. Each gets an equal part of the points at first, and a subtree at last, a half of
    /// the tree, a quarter or an eighth: of three GPUs two share one half. On one GPU the tree is built in halves. A device may be in the
    /// list more than once.
    ///
    /// - Result: the same medians, nodes and removed points as those of [`build`](BalancedKdTree::build), whatever the devices. The tree
    ///   stays where it was built, but for the few nodes above its parts, and 4 bytes a point where points were removed, which are in host
    ///   memory.
    /// - Cost: that of `build` for a part, twice as many sorts on the first axis, and a move of each point from one device to another for
    ///   every level of the parts, and one more, if at all: straight where a device reaches the other, and through host memory where it
    ///   does not. Memory by [`plan_over`](BalancedKdTree::plan_over).
    /// - Phases of [`stats`](BalancedKdTree::stats): init, sort, dedupe and partition as those of `build`, with the removal of equal points
    ///   of a part in its first sort, and exchange. Of what is done side by side the longest counts. `temp_bytes` are those of the part
    ///   with the most.
    /// - Files: what is saved is what `build` would save, but that a point which was removed has the coordinates of the one that stays:
    ///   0.0 where it had -0.0, or the other way around. It is loaded to one device.
    ///
    /// # Errors
    /// Those of [`build`](BalancedKdTree::build); [`Error::NotOnGpu`] if one of the devices is the CPU; [`Error::Shape`] if there is none,
    /// and [`Error::TooManyItems`] if there are more than eight. After an error of one device the others can be used as before.
    pub fn build_over(devices: &[Device], points: &[P], options: &BalancedOptions) -> Result<Self> {
        let count = devices.len() as u64;
        let Some(first) = devices.first() else {
            return Err(Error::Shape { what: "devices to build on", expected: 1, got: 0 });
        };
        if devices.len() > MAX_PARTS {
            return Err(Error::TooManyItems { what: "devices to build on", count, max: MAX_PARTS as u64 });
        }
        if points.len() as u64 > MAX_POINTS {
            return Err(Error::TooManyItems { what: "points", count: points.len() as u64, max: MAX_POINTS });
        }
        let gpus = devices.iter().map(|device| device.gpu().cloned().ok_or(Error::NotOnGpu));
        let gpus = gpus.collect::<Result<Vec<_>>>()?;
        let _span =
            tracing::debug_span!("balanced_kdtree_build_over", points = points.len(), dims = P::DIMS, count)
                .entered();
        let mut stats = Stats::new(first);
        let coords = stats.phase("validate", || checked_coordinates(points, "point"))?;
        let tree =
            build_tree_over(&gpus, P::Coord::wrap::<Slice<'_>>(&coords), P::DIMS, options, &mut stats)?;
        let tree = P::Coord::unwrap(tree);
        let devices = devices.to_vec();
        Ok(Self { devices, stats, num_points: points.len(), tree, points: PhantomData })
    }

    /// Bytes that building a tree over `num_points` points on `device` takes if all are distinct, for [`MAX_POINTS`] if there are more;
    /// nothing is allocated.
    pub fn plan(device: &Device, num_points: usize, options: &BalancedOptions) -> MemoryPlan {
        let num_points = num_points.min(MAX_POINTS as usize);
        let coords_bytes = (num_points * dims::<P>() * size_of::<P::Coord>()) as u64;
        let converted_bytes = if P::CONVERTED { coords_bytes } else { 0 };
        let temp_bytes = match device.gpu() {
            None => cpu::temp_bytes(num_points, P::DIMS),
            Some(_) => gpu::temp_bytes::<P::Coord>(num_points, P::DIMS, options),
        };
        let medians = kauri_kernels::balanced::medians_len(num_points as u32) as u64;
        let has_children = !device.is_cpu() && options.builder == BalancedBuilder::Robinson;
        let children = if has_children { 2 * num_points as u64 } else { 0 };
        let tree_bytes = coords_bytes + 4 * (medians + children);
        MemoryPlan { tree_bytes, temp_bytes: converted_bytes + temp_bytes }
    }

    /// Bytes that [`build_over`](BalancedKdTree::build_over) so many GPUs takes on each at most, if all points are distinct and no device is
    /// in the list twice, for [`MAX_POINTS`] if there are more; nothing is allocated. The tree's are those of one of its parts.
    pub fn plan_over(num_devices: usize, num_points: usize, options: &BalancedOptions) -> MemoryPlan {
        let num_points = num_points.min(MAX_POINTS as usize);
        let len = gpu::several::most_points(num_points, num_devices.min(MAX_PARTS));
        let medians = kauri_kernels::balanced::medians_len(len as u32);
        let children = if options.builder == BalancedBuilder::Robinson { 2 * len } else { 0 };
        // With its ids, by which the points of a part are known.
        let tree_bytes = len * dims::<P>() * size_of::<P::Coord>() + 4 * (len + medians + children);
        let temp_bytes = gpu::several::temp_bytes::<P::Coord>(len, P::DIMS, options);
        MemoryPlan { tree_bytes: tree_bytes as u64, temp_bytes }
    }

    /// Number of nodes, which is that of distinct points.
    pub fn len(&self) -> usize {
        self.tree.num_nodes()
    }

    /// True if there are no points.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of points that were given, of which some may be equal.
    pub fn num_points(&self) -> usize {
        self.num_points
    }

    /// All nodes level by level, the root first, and on each level from less to greater.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; errors of the device.
    pub fn nodes(&self) -> Result<Vec<Node>> {
        let medians = self.tree.medians()?;
        let mut nodes = memory::vec_with_capacity(self.len(), "nodes of the tree")?;
        let at = |place: usize| medians.get(place).copied().filter(|&id| id != NONE);
        nodes.extend((0..medians.len()).filter_map(|place| {
            let [less, greater] = [2 * place + 1, 2 * place + 2].map(at);
            at(place).map(|id| Node { id, less, greater })
        }));
        Ok(nodes)
    }

    /// The tree without pointers: for each level in turn a point for each address, of which there are as many as a full level has
    /// nodes, or `u32::MAX` where there is none. Address `i` of a level has the addresses `2 i` and `2 i + 1` of the next as children.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; errors of the device.
    pub fn medians(&self) -> Result<Vec<u32>> {
        self.tree.medians()
    }

    /// The points that were removed, by id.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; errors of the device.
    pub fn removed(&self) -> Result<Vec<Removed>> {
        let stays = self.tree.stays()?;
        let mut removed = memory::vec_with_capacity(self.num_points - self.len(), "points removed")?;
        let pairs = stays.into_iter().enumerate().map(|(id, stays)| Removed { id: id as u32, stays });
        removed.extend(pairs.filter(|pair| pair.id != pair.stays));
        Ok(removed)
    }

    /// Checks that the tree is what [`build`](BalancedKdTree::build) promises: as many nodes as distinct points, each point once, every
    /// node on its side of all its ancestors, and where it is to be for the tree to be balanced. O(n log n), where the tree is.
    ///
    /// # Errors
    /// [`Error::Corrupt`] with the node, by its place in [`medians`](BalancedKdTree::medians), and the reason; errors of the device.
    pub fn verify(&self) -> Result<()> {
        self.tree.verify()
    }

    /// The device that the tree lives on; of several the first.
    pub fn device(&self) -> &Device {
        &self.devices[0]
    }

    /// The devices that the tree lives on, as they were given.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// What the build cost.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }
}

impl<P: Point> SealedIndex for BalancedKdTree<P> {}

/// Queries are of the points that stayed; masks and [`Queries::Own`](crate::query::Queries::Own) of all that were given. One that was removed finds the one that stays
/// for it, at a distance of 0.
///
/// The first query brings the points in the order of a walk over buckets, as queries to a [`KdTree`](super::KdTree) go: on a GPU it
/// takes the memory of such a tree, on the CPU up to twice that of the points. There [`Traversal`](crate::query::Traversal)s by nodes are walks over buckets
/// too.
///
/// Robinson's search, for all points that differ by no more than a distance on every axis, is that for points within a radius by
/// [`Norm::Chebyshev`](crate::query::Norm::Chebyshev).
///
/// Of a tree over several devices all are asked at the same time, and what they find is merged: rows are those of the same tree on one
/// device. It takes host memory for what each finds, of nearest neighbors as much as 16 million entries a device take; and if the
/// points themselves are the queries, their coordinates are copied to the host first.
impl<P: Point> SpatialIndex for BalancedKdTree<P> {
    type Point = P;

    fn device(&self) -> &Device {
        self.device()
    }

    fn num_points(&self) -> usize {
        self.num_points
    }

    fn query_backend(&self) -> Result<&dyn QueryBackend<P::Coord>> {
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
