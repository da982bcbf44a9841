//! The tables of a join, and the items in their rows: places or boxes.

use clap::Args;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::Result;
use super::progress::Steps;
use super::text::thousands;
use kauri::LonLat;
use kauri::io::{BoxColumns, Geometries, Table};

/// A box of two dimensions: its low and its high corner.
pub(super) type Bounds = [[f64; 2]; 2];

/// An item of a join: a place or a box.
pub(super) trait Item: Copy + Send + Sync {
    /// The name of several items.
    const NAME: &'static str;

    /// Returns the distance in the output: in meters between places, in the units of the coordinates between boxes.
    fn distance(&self, other: &Self) -> f64;

    /// Returns the items for [`PairTable`](kauri::io::PairTable).
    fn geometries(items: &[Self]) -> Geometries<'_>;
}

impl Item for LonLat {
    const NAME: &'static str = "places";

    fn distance(&self, other: &Self) -> f64 {
        self.meters_to(other)
    }

    fn geometries(items: &[Self]) -> Geometries<'_> {
        Geometries::Places(items)
    }
}

impl Item for Bounds {
    const NAME: &'static str = "boxes";

    fn distance(&self, other: &Self) -> f64 {
        let gap = |axis: usize| (self[0][axis] - other[1][axis]).max(other[0][axis] - self[1][axis]).max(0.0);
        (gap(0) * gap(0) + gap(1) * gap(1)).sqrt()
    }

    fn geometries(items: &[Self]) -> Geometries<'_> {
        Geometries::Boxes(items)
    }
}

/// Options of the left table.
#[derive(Args)]
pub(super) struct Left {
    /// Left table: a CSV file with a header line and commas, semicolons or tabs between fields, or a Parquet or GeoParquet file
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
    /// Right table, in any format of --left
    #[arg(long, value_name = "FILE")]
    right: PathBuf,
    /// Column of the right longitudes, in degrees [default: as for --left-lon]
    #[arg(long, value_name = "COLUMN")]
    right_lon: Option<String>,
    /// Column of the right latitudes, in degrees [default: as for --left-lat]
    #[arg(long, value_name = "COLUMN")]
    right_lat: Option<String>,
}

/// Names of the columns of boxes: least x, least y, greatest x, greatest y.
#[derive(Clone)]
pub(super) struct BoxNames([String; 4]);

impl FromStr for BoxNames {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
        match names.try_into() {
            Ok(names) => Ok(Self(names)),
            Err(_) => Err("expected the names of four columns: XMIN,YMIN,XMAX,YMAX"),
        }
    }
}

/// A table and the items of its rows.
pub(super) struct JoinTable<T> {
    pub(super) table: Table,
    pub(super) items: Vec<T>,
}

impl Left {
    /// Reads the places, and prints a warning for each column that cannot be read.
    pub(super) fn places(&self, steps: Steps, err: &mut dyn Write) -> Result<JoinTable<LonLat>> {
        let (lon, lat) = (self.left_lon.as_deref(), self.left_lat.as_deref());
        read("left", &self.left, steps, err, |table| table.places(table.place_columns(lon, lat)?))
    }

    /// Reads the boxes, and prints where they come from unless that is obvious.
    pub(super) fn boxes(
        &self,
        names: Option<&BoxNames>,
        steps: Steps,
        err: &mut dyn Write,
    ) -> Result<JoinTable<Bounds>> {
        read_boxes("left", &self.left, names, steps, err)
    }
}

impl Right {
    /// Reads the places as [`Left::places`].
    pub(super) fn places(&self, steps: Steps, err: &mut dyn Write) -> Result<JoinTable<LonLat>> {
        let (lon, lat) = (self.right_lon.as_deref(), self.right_lat.as_deref());
        read("right", &self.right, steps, err, |table| table.places(table.place_columns(lon, lat)?))
    }

    /// Reads the boxes as [`Left::boxes`].
    pub(super) fn boxes(
        &self,
        names: Option<&BoxNames>,
        steps: Steps,
        err: &mut dyn Write,
    ) -> Result<JoinTable<Bounds>> {
        read_boxes("right", &self.right, names, steps, err)
    }
}

fn read<T: Item>(
    side: &str,
    path: &Path,
    steps: Steps,
    err: &mut dyn Write,
    items: impl FnOnce(&Table) -> kauri::Result<Vec<T>>,
) -> Result<JoinTable<T>> {
    let read = || {
        let table = Table::read(path)?;
        let items = items(&table)?;
        Ok(JoinTable { table, items })
    };
    let read =
        steps.step(&format!("reading {side}"), T::NAME, read, |read: &JoinTable<T>| read.items.len())?;
    let nested = read.table.nested_columns();
    if !nested.is_empty() {
        // A failure to write to standard error cannot be reported.
        let _ = writeln!(
            err,
            "warning: {}: columns within lists or maps are neither read nor written: {}",
            path.display(),
            nested.join(", ")
        );
    }
    Ok(read)
}

fn read_boxes(
    side: &str,
    path: &Path,
    names: Option<&BoxNames>,
    steps: Steps,
    err: &mut dyn Write,
) -> Result<JoinTable<Bounds>> {
    let names = names.map(|BoxNames(names)| names.each_ref().map(String::as_str));
    let mut columns = None;
    let read = read(side, path, steps, err, |table| {
        let found = table.box_columns(names)?;
        columns = Some(found);
        table.boxes(found)
    })?;
    let name = |column: usize| format!("`{}`", read.table.columns()[column]);
    let place = match columns {
        Some(BoxColumns::Geometries(column)) => Some(format!("of the geometries in column {}", name(column))),
        Some(BoxColumns::Covering(columns)) => {
            Some(format!("in the columns {}", columns.map(name).join(", ")))
        }
        _ => None,
    };
    // A failure to write to standard error cannot be reported.
    if let Some(place) = place {
        let _ = writeln!(err, "{side}: the boxes {place} are joined, not the geometries themselves");
    }
    let num_empty = read.items.iter().filter(|[low, high]| low[0] > high[0]).count();
    if num_empty > 0 {
        let _ = writeln!(err, "{side}: {} empty geometries have no box and no partner", thousands(num_empty));
    }
    Ok(read)
}

/// Prints a warning if the coordinates of two tables have different reference systems.
pub(super) fn compare_systems(tables: [&JoinTable<Bounds>; 2], err: &mut dyn Write) {
    if let [Some(left), Some(right)] = tables.map(|of| of.table.reference_system())
        && left != right
    {
        // A failure to write to standard error cannot be reported.
        let _ = writeln!(
            err,
            "warning: the tables have different reference systems (CRS), left {left}, right {right}; their coordinates are compared \
             without conversion"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_of_boxes() {
        let boxes = [[[0.0, 0.0], [2.0, 1.0]], [[5.0, 5.0], [6.0, 6.0]], [[1.0, 0.5], [9.0, 4.0]]];
        let distance = |a: usize, b: usize| boxes[a].distance(&boxes[b]);
        assert_eq!([distance(0, 1), distance(1, 0), distance(0, 2), distance(1, 2)], [5.0, 5.0, 0.0, 1.0]);
    }

    #[test]
    fn four_columns_of_boxes() {
        let names = |text: &str| text.parse::<BoxNames>().map(|BoxNames(names)| names);
        assert_eq!(names("w, s,e,bbox.n"), Ok(["w", "s", "e", "bbox.n"].map(String::from)));
        assert!(names("w,s,e").is_err() && names("w,s,e,n,z").is_err());
    }
}
