//! `kauri demo terrain`: from the LAZ files of a generated laser scan to a terrain model and its hillshade.

use clap::{Args, Parser};
use las::point::{Classification, Format};
use las::{Builder, Point, Transform, Vector, Vlr, Writer};
use rayon::prelude::*;
use std::ffi::{OsStr, OsString};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::dem::Dem;
use crate::names::{PICTURE, RASTER, with_extension};
use crate::progress::Steps;
use crate::{CliError, Result, Streams};
use kauri::lidar::{Lidar, LidarPoint};
use kauri::{Device, Error};

/// Points of the scan on a GPU and on the CPU.
const GPU_POINTS: u32 = 10_000_000;
const CPU_POINTS: u32 = 400_000;
/// Files of the scan. A thread writes a file.
const FILES: u64 = 16;
/// Seconds between two pulses.
const PULSE: f64 = 2e-6;

#[derive(Args)]
pub(crate) struct TerrainDemo {
    /// Device to run on, as for `kauri dem`
    #[arg(long)]
    device: Option<String>,
    /// Number of points of the scan [default: 10,000,000 if there is a GPU, otherwise 400,000]
    #[arg(long, value_name = "N")]
    points: Option<u32>,
    /// Average number of points per square meter
    #[arg(long, value_name = "POINTS", default_value_t = 2.0, value_parser = density)]
    per_square_meter: f64,
    /// Seed of the generated scan
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Side of a cell in meters
    #[arg(long, value_name = "METERS", default_value_t = 1.0)]
    resolution: f64,
    /// Write the terrain model to this file
    #[arg(long, value_name = "FILE.tif", default_value = "kauri-terrain.tif", value_parser = with_extension(RASTER))]
    out: PathBuf,
    /// Write its hillshade to this file
    #[arg(long, value_name = "FILE.png", default_value = "kauri-terrain.png", value_parser = with_extension(PICTURE))]
    hillshade: PathBuf,
}

/// The command that the demo runs.
#[derive(Parser)]
struct DemCommand {
    #[command(flatten)]
    dem: Dem,
}

impl TerrainDemo {
    pub(super) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        let failed = |source| Error::Io { path: std::env::temp_dir(), source };
        let folder = tempfile::Builder::new().prefix("kauri-scan-").tempdir().map_err(failed)?;
        let default = || Ok(if Device::best()?.is_cpu() { CPU_POINTS } else { GPU_POINTS });
        let points = self.points.map_or_else(default, Ok::<_, Error>)?;
        let scan = Lidar::with_density(points.into(), self.per_square_meter, self.seed);
        let steps = Steps { are_shown: streams.shows_progress };
        steps.step("scan", "points", || write_scan(&scan, folder.path()), |()| points as usize)?;

        let pattern = folder.path().join("*.laz");
        let resolution = self.resolution.to_string();
        let mut args = ["kauri", "dem"].map(OsString::from).to_vec();
        args.push(pattern.into());
        for (option, value) in [
            ("--resolution", OsStr::new(&resolution)),
            // Without the water, large triangles would cover the lakes.
            ("--class", "2,9".as_ref()),
            ("--z-factor", "2".as_ref()),
            ("--out", self.out.as_os_str()),
            ("--hillshade", self.hillshade.as_os_str()),
            ("--device", self.device.as_deref().unwrap_or("best").as_ref()),
        ] {
            args.extend([option.into(), value.to_owned()]);
        }
        let shown: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
        writeln!(streams.out, "{}\n", shown.join(" "))?;
        // The name of the program and the command are one name.
        let command =
            DemCommand::try_parse_from(&args[1..]).map_err(|error| CliError::Points(error.to_string()))?;
        command.dem.run(streams)
    }
}

fn density(text: &str) -> Result<f64, &'static str> {
    text.parse()
        .ok()
        .filter(|number: &f64| *number > 0.0 && number.is_finite())
        .ok_or("expected a number above 0")
}

/// Writes the points of a scan to LAZ files, one after another.
fn write_scan(scan: &Lidar, folder: &Path) -> Result<()> {
    let per_file = scan.len().div_ceil(FILES).max(1);
    let written: kauri::Result<()> = (0..FILES)
        .into_par_iter()
        .map(|file| (file, per_file * file..scan.len().min(per_file * (file + 1))))
        .filter(|(_, points)| points.start < points.end)
        .try_for_each(|(file, points)| {
            let path = folder.join(format!("part-{file:02}.laz"));
            write_file(scan, points, &path)
                .map_err(|error| Error::Io { path, source: io::Error::other(error.to_string()) })
        });
    Ok(written?)
}

fn write_file(scan: &Lidar, points: Range<u64>, path: &Path) -> las::Result<()> {
    let (lattice, mut builder) = (scan.lattice(), Builder::from((1, 2)));
    builder.point_format = Format::new(1)?;
    builder.point_format.is_compressed = true;
    let [x, y, z] =
        [0, 1, 2].map(|axis| Transform { scale: lattice.scale[axis], offset: lattice.offset[axis] });
    builder.transforms = Vector { x, y, z };
    builder.vlrs.push(reference_system());
    let mut writer = Writer::from_path(path, builder.into_header()?)?;
    for i in points {
        let LidarPoint { position: [x, y, z], intensity, class, .. } = scan.point(i);
        writer.write_point(Point {
            x,
            y,
            z,
            intensity,
            classification: Classification::new(class as u8)?,
            return_number: 1,
            number_of_returns: 1,
            gps_time: Some(PULSE * i as f64),
            ..Point::default()
        })?;
    }
    writer.close()
}

/// Returns the record of the reference system ETRS89 / UTM zone 33N: GeoTIFF keys for a projected system, and its code.
fn reference_system() -> Vlr {
    let keys: [u16; 12] = [1, 1, 0, 2, 1024, 0, 1, 1, 3072, 0, 1, 25833];
    Vlr {
        user_id: "LASF_Projection".to_owned(),
        record_id: 34735,
        description: String::new(),
        data: keys.iter().flat_map(|key| key.to_le_bytes()).collect(),
    }
}
