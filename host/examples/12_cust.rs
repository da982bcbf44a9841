//! One program of two libraries: `cust` owns the context, the stream and the memory, and kauri builds a tree and queries it there.
//! Then `cust` launches a kernel of kauri.
//!
//! `cargo run --release --example 12_cust --features cust`

mod arguments;

use arguments::arguments;
use cust::launch;
use cust::memory::{CopyDestination, DeviceBuffer};
use cust::module::Module;
use cust::stream::{Stream, StreamFlags};
use kauri::device::{Buffer, Workspace, cust_bridge};
use kauri::query::{DeviceIndex, DeviceQueries, QueryOptions};
use kauri::{Device, KdTree, KdTreeOptions};
use kauri_kernels::block::tile::tile_items;
use kauri_kernels::policy::STREAM_ROWS;
use kauri_kernels::primitives::generate::primitives_iota;
use std::error::Error;
use std::sync::Arc;

const NUM_POINTS: usize = 100_000;

fn main() -> Result<(), Box<dyn Error>> {
    arguments("12_cust", 0, str::parse::<String>);
    // kauri's message says what is missing; that of cust would ask the driver for it.
    if let Err(reason) = Device::cuda(0) {
        println!("no GPU here: {reason}");
        return Ok(());
    }

    // All that cust owns.
    let context = cust::quick_init()?;
    let stream = Arc::new(Stream::new(StreamFlags::DEFAULT, None)?);
    let coords = DeviceBuffer::from_slice(points().as_flattened())?;
    let ids = DeviceBuffer::<u32>::zeroed(NUM_POINTS)?;
    let dist2 = DeviceBuffer::<f32>::zeroed(NUM_POINTS)?;

    // kauri borrows the points, and takes the memory of the results for the time of the query. Nothing is copied.
    let device = Device::from_cust(&context)?;
    let gpu = device.gpu().ok_or("a context belongs to a GPU")?;
    let on = kauri::device::Stream::from_cust(gpu, stream.clone())?;
    let coords = Buffer::borrow_cust(gpu, &coords)?;
    let (mut ids, mut dist2) = (Buffer::from_cust(gpu, ids)?, Buffer::from_cust(gpu, dist2)?);
    let mut workspace = Workspace::new(gpu);
    let tree = KdTree::<[f32; 3]>::build_on(&on, &mut workspace, &coords, &KdTreeOptions::default())?;
    let prepared = tree.prepare(&on, &QueryOptions::default())?;
    let queries = DeviceQueries::SelfQuery { include_self: true };
    tree.nearest_on(&on, &mut workspace, queries, 1, &prepared, &mut ids, &mut dist2)?;
    let (ids, dist2) = (ids.into_cust()?, dist2.into_cust()?);

    // cust launches a kernel of kauri that writes 0, 1, 2 ... A view is two parameters, its address and its length.
    let image = cust_bridge::kernel_image::<primitives_iota<u32>>(gpu)?;
    let module = Module::from_ptx(&image.ptx, &[])?;
    let iota = image.function(&module)?;
    let numbers = DeviceBuffer::<u32>::zeroed(NUM_POINTS)?;
    let num_blocks = NUM_POINTS.div_ceil(tile_items::<u32, STREAM_ROWS>()) as u32;
    // SAFETY: the parameters are those of `primitives_iota`, and the buffer lives until the stream has done the work.
    unsafe {
        launch!(iota<<<num_blocks, image.block_threads, image.shared_bytes, stream>>>(
            numbers.as_device_ptr(),
            numbers.len(),
            0u64,
            1u64
        ))?;
    }
    stream.synchronize()?;

    // The nearest point of a point is the point itself.
    let mut nearest = vec![0; NUM_POINTS];
    ids.copy_to(&mut nearest)?;
    assert_eq!(nearest, numbers.as_host_vec()?);
    assert!(dist2.as_host_vec()?.iter().all(|&dist2| dist2 == 0.0));
    println!("{NUM_POINTS} points on {device}: each finds itself; memory, stream and one launch by cust");
    Ok(())
}

/// Distinct points in a cube.
fn points() -> Vec<[f32; 3]> {
    // Multiples of three irrational numbers, modulo 1, are spread evenly.
    const STEPS: [f64; 3] = [0.819_172_513, 0.671_043_607, 0.549_700_478];
    (0..NUM_POINTS).map(|i| STEPS.map(|step| (i as f64 * step).fract() as f32)).collect()
}
