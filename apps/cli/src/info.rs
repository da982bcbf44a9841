//! `kauri info`: describes a table, a point cloud or the file of an index.

use clap::Args;
use std::io::Write;
use std::path::PathBuf;

use super::Result;
use super::tables::{is_standard_input, read_table};
use super::text::{shortened, table, thousands};
use kauri::io::{IndexInfo, Numbers, PointColumns, Table, index_info};

/// The longest example value, in characters.
const SHOWN: usize = 24;

#[derive(Args)]
pub(super) struct Info {
    /// A CSV file with a header line, a Parquet or GeoParquet file, a point cloud (LAS, LAZ, COPC), or a saved index; - is a table on standard
    /// input
    file: PathBuf,
}

impl Info {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<()> {
        if !is_standard_input(&self.file)
            && let Some(info) = index_info(&self.file)?
        {
            return self.of_index(&info, out);
        }
        #[cfg(feature = "las")]
        if !is_standard_input(&self.file) && kauri::io::CloudFile::is_at(&self.file)? {
            return of_cloud(&kauri::io::CloudFiles::open(&[&self.file])?, out);
        }
        let table_of = read_table(&self.file)?;
        let crs = table_of
            .reference_system()
            .map_or(String::new(), |name| format!(", reference system (CRS) {name}"));
        writeln!(out, "{}: {} rows{crs}", self.file.display(), thousands(table_of.len()))?;
        let (points, point_types) = point_columns(&table_of);
        let mut rows = vec![["column", "type", "least", "greatest", "first"].map(String::from)];
        let first = if table_of.is_empty() { Vec::new() } else { table_of.row(0)? };
        for (i, name) in table_of.columns().iter().enumerate() {
            let [of, least, greatest] = match table_of.numbers(i) {
                Ok(Numbers::Integers(all)) => row_of("integers", all.iter().min(), all.iter().max()),
                Ok(Numbers::Floats(all)) => {
                    let (least, greatest) =
                        (all.iter().copied().reduce(f64::min), all.iter().copied().reduce(f64::max));
                    row_of("numbers", least.as_ref(), greatest.as_ref())
                }
                Err(_) => row_of::<i64>("text", None, None),
            };
            let of = match points {
                Some(PointColumns::Coordinates([x, _])) if x == i => point_types[0].to_owned(),
                Some(PointColumns::Coordinates([_, y])) if y == i => point_types[1].to_owned(),
                Some(PointColumns::Geometries(points)) if points == i => point_types[2].to_owned(),
                _ => of,
            };
            let first = first.get(i).map_or(String::new(), |text| shortened(text, SHOWN));
            rows.push([name.clone(), of, least, greatest, first]);
        }
        let nested =
            |name: &String| [name.as_str(), "within lists or maps: not read", "", "", ""].map(String::from);
        rows.extend(table_of.nested_columns().iter().map(nested));
        out.write_all(table(&rows).as_bytes())?;
        Ok(())
    }

    /// Describes an index by its header; the sections are not read.
    fn of_index(&self, info: &IndexInfo, out: &mut dyn Write) -> Result<()> {
        let [num_points, num_nodes] = [info.num_points, info.num_nodes].map(|num| thousands(num as usize));
        let (file, kind, points) = (self.file.display(), &info.kind, info.points());
        let nodes = if info.num_nodes > 0 { format!(", in {num_nodes} nodes") } else { String::new() };
        writeln!(out, "{file}: index '{kind}' of {num_points} points, {points}{nodes}")?;
        let mut rows = vec![["section", "bytes"].map(String::from)];
        rows.extend(info.sections.iter().map(|(tag, bytes)| [tag.clone(), thousands(*bytes as usize)]));
        out.write_all(table(&rows).as_bytes())?;
        Ok(())
    }
}

/// Describes a point cloud by what the file says of its points, which are not read.
#[cfg(feature = "las")]
fn of_cloud(cloud: &kauri::io::CloudFiles, out: &mut dyn Write) -> Result<()> {
    for file in cloud.files() {
        let (path, version, format) = (file.path().display(), file.version(), file.point_format());
        let compressed = if file.is_compressed() { ", compressed" } else { "" };
        let points = thousands(file.num_points() as usize);
        writeln!(out, "{path}: {points} points of format {format}, LAS {version}{compressed}")?;
        let system = file.reference_system().map_or("none".to_owned(), ToString::to_string);
        writeln!(out, "reference system (CRS): {system}")?;
        if let Some(levels) = file.num_levels() {
            writeln!(out, "octree (COPC): {levels} levels")?;
        }
        let (lattice, [least, greatest]) = (file.lattice(), file.declared_bounds());
        let mut rows = vec![["axis", "least", "greatest", "scale", "offset"].map(String::from)];
        for (axis, name) in ["x", "y", "z"].into_iter().enumerate() {
            let numbers = [least[axis], greatest[axis], lattice.scale[axis], lattice.offset[axis]];
            let [least, greatest, scale, offset] = numbers.map(|number| number.to_string());
            rows.push([name.to_owned(), least, greatest, scale, offset]);
        }
        out.write_all(table(&rows).as_bytes())?;
    }
    Ok(())
}

/// Returns the columns of the places, or else of the points of the plane, and the types of x, y and geometries.
fn point_columns(table: &Table) -> (Option<PointColumns>, [&'static str; 3]) {
    match table.place_columns(None, None) {
        Ok(columns) if table.present_places(columns).is_ok() => {
            (Some(columns), ["longitudes", "latitudes", "places"])
        }
        _ => (table.point_columns(None, None).ok(), ["x coordinates", "y coordinates", "points"]),
    }
}

fn row_of<T: ToString>(of: &str, least: Option<&T>, greatest: Option<&T>) -> [String; 3] {
    let text = |value: Option<&T>| value.map_or(String::new(), ToString::to_string);
    [of.to_owned(), text(least), text(greatest)]
}
