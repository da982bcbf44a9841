//! [`SahTree`]: build, rebuild, refit, and access to the tree.

use super::cpu;
use super::gpu::{GpuBuilder, GpuTree};
use super::host_tree::HostTree;
use super::options::SahOptions;
use crate::device::{Device, Stream, gpu_of};
use crate::error::{Error, Result, check_len};
use crate::memory::MemoryPlan;
use crate::mesh::{DeviceMesh, Mesh, MeshInput, check_count};
use crate::rays::sealed::Sealed;
use crate::rays::{RayIndex, Traced};
use crate::stats::Stats;
use kauri_kernels::rays::aabb::Aabb;
use kauri_kernels::rays::extent::Extent;
use kauri_kernels::rays::triangle::Corners;
use kauri_kernels::sah::node::{MAX_NODES, Node};

/// A k-d tree over the triangles of a mesh, built by the surface area heuristic (SAH), for ray queries. For points, see
/// [`KdTree`](crate::KdTree).
///
/// The tree copies the corners and borrows nothing from the mesh. The id of a triangle is its index in the mesh.
///
/// ```
/// use kauri::mesh::Mesh;
/// use kauri::rays::{Hit, Ray, RayIndex};
/// use kauri::{Device, SahOptions, SahTree};
/// let corners = vec![[0.0, 0.0, 5.0], [2.0, 0.0, 5.0], [0.0, 2.0, 5.0]];
/// let mesh = Mesh::new(corners, vec![[0, 1, 2]])?;
/// let tree = SahTree::build(&Device::cpu(), &mesh, &SahOptions::default())?;
/// let rays = [Ray::new([0.5, 1.0, 0.0], [0.0, 0.0, 1.0]), Ray::new([3.0, 1.0, 0.0], [0.0, 0.0, 1.0])];
/// let hits = tree.closest_hits(&rays)?;
/// assert_eq!(hits.get(0), Hit { triangle: 0, t: 5.0, u: 0.25, v: 0.5 });
/// assert_eq!(hits.triangles[1], Hit::NO_TRIANGLE);
/// assert_eq!(tree.any_hits(&rays)?, [true, false]);
/// # Ok::<(), kauri::Error>(())
/// ```
pub struct SahTree {
    device: Device,
    stats: Stats,
    options: SahOptions,
    tree: Tree,
    /// The memory of GPU builds, kept for rebuilds and refits.
    builder: Option<Box<GpuBuilder>>,
}

/// The tree in the memory of its device.
enum Tree {
    Cpu(HostTree),
    Gpu(GpuTree),
}

impl SahTree {
    /// Builds the tree over the triangles of `mesh` on `device`.
    ///
    /// - Cost: O(n log n) if triangles are small compared with the mesh.
    /// - Memory: by [`plan`](Self::plan).
    /// - Result: the same bits on every device and in every run, for one quality.
    /// - Degenerate input: no triangles, one triangle, triangles without area (which no ray hits), and copies of one triangle are all fine.
    ///   Triangles that planes cannot separate share a leaf. In a mesh of such triangles leaves are large: large nodes stop splitting when
    ///   nodes would have more than `16 * n + 4096` references, or 2^30.
    ///
    /// # Errors
    /// [`Error::InvalidLength`] for a negative or non-finite option; [`Error::TooManyItems`] from 2^30 triangles, nodes or references on;
    /// [`Error::OutOfMemory`]; errors of the device.
    pub fn build(device: &Device, mesh: &Mesh, options: &SahOptions) -> Result<Self> {
        let tree = Self::build_over(device.clone(), MeshInput::Host(mesh), options, None)?;
        // Scratch memory is kept only for trees that are rebuilt.
        Ok(Self { builder: None, ..tree })
    }

    /// Returns the memory that a build over `num_triangles` triangles takes at least; for 2^30 - 1 if there are more. Allocates nothing.
    ///
    /// The memory beyond that depends on the mesh. The tree takes 8 bytes per node, and 4 per reference of a leaf to a triangle: on
    /// average a triangle is in two to seven leaves of one to four triangles each, and the plan counts one leaf. On a GPU a build takes
    /// 80 to 170 bytes of scratch memory per triangle, with [`clip`](SahOptions::clip) 320 to 650, and with [`Quality::Exact`](super::Quality::Exact) 150 to
    /// 400, beside the copy of a host mesh.
    pub fn plan(device: &Device, num_triangles: usize, options: &SahOptions) -> MemoryPlan {
        let num_triangles = num_triangles.min(MAX_NODES as usize);
        let triangle_bytes = (num_triangles * (size_of::<Corners>() + size_of::<u32>())) as u64;
        let tree_bytes = triangle_bytes + (size_of::<Extent>() + size_of::<Node>()) as u64;
        let temp_bytes = match gpu_of!(device) {
            None => cpu::min_temp_bytes(num_triangles),
            Some(_) => GpuBuilder::min_temp_bytes(num_triangles, options),
        };
        MemoryPlan { tree_bytes, temp_bytes }
    }

    /// Builds the tree over a mesh in device memory, as [`build`](Self::build). Keeps the memory of the build for
    /// [`rebuild_on`](Self::rebuild_on) and [`refit_on`](Self::refit_on). Waits until the tree is ready.
    ///
    /// # Errors
    /// The errors of [`build`](Self::build), and of [`Mesh::new`] for the mesh; [`Error::Shape`] if a length is not a
    /// multiple of 3; [`Error::WrongDevice`].
    pub fn build_on(stream: &Stream, mesh: DeviceMesh<'_>, options: &SahOptions) -> Result<Self> {
        mesh.check(stream)?;
        let device = Device::from_gpu(stream.gpu().clone());
        Self::build_over(device, MeshInput::Device(stream, mesh), options, None)
    }

    /// Rebuilds the tree, over another mesh or a mesh that has moved, with the same options. On a GPU the memory of the
    /// build is kept for the next one. If an error occurs the tree stays as it was.
    ///
    /// # Errors
    /// The errors of [`build`](Self::build).
    pub fn rebuild(&mut self, mesh: &Mesh) -> Result<()> {
        self.rebuild_over(MeshInput::Host(mesh))
    }

    /// Rebuilds the tree over a mesh in device memory, as [`rebuild`](Self::rebuild).
    ///
    /// # Errors
    /// The errors of [`build_on`](Self::build_on); [`Error::NotOnGpu`].
    pub fn rebuild_on(&mut self, stream: &Stream, mesh: DeviceMesh<'_>) -> Result<()> {
        self.gpu_tree(stream)?;
        mesh.check(stream)?;
        self.rebuild_over(MeshInput::Device(stream, mesh))
    }

    /// Fits the tree to a mesh with the same triangles and moved vertices: planes move with the bounding box of the mesh, and leaves are
    /// filled again. This is faster than [`rebuild`](Self::rebuild), and hits do not depend on it. The farther triangles move within the
    /// box, the longer rays take. If an error occurs the tree stays as it was.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of triangles; the errors of [`build`](Self::build).
    pub fn refit(&mut self, mesh: &Mesh) -> Result<()> {
        self.refit_to(MeshInput::Host(mesh))
    }

    /// Fits the tree to a mesh in device memory, as [`refit`](Self::refit).
    ///
    /// # Errors
    /// The errors of [`refit`](Self::refit) and [`build_on`](Self::build_on); [`Error::NotOnGpu`].
    pub fn refit_on(&mut self, stream: &Stream, mesh: DeviceMesh<'_>) -> Result<()> {
        self.gpu_tree(stream)?;
        mesh.check(stream)?;
        self.refit_to(MeshInput::Device(stream, mesh))
    }

    /// Builds a tree, on a GPU with the memory of a builder.
    fn build_over(
        device: Device,
        mesh: MeshInput<'_>,
        options: &SahOptions,
        mut builder: Option<Box<GpuBuilder>>,
    ) -> Result<Self> {
        options.check()?;
        check_count(mesh.len())?;
        let _span = tracing::debug_span!("sah_build", triangles = mesh.len()).entered();
        let mut stats = Stats::new(&device);
        let tree = match gpu_of!(device) {
            None => stats.phase("build", || Ok(Tree::Cpu(cpu::build(mesh.corners()?, options)?)))?,
            Some(gpu) => {
                let builder = builder.get_or_insert_with(|| GpuBuilder::new(gpu).into());
                let build =
                    |stream: &_, mesh: DeviceMesh<'_>| builder.build(stream, mesh, options, &mut stats);
                Tree::Gpu(mesh.on_gpu(gpu, build)?)
            }
        };
        stats.temp_bytes = builder.as_ref().map_or(0, |builder| builder.bytes());
        Ok(Self { device, stats, options: options.clone(), tree, builder })
    }

    fn rebuild_over(&mut self, mesh: MeshInput<'_>) -> Result<()> {
        // After an error the builder is dropped: its memory may be large, and work that uses it may be in flight.
        let builder = self.builder.take();
        let new = Self::build_over(self.device.clone(), mesh, &self.options, builder)?;
        self.replace(new.tree, new.stats, new.builder);
        Ok(())
    }

    fn refit_to(&mut self, mesh: MeshInput<'_>) -> Result<()> {
        check_len("triangles of a mesh that has moved", self.len(), mesh.len())?;
        if self.is_empty() {
            return Ok(());
        }
        let (mut stats, mut builder) = (Stats::new(&self.device), self.builder.take());
        let tree = stats.phase("refit", || match &self.tree {
            Tree::Cpu(tree) => Ok(Tree::Cpu(cpu::refit(tree, mesh.corners()?)?)),
            Tree::Gpu(tree) => {
                let builder = builder.get_or_insert_with(|| GpuBuilder::new(&tree.gpu).into());
                let refit = |stream: &_, mesh: DeviceMesh<'_>| builder.refit(stream, tree, mesh);
                Ok(Tree::Gpu(mesh.on_gpu(&tree.gpu, refit)?))
            }
        })?;
        stats.temp_bytes = builder.as_ref().map_or(0, |builder| builder.bytes());
        self.replace(tree, stats, builder);
        Ok(())
    }

    /// Replaces the tree. The builder keeps the memory of the old one.
    fn replace(&mut self, tree: Tree, stats: Stats, builder: Option<Box<GpuBuilder>>) {
        let old = std::mem::replace(&mut self.tree, tree);
        (self.stats, self.builder) = (stats, builder);
        if let (Tree::Gpu(old), Some(builder)) = (old, &mut self.builder) {
            builder.keep(old);
        }
    }

    /// Checks that the tree is what [`build`](Self::build) promises: nodes in preorder, planes inside their nodes, each triangle in every
    /// leaf that it reaches. Runs on the host.
    ///
    /// # Errors
    /// [`Error::Corrupt`] with the node and the reason; [`Error::OutOfMemory`]; errors of the device.
    pub fn verify(&self) -> Result<()> {
        self.with_host_tree(HostTree::verify)
    }

    /// Returns the average cost of a ray that comes from far away and hits nothing, in intersection tests: the tree's surface area
    /// heuristic, with the options' cost of a step. Runs on the host.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; errors of the device.
    pub fn cost(&self) -> Result<f64> {
        self.with_host_tree(|tree| Ok(tree.cost(self.options.step_cost)))
    }

    /// Returns the nodes in preorder, the root first.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; errors of the device.
    pub fn nodes(&self) -> Result<Vec<Node>> {
        self.with_host_tree(|tree| Ok(tree.nodes.clone()))
    }

    /// Returns the primitive references: the triangles of all leaves, leaf after leaf.
    ///
    /// # Errors
    /// The errors of [`nodes`](Self::nodes).
    pub fn leaf_triangles(&self) -> Result<Vec<u32>> {
        self.with_host_tree(|tree| Ok(tree.references.clone()))
    }

    /// Returns the tree in the memory of the stream's device.
    fn gpu_tree(&self, stream: &Stream) -> Result<&GpuTree> {
        let Tree::Gpu(tree) = &self.tree else { return Err(Error::NotOnGpu) };
        tree.gpu.check_same(stream.gpu())?;
        Ok(tree)
    }

    fn with_host_tree<R>(&self, read: impl FnOnce(&HostTree) -> Result<R>) -> Result<R> {
        match &self.tree {
            Tree::Cpu(tree) => read(tree),
            Tree::Gpu(tree) => read(&tree.to_host()?),
        }
    }

    /// The options of the build.
    pub fn options(&self) -> &SahOptions {
        &self.options
    }

    /// Statistics of the last build, rebuild or refit.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }
}

impl Sealed for SahTree {
    fn traced(&self) -> Traced<'_> {
        match &self.tree {
            Tree::Cpu(tree) => Traced::Cpu(tree),
            Tree::Gpu(tree) => Traced::Gpu(tree),
        }
    }
}

impl RayIndex for SahTree {
    fn device(&self) -> &Device {
        &self.device
    }

    fn len(&self) -> usize {
        match &self.tree {
            Tree::Cpu(tree) => tree.corners.len(),
            Tree::Gpu(tree) => tree.num_triangles(),
        }
    }

    fn bounds(&self) -> Aabb {
        match &self.tree {
            Tree::Cpu(tree) => tree.extent.bounds,
            Tree::Gpu(tree) => tree.extent_on_host.bounds,
        }
    }
}

impl std::fmt::Debug for SahTree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SahTree")
            .field("len", &self.len())
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}
