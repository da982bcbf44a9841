//! SAH k-d trees over triangles, and rays through them.
//!
//! A node of the tree has a box; an inner one has a plane across an axis, and a child on each side of it; a leaf knows all triangles that
//! reach into its box, so that a triangle is in several leaves. Planes are where the surface area heuristic says that rays find least to do: a node
//! costs a test for each of its triangles, or a step and what its children cost, each as often as a ray comes to it (MacDonald, Booth 1990).
//!
//! A GPU builds in two stages (Zhou et al. 2008: Real-time KD-tree construction on graphics hardware; Chang, Seo, Ihm): large nodes lose the empty
//! space at their sides, or split in the middle; nodes of up to 64 triangles, which have a bit for each, split where it costs least. The CPU does the
//! same with the same results, to the last bit; it also builds [the best tree](Quality::Exact).
//!
//! Rays hit triangles without gaps between them (Woop, Benthin, Wald 2013), and what they hit depends on ray and triangle alone: not on the
//! tree, how it was built, or where.

mod cpu;
mod gpu;
mod hits;
mod host;
mod on_device;
mod options;

pub use hits::{Hit, HitIter, HitRow, Hits};
pub use kauri_kernels::sah::aabb::Aabb;
pub use kauri_kernels::sah::node::Node;
pub use kauri_kernels::sah::ray::Ray;
pub use on_device::{DeviceHits, DeviceMesh};
#[doc(hidden)]
pub use options::StagesOptions;
pub use options::{Quality, RayOptions, SahOptions};

use crate::device::{Buffer, Device, Gpu, Stream, Workspace};
use crate::error::{Error, Result};
use crate::mesh::Mesh;
use crate::rows::Rows;
use crate::stats::Stats;
use cuda_std::mem::Slice;
use gpu::{Builder, GpuTree};
use host::HostTree;
use kauri_kernels::sah::triangle::Corners;
use rayon::prelude::*;

/// A k-d tree over the triangles of a mesh, for rays.
///
/// Corners are copied; nothing of the mesh is borrowed. The number of a triangle is that in the mesh.
///
/// ```
/// use kauri::mesh::Mesh;
/// use kauri::sah::{Hit, Ray, SahOptions, SahTree};
/// use kauri::Device;
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
    /// Memory for the next tree, of trees in device memory and of those that took the place of another.
    builder: Option<Box<Builder>>,
}

/// The tree where its device can read it.
enum Tree {
    Cpu(HostTree),
    Gpu(GpuTree),
}

/// What a tree is built over.
#[derive(Clone, Copy)]
enum Input<'a> {
    Host(&'a Mesh),
    Device(&'a Stream, DeviceMesh<'a>),
}

impl Input<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Host(mesh) => mesh.len(),
            Self::Device(_, mesh) => mesh.len(),
        }
    }

    /// The corners of all triangles.
    fn corners(self) -> Result<Vec<Corners>> {
        match self {
            Self::Host(mesh) => corners(mesh),
            Self::Device(stream, mesh) => corners(&mesh.to_host(stream)?),
        }
    }

    /// Does something with the mesh in device memory.
    fn on_device<R>(self, gpu: &Gpu, work: impl FnOnce(&Stream, DeviceMesh<'_>) -> Result<R>) -> Result<R> {
        match self {
            Self::Host(mesh) => {
                let stream = Stream::new(gpu)?;
                let vertices = Buffer::from_slice(&stream, mesh.vertices().as_flattened(), "vertices")?;
                let triangles = Buffer::from_slice(&stream, mesh.triangles().as_flattened(), "triangles")?;
                work(&stream, DeviceMesh { vertices: &vertices, triangles: &triangles })
            }
            Self::Device(stream, mesh) => work(stream, mesh),
        }
    }
}

impl Tree {
    /// A tree by the CPU, or on a GPU with the memory of a builder.
    fn build(
        device: &Device,
        input: Input<'_>,
        options: &SahOptions,
        stats: &mut Stats,
        builder: &mut Option<Box<Builder>>,
    ) -> Result<Self> {
        on_device::check_count(input.len())?;
        let _span = tracing::debug_span!("sah_build", triangles = input.len()).entered();
        let Some(gpu) = device.gpu() else {
            return stats.phase("build", || Ok(Self::Cpu(cpu::build(input.corners()?, options)?)));
        };
        match options.quality {
            Quality::Fast => input.on_device(gpu, |stream, mesh| {
                let builder = builder.get_or_insert_with(|| Builder::new(gpu).into());
                Ok(Self::Gpu(builder.build(stream, mesh, options, stats)?))
            }),
            Quality::Exact => {
                let tree = stats.phase("build", || cpu::build(input.corners()?, options))?;
                stats.phase("copy", || Ok(Self::Gpu(GpuTree::of_host(&Stream::new(gpu)?, &tree)?)))
            }
        }
    }
}

impl SahTree {
    /// Builds the tree over the triangles of `mesh` on `device`.
    ///
    /// - Cost: O(n log n) where triangles are small beside the mesh.
    /// - Memory: 48 bytes a triangle, 8 a node and 4 for each triangle of a leaf: on average a triangle is in two to seven leaves of one to four
    ///   triangles each. On a GPU 80 to 170 bytes a triangle beside that while it is built, and with boxes of parts 320 to 650.
    /// - Result: the same bits on every device and in every run, for one quality.
    /// - Degenerate input: no triangles, one, triangles without area (which no ray hits), and copies of one are all fine. Many that
    ///   planes cannot separate are in one leaf, and in a mesh of such triangles alone leaves are large: large nodes
    ///   stop splitting where nodes would have more than 16 triangles for each of the mesh and 4096, or 2^30.
    ///
    /// # Errors
    /// [`Error::InvalidLength`] for options that are no cost and no fraction; [`Error::TooManyItems`] from 2^30 triangles, nodes, or triangles in
    /// leaves on; [`Error::OutOfMemory`]; errors of the device.
    pub fn build(device: &Device, mesh: &Mesh, options: &SahOptions) -> Result<Self> {
        // The memory of a build that is not done again is given back.
        Ok(Self { builder: None, ..Self::of(device.clone(), Input::Host(mesh), options)? })
    }

    /// Builds the tree over a mesh in device memory; as [`build`](Self::build). The memory of the build is kept for
    /// [`rebuild_on`](Self::rebuild_on) and [`refit_on`](Self::refit_on). The call waits for the stream, and gives a tree that is ready.
    ///
    /// # Errors
    /// As [`build`](Self::build), and those of [`Mesh::new`] for what the mesh must be; [`Error::Shape`] for lengths that are no multiples of 3;
    /// [`Error::WrongDevice`].
    pub fn build_on(stream: &Stream, mesh: DeviceMesh<'_>, options: &SahOptions) -> Result<Self> {
        mesh.check(stream)?;
        Self::of(Device::from_gpu(stream.gpu().clone()), Input::Device(stream, mesh), options)
    }

    fn of(device: Device, input: Input<'_>, options: &SahOptions) -> Result<Self> {
        options.check()?;
        let (mut stats, mut builder) = (Stats::new(&device), None);
        let tree = Tree::build(&device, input, options, &mut stats, &mut builder)?;
        stats.temp_bytes = builder.as_ref().map_or(0, |builder| builder.bytes());
        Ok(Self { device, stats, options: options.clone(), tree, builder })
    }

    /// Builds the tree anew, over another mesh or one that has moved, with the same options. On a GPU the memory of the build is kept for the next
    /// time. If it fails the tree stays as it was.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn rebuild(&mut self, mesh: &Mesh) -> Result<()> {
        self.rebuild_over(Input::Host(mesh))
    }

    /// The same over a mesh in device memory.
    ///
    /// # Errors
    /// As [`build_on`](Self::build_on); [`Error::NotOnGpu`].
    pub fn rebuild_on(&mut self, stream: &Stream, mesh: DeviceMesh<'_>) -> Result<()> {
        self.gpu_tree()?.check_device(stream)?;
        mesh.check(stream)?;
        self.rebuild_over(Input::Device(stream, mesh))
    }

    fn rebuild_over(&mut self, input: Input<'_>) -> Result<()> {
        let mut stats = Stats::new(&self.device);
        let tree = Tree::build(&self.device, input, &self.options, &mut stats, &mut self.builder);
        self.replace(tree, stats)
    }

    /// Fits the tree to a mesh of the same triangles whose vertices have moved, which is faster than [`rebuild`](Self::rebuild): planes move with
    /// the box of the mesh, and leaves are filled anew. Hits are what they would be in any other tree; the further triangles move within the box, the
    /// longer rays take. If it fails the tree stays as it was.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of triangles; those of [`build`](Self::build).
    pub fn refit(&mut self, mesh: &Mesh) -> Result<()> {
        self.refit_to(Input::Host(mesh))
    }

    /// The same for a mesh in device memory.
    ///
    /// # Errors
    /// As [`refit`](Self::refit) and [`build_on`](Self::build_on); [`Error::NotOnGpu`].
    pub fn refit_on(&mut self, stream: &Stream, mesh: DeviceMesh<'_>) -> Result<()> {
        self.gpu_tree()?.check_device(stream)?;
        mesh.check(stream)?;
        self.refit_to(Input::Device(stream, mesh))
    }

    fn refit_to(&mut self, input: Input<'_>) -> Result<()> {
        if input.len() != self.len() {
            let (expected, got) = (self.len() as u64, input.len() as u64);
            return Err(Error::Shape { what: "triangles of a mesh that has moved", expected, got });
        }
        if self.is_empty() {
            return Ok(());
        }
        let mut stats = Stats::new(&self.device);
        let tree = stats.phase("refit", || match &self.tree {
            Tree::Cpu(tree) => Ok(Tree::Cpu(cpu::refit(tree, input.corners()?)?)),
            Tree::Gpu(tree) => input.on_device(tree.gpu(), |stream, mesh| {
                let builder = self.builder.get_or_insert_with(|| Builder::new(tree.gpu()).into());
                Ok(Tree::Gpu(tree.refit(builder, stream, mesh)?))
            }),
        });
        self.replace(tree, stats)
    }

    /// Takes a tree in place of the old one, whose memory is kept for the next. If there is none the memory for builds is given back: it may
    /// be large, and work that uses it may be under way.
    fn replace(&mut self, tree: Result<Tree>, mut stats: Stats) -> Result<()> {
        let tree = tree.inspect_err(|_| self.builder = None)?;
        let old = std::mem::replace(&mut self.tree, tree);
        if let (Tree::Gpu(old), Some(builder)) = (old, &mut self.builder) {
            stats.temp_bytes = builder.bytes();
            builder.keep(old);
        }
        self.stats = stats;
        Ok(())
    }

    /// The hit of each ray that comes first: nearest to where the ray begins, and of several there that of the smallest triangle.
    ///
    /// `t` is right to within some roundings of the distance between the ray's origin and the mesh. Rays hit both sides of triangles, and also where they begin or end;
    /// one with coordinates that are no finite numbers, or without a direction, hits nothing, and none
    /// hits what is so far that `t` would not be finite.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; errors of the device.
    pub fn closest_hits(&self, rays: &[Ray]) -> Result<Hits> {
        self.closest_hits_with(rays, &RayOptions::default())
    }

    /// The same, by these options.
    ///
    /// # Errors
    /// As [`closest_hits`](Self::closest_hits); [`Error::OutOfRange`] for options; [`Error::TooManyItems`] beyond 2^32 rays that are sorted.
    pub fn closest_hits_with(&self, rays: &[Ray], options: &RayOptions) -> Result<Hits> {
        options.check()?;
        match &self.tree {
            Tree::Cpu(tree) => cpu::closest_hits(tree, rays, options),
            Tree::Gpu(tree) => tree.closest_hits(rays, options),
        }
    }

    /// The same in device memory, in the order of the stream; returns when the work is on its way.
    ///
    /// # Errors
    /// As [`closest_hits_with`](Self::closest_hits_with); [`Error::Shape`] unless there is room for as many hits as rays; [`Error::NotOnGpu`];
    /// [`Error::WrongDevice`].
    pub fn closest_hits_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        rays: &Buffer<Ray>,
        options: &RayOptions,
        hits: &mut DeviceHits,
    ) -> Result<()> {
        options.check()?;
        let tree = self.gpu_tree()?;
        tree.check_device(stream)?;
        rays.check_device(stream)?;
        hits.check(stream, rays.len())?;
        tree.read_by(stream, || tree.closest_hits_on(stream, workspace, rays, options, hits))
    }

    /// Whether each ray hits something, as shadows ask: faster than to know what comes first.
    ///
    /// # Errors
    /// As [`closest_hits`](Self::closest_hits).
    pub fn any_hits(&self, rays: &[Ray]) -> Result<Vec<bool>> {
        self.any_hits_with(rays, &RayOptions::default())
    }

    /// The same, by these options.
    ///
    /// # Errors
    /// As [`closest_hits_with`](Self::closest_hits_with).
    pub fn any_hits_with(&self, rays: &[Ray], options: &RayOptions) -> Result<Vec<bool>> {
        options.check()?;
        match &self.tree {
            Tree::Cpu(tree) => cpu::any_hits(tree, rays, options),
            Tree::Gpu(tree) => tree.any_hits(rays, options),
        }
    }

    /// The same in device memory, 1 for a ray that hits something and 0 for others, in the order of the stream; returns when the work is on its
    /// way.
    ///
    /// # Errors
    /// As [`closest_hits_on`](Self::closest_hits_on).
    pub fn any_hits_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        rays: &Buffer<Ray>,
        options: &RayOptions,
        hits: &mut Buffer<u8>,
    ) -> Result<()> {
        options.check()?;
        let tree = self.gpu_tree()?;
        tree.check_device(stream)?;
        rays.check_device(stream)?;
        hits.check(stream, "hits of rays", rays.len())?;
        tree.read_by(stream, || tree.any_hits_on(stream, workspace, rays, options, hits))
    }

    /// All hits of each ray, from the first on.
    ///
    /// # Errors
    /// As [`closest_hits`](Self::closest_hits); [`Error::ResultTooLarge`] if they do not fit in memory.
    pub fn all_hits(&self, rays: &[Ray]) -> Result<Rows<Hit>> {
        self.all_hits_with(rays, &RayOptions::default())
    }

    /// The same, by these options.
    ///
    /// # Errors
    /// As [`all_hits`](Self::all_hits) and [`closest_hits_with`](Self::closest_hits_with).
    pub fn all_hits_with(&self, rays: &[Ray], options: &RayOptions) -> Result<Rows<Hit>> {
        options.check()?;
        match &self.tree {
            Tree::Cpu(tree) => cpu::all_hits(tree, rays, options),
            Tree::Gpu(tree) => tree.all_hits(rays, options),
        }
    }

    /// Calls `visit` with each hit of each ray and the ray's number, ray after ray, from the first hit of each on.
    ///
    /// # Errors
    /// As [`all_hits`](Self::all_hits).
    pub fn each_hit(&self, rays: &[Ray], mut visit: impl FnMut(usize, Hit)) -> Result<()> {
        for (batch, rays) in rays.chunks(EACH_HIT_RAYS).enumerate() {
            let rows = self.all_hits(rays)?;
            for (ray, hits) in &rows {
                hits.iter().for_each(|hit| visit(batch * EACH_HIT_RAYS + ray, hit));
            }
        }
        Ok(())
    }

    /// Checks that the tree is what [`build`](Self::build) promises: nodes in preorder, planes in their nodes, each triangle in every leaf that
    /// it reaches into. On the host.
    ///
    /// # Errors
    /// [`Error::Corrupt`] with the node and the reason; [`Error::OutOfMemory`]; errors of the device.
    pub fn verify(&self) -> Result<()> {
        self.with_host(HostTree::verify)
    }

    /// What a ray costs on average that comes from far away and hits nothing, in tests of a triangle: the surface area heuristic's measure of a
    /// tree, with the steps' cost of the options. On the host.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; errors of the device.
    pub fn cost(&self) -> Result<f64> {
        self.with_host(|tree| Ok(tree.cost(self.options.step_cost)))
    }

    /// The nodes in preorder, the root first.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; errors of the device.
    pub fn nodes(&self) -> Result<Vec<Node>> {
        self.with_host(|tree| Ok(tree.nodes.clone()))
    }

    /// The triangles of all leaves, leaf after leaf.
    ///
    /// # Errors
    /// As [`nodes`](Self::nodes).
    pub fn leaf_triangles(&self) -> Result<Vec<u32>> {
        self.with_host(|tree| Ok(tree.listed.clone()))
    }

    fn gpu_tree(&self) -> Result<&GpuTree> {
        match &self.tree {
            Tree::Gpu(tree) => Ok(tree),
            Tree::Cpu(_) => Err(Error::NotOnGpu),
        }
    }

    fn with_host<R>(&self, look: impl FnOnce(&HostTree) -> Result<R>) -> Result<R> {
        match &self.tree {
            Tree::Cpu(tree) => look(tree),
            Tree::Gpu(tree) => look(&tree.to_host()?),
        }
    }

    /// Number of triangles.
    pub fn len(&self) -> usize {
        match &self.tree {
            Tree::Cpu(tree) => tree.corners.len(),
            Tree::Gpu(tree) => tree.num_triangles(),
        }
    }

    /// True if there are no triangles.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The box around all triangles; of no triangles a point.
    pub fn bounds(&self) -> Aabb {
        match &self.tree {
            Tree::Cpu(tree) => tree.extent.bounds,
            Tree::Gpu(tree) => tree.bounds_on_host(),
        }
    }

    /// Does work of a stream that reads the corners of all triangles, and is not waited for.
    pub(crate) fn read_corners<R>(
        &self,
        stream: &Stream,
        work: impl FnOnce(Slice<'_, Corners>) -> Result<R>,
    ) -> Result<R> {
        let tree = self.gpu_tree()?;
        tree.check_device(stream)?;
        tree.read_by(stream, || work(tree.corners()))
    }

    /// What it was built with.
    pub fn options(&self) -> &SahOptions {
        &self.options
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

impl std::fmt::Debug for SahTree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SahTree")
            .field("len", &self.len())
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

/// Rays whose hits are in memory at a time while they are visited.
const EACH_HIT_RAYS: usize = 1 << 16;

/// The corners of all triangles.
fn corners(mesh: &Mesh) -> Result<Vec<Corners>> {
    let mut corners = crate::memory::vec_with_capacity(mesh.len(), "corners of triangles")?;
    (0..mesh.len()).into_par_iter().map(|i| Corners::new(mesh.corners(i))).collect_into_vec(&mut corners);
    Ok(corners)
}
