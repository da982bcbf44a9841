//! Points that come and go: a sliding window over a stream of positions, with the nearest neighbors of each new one.
//!
//! `cargo run --release --example 13_rtree`

mod arguments;

use arguments::arguments;
use kauri::{Device, RTree, Result, SpatialIndex};

/// Positions of a batch.
const BATCH: usize = 10_000;
/// Batches in the window.
const WINDOW: usize = 5;

fn main() -> Result<()> {
    arguments("13_rtree", 0, str::parse::<String>);
    let mut tree = RTree::build(&Device::best()?, &[])?;
    let mut batches = Vec::new();
    for second in 0..8 {
        let positions = positions(second);
        if batches.len() == WINDOW {
            // The oldest batch leaves the window.
            let oldest: Vec<u32> = batches.remove(0);
            tree.remove(&oldest)?;
        }
        if !tree.is_empty() {
            let near = tree.nearest(&positions, 1)?;
            let close = near.dist2().iter().filter(|&&dist2| dist2 < 1e-6).count();
            println!(
                "second {second}: {close} of {BATCH} new positions are within 0.001 of {} older ones",
                tree.len()
            );
        }
        batches.push(tree.insert(&positions)?.collect());
    }
    Ok(())
}

/// Positions in a square.
fn positions(second: usize) -> Vec<[f32; 2]> {
    // Multiples of two irrational numbers, modulo 1, are spread evenly.
    const STEPS: [f64; 2] = [0.754_877_666, 0.569_840_291];
    let place = |i: usize| STEPS.map(|step| ((second * BATCH + i) as f64 * step).fract() as f32);
    (0..BATCH).map(place).collect()
}
