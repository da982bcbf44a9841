//! Rays through a mesh: how it looks from above, what lies in the shade, and how much is inside.
//!
//! `cargo run --release --example 07_rays -- [MESH.ply | MESH.obj]`; without a mesh it takes a knot. Files need `--features mesh`.

mod arguments;

use arguments::arguments;
use kauri::mesh::{Mesh, shapes};
use kauri::rays::{Hit, Ray, RayIndex};
use kauri::{Bvh, Device, Result};
use std::time::Instant;

/// Rows and columns of rays, and of what is printed.
const SIZE: [usize; 2] = [30, 72];
const SHADES: &[u8] = b"@#+-. ";

fn main() -> Result<()> {
    let named = arguments("07_rays [MESH.ply | MESH.obj]", 1, read).pop();
    let device = Device::best()?;
    println!("on {device}: {}", device.reason());
    let mesh = named.map_or_else(|| shapes::torus_knot([2, 3], 600, 60), Ok)?;
    let start = Instant::now();
    let bvh = Bvh::build(&device, &mesh)?;
    println!(
        "a hierarchy over {} triangles in {:.1?}; a ray costs {:.0} tests of boxes and triangles",
        bvh.len(),
        start.elapsed(),
        bvh.cost()?
    );

    // A ray down on every place of a grid over the mesh.
    let [low, high] = mesh.bounds().unwrap_or_default();
    let height = high[2] - low[2];
    let [rows, columns] = SIZE;
    let down = |i: usize| {
        let part = |i: usize, n: usize, axis: usize| {
            low[axis] + (i as f32 + 0.5) / n as f32 * (high[axis] - low[axis])
        };
        // Rows go down, y goes up.
        let at =
            [part(i % columns, columns, 0), part(rows - 1 - i / columns, rows, 1), high[2] + 0.1 * height];
        Ray::new(at, [0.0, 0.0, -1.0])
    };
    let rays: Vec<Ray> = (0..rows * columns).map(down).collect();

    // The closest hit is what one sees from above: the higher, the darker.
    let seen = bvh.closest_hits(&rays)?;
    for row in seen.t.chunks(columns) {
        let depth = |t: &f32| ((t / height - 0.1) * SHADES.len() as f32) as usize;
        let line: Vec<u8> = row.iter().map(|t| SHADES[depth(t).min(SHADES.len() - 1)]).collect();
        println!("{}", String::from_utf8_lossy(&line));
    }

    // Whether anything is hit, whatever it may be, is what a shadow needs. The sun stands low in the east.
    let lit: Vec<usize> = (0..rays.len()).filter(|&i| seen.triangles[i] != Hit::NO_TRIANGLE).collect();
    let to_sun = |&i: &usize| {
        // A little above the mesh, that no ray hits where it begins.
        let [x, y, z] = rays[i].origin;
        Ray::new([x, y, z - seen.t[i] + 1e-4 * height], [1.0, 0.0, 0.3])
    };
    let in_shade = bvh.any_hits(&lit.iter().map(to_sun).collect::<Vec<_>>())?;
    let count = in_shade.iter().filter(|&&is_hit| is_hit).count();
    println!("{} of {} rays hit, {count} of these places are in the shade", lit.len(), rays.len());

    // All hits, in pairs where a ray goes in and comes out again, are what is inside.
    let all = bvh.all_hits(&rays)?;
    let inside = |ray: usize| {
        let at: Vec<f32> = all.row(ray).iter().map(|hit| hit.t).collect();
        at.chunks_exact(2).map(|pair| pair[1] - pair[0]).sum::<f32>()
    };
    // Of as many columns of the box as there are rays.
    let part = (0..all.len()).map(inside).sum::<f32>() / (all.len() as f32 * height);
    println!(
        "{} hits in all; if the mesh is closed, it fills {:.1} % of its box",
        all.values().len(),
        100.0 * part
    );
    Ok(())
}

#[cfg(feature = "mesh")]
fn read(path: &str) -> Result<Mesh> {
    kauri::io::read_mesh(path)
}

#[cfg(not(feature = "mesh"))]
fn read(_: &str) -> Result<Mesh, &'static str> {
    Err("files of meshes need `--features mesh`")
}
