//! Frames that stay on the device: nearly the pictures that are made on the host.

use kauri::device::Stream;
use kauri::mesh::{Mesh, shapes};
use kauri::render::{self, Camera, Frames, RenderOptions};
use kauri::sah::{SahOptions, SahTree};
use kauri::{Device, Error};
use kauri_tests::devices_for;

const SIZE: [u32; 2] = [60, 40];

#[test]
fn frames_are_nearly_pictures() {
    let [knot, land, nothing] =
        [shapes::torus_knot([2, 3], 60, 8), shapes::terrain(20, 3), shapes::soup(0, 0.1, 1)];
    let (knot, num_knot) = knot.map(|knot| (knot.clone(), knot.len())).unwrap();
    let scaled = |by: f32| {
        let vertices = knot.vertices().iter().map(|vertex| vertex.map(|x| x * by)).collect();
        Mesh::new(vertices, knot.triangles().to_vec()).unwrap()
    };
    // The simulator takes the last two.
    let few = shapes::torus_knot([2, 3], 3, 3).unwrap();
    let meshes = [knot.clone(), scaled(1e-15), scaled(1e15), land.unwrap(), few, nothing.unwrap()];
    for mesh in meshes {
        let camera = Camera::new([0.6, -1.0, 0.5], [0.0; 3]).framing(mesh.vertices(), 1.5);
        for device in devices_for(mesh.len()) {
            let tree = SahTree::build(&device, &mesh, &SahOptions::default()).unwrap();
            let Some(gpu) = device.gpu() else { continue };
            let stream = Stream::new(gpu).unwrap();
            let mut both = Vec::new();
            for shadows in [true, false] {
                let options =
                    RenderOptions::default().size(SIZE[0], SIZE[1]).occlusion_rays(0).shadows(shadows);
                let expected = render::image(&tree, &mesh, &camera, &options).unwrap();
                let mut frames = Frames::new(gpu, &options).unwrap();
                // The second is made with what the first left.
                for _ in 0..2 {
                    frames.draw(&stream, &tree, &camera).unwrap();
                }
                let frame = frames.to_image(&stream).unwrap();
                assert_eq!((frame.width, frame.height), (expected.width, expected.height));
                let differ = |&(a, b): &(&u8, &u8)| a.abs_diff(*b) > 2;
                let others = frame.pixels.iter().zip(&expected.pixels).filter(differ).count();
                // At the edges of shadows.
                assert!(others <= frame.pixels.len() / 100, "{others} bytes on {device}");
                let bright = frame.pixels.iter().map(|&byte| u64::from(byte)).sum::<u64>();
                assert!(bright > 40 * frame.pixels.len() as u64);
                both.push(frame.pixels);
            }
            // Some of the knot lies in its own shadow.
            let darker = both[0].iter().zip(&both[1]).filter(|(with, without)| with < without).count();
            assert!(darker > both[0].len() / 50 || mesh.len() != num_knot, "{darker} bytes on {device}");
        }
    }
}

#[test]
fn frames_that_cannot_be() {
    let mesh = shapes::grid(2, [2, 2]).unwrap();
    let camera = Camera::new([0.0, -1.0, 1.0], [0.0; 3]);
    let on_cpu = SahTree::build(&Device::cpu(), &mesh, &SahOptions::default()).unwrap();
    for device in devices_for(mesh.len()) {
        let Some(gpu) = device.gpu() else { continue };
        let stream = Stream::new(gpu).unwrap();
        let error = Frames::new(gpu, &RenderOptions::default().size(0, 4)).unwrap_err();
        assert!(matches!(error, Error::OutOfRange { value: 0, .. }), "{error}");
        let mut frames = Frames::new(gpu, &RenderOptions::default().size(4, 4)).unwrap();
        assert!(matches!(frames.draw(&stream, &on_cpu, &camera), Err(Error::NotOnGpu)));
        let tree = SahTree::build(&device, &mesh, &SahOptions::default()).unwrap();
        let error = frames.draw(&stream, &tree, &camera.field_of_view(0.0)).unwrap_err();
        assert!(matches!(error, Error::OutOfRange { .. }), "{error}");
        frames.draw(&stream, &tree, &camera).unwrap();
        assert_eq!(frames.to_image(&stream).unwrap().pixels.len(), 48);
    }
}
