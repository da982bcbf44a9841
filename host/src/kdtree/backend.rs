//! What a tree does where it lives, of arguments that have been checked.
//!
//! [`KdTree`](super::KdTree) is generic over its points, and so made anew in every crate that uses it. Behind these traits lies the
//! rest, which is generic over coordinates alone and made once, here, for both types.

use kauri_kernels::thread::coord::Coord;
use std::ops::{ControlFlow, Range};

use super::balanced::{self, BalancedOptions, BalancedTree};
use super::batches::{ShowFound, ShowNearest, Sought};
use super::cpu::CpuTree;
use super::gpu::{Asked, GpuTree};
use super::on_device::{DeviceQueries, DeviceWithin, Look};
use super::query::Wanted;
#[cfg(feature = "io")]
use super::stored::{Loaded, Stored};
use super::within::Found;
use super::{Builder, KdTreeOptions, PointMask, SplitRule};
use crate::batches::Delivery;
use crate::device::{Buffer, Device, Gpu, Stream, Workspace};
use crate::error::Result;
#[cfg(feature = "io")]
use crate::io::index::IndexFile;
use crate::progress::Progress;
use crate::quadtree::{self, GpuTree as GpuQuadtree, HostTree, LeafRows, QuadtreeOptions};
use crate::stats::Stats;

mod private {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// A type of coordinates, `f32` or `f64`, and the trees over it. Only kauri implements it:
///
/// ```compile_fail,E0277
/// impl kauri::kdtree::Coordinate for u32 {}
/// ```
pub trait Coordinate: Coord + private::Sealed {
    /// A tree on the CPU.
    #[doc(hidden)]
    fn cpu_tree(
        coords: &[Self],
        dims: usize,
        rule: SplitRule,
        stats: &mut Stats,
    ) -> Result<Box<dyn Backend<Self>>>;

    /// A tree on a GPU.
    #[doc(hidden)]
    fn gpu_tree(
        gpu: &Gpu,
        coords: &[Self],
        dims: usize,
        options: &KdTreeOptions,
        stats: &mut Stats,
    ) -> Result<Box<dyn GpuBackend<Self>>>;

    /// Room for one.
    #[doc(hidden)]
    fn room_for_gpu_tree(
        gpu: &Gpu,
        num_points: usize,
        dims: usize,
        rule: SplitRule,
    ) -> Result<Box<dyn GpuBackend<Self>>>;

    /// A balanced tree.
    #[doc(hidden)]
    fn balanced_tree(
        device: &Device,
        coords: &[Self],
        dims: usize,
        options: &BalancedOptions,
        stats: &mut Stats,
    ) -> Result<Box<dyn BalancedTree<Self>>>;

    /// A quadtree on the CPU.
    #[doc(hidden)]
    fn quadtree(
        coords: &[Self],
        dims: usize,
        options: &QuadtreeOptions,
        stats: &mut Stats,
    ) -> Result<HostTree<Self>>;

    /// A quadtree of points on a GPU.
    #[doc(hidden)]
    fn quadtree_on(
        stream: &Stream,
        workspace: &mut Workspace,
        coords: &Buffer<Self>,
        dims: usize,
        options: &QuadtreeOptions,
    ) -> Result<GpuQuadtree<Self>>;

    /// One out of core.
    #[doc(hidden)]
    fn quadtree_streamed(
        gpu: &Gpu,
        coords: &[Self],
        dims: usize,
        options: &QuadtreeOptions,
        progress: &mut dyn Progress,
        stats: &mut Stats,
    ) -> Result<HostTree<Self>>;

    /// Checks one.
    #[doc(hidden)]
    fn verify_quadtree(tree: &HostTree<Self>) -> Result<()>;

    /// The leaves of points in one.
    #[doc(hidden)]
    fn quadtree_leaves(tree: &quadtree::Tree<Self>, queries: &[Self]) -> Result<Vec<u32>>;

    /// The leaves around nodes.
    #[doc(hidden)]
    fn quadtree_leaves_around(tree: &quadtree::Tree<Self>, nodes: &[u32]) -> Result<LeafRows>;

    /// What answers queries to one on a GPU.
    #[doc(hidden)]
    fn quadtree_answers(tree: &GpuQuadtree<Self>) -> Result<&dyn Answers<Self>>;

    /// The places of the samples of nodes.
    #[doc(hidden)]
    fn quadtree_samples(tree: &quadtree::Tree<Self>) -> Result<Vec<u32>>;

    /// A balanced tree over several GPUs.
    #[doc(hidden)]
    fn balanced_tree_over(
        gpus: &[Gpu],
        coords: &[Self],
        dims: usize,
        options: &BalancedOptions,
        stats: &mut Stats,
    ) -> Result<Box<dyn BalancedTree<Self>>>;

    /// The tree of a file, on the CPU.
    #[cfg(feature = "io")]
    #[doc(hidden)]
    fn loaded_cpu_tree(file: IndexFile, dims: usize, stats: &mut Stats) -> Result<Box<dyn Backend<Self>>>;

    /// The tree of a file, on a GPU.
    #[cfg(feature = "io")]
    #[doc(hidden)]
    fn loaded_gpu_tree(
        gpu: &Gpu,
        file: IndexFile,
        dims: usize,
        stats: &mut Stats,
    ) -> Result<Box<dyn GpuBackend<Self>>>;

    /// A balanced tree of a file, and the number of its points.
    #[cfg(feature = "io")]
    #[doc(hidden)]
    fn loaded_balanced_tree(
        device: &Device,
        file: IndexFile,
        dims: usize,
        stats: &mut Stats,
    ) -> Result<(Box<dyn BalancedTree<Self>>, usize)>;

    /// The quadtree of a file.
    #[cfg(feature = "io")]
    #[doc(hidden)]
    fn loaded_quadtree(
        device: &Device,
        file: IndexFile,
        dims: usize,
        stats: &mut Stats,
    ) -> Result<quadtree::Tree<Self>>;
}

macro_rules! coordinates {
    ($($Float:ident)*) => {$(
        impl Coordinate for $Float {
            fn cpu_tree(
                coords: &[Self],
                dims: usize,
                rule: SplitRule,
                stats: &mut Stats,
            ) -> Result<Box<dyn Backend<Self>>> {
                Ok(Box::new(CpuTree::build(coords, dims, rule, stats)?))
            }

            fn gpu_tree(
                gpu: &Gpu,
                coords: &[Self],
                dims: usize,
                options: &KdTreeOptions,
                stats: &mut Stats,
            ) -> Result<Box<dyn GpuBackend<Self>>> {
                Ok(Box::new(GpuTree::build(gpu, coords, dims, options, stats)?))
            }

            fn room_for_gpu_tree(
                gpu: &Gpu,
                num_points: usize,
                dims: usize,
                rule: SplitRule,
            ) -> Result<Box<dyn GpuBackend<Self>>> {
                Ok(Box::new(GpuTree::uninitialized(gpu, num_points, dims, rule)?))
            }

            fn balanced_tree(
                device: &Device,
                coords: &[Self],
                dims: usize,
                options: &BalancedOptions,
                stats: &mut Stats,
            ) -> Result<Box<dyn BalancedTree<Self>>> {
                balanced::build_tree(device, coords, dims, options, stats)
            }

            fn quadtree(
                coords: &[Self],
                dims: usize,
                options: &QuadtreeOptions,
                stats: &mut Stats,
            ) -> Result<HostTree<Self>> {
                quadtree::build(coords, dims, options, stats)
            }

            fn quadtree_on(
                stream: &Stream,
                workspace: &mut Workspace,
                coords: &Buffer<Self>,
                dims: usize,
                options: &QuadtreeOptions,
            ) -> Result<GpuQuadtree<Self>> {
                quadtree::build_on(stream, workspace, coords, dims, options)
            }

            fn quadtree_streamed(
                gpu: &Gpu,
                coords: &[Self],
                dims: usize,
                options: &QuadtreeOptions,
                progress: &mut dyn Progress,
                stats: &mut Stats,
            ) -> Result<HostTree<Self>> {
                quadtree::build_streamed(gpu, coords, dims, options, progress, stats)
            }

            fn verify_quadtree(tree: &HostTree<Self>) -> Result<()> {
                quadtree::verify(tree)
            }

            fn quadtree_leaves(tree: &quadtree::Tree<Self>, queries: &[Self]) -> Result<Vec<u32>> {
                quadtree::leaves_of(tree, queries)
            }

            fn quadtree_leaves_around(tree: &quadtree::Tree<Self>, nodes: &[u32]) -> Result<LeafRows> {
                quadtree::leaves_around(tree, nodes)
            }

            fn quadtree_answers(tree: &GpuQuadtree<Self>) -> Result<&dyn Answers<Self>> {
                tree.answers()
            }

            fn quadtree_samples(tree: &quadtree::Tree<Self>) -> Result<Vec<u32>> {
                quadtree::samples(tree)
            }

            fn balanced_tree_over(
                gpus: &[Gpu],
                coords: &[Self],
                dims: usize,
                options: &BalancedOptions,
                stats: &mut Stats,
            ) -> Result<Box<dyn BalancedTree<Self>>> {
                balanced::build_tree_over(gpus, coords, dims, options, stats)
            }

            #[cfg(feature = "io")]
            fn loaded_cpu_tree(
                file: IndexFile,
                dims: usize,
                stats: &mut Stats,
            ) -> Result<Box<dyn Backend<Self>>> {
                let nodes = stats.phase("check", || Loaded::of_file(file, dims))?;
                Ok(Box::new(CpuTree::loaded(nodes, dims)))
            }

            #[cfg(feature = "io")]
            fn loaded_gpu_tree(
                gpu: &Gpu,
                file: IndexFile,
                dims: usize,
                stats: &mut Stats,
            ) -> Result<Box<dyn GpuBackend<Self>>> {
                let nodes = stats.phase("check", || Loaded::of_file(file, dims))?;
                Ok(Box::new(GpuTree::loaded(gpu, &nodes, dims, stats)?))
            }

            #[cfg(feature = "io")]
            fn loaded_balanced_tree(
                device: &Device,
                file: IndexFile,
                dims: usize,
                stats: &mut Stats,
            ) -> Result<(Box<dyn BalancedTree<Self>>, usize)> {
                balanced::loaded_tree(device, file, dims, stats)
            }

            #[cfg(feature = "io")]
            fn loaded_quadtree(
                device: &Device,
                file: IndexFile,
                dims: usize,
                stats: &mut Stats,
            ) -> Result<quadtree::Tree<Self>> {
                quadtree::loaded_tree(device, file, dims, stats)
            }
        }
    )*};
}

coordinates! { f32 f64 }

/// Queries whose coordinates have been checked, or the tree's own points.
#[derive(Clone, Copy)]
pub enum Checked<'a, C> {
    /// Coordinates, point after point.
    Points {
        /// Those.
        coords: &'a [C],
        /// Query `i` leaves out the point with this id and `i` more.
        first_left_out: Option<u32>,
    },
    /// The points of the tree.
    Own {
        /// With each itself.
        itself: bool,
    },
}

impl<'a, C> Checked<'a, C> {
    /// These points.
    pub(super) fn points(coords: &'a [C]) -> Self {
        Self::Points { coords, first_left_out: None }
    }

    /// The same as coordinates: those of the tree's own points, by id.
    pub(super) fn with_own(self, own: &'a [C]) -> Self {
        match self {
            Self::Own { itself } => Self::Points { coords: own, first_left_out: (!itself).then_some(0) },
            points => points,
        }
    }

    /// Some of coordinates; of a tree's own points all.
    pub(super) fn part(self, range: Range<usize>, dims: usize) -> Self {
        match self {
            Self::Points { coords, first_left_out } => Self::Points {
                coords: &coords[range.start * dims..range.end * dims],
                first_left_out: first_left_out.map(|first| first + range.start as u32),
            },
            own => own,
        }
    }

    /// Number of queries to a tree of `num_points` points.
    pub(super) fn len(&self, dims: usize, num_points: usize) -> usize {
        match self {
            Self::Points { coords, .. } => coords.len() / dims,
            Self::Own { .. } => num_points,
        }
    }
}

/// What answers queries.
pub trait Answers<C: Coord>: Send + Sync {
    /// Checks that all queries lie within a period of the points; called before any query is answered.
    fn check_queries(&self, queries: Checked<'_, C>, wanted: &Wanted<C>) -> Result<()>;
    /// Appends rows of the `k` nearest points to ids and squared distances, which are empty and have room for them.
    fn nearest(
        &self,
        queries: Checked<'_, C>,
        k: usize,
        wanted: Wanted<C>,
        ids: Vec<u32>,
        dist2: Vec<C>,
    ) -> Result<(Vec<u32>, Vec<C>)>;
    /// The number of points within a distance of queries.
    fn count_within(&self, queries: Checked<'_, C>, wanted: Wanted<C>) -> Result<Vec<u32>>;
    /// The points.
    fn within(&self, queries: Checked<'_, C>, wanted: Wanted<C>) -> Result<Found<C>>;
    /// The number of points in boxes, given as their least and then their greatest coordinates.
    fn count_in_boxes(&self, corners: &[C], mask: Option<&PointMask>) -> Result<Vec<u32>>;
    /// The points, without distances.
    fn in_boxes(&self, corners: &[C], mask: Option<&PointMask>) -> Result<Found<C>>;
    /// Delivers the points that are looked for in batches; says if it was stopped.
    fn find_batches(
        &self,
        sought: Sought<'_, C>,
        delivery: &mut Delivery<'_, '_>,
        show: &mut ShowFound<'_, C>,
    ) -> Result<ControlFlow<()>>;
    /// Delivers rows of the `k` nearest points in batches; says if it was stopped.
    fn nearest_batches(
        &self,
        queries: Checked<'_, C>,
        k: usize,
        wanted: Wanted<C>,
        delivery: &mut Delivery<'_, '_>,
        show: &mut ShowNearest<'_, C>,
    ) -> Result<ControlFlow<()>>;
}

/// A left-balanced tree.
pub trait Backend<C: Coord>: Answers<C> {
    /// Number of points.
    fn num_points(&self) -> usize;
    /// Checks every node against its ancestors.
    fn verify(&self) -> Result<()>;
    /// The ids in level order.
    fn node_ids(&self) -> Result<Vec<u32>>;
    /// What a file holds of the tree.
    #[cfg(feature = "io")]
    fn stored(&self) -> Result<Stored<'_, C>>;
}

/// A tree in the memory of a GPU.
pub trait GpuBackend<C: Coord>: Backend<C> {
    /// Options in device memory.
    fn prepare(&self, stream: &Stream, wanted: Wanted<C>) -> Result<Asked<C>>;
    /// Builds the tree over as many points.
    fn rebuild(
        &mut self,
        stream: &Stream,
        workspace: &mut Workspace,
        coords: &Buffer<C>,
        builder: Builder,
    ) -> Result<()>;
    /// The k nearest points of queries.
    #[allow(clippy::too_many_arguments)]
    fn nearest_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        queries: DeviceQueries<'_, C>,
        k: usize,
        asked: &Asked<C>,
        ids: &mut Buffer<u32>,
        dist2: &mut Buffer<C>,
    ) -> Result<()>;
    /// Counts the points of each row.
    fn count_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        look: Look<'_, C>,
        counts: &mut Buffer<u32>,
    ) -> Result<()>;
    /// Finds the points of each row, as far as there is room for them.
    fn find_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        look: Look<'_, C>,
        offsets: &mut Buffer<u64>,
        ids: &mut Buffer<u32>,
        dist2: Option<&mut Buffer<C>>,
    ) -> Result<()>;
    /// Finds the points of each row, in as much room as they take; waits for their number.
    fn find_all_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        look: Look<'_, C>,
    ) -> Result<DeviceWithin<C>>;
}
