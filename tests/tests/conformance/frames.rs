//! Frames in device memory nearly equal the pictures of the host.

use kauri::device::Stream;
use kauri::mesh::{Mesh, shapes};
use kauri::render::{Camera, Frames, RenderOptions};
use kauri::sah::{SahOptions, SahTree};
use kauri::{Device, Error};
use kauri_tests::devices_for;
use kauri_tests::frames::check;
use kauri_tests::rays::Resident;

const SIZE: [u32; 2] = [60, 40];

#[test]
fn frames_nearly_equal_pictures() {
    let knot = shapes::torus_knot([2, 3], 60, 8).unwrap();
    let scaled = |by: f32| {
        let vertices = knot.vertices().iter().map(|vertex| vertex.map(|x| x * by)).collect();
        Mesh::new(vertices, knot.triangles().to_vec()).unwrap()
    };
    let (land, empty) = (shapes::terrain(20, 3).unwrap(), shapes::soup(0, 0.1, 1).unwrap());
    let meshes =
        [(&knot, true), (&scaled(1e-15), true), (&scaled(1e15), true), (&land, false), (&empty, false)];
    for (mesh, has_shadows) in meshes {
        for device in devices_for(mesh.len()) {
            let Some(gpu) = device.gpu() else { continue };
            let darker = check(gpu, mesh, SIZE);
            // Parts of the knot are in the shadow of others.
            assert!(
                !has_shadows || darker > (3 * SIZE[0] * SIZE[1] / 50) as usize,
                "{darker} bytes on {device}"
            );
        }
    }
}

#[test]
fn invalid_frames_are_errors() {
    let mesh = shapes::grid(2, [2, 2]).unwrap();
    let camera = Camera::new([0.0, -1.0, 1.0], [0.0; 3]);
    let on_cpu = SahTree::build(&Device::cpu(), &mesh, &SahOptions::default()).unwrap();
    for device in devices_for(mesh.len()) {
        let Some(gpu) = device.gpu() else { continue };
        let stream = Stream::new(gpu).unwrap();
        let resident = Resident::new(&stream, &mesh).unwrap();
        let error = Frames::new(gpu, &RenderOptions::default().size(0, 4)).unwrap_err();
        assert!(matches!(error, Error::OutOfRange { value: 0, .. }), "{error}");
        let mut frames = Frames::new(gpu, &RenderOptions::default().size(4, 4)).unwrap();
        assert!(matches!(frames.draw(&stream, &on_cpu, resident.mesh(), &camera), Err(Error::NotOnGpu)));
        let tree = SahTree::build(&device, &mesh, &SahOptions::default()).unwrap();
        let error = frames.draw(&stream, &tree, resident.mesh(), &camera.field_of_view(0.0)).unwrap_err();
        assert!(matches!(error, Error::OutOfRange { .. }), "{error}");
        frames.draw(&stream, &tree, resident.mesh(), &camera).unwrap();
        let fewer = Resident::new(&stream, &shapes::grid(2, [1, 2]).unwrap()).unwrap();
        let error = frames.draw(&stream, &tree, fewer.mesh(), &camera).unwrap_err();
        assert!(matches!(error, Error::Shape { expected: 8, got: 4, .. }), "{error}");
        assert_eq!(frames.to_image(&stream).unwrap().pixels.len(), 48);
    }
}
