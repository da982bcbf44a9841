//! The tables of a join: options, and the items in their rows.

use clap::{Args, ValueEnum};
use std::borrow::Cow;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::items::{Bounds, Item, Planar};
use super::names::STANDARD_STREAM;
use super::progress::Steps;
use super::text::thousands;
use super::{CliError, Result};
use kauri::Error;
use kauri::LonLat;
use kauri::io::{BoxColumns, Numbers, Present, Table};

/// The coordinates of points.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Crs {
    /// Longitudes and latitudes in degrees; distances are in meters
    Lonlat,
    /// Points of the plane in any units; distances are in these units
    Planar,
}

/// Options of both tables.
#[derive(Args)]
pub(super) struct TableOptions {
    /// Coordinates of points in both tables [default: planar for GeoParquet files in a projected reference system (CRS), or else lonlat]
    #[arg(long, value_name = "CRS", value_enum)]
    pub(super) crs: Option<Crs>,
    /// Leave out rows with missing coordinates or geometries, and print their number [default: they are errors]
    #[arg(long)]
    skip_nulls: bool,
}

/// Options of the left table.
#[derive(Args)]
pub(super) struct Left {
    /// Left table: a CSV file with a header line and commas, semicolons or tabs between fields, or a Parquet or GeoParquet file; - is standard
    /// input
    #[arg(long, value_name = "FILE")]
    left: PathBuf,
    /// Column of the left longitudes, in degrees, or with planar coordinates of the left x [default: the points of a GeoParquet file, or else
    /// the column named lon, lng, long, longitude or x]
    #[arg(long, value_name = "COLUMN", visible_alias = "left-x")]
    left_lon: Option<String>,
    /// Column of the left latitudes, in degrees, or with planar coordinates of the left y [default: the points of a GeoParquet file, or else
    /// the column named lat, latitude or y]
    #[arg(long, value_name = "COLUMN", visible_alias = "left-y")]
    left_lat: Option<String>,
    /// Column of the left geometries in well-known binary, of a Parquet file [default: as a GeoParquet file's metadata say]
    #[arg(long, value_name = "COLUMN", conflicts_with_all = ["left_lon", "left_lat"])]
    left_geometry: Option<String>,
}

/// Options of the right table.
#[derive(Args)]
pub(super) struct Right {
    /// Right table, in any format of --left
    #[arg(long, value_name = "FILE")]
    right: PathBuf,
    /// Column of the right longitudes, or with planar coordinates of the right x [default: as for --left-lon]
    #[arg(long, value_name = "COLUMN", visible_alias = "right-x")]
    right_lon: Option<String>,
    /// Column of the right latitudes, or with planar coordinates of the right y [default: as for --left-lat]
    #[arg(long, value_name = "COLUMN", visible_alias = "right-y")]
    right_lat: Option<String>,
    /// Column of the right geometries in well-known binary, of a Parquet file [default: as for --left-geometry]
    #[arg(long, value_name = "COLUMN", conflicts_with_all = ["right_lon", "right_lat"])]
    right_geometry: Option<String>,
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

/// An open table, and the options that name its columns.
pub(super) struct OpenTable<'a> {
    side: &'static str,
    table: Table,
    lon: Option<&'a str>,
    lat: Option<&'a str>,
}

/// A table and the items of its rows.
pub(super) struct JoinTable<T> {
    pub(super) table: Table,
    pub(super) items: Vec<T>,
    /// The row of each item, if rows are left out.
    pub(super) rows: Option<Vec<u32>>,
}

impl Left {
    /// Opens the table, and prints a warning if it has columns that cannot be read.
    pub(super) fn open(&self, steps: Steps, err: &mut dyn Write) -> Result<OpenTable<'_>> {
        let (lon, lat) = (self.left_lon.as_deref(), self.left_lat.as_deref());
        let table = open("left", &self.left, self.left_geometry.as_deref(), steps, err)?;
        Ok(OpenTable { side: "left", table, lon, lat })
    }

    /// Opens both tables.
    pub(super) fn open_with<'a>(
        &'a self,
        right: &'a Right,
        steps: Steps,
        err: &mut dyn Write,
    ) -> Result<[OpenTable<'a>; 2]> {
        if is_standard_input(&self.left) && is_standard_input(&right.right) {
            return Err(CliError::Arguments(
                "only one table can be standard input: give --left or --right a file",
            ));
        }
        let left = self.open(steps, err)?;
        let (lon, lat) = (right.right_lon.as_deref(), right.right_lat.as_deref());
        let table = open("right", &right.right, right.right_geometry.as_deref(), steps, err)?;
        Ok([left, OpenTable { side: "right", table, lon, lat }])
    }
}

/// Returns true for the name of standard input.
pub(super) fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == STANDARD_STREAM
}

/// Opens a table; `-` is standard input.
pub(super) fn read_table(path: &Path) -> kauri::Result<Table> {
    match is_standard_input(path) {
        true => Table::read_stream(io::stdin().lock(), "standard input"),
        false => Table::read(path),
    }
}

fn open(side: &str, path: &Path, geometry: Option<&str>, steps: Steps, err: &mut dyn Write) -> Result<Table> {
    let mut table = steps.step(&format!("opening {side}"), "rows", || Ok(read_table(path)?), Table::len)?;
    geometry.map_or(Ok(()), |name| table.set_geometry(name))?;
    let nested = table.nested_columns();
    if !nested.is_empty() {
        // A failure to write to standard error cannot be reported.
        let _ = writeln!(
            err,
            "warning: {}: columns within lists or maps are neither read nor written: {}",
            path.display(),
            nested.join(", ")
        );
    }
    Ok(table)
}

impl OpenTable<'_> {
    /// Returns true if the points are in the geometries of a GeoParquet file, if the table is one.
    fn has_geometries(&self) -> bool {
        self.lon.is_none() && self.lat.is_none()
    }

    /// Reads the places.
    pub(super) fn places(
        self,
        options: &TableOptions,
        steps: Steps,
        err: &mut dyn Write,
    ) -> Result<JoinTable<LonLat>> {
        let columns = self.table.place_columns(self.lon, self.lat).map_err(with_hint)?;
        let places = |table: &Table| table.places(columns).map_err(with_hint);
        let present = |table: &Table| table.present_places(columns).map_err(with_hint);
        self.read(options, steps, err, places, present)
    }

    /// Reads the points of the plane.
    pub(super) fn points(
        self,
        options: &TableOptions,
        steps: Steps,
        err: &mut dyn Write,
    ) -> Result<JoinTable<Planar>> {
        let columns = self.table.point_columns(self.lon, self.lat)?;
        self.read(options, steps, err, |table| table.points(columns), |table| table.present_points(columns))
    }

    /// Reads the boxes, and prints where they come from unless that is obvious.
    pub(super) fn boxes(
        self,
        names: Option<&BoxNames>,
        options: &TableOptions,
        steps: Steps,
        err: &mut dyn Write,
    ) -> Result<JoinTable<Bounds>> {
        let names = names.map(|BoxNames(names)| names.each_ref().map(String::as_str));
        let side = self.side;
        let columns = self.table.box_columns(names)?;
        let read = self.read(
            options,
            steps,
            err,
            |table| table.boxes(columns),
            |table| table.present_boxes(columns),
        )?;
        let name = |column: usize| format!("`{}`", read.table.columns()[column]);
        let place = match columns {
            BoxColumns::Geometries(column) => Some(format!("of the geometries in column {}", name(column))),
            BoxColumns::Covering(columns) => Some(format!("in the columns {}", columns.map(name).join(", "))),
            _ => None,
        };
        // A failure to write to standard error cannot be reported.
        if let Some(place) = place {
            let _ = writeln!(err, "{side}: the boxes {place} are joined, not the geometries themselves");
        }
        let num_empty = read.items.iter().filter(|[low, high]| low[0] > high[0]).count();
        if num_empty > 0 {
            let _ =
                writeln!(err, "{side}: {} empty geometries have no box and no partner", thousands(num_empty));
        }
        Ok(read)
    }

    /// Reads all items, or with `--skip-nulls` the present ones, and prints the number of rows that are left out.
    fn read<T: Item>(
        self,
        options: &TableOptions,
        steps: Steps,
        err: &mut dyn Write,
        all: impl FnOnce(&Table) -> kauri::Result<Vec<T>>,
        present: impl FnOnce(&Table) -> kauri::Result<Present<T>>,
    ) -> Result<JoinTable<T>> {
        let Self { side, table, .. } = self;
        let read = || {
            Ok(match options.skip_nulls {
                false => (all(&table)?, None),
                true => present(&table).map(|Present { items, rows }| (items, Some(rows)))?,
            })
        };
        let (items, rows) =
            steps.step(&format!("reading {side}"), T::NAME, read, |(items, _): &(Vec<T>, _)| items.len())?;
        let num_skipped = table.len() - items.len();
        if num_skipped > 0 {
            // A failure to write to standard error cannot be reported.
            let _ = writeln!(
                err,
                "{side}: rows without {} that are left out: {}",
                T::NAME,
                thousands(num_skipped)
            );
        }
        Ok(JoinTable { table, items, rows: rows.filter(|_| num_skipped > 0) })
    }
}

/// Adds a hint to an error of coordinates that are no longitudes and latitudes.
fn with_hint(mut error: Error) -> Error {
    if let Error::InvalidFile { what, .. } = &mut error
        && (what.ends_with("degrees") || what.contains("(CRS)"))
    {
        what.push_str("; --crs planar joins other coordinates as points of the plane");
    }
    error
}

impl<T: Item> JoinTable<T> {
    /// Returns the row of an item.
    pub(super) fn row(&self, item: u32) -> u32 {
        self.rows.as_ref().map_or(item, |rows| rows[item as usize])
    }

    /// Returns an item for each row: the row's own, or any other for a row that is left out.
    pub(super) fn items_of_rows(&self) -> Cow<'_, [T]> {
        let Some(rows) = &self.rows else { return Cow::Borrowed(&self.items) };
        let mut all = vec![T::default(); self.table.len()];
        rows.iter().zip(&self.items).for_each(|(&row, &item)| all[row as usize] = item);
        Cow::Owned(all)
    }

    /// Reads the numbers of a column, one for each item.
    pub(super) fn numbers(&self, column: &str) -> kauri::Result<Numbers> {
        fn select<N: Copy>(all: &[N], rows: &[u32]) -> Vec<N> {
            rows.iter().map(|&row| all[row as usize]).collect()
        }
        let numbers = self.table.numbers(self.table.column(column)?)?;
        Ok(match (&self.rows, numbers) {
            (None, numbers) => numbers,
            (Some(rows), Numbers::Integers(all)) => Numbers::Integers(select(&all, rows)),
            (Some(rows), Numbers::Floats(all)) => Numbers::Floats(select(&all, rows)),
        })
    }
}

/// Returns the coordinates of the points of one or two tables: the chosen ones, or planar if a table is in a projected reference system.
///
/// # Errors
/// [`CliError::Systems`] if the reference systems of planar coordinates differ, and unless `chosen` also if only one is known.
pub(super) fn coordinates(chosen: Option<Crs>, tables: &[&OpenTable<'_>]) -> Result<Crs> {
    let described = |table: &&&OpenTable<'_>| table.has_geometries();
    let is_planar = tables.iter().filter(described).any(|table| table.table.is_planar());
    let crs = chosen.unwrap_or(if is_planar { Crs::Planar } else { Crs::Lonlat });
    let systems: Vec<Option<String>> = tables
        .iter()
        .map(|table| table.has_geometries().then(|| table.table.reference_system()).flatten())
        .collect();
    if let (Crs::Planar, [left, right]) = (crs, &systems[..])
        && left != right
        && (chosen.is_none() || left.is_some() && right.is_some())
    {
        return Err(CliError::Systems { left: left.clone(), right: right.clone() });
    }
    Ok(crs)
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
    fn four_columns_of_boxes() {
        let names = |text: &str| text.parse::<BoxNames>().map(|BoxNames(names)| names);
        assert_eq!(names("w, s,e,bbox.n"), Ok(["w", "s", "e", "bbox.n"].map(String::from)));
        assert!(names("w,s,e").is_err() && names("w,s,e,n,z").is_err());
    }
}
