//! Points that move on a GPU: a tree and queries on device buffers and the caller's stream, anew for every frame without an
//! allocation.
//!
//! `cargo run --release --example 02_device_buffers`; with `--features sim` the simulator stands in where there is no GPU.

mod arguments;

use arguments::arguments;
use kauri::device::{Buffer, Event, Stream, Workspace};
use kauri::query::{DeviceIndex, DeviceQueries, QueryOptions};
use kauri::{Device, KdTree, KdTreeOptions, Result};

/// Neighbors of each point.
const K: usize = 8;
const FRAMES: u32 = 3;

fn main() -> Result<()> {
    arguments("02_device_buffers", 0, str::parse::<String>);
    let Some((device, num_points)) = gpu_device()? else {
        println!("no GPU here, and without one there are no device buffers; `--features sim` simulates one");
        return Ok(());
    };
    let Some(gpu) = device.gpu() else { return Ok(()) };
    println!("{num_points} points on {device}");

    // All that is allocated, once.
    let stream = Stream::new(gpu)?;
    let mut workspace = Workspace::new(gpu);
    let mut coords = Buffer::from_slice(&stream, points(num_points, 0).as_flattened(), "points")?;
    let mut ids = Buffer::<u32>::uninitialized(gpu, num_points * K, "ids of neighbors")?;
    let mut dist2 = Buffer::<f32>::uninitialized(gpu, num_points * K, "distances of neighbors")?;
    let [start, end] = [Event::new(gpu)?, Event::new(gpu)?];

    let options = KdTreeOptions::default();
    let mut tree = KdTree::<[f32; 3]>::build_on(&stream, &mut workspace, &coords, &options)?;
    // Options are checked, and brought to the device, before the frames.
    let prepared = tree.prepare(&stream, &QueryOptions::default())?;

    for frame in 1..=FRAMES {
        let allocations = gpu.memory_use().allocations;
        coords.copy_from_slice(&stream, points(num_points, frame).as_flattened())?;
        stream.record(&start)?;
        tree.rebuild_on(&stream, &mut workspace, &coords, &options)?;
        let others = DeviceQueries::SelfQuery { include_self: false };
        tree.nearest_on(&stream, &mut workspace, others, K, &prepared, &mut ids, &mut dist2)?;
        stream.record(&end)?;

        // Nothing has waited for the device so far. The results stay where a next kernel would read them; only the row of point 0
        // comes to the host.
        let row = ids.front_to_vec(&stream, K)?;
        let allocations = gpu.memory_use().allocations - allocations;
        let time = end.elapsed_since(&start)?;
        println!("frame {frame}: {time:.1?}, {allocations} allocations, neighbors of point 0: {row:?}");
    }
    Ok(())
}

/// A GPU and the number of points for it, if there is one.
fn gpu_device() -> Result<Option<(Device, usize)>> {
    let device = Device::best()?;
    if !device.is_cpu() {
        return Ok(Some((device, 1_000_000)));
    }
    #[cfg(feature = "sim")]
    return Ok(Some((Device::sim(kauri::device::SimOptions::default())?, 300)));
    #[cfg(not(feature = "sim"))]
    Ok(None)
}

/// Points in a cube, each of which goes its own way from frame to frame.
fn points(num_points: usize, frame: u32) -> Vec<[f32; 3]> {
    // Multiples of three irrational numbers, modulo 1, are spread evenly.
    const STEPS: [f64; 3] = [0.819_172_513, 0.671_043_607, 0.549_700_478];
    let place =
        |i: usize| STEPS.map(|step| ((i as f64 * step + f64::from(frame) * 0.1 * step).fract()) as f32);
    (0..num_points).map(place).collect()
}
