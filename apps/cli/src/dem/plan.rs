//! `--plan`: what a run would do.

use indicatif::BinaryBytes;
use std::io::Write;

use super::Dem;
use crate::Result;
use crate::text::{table, thousands};
use kauri::Device;
use kauri::io::CloudFiles;
use kauri::terrain::RasterGrid;

/// Bytes of a point in host memory (see `Terrain::read`).
const HOST_POINT: u64 = 12;
/// Bytes of a point on the device while a raster is computed.
const DEVICE_POINT: u64 = 100;
/// Bytes of a cell.
const CELL: u64 = 4;

/// Prints the plan.
pub(super) fn write(
    dem: &Dem,
    files: &CloudFiles,
    grid: &RasterGrid,
    device: &Device,
    out: &mut dyn Write,
) -> Result<()> {
    let (points, cells) = (files.num_points(), grid.len() as u64);
    // All rasters, the model that is computed from them, and its hillshade.
    let num_layers = dem.model.layers().len() as u64;
    let num_rasters = num_layers + u64::from(num_layers > 1) + u64::from(dem.hillshade.is_some());
    let host = num_layers * HOST_POINT * points + num_rasters * CELL * cells;
    let [west, north] = grid.corner();
    let [width, height] = [grid.columns(), grid.rows()].map(|cells| f64::from(cells) * grid.resolution());
    let system = files.reference_system().map_or("none".to_owned(), ToString::to_string);
    let bytes = |num: u64| BinaryBytes(num).to_string();
    let on_device = DEVICE_POINT * points + CELL * cells;
    let memory = if device.is_cpu() {
        format!("up to {}", bytes(host + on_device))
    } else {
        format!("up to {}, and {} of the device", bytes(host), bytes(on_device))
    };
    let rows = [
        ["files", &thousands(files.files().len())],
        ["points", &format!("{}, or fewer that are kept", thousands(points as usize))],
        ["CRS", &system],
        ["model", &format!("{} by {}", dem.model.name(), dem.method.name())],
        [
            "cells",
            &format!(
                "{} x {} of {}",
                thousands(grid.columns() as usize),
                thousands(grid.rows() as usize),
                grid.resolution()
            ),
        ],
        ["area", &format!("x {west} to {}, y {} to {north}", west + width, north - height)],
        [
            "memory",
            &format!("{memory}; if less is free, parts of the raster one by one, with a temporary file"),
        ],
        ["device", &format!("{device}; {}", device.reason())],
        ["output", &dem.out.display().to_string()],
    ];
    out.write_all(table(&rows.map(|row| row.map(str::to_owned))).as_bytes())?;
    Ok(())
}
