//! [`Bvh`]: build, rebuild, refit, and access to the hierarchy.

use super::cpu;
use super::gpu::{GpuBuilder, GpuTree};
use super::host_tree::HostTree;
use crate::device::{Device, Stream, gpu_of};
use crate::error::{Error, Result, check_len};
use crate::memory::MemoryPlan;
use crate::mesh::{DeviceMesh, Mesh, MeshInput, check_count};
use crate::rays::sealed::Sealed;
use crate::rays::{Aabb, RayIndex, Traced};
use crate::stats::Stats;
use kauri_kernels::bvh::leaf::LeafTriangle;
use kauri_kernels::rays::extent::Extent;
use kauri_kernels::rays::mesh::MAX_TRIANGLES;

/// A bounding volume hierarchy (BVH) over the triangles of a mesh, for ray queries.
///
/// The hierarchy copies the corners and borrows nothing from the mesh. The id of a triangle is its index in the mesh.
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
pub struct Bvh {
    device: Device,
    stats: Stats,
    tree: Tree,
    /// The memory of GPU builds, kept for rebuilds and refits.
    builder: Option<Box<GpuBuilder>>,
}

/// The hierarchy in the memory of its device.
enum Tree {
    Cpu(HostTree),
    Gpu(GpuTree),
}

impl Bvh {
    /// Builds the hierarchy over the triangles of `mesh` on `device`.
    ///
    /// - Cost: O(n).
    /// - Memory: by [`plan`](Self::plan).
    /// - Result: the same bits on every device and in every run.
    /// - Degenerate input: no triangles, one triangle, triangles without area (which no ray hits), and copies of one triangle are all fine.
    ///
    /// # Errors
    /// [`Error::TooManyItems`] from 2^30 triangles on; [`Error::OutOfMemory`]; errors of the device.
    pub fn build(device: &Device, mesh: &Mesh) -> Result<Self> {
        let bvh = Self::build_over(device.clone(), MeshInput::Host(mesh), None)?;
        // Scratch memory is kept only for hierarchies that are rebuilt.
        Ok(Self { builder: None, ..bvh })
    }

    /// Returns the memory that a build over `num_triangles` triangles takes; for 2^30 - 1 if there are more. Allocates nothing.
    ///
    /// `tree_bytes` are those of the triangles, 48 each. They leave out the nodes, of 128 bytes each, because their number depends on the
    /// mesh: the meshes that were measured have one for six triangles. On a GPU `temp_bytes` is exact, but for the copy of a host mesh.
    pub fn plan(device: &Device, num_triangles: usize) -> MemoryPlan {
        let num_triangles = num_triangles.min(MAX_TRIANGLES as usize);
        let tree_bytes = (num_triangles * size_of::<LeafTriangle>() + size_of::<Extent>()) as u64;
        let temp_bytes = match gpu_of!(device) {
            None => cpu::temp_bytes(num_triangles),
            Some(_) => GpuBuilder::temp_bytes(num_triangles),
        };
        MemoryPlan { tree_bytes, temp_bytes }
    }

    /// Builds the hierarchy over a mesh in device memory, as [`build`](Self::build). Keeps the memory of the build for
    /// [`rebuild_on`](Self::rebuild_on) and [`refit_on`](Self::refit_on). Waits until the hierarchy is ready.
    ///
    /// # Errors
    /// The errors of [`build`](Self::build), and of [`Mesh::new`] for the mesh; [`Error::Shape`] if a length is not a multiple of 3;
    /// [`Error::WrongDevice`].
    pub fn build_on(stream: &Stream, mesh: DeviceMesh<'_>) -> Result<Self> {
        mesh.check(stream)?;
        Self::build_over(Device::from_gpu(stream.gpu().clone()), MeshInput::Device(stream, mesh), None)
    }

    /// Rebuilds the hierarchy, over another mesh or a mesh that has moved. On a GPU the memory of the build is kept for the next one. If an
    /// error occurs the hierarchy stays as it was.
    ///
    /// # Errors
    /// The errors of [`build`](Self::build).
    pub fn rebuild(&mut self, mesh: &Mesh) -> Result<()> {
        self.rebuild_over(MeshInput::Host(mesh))
    }

    /// Rebuilds the hierarchy over a mesh in device memory, as [`rebuild`](Self::rebuild).
    ///
    /// # Errors
    /// The errors of [`build_on`](Self::build_on); [`Error::NotOnGpu`].
    pub fn rebuild_on(&mut self, stream: &Stream, mesh: DeviceMesh<'_>) -> Result<()> {
        self.check_on(stream, mesh)?;
        self.rebuild_over(MeshInput::Device(stream, mesh))
    }

    /// Fits the hierarchy to a mesh with the same triangles and moved vertices: the boxes change, and nothing else. This is faster than
    /// [`rebuild`](Self::rebuild), and hits do not depend on it. The farther neighbors move apart, the longer rays take. If an error occurs
    /// the hierarchy stays as it was.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of triangles; the errors of [`build`](Self::build).
    pub fn refit(&mut self, mesh: &Mesh) -> Result<()> {
        self.refit_to(MeshInput::Host(mesh))
    }

    /// Fits the hierarchy to a mesh in device memory, as [`refit`](Self::refit).
    ///
    /// # Errors
    /// The errors of [`refit`](Self::refit) and [`build_on`](Self::build_on); [`Error::NotOnGpu`].
    pub fn refit_on(&mut self, stream: &Stream, mesh: DeviceMesh<'_>) -> Result<()> {
        self.check_on(stream, mesh)?;
        self.refit_to(MeshInput::Device(stream, mesh))
    }

    /// Checks that hierarchy and mesh are on the stream's device.
    fn check_on(&self, stream: &Stream, mesh: DeviceMesh<'_>) -> Result<()> {
        let Tree::Gpu(tree) = &self.tree else { return Err(Error::NotOnGpu) };
        tree.gpu.check_same(stream.gpu())?;
        mesh.check(stream)
    }

    /// Builds a hierarchy, on a GPU with the memory of a builder.
    fn build_over(device: Device, mesh: MeshInput<'_>, mut builder: Option<Box<GpuBuilder>>) -> Result<Self> {
        check_count(mesh.len())?;
        let _span = tracing::debug_span!("bvh_build", triangles = mesh.len()).entered();
        let mut stats = Stats::new(&device);
        let tree = stats.phase("build", || match gpu_of!(device) {
            None => Ok(Tree::Cpu(cpu::build(mesh.corners()?)?)),
            Some(gpu) => {
                let builder = builder.get_or_insert_with(|| GpuBuilder::new(gpu).into());
                Ok(Tree::Gpu(mesh.on_gpu(gpu, |stream, mesh| builder.build(stream, mesh))?))
            }
        })?;
        stats.temp_bytes = builder.as_ref().map_or(0, |builder| builder.bytes());
        Ok(Self { device, stats, tree, builder })
    }

    fn rebuild_over(&mut self, mesh: MeshInput<'_>) -> Result<()> {
        // After an error the builder is dropped: its memory may be large, and work that uses it may be in flight.
        let builder = self.builder.take();
        let new = Self::build_over(self.device.clone(), mesh, builder)?;
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
            Tree::Cpu(tree) => Ok(Tree::Cpu(cpu::refit(tree, &mesh.corners()?)?)),
            Tree::Gpu(tree) => {
                let builder = builder.get_or_insert_with(|| GpuBuilder::new(&tree.gpu).into());
                Ok(Tree::Gpu(mesh.on_gpu(&tree.gpu, |stream, mesh| builder.refit(stream, tree, mesh))?))
            }
        })?;
        stats.temp_bytes = builder.as_ref().map_or(0, |builder| builder.bytes());
        self.replace(tree, stats, builder);
        Ok(())
    }

    /// Replaces the hierarchy. The builder keeps the memory of the old one.
    fn replace(&mut self, tree: Tree, stats: Stats, builder: Option<Box<GpuBuilder>>) {
        let old = std::mem::replace(&mut self.tree, tree);
        (self.stats, self.builder) = (stats, builder);
        if let (Tree::Gpu(old), Some(builder)) = (old, &mut self.builder) {
            builder.keep(old);
        }
    }

    /// Checks that each triangle is in one leaf, and each box is that of its triangles. Runs on the host.
    ///
    /// # Errors
    /// [`Error::Corrupt`] with the node and the reason; [`Error::OutOfMemory`]; errors of the device.
    pub fn verify(&self) -> Result<()> {
        self.with_host_tree(HostTree::verify)
    }

    /// Returns the average cost of a ray that comes from far away and hits nothing, in intersection tests of triangles: the surface area
    /// heuristic, where a test of a box costs as much. Runs on the host.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; errors of the device.
    pub fn cost(&self) -> Result<f64> {
        self.with_host_tree(|tree| Ok(tree.cost()))
    }

    fn with_host_tree<R>(&self, read: impl FnOnce(&HostTree) -> Result<R>) -> Result<R> {
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
        match &self.tree {
            Tree::Cpu(tree) => tree.triangles.len(),
            Tree::Gpu(tree) => tree.triangles.len(),
        }
    }

    fn bounds(&self) -> Aabb {
        match &self.tree {
            Tree::Cpu(tree) => tree.extent.bounds,
            Tree::Gpu(tree) => tree.extent_on_host.bounds,
        }
    }
}

impl std::fmt::Debug for Bvh {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bvh").field("len", &self.len()).field("device", &self.device).finish_non_exhaustive()
    }
}
