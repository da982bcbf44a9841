//! Bounding volume hierarchies: every ray against every triangle, on every device.

use kauri::device::{Buffer, Stream, Workspace};
use kauri::mesh::{DeviceMesh, Mesh, shapes};
use kauri::rays::{DeviceHits, Hit, Ray, RayIndex, RayOptions};
use kauri::{Bvh, Device, Error, SahOptions, SahTree};
use kauri_tests::generate::Random;
use kauri_tests::rays::{Resident, Scene, check_bvh, rays};
use kauri_tests::{devices, devices_for};
use rayon::prelude::*;

#[test]
fn hits_equal_brute_force() {
    for len in [0, 1, 2, 3, 4, 5, 16, 17, 65, 400, 1500] {
        for scene in Scene::ALL {
            devices().iter().for_each(|device| check_bvh(device, scene, len, 360));
        }
    }
}

/// More triangles than a block merges, and than rays are compared with all of them.
#[test]
fn large_meshes_have_the_hits_of_the_other_index() {
    for scene in [Scene::Soup, Scene::Knot, Scene::Copies, Scene::Slivers] {
        let mesh = scene.mesh(60_000, 7);
        let rays = rays(&mesh, 3000, 8);
        let tree = SahTree::build(&Device::cpu(), &mesh, &SahOptions::default()).unwrap();
        let (closest, any) = (tree.closest_hits(&rays).unwrap(), tree.any_hits(&rays).unwrap());
        let cpu = Bvh::build(&Device::cpu(), &mesh).unwrap();
        for device in devices() {
            let bvh = Bvh::build(&device, &mesh).unwrap();
            bvh.verify().unwrap();
            assert_eq!(bvh.fingerprint().unwrap(), cpu.fingerprint().unwrap(), "{scene:?} on {device}");
            for by in [RayOptions::default(), RayOptions::default().sorted(true)] {
                assert_eq!(bvh.closest_hits_with(&rays, &by).unwrap(), closest, "{scene:?} on {device}");
                assert_eq!(bvh.any_hits_with(&rays, &by).unwrap(), any, "{scene:?} on {device}");
            }
        }
    }
}

/// Many more rays than lanes of a GPU, so that warps take rays again and again.
#[test]
fn many_rays() {
    let mesh = Scene::Knot.mesh(2000, 1);
    let some = rays(&mesh, 1009, 3);
    let num = if devices().len() > 1 { 1_500_000 } else { 5000 };
    let all: Vec<Ray> = some.iter().copied().cycle().take(num).collect();
    for device in devices() {
        let bvh = Bvh::build(&device, &mesh).unwrap();
        let (few, many) = (bvh.closest_hits(&some).unwrap(), bvh.closest_hits(&all).unwrap());
        let differs = (0..num).find(|&i| many.get(i) != few.get(i % some.len()));
        assert_eq!(differs, None, "{device}");
    }
}

/// Both indexes have the same hits of 100 million random rays. Without a GPU there is nothing to compare.
#[test]
fn a_hundred_million_rays_have_equal_hits() {
    for device in devices().into_iter().filter(|device| !device.is_cpu()) {
        let mesh = shapes::torus_knot([2, 3], 1000, 100).unwrap();
        let bvh = Bvh::build(&device, &mesh).unwrap();
        let tree = SahTree::build(&device, &mesh, &SahOptions::default()).unwrap();
        for seed in 0..20 {
            let rays: Vec<Ray> =
                (0..5_000_000u64).into_par_iter().map(|i| random_ray(5_000_000 * seed + i)).collect();
            let [found, expected] = [bvh.closest_hits(&rays), tree.closest_hits(&rays)].map(Result::unwrap);
            assert!(found == expected, "the hits differ of rays from number {} on", 5_000_000 * seed);
        }
    }
}

/// Returns the ray with a number, between two points around a torus knot.
fn random_ray(number: u64) -> Ray {
    let mut random = Random::new(number);
    let [from, to] = [0; 2].map(|_| [0; 3].map(|_| 8.0 * (random.unit() as f32 - 0.5)));
    Ray::new(from, [0, 1, 2].map(|axis| to[axis] - from[axis]))
}

/// A chain of triangles, each much larger than the last: the deepest hierarchies, whose rays have the longest stacks.
#[test]
fn deep_hierarchies() {
    for device in devices_for(0) {
        let corners: Vec<[f32; 3]> = (0..120)
            .flat_map(|i| {
                let size = 1.5f32.powi(i % 60);
                let z = if i % 2 == 0 { size } else { -size };
                [[-size, -size, z], [3.0 * size, -size, z], [-size, 3.0 * size, z]]
            })
            .collect();
        let triangles = (0..120).map(|i| [3 * i, 3 * i + 1, 3 * i + 2]).collect();
        let mesh = Mesh::new(corners, triangles).unwrap();
        let bvh = Bvh::build(&device, &mesh).unwrap();
        bvh.verify().unwrap();
        let rays: Vec<Ray> =
            (0..300).map(|i| Ray::new([0.01 * i as f32, 0.1, -1e20], [0.0, 1e-9 * i as f32, 1.0])).collect();
        let all = bvh.all_hits(&rays).unwrap();
        for (i, ray) in rays.iter().enumerate() {
            let expected = (0..mesh.len()).filter(|&t| ray.hit(t as u32, mesh.corners(t)).is_some()).count();
            assert_eq!(all.row(i).len(), expected, "ray {i} on {device}");
        }
    }
}

/// Triangles and hits in device memory, in the order of a stream.
#[test]
fn meshes_and_hits_in_device_memory() {
    for device in devices_for(30) {
        let Some(gpu) = device.gpu() else { continue };
        let (stream, mut workspace) = (Stream::new(gpu).unwrap(), Workspace::new(gpu));
        let mesh = Scene::Boxes.mesh(30, 2);
        let resident = Resident::new(&stream, &mesh).unwrap();
        let mut bvh = Bvh::build_on(&stream, resident.mesh()).unwrap();
        let temp_bytes = <Bvh>::plan(&device, mesh.len()).temp_bytes;
        assert!(bvh.stats().temp_bytes >= temp_bytes && temp_bytes > 0, "{device}");
        let host_rays = rays(&mesh, 60, 2);
        let expected = Bvh::build(&Device::cpu(), &mesh).unwrap();
        for refits in [false, true] {
            let mesh = resident.mesh();
            if refits { bvh.refit_on(&stream, mesh) } else { bvh.rebuild_on(&stream, mesh) }.unwrap();
            let on_device = Buffer::from_slice(&stream, &host_rays, "rays").unwrap();
            let mut hits = DeviceHits::uninitialized(gpu, 60).unwrap();
            let mut any = Buffer::uninitialized(gpu, 60, "hits").unwrap();
            let options = RayOptions::default();
            bvh.closest_hits_on(&stream, &mut workspace, &on_device, &options, &mut hits).unwrap();
            bvh.any_hits_on(&stream, &mut workspace, &on_device, &options, &mut any).unwrap();
            assert_eq!(
                hits.to_host(&stream).unwrap(),
                expected.closest_hits(&host_rays).unwrap(),
                "{device}"
            );
            let any: Vec<bool> = any.to_vec(&stream).unwrap().into_iter().map(|hit: u8| hit != 0).collect();
            assert_eq!(any, expected.any_hits(&host_rays).unwrap(), "{device}");
        }
        let bad = Buffer::from_slice(&stream, &[0u32, 1, 1 << 20], "triangles").unwrap();
        let invalid = DeviceMesh { triangles: &bad, ..resident.mesh() };
        let before = bvh.fingerprint().unwrap();
        let error = bvh.rebuild_on(&stream, invalid).unwrap_err();
        assert!(!matches!(error, Error::Corrupt { .. }), "{error}");
        let error = bvh.refit_on(&stream, invalid).unwrap_err();
        assert!(matches!(error, Error::Shape { expected: 30, got: 1, .. }), "{error}");
        assert_eq!(bvh.fingerprint().unwrap(), before);
        bvh.rebuild_on(&stream, resident.mesh()).unwrap();
        assert_eq!(bvh.closest_hits(&host_rays).unwrap(), expected.closest_hits(&host_rays).unwrap());
    }
    let mut on_cpu = Bvh::build(&Device::cpu(), &Scene::Boxes.mesh(30, 2)).unwrap();
    let error = on_cpu.refit(&Scene::Boxes.mesh(31, 2)).unwrap_err();
    assert!(matches!(error, Error::Shape { expected: 30, got: 31, .. }), "{error}");
    assert_eq!(
        Bvh::build(&Device::cpu(), &Mesh::default())
            .unwrap()
            .closest_hits(&[Ray::new([0.0; 3], [1.0; 3])])
            .unwrap()
            .get(0),
        Hit::NONE
    );
}
