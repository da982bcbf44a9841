//! [`Bvh`]: build, rebuild, refit, and access to the hierarchy.

use super::cpu;
use super::gpu::{GpuBuilder, GpuTree};
use super::host_tree::HostTree;
use super::input::sealed::Input;
use super::input::{BvhInput, DeviceBvhInput, OnStream};
use crate::device::{Device, Stream, gpu_of};
use crate::error::{Error, Result, check_count, check_len};
use crate::memory::MemoryPlan;
use crate::rays::sealed::Sealed;
use crate::rays::{Aabb, RayIndex, Traced};
use crate::stats::Stats;
use kauri_kernels::bvh::leaf::{Leaf, LeafTriangle};
use kauri_kernels::rays::extent::Extent;
use kauri_kernels::rays::mesh::MAX_TRIANGLES;

/// A bounding volume hierarchy (BVH) over items: the triangles of a mesh, or boxes.
///
/// The hierarchy copies the items and borrows nothing. The id of an item is its index in the input. A `Bvh` is over triangles and answers ray
/// queries too; a `Bvh<LeafBox>` is over boxes of three dimensions. Rectangles are boxes without a height, and points with a radius are in the
/// boxes around them.
///
/// ```
/// use kauri::mesh::shapes;
/// use kauri::rays::{Ray, RayIndex};
/// use kauri::{Bvh, Device};
/// let knot = shapes::torus_knot([2, 3], 200, 16)?;
/// let bvh = Bvh::build(&Device::best()?, &knot)?;
/// let rays = [Ray::new([-4.0, 0.3, 0.2], [1.0, 0.0, 0.0])];
/// let (first, all) = (bvh.closest_hits(&rays)?, bvh.all_hits(&rays)?);
/// assert_eq!(all.row(0).iter().next(), Some(first.get(0)));
/// # Ok::<(), kauri::Error>(())
/// ```
pub struct Bvh<L: Leaf = LeafTriangle> {
    device: Device,
    stats: Stats,
    pub(super) tree: Tree<L>,
    /// The memory of GPU builds, kept for rebuilds and refits.
    builder: Option<Box<GpuBuilder<L>>>,
}

/// The hierarchy in the memory of its device.
pub(super) enum Tree<L> {
    Cpu(HostTree<L>),
    Gpu(GpuTree<L>),
}

impl<L: Leaf> Bvh<L> {
    /// Builds the hierarchy over a mesh or boxes on `device`.
    ///
    /// - Cost: O(n).
    /// - Memory: by [`plan`](Self::plan).
    /// - Result: the same bits on every device and in every run.
    /// - Degenerate input: no items, one item, triangles without area (which no ray hits), and copies of one item are all fine.
    ///
    /// # Errors
    /// [`Error::TooManyItems`] from 2^30 items on; [`Error::NonFinite`], [`Error::CoordinateTooLarge`] and [`Error::InvertedBox`] for the first
    /// such box; [`Error::OutOfMemory`]; errors of the device.
    pub fn build(device: &Device, input: &(impl BvhInput<Leaf = L> + ?Sized)) -> Result<Self> {
        let bvh = Self::build_over(device.clone(), input, None)?;
        // Scratch memory is kept only for hierarchies that are rebuilt.
        Ok(Self { builder: None, ..bvh })
    }

    /// Returns the memory that a build over `num_items` items takes; for 2^30 - 1 if there are more. Allocates nothing.
    ///
    /// `tree_bytes` are those of the items: 48 for a triangle, 32 for a box. They leave out the nodes, of 128 bytes each, because their number
    /// depends on the input: the meshes that were measured have one for six triangles. On a GPU `temp_bytes` is exact, but for the copy of an
    /// input in host memory.
    pub fn plan(device: &Device, num_items: usize) -> MemoryPlan {
        let num_items = num_items.min(MAX_TRIANGLES as usize);
        let tree_bytes = (num_items * size_of::<L>() + size_of::<Extent>()) as u64;
        let temp_bytes = match gpu_of!(device) {
            None => cpu::temp_bytes::<L>(num_items),
            Some(_) => GpuBuilder::<L>::temp_bytes(num_items),
        };
        MemoryPlan { tree_bytes, temp_bytes }
    }

    /// Builds the hierarchy over a mesh or boxes in device memory, as [`build`](Self::build). Keeps the memory of the build for
    /// [`rebuild_on`](Self::rebuild_on) and [`refit_on`](Self::refit_on). Waits until the hierarchy is ready.
    ///
    /// # Errors
    /// The errors of [`build`](Self::build), and of [`Mesh::new`](crate::mesh::Mesh::new) for a mesh; [`Error::Shape`] if a length is not a
    /// multiple of 3; [`Error::WrongDevice`].
    pub fn build_on(stream: &Stream, input: impl DeviceBvhInput<Leaf = L>) -> Result<Self> {
        input.check(stream)?;
        Self::build_over(Device::from_gpu(stream.gpu().clone()), &OnStream(stream, input), None)
    }

    /// Rebuilds the hierarchy, over other items or items that have moved. On a GPU the memory of the build is kept for the next one. If an
    /// error occurs the hierarchy stays as it was.
    ///
    /// # Errors
    /// The errors of [`build`](Self::build).
    pub fn rebuild(&mut self, input: &(impl BvhInput<Leaf = L> + ?Sized)) -> Result<()> {
        self.rebuild_over(input)
    }

    /// Rebuilds the hierarchy over items in device memory, as [`rebuild`](Self::rebuild).
    ///
    /// # Errors
    /// The errors of [`build_on`](Self::build_on); [`Error::NotOnGpu`].
    pub fn rebuild_on(&mut self, stream: &Stream, input: impl DeviceBvhInput<Leaf = L>) -> Result<()> {
        self.on_gpu(stream)?;
        input.check(stream)?;
        self.rebuild_over(&OnStream(stream, input))
    }

    /// Fits the hierarchy to the same items, which have moved: the boxes change, and nothing else. This is faster than
    /// [`rebuild`](Self::rebuild), and results do not depend on it. The farther neighbors move apart, the longer queries take. If an error
    /// occurs the hierarchy stays as it was.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of items; the errors of [`build`](Self::build).
    pub fn refit(&mut self, input: &(impl BvhInput<Leaf = L> + ?Sized)) -> Result<()> {
        self.refit_to(input)
    }

    /// Fits the hierarchy to items in device memory, as [`refit`](Self::refit).
    ///
    /// # Errors
    /// The errors of [`refit`](Self::refit) and [`build_on`](Self::build_on); [`Error::NotOnGpu`].
    pub fn refit_on(&mut self, stream: &Stream, input: impl DeviceBvhInput<Leaf = L>) -> Result<()> {
        self.on_gpu(stream)?;
        input.check(stream)?;
        self.refit_to(&OnStream(stream, input))
    }

    /// Returns the hierarchy in the memory of the stream's device.
    pub(super) fn on_gpu(&self, stream: &Stream) -> Result<&GpuTree<L>> {
        let Tree::Gpu(tree) = &self.tree else { return Err(Error::NotOnGpu) };
        tree.gpu.check_same(stream.gpu())?;
        Ok(tree)
    }

    /// Builds a hierarchy, on a GPU with the memory of a builder.
    fn build_over(
        device: Device,
        input: &(impl Input<Leaf = L> + ?Sized),
        mut builder: Option<Box<GpuBuilder<L>>>,
    ) -> Result<Self> {
        check_count("items", input.num_items() as u64, MAX_TRIANGLES)?;
        let _span = tracing::debug_span!("bvh_build", items = input.num_items()).entered();
        let mut stats = Stats::new(&device);
        let tree = stats.phase("build", || match gpu_of!(device) {
            None => Ok(Tree::Cpu(cpu::build(&input.leaves()?)?)),
            Some(gpu) => {
                let builder = builder.get_or_insert_with(|| GpuBuilder::new(gpu).into());
                Ok(Tree::Gpu(input.on_gpu(gpu, |stream, input| builder.build(stream, input))?))
            }
        })?;
        stats.temp_bytes = builder.as_ref().map_or(0, |builder| builder.bytes());
        Ok(Self { device, stats, tree, builder })
    }

    fn rebuild_over(&mut self, input: &(impl Input<Leaf = L> + ?Sized)) -> Result<()> {
        // After an error the builder is dropped: its memory may be large, and work that uses it may be in flight.
        let builder = self.builder.take();
        let new = Self::build_over(self.device.clone(), input, builder)?;
        self.replace(new.tree, new.stats, new.builder);
        Ok(())
    }

    fn refit_to(&mut self, input: &(impl Input<Leaf = L> + ?Sized)) -> Result<()> {
        check_len("items that have moved", self.len(), input.num_items())?;
        if self.is_empty() {
            return Ok(());
        }
        let (mut stats, mut builder) = (Stats::new(&self.device), self.builder.take());
        let tree = stats.phase("refit", || match &self.tree {
            Tree::Cpu(tree) => Ok(Tree::Cpu(cpu::refit(tree, &input.leaves()?)?)),
            Tree::Gpu(tree) => {
                let builder = builder.get_or_insert_with(|| GpuBuilder::new(&tree.gpu).into());
                Ok(Tree::Gpu(input.on_gpu(&tree.gpu, |stream, input| builder.refit(stream, tree, input))?))
            }
        })?;
        stats.temp_bytes = builder.as_ref().map_or(0, |builder| builder.bytes());
        self.replace(tree, stats, builder);
        Ok(())
    }

    /// Replaces the hierarchy. The builder keeps the memory of the old one.
    fn replace(&mut self, tree: Tree<L>, stats: Stats, builder: Option<Box<GpuBuilder<L>>>) {
        let old = std::mem::replace(&mut self.tree, tree);
        (self.stats, self.builder) = (stats, builder);
        if let (Tree::Gpu(old), Some(builder)) = (old, &mut self.builder) {
            builder.keep(old);
        }
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        match &self.tree {
            Tree::Cpu(tree) => tree.items.len(),
            Tree::Gpu(tree) => tree.items.len(),
        }
    }

    /// True if there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The device that holds the hierarchy.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The bounding box of all items; all coordinates are 0 if there are none.
    pub fn bounds(&self) -> Aabb {
        match &self.tree {
            Tree::Cpu(tree) => tree.extent.bounds,
            Tree::Gpu(tree) => tree.extent_on_host.bounds,
        }
    }

    /// Checks that each item is in one leaf, and each box is that of its items. Runs on the host.
    ///
    /// # Errors
    /// [`Error::Corrupt`] with the node and the reason; [`Error::OutOfMemory`]; errors of the device.
    pub fn verify(&self) -> Result<()> {
        self.with_host_tree(HostTree::verify)
    }

    /// Returns the average cost of a ray that comes from far away and hits nothing, in intersection tests of items: the surface area
    /// heuristic, where a test of a box costs as much. Runs on the host.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; errors of the device.
    pub fn cost(&self) -> Result<f64> {
        self.with_host_tree(|tree| Ok(tree.cost()))
    }

    fn with_host_tree<R>(&self, read: impl FnOnce(&HostTree<L>) -> Result<R>) -> Result<R> {
        match &self.tree {
            Tree::Cpu(tree) => read(tree),
            Tree::Gpu(tree) => read(&tree.to_host()?),
        }
    }

    /// Returns a number that depends on every bit of the hierarchy: equal hierarchies have equal ones. Runs on the host.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; errors of the device.
    #[doc(hidden)]
    pub fn fingerprint(&self) -> Result<u64> {
        self.with_host_tree(|tree| Ok(tree.fingerprint()))
    }

    /// Number of nodes. Each takes 128 bytes.
    pub fn num_nodes(&self) -> usize {
        match &self.tree {
            Tree::Cpu(tree) => tree.nodes.len(),
            Tree::Gpu(tree) => tree.nodes.len(),
        }
    }

    /// Statistics of the last build, rebuild or refit.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }
}

impl Sealed for Bvh {
    fn traced(&self) -> Traced<'_> {
        match &self.tree {
            Tree::Cpu(tree) => Traced::Cpu(tree),
            Tree::Gpu(tree) => Traced::Gpu(tree),
        }
    }
}

impl RayIndex for Bvh {
    fn device(&self) -> &Device {
        &self.device
    }

    fn len(&self) -> usize {
        self.len()
    }

    fn bounds(&self) -> Aabb {
        self.bounds()
    }
}

impl<L: Leaf> std::fmt::Debug for Bvh<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bvh").field("len", &self.len()).field("device", &self.device).finish_non_exhaustive()
    }
}
