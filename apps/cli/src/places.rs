//! The tables of a join.

use clap::Args;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::Result;
use super::progress::Steps;
use kauri::LonLat;
use kauri::io::Table;

/// Options of the left table.
#[derive(Args)]
pub(super) struct Left {
    /// Table of the left places: a CSV file with a header line, or a Parquet or GeoParquet file
    #[arg(long, value_name = "FILE")]
    left: PathBuf,
    /// Column of the left longitudes, in degrees [default: the points of a GeoParquet file, or else the column named lon, lng, long,
    /// longitude or x]
    #[arg(long, value_name = "COLUMN")]
    left_lon: Option<String>,
    /// Column of the left latitudes, in degrees [default: the points of a GeoParquet file, or else the column named lat, latitude or y]
    #[arg(long, value_name = "COLUMN")]
    left_lat: Option<String>,
}

/// Options of the right table.
#[derive(Args)]
pub(super) struct Right {
    /// Table of the right places, in any format of --left
    #[arg(long, value_name = "FILE")]
    right: PathBuf,
    /// Column of the right longitudes, in degrees [default: as for --left-lon]
    #[arg(long, value_name = "COLUMN")]
    right_lon: Option<String>,
    /// Column of the right latitudes, in degrees [default: as for --left-lat]
    #[arg(long, value_name = "COLUMN")]
    right_lat: Option<String>,
}

/// A file and the names of its coordinate columns, if given.
struct Side<'a> {
    name: &'a str,
    path: &'a Path,
    lon: Option<&'a str>,
    lat: Option<&'a str>,
}

/// A table and its places.
pub(super) struct Places {
    pub(super) table: Table,
    pub(super) points: Vec<LonLat>,
}

impl Places {
    fn read(side: &Side<'_>, steps: Steps, err: &mut dyn Write) -> Result<Self> {
        let read = || {
            let table = Table::read(side.path)?;
            let points = table.places(table.place_columns(side.lon, side.lat)?)?;
            Ok(Self { table, points })
        };
        let name = format!("reading {}", side.name);
        let places = steps.step(&name, "places", read, |places: &Self| places.points.len())?;
        let nested = places.table.nested_columns();
        if !nested.is_empty() {
            // A failure to write to standard error cannot be reported.
            let _ = writeln!(
                err,
                "warning: {}: columns within lists or maps are neither read nor written: {}",
                side.path.display(),
                nested.join(", ")
            );
        }
        Ok(places)
    }
}

impl Left {
    /// Reads the table, and prints a warning for each column that it cannot read.
    pub(super) fn read(&self, steps: Steps, err: &mut dyn Write) -> Result<Places> {
        let (lon, lat) = (self.left_lon.as_deref(), self.left_lat.as_deref());
        Places::read(&Side { name: "left", path: &self.left, lon, lat }, steps, err)
    }
}

impl Right {
    /// Reads the table, and prints a warning for each column that it cannot read.
    pub(super) fn read(&self, steps: Steps, err: &mut dyn Write) -> Result<Places> {
        let (lon, lat) = (self.right_lon.as_deref(), self.right_lat.as_deref());
        Places::read(&Side { name: "right", path: &self.right, lon, lat }, steps, err)
    }
}
