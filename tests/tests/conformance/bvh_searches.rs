//! Queries of bounding volume hierarchies that are not rays, on every device.

use kauri::bvh::ClosestPoint;
use kauri::device::{Buffer, Stream, Workspace};
use kauri::mesh::Mesh;
use kauri::rays::Aabb;
use kauri::{Bvh, Device, Error};
use kauri_tests::rays::Scene;
use kauri_tests::searches::{check_inside, check_searches};
use kauri_tests::{devices, devices_for};

#[test]
fn searches_equal_brute_force() {
    for len in [0, 1, 2, 3, 5, 17, 300] {
        for scene in Scene::ALL {
            devices().iter().for_each(|device| check_searches(device, scene, len, 60));
        }
    }
}

#[test]
fn points_inside_closed_meshes() {
    for device in devices() {
        (0..4).for_each(|turn| check_inside(&device, turn, 3000));
    }
}

/// Points and results in device memory, and the same bits as on the CPU.
#[test]
fn searches_in_device_memory() {
    let mesh = Scene::Knot.mesh(2000, 3);
    let cpu = Bvh::build(&Device::cpu(), &mesh).unwrap();
    let mut points: Vec<[f32; 3]> = mesh.vertices().iter().map(|v| v.map(|x| x * 1.1)).take(33).collect();
    for device in devices_for(33) {
        let bvh = Bvh::build(&device, &mesh).unwrap();
        assert_eq!(bvh.inside(&points).unwrap(), cpu.inside(&points).unwrap(), "{device}");
        let windows: Vec<Aabb> =
            points.iter().map(|&at| Aabb { low: at, high: at.map(|x| x + 0.1) }).collect();
        assert_eq!(bvh.intersecting(&windows).unwrap(), cpu.intersecting(&windows).unwrap(), "{device}");
        let Some(gpu) = device.gpu() else { continue };
        let (stream, mut workspace) = (Stream::new(gpu).unwrap(), Workspace::new(gpu));
        let on_device = Buffer::from_slice(&stream, &windows, "boxes").unwrap();
        let mut counts = Buffer::uninitialized(gpu, windows.len(), "counts").unwrap();
        bvh.count_intersecting_on(&stream, &mut workspace, &on_device, &mut counts).unwrap();
        assert_eq!(counts.to_vec(&stream).unwrap(), cpu.count_intersecting(&windows).unwrap(), "{device}");
        let (offsets, ids) = bvh.intersecting_on(&stream, &mut workspace, &on_device).unwrap();
        assert_eq!(
            offsets.to_vec(&stream).unwrap(),
            cpu.intersecting(&windows).unwrap().offsets(),
            "{device}"
        );
        assert_eq!(
            ids.to_vec(&stream).unwrap().len() as u64,
            offsets.to_vec(&stream).unwrap()[windows.len()]
        );
        for k in [1, 5, 40] {
            let queries = Buffer::from_slice(&stream, &points, "queries").unwrap();
            let mut ids = Buffer::uninitialized(gpu, points.len() * k, "ids").unwrap();
            let mut dist2 = Buffer::uninitialized(gpu, points.len() * k, "distances").unwrap();
            bvh.nearest_on(&stream, &mut workspace, &queries, k, 0.3, &mut ids, &mut dist2).unwrap();
            let expected = cpu.nearest_within(&points, k, 0.3).unwrap().into_parts();
            assert_eq!((ids.to_vec(&stream).unwrap(), dist2.to_vec(&stream).unwrap()), expected, "{device}");
            let error = bvh.nearest_on(&stream, &mut workspace, &queries, k + 1, 0.3, &mut ids, &mut dist2);
            assert!(matches!(error.unwrap_err(), Error::Shape { .. }));
        }
        let not_a_number = points.len();
        points.push([0.0, f32::NAN, 0.0]);
        let queries = Buffer::from_slice(&stream, &points, "queries").unwrap();
        points.pop();
        let mut found = Buffer::uninitialized(gpu, points.len() + 1, "closest points").unwrap();
        bvh.closest_points_on(&stream, &mut workspace, &queries, f32::INFINITY, &mut found).unwrap();
        let found: Vec<ClosestPoint> = found.to_vec(&stream).unwrap();
        assert_eq!(found[..not_a_number], cpu.closest_points(&points, f32::INFINITY).unwrap(), "{device}");
        assert!(!found[not_a_number].is_found(), "{device}");
        let mut inside = Buffer::uninitialized(gpu, points.len() + 1, "inside").unwrap();
        bvh.inside_on(&stream, &mut workspace, &queries, &mut inside).unwrap();
        let inside: Vec<u8> = inside.to_vec(&stream).unwrap();
        let expected: Vec<u8> = cpu.inside(&points).unwrap().into_iter().map(u8::from).collect();
        assert_eq!(inside[..not_a_number], expected, "{device}");
    }
}

#[test]
fn invalid_input_is_named() {
    for device in devices_for(0) {
        let unit = Aabb { low: [0.0; 3], high: [1.0; 3] };
        let mut bvh = Bvh::build(&device, &[unit; 3]).unwrap();
        let inverted = Aabb { low: [0.0, 2.0, 0.0], ..unit };
        let error = bvh.rebuild(&[unit, inverted]).unwrap_err();
        assert!(
            matches!(error, Error::InvertedBox { what: "box", index: 1, axis: 1, low: 2.0, high: 1.0 }),
            "{error} on {device}"
        );
        let infinite = Aabb { high: [1.0, 1.0, f32::INFINITY], ..unit };
        let error = bvh.refit(&[unit, unit, infinite]).unwrap_err();
        assert!(matches!(error, Error::NonFinite { index: 2, axis: 2, .. }), "{error} on {device}");
        let error = bvh.refit(&[unit]).unwrap_err();
        assert!(matches!(error, Error::Shape { expected: 3, got: 1, .. }), "{error} on {device}");
        let error = bvh.intersecting(&[inverted]).unwrap_err();
        assert!(matches!(error, Error::InvertedBox { what: "query box", index: 0, .. }), "{error}");
        let error = bvh.containing(&[[0.0; 3], [1e30, 0.0, 0.0]]).unwrap_err();
        assert!(matches!(error, Error::CoordinateTooLarge { index: 1, axis: 0, .. }), "{error}");
        let error = bvh.nearest(&[[0.0, f32::NAN, 0.0]], 1).unwrap_err();
        assert!(matches!(error, Error::NonFinite { index: 0, axis: 1, .. }), "{error}");
        for radius in [-1.0, f32::NAN] {
            let error = bvh.nearest_within(&[[0.0; 3]], 1, radius).unwrap_err();
            assert!(matches!(error, Error::InvalidLength { what: "radius", .. }), "{error}");
        }
        // The hierarchy is as it was, and answers.
        assert_eq!(bvh.nearest(&[[0.5; 3]], 4).unwrap().ids(), [0, 1, 2, u32::MAX], "{device}");
        assert_eq!(bvh.nearest(&[[0.5; 3]; 2], 0).unwrap().len(), 2);
        let none = Bvh::build(&device, &Mesh::default()).unwrap();
        assert_eq!(none.inside(&[[0.0; 3]]).unwrap(), [false]);
        assert!(!none.closest_points(&[[0.0; 3]], 1.0).unwrap()[0].is_found());
        assert!(none.intersecting(&[]).unwrap().is_empty());
    }
}
