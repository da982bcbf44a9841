//! Photon density on a GPU and on the CPU: the light on a wavy floor, from the photons within a radius and from the nearest ones. A
//! visitor of the photons around each place is written once: a kernel of this project uses it on the GPU, `SpatialIndex::visit` on the CPU.
//!
//! `cargo run --release --example 11_own_visitor -- [cuda | cuda:N | sim]` in this project's folder. Without an argument it takes the first
//! GPU, or the simulator where there is none. On a GPU it also needs kauri's own kernels: run `cargo xtask ptx` in the clone first.

use kauri::device::{Buffer, Stream, Workspace};
use kauri::query::{DeviceIndex, DeviceQueries, QueryOptions};
use kauri::{Device, KdTree, KdTreeOptions, Result, SpatialIndex};
use own_kernels::photons::{
    Nearest, Photon, Scene, WithinRadius, own_irradiance_of_nearest, own_irradiance_within,
};
use std::f32::consts::TAU;

const PTX: &str = include_str!(concat!(env!("OUT_DIR"), "/own.ptx"));

/// The radius within which photons count.
const RADIUS: f32 = 0.05;

/// Prints the reason and the usage, and ends the program.
fn usage(reason: &str) -> ! {
    eprintln!("error: {reason}\nusage: 11_own_visitor [cuda | cuda:N | sim]");
    std::process::exit(2)
}

fn main() -> Result<()> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let name = match &names[..] {
        [] if Device::cuda(0).is_ok() => "cuda",
        [] => "sim",
        [name] => name,
        _ => usage("one argument is expected"),
    };
    let device = Device::from_name(name).unwrap_or_else(|error| usage(&error.to_string()));
    let gpu = device.gpu().unwrap_or_else(|| usage("own kernels need a GPU or the simulator"));
    // SAFETY: the family is none of kauri's.
    unsafe { gpu.load_module("own", PTX) }?;
    let stream = Stream::new(gpu)?;

    // Photons fall from above, and every eighth comes through the floor from below.
    let (num_photons, num_places) = if name == "sim" { (4_000, 60) } else { (1_000_000, 1_000_000) };
    let hits: Vec<[f32; 3]> = (0..num_photons).map(|i| floor(i).0).collect();
    let power = 1.0 / num_photons as f32;
    let photon = |i| [0.0, 0.0, if i % 8 == 0 { -1.0 } else { 1.0 }, power];
    let photons: Vec<Photon> = (0..num_photons).map(photon).collect();
    let (places, normals): (Vec<[f32; 3]>, Vec<[f32; 3]>) =
        (0..num_places).map(|i| floor(num_photons + i)).unzip();

    // On the GPU.
    let workspace = &mut Workspace::new(gpu);
    let coords = Buffer::from_slice(&stream, hits.as_flattened(), "places of photons")?;
    let queries = Buffer::from_slice(&stream, places.as_flattened(), "places")?;
    let normals_on = Buffer::from_slice(&stream, &normals, "normals")?;
    let photons_on = Buffer::from_slice(&stream, photons.as_flattened(), "photons")?;
    let scene = Scene { normals: normals_on.slice(), photons: photons_on.slice() };
    let mut within = Buffer::<f32>::uninitialized(gpu, num_places, "irradiances within the radius")?;
    let mut of_nearest = Buffer::<f32>::uninitialized(gpu, num_places, "irradiances of the nearest photons")?;
    let tree = KdTree::<[f32; 3]>::build_on(&stream, workspace, &coords, &KdTreeOptions::default())?;
    let options = QueryOptions::default().radius(RADIUS);
    let prepared = tree.prepare(&stream, &options)?;
    let queries = DeviceQueries::Coordinates(&queries);
    tree.visit_on(&stream, workspace, queries, &prepared, |num_blocks, visits| {
        // SAFETY: there are normals and irradiances for all places, and photons for all points.
        unsafe { stream.launch::<own_irradiance_within>(num_blocks, (visits, scene, within.slice_mut())) }
    })?;
    tree.visit_on(&stream, workspace, queries, &prepared, |num_blocks, visits| {
        // SAFETY: as above.
        unsafe {
            stream.launch::<own_irradiance_of_nearest>(num_blocks, (visits, scene, of_nearest.slice_mut()))
        }
    })?;
    let (within, of_nearest) = (within.to_vec(&stream)?, of_nearest.to_vec(&stream)?);

    // On the CPU.
    let tree = KdTree::build(&Device::cpu(), &hits, &KdTreeOptions::default())?;
    let photon = |id: u32| photons[id as usize];
    let within_on_cpu = tree.visit(
        &places,
        &options,
        |query, bound| WithinRadius::new(bound, normals[query], photon),
        |_, photons| photons.irradiance(),
    )?;
    let of_nearest_on_cpu = tree.visit(
        &places,
        &options,
        |query, bound| Nearest::new(bound, normals[query], photon),
        |_, photons| photons.irradiance(),
    )?;

    for place in (0..num_places).step_by(num_places / 5) {
        let ([x, y, _], within, nearest) = (places[place], within[place], of_nearest[place]);
        println!("({x:.2}, {y:.2}): {within:.3} within {RADIUS}, {nearest:.3} by the nearest photons");
    }
    // Both add the nearest photons in the same order, but the photons within the radius in different ones.
    assert_eq!(of_nearest, of_nearest_on_cpu);
    let is_near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-3 * b;
    assert!(within.iter().zip(&within_on_cpu).all(is_near));
    println!("{num_photons} photons, {num_places} places: {device} and the CPU agree");
    Ok(())
}

/// Returns place `i` on a wavy floor, and its normal.
fn floor(i: usize) -> ([f32; 3], [f32; 3]) {
    // Multiples of two irrational numbers, modulo 1, are spread evenly.
    let [x, y] = [0.754_877_666, 0.569_840_291].map(|step: f64| (i as f64 * step).fract() as f32);
    let slope = 0.02 * TAU * (TAU * x).cos();
    let length = (slope * slope + 1.0).sqrt();
    ([x, y, 0.02 * (TAU * x).sin()], [-slope / length, 0.0, 1.0 / length])
}
