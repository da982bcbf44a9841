//! The public types of trees, [`Quadtree`] and [`Octree`], and their operations.

use crate::device::{Device, gpus_of};
use crate::error::{Error, Result, check_count, check_len};
use crate::host_coords::{Coords, build_over_coordinates};
use crate::memory::{self, MemoryPlan};
use crate::point::{Dispatch, MAX_POINTS, Typed, checked_coordinates, points_by};
use crate::progress::{Progress, Step};
use crate::quadtree::backend::{Backend, Outline};
use crate::quadtree::build::{self, Trees};
use crate::quadtree::dims::CartesianPoint;
use crate::quadtree::options::{OutOfCore, QuadtreeOptions};
use crate::query::backend::QueryBackend;
use crate::query::{SealedIndex, SpatialIndex};
use crate::rows::Rows;
use crate::stats::Stats;
use kauri_kernels::quadtree::node::Node;
use kauri_kernels::quadtree::queries::NO_NODE;
use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A quadtree over points with two coordinates. A node that splits has four children.
///
/// ```
/// use kauri::quadtree::{Quadtree, QuadtreeOptions};
/// use kauri::Device;
/// let points = [[0.0f32, 0.0], [7.0, 7.0], [1.0, 1.0], [6.0, 1.0]];
/// let tree = Quadtree::build(&Device::cpu(), &points, &QuadtreeOptions::default().leaf_points(2))?;
/// let nodes = tree.nodes()?;
/// // The root and its four children.
/// assert_eq!(nodes.len(), 5);
/// assert_eq!((nodes[0].first_child, nodes[0].len()), (1, 4));
/// assert_eq!(nodes[1..].iter().map(|node| node.len()).collect::<Vec<_>>(), [2, 0, 1, 1]);
/// assert_eq!(*tree.ids()?, [0, 2, 3, 1]);
/// assert_eq!(tree.bounds(1)?, [[0.0, 0.0], [4.0, 4.0]]);
/// # Ok::<(), kauri::Error>(())
/// ```
///
/// Points with another number of coordinates do not compile:
///
/// ```compile_fail,E0277
/// use kauri::{Device, Quadtree, QuadtreeOptions};
/// let _ = Quadtree::build(&Device::cpu(), &[[0.0f32; 3]], &QuadtreeOptions::default());
/// ```
pub type Quadtree<P> = CellTree<P, 2>;

/// An octree over points with three coordinates. A node that splits has eight children.
///
/// ```
/// use kauri::quadtree::{Octree, QuadtreeOptions};
/// use kauri::Device;
/// let points = [[0.0f32, 0.0, 0.0], [7.0, 7.0, 7.0], [1.0, 1.0, 1.0], [6.0, 1.0, 6.0]];
/// let tree = Octree::build(&Device::cpu(), &points, &QuadtreeOptions::default().leaf_points(2))?;
/// // The root and its eight children.
/// assert_eq!(tree.num_nodes(), 9);
/// assert_eq!(tree.leaf_of(&points)?, [1, 8, 1, 6]);
/// assert_eq!(tree.bounds(8)?, [[4.0; 3], [8.0; 3]]);
/// # Ok::<(), kauri::Error>(())
/// ```
///
/// Points with another number of coordinates do not compile:
///
/// ```compile_fail,E0277
/// use kauri::{Device, Octree, QuadtreeOptions};
/// let _ = Octree::build(&Device::cpu(), &[[0.0f32; 4]], &QuadtreeOptions::default());
/// ```
pub type Octree<P> = CellTree<P, 3>;

/// A [`Quadtree`] (`D` = 2) or an [`Octree`] (`D` = 3). Write this name in code that is generic over the number of dimensions.
///
/// ```
/// use kauri::quadtree::{CartesianPoint, CellTree, Node, Octree, Quadtree, QuadtreeOptions};
/// use kauri::{Device, Result};
///
/// fn points_of_fullest_leaf<P: CartesianPoint<D>, const D: usize>(tree: &CellTree<P, D>) -> Result<u32> {
///     Ok(tree.nodes()?.iter().filter(|node| node.is_leaf()).map(Node::len).max().unwrap_or(0))
/// }
///
/// let (device, options) = (Device::cpu(), QuadtreeOptions::default().leaf_points(1));
/// let quadtree = Quadtree::build(&device, &[[0.0f32, 0.0], [1.0, 1.0]], &options)?;
/// let octree = Octree::build(&device, &[[0.5f32; 3]; 7], &options)?;
/// assert_eq!(points_of_fullest_leaf(&quadtree)?, 1);
/// // Equal points share a leaf at any depth.
/// assert_eq!(points_of_fullest_leaf(&octree)?, 7);
/// # Ok::<(), kauri::Error>(())
/// ```
///
/// The id of a point is its index in the input. The tree copies the points and borrows nothing from the caller. Look up payloads by id, or
/// bring them into tree order with [`payloads_in_order`](CellTree::payloads_in_order).
pub struct CellTree<P: CartesianPoint<D>, const D: usize> {
    device: Device,
    stats: Stats,
    tree: Box<dyn Backend<P::Coord>>,
    /// Its address distinguishes the tree from all others, including dropped ones that have prepared queries.
    identity: Arc<()>,
}

impl<P: CartesianPoint<D>, const D: usize> CellTree<P, D> {
    /// `D`, checked at compile time: it is 2 or 3, and the points have `D` coordinates.
    pub(crate) const DIMS: usize = {
        assert!(D == 2 || D == 3, "a `CellTree` is a quadtree (D = 2) or an octree (D = 3)");
        assert!(P::DIMS == D, "`CartesianPoint<D>` is for points with D coordinates");
        D
    };

    /// Builds the tree over `points` on `device`.
    ///
    /// - Cost: O(n log n) at most. On a GPU: a radix sort of the codes of as many levels as n evenly spread points need, and of the points
    ///   that need more levels.
    /// - Memory: see [`plan`](CellTree::plan). If a GPU has no memory for points and nodes, the tree is built
    ///   [out of core](super::OutOfCore): it is then in host memory.
    /// - Result: the same bits on every device and in every run.
    /// - Degenerate input: no points, one point, equal points and points on a line are all fine. More than `leaf_points` equal
    ///   points make a leaf at the greatest depth with all of them. The first query on the CPU builds a k-d tree over each such leaf with
    ///   64 points or more, which takes the memory of these points again.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for options out of range; [`Error::TooManyItems`] beyond [`MAX_POINTS`] or for 2^32 nodes;
    /// [`Error::NonFinite`] or [`Error::CoordinateTooLarge`] for the first point that cannot be indexed; [`Error::OutOfMemory`]; errors of
    /// the device.
    pub fn build(device: &Device, points: &[P], options: &QuadtreeOptions) -> Result<Self> {
        Self::build_with(device, points, options, &mut |_: Step| ControlFlow::Continue(()))
    }

    /// [Builds](CellTree::build) the tree and reports the progress of an out-of-core build: points counted, points distributed to batches,
    /// points in finished subtrees.
    ///
    /// # Errors
    /// The errors of [`build`](CellTree::build), and [`Error::Stopped`] if `progress` stopped it.
    pub fn build_with(
        device: &Device,
        points: &[P],
        options: &QuadtreeOptions,
        progress: &mut dyn Progress,
    ) -> Result<Self> {
        Self::build_at(device, points, options, |coords, stats| {
            build::build(device, coords, options, progress, stats)
        })
    }

    /// Builds the tree over `points` out of core on several GPUs, which take parts of the points in turn: the tree of
    /// [`build`](CellTree::build), in host memory. The first device runs its queries.
    ///
    /// - Memory: points and nodes in host memory. Each device takes at most the memory that is free on the device with the least of it.
    /// - [`QuadtreeOptions::out_of_core`] counts as [`OutOfCore::Streamed`](super::OutOfCore::Streamed).
    ///
    /// # Errors
    /// The errors of [`build`](CellTree::build), and those of
    /// [`BalancedKdTree::build_over`](crate::balanced::BalancedKdTree::build_over) for the list of devices.
    pub fn build_over(devices: &[Device], points: &[P], options: &QuadtreeOptions) -> Result<Self> {
        let gpus = gpus_of("devices to build on", devices)?;
        let build = |coords: Coords<'_>, stats: &mut Stats| {
            let options = options.clone().out_of_core(OutOfCore::Streamed);
            build::build_over(&gpus, coords, &options, &mut |_: Step| ControlFlow::Continue(()), stats)
        };
        Self::build_at(&devices[0], points, options, build)
    }

    /// Builds the tree by `build`. An invalid point is the first error.
    fn build_at(
        device: &Device,
        points: &[P],
        options: &QuadtreeOptions,
        build: impl FnOnce(Coords<'_>, &mut Stats) -> Result<Typed<Trees>>,
    ) -> Result<Self> {
        options.check()?;
        check_count("points", points.len() as u64, MAX_POINTS)?;
        let _span = tracing::debug_span!("quadtree_build", points = points.len(), dims = D).entered();
        let mut stats = Stats::new(device);
        let tree = build_over_coordinates(points, device, &mut stats, build)?;
        Ok(Self::new(device.clone(), stats, P::Coord::unwrap(tree)))
    }

    /// Builds the tree over the point that `point_of` makes of each item. The id of a point is the index of its item.
    ///
    /// The points are temporary memory, beside that of [`plan`](CellTree::plan).
    ///
    /// ```
    /// use kauri::{Device, Quadtree, QuadtreeOptions};
    /// struct Tree { height: f32, x: f64, y: f64 }
    /// let wood = [Tree { height: 12.5, x: 3.0, y: 1.0 }, Tree { height: 7.0, x: 8.0, y: 2.0 }];
    /// let options = QuadtreeOptions::default().leaf_points(1);
    /// let quadtree = Quadtree::build_by(&Device::cpu(), &wood, |tree| [tree.x, tree.y], &options)?;
    /// // The leaf of a place, and the trees in it.
    /// let leaf = quadtree.nodes()?[quadtree.leaf_of(&[[7.0, 2.0]])?[0] as usize];
    /// let ids = &quadtree.ids()?[leaf.start as usize..leaf.end as usize];
    /// assert_eq!(wood[ids[0] as usize].height, 7.0);
    /// # Ok::<(), kauri::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`build`](CellTree::build).
    pub fn build_by<T: Sync>(
        device: &Device,
        items: &[T],
        point_of: impl Fn(&T) -> P + Send + Sync,
        options: &QuadtreeOptions,
    ) -> Result<Self> {
        let points = points_by(items, point_of)?;
        let mut tree = Self::build(device, &points, options)?;
        tree.stats.temp_bytes += size_of_val(&*points) as u64;
        Ok(tree)
    }

    /// Returns the bytes that [`build`](CellTree::build) takes for `num_points` points on `device`, at most for [`MAX_POINTS`]. Allocates
    /// nothing.
    ///
    /// - Nodes: their number depends on the points. The plan covers the nodes of points that are spread evenly; dense clusters can have
    ///   up to `max_depth` times as many. A node takes 24 bytes in a quadtree and 28 in an octree, and up to three times as much during the
    ///   build. The rest of the plan holds for any points.
    /// - GPU: the plan is that of a build in device memory. Where [`QuadtreeOptions::out_of_core`] keeps the tree in host memory, the build
    ///   takes `tree_bytes` of host memory and `temp_bytes` of device memory, at most the device memory that is free.
    /// - Not in the plan: what the first query takes.
    ///
    /// ```
    /// use kauri::{Device, Quadtree, QuadtreeOptions};
    /// let plan = Quadtree::<[f32; 2]>::plan(&Device::cpu(), 1_000_000, &QuadtreeOptions::default());
    /// // At least coordinates and ids.
    /// assert!(plan.tree_bytes >= 12_000_000);
    /// ```
    pub fn plan(device: &Device, num_points: usize, options: &QuadtreeOptions) -> MemoryPlan {
        let num_points = num_points.min(MAX_POINTS as usize);
        let mut plan = build::plan::<P::Coord>(device, num_points, Self::DIMS, options);
        if P::CONVERTED {
            plan.temp_bytes += (num_points * D * size_of::<P::Coord>()) as u64;
        }
        plan
    }

    /// Wraps a tree in the memory of its device.
    pub(crate) fn new(device: Device, stats: Stats, tree: Box<dyn Backend<P::Coord>>) -> Self {
        Self { device, stats, tree, identity: Arc::new(()) }
    }

    /// Returns the tree on its device.
    pub(crate) fn backend(&self) -> &dyn Backend<P::Coord> {
        &*self.tree
    }

    pub(crate) fn identity(&self) -> &Arc<()> {
        &self.identity
    }

    /// Returns the properties that are in host memory.
    pub(crate) fn outline(&self) -> &Outline {
        self.tree.outline()
    }

    /// Returns the nodes in breadth-first order, the root first. On a GPU, this copies 16 bytes per node to host memory.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; errors of the device.
    pub fn nodes(&self) -> Result<Cow<'_, [Node]>> {
        self.tree.nodes()
    }

    /// Returns the ids of the points in tree order. The points of a node begin at its [`start`](Node::start) and end before
    /// its [`end`](Node::end).
    ///
    /// # Errors
    /// The errors of [`nodes`](CellTree::nodes).
    pub fn ids(&self) -> Result<Cow<'_, [u32]>> {
        self.tree.ids()
    }

    /// Returns the coordinates of the points in tree order, point after point.
    ///
    /// # Errors
    /// The errors of [`nodes`](CellTree::nodes).
    pub fn coords(&self) -> Result<Cow<'_, [P::Coord]>> {
        self.tree.coords()
    }

    /// Returns payloads in tree order; `payloads[i]` is the payload of point `i`.
    ///
    /// ```
    /// use kauri::{Device, Quadtree, QuadtreeOptions};
    /// let points = [[7.0f32, 7.0], [0.0, 0.0], [1.0, 6.0]];
    /// let tree = Quadtree::build(&Device::cpu(), &points, &QuadtreeOptions::default().leaf_points(1))?;
    /// assert_eq!(tree.payloads_in_order(&["c", "a", "b"])?, ["a", "b", "c"]);
    /// # Ok::<(), kauri::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] unless there is one payload per point; [`Error::OutOfMemory`]; errors of the device.
    pub fn payloads_in_order<T: Copy>(&self, payloads: &[T]) -> Result<Vec<T>> {
        check_len("payloads of the points", self.len(), payloads.len())?;
        memory::collect(self.ids()?.iter().map(|&id| payloads[id as usize]), "payloads of the points")
    }

    /// Checks that the tree is what [`build`](CellTree::build) promises: every id occurs once, every point is in its cell, exactly the nodes
    /// with too many points split, and the points of a leaf are in the order of ids.
    ///
    /// The check runs where the tree is. A GPU takes O(n log n) time, 4 bytes per point and 4 bytes per node that splits; if something is
    /// wrong, the host checks a copy of the tree to name it.
    ///
    /// # Errors
    /// [`Error::Corrupt`] with the node and the reason; [`Error::OutOfMemory`]; errors of the device.
    pub fn verify(&self) -> Result<()> {
        self.tree.verify()
    }

    /// Returns the leaf that contains each query, as a node number; [`NO_NODE`] for a query outside of the root's cell.
    ///
    /// # Errors
    /// The errors of [`build`](CellTree::build) for the first query that cannot be used; [`Error::OutOfMemory`]; errors of the device.
    pub fn leaf_of(&self, queries: &[P]) -> Result<Vec<u32>> {
        let queries = checked_coordinates(queries, "query")?;
        self.tree.leaf_of(&queries)
    }

    /// Returns the leaves adjacent to each of the `nodes`: all leaves outside of the node's cell that touch it, even at a corner only,
    /// of any size, with or without points. An interpolation over each leaf needs them to stay continuous across borders
    /// (Agarwal, Arge, Danner 2006). A row is in depth-first order, so the points of its leaves are in tree order.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for the first number that is not that of a node; [`Error::ResultTooLarge`] if the rows do not fit in memory;
    /// [`Error::OutOfMemory`]; errors of the device.
    pub fn adjacent_leaves(&self, nodes: &[u32]) -> Result<Rows<u32>> {
        nodes.iter().try_for_each(|&node| self.check_node(node))?;
        self.tree.adjacent_leaves(nodes)
    }

    /// Returns the ids of points that represent all points at a level of detail: one sample of each node of that level that has points,
    /// and of each leaf above, in the order of nodes. The sample of a leaf is the point nearest to the center of its cell. The sample of an
    /// inner node is the sample of a child that is nearest to its own center, so every level includes the samples of the levels above.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; errors of the device.
    pub fn level_of_detail(&self, level: u32) -> Result<Vec<u32>> {
        let samples = self.tree.samples()?;
        let (nodes, ids, begins) = (self.nodes()?, self.ids()?, self.level_begins());
        let level = (level as usize).min(begins.len() - 2);
        let up_to_level = nodes[..begins[level + 1] as usize].iter().zip(&samples).enumerate();
        let represented = up_to_level.filter(|(i, (node, _))| *i >= begins[level] as usize || node.is_leaf());
        let with_points = represented.filter(|(_, (_, sample))| **sample != NO_NODE);
        Ok(with_points.map(|(_, (_, &sample))| ids[sample as usize]).collect())
    }

    /// Returns the leaves with more than [`leaf_points`](QuadtreeOptions::leaf_points) points, as node numbers. They are on the last level,
    /// where nothing splits.
    ///
    /// # Errors
    /// The errors of [`nodes`](CellTree::nodes).
    pub fn overfull_leaves(&self) -> Result<Vec<u32>> {
        let (nodes, begins, leaf_points) = (self.nodes()?, self.level_begins(), self.options().leaf_points);
        let first = begins[begins.len() - 2];
        Ok((first..nodes.len() as u32).filter(|&leaf| nodes[leaf as usize].len() > leaf_points).collect())
    }

    /// Returns the options of the build.
    pub fn options(&self) -> &QuadtreeOptions {
        &self.outline().options
    }

    /// Returns the number of points.
    pub fn len(&self) -> usize {
        self.outline().num_points
    }

    /// Returns true if there are no points.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of nodes, at least 1.
    pub fn num_nodes(&self) -> usize {
        self.level_begins().last().map_or(0, |&end| end as usize)
    }

    /// Returns the level of the deepest nodes; the root is on level 0.
    pub fn depth(&self) -> u32 {
        self.level_begins().len() as u32 - 2
    }

    /// Returns the first node of each level, and the number of nodes as the last entry.
    pub fn level_begins(&self) -> &[u32] {
        &self.outline().level_begins
    }

    /// Returns the cell of a node: its low corner, which belongs to it, and its high corner, which does not. The corners are exact.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless `node` is the number of a node; errors of the device.
    pub fn bounds(&self, node: u32) -> Result<[[f64; D]; 2]> {
        self.check_node(node)?;
        let level = self.level_begins().partition_point(|&begin| begin <= node) as u32 - 1;
        let (cell, frame) = (self.tree.cells(node..node + 1)?, self.outline().frame::<D>());
        let side = 1 << (frame.levels - level);
        let low = std::array::from_fn(|axis| u64::from(cell[axis]));
        Ok([frame.corner(low), frame.corner(low.map(|unit| unit + side))])
    }

    /// Returns the device that holds the tree.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns the statistics of the build.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Checks that there is a node with this number.
    fn check_node(&self, node: u32) -> Result<()> {
        let most = self.num_nodes() as u64 - 1;
        if u64::from(node) > most {
            return Err(Error::OutOfRange { what: "node", value: node.into(), least: 0, most });
        }
        Ok(())
    }
}

impl<P: CartesianPoint<D>, const D: usize> SealedIndex for CellTree<P, D> {}

/// On the CPU, queries traverse the cells. On a GPU, they traverse bounding boxes over runs of the points in tree order, which the first
/// query builds: they take the memory of the points again, and a tenth more. [`OutOfCore`](super::OutOfCore) says where queries to a
/// tree in host memory run. [`Traversal`](crate::query::Traversal)s by nodes are the
/// same traversal.
///
/// ```
/// use kauri::quadtree::{Quadtree, QuadtreeOptions};
/// use kauri::{Device, SpatialIndex};
/// let points = [[0.0f32, 0.0], [7.0, 7.0], [1.0, 1.0], [6.0, 1.0]];
/// let tree = Quadtree::build(&Device::cpu(), &points, &QuadtreeOptions::default())?;
/// assert_eq!(tree.nearest(&[[6.0, 6.0]], 2)?.row(0).ids(), [1, 3]);
/// assert_eq!(tree.count_in_boxes(&[[[0.0, 0.0], [6.0, 2.0]]], None)?, [3]);
/// # Ok::<(), kauri::Error>(())
/// ```
impl<P: CartesianPoint<D>, const D: usize> SpatialIndex for CellTree<P, D> {
    type Point = P;
    type StoredCoord = P::Coord;

    fn to_stored(coords: Cow<'_, [P::Coord]>) -> Result<Cow<'_, [P::Coord]>> {
        Ok(coords)
    }

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

impl<P: CartesianPoint<D>, const D: usize> std::fmt::Debug for CellTree<P, D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct(if D == 2 { "Quadtree" } else { "Octree" })
            .field("len", &self.len())
            .field("num_nodes", &self.num_nodes())
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}
