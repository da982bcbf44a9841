//! The buildings of a made-up city that a flood reaches, and the streets within 20 meters of a building: joins of bounding boxes.
//!
//! `cargo run --release --example 09_box_join -- [NUM_BUILDINGS]`

mod arguments;

use arguments::arguments;
use kauri::primitives::generate::splitmix64;
use kauri::{BoxJoin, Device, Result};
use std::time::Instant;

/// Meters between streets.
const BLOCK: f32 = 100.0;

/// A box: its low and its high corner, in meters.
type Bounds = [[f32; 2]; 2];

fn main() -> Result<()> {
    let num_buildings =
        arguments("09_box_join [NUM_BUILDINGS]", 1, str::parse::<usize>).pop().unwrap_or(200_000);
    let device = Device::best()?;
    println!("on {device}: {}", device.reason());

    // Twenty buildings for each block of the city, which is a square.
    let num_blocks = ((num_buildings as f32 / 20.0).sqrt().ceil() as usize).max(1);
    let city = num_blocks as f32 * BLOCK;
    let mut random = (0..).map(|i| (splitmix64(i) >> 40) as f32 / (1 << 24) as f32);
    let mut between = |low: f32, high: f32| low + random.next().unwrap_or(0.0) * (high - low);
    let buildings: Vec<Bounds> = (0..num_buildings)
        .map(|_| {
            let low = [between(0.0, city), between(0.0, city)];
            [low, low.map(|x| x + between(6.0, 40.0))]
        })
        .collect();
    let along = |i: usize, block: usize| {
        let (at, begin) = (i as f32 * BLOCK, block as f32 * BLOCK);
        [[[begin, at - 3.0], [begin + BLOCK, at + 3.0]], [[at - 3.0, begin], [at + 3.0, begin + BLOCK]]]
    };
    let streets: Vec<Bounds> =
        (0..=num_blocks).flat_map(|i| (0..num_blocks).flat_map(move |block| along(i, block))).collect();
    let flood: Vec<Bounds> = (0..10)
        .map(|_| {
            let low = [between(0.0, city), between(0.0, city)];
            [low, [low[0] + between(50.0, city / 4.0), low[1] + between(50.0, city / 4.0)]]
        })
        .collect();

    let start = Instant::now();
    let reached = BoxJoin::intersects().rows(&device, &buildings, &flood)?;
    let num_reached = (0..reached.len()).filter(|&building| !reached.row(building).is_empty()).count();
    let enclosed = BoxJoin::contains().rows(&device, &flood, &buildings)?;
    println!(
        "{num_reached} of {num_buildings} buildings are flooded, {} times a flooded area has a whole building ({:.1?})",
        enclosed.ids().len(),
        start.elapsed()
    );

    let start = Instant::now();
    let near = BoxJoin::within(20.0).rows(&device, &streets, &buildings)?;
    let (busiest, num) = (0..near.len())
        .map(|street| (street, near.row(street).len()))
        .max_by_key(|&(_, num)| num)
        .unwrap_or_default();
    println!(
        "{} pairs of a street and a building within 20 m of it; street {busiest} has {num} ({:.1?})",
        near.ids().len(),
        start.elapsed()
    );
    Ok(())
}
