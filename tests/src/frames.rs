//! Frames in device memory against pictures of the host.

use crate::rays::Resident;
use kauri::device::{Gpu, Stream};
use kauri::mesh::Mesh;
use kauri::rays::RayIndex;
use kauri::render::{self, Camera, Frames, RenderOptions};
use kauri::sah::{SahOptions, SahTree};
use kauri::{Bvh, Device};

/// Renders a mesh that fills the frame, with and without shadows and ambient occlusion, and checks that the frames nearly equal the pictures.
/// Returns the number of bytes that shadows make darker.
pub fn check(gpu: &Gpu, mesh: &Mesh, [width, height]: [u32; 2]) -> usize {
    let camera = Camera::new([0.6, -1.0, 0.5], [0.0; 3]).framing(mesh.vertices(), 1.5);
    let device = Device::from_gpu(gpu.clone());
    let tree = SahTree::build(&device, mesh, &SahOptions::default()).unwrap();
    let bvh = Bvh::build(&device, mesh).unwrap();
    let on_host = SahTree::build(&Device::cpu(), mesh, &SahOptions::default()).unwrap();
    let stream = Stream::new(gpu).unwrap();
    let resident = Resident::new(&stream, mesh).unwrap();
    let [with, without, occluded] = [(true, 0), (false, 0), (false, 3)].map(|(shadows, num)| {
        let options = RenderOptions::default().size(width, height).occlusion_rays(num).shadows(shadows);
        let expected = render::image(&on_host, mesh, &camera, &options).unwrap();
        let mut frames = Frames::new(gpu, &options).unwrap();
        // The second frame reuses the memory of the first.
        let [frame, by_bvh] = [&tree as &dyn RayIndex, &bvh].map(|index| {
            frames.draw(&stream, index, resident.mesh(), &camera).unwrap();
            frames.to_image(&stream).unwrap()
        });
        assert!(frame.pixels == by_bvh.pixels, "another frame by the other index on {device}");
        assert_eq!((frame.width, frame.height), (expected.width, expected.height));
        let differ = |&(a, b): &(&u8, &u8)| a.abs_diff(*b) > 2;
        let others = frame.pixels.iter().zip(&expected.pixels).filter(differ).count();
        // Pixels may differ at the edges of shadows and of what occludes the sky.
        assert!(others <= frame.pixels.len() / 100, "{others} bytes on {device}");
        let bright = frame.pixels.iter().map(|&byte| u64::from(byte)).sum::<u64>();
        assert!(bright > 40 * frame.pixels.len() as u64, "a dark frame on {device}");
        frame.pixels
    });
    let num_darker =
        |pixels: &[u8]| pixels.iter().zip(&without).filter(|(with, without)| with < without).count();
    assert!(num_darker(&occluded) > 0 || mesh.is_empty(), "nothing is occluded on {device}");
    num_darker(&with)
}
