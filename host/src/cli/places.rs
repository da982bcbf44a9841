//! The tables of a join.

use clap::Args;
use std::path::{Path, PathBuf};

use super::Result;
use super::progress::Steps;
use crate::io::Table;
use crate::point::LonLat;

/// One table.
#[derive(Args)]
pub(super) struct Left {
    /// Left places: a CSV file with a header, or a Parquet or GeoParquet file
    #[arg(long, value_name = "FILE")]
    left: PathBuf,
    /// Column of the left longitudes, in degrees [default: the points of a GeoParquet file, else lon, lng, long, longitude or x]
    #[arg(long, value_name = "COLUMN")]
    left_lon: Option<String>,
    /// Column of the left latitudes, in degrees [default: lat, latitude or y]
    #[arg(long, value_name = "COLUMN")]
    left_lat: Option<String>,
}

/// The other table.
#[derive(Args)]
pub(super) struct Right {
    /// Right places, of the same forms
    #[arg(long, value_name = "FILE")]
    right: PathBuf,
    /// Column of the right longitudes
    #[arg(long, value_name = "COLUMN")]
    right_lon: Option<String>,
    /// Column of the right latitudes
    #[arg(long, value_name = "COLUMN")]
    right_lat: Option<String>,
}

/// A table and its places.
pub(super) struct Places {
    pub(super) table: Table,
    pub(super) points: Vec<LonLat>,
}

impl Places {
    fn read(steps: Steps, side: &str, path: &Path, lon: Option<&str>, lat: Option<&str>) -> Result<Self> {
        let read = || {
            let table = Table::read(path)?;
            let points = table.places(table.place_columns(lon, lat)?)?;
            Ok(Self { table, points })
        };
        let name = format!("reading {side}");
        steps.step(&name, "places", read, |places| places.points.len())
    }
}

impl Left {
    pub(super) fn read(&self, steps: Steps) -> Result<Places> {
        Places::read(steps, "left", &self.left, self.left_lon.as_deref(), self.left_lat.as_deref())
    }
}

impl Right {
    pub(super) fn read(&self, steps: Steps) -> Result<Places> {
        Places::read(steps, "right", &self.right, self.right_lon.as_deref(), self.right_lat.as_deref())
    }
}
