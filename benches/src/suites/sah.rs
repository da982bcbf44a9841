//! Indexes of triangles: SAH k-d trees, and bounding volume hierarchies (`Bvh`). Builds are from device memory to device memory, by wall
//! clock, since the host waits for node counts. Rays and their hits are in device memory.
//!
//! Meshes are the files of the command line (`--model`), and of each size a soup, and up to a million triangles a terrain, a ball of hairs, and
//! long thin triangles.
//!
//! The rival is `benches/rivals/bvh_rays.cu`, a linear hierarchy in CUDA C++. Its rows stand beside the rows of a `Bvh`.

mod chang;
mod hard_meshes;

use super::{Settings, Suite, copy};
use crate::points::noise;
use crate::report::{Note, Phase, Report, Row};
use kauri::device::{Buffer, Stream, Workspace};
use kauri::io::read_mesh;
use kauri::mesh::{DeviceMesh, Mesh, Motion, shapes};
use kauri::rays::{DeviceHits, Hit, Ray, RayIndex, RayOptions};
use kauri::render::{Camera, Frames, RenderOptions};
use kauri::research::sah::{RayTraversal, StagesOptions};
use kauri::sah::{Quality, SahOptions, SahTree};
use kauri::{Bvh, Error, Result};
use rayon::prelude::*;

/// The bounds of rows that miss a goal.
pub const NOTES: &[Note] = &[
    Note::new(
        "rebuild, Bvh",
        "",
        0,
        "latency: over half of the time are merges of nearest clusters, level after level, and the host waits twice; the rival merges nothing, \
         and its clock leaves out the host",
    ),
    Note::new("primary rays*", "", 0, RAYS),
    Note::new("random rays*", "", 0, RAYS),
    Note::new("shadow rays*", "", 0, RAYS),
    Note::new("occlusion rays*", "", 0, RAYS),
];

/// The bound of rays.
const RAYS: &str = "instructions: a step has four boxes in the order of their distances, the rival's two boxes, and hits are exact, the rival's in f32; \
                    where rays visit few nodes, that is not made up for by fewer steps";

/// The suites.
pub const SUITES: [(&str, Suite); 2] = [("sah", run), ("sah-chang", chang::run)];

/// Size of pictures in pixels.
const SIZE: [u32; 2] = [1920, 1080];

/// Direction towards the sun.
const SUN: [f32; 3] = [0.4, -0.5, 0.8];

/// Maximum triangles of the meshes that are hard for an index, and of a terrain.
const MAX_HARD_TRIANGLES: usize = 1_000_000;

fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let Some(gpu) = settings.device.gpu() else { return Err(Error::NoDevice) };
    report.push(copy(gpu, settings.effort)?);
    for (name, mesh) in meshes(settings)? {
        let bench = Bench::new(settings, &name, &mesh)?;
        bench.builds(report)?;
        bench.rays(report)?;
    }
    Ok(())
}

/// Returns the meshes of a run with their names.
fn meshes(settings: &Settings) -> Result<Vec<(String, Mesh)>> {
    let mut all = Vec::new();
    for path in &settings.models {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        all.push((name, read_mesh(path)?));
    }
    for &n in &settings.sizes {
        // Sized so that a ray passes some tens of triangles, as in a surface mesh.
        let size = 2.0 / (n as f64).cbrt();
        all.push(("soup".to_owned(), shapes::soup(n as u32, size, settings.seed)?));
        if n <= MAX_HARD_TRIANGLES {
            let side = ((n / 2) as f64).sqrt() as u32;
            all.push(("terrain".to_owned(), shapes::terrain(side.max(1), settings.seed)?));
            all.push(("hairball".to_owned(), hard_meshes::hairball(n, settings.seed)?));
            all.push(("long thin triangles".to_owned(), hard_meshes::slivers(n, settings.seed)?));
        }
    }
    Ok(all)
}

/// A mesh in device memory.
struct Resident {
    vertices: Buffer<f32>,
    triangles: Buffer<u32>,
}

impl Resident {
    fn new(stream: &Stream, mesh: &Mesh) -> Result<Self> {
        Ok(Self {
            vertices: Buffer::from_slice(stream, mesh.vertices().as_flattened(), "vertices")?,
            triangles: Buffer::from_slice(stream, mesh.triangles().as_flattened(), "triangles")?,
        })
    }

    fn mesh(&self) -> DeviceMesh<'_> {
        DeviceMesh { vertices: &self.vertices, triangles: &self.triangles }
    }
}

/// The measurements on a mesh.
struct Bench<'a> {
    settings: &'a Settings,
    stream: Stream,
    name: &'a str,
    mesh: &'a Mesh,
    resident: Resident,
    /// Offset of secondary rays from their surface.
    offset: f32,
}

impl<'a> Bench<'a> {
    fn new(settings: &'a Settings, name: &'a str, mesh: &'a Mesh) -> Result<Self> {
        let gpu = settings.device.gpu().ok_or(Error::NoDevice)?;
        let stream = Stream::new(gpu)?;
        let resident = Resident::new(&stream, mesh)?;
        let [low, high] = mesh.bounds().unwrap_or_default();
        let offset = (0..3).map(|axis| 1e-4 * (high[axis] - low[axis])).fold(0.0, f32::max);
        Ok(Self { settings, stream, name, mesh, resident, offset })
    }

    fn row(&self, work: String, items: usize) -> Row {
        Row {
            work,
            input: self.name.to_owned(),
            n: self.mesh.len() as u64,
            items: Some(items as u64),
            ..Row::default()
        }
    }

    fn tree(&self, options: &SahOptions) -> Result<SahTree> {
        SahTree::build_on(&self.stream, self.resident.mesh(), options)
    }

    fn builds(&self, report: &mut Report) -> Result<()> {
        let (effort, num) = (self.settings.effort, self.mesh.len());
        let fast = SahOptions::default();
        let exact = fast.clone().quality(Quality::Exact);
        let best = self.tree(&exact)?.cost()?;
        let by_levels = StagesOptions { small_by_levels: true, ..StagesOptions::default() };
        let by_levels = fast.clone().stages(by_levels);
        let variants = [
            ("rebuild", fast.clone()),
            ("rebuild, clipped", fast.clone().clip(true)),
            ("rebuild, small nodes by levels", by_levels),
            ("rebuild, the best tree", exact),
        ];
        for (work, options) in variants {
            let mut tree = self.tree(&options)?;
            let timing = effort.wall(|| tree.rebuild_on(&self.stream, self.resident.mesh()))?;
            let phases = tree.stats().phases.iter();
            let phases = phases
                .map(|phase| Phase { name: phase.name.to_owned(), ms: phase.duration.as_secs_f64() * 1e3 });
            let cost = tree.cost()?;
            let note = format!(
                "{} nodes, {} triangles in leaves, cost {cost:.2}, {:+.1} % against the best",
                tree.nodes()?.len(),
                tree.leaf_triangles()?.len(),
                100.0 * (cost / best - 1.0)
            );
            report.push(Row {
                timing: Some(timing),
                temp_bytes: Some(tree.stats().temp_bytes),
                phases: phases.collect(),
                note: Some(note),
                ..self.row(work.to_owned(), num)
            });
        }
        let mut tree = self.tree(&fast)?;
        let mut moved = self.mesh.clone();
        Motion::Waves.apply(self.mesh, 0.3, &mut moved)?;
        let moved = Resident::new(&self.stream, &moved)?;
        let timing = effort.wall(|| tree.refit_on(&self.stream, moved.mesh()))?;
        report.push(Row { timing: Some(timing), ..self.row("refit to waves".to_owned(), num) });
        tree.rebuild_on(&self.stream, self.resident.mesh())?;
        let moving = [self.resident.mesh(), moved.mesh()];
        self.frames(report, "", &mut tree, moving, SahTree::rebuild_on)?;
        self.bvh_builds(report, &moved)?;
        let timing = effort.wall(|| tree.rebuild(self.mesh))?;
        report.push(Row { timing: Some(timing), ..self.row("rebuild from host memory".to_owned(), num) });
        let timing = effort.wall(|| SahTree::build(&self.settings.device, self.mesh, &fast).map(|_| ()))?;
        report.push(Row { timing: Some(timing), ..self.row("build from host memory".to_owned(), num) });
        Ok(())
    }

    fn bvh_builds(&self, report: &mut Report, moved: &Resident) -> Result<()> {
        let (effort, num) = (self.settings.effort, self.mesh.len());
        let mut bvh = Bvh::build_on(&self.stream, self.resident.mesh())?;
        let timing = effort.wall(|| bvh.rebuild_on(&self.stream, self.resident.mesh()))?;
        report.push(Row {
            timing: Some(timing),
            temp_bytes: Some(bvh.stats().temp_bytes),
            note: Some(format!("{} nodes, cost {:.2}", bvh.num_nodes(), bvh.cost()?)),
            ..self.row("rebuild, Bvh".to_owned(), num)
        });
        let timing = effort.wall(|| bvh.refit_on(&self.stream, moved.mesh()))?;
        report.push(Row { timing: Some(timing), ..self.row("refit to waves, Bvh".to_owned(), num) });
        bvh.rebuild_on(&self.stream, self.resident.mesh())?;
        let moving = [self.resident.mesh(), moved.mesh()];
        self.frames(report, ", Bvh", &mut bvh, moving, |bvh, stream, mesh| bvh.rebuild_on(stream, mesh))
    }

    /// Measures a frame of an animated mesh, which alternates between two shapes: a rebuild, a camera ray per pixel, and a ray to the sun from
    /// each surface point.
    fn frames<I: RayIndex>(
        &self,
        report: &mut Report,
        variant: &str,
        index: &mut I,
        moving: [DeviceMesh<'_>; 2],
        rebuild: impl Fn(&mut I, &Stream, DeviceMesh<'_>) -> Result<()>,
    ) -> Result<()> {
        let (stream, effort) = (&self.stream, self.settings.effort);
        let options = RenderOptions::default().size(SIZE[0], SIZE[1]);
        let kinds = [
            ("frame with shadows", false, 0),
            ("rebuild, and frame with shadows", true, 0),
            ("rebuild, and frame with shadows and 4 occlusion rays", true, 4),
        ];
        for (work, rebuilds, num) in kinds {
            let options = options.clone().occlusion_rays(num);
            let (camera, mut frames) = (self.camera(), Frames::new(stream.gpu(), &options)?);
            let mut shape = 0;
            let timing = effort.wall(|| {
                if rebuilds {
                    shape = 1 - shape;
                    rebuild(index, stream, moving[shape])?;
                }
                frames.draw(stream, index, moving[shape], &camera)?;
                stream.synchronize()
            })?;
            rebuild(index, stream, moving[0])?;
            let note = Some(format!("{:.0} a second", 1e3 / timing.median_ms));
            let row = self.row(format!("{work}{variant}"), SIZE[0] as usize * SIZE[1] as usize);
            report.push(Row { timing: Some(timing), note, ..row });
        }
        Ok(())
    }

    fn rays(&self, report: &mut Report) -> Result<()> {
        let fast = self.tree(&SahOptions::default())?;
        let best = self.tree(&SahOptions::default().quality(Quality::Exact))?;
        let primary = self.camera().rays(SIZE)?;
        let hits = fast.closest_hits(&primary)?;
        let indices = (0..hits.len()).into_par_iter();
        let seen: Vec<(usize, Hit)> =
            indices.map(|i| (i, hits.get(i))).filter(|(_, hit)| hit.triangle != Hit::NO_TRIANGLE).collect();
        let to_sun = |(i, hit): &(usize, Hit)| self.away(&primary[*i], *hit, Some(SUN), *i);
        let shadow: Vec<Ray> = seen.par_iter().filter_map(to_sun).collect();
        let occlusion: Vec<Ray> =
            seen.par_iter().filter_map(|(i, hit)| self.away(&primary[*i], *hit, None, *i)).collect();
        let random = self.random(primary.len());
        let default = RayOptions::default();
        let restart = default.clone().traversal(RayTraversal::Restart);
        let variants =
            [("", &default), (", restarts", &restart), (", sorted", &default.clone().sorted(true))];
        let kinds = [
            ("primary rays, closest", &primary, true),
            ("random rays, closest", &random, true),
            ("shadow rays, any", &shadow, false),
            ("occlusion rays, any", &occlusion, false),
            ("occlusion rays, closest", &occlusion, true),
        ];
        let bvh = Bvh::build_on(&self.stream, self.resident.mesh())?;
        let sorted = default.clone().sorted(true);
        for (kind, rays, closest) in kinds {
            let on_device = Buffer::from_slice(&self.stream, rays, "rays")?;
            let trace = |report: &mut Report, index: &dyn RayIndex, variant: &str, options: &RayOptions| {
                self.trace(report, index, format!("{kind}{variant}"), &on_device, closest, options)
            };
            let expected = trace(report, &bvh, ", Bvh", &default)?;
            let mut found = vec![trace(report, &bvh, ", Bvh, sorted", &sorted)?];
            for (variant, options) in variants {
                found.push(trace(report, &fast, variant, options)?);
            }
            found.push(trace(report, &best, ", the best tree", &default)?);
            assert!(found.iter().all(|found| *found == expected), "indexes differ in hits of {kind}");
        }
        Ok(())
    }

    /// Measures a query. Returns the triangle that each ray hits, or whether it hits one.
    fn trace(
        &self,
        report: &mut Report,
        index: &dyn RayIndex,
        work: String,
        rays: &Buffer<Ray>,
        closest: bool,
        options: &RayOptions,
    ) -> Result<Vec<u32>> {
        let (stream, effort) = (&self.stream, self.settings.effort);
        let gpu = stream.gpu();
        let mut workspace = Workspace::new(gpu);
        let mut hits = DeviceHits::uninitialized(gpu, rays.len())?;
        let mut any = Buffer::uninitialized(gpu, rays.len(), "hits")?;
        let timing = effort.events(stream, || {
            if closest {
                index.closest_hits_on(stream, &mut workspace, rays, options, &mut hits)
            } else {
                index.any_hits_on(stream, &mut workspace, rays, options, &mut any)
            }
        })?;
        let found = if closest {
            hits.to_host(stream)?.triangles
        } else {
            let triangle = |hit: u8| if hit == 1 { 0 } else { Hit::NO_TRIANGLE };
            any.to_vec(stream)?.into_iter().map(triangle).collect()
        };
        let num_hits = found.iter().filter(|&&id| id != Hit::NO_TRIANGLE).count();
        let part = 100.0 * num_hits as f64 / rays.len().max(1) as f64;
        report.push(Row {
            timing: Some(timing),
            temp_bytes: Some(workspace.bytes()),
            note: Some(format!("{} rays, {part:.0} % hit", rays.len())),
            ..self.row(work, rays.len())
        });
        Ok(found)
    }

    fn camera(&self) -> Camera {
        let aspect = f64::from(SIZE[0]) / f64::from(SIZE[1]);
        Camera::new([0.6, -1.0, 0.5], [0.0; 3]).framing(self.mesh.vertices(), aspect)
    }

    /// Returns rays from random points of the mesh's box in random directions.
    fn random(&self, num: usize) -> Vec<Ray> {
        let [low, high] = self.mesh.bounds().unwrap_or_default();
        let unit = |i: usize| (noise(self.settings.seed, i as u64) >> 40) as f32 / (1 << 24) as f32;
        let ray = |i: usize| {
            let place = |axis: usize| low[axis] + unit(6 * i + axis) * (high[axis] - low[axis]);
            Ray::new([0, 1, 2].map(place), [3, 4, 5].map(|k| 2.0 * unit(6 * i + k) - 1.0))
        };
        (0..num).into_par_iter().map(ray).collect()
    }

    /// Returns a ray from a hit in a direction that leaves the surface, or a cosine-weighted random direction.
    fn away(&self, ray: &Ray, hit: Hit, direction: Option<[f32; 3]>, i: usize) -> Option<Ray> {
        let [a, b, c] = self.mesh.corners(hit.triangle as usize);
        let minus = |p: [f32; 3], q: [f32; 3]| [p[0] - q[0], p[1] - q[1], p[2] - q[2]];
        let dot = |p: [f32; 3], q: [f32; 3]| p[0] * q[0] + p[1] * q[1] + p[2] * q[2];
        let (e, f) = (minus(b, a), minus(c, a));
        let normal = [e[1] * f[2] - e[2] * f[1], e[2] * f[0] - e[0] * f[2], e[0] * f[1] - e[1] * f[0]];
        let length = dot(normal, normal).sqrt().max(f32::MIN_POSITIVE);
        let side = if dot(normal, ray.direction) > 0.0 { -1.0 } else { 1.0 };
        let normal = normal.map(|x| x * side / length);
        let place = [0, 1, 2].map(|k| ray.origin[k] + hit.t * ray.direction[k] + self.offset * normal[k]);
        let unit = |k: u64| (noise(self.settings.seed, 4 * i as u64 + k) >> 40) as f32 / (1 << 24) as f32;
        let towards = direction.unwrap_or_else(|| {
            // A point of the sphere around the normal's end.
            let (z, angle) = (2.0 * unit(0) - 1.0, std::f32::consts::TAU * unit(1));
            let radius = (1.0 - z * z).sqrt();
            [radius * angle.cos() + normal[0], radius * angle.sin() + normal[1], z + normal[2]]
        });
        (dot(normal, towards) > 0.0).then(|| Ray::new(place, towards))
    }
}
