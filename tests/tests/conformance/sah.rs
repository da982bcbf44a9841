//! SAH k-d trees: every ray against every triangle, on every device.

use kauri::bvh::Bvh;
use kauri::device::{Buffer, Event, Gpu, Stream, Workspace};
use kauri::mesh::DeviceMesh;
use kauri::mesh::{Mesh, Motion, shapes};
use kauri::rays::{DeviceHits, Hit, Ray, RayIndex, RayOptions};
use kauri::render::{Camera, Frames, RenderOptions};
use kauri::research::sah::{CandidateLayout, RayTraversal, StagesOptions};
use kauri::sah::{Quality, SahOptions, SahTree};
use kauri::{Device, Error};
use kauri_tests::rays::{Scene, check, check_moved, rays};
use kauri_tests::{devices, devices_for};

fn options() -> [SahOptions; 5] {
    let options = SahOptions::default();
    [
        options.clone(),
        options.clone().clip(true),
        options.clone().quality(Quality::Exact),
        options.clone().quality(Quality::Exact).clip(true).step_cost(0.1),
        options.step_cost(0.0).empty_space(0.0).clip(true),
    ]
}

#[test]
fn hits_equal_brute_force() {
    for (i, len) in [0, 1, 2, 65, 400, 1500].into_iter().enumerate() {
        for scene in Scene::ALL {
            let some = options().into_iter().skip(i % 2).step_by(if len < 400 { 1 } else { 2 });
            for options in some {
                devices().iter().for_each(|device| check(device, scene, len, 480, &options));
            }
        }
    }
}

#[test]
fn trees_of_moving_meshes() {
    for scene in Scene::ALL {
        for (len, options) in [2, 100, 900].into_iter().zip(options()) {
            devices().iter().for_each(|device| check_moved(device, scene, len, 240, &options));
        }
    }
    let mut tree = SahTree::build(&Device::cpu(), &Scene::Grid.mesh(8, 1), &SahOptions::default()).unwrap();
    let error = tree.refit(&Scene::Grid.mesh(50, 1)).unwrap_err();
    assert!(matches!(error, Error::Shape { expected: 8, got: 50, .. }), "{error}");
    tree.verify().unwrap();
}

const LAYOUTS: [CandidateLayout; 3] =
    [CandidateLayout::Arrays, CandidateLayout::ReadOnlyMasks, CandidateLayout::Records];

/// All variants of the GPU's stages build one tree.
#[test]
fn all_variants_build_one_tree() {
    for device in devices().iter().filter(|device| !device.is_cpu()) {
        for variant in 0..32 {
            let [sort_by_scans, boxes_by_reductions, by_shared_memory] =
                [0, 1, 2].map(|bit| variant >> bit & 1 == 1);
            let stages = StagesOptions {
                sort_by_scans,
                boxes_by_reductions,
                by_shared_memory,
                // A warp per root, then level by level with each layout of candidates.
                small_by_levels: variant >= 8,
                candidates: LAYOUTS[(variant / 8 + 2) % 3],
                time_steps: variant % 7 == 0,
                candidate_bytes: if variant % 5 == 0 { 1 << 20 } else { 1 << 29 },
            };
            let options = SahOptions::default().clip(variant % 3 == 0).stages(stages);
            check(device, Scene::Knot, 20_000, 100, &options);
            check(device, Scene::Soup, 5_000, 100, &options);
        }
    }
}

/// The cost of the fast tree is within 15 % of the exact tree's, by one cost model.
#[test]
fn fast_trees_are_nearly_exact() {
    let meshes = [
        ("terrain", shapes::terrain(60, 1).unwrap()),
        ("knot", shapes::torus_knot([2, 3], 300, 20).unwrap()),
        ("soup", shapes::soup(8000, 0.02, 1).unwrap()),
    ];
    for (name, mesh) in meshes {
        let cost =
            |options: &SahOptions| SahTree::build(&Device::cpu(), &mesh, options).unwrap().cost().unwrap();
        let fast = cost(&SahOptions::default());
        let exact = cost(&SahOptions::default().quality(Quality::Exact));
        println!("{name}: {fast:.2} by stages, {exact:.2} exact, {:.1} % more", 100.0 * (fast / exact - 1.0));
        assert!(fast < 1.15 * exact, "{name}: {fast} where the best tree has {exact}");
    }
}

/// A tree with one reference per triangle and one node takes exactly the plan; others take more.
#[test]
fn builds_take_at_least_the_plan() {
    for len in [0, 1, 2, 64, 65, 400] {
        let mesh = Scene::Soup.mesh(len, 1);
        for (device, options) in
            devices_for(len).iter().flat_map(|device| options().map(|options| (device, options)))
        {
            let plan = SahTree::plan(device, mesh.len(), &options);
            let tree = SahTree::build(device, &mesh, &options).unwrap();
            let (num_nodes, num_references) =
                (tree.nodes().unwrap().len(), tree.leaf_triangles().unwrap().len());
            // Corners, extent, nodes, references.
            let tree_bytes = (48 * len + 28 + 8 * num_nodes + 4 * num_references) as u64;
            let what = format!("{len} triangles, {options:?} on {device}: {plan:?}");
            assert!(tree_bytes >= plan.tree_bytes, "{what}, {tree_bytes} bytes");
            if num_nodes == 1 && num_references == len {
                assert_eq!(tree_bytes, plan.tree_bytes, "{what}");
            }
            if !device.is_cpu() {
                assert!(
                    tree.stats().temp_bytes >= plan.temp_bytes,
                    "{what}, {} bytes",
                    tree.stats().temp_bytes
                );
            }
            assert_eq!(plan.temp_bytes == 0, len == 0, "{what}");
        }
    }
    let plan = |num_triangles| SahTree::plan(&Device::cpu(), num_triangles, &SahOptions::default());
    assert_eq!(plan(usize::MAX), plan((1 << 30) - 1));
}

/// Squares at two distances: first hits, all hits, and hits within an interval.
#[test]
fn hits_in_order() {
    let square = |z: f32| [[0.0, 0.0, z], [4.0, 0.0, z], [4.0, 4.0, z], [0.0, 4.0, z]];
    let vertices = [square(2.0), square(1.0), square(2.0)].concat();
    let triangles = (0..3).flat_map(|i| [[4 * i, 4 * i + 1, 4 * i + 2], [4 * i, 4 * i + 2, 4 * i + 3]]);
    let mesh = Mesh::new(vertices, triangles.collect()).unwrap();
    for device in devices_for(6) {
        let tree = SahTree::build(&device, &mesh, &SahOptions::default()).unwrap();
        let rays = [
            Ray::new([3.0, 1.0, 0.0], [0.0, 0.0, 0.5]),
            Ray { t_min: 2.5, ..Ray::new([3.0, 1.0, 0.0], [0.0, 0.0, 0.5]) },
            Ray { t_max: 1.9, ..Ray::new([3.0, 1.0, 0.0], [0.0, 0.0, 0.5]) },
            // A ray that starts on a surface hits it.
            Ray::new([3.0, 1.0, 1.0], [0.0, 0.0, -1.0]),
            // Through the diagonal, which two triangles of each square share.
            Ray::new([1.0, 1.0, 3.0], [0.0, 0.0, -1.0]),
        ];
        let hits = tree.closest_hits(&rays).unwrap();
        assert_eq!(hits.triangles, [2, 0, Hit::NO_TRIANGLE, 2, 0], "{device}");
        assert_eq!(hits.t, [2.0, 4.0, f32::INFINITY, 0.0, 1.0], "{device}");
        assert_eq!((hits.u[0], hits.v[0]), (0.5, 0.25), "{device}");
        assert_eq!(tree.any_hits(&rays).unwrap(), [true, true, false, true, true], "{device}");
        let mut seen = vec![Vec::new(); rays.len()];
        tree.each_hit(&rays, |ray, hit| seen[ray].push(hit.triangle)).unwrap();
        let expected = [vec![2, 0, 4], vec![0, 4], vec![], vec![2], vec![0, 1, 4, 5, 2, 3]];
        assert_eq!(seen, expected, "{device}");
    }
}

#[test]
fn invalid_options_are_errors() {
    let mesh = shapes::grid(2, [3, 3]).unwrap();
    for device in devices_for(18) {
        let build = |options: SahOptions| SahTree::build(&device, &mesh, &options).map(|_| ());
        for wrong in [-1.0, f32::NAN, f32::INFINITY] {
            let error = build(SahOptions::default().step_cost(wrong)).unwrap_err();
            assert!(matches!(error, Error::InvalidLength { what: "cost of a step", .. }), "{error}");
            let error = build(SahOptions::default().empty_space(wrong)).unwrap_err();
            assert!(matches!(error, Error::InvalidLength { what: "fraction of empty space", .. }), "{error}");
        }
        let tree = SahTree::build(&device, &mesh, &SahOptions::default()).unwrap();
        assert!(tree.closest_hits(&[]).unwrap().is_empty());
        assert!(tree.all_hits(&[]).unwrap().is_empty());
        assert_eq!(tree.len(), 18);
    }
}

/// Trees over meshes in device memory, and hits in device memory.
#[test]
fn meshes_and_hits_in_device_memory() {
    let cases = [
        ([Scene::Soup.mesh(30, 1), Scene::Soup.mesh(12, 2)], 1),
        // Enough rays that the work takes some time.
        ([Scene::Knot.mesh(3000, 1), Scene::Soup.mesh(700, 2)], 2000),
    ];
    for ([mesh, other], times) in cases {
        for device in devices_for(mesh.len()) {
            let Some(gpu) = device.gpu() else { continue };
            let on = OnDevice { device: &device, gpu, stream: &Stream::new(gpu).unwrap() };
            let (own, others) = (on.upload(&mesh), on.upload(&other));
            on.rebuild_and_refit([&mesh, &other], [own.mesh(), others.mesh()]);
            on.wait_for_rays([&mesh, &other], [own.mesh(), others.mesh()], times);
            on.invalid_meshes_are_errors(&mesh, own.mesh());
        }
    }
}

/// A device with a stream.
struct OnDevice<'a> {
    device: &'a Device,
    gpu: &'a Gpu,
    stream: &'a Stream,
}

/// A mesh in device memory.
struct ResidentMesh {
    vertices: Buffer<f32>,
    triangles: Buffer<u32>,
}

impl ResidentMesh {
    fn mesh(&self) -> DeviceMesh<'_> {
        DeviceMesh { vertices: &self.vertices, triangles: &self.triangles }
    }
}

impl OnDevice<'_> {
    fn upload(&self, mesh: &Mesh) -> ResidentMesh {
        self.upload_parts(mesh.vertices().as_flattened(), mesh.triangles().as_flattened())
    }

    fn upload_parts(&self, vertices: &[f32], triangles: &[u32]) -> ResidentMesh {
        let vertices = Buffer::from_slice(self.stream, vertices, "vertices").unwrap();
        ResidentMesh { vertices, triangles: Buffer::from_slice(self.stream, triangles, "triangles").unwrap() }
    }

    /// Checks that a tree equals the CPU's over a mesh.
    fn check(&self, tree: &SahTree, mesh: &Mesh) {
        let expected = SahTree::build(&Device::cpu(), mesh, tree.options()).unwrap();
        assert!(tree.nodes().unwrap() == expected.nodes().unwrap(), "{}", self.device);
        assert!(tree.leaf_triangles().unwrap() == expected.leaf_triangles().unwrap(), "{}", self.device);
        assert_eq!((tree.len(), tree.bounds()), (mesh.len(), expected.bounds()), "{}", self.device);
    }

    /// Rebuilds and refits with the memory of larger and smaller trees.
    fn rebuild_and_refit(&self, [mesh, other]: [&Mesh; 2], [own, others]: [DeviceMesh<'_>; 2]) {
        for options in [SahOptions::default(), SahOptions::default().quality(Quality::Exact)] {
            let mut tree = SahTree::build_on(self.stream, own, &options).unwrap();
            self.check(&tree, mesh);
            for (mesh, own) in [(other, others), (other, others), (mesh, own), (mesh, own), (other, others)] {
                tree.rebuild_on(self.stream, own).unwrap();
                self.check(&tree, mesh);
            }
            let mut moved = other.clone();
            Motion::Twist.apply(other, 0.2, &mut moved).unwrap();
            tree.refit_on(self.stream, self.upload(&moved).mesh()).unwrap();
            tree.verify().unwrap();
            let rays = rays(&moved, 48, 7);
            let expected = SahTree::build(&Device::cpu(), &moved, &options).unwrap();
            assert_eq!(tree.all_hits(&rays).unwrap(), expected.all_hits(&rays).unwrap(), "{}", self.device);
            let error = tree.refit_on(self.stream, own).unwrap_err();
            assert!(matches!(error, Error::Shape { .. }), "{error}");
        }
    }

    /// A rebuild waits for rays on other streams before it writes the memory that they read.
    fn wait_for_rays(&self, [mesh, other]: [&Mesh; 2], [own, others]: [DeviceMesh<'_>; 2], times: usize) {
        let rays = rays(mesh, 500, 3).repeat(times);
        let expected = SahTree::build(&Device::cpu(), mesh, &SahOptions::default()).unwrap();
        let mut tree = SahTree::build_on(self.stream, own, &SahOptions::default()).unwrap();
        let on_device = Buffer::from_slice(self.stream, &rays, "rays").unwrap();
        let mut hits = DeviceHits::uninitialized(self.gpu, rays.len()).unwrap();
        let mut any = Buffer::<u8>::uninitialized(self.gpu, rays.len(), "hits").unwrap();
        let (mut workspace, by) = (Workspace::new(self.gpu), RayOptions::default().sorted(true));
        let streams = [(); 20].map(|()| Stream::new(self.gpu).unwrap());
        for stream in &streams {
            tree.closest_hits_on(stream, &mut workspace, &on_device, &by, &mut hits).unwrap();
            tree.any_hits_on(stream, &mut workspace, &on_device, &by, &mut any).unwrap();
        }
        // The second rebuild writes to the memory of the first tree.
        (0..2).for_each(|_| tree.rebuild_on(self.stream, others).unwrap());
        streams.iter().for_each(|stream| stream.synchronize().unwrap());
        assert!(
            hits.to_host(self.stream).unwrap() == expected.closest_hits(&rays).unwrap(),
            "{}",
            self.device
        );
        let any: Vec<bool> = any.to_vec(self.stream).unwrap().into_iter().map(|hit| hit == 1).collect();
        assert!(any == expected.any_hits(&rays).unwrap(), "{}", self.device);
        self.check(&tree, other);
    }

    /// Invalid meshes are errors that name the vertex, and the tree stays as it was.
    fn invalid_meshes_are_errors(&self, mesh: &Mesh, own: DeviceMesh<'_>) {
        let (stream, options) = (self.stream, SahOptions::default());
        let with = |vertices: &[f32], triangles: &[u32]| {
            SahTree::build_on(stream, self.upload_parts(vertices, triangles).mesh(), &options).unwrap_err()
        };
        let corner = |x: f32| [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, x];
        let error = with(&corner(1.0), &[0, 1, 2, 2, 1, 0, 2, 3, 1]);
        let text = "corner 1 of triangle 2 is vertex 3: there are 3 vertices, from 0";
        assert_eq!(error.to_string(), text, "{}", self.device);
        let error = with(&corner(f32::NAN), &[0, 1, 2]);
        assert!(matches!(error, Error::NonFinite { what: "vertex", index: 2, axis: 2, .. }), "{error}");
        let error = with(&corner(f32::MAX), &[0, 1, 2]);
        assert!(matches!(error, Error::CoordinateTooLarge { index: 2, axis: 2, .. }), "{error}");
        assert!(matches!(with(&corner(1.0)[1..], &[0, 1, 1]), Error::Shape { .. }));
        assert!(matches!(with(&corner(1.0), &[0, 1]), Error::Shape { .. }));
        let mut tree = SahTree::build_on(stream, own, &options).unwrap();
        let rays = Buffer::from_slice(stream, &rays(mesh, 12, 1), "rays").unwrap();
        let (mut few, by) = (DeviceHits::uninitialized(self.gpu, 3).unwrap(), RayOptions::default());
        let few = tree.closest_hits_on(stream, &mut Workspace::new(self.gpu), &rays, &by, &mut few);
        assert!(matches!(few, Err(Error::Shape { .. })));
        for wrong in [f32::NAN, f32::INFINITY] {
            let mut vertices = mesh.vertices().as_flattened().to_vec();
            vertices[3 * mesh.triangles()[mesh.len() / 2][1] as usize] = wrong;
            let wrong = self.upload_parts(&vertices, mesh.triangles().as_flattened());
            for error in [
                tree.rebuild_on(stream, wrong.mesh()).unwrap_err(),
                tree.refit_on(stream, wrong.mesh()).unwrap_err(),
            ] {
                assert!(matches!(error, Error::NonFinite { what: "vertex", axis: 0, .. }), "{error}");
            }
            self.check(&tree, mesh);
            tree.rebuild_on(stream, own).unwrap();
            self.check(&tree, mesh);
        }
    }
}

/// A ray through many unordered triangles in few leaves: all triangles span the mesh.
#[test]
fn a_ray_through_thousands() {
    for len in [33, 5000] {
        // Heights are distinct, and far enough apart that no two `t` are equal.
        let heights: Vec<f32> = (0..len).map(|i| (2741 * i % len) as f32 / 8192.0).collect();
        let corners = |z: &f32| [[-1.0, -1.0, *z], [3.0, -1.0, *z], [-1.0, 3.0, *z]];
        let vertices = heights.iter().flat_map(corners).collect();
        let triangles = (0..len as u32).map(|i| [3 * i, 3 * i + 1, 3 * i + 2]).collect();
        let mesh = Mesh::new(vertices, triangles).unwrap();
        let rays =
            [2.0, -1.0, 0.0].map(|z| Ray::new([0.1, 0.2, z], [0.1, -0.1, if z > 1.0 { -1.0 } else { 1.0 }]));
        let mut up: Vec<u32> = (0..len as u32).collect();
        up.sort_by(|&a, &b| heights[a as usize].total_cmp(&heights[b as usize]));
        for device in devices_for(mesh.len()) {
            let tree = SahTree::build(&device, &mesh, &SahOptions::default()).unwrap();
            let all = tree.all_hits(&rays).unwrap();
            let down: Vec<u32> = all.row(0).iter().map(|hit| hit.triangle).collect();
            assert!(down.iter().rev().eq(&up), "{device}");
            for ray in 1..3 {
                assert!(all.row(ray).iter().map(|hit| hit.triangle).eq(up.iter().copied()), "{device}");
            }
        }
    }
}

/// Rays with the smallest and the largest directions.
#[test]
fn directions_at_the_ends_of_numbers() {
    let triangle = |z: f32| [[-8.0, -8.0, z], [8.0, -8.0, z], [0.0, 8.0, z]];
    let vertices = [triangle(100.0), triangle(50.0)].concat();
    let mesh = Mesh::new(vertices, vec![[0, 1, 2], [3, 4, 5]]).unwrap();
    let along = |direction: [f32; 3]| Ray::new([0.0; 3], direction);
    let rays = [
        along([0.0, 0.0, 1e-37]),
        along([0.0, 0.0, 2.5e-37]),
        along([1e36, 1e36, 3e38]),
        Ray::new([-50.0, -50.0, 0.0], [3e38; 3]),
        along([f32::INFINITY, 0.0, 1.0]),
        Ray::new([3e38, 3e38, 3e38], [0.0, 0.0, -1.0]),
    ];
    for device in devices_for(2) {
        let tree = SahTree::build(&device, &mesh, &SahOptions::default()).unwrap();
        let hits = tree.closest_hits(&rays).unwrap();
        const NONE: u32 = Hit::NO_TRIANGLE;
        // The `t` of both triangles overflows for the first ray, that of one triangle for the second.
        assert_eq!(hits.triangles, [NONE, 1, 1, 1, NONE, NONE], "{device}");
        assert_eq!(hits.t[1], (50.0 / f64::from(2.5e-37f32)) as f32, "{device}");
        let all = tree.all_hits(&rays).unwrap();
        assert_eq!(all.offsets(), [0, 0, 1, 3, 4, 4, 4], "{device}");
    }
}

/// Only a finite `t` within the bounds is a hit. Bounds may be infinite; a NaN bound excludes every hit.
#[test]
fn hits_are_at_a_finite_t() {
    let triangle = |z: f32| [[-8.0, -8.0, z], [8.0, -8.0, z], [0.0, 8.0, z]];
    let vertices: Vec<_> = [-100.0, -50.0, 50.0, 100.0, 1e17].into_iter().flat_map(triangle).collect();
    let mesh = Mesh::new(vertices, (0..5).map(|i| [3 * i, 3 * i + 1, 3 * i + 2]).collect()).unwrap();
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let bounds = [-inf, -1e38, -2.0, 0.0, 2.0, 1e38, inf, nan];
    let along = [1e-45, 1e-40, 1e-38, 2.5e-37, 1.0, 1e30, 3e38, 0.0, nan];
    let mut rays = Vec::new();
    for z in along.into_iter().flat_map(|z| [z, -z]) {
        for (t_min, t_max) in bounds.into_iter().flat_map(|t_min| bounds.map(|t_max| (t_min, t_max))) {
            rays.push(Ray { origin: [0.0; 3], t_min, direction: [0.0, 0.0, z], t_max });
        }
    }
    for device in devices_for(5) {
        let tree = SahTree::build(&device, &mesh, &SahOptions::default()).unwrap();
        for traversal in [RayTraversal::Restart, RayTraversal::Stack] {
            let options = RayOptions::default().traversal(traversal);
            assert_hits_at_a_finite_t(&tree, &rays, &options, &format!("{device}, {traversal:?}"));
        }
        let bvh = Bvh::build(&device, &mesh).unwrap();
        assert_hits_at_a_finite_t(&bvh, &rays, &RayOptions::default(), &format!("{device}, a hierarchy"));
    }
}

/// Compares the hits of rays along the third axis with hits in `f64` arithmetic, rounded.
fn assert_hits_at_a_finite_t(index: &impl RayIndex, rays: &[Ray], options: &RayOptions, on: &str) {
    let hits_of = |ray: &Ray| -> Vec<(u32, f32)> {
        let of = |z: f64| (z / f64::from(ray.direction[2])) as f32;
        let all = [-100.0, -50.0, 50.0, 100.0, f64::from(1e17_f32)].map(of).into_iter().zip(0..);
        let mut hits: Vec<_> =
            all.filter(|&(t, _)| t.is_finite() && ray.t_min <= t && t <= ray.t_max).collect();
        hits.sort_by(|a, b| a.partial_cmp(b).unwrap());
        hits.into_iter().map(|(t, triangle)| (triangle, t)).collect()
    };
    let closest = index.closest_hits_with(rays, options).unwrap();
    let any = index.any_hits_with(rays, options).unwrap();
    let all = index.all_hits_with(rays, options).unwrap();
    for (i, ray) in rays.iter().enumerate() {
        let (what, expected) = (format!("{ray:?} on {on}"), hits_of(ray));
        let found: Vec<_> = all.row(i).iter().map(|hit| (hit.triangle, hit.t)).collect();
        assert_eq!(found, expected, "{what}");
        let first = expected.first().copied().unwrap_or((Hit::NO_TRIANGLE, f32::INFINITY));
        assert_eq!((closest.triangles[i], closest.t[i]), first, "{what}");
        assert_eq!(any[i], !expected.is_empty(), "{what}");
    }
}

/// A tree on one device refuses buffers and streams of another.
#[test]
fn trees_are_on_their_device() {
    let mut simulated = kauri_tests::simulated();
    let [Some(one), Some(other)] = [simulated.next(), simulated.next()] else { return };
    let mesh = Scene::Soup.mesh(70, 1);
    let mut tree = SahTree::build(&one, &mesh, &SahOptions::default()).unwrap();
    let gpu = other.gpu().unwrap();
    let stream = Stream::new(gpu).unwrap();
    let vertices = Buffer::from_slice(&stream, mesh.vertices().as_flattened(), "vertices").unwrap();
    let triangles = Buffer::from_slice(&stream, mesh.triangles().as_flattened(), "triangles").unwrap();
    let elsewhere = DeviceMesh { vertices: &vertices, triangles: &triangles };
    let rays = Buffer::from_slice(&stream, &rays(&mesh, 12, 1), "rays").unwrap();
    let mut hits = DeviceHits::uninitialized(gpu, 12).unwrap();
    let mut any = Buffer::uninitialized(gpu, 12, "hits").unwrap();
    let (mut workspace, options) = (Workspace::new(gpu), RayOptions::default());
    let mut frames = Frames::new(gpu, &RenderOptions::default().size(4, 3)).unwrap();
    let camera = Camera::new([0.0, -1.0, 1.0], [0.0; 3]);
    let results = [
        tree.closest_hits_on(&stream, &mut workspace, &rays, &options, &mut hits),
        tree.any_hits_on(&stream, &mut workspace, &rays, &options, &mut any),
        tree.rebuild_on(&stream, elsewhere),
        tree.refit_on(&stream, elsewhere),
        frames.draw(&stream, &tree, elsewhere, &camera).map(|_| ()),
        frames.draw(&Stream::new(one.gpu().unwrap()).unwrap(), &tree, elsewhere, &camera).map(|_| ()),
        frames.to_image(&Stream::new(one.gpu().unwrap()).unwrap()).map(|_| ()),
        stream.record(&Event::new(one.gpu().unwrap()).unwrap()),
    ];
    for result in results {
        assert!(matches!(result, Err(Error::WrongDevice { .. })), "{result:?}");
    }
    tree.rebuild(&mesh).unwrap();
    tree.verify().unwrap();
    let there = SahTree::build(&other, &mesh, &SahOptions::default()).unwrap();
    frames.draw(&stream, &there, elsewhere, &camera).unwrap();
    assert_eq!(frames.to_image(&stream).unwrap().pixels.len(), 36);
}

/// Hits against an independent computation in `f64`, for rays that do not pass near edges.
#[test]
fn hits_are_where_rays_meet_triangles() {
    let mesh = Scene::Soup.mesh(300, 5);
    let tree = SahTree::build(&Device::cpu(), &mesh, &SahOptions::default()).unwrap();
    let rays: Vec<Ray> = rays(&mesh, 6000, 6).into_iter().step_by(12).collect();
    let all = tree.all_hits(&rays).unwrap();
    let mut num_hits = 0;
    for (i, ray) in rays.iter().enumerate() {
        for triangle in 0..mesh.len() {
            let [a, b, c] = mesh.corners(triangle).map(|corner| corner.map(f64::from));
            let (origin, direction) = (ray.origin.map(f64::from), ray.direction.map(f64::from));
            // The hit point is a + u (b - a) + v (c - a) = origin + t direction; Cramer's rule.
            let minus = |p: [f64; 3], q: [f64; 3]| [p[0] - q[0], p[1] - q[1], p[2] - q[2]];
            let determinant = |p: [f64; 3], q: [f64; 3], r: [f64; 3]| {
                p[0] * (q[1] * r[2] - q[2] * r[1]) - p[1] * (q[0] * r[2] - q[2] * r[0])
                    + p[2] * (q[0] * r[1] - q[1] * r[0])
            };
            let (e, f, back) = (minus(b, a), minus(c, a), direction.map(|x| -x));
            let from = minus(origin, a);
            let scale = determinant(e, f, back);
            let u = determinant(from, f, back) / scale;
            let v = determinant(e, from, back) / scale;
            let t = determinant(e, f, from) / scale;
            let found = all.row(i).iter().find(|hit| hit.triangle == triangle as u32);
            let inside = u.min(v).min(1.0 - u - v).min(t);
            if inside > 1e-4 {
                let hit = found.unwrap_or_else(|| panic!("ray {i} passes triangle {triangle}"));
                let error = |x: f32, exact: f64| (f64::from(x) - exact).abs();
                assert!(error(hit.t, t) < 1e-5 * t.max(1.0), "ray {i}, triangle {triangle}: {hit:?}, {t}");
                assert!(error(hit.u, u).max(error(hit.v, v)) < 1e-3, "ray {i}: {hit:?}, {u} {v}");
                num_hits += 1;
            } else if inside < -1e-4 {
                assert!(found.is_none(), "ray {i} hits triangle {triangle} at {u} {v} {t}");
            }
        }
    }
    assert!(num_hits > 50, "{num_hits} hits");
}
