//! Quadtrees over x and y, octrees over x, y and z.
//!
//! A node with more points than a leaf may have splits into four (eight) equal cells, all of which exist, the empty ones as leaves without
//! points; none has children below the greatest depth. Nodes are in breadth-first order, the children of a node one after the other, so
//! that there is exactly one tree over a set of points, and every device builds it, to the last bit.
//!
//! Cells are cut in integers ([`frame`](kauri_kernels::quadtree::frame)): the root is a square (a cube) whose side is a power of two of
//! units, each a power of two long, with the low corner where the least coordinates are. So it is up to four times as long as the box of the
//! points; in exchange a coordinate is below a border or it is not, and nothing is rounded. What is on a border belongs to the upper cell.
//! The points of a node follow each other; those of a leaf are in the order of the input.
//!
//! A GPU builds a tree from codes: the ways to the cells of the points on the next levels are sorted, nodes that split are found in the sorted
//! codes place by place, without going from level to level, and so are their children; where cells of the last of these levels have
//! too many points, their points go on in the same way. Level by level, with a bucket sort a node, is how Gluck 2014 does it.

mod backend;
pub(crate) mod cpu;
mod gpu;
mod host;
#[cfg(feature = "io")]
mod stored;

pub use kauri_kernels::quadtree::frame::MAX_LEVELS as MAX_DEPTH;
pub use kauri_kernels::quadtree::node::Node;
pub use kauri_kernels::quadtree::queries::NO_NODE;

use crate::device::{Buffer, Device, Gpu, Staging, Stream, Workspace};
use crate::error::{Error, Result};
use crate::memory;
use crate::point::{
    Cartesian, Coords, Dispatch, MAX_POINTS, PerCoordinate, Scalar, Slice, Typed, checked_coordinates,
    with_coordinate,
};
use crate::progress::{Progress, Step};
use crate::query::backend::QueryBackend;
use crate::query::{SealedIndex, SpatialIndex};
use crate::stats::Stats;
use backend::Backend;
pub(crate) use gpu::GpuTree;
pub(crate) use host::HostTree;
use kauri_kernels::policy::QUADTREE_PIECE_POINTS;
use kauri_kernels::quadtree::frame::Frame;
use kauri_kernels::thread::coord::Coord;
use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::ControlFlow;

/// How a tree is built.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QuadtreeOptions {
    /// Most points of a leaf, at least 1: a node with more splits. Gluck's z. 20 by default.
    pub leaf_points: u32,
    /// Levels below the root, at most [`MAX_DEPTH`], which is the default. Leaves of that level may have more points.
    pub max_depth: u32,
    /// How it is built; the tree is the same.
    pub builder: Builder,
    /// Where points and nodes are while a GPU builds it; the tree is the same.
    pub out_of_core: OutOfCore,
    /// Shape of [`Builder::Levels`], to compare.
    #[doc(hidden)]
    pub levels: LevelsOptions,
}

/// How a tree is built. All build the same, to the last bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Builder {
    /// From codes, which are sorted; the fastest.
    #[default]
    Codes,
    /// Level by level, with a bucket sort a node (Gluck 2014): on a GPU by blocks, and by threads as soon as all nodes are small; on the
    /// CPU by one thread.
    Levels,
}

/// Where points and nodes are while a GPU builds a tree; on the CPU it says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutOfCore {
    /// On the device if it has room for all of them, otherwise as [`Streamed`](Self::Streamed).
    #[default]
    WhereNeeded,
    /// In host memory. They go through the device in chunks: cells of an upper level are counted, and points brought to where their cells
    /// are; then subtrees are built batch by batch.
    Streamed,
    /// In host memory. One thread of the CPU splits upper levels until the largest node fits; of the level that it ends with one node after
    /// another goes through the device (Gluck 2014).
    CpuTop,
}

/// Shape of the builder level by level on a GPU.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelsOptions {
    /// Threads of a block that has a node: from 32 to 128 in three dimensions, from 4 to 512 in two; as many as nodes ask for if not given.
    pub threads: Option<u32>,
    /// Points of a node that is not too large for a block.
    pub block_points: u32,
    /// Points of a node that is not too large for a thread.
    pub thread_points: u32,
}

impl Default for LevelsOptions {
    fn default() -> Self {
        QUADTREE_LEVELS
    }
}

impl LevelsOptions {
    fn check(&self, dims: usize) -> Result<()> {
        let (least, most) = if dims == 2 { (4, 512) } else { (32, 128) };
        match self.threads {
            Some(threads) if !(threads.is_power_of_two() && (least..=most).contains(&threads)) => {
                let (value, least, most) = (threads.into(), least.into(), most.into());
                Err(Error::OutOfRange { what: "threads of a block", value, least, most })
            }
            _ => Ok(()),
        }
    }

    /// Threads of a block that has a node of up to so many points.
    fn threads_for(&self, points: u32, dims: usize) -> u32 {
        let of_pieces = points.div_ceil(QUADTREE_PIECE_POINTS as u32).next_power_of_two();
        self.threads.unwrap_or(of_pieces.clamp(32, if dims == 2 { 256 } else { 128 }))
    }
}

/// Of 80M points in a square (`quadtree-h200`): with blocks for nodes of up to 512 to 4096 points, and threads for those of up to 8 to 64, a
/// build takes from 12.6 to 13.2 ms.
const QUADTREE_LEVELS: LevelsOptions = LevelsOptions { threads: None, block_points: 2048, thread_points: 8 };

impl Default for QuadtreeOptions {
    fn default() -> Self {
        Self {
            leaf_points: 20,
            max_depth: MAX_DEPTH,
            builder: Builder::default(),
            out_of_core: OutOfCore::default(),
            levels: LevelsOptions::default(),
        }
    }
}

impl QuadtreeOptions {
    /// With so many points in a leaf at most.
    pub fn leaf_points(mut self, leaf_points: u32) -> Self {
        self.leaf_points = leaf_points;
        self
    }

    /// With so many levels below the root at most.
    pub fn max_depth(mut self, max_depth: u32) -> Self {
        self.max_depth = max_depth;
        self
    }

    /// With points and nodes there.
    pub fn out_of_core(mut self, out_of_core: OutOfCore) -> Self {
        self.out_of_core = out_of_core;
        self
    }

    /// By this builder.
    pub fn builder(mut self, builder: Builder) -> Self {
        self.builder = builder;
        self
    }

    fn check(&self) -> Result<()> {
        let out_of_range =
            |what, value: u32, least, most| Err(Error::OutOfRange { what, value: value.into(), least, most });
        if self.leaf_points == 0 {
            return out_of_range("points of a leaf", 0, 1, MAX_POINTS);
        }
        if self.max_depth > MAX_DEPTH {
            return out_of_range("levels of a quadtree", self.max_depth, 0, MAX_DEPTH.into());
        }
        Ok(())
    }
}

/// A quadtree over points of two coordinates, an octree over points of three. The id of a point is its index in the input.
///
/// The points are copied; nothing of the caller's is borrowed. What else belongs to a point is found by its id, or put in the order of
/// the tree by [`payloads_in_order`](Quadtree::payloads_in_order).
///
/// ```
/// use kauri::quadtree::{Quadtree, QuadtreeOptions};
/// use kauri::Device;
/// let points = [[0.0f32, 0.0], [7.0, 7.0], [1.0, 1.0], [6.0, 1.0]];
/// let tree = Quadtree::build(&Device::cpu(), &points, &QuadtreeOptions::default().leaf_points(2))?;
/// let nodes = tree.nodes()?;
/// // The root, and its four children.
/// assert_eq!(nodes.len(), 5);
/// assert_eq!((nodes[0].first_child, nodes[0].len()), (1, 4));
/// assert_eq!(nodes[1..].iter().map(|node| node.len()).collect::<Vec<_>>(), [2, 0, 1, 1]);
/// assert_eq!(*tree.ids()?, [0, 2, 3, 1]);
/// assert_eq!(tree.bounds(1)?, [[0.0, 0.0], [4.0, 4.0]]);
/// # Ok::<(), kauri::Error>(())
/// ```
pub struct Quadtree<P: Cartesian> {
    device: Device,
    stats: Stats,
    tree: Box<dyn Backend<P::Coord>>,
}

/// A quadtree of points with three coordinates.
pub type Octree<P> = Quadtree<P>;

/// Runs `$body` with the constant `$D` = `$dims`, which are 2 or 3.
macro_rules! with_plane_or_space {
    ($dims:expr, $D:ident => $body:expr) => {
        match $dims {
            2 => {
                const $D: usize = 2;
                $body
            }
            3 => {
                const $D: usize = 3;
                $body
            }
            dims => unreachable!("{dims} dimensions"),
        }
    };
}
pub(crate) use with_plane_or_space;

impl<P: Cartesian> Quadtree<P> {
    /// Builds the tree over `points` on `device`.
    ///
    /// - Cost: O(n log n) at most; on a GPU a radix sort of the codes of as many levels as n points in even cells need, and of those
    ///   points that need more.
    /// - Memory: coordinates and ids again, 24 bytes a node (28 of an octree); of a node that splits there are four children. Where a GPU
    ///   has no room for points and nodes, and less than about ten times as many bytes as the coordinates have, the tree is built out of core
    ///   ([`OutOfCore`]): it is in host memory then, and its queries are answered by the CPU.
    /// - Result: the same bits on every device and in every run.
    /// - Degenerate input: no points, one point, all points equal, points on a line are all fine. More points than a leaf may have in
    ///   one place make a leaf of the greatest depth with all of them. The first query on the CPU makes a k-d tree of each such leaf with
    ///   64 points or more, which takes the memory of these points again.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for options beyond their bounds; [`Error::TooManyItems`] beyond [`MAX_POINTS`]; [`Error::NonFinite`] or
    /// [`Error::CoordinateTooLarge`] for the first point that cannot be indexed; [`Error::TooManyItems`] for 2^32 nodes;
    /// [`Error::OutOfMemory`]; errors of the device.
    pub fn build(device: &Device, points: &[P], options: &QuadtreeOptions) -> Result<Self> {
        Self::build_with(device, points, options, &mut |_: Step| ControlFlow::Continue(()))
    }

    /// The same, told how far it is where it is built out of core: points counted, points brought to their batches, points in subtrees.
    ///
    /// # Errors
    /// Those of [`build`](Quadtree::build), and [`Error::Stopped`] if it was stopped.
    pub fn build_with(
        device: &Device,
        points: &[P],
        options: &QuadtreeOptions,
        progress: &mut dyn Progress,
    ) -> Result<Self> {
        const { assert!(P::DIMS == 2 || P::DIMS == 3, "quadtrees have points of 2 coordinates, octrees of 3") };
        options.check()?;
        if points.len() as u64 > MAX_POINTS {
            return Err(Error::TooManyItems { what: "points", count: points.len() as u64, max: MAX_POINTS });
        }
        let _span = tracing::debug_span!("quadtree_build", points = points.len(), dims = P::DIMS).entered();
        let mut stats = Stats::new(device);
        let coords = stats.phase("validate", || checked_coordinates(points, "point"))?;
        let tree =
            build(device, P::Coord::wrap::<Slice<'_>>(&coords), P::DIMS, options, progress, &mut stats)?;
        let tree = P::Coord::unwrap(tree);
        Ok(Self { device: device.clone(), stats, tree })
    }

    /// Builds the tree over coordinates in device memory, point after point, in the order of the stream; waits for numbers of nodes.
    /// Nobody looks at each coordinate: where one is not a number its point is in some leaf, and one that is too large is known by its axis
    /// alone.
    ///
    /// # Errors
    /// As [`build`](Quadtree::build), and [`Error::Shape`] for part of a point.
    pub fn build_on(
        stream: &Stream,
        workspace: &mut Workspace,
        coords: &Buffer<P::Coord>,
        options: &QuadtreeOptions,
    ) -> Result<Self> {
        const { assert!(P::DIMS == 2 || P::DIMS == 3, "quadtrees have points of 2 coordinates, octrees of 3") };
        options.check()?;
        let num_points = coords.len() / P::DIMS;
        coords.check(stream, "coordinates of points", num_points * P::DIMS)?;
        if num_points as u64 > MAX_POINTS {
            return Err(Error::TooManyItems { what: "points", count: num_points as u64, max: MAX_POINTS });
        }
        let device = Device::from_gpu(stream.gpu().clone());
        let coords = P::Coord::wrap::<BufferRef<'_>>(coords);
        let tree = P::Coord::unwrap(build_on(stream, workspace, coords, P::DIMS, options)?);
        Ok(Self { stats: Stats::new(&device), device, tree })
    }

    /// The nodes in breadth-first order, the root first.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; errors of the device.
    pub fn nodes(&self) -> Result<Cow<'_, [Node]>> {
        self.tree.nodes()
    }

    /// The ids of the points in the order of the tree: those of a node are from its [`start`](Node::start) up to its
    /// [`end`](Node::end).
    ///
    /// # Errors
    /// As [`nodes`](Quadtree::nodes).
    pub fn ids(&self) -> Result<Cow<'_, [u32]>> {
        self.tree.ids()
    }

    /// The coordinates of the points in the order of the tree, point after point.
    ///
    /// # Errors
    /// As [`nodes`](Quadtree::nodes).
    pub fn coords(&self) -> Result<Cow<'_, [P::Coord]>> {
        self.tree.coords()
    }

    /// Payloads in the order of the tree, of payloads in the order of ids.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there is one for every point; [`Error::OutOfMemory`]; errors of the device.
    pub fn payloads_in_order<T: Copy>(&self, payloads: &[T]) -> Result<Vec<T>> {
        if payloads.len() != self.len() {
            let (expected, got) = (self.len() as u64, payloads.len() as u64);
            return Err(Error::Shape { what: "payloads of the points", expected, got });
        }
        let mut in_order = memory::vec_with_capacity(payloads.len(), "payloads of the points")?;
        in_order.extend(self.ids()?.iter().map(|&id| payloads[id as usize]));
        Ok(in_order)
    }

    /// Checks that the tree is what [`build`](Quadtree::build) promises: every id once, every point in its cell, every node with too many
    /// points split and no other, leaves in the order of ids. On the host.
    ///
    /// # Errors
    /// [`Error::Corrupt`] with the node and the reason; [`Error::OutOfMemory`]; errors of the device.
    pub fn verify(&self) -> Result<()> {
        self.tree.verify()
    }

    /// The leaf that each of the `queries` is in, by the number of its node; [`NO_NODE`] of one that is not in the root.
    ///
    /// # Errors
    /// Those of [`build`](Quadtree::build) for the first query that cannot be used; [`Error::OutOfMemory`]; errors of the device.
    pub fn leaves_of(&self, queries: &[P]) -> Result<Vec<u32>> {
        let queries = checked_coordinates(queries, "query")?;
        self.tree.leaves_of(&queries)
    }

    /// The leaves around each of the `nodes`: those outside of its cell that touch it, be it with a corner, of any size, also without
    /// points. Of leaves they are the neighbors that an interpolation over each leaf needs, so that it does not jump at borders
    /// (Agarwal, Arge, Danner 2006). A row is in the order of depth first, so that points of its leaves follow each other in the tree.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for the first that is not the number of a node; [`Error::ResultTooLarge`] if they do not fit in memory;
    /// [`Error::OutOfMemory`]; errors of the device.
    pub fn leaves_around(&self, nodes: &[u32]) -> Result<LeafRows> {
        let most = self.num_nodes() as u64 - 1;
        if let Some(&node) = nodes.iter().find(|&&node| u64::from(node) > most) {
            return Err(Error::OutOfRange { what: "node", value: node.into(), least: 0, most });
        }
        self.tree.leaves_around(nodes)
    }

    /// The ids of points that stand for all of them at a level: a sample of each node of that level that has points, and of each leaf
    /// above, in the order of nodes. The sample of a leaf is the point that is nearest to the middle of its cell; that of another node the one
    /// of its children's samples that is nearest to its own, so that every level has the points of those above.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; errors of the device.
    pub fn level_of_detail(&self, level: u32) -> Result<Vec<u32>> {
        let samples = self.tree.samples()?;
        let (nodes, ids, begins) = (self.nodes()?, self.ids()?, self.level_begins());
        let level = (level as usize).min(begins.len() - 2);
        let up_to = nodes[..begins[level + 1] as usize].iter().zip(&samples).enumerate();
        let of_level = up_to.filter(|(i, (node, _))| *i >= begins[level] as usize || node.is_leaf());
        let places = of_level.filter(|(_, (_, place))| **place != NO_NODE);
        Ok(places.map(|(_, (_, &place))| ids[place as usize]).collect())
    }

    /// The leaves that have more points than a leaf may, by the numbers of their nodes: they are on the last level, below which nothing splits.
    ///
    /// # Errors
    /// As [`nodes`](Quadtree::nodes).
    pub fn crowded_leaves(&self) -> Result<Vec<u32>> {
        let (nodes, begins, most) = (self.nodes()?, self.level_begins(), self.options().leaf_points);
        let first = begins[begins.len() - 2];
        Ok((first..nodes.len() as u32).filter(|&leaf| nodes[leaf as usize].len() > most).collect())
    }

    /// What it was built with.
    pub fn options(&self) -> &QuadtreeOptions {
        self.tree.options()
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.tree.num_points()
    }

    /// True if there are no points.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of nodes, at least 1.
    pub fn num_nodes(&self) -> usize {
        self.level_begins().last().map_or(0, |&end| end as usize)
    }

    /// The level of the deepest nodes.
    pub fn depth(&self) -> u32 {
        self.level_begins().len() as u32 - 2
    }

    /// The first node of each level, and one more: the number of nodes.
    pub fn level_begins(&self) -> &[u32] {
        self.tree.level_begins()
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

impl<S: Scalar, const D: usize> Quadtree<[S; D]> {
    /// The cell of a node: its low corner, which is in it, and its high corner, which is not; exact.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless there is that node; errors of the device.
    pub fn bounds(&self, node: u32) -> Result<[[f64; D]; 2]> {
        let level_begins = self.level_begins();
        let level = level_begins.partition_point(|&begin| begin <= node);
        if level == level_begins.len() {
            let most = self.num_nodes() as u64 - 1;
            return Err(Error::OutOfRange { what: "node", value: node.into(), least: 0, most });
        }
        let (cell, frame) = (self.tree.cell(node)?, frame_of::<D>(self.tree.frame()));
        let side = 1 << (frame.levels - (level as u32 - 1));
        let low = std::array::from_fn(|axis| u64::from(cell[axis]));
        Ok([frame.corner(low), frame.corner(low.map(|unit| unit + side))])
    }
}

impl<P: Cartesian> SealedIndex for Quadtree<P> {}

/// Queries go through the cells on the CPU. On a GPU they go through boxes over runs of the points in the order of the tree, which the first
/// query makes: it takes the memory of the points again, and a tenth more. [`Traversal`](crate::query::Traversal)s by nodes are the same walks.
///
/// ```
/// use kauri::quadtree::{Quadtree, QuadtreeOptions};
/// use kauri::{Device, SpatialIndex};
/// let points = [[0.0f32, 0.0], [7.0, 7.0], [1.0, 1.0], [6.0, 1.0]];
/// let tree = Quadtree::build(&Device::cpu(), &points, &QuadtreeOptions::default())?;
/// assert_eq!(tree.nearest(&[[6.0, 6.0]], 2)?.row(0).0, [1, 3]);
/// assert_eq!(tree.count_in_boxes(&[[[0.0, 0.0], [6.0, 2.0]]], None)?, [3]);
/// # Ok::<(), kauri::Error>(())
/// ```
impl<P: Cartesian> SpatialIndex for Quadtree<P> {
    type Point = P;

    fn device(&self) -> &Device {
        self.device()
    }

    fn num_points(&self) -> usize {
        self.len()
    }

    fn query_backend(&self) -> Result<&dyn QueryBackend<P::Coord>> {
        self.tree.query_backend()
    }
}

impl<P: Cartesian> std::fmt::Debug for Quadtree<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Quadtree")
            .field("len", &self.len())
            .field("num_nodes", &self.num_nodes())
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

/// Leaves, a row a node, one behind the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafRows {
    offsets: Vec<u64>,
    leaves: Vec<u32>,
}

impl LeafRows {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where each row begins in [`leaves`](Self::leaves), and where the last ends: one more than rows.
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// The numbers of all leaves, row after row.
    pub fn leaves(&self) -> &[u32] {
        &self.leaves
    }

    /// The leaves of row `row`.
    ///
    /// # Panics
    /// If there are not that many rows.
    pub fn row(&self, row: usize) -> &[u32] {
        assert!(row < self.len(), "row {row} of {} rows", self.len());
        &self.leaves[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }
}

/// From so many bytes on the points are copied by way of page-locked memory of so many: with 32 MiB of it 80 MB took 12 ms more than without
/// (`quadtree-gluck-h200`).
const STAGED_FROM: u64 = 128 << 20;
const STAGED_BYTES: u64 = 16 << 20;

/// Builds a tree in device memory, if there is room for it.
fn in_core<C: Coord>(
    gpu: &Gpu,
    coords: &[C],
    dims: usize,
    options: &QuadtreeOptions,
    stats: &mut Stats,
) -> Result<Option<GpuTree<C>>> {
    // As they are and in order, and ids; of what else is needed the device says if there is room.
    let least_bytes = 2 * size_of_val(coords) + coords.len() / dims * size_of::<u32>();
    if options.out_of_core != OutOfCore::WhereNeeded || least_bytes as u64 > gpu.free_memory()? {
        return Ok(None);
    }
    let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
    let copied = stats.phase("copy to device", || match size_of_val(coords) as u64 {
        STAGED_FROM.. => Staging::within(gpu, STAGED_BYTES)?.upload_slice(coords, dims, "points"),
        _ => Buffer::from_slice(&stream, coords, "points"),
    });
    let built = copied.and_then(|coords| {
        stats.phase("build", || {
            let tree = built_on(&stream, &mut workspace, &coords, dims, options)?;
            stream.synchronize().map(|()| tree)
        })
    });
    stats.temp_bytes = workspace.bytes() + size_of_val(coords) as u64;
    match built {
        Err(Error::OutOfMemory { memory: "device" | "pinned host", .. }) => Ok(None),
        built => built.map(Some),
    }
}

/// Builds a tree of points on a GPU.
fn built_on<C: Coord>(
    stream: &Stream,
    workspace: &mut Workspace,
    coords: &Buffer<C>,
    dims: usize,
    options: &QuadtreeOptions,
) -> Result<GpuTree<C>> {
    with_plane_or_space!(dims, D => GpuTree::build::<D>(stream, workspace, coords, options))
}

/// [`Backend`] for each type of coordinates.
pub(crate) struct Trees;

impl PerCoordinate for Trees {
    type Of<C: Coord> = Box<dyn Backend<C>>;
}

/// Coordinates in device memory.
struct BufferRef<'a>(PhantomData<&'a ()>);

impl<'a> PerCoordinate for BufferRef<'a> {
    type Of<C: Coord> = &'a Buffer<C>;
}

/// Builds the tree over validated coordinates on a device; out of core if the device has no room.
fn build(
    device: &Device,
    coords: Coords<'_>,
    dims: usize,
    options: &QuadtreeOptions,
    progress: &mut dyn Progress,
    stats: &mut Stats,
) -> Result<Typed<Trees>> {
    Ok(with_coordinate!(coords, C, coords => {
        let in_core = match device.gpu() {
            Some(gpu) => in_core(gpu, coords, dims, options, stats)?,
            None => None,
        };
        match (device.gpu(), in_core) {
            (_, Some(tree)) => Box::new(tree) as Box<dyn Backend<C>>,
            (Some(gpu), None) => with_plane_or_space!(dims, D => {
                Box::new(gpu::streamed::build(gpu, coords.as_chunks::<D>().0, options, progress, stats)?)
            }),
            (None, None) => with_plane_or_space!(dims, D => {
                Box::new(cpu::build(coords.as_chunks::<D>().0, options, stats)?)
            }),
        }
    }))
}

/// Builds the tree over coordinates in device memory.
fn build_on(
    stream: &Stream,
    workspace: &mut Workspace,
    coords: Typed<BufferRef<'_>>,
    dims: usize,
    options: &QuadtreeOptions,
) -> Result<Typed<Trees>> {
    Ok(with_coordinate!(coords, C, coords => {
        Box::new(built_on(stream, workspace, coords, dims, options)?) as Box<dyn Backend<C>>
    }))
}

/// The frame of words that are those of one.
pub(crate) fn frame_of<const D: usize>(words: &[u64]) -> Frame<D> {
    Frame::from_words(words).expect("a tree has the frame that it was built with")
}

/// The frame of points in a box, of which there may be none; infinite corners are refused.
fn frame_over<C: Coord, const D: usize>(
    corners: [[C; D]; 2],
    is_empty: bool,
    max_depth: u32,
) -> Result<Frame<D>> {
    let [low, high] = if is_empty { [[0.0; D]; 2] } else { corners.map(|corner| corner.map(|x| x.to_f64())) };
    let limit = C::LIMIT.to_f64();
    for (axis, (low, high)) in low.into_iter().zip(high).enumerate() {
        for value in [low, high] {
            if value.is_nan() || value.abs() > limit {
                return Err(Error::CoordinateTooLarge {
                    what: "least or greatest coordinate",
                    index: 0,
                    axis,
                    value,
                    limit,
                });
            }
        }
    }
    Ok(Frame::new(low, high, max_depth.max(1)))
}

/// Checks that nodes have numbers of 32 bits, given how many there are and how many more of these split.
fn check_num_nodes(num: usize, splits: u64, dims: usize) -> Result<()> {
    let (count, max) = (num as u64 + (splits << dims), u64::from(u32::MAX));
    if count > max { Err(Error::TooManyItems { what: "nodes of a quadtree", count, max }) } else { Ok(()) }
}

/// Where the levels of a tree begin, given how many nodes split on each.
fn level_begins(splits: &[u32], dims: usize) -> Vec<u32> {
    let mut begins = vec![0, 1];
    for &num in splits.iter().take_while(|&&num| num > 0) {
        begins.push(begins[begins.len() - 1] + (num << dims));
    }
    begins
}
