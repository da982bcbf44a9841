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

pub use hits::{Hit, HitRows, Hits};
pub use kauri_kernels::sah::aabb::Aabb;
pub use kauri_kernels::sah::node::Node;
pub use kauri_kernels::sah::ray::Ray;

use crate::device::{Device, Gpu, Stream};
use crate::error::{Error, Result};
use crate::mesh::Mesh;
use crate::stats::Stats;
use gpu::{Builder, GpuTree};
use host::HostTree;
use kauri_kernels::sah::node::MAX_NODES;
use kauri_kernels::sah::triangle::Corners;
use rayon::prelude::*;

/// How a tree is built.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SahOptions {
    /// How much time a build may take for a better tree.
    pub quality: Quality,
    /// What a step through a node costs, in tests of a triangle: Zhou's C_ts. Not negative; 1 by default.
    pub step_cost: f32,
    /// Empty space at a side of a large node is cut off if it is longer than this fraction of the node: from 0 to 1, 0.25 by default.
    pub empty_space: f32,
    /// Whether a triangle that a plane cuts has on each side the box of its part there, so that fewer leaves have it: the tree is better, and takes
    /// longer. False by default.
    pub clip: bool,
    /// How a GPU does it, to compare.
    #[doc(hidden)]
    pub stages: StagesOptions,
}

/// Ways through the stages of a GPU's build, to compare; the tree is the same.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StagesOptions {
    /// Triangles find their places by segmented scans of what chunks count, not by atomics.
    pub sort_by_scans: bool,
    /// Boxes of nodes are made by segmented reductions of those of chunks, not by atomics.
    pub boxes_by_reductions: bool,
    /// Blocks put values together in shared memory, not from lane to lane.
    pub by_shared_memory: bool,
    /// Candidates are records of 20 bytes, not an array of planes and one of masks.
    pub records: bool,
    /// Most bytes of candidates at a time.
    pub candidate_bytes: usize,
}

impl Default for StagesOptions {
    fn default() -> Self {
        Self {
            sort_by_scans: false,
            boxes_by_reductions: false,
            by_shared_memory: false,
            records: false,
            candidate_bytes: 1 << 29,
        }
    }
}

/// How good a tree is, and how long it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Quality {
    /// Large nodes split in the middle, small ones where it costs least: for trees that are built anew for every frame.
    #[default]
    Fast,
    /// Every node splits where it costs least. Built by the CPU, for a GPU too.
    Exact,
}

impl Default for SahOptions {
    fn default() -> Self {
        Self {
            quality: Quality::default(),
            step_cost: 1.0,
            empty_space: 0.25,
            clip: false,
            stages: StagesOptions::default(),
        }
    }
}

impl SahOptions {
    /// With this quality.
    pub fn quality(mut self, quality: Quality) -> Self {
        self.quality = quality;
        self
    }

    /// With a step that costs so much.
    pub fn step_cost(mut self, step_cost: f32) -> Self {
        self.step_cost = step_cost;
        self
    }

    /// With empty space cut off from this fraction on.
    pub fn empty_space(mut self, empty_space: f32) -> Self {
        self.empty_space = empty_space;
        self
    }

    /// With boxes of parts of triangles.
    pub fn clip(mut self, clip: bool) -> Self {
        self.clip = clip;
        self
    }

    fn check(&self) -> Result<()> {
        let lengths = [("cost of a step", self.step_cost), ("fraction of empty space", self.empty_space)];
        match lengths.into_iter().find(|(_, value)| !(*value >= 0.0 && value.is_finite())) {
            Some((what, value)) => Err(Error::InvalidLength { what, value: value.into() }),
            None => Ok(()),
        }
    }
}

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
    /// Memory for the next tree, from the first that takes the place of another.
    builder: Option<Box<Builder>>,
}

/// The tree where its device can read it.
enum Tree {
    Cpu(HostTree),
    Gpu(GpuTree),
}

impl Tree {
    /// A tree by the CPU, or as `build` does it on a GPU.
    fn build(
        device: &Device,
        mesh: &Mesh,
        options: &SahOptions,
        stats: &mut Stats,
        build: impl FnOnce(&Gpu, &Stream) -> Result<GpuTree>,
    ) -> Result<Self> {
        let count = mesh.len() as u64;
        if count > MAX_NODES {
            return Err(Error::TooManyItems { what: "triangles", count, max: MAX_NODES });
        }
        let _span = tracing::debug_span!("sah_build", triangles = mesh.len()).entered();
        stats.phase("build", || {
            let Some(gpu) = device.gpu() else { return Ok(Self::Cpu(cpu::build(corners(mesh)?, options)?)) };
            let stream = Stream::new(gpu)?;
            Ok(Self::Gpu(match options.quality {
                Quality::Fast => build(gpu, &stream)?,
                Quality::Exact => GpuTree::of_host(&stream, &cpu::build(corners(mesh)?, options)?)?,
            }))
        })
    }
}

impl SahTree {
    /// Builds the tree over the triangles of `mesh` on `device`.
    ///
    /// - Cost: O(n log n) where triangles are small beside the mesh.
    /// - Memory: 48 bytes a triangle, 8 a node and 4 for each triangle of a leaf: on average a triangle is in two to four leaves of about four
    ///   triangles each.
    /// - Result: the same bits on every device and in every run, for one quality.
    /// - Degenerate input: no triangles, one, triangles without area (which no ray hits), and copies of one are all fine. Many that
    ///   planes cannot separate are in one leaf, and in a mesh of such triangles alone leaves are large: triangles in nodes
    ///   are limited to eight times those of the mesh while large nodes split.
    ///
    /// # Errors
    /// [`Error::InvalidLength`] for options that are no cost and no fraction; [`Error::TooManyItems`] beyond 2^30 triangles, nodes, or triangles in
    /// leaves; [`Error::OutOfMemory`]; errors of the device.
    pub fn build(device: &Device, mesh: &Mesh, options: &SahOptions) -> Result<Self> {
        options.check()?;
        let mut stats = Stats::new(device);
        let tree = Tree::build(device, mesh, options, &mut stats, |gpu, stream| {
            Builder::new(gpu).build(stream, mesh, options)
        })?;
        Ok(Self { device: device.clone(), stats, options: options.clone(), tree, builder: None })
    }

    /// Builds the tree anew, over another mesh or one that has moved, with the same options. On a GPU the memory of the build is kept for the next
    /// time. If it fails the tree stays as it was.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn rebuild(&mut self, mesh: &Mesh) -> Result<()> {
        let mut stats = Stats::new(&self.device);
        let (options, builder) = (&self.options, &mut self.builder);
        self.tree = Tree::build(&self.device, mesh, options, &mut stats, |gpu, stream| {
            builder.get_or_insert_with(|| Builder::new(gpu).into()).build(stream, mesh, options)
        })?;
        self.stats = stats;
        Ok(())
    }

    /// Fits the tree to a mesh of the same triangles whose vertices have moved, which is faster than [`rebuild`](Self::rebuild): planes move with
    /// the box of the mesh, and leaves are filled anew. Hits are what they would be in any other tree; the further triangles move within the box, the
    /// longer rays take. If it fails the tree stays as it was.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of triangles; those of [`build`](Self::build).
    pub fn refit(&mut self, mesh: &Mesh) -> Result<()> {
        if mesh.len() != self.len() {
            let (expected, got) = (self.len() as u64, mesh.len() as u64);
            return Err(Error::Shape { what: "triangles of a mesh that has moved", expected, got });
        }
        if mesh.is_empty() {
            return Ok(());
        }
        let mut stats = Stats::new(&self.device);
        let tree = stats.phase("refit", || match &self.tree {
            Tree::Cpu(tree) => Ok(Tree::Cpu(cpu::refit(tree, corners(mesh)?)?)),
            Tree::Gpu(tree) => {
                let builder = self.builder.get_or_insert_with(|| Builder::new(tree.gpu()).into());
                Ok(Tree::Gpu(tree.refit(builder, &Stream::new(tree.gpu())?, mesh)?))
            }
        });
        (self.tree, self.stats) = (tree?, stats);
        Ok(())
    }

    /// The hit of each ray that comes first: nearest to where the ray begins, and of several there that of the smallest triangle.
    ///
    /// `t` is right to within some roundings of the distance between the ray's origin and the mesh. Rays hit both sides of triangles, and also where they begin or end;
    /// one with coordinates that are no numbers, or without a direction, hits nothing.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; errors of the device.
    pub fn closest_hits(&self, rays: &[Ray]) -> Result<Hits> {
        match &self.tree {
            Tree::Cpu(tree) => cpu::closest_hits(tree, rays),
            Tree::Gpu(tree) => tree.closest_hits(rays),
        }
    }

    /// Whether each ray hits something, as shadows ask: faster than to know what comes first.
    ///
    /// # Errors
    /// As [`closest_hits`](Self::closest_hits).
    pub fn any_hits(&self, rays: &[Ray]) -> Result<Vec<bool>> {
        match &self.tree {
            Tree::Cpu(tree) => cpu::any_hits(tree, rays),
            Tree::Gpu(tree) => tree.any_hits(rays),
        }
    }

    /// All hits of each ray, from the first on.
    ///
    /// # Errors
    /// As [`closest_hits`](Self::closest_hits); [`Error::ResultTooLarge`] if they do not fit in memory.
    pub fn all_hits(&self, rays: &[Ray]) -> Result<HitRows> {
        match &self.tree {
            Tree::Cpu(tree) => cpu::all_hits(tree, rays),
            Tree::Gpu(tree) => tree.all_hits(rays),
        }
    }

    /// Calls `visit` with each hit of each ray and the ray's number, ray after ray, from the first hit of each on.
    ///
    /// # Errors
    /// As [`all_hits`](Self::all_hits).
    pub fn each_hit(&self, rays: &[Ray], mut visit: impl FnMut(usize, Hit)) -> Result<()> {
        for (batch, rays) in rays.chunks(EACH_HIT_RAYS).enumerate() {
            let rows = self.all_hits(rays)?;
            for ray in 0..rows.len() {
                rows.row(ray).for_each(|hit| visit(batch * EACH_HIT_RAYS + ray, hit));
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
