//! A knot that twists, above a pond with waves: a hierarchy anew for every frame, and how much of each one sees.
//!
//! `cargo run --release --example 08_animation -- [FRAMES]`

mod arguments;

use arguments::arguments;
use kauri::mesh::{Mesh, Motion, shapes};
use kauri::rays::Hit;
use kauri::render::{self, Camera};
use kauri::{Bvh, Device, Result};
use std::time::Instant;

const SIZE: [u32; 2] = [320, 240];

fn main() -> Result<()> {
    let frames = arguments("08_animation [FRAMES]", 1, str::parse::<u32>).pop().unwrap_or(12);
    let device = Device::best()?;
    println!("on {device}: {}", device.reason());

    let knot = shapes::torus_knot([2, 3], 400, 40)?;
    let pond = pond()?;
    // What does not move from frame to frame is made once: memory, triangles, and the camera.
    let (mut moved_knot, mut moved_pond) = (knot.clone(), pond.clone());
    let mut bvh = Bvh::build(&device, &both(&knot, &pond)?)?;
    let camera = Camera::new([6.0, -12.0, 7.0], [0.0; 3]);

    println!("frame  build   trace   knot   pond  new triangles");
    let mut before: Vec<u32> = Vec::new();
    for frame in 0..frames {
        let time = f64::from(frame) / f64::from(frames);
        Motion::Twist.apply(&knot, time, &mut moved_knot)?;
        Motion::Waves.apply(&pond, time, &mut moved_pond)?;
        let mesh = both(&moved_knot, &moved_pond)?;

        let start = Instant::now();
        bvh.rebuild(&mesh)?;
        let built = start.elapsed();
        let ids = render::triangle_ids(&bvh, &camera, SIZE)?;
        let traced = start.elapsed() - built;

        let is_knot = |&&id: &&u32| (id as usize) < knot.len();
        let of_knot = ids.iter().filter(is_knot).count();
        let of_pond = ids.iter().filter(|&&id| id != Hit::NO_TRIANGLE).count() - of_knot;
        // Those that come into view.
        let mut seen = ids;
        seen.sort_unstable();
        seen.dedup();
        let new = seen.iter().filter(|id| before.binary_search(id).is_err()).count();
        before = seen;

        let percent = |pixels: usize| 100.0 * pixels as f64 / f64::from(SIZE[0] * SIZE[1]);
        let (of_knot, of_pond) = (percent(of_knot), percent(of_pond));
        println!("{frame:>5}  {built:.0?}  {traced:.0?}  {of_knot:>4.1} %  {of_pond:>4.1} %  {new:>6}");
    }
    Ok(())
}

/// A square of water below the knot.
fn pond() -> Result<Mesh> {
    let squares = 100;
    let grid = shapes::grid(2, [squares; 2])?;
    let place = |x: f32| 12.0 * (x / squares as f32 - 0.5);
    let vertices = grid.vertices().iter().map(|&[x, y, _]| [place(x), place(y), -2.5]).collect();
    Mesh::new(vertices, grid.triangles().to_vec())
}

/// Two meshes as one, the triangles of the first before those of the second.
fn both(one: &Mesh, other: &Mesh) -> Result<Mesh> {
    let first = one.vertices().len() as u32;
    let shifted = other.triangles().iter().map(|corners| corners.map(|corner| corner + first));
    Mesh::new(
        [one.vertices(), other.vertices()].concat(),
        one.triangles().iter().copied().chain(shifted).collect(),
    )
}
