//! `kauri info`: describes a table or the file of an index.

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
    /// A CSV file with a header line, a Parquet or GeoParquet file, or a saved index; - is a table on standard input
    file: PathBuf,
}

impl Info {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<()> {
        if !is_standard_input(&self.file)
            && let Some(info) = index_info(&self.file)?
        {
            return self.of_index(&info, out);
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
        writeln!(out, "{file}: index '{kind}' of {num_points} points, {points}, in {num_nodes} nodes")?;
        let mut rows = vec![["section", "bytes"].map(String::from)];
        rows.extend(info.sections.iter().map(|(tag, bytes)| [tag.clone(), thousands(*bytes as usize)]));
        out.write_all(table(&rows).as_bytes())?;
        Ok(())
    }
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
