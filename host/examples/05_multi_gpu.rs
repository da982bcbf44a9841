//! A balanced tree on several GPUs: each GPU sorts a part of the points, the GPUs exchange points, and each builds a subtree.
//!
//! `cargo run --release --example 05_multi_gpu -- [DEVICE]...`, such as `cuda:0 cuda:1`. Without names it uses all CUDA devices, up to
//! eight; with `--features sim` and no CUDA device, two simulated ones.

mod arguments;

use arguments::arguments;
use kauri::balanced::{BalancedKdTree, BalancedOptions};
use kauri::{Device, Result, SpatialIndex};
use std::time::Instant;

fn main() -> Result<()> {
    let named = arguments("05_multi_gpu [DEVICE]...", 8, Device::from_name);
    let devices = if named.is_empty() { all_devices()? } else { named };
    let Some(first) = devices.first() else {
        println!("no GPU here; `--features sim` simulates two");
        return Ok(());
    };
    let is_simulated = first.gpu().is_some_and(|gpu| gpu.info().id == "sim");
    let num_points = if is_simulated { 5000 } else { 1 << 24 };
    let points: Vec<[f32; 4]> = (0..num_points).map(point).collect();

    let options = BalancedOptions::default();
    let alone = timed(&format!("alone on {first}"), || BalancedKdTree::build(first, &points, &options))?;
    // A list of one device is built in halves on it.
    let what = format!("over {} of them", devices.len());
    let tree = timed(&what, || BalancedKdTree::build_over(&devices, &points, &options))?;
    for phase in &tree.stats().phases {
        println!("  {:>9}: {:8.2} ms", phase.name, 1e3 * phase.duration.as_secs_f64());
    }

    // The tree is the same, to the last bit. Each subtree remains in the memory of its GPU.
    assert!(tree.medians()? == alone.medians()?);
    tree.verify()?;
    println!("{} nodes, the root is point {}", tree.len(), tree.medians()?[0]);

    // A query runs on all devices and merges their results.
    let near = tree.nearest(&points[..3], 2)?;
    assert!(near.ids() == alone.nearest(&points[..3], 2)?.ids());
    println!("the neighbor of point 0 is point {}", near.row(0).0[1]);
    Ok(())
}

/// Returns all GPUs, at most eight.
fn all_devices() -> Result<Vec<Device>> {
    let num_gpus = Device::list_cuda().map_or(0, |list| list.len());
    if num_gpus > 0 {
        return (0..num_gpus.min(8)).map(Device::cuda).collect();
    }
    #[cfg(feature = "sim")]
    return (0..2).map(|_| Device::from_name("sim")).collect();
    #[cfg(not(feature = "sim"))]
    Ok(Vec::new())
}

/// Point `i` of a sequence that fills the unit cube evenly (Roberts 2018).
fn point(i: u32) -> [f32; 4] {
    [0.856_674_88, 0.733_891_86, 0.628_706_73, 0.538_597_27]
        .map(|step: f64| (f64::from(i) * step).fract() as f32)
}

fn timed<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let start = Instant::now();
    let result = work()?;
    println!("built {what} in {:.1} ms", 1e3 * start.elapsed().as_secs_f64());
    Ok(result)
}
