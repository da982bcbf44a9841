//! The capitals nearest to some places, across the date line and all.
//!
//! `cargo run --example 01_nearest_cities`

mod arguments;

use arguments::arguments;
use kauri::{Device, KdTree, KdTreeOptions, LonLat, Result, SpatialIndex};

const CAPITALS: [(&str, f64, f64); 12] = [
    ("Apia", -171.77, -13.83),
    ("Berlin", 13.41, 52.52),
    ("Cairo", 31.25, 30.06),
    ("Canberra", 149.13, -35.28),
    ("Kathmandu", 85.32, 27.70),
    ("London", -0.13, 51.51),
    ("Nairobi", 36.82, -1.28),
    ("Paris", 2.35, 48.85),
    ("Suva", 178.44, -18.14),
    ("Tokyo", 139.69, 35.69),
    ("Washington", -77.04, 38.90),
    ("Wellington", 174.78, -41.29),
];

const PLACES: [(&str, f64, f64); 3] =
    [("Strasbourg", 7.75, 48.58), ("Taveuni, at 180 degrees", 180.0, -16.85), ("the North Pole", 0.0, 90.0)];

fn main() -> Result<()> {
    arguments("01_nearest_cities", 0, str::parse::<String>);
    // A GPU where there is one, the CPU otherwise; the answers are the same to the last bit.
    let device = Device::best()?;
    println!("on {device}: {}", device.reason());

    let lon_lat = |&(_, lon, lat): &(&str, f64, f64)| LonLat::new(lon, lat);
    let capitals: Vec<LonLat> = CAPITALS.iter().map(lon_lat).collect();
    let places: Vec<LonLat> = PLACES.iter().map(lon_lat).collect();

    let tree = KdTree::build(&device, &capitals, &KdTreeOptions::default())?;
    let near = tree.nearest(&places, 3)?;

    for (i, (place, ..)) in PLACES.iter().enumerate() {
        println!("nearest to {place}:");
        for (&id, meters) in near.row(i).ids().iter().zip(near.meters(i)) {
            println!("  {:<10} {:>6.0} km", CAPITALS[id as usize].0, meters / 1e3);
        }
    }
    Ok(())
}
