//! Meshes and rays for tests of SAH k-d trees and bounding volume hierarchies.

use crate::generate::Random;
use kauri::device::{Buffer, Stream};
use kauri::mesh::{DeviceMesh, Mesh, Motion, shapes};
use kauri::rays::{Hit, Hits, Ray, RayIndex, RayOptions};
use kauri::research::sah::RayTraversal;
use kauri::sah::{SahOptions, SahTree};
use kauri::{Bvh, Device, Rows};

/// Returns a random point of the cube from -1 to 1.
fn vector(random: &mut Random) -> [f32; 3] {
    [0; 3].map(|_| 2.0 * random.unit() as f32 - 1.0)
}

/// Kinds of meshes, including degenerate ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scene {
    /// Small random triangles.
    Soup,
    /// Triangles as large as the scene, which planes hardly separate.
    LargeSoup,
    /// A closed surface.
    Knot,
    /// A grid of squares in an axis-aligned plane.
    Grid,
    /// Axis-aligned squares: every split plane contains some.
    Boxes,
    /// Long, thin triangles.
    Slivers,
    /// Triangles without area: lines and points.
    NoArea,
    /// Copies of three triangles.
    Copies,
    /// Parallel thin triangles that span the scene.
    Hairs,
    /// A soup with coordinates up to 1e18.
    Huge,
    /// A soup with coordinates down to 1e-38.
    Tiny,
    /// A soup far from the origin.
    Far,
    /// A soup with a few small outliers at a million times its size.
    Outliers,
}

impl Scene {
    /// All kinds.
    pub const ALL: [Self; 13] = [
        Self::Soup,
        Self::LargeSoup,
        Self::Knot,
        Self::Grid,
        Self::Boxes,
        Self::Slivers,
        Self::NoArea,
        Self::Copies,
        Self::Hairs,
        Self::Huge,
        Self::Tiny,
        Self::Far,
        Self::Outliers,
    ];

    /// Returns a mesh of about `len` triangles.
    pub fn mesh(self, len: usize, seed: u64) -> Mesh {
        let mut random = Random::new(seed ^ 0xA5A5);
        let side = ((len / 2) as f64).sqrt().ceil().max(1.0) as u32;
        match self {
            Self::Soup => soup(len, |_| (1.0, 0.1), &mut random),
            Self::LargeSoup => soup(len, |_| (0.5, 1.0), &mut random),
            Self::Knot => shapes::torus_knot([2, 3], side.max(3), side.max(3)).unwrap(),
            Self::Grid => shapes::grid(seed as usize % 3, [side; 2]).unwrap(),
            Self::Boxes => boxes(len),
            Self::Slivers => of_corners(len, |_| {
                let (at, along) = (vector(&mut random), vector(&mut random));
                let near = vector(&mut random).map(|x| x * 1e-5);
                [at, add(at, along), add(at, near)]
            }),
            Self::NoArea => of_corners(len, |i| {
                let (at, to) = (vector(&mut random), vector(&mut random));
                if i % 2 == 0 { [at, at, at] } else { [at, to, at] }
            }),
            Self::Copies => {
                let few = soup(3.min(len), |_| (1.0, 0.5), &mut random);
                of_corners(len, |i| few.corners(i % 3))
            }
            Self::Hairs => of_corners(len, |i| {
                let (y, z) = (i as f32 / len as f32, random.unit() as f32 * 0.1);
                [[-8.0, y, z], [8.0, y, z], [8.0, y + 0.3 / len as f32, z]]
            }),
            Self::Huge => soup(len, |_| (1e18, 1e17), &mut random),
            Self::Tiny => {
                soup(len, |i| if i % 2 == 0 { (1e-35, 1e-36) } else { (1e-37, 1e-38) }, &mut random)
            }
            Self::Outliers => soup(len, |i| (if i % 50 == 7 { 1e6 } else { 1.0 }, 0.1), &mut random),
            Self::Far => {
                let near = soup(len, |_| (1.0, 0.2), &mut random);
                of_corners(len, |i| near.corners(i).map(|at| add(at, [3000.0, -2000.0, 1000.0])))
            }
        }
    }
}

fn add(a: [f32; 3], b: [f32; 3]) -> [f32; 3] {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

fn of_corners(len: usize, corners: impl FnMut(usize) -> [[f32; 3]; 3]) -> Mesh {
    let vertices: Vec<_> = (0..len).flat_map(corners).collect();
    let triangles = (0..len as u32).map(|i| [3 * i, 3 * i + 1, 3 * i + 2]).collect();
    Mesh::new(vertices, triangles).unwrap()
}

/// Random triangles. `scales` gives the range of positions and of sizes.
fn soup(len: usize, scales: impl Fn(usize) -> (f32, f32), random: &mut Random) -> Mesh {
    of_corners(len, |i| {
        let (place, size) = scales(i);
        let at = vector(random).map(|x| x * place);
        [0; 3].map(|_| add(at, vector(random).map(|x| x * size)))
    })
}

/// Axis-aligned squares with corners on a lattice.
fn boxes(len: usize) -> Mesh {
    of_corners(len, |i| {
        let mut random = Random::new(i as u64 / 2);
        let at = [0; 3].map(|_| (random.below(9) as f32 - 4.0) * 0.25);
        let axis = random.below(3) as usize;
        let along = |of: usize| {
            let mut step = [0.0; 3];
            step[(axis + of) % 3] = 0.25 * (1 + i / 2 % 2) as f32;
            step
        };
        let (p, q) = (add(at, along(1)), add(at, along(2)));
        if i % 2 == 0 { [at, p, add(p, along(2))] } else { [at, add(p, along(2)), q] }
    })
}

/// Rays for hard cases: between random points, to vertices and midpoints of edges, along axes and in planes of vertices,
/// from points on triangles, with bounds of `t`; and some invalid rays.
pub fn rays(mesh: &Mesh, num: usize, seed: u64) -> Vec<Ray> {
    let mut random = Random::new(seed);
    let [low, high] = mesh.bounds().unwrap_or([[-1.0; 3], [1.0; 3]]);
    let size = (0..3).map(|axis| high[axis] - low[axis]).fold(f32::MIN_POSITIVE, f32::max);
    let place = |random: &mut Random, beyond: f32| {
        let at = [0, 1, 2].map(|axis| (low[axis] + high[axis]) * 0.5);
        add(at, vector(random).map(|x| x * size * beyond))
    };
    let to = |from: [f32; 3], at: [f32; 3]| Ray::new(from, [0, 1, 2].map(|axis| at[axis] - from[axis]));
    (0..num)
        .map(|i| {
            let from = place(&mut random, 1.5);
            let corners = (!mesh.is_empty()).then(|| mesh.corners(random.below(mesh.len() as u64) as usize));
            let [a, b, c] = corners.unwrap_or([place(&mut random, 0.5); 3]);
            let middle = [0, 1, 2].map(|axis| a[axis] * 0.5 + b[axis] * 0.5);
            let within = [0, 1, 2].map(|axis| middle[axis] * 0.5 + c[axis] * 0.5);
            let along = |random: &mut Random| {
                let mut direction = [0.0; 3];
                direction[random.below(3) as usize] = if random.below(2) == 0 { size } else { -size };
                direction
            };
            match i % 12 {
                0 | 1 => to(from, place(&mut random, 0.5)),
                2 => to(from, a),
                3 => to(from, middle),
                4 => to(from, within),
                // Along an axis through a vertex, and through the interior of a triangle.
                5 => {
                    let direction = along(&mut random);
                    Ray::new([0, 1, 2].map(|axis| a[axis] - 2.0 * direction[axis]), direction)
                }
                6 => {
                    let direction = along(&mut random);
                    Ray::new([0, 1, 2].map(|axis| within[axis] - direction[axis]), direction)
                }
                // In the axis-aligned plane of a vertex.
                7 => {
                    let (mut from, axis) = (from, random.below(3) as usize);
                    from[axis] = a[axis];
                    let mut ray = to(from, place(&mut random, 0.5));
                    ray.direction[axis] = 0.0;
                    ray
                }
                // From a triangle, and along one of its edges.
                8 => Ray::new(within, vector(&mut random).map(|x| x * size)),
                9 => to(a, b),
                10 => {
                    Ray { t_min: random.unit() as f32, t_max: 1.0 + random.unit() as f32, ..to(from, within) }
                }
                _ => match i / 12 % 9 {
                    0 => Ray::new(from, [0.0; 3]),
                    1 => Ray::new([f32::NAN, 0.0, 0.0], [1.0; 3]),
                    2 => Ray::new(from, [f32::INFINITY, 1.0, 0.0]),
                    3 => Ray { t_min: -1.0, t_max: 0.0, ..to(within, from) },
                    4 => Ray { t_min: 1.0, t_max: 0.0, ..to(from, within) },
                    5 => Ray { t_max: f32::NAN, ..to(from, within) },
                    // Subnormal directions.
                    7 => {
                        let Ray { direction, .. } = to(from, within);
                        Ray::new(from, direction.map(|x| x / size * 1e-41))
                    }
                    6 => Ray::new(from.map(|x| x * 1000.0), to(from.map(|x| x * 1000.0), within).direction),
                    _ => Ray::new(from, to(from, within).direction.map(|x| x * 1e-12)),
                },
            }
        })
        .collect()
}

/// A mesh in device memory.
pub struct Resident {
    vertices: Buffer<f32>,
    triangles: Buffer<u32>,
}

impl Resident {
    /// Copies a mesh.
    pub fn new(stream: &Stream, mesh: &Mesh) -> kauri::Result<Self> {
        Ok(Self {
            vertices: Buffer::from_slice(stream, mesh.vertices().as_flattened(), "vertices")?,
            triangles: Buffer::from_slice(stream, mesh.triangles().as_flattened(), "triangles")?,
        })
    }

    /// Returns the mesh.
    pub fn mesh(&self) -> DeviceMesh<'_> {
        DeviceMesh { vertices: &self.vertices, triangles: &self.triangles }
    }
}

/// Returns the hits of each ray with all triangles, by brute force.
fn all_hits(mesh: &Mesh, rays: &[Ray]) -> Vec<Vec<Hit>> {
    let of_ray = |ray: &Ray| {
        let mut hits: Vec<Hit> = (0..mesh.len()).filter_map(|i| ray.hit(i as u32, mesh.corners(i))).collect();
        hits.sort_by(|a, b| a.t.total_cmp(&b.t).then(a.triangle.cmp(&b.triangle)));
        hits
    };
    rays.iter().map(of_ray).collect()
}

/// Builds a tree over a mesh, verifies it, compares it with the CPU's, and compares all query results with brute force.
pub fn check(device: &Device, scene: Scene, len: usize, num_rays: usize, options: &SahOptions) {
    let (mesh, seed) = (scene.mesh(len, len as u64), len as u64 + 1);
    let rays = rays(&mesh, num_rays, seed);
    let what = format!("{} triangles of {scene:?}, {options:?} on {device}", mesh.len());
    let tree = SahTree::build(device, &mesh, options).unwrap_or_else(|error| panic!("{what}: {error}"));
    tree.verify().unwrap_or_else(|error| panic!("{what}: {error}"));
    if !device.is_cpu() {
        let cpu = SahTree::build(&Device::cpu(), &mesh, options).unwrap();
        let lists = [&tree, &cpu].map(|tree| (tree.nodes().unwrap(), tree.leaf_triangles().unwrap()));
        assert!(lists[0] == lists[1], "{what}: another tree than the CPU's");
    }
    check_hits(&tree, &mesh, &rays, &what);
}

/// Builds a hierarchy over a mesh, verifies it, compares it with the CPU's, and compares all query results with brute force; the same after
/// the mesh has moved, by a refit, a rebuild and another refit, with a third of the rays.
pub fn check_bvh(device: &Device, scene: Scene, len: usize, num_rays: usize) {
    let mesh = scene.mesh(len, len as u64);
    let what = format!("{} triangles of {scene:?} in a hierarchy on {device}", mesh.len());
    let [mut own, mut cpu] = [device, &Device::cpu()].map(|on| Bvh::build(on, &mesh).unwrap());
    let check = |own: &Bvh, cpu: &Bvh, mesh: &Mesh, num_rays: usize, what: &str| {
        own.verify().unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(
            own.fingerprint().unwrap(),
            cpu.fingerprint().unwrap(),
            "{what}: another one than the CPU's"
        );
        check_hits(own, mesh, &rays(mesh, num_rays, len as u64 + 1), what);
    };
    check(&own, &cpu, &mesh, num_rays, &what);
    let mut moved = mesh.clone();
    for (step, refits) in [true, false, true].into_iter().enumerate() {
        Motion::Waves.apply(&mesh, 0.3 * (step + 1) as f64, &mut moved).unwrap();
        for bvh in [&mut own, &mut cpu] {
            if refits { bvh.refit(&moved) } else { bvh.rebuild(&moved) }.unwrap();
        }
        check(&own, &cpu, &moved, num_rays / 3, &format!("{what}, moved {} times", step + 1));
    }
}

/// Compares the results of all queries with brute force.
fn check_hits(index: &dyn RayIndex, mesh: &Mesh, rays: &[Ray], what: &str) {
    let expected = all_hits(mesh, rays);
    for by in ray_options(mesh.len()) {
        let (closest, any) = (index.closest_hits_with(rays, &by), index.any_hits_with(rays, &by));
        let all = index.all_hits_with(rays, &by).unwrap();
        if let Some(difference) = difference(&expected, &closest.unwrap(), &any.unwrap(), &all) {
            panic!("{what}, {by:?}: {difference}");
        }
    }
}

/// Returns the default ray options, and others in turn.
fn ray_options(turn: usize) -> [RayOptions; 2] {
    let default = RayOptions::default();
    let restart = default.clone().traversal(RayTraversal::Restart);
    let others = [restart.clone(), restart.sorted(true), default.clone().sorted(true)];
    [default, others[turn % others.len()].clone()]
}

/// Moves a mesh, refits and rebuilds its tree, and compares hits with brute force and the tree with the CPU's.
pub fn check_moved(device: &Device, scene: Scene, len: usize, num_rays: usize, options: &SahOptions) {
    let mesh = scene.mesh(len, len as u64);
    let mut moved = mesh.clone();
    Motion::Waves.apply(&mesh, 0.3, &mut moved).unwrap();
    let rays = rays(&moved, num_rays, len as u64);
    let expected = all_hits(&moved, &rays);
    let what = format!("{} triangles of {scene:?}, {options:?} on {device}, moved", mesh.len());
    let [mut own, mut cpu] = [device, &Device::cpu()].map(|on| SahTree::build(on, &mesh, options).unwrap());
    for refits in [true, false, true] {
        for tree in [&mut own, &mut cpu] {
            let done = if refits { tree.refit(&moved) } else { tree.rebuild(&moved) };
            done.unwrap_or_else(|error| panic!("{what}: {error}"));
            tree.verify().unwrap_or_else(|error| panic!("{what}: {error}"));
        }
        let lists = [&own, &cpu].map(|tree| (tree.nodes().unwrap(), tree.leaf_triangles().unwrap()));
        assert!(lists[0] == lists[1], "{what}: another tree than the CPU's");
        let (closest, any) = (own.closest_hits(&rays).unwrap(), own.any_hits(&rays).unwrap());
        if let Some(difference) = difference(&expected, &closest, &any, &own.all_hits(&rays).unwrap()) {
            panic!("{what}: {difference}");
        }
    }
}

/// Describes the first difference between results and expected hits.
fn difference(expected: &[Vec<Hit>], closest: &Hits, any: &[bool], all: &Rows<Hit>) -> Option<String> {
    expected.iter().enumerate().find_map(|(i, expected)| {
        let first = expected.first().copied().unwrap_or(Hit::NONE);
        if closest.get(i) != first {
            Some(format!("ray {i}: closest is {:?}, not {first:?}", closest.get(i)))
        } else if any[i] == expected.is_empty() {
            Some(format!("ray {i}: any is {}, {} hits", any[i], expected.len()))
        } else if !all.row(i).iter().eq(expected.iter().copied()) {
            Some(format!("ray {i}: all are {:?}, not {expected:?}", all.row(i)))
        } else {
            None
        }
    })
}
