//! Rays on the CPU against the crate `bvh`: equal meshes and rays, builds and rays on all threads of rayon.
//!
//! `bvh` has no two-sided triangle test, so this file adds one (Möller, Trumbore 1997), which is not watertight; kauri's test
//! is. `bvh` returns shapes in the order of their boxes along the ray, so a ray ends at the first hit that is nearer than the
//! next box.

use bvh::aabb::{Aabb, Bounded};
use bvh::bounding_hierarchy::{BHShape, BoundingHierarchy};
use bvh::bvh::Bvh;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use kauri::Device;
use kauri::mesh::{Mesh, shapes};
use kauri::rays::{Hit, Ray, RayIndex};
use kauri::render::Camera;
use kauri::sah::{Quality, SahOptions, SahTree};
use kauri_benches::points::noise;
use nalgebra::{Point3, Vector3};
use rayon::prelude::*;
use std::hint::black_box;

/// Pixels, and random rays.
const SIZE: [u32; 2] = [320, 240];

/// A triangle of `bvh`.
#[derive(Clone)]
struct Triangle {
    corners: [Point3<f32>; 3],
    id: u32,
    node: usize,
}

impl Bounded<f32, 3> for Triangle {
    fn aabb(&self) -> Aabb<f32, 3> {
        let [a, b, c] = self.corners;
        Aabb::empty().grow(&a).grow(&b).grow(&c)
    }
}

impl BHShape<f32, 3> for Triangle {
    fn set_bh_node_index(&mut self, node: usize) {
        self.node = node;
    }

    fn bh_node_index(&self) -> usize {
        self.node
    }
}

impl Triangle {
    fn all(mesh: &Mesh) -> Vec<Self> {
        let triangle = |i: usize| Self { corners: mesh.corners(i).map(Point3::from), id: i as u32, node: 0 };
        (0..mesh.len()).map(triangle).collect()
    }

    /// Returns the distance along a ray to its hit of the triangle.
    fn hit(&self, ray: &bvh::ray::Ray<f32, 3>) -> Option<f32> {
        let [a, b, c] = self.corners;
        let (to_b, to_c, from) = (b - a, c - a, ray.origin - a);
        let across = ray.direction.cross(&to_c);
        let inverse = 1.0 / to_b.dot(&across);
        let u = from.dot(&across) * inverse;
        let other = from.cross(&to_b);
        let v = ray.direction.dot(&other) * inverse;
        let t = to_c.dot(&other) * inverse;
        (u >= 0.0 && v >= 0.0 && u + v <= 1.0 && t >= 0.0).then_some(t)
    }
}

/// Returns the first triangle that a ray hits.
fn closest(tree: &Bvh<f32, 3>, triangles: &[Triangle], ray: &Ray) -> u32 {
    let ray = bvh::ray::Ray::new(Point3::from(ray.origin), Vector3::from(ray.direction));
    let (mut id, mut least) = (Hit::NO_TRIANGLE, f32::INFINITY);
    for triangle in tree.nearest_traverse_iterator(&ray, triangles) {
        let begin = ray.intersection_slice_for_aabb(&triangle.aabb()).map_or(0.0, |(begin, _)| begin);
        if begin > least {
            break;
        }
        if let Some(t) = triangle.hit(&ray)
            && t < least
        {
            (id, least) = (triangle.id, t);
        }
    }
    id
}

/// Returns the primary rays of a picture, and rays through two random points of the mesh's bounding box.
fn rays(mesh: &Mesh) -> [(&'static str, Vec<Ray>); 2] {
    let camera = Camera::new([0.6, -1.0, 0.5], [0.0; 3]);
    let primary = camera.framing(mesh.vertices(), 4.0 / 3.0).rays(SIZE).expect("a camera");
    let [low, high] = mesh.bounds().expect("there are triangles");
    let unit = |i: usize| (noise(1, i as u64) >> 40) as f32 / (1 << 24) as f32;
    let ray = |i: usize| {
        let place = |axis: usize| low[axis] + unit(6 * i + axis) * (high[axis] - low[axis]);
        let direction = Vector3::from([3, 4, 5].map(|k| 2.0 * unit(6 * i + k) - 1.0)).normalize();
        Ray::new([0, 1, 2].map(place), direction.into())
    };
    [("primary rays", primary), ("random rays", (0..(SIZE[0] * SIZE[1]) as usize).map(ray).collect())]
}

fn run(criterion: &mut Criterion) {
    let meshes = [
        ("torus knot", shapes::torus_knot([2, 3], 2000, 50)),
        ("terrain", shapes::terrain(316, 1)),
        ("soup", shapes::soup(200_000, 0.02, 1)),
    ];
    for (name, mesh) in meshes {
        let mesh = mesh.expect("it fits");
        let (fast, exact) = (SahOptions::default(), SahOptions::default().quality(Quality::Exact));
        let kauri = |options: &SahOptions| SahTree::build(&Device::cpu(), &mesh, options).expect("it fits");
        let mut triangles = Triangle::all(&mesh);
        let mut group = criterion.benchmark_group(format!("{name}, {} triangles", mesh.len()));
        group.sample_size(10).throughput(Throughput::Elements(mesh.len() as u64));
        let own = || kauri::Bvh::build(&Device::cpu(), &mesh).expect("it fits");
        group.bench_function("build, kauri SahTree", |b| b.iter(|| kauri(&fast)));
        group.bench_function("build, kauri SahTree exact", |b| b.iter(|| kauri(&exact)));
        group.bench_function("build, kauri Bvh", |b| b.iter(own));
        group
            .bench_function("build, bvh", |b| b.iter(|| Bvh::<f32, 3>::build_par(black_box(&mut triangles))));
        let bvh: Bvh<f32, 3> = Bvh::build_par(&mut triangles);
        let (fast, exact, own) = (kauri(&fast), kauri(&exact), own());
        let trees: [(&str, &dyn RayIndex); 3] =
            [("kauri SahTree", &fast), ("kauri SahTree exact", &exact), ("kauri Bvh", &own)];
        for (kind, rays) in rays(&mesh) {
            group.throughput(Throughput::Elements(rays.len() as u64));
            for (which, tree) in &trees {
                group.bench_function(format!("{kind}, {which}"), |b| {
                    b.iter(|| tree.closest_hits(black_box(&rays)).expect("it fits"));
                });
            }
            let of_bvh =
                || -> Vec<u32> { rays.par_iter().map(|ray| closest(&bvh, &triangles, ray)).collect() };
            group.bench_function(format!("{kind}, bvh"), |b| b.iter(of_bvh));
            // Rays that pass edges may hit either triangle there.
            let others = trees[0].1.closest_hits(&rays).expect("it fits").triangles;
            let differ = others.iter().zip(of_bvh()).filter(|(a, b)| **a != *b).count();
            assert!(differ <= rays.len() / 1000 + 5, "{differ} of {} rays hit others", rays.len());
        }
        group.finish();
    }
}

criterion_group!(benches, run);
criterion_main!(benches);
