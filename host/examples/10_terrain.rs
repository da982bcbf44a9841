//! A terrain model of a laser scan: from points to a GeoTIFF file and a hillshade. The program `kauri dem` does this with LAZ files.
//!
//! `cargo run --release --example 10_terrain --features terrain -- [NUM_POINTS]`

mod arguments;

use arguments::arguments;
use kauri::io::{GeoTiffOptions, ReferenceSystem, write_geotiff, write_hillshade_png};
use kauri::lidar::{Lidar, LidarClass};
use kauri::terrain::{HillshadeOptions, Method, RasterGrid, Terrain};
use kauri::{Device, Result};
use std::time::Instant;

/// Side of a cell in meters.
const RESOLUTION: f64 = 1.0;

fn main() -> Result<()> {
    let num_points = arguments("10_terrain [NUM_POINTS]", 1, str::parse::<u64>).pop().unwrap_or(200_000);
    let device = Device::best()?;
    println!("on {device}: {}", device.reason());

    // The points of the ground and of the water, as integers on a lattice. `io::CloudFiles` reads them from a LAZ file.
    let scan = Lidar::with_density(num_points, 2.0, 4);
    let lattice = scan.lattice();
    let mut points: Vec<[i32; 3]> = Vec::new();
    for point in scan.points(0..scan.len())? {
        if matches!(point.class, LidarClass::Ground | LidarClass::Water) {
            points.push(lattice.nearest(point.position)?);
        }
    }

    let start = Instant::now();
    let terrain = Terrain::new(&device, &points, &lattice)?;
    let grid = RasterGrid::covering(scan.bounds(), RESOLUTION)?;
    let heights = terrain.raster(&grid, &Method::Tin { max_edge: f64::INFINITY })?;
    println!("{} heights from {} points in {:.1?}", grid.len(), points.len(), start.elapsed());

    let folder = std::env::temp_dir();
    let (dem, picture) = (folder.join("kauri-dem.tif"), folder.join("kauri-dem.png"));
    write_geotiff(
        &dem,
        &heights,
        &GeoTiffOptions::default().reference_system(ReferenceSystem::projected(25833)),
    )?;
    write_hillshade_png(&picture, &heights.hillshade(&HillshadeOptions::default().z_factor(2.0))?)?;
    println!("wrote {} and {}", dem.display(), picture.display());
    Ok(())
}
