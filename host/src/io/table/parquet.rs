//! Parquet files, read column by column.
//!
//! The decoder of the crate `parquet` trusts its input. Numbers in an invalid file make it panic, recurse without limit,
//! or allocate so much that the process aborts. Therefore this module checks every file first:
//!
//! | module | task |
//! |---|---|
//! | `footer` | checks the lengths in the footer and the depth of the schema, before the decoder parses it |
//! | `pages` | reads the page headers and decompresses the pages, with limited memory |
//! | `check` | checks the lengths inside a page, before the decoder turns its bytes into values |
//!
//! `geometry` finds the columns of geometries and their reference system.

mod check;
mod encodings;
mod fields;
mod file;
mod footer;
mod geometry;
mod pages;

use parquet::column::reader::get_column_reader;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::schema::types::ColumnDescPtr;
use std::fmt;
use std::sync::Arc;

use self::pages::Pages;
use super::input::Input;
use super::values::{ColumnBuilder, Values};
use super::{Check, Numbers, Source, wkb};
use crate::error::{FileLocation, Result};
use crate::io::decode_error::DecodeError;
use crate::io::guarded::guarded;
use crate::memory;

/// A file, with its columns that are not inside lists or maps.
#[derive(Clone)]
pub(super) struct Parquet {
    input: Input,
    metadata: Arc<ParquetMetaData>,
    /// The indices of these columns among all columns of the file.
    leaves: Vec<usize>,
    /// The chosen geometry column.
    geometry: Option<usize>,
    /// The names of the columns inside lists or maps.
    nested: Vec<String>,
    num_rows: usize,
}

impl fmt::Debug for Parquet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parquet").field("num_rows", &self.num_rows).finish_non_exhaustive()
    }
}

/// Returns the message of a file that the decoder cannot read.
fn unreadable(what: String) -> String {
    format!("the Parquet file cannot be read: {what}")
}

impl Parquet {
    /// Reads the footer of a file. Adds the names of its columns to `source`.
    pub(super) fn new(source: &mut Source, input: &Input) -> Result<Self> {
        let (file, len) = (&*input.file, input.len());
        let invalid = |what: String| source.invalid(FileLocation::Whole, None, what);
        let metadata = guarded(|| {
            footer::check_bytes(file, len)?;
            let metadata = ParquetMetaDataReader::new().parse_and_finish(file)?;
            footer::check_metadata(&metadata, len)?;
            Ok(metadata)
        });
        let metadata = metadata.map_err(|error| error.into_error(|what| invalid(unreadable(what))))?;
        let about = metadata.file_metadata();
        // Row ids are 32-bit, and the number in a broken file is arbitrary.
        let num_rows = u32::try_from(about.num_rows()).map_err(|_| {
            invalid(format!("it has {} rows; expected at most {}", about.num_rows(), u32::MAX))
        })?;
        let columns = about.schema_descr().columns();
        let (leaves, nested): (Vec<usize>, Vec<usize>) =
            (0..columns.len()).partition(|&i| columns[i].max_rep_level() == 0);
        let names = |all: &[usize]| all.iter().map(|&leaf| columns[leaf].path().string()).collect();
        source.columns = names(&leaves);
        let nested = names(&nested);
        Ok(Self {
            input: input.clone(),
            metadata: Arc::new(metadata),
            leaves,
            geometry: None,
            nested,
            num_rows: num_rows as usize,
        })
    }

    pub(super) fn nested(&self) -> &[String] {
        &self.nested
    }

    pub(super) fn len(&self) -> usize {
        self.num_rows
    }

    /// Returns the bytes of all columns, as the file's metadata have it.
    pub(super) fn bytes(&self) -> u64 {
        let groups = self.metadata.row_groups().iter();
        groups.map(|group| u64::try_from(group.total_byte_size()).unwrap_or(0)).sum()
    }

    fn leaf(&self, column: usize) -> ColumnDescPtr {
        self.metadata.file_metadata().schema_descr().column(self.leaves[column])
    }

    /// Reads all values of a column.
    pub(super) fn values(&self, source: &Source, column: usize) -> Result<Values> {
        let mut builder = self.builder(column)?;
        for group in self.metadata.row_groups() {
            let most = self.num_rows.saturating_sub(builder.len());
            self.read_group(source, column, group, &mut builder, most)?;
        }
        self.check_len(source, column, &builder, self.num_rows)?;
        Ok(builder.finish())
    }

    /// Reads the values of a column in these rows, which must be in ascending order. Only one row group of the column is in memory as a
    /// whole.
    pub(super) fn values_of(&self, source: &Source, column: usize, rows: &[u32]) -> Result<Values> {
        let mut selected = ColumnBuilder::new(&self.leaf(column));
        let mut remaining = rows;
        self.each_group(source, column, |first, num_rows, read| {
            let num_here = remaining.partition_point(|&row| (row as usize) < first + num_rows);
            let here = remaining.split_off(..num_here).unwrap_or_default();
            if !here.is_empty() {
                selected.append(&read()?, here.iter().map(|&row| row as usize - first))?;
            }
            Ok(())
        })?;
        self.check_len(source, column, &selected, rows.len())?;
        Ok(selected.finish())
    }

    /// Calls `visit` for each row group with its first row, its number of rows, and a function that reads the values of a column in it.
    fn each_group(
        &self,
        source: &Source,
        column: usize,
        mut visit: impl FnMut(usize, usize, &dyn Fn() -> Result<Values>) -> Result<()>,
    ) -> Result<()> {
        let mut first = 0;
        for group in self.metadata.row_groups() {
            // A broken file may have any number here.
            let num_rows = usize::try_from(group.num_rows()).unwrap_or(0).min(self.num_rows - first);
            visit(first, num_rows, &|| {
                let mut builder = ColumnBuilder::new(&self.leaf(column));
                self.read_group(source, column, group, &mut builder, num_rows)?;
                self.check_len(source, column, &builder, num_rows)?;
                Ok(builder.finish())
            })?;
            first += num_rows;
        }
        Ok(())
    }

    /// Returns a builder for all values of a column.
    fn builder(&self, column: usize) -> Result<ColumnBuilder> {
        let descriptor = self.leaf(column);
        // Few bytes can encode very many values.
        memory::check(self.num_rows as u64 * Values::bytes_each(&descriptor), "values of a column")?;
        Ok(ColumnBuilder::new(&descriptor))
    }

    /// Appends the values of a column in a row group, at most `most` and one more.
    fn read_group(
        &self,
        source: &Source,
        column: usize,
        group: &RowGroupMetaData,
        to: &mut ColumnBuilder,
        most: usize,
    ) -> Result<()> {
        let pages = Pages::new(Arc::clone(&self.input.file), group.column(self.leaves[column]));
        guarded(|| to.read(get_column_reader(self.leaf(column), Box::new(pages)), most)).map_err(
            |error| {
                error.into_error(|what| source.invalid_cell(FileLocation::Whole, column, unreadable(what)))
            },
        )?;
        self.input.check_unchanged()
    }

    /// Returns an error unless a column has a value for each row.
    fn check_len(&self, source: &Source, column: usize, read: &ColumnBuilder, num_rows: usize) -> Result<()> {
        if read.len() == num_rows {
            return Ok(());
        }
        let what = format!("it has {} values in {num_rows} rows", read.len());
        Err(source.invalid_cell(FileLocation::Whole, column, what))
    }

    /// Reads the numbers of a column.
    pub(super) fn numbers(&self, source: &Source, column: usize) -> Result<Numbers> {
        let numbers = self.values(source, column)?.numbers();
        numbers.map_err(|(location, what)| source.invalid_cell(location, column, what))
    }

    /// Reads the coordinates of a column. A null that `may_be_missing` is NaN.
    pub(super) fn coordinates(
        &self,
        source: &Source,
        column: usize,
        check: Check,
        may_be_missing: bool,
    ) -> Result<Vec<f64>> {
        let invalid = |(location, what)| source.invalid_cell(location, column, what);
        let values = self.values(source, column)?;
        let coordinates = values.coordinates(may_be_missing).map_err(invalid)?;
        for (row, &value) in coordinates.iter().enumerate() {
            if !value.is_nan() {
                check(value).map_err(|what| invalid((FileLocation::Row(row as u64), what)))?;
            }
        }
        Ok(coordinates)
    }

    /// Reads the points in a column of well-known binary. A null or an empty point that `may_be_missing` is NaN.
    pub(super) fn points(
        &self,
        source: &Source,
        column: usize,
        checks: [Check; 2],
        may_be_missing: bool,
    ) -> Result<Vec<[f64; 2]>> {
        self.geometries(source, column, "points", |bytes| match bytes.map(crate::wkb::point).transpose()? {
            Some(Some([x, y])) => Ok([checks[0](x)?, checks[1](y)?]),
            _ if may_be_missing => Ok([f64::NAN; 2]),
            Some(None) => Err("an empty point".to_owned()),
            None => Err("null; expected a point".to_owned()),
        })
    }

    /// Reads the bounding boxes of the geometries in a column; `None` for an empty geometry. A null that `may_be_missing` is a box of NaN.
    pub(super) fn bounds(
        &self,
        source: &Source,
        column: usize,
        may_be_missing: bool,
    ) -> Result<Vec<Option<[[f64; 2]; 2]>>> {
        self.geometries(source, column, "geometries", |bytes| match bytes {
            Some(bytes) => wkb::bounds(bytes),
            None if may_be_missing => Ok(Some([[f64::NAN; 2]; 2])),
            None => Err("null; expected a geometry".to_owned()),
        })
    }

    /// Decodes the bytes of each row, `None` for a null, row group by row group; `expected` names what they encode.
    fn geometries<T>(
        &self,
        source: &Source,
        column: usize,
        expected: &str,
        decode: impl Fn(Option<&[u8]>) -> Result<T, String>,
    ) -> Result<Vec<T>> {
        let mut all = memory::vec_with_capacity(self.num_rows, "geometries of a table")?;
        self.each_group(source, column, |first, num_rows, read| {
            let values = read()?;
            for row in 0..num_rows {
                let decoded = values.bytes(row, expected).and_then(&decode);
                let location = FileLocation::Row((first + row) as u64);
                all.push(decoded.map_err(|what| source.invalid_cell(location, column, what))?);
            }
            Ok(())
        })?;
        if all.len() == self.num_rows {
            return Ok(all);
        }
        let what = format!("it has {} values in {} rows", all.len(), self.num_rows);
        Err(source.invalid_cell(FileLocation::Whole, column, what))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Column, Numbers, ParquetWriter, PointColumns, Table, Values, geo};
    use crate::Error;
    use crate::io::{Geometries, PairTable, Pairs};
    use crate::point::LonLat;
    use std::fs::{self, File};
    use std::path::{Path, PathBuf};
    use tempfile::TempDir;

    /// Writes a file in a new folder.
    fn written(columns: &[(&str, Values)], metadata: Option<&str>) -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        let named = columns.iter().map(|(name, values)| Column {
            name: (*name).into(),
            values,
            rows: None,
            may_have_nulls: true,
        });
        let named = named.collect::<Vec<_>>();
        let metadata = metadata.map(|text| ("geo".to_owned(), text.to_owned()));
        let mut file = File::create(&path).unwrap();
        let mut writer = ParquetWriter::new(&path, &mut file, &named, metadata).unwrap();
        let mut group = writer.group().unwrap();
        named.iter().for_each(|column| group.write(column).unwrap());
        group.finish().unwrap();
        writer.finish().unwrap();
        (folder, path)
    }

    /// Returns the metadata of a file of points.
    fn points_in(column: &str) -> String {
        geo::metadata("Point", &[(column.to_owned(), None)]).1
    }

    fn texts(values: &[&str]) -> Values {
        Values::texts(values.iter().map(|text| (*text).to_owned()))
    }

    /// Returns the error of reading the places of a file, without its folder.
    fn cell_error(columns: &[(&str, Values)], metadata: Option<&str>) -> String {
        let (folder, path) = written(columns, metadata);
        let table = Table::read(&path).unwrap();
        let places = table.place_columns(None, None).and_then(|columns| table.places(columns));
        let error = places.unwrap_err();
        assert!(matches!(error, Error::InvalidFile { .. }), "{error:?}");
        error.to_string().replace(&format!("{}/", folder.path().display()), "")
    }

    #[test]
    fn columns_of_all_types() {
        let nulls = [true, false, true].into_iter();
        let (_folder, path) = written(
            &[
                ("id", Values::integers(vec![3, -4, 5])),
                ("Lon", Values::floats(vec![1.5, 2.5, 3.5])),
                ("LAT", Values::floats(vec![-1.0, -2.0, -3.0])),
                ("name", texts(&["a", "b, \"c\"", "ü"])),
                ("some", Values::integers(vec![7, 9]).with_nulls(nulls)),
            ],
            None,
        );
        let table = Table::read(&path).unwrap();
        assert_eq!((table.len(), table.columns().join(" ")), (3, "id Lon LAT name some".to_owned()));
        let columns = table.place_columns(None, None).unwrap();
        assert_eq!(columns, PointColumns::Coordinates([1, 2]));
        assert_eq!(table.places(columns).unwrap()[1], LonLat::new(2.5, -2.0));
        assert_eq!(table.numbers(0).unwrap(), Numbers::Integers(vec![3, -4, 5]));
        assert_eq!(table.numbers(1).unwrap(), Numbers::Floats(vec![1.5, 2.5, 3.5]));
        assert_eq!(table.texts(3).unwrap(), ["a", "b, \"c\"", "ü"]);
        assert_eq!(table.row(1).unwrap(), ["-4", "2.5", "-2", "b, \"c\"", ""]);
        let error = |column| table.numbers(column).unwrap_err().to_string();
        assert!(
            error(3).ends_with("t.parquet: column 'name': it has text; expected numbers"),
            "{}",
            error(3)
        );
        assert!(error(4).ends_with("t.parquet: row 1: column 'some': null; expected a number"));
        let error = table.column("none").unwrap_err().to_string();
        assert!(error.ends_with("t.parquet: no column 'none'; the columns are: id, Lon, LAT, name, some"));
    }

    #[test]
    fn places_of_geoparquet() {
        let places = [LonLat::new(18.07, 59.33), LonLat::new(-179.5, -90.0)];
        let text = points_in("at");
        // Metadata take precedence over column names.
        let columns = [("lon", Values::floats(vec![0.0; 2])), ("lat", Values::floats(vec![0.0; 2]))];
        let columns = [
            columns[0].clone(),
            columns[1].clone(),
            ("at", Values::points(places.iter().map(|place| [place.lon, place.lat]))),
        ];
        let (_folder, path) = written(&columns, Some(&text));
        let table = Table::read(&path).unwrap();
        assert_eq!(table.place_columns(None, None).unwrap(), PointColumns::Geometries(2));
        assert_eq!(table.places(PointColumns::Geometries(2)).unwrap(), places);
        let named = table.place_columns(Some("lon"), None).unwrap();
        assert_eq!(named, PointColumns::Coordinates([0, 1]));
        assert_eq!(crate::io::read_lonlat(&path).unwrap().points, places);
    }

    #[test]
    fn invalid_places() {
        let floats = |values: [f64; 2]| Values::floats(values.to_vec());
        let of = |lon: Values, lat: Values| cell_error(&[("lon", lon), ("lat", lat)], None);
        assert_eq!(
            of(floats([1.0, 2.0]), floats([3.0, 91.0])),
            "t.parquet: row 1: column 'lat': latitude 91 is not within ±90 degrees"
        );
        assert_eq!(
            of(floats([f64::NAN, 2.0]), floats([3.0, 4.0])),
            "t.parquet: row 0: column 'lon': NaN is not a finite number"
        );
        assert_eq!(
            of(texts(&["1", "2"]), floats([3.0, 4.0])),
            "t.parquet: column 'lon': it has text; expected numbers"
        );
        assert_eq!(
            of(Values::floats(vec![1.0]).with_nulls([true, false].into_iter()), floats([3.0, 4.0])),
            "t.parquet: row 1: column 'lon': null; expected a number"
        );
        assert_eq!(
            cell_error(&[("a", floats([1.0, 2.0]))], None),
            "t.parquet: no column for the longitude (lon, lng, long, longitude, x); the columns are: a"
        );
    }

    #[test]
    fn invalid_geometries() {
        let points = || Values::points([[1.0, 2.0], [3.0, 400.0]].into_iter());
        let with = |text: &str| {
            let text = format!("{{\"primary_column\": \"g\", \"columns\": {{\"g\": {{{text}}}}}}}");
            cell_error(&[("g", points())], Some(&text))
        };
        let wkb = "\"encoding\": \"WKB\"";
        assert_eq!(with(wkb), "t.parquet: row 1: column 'g': latitude 400 is not within ±90 degrees");
        let crs = format!("{wkb}, \"crs\": {{\"id\": {{\"authority\": \"EPSG\", \"code\": 25833}}}}");
        assert_eq!(
            with(&crs),
            "t.parquet: column 'g': its reference system (CRS) is EPSG:25833; expected longitudes and latitudes: \
             OGC:CRS84 or EPSG:4326"
        );
        assert_eq!(
            with("\"encoding\": \"multipolygon\""),
            "t.parquet: column 'g': its encoding is 'multipolygon'; expected points, as WKB or 'point'"
        );
        assert_eq!(
            with("\"encoding\": \"point\""),
            "t.parquet: column 'g': it has points without the fields x and y"
        );
        let other = points_in("h");
        assert_eq!(
            cell_error(&[("g", points())], Some(&other)),
            "t.parquet: its geo metadata name the column 'h', which does not exist"
        );
        assert!(
            cell_error(&[("g", points())], Some("{")).starts_with("t.parquet: its geo metadata are not JSON")
        );
        let named = points_in("g");
        assert_eq!(
            cell_error(&[("g", Values::integers(vec![1, 2]))], Some(&named)),
            "t.parquet: row 0: column 'g': it has numbers; expected points as bytes"
        );
        assert_eq!(
            cell_error(&[("g", texts(&["", ""]))], Some(&named)),
            "t.parquet: row 0: column 'g': 0 bytes that are not well-known binary"
        );
    }

    /// Writes pairs as Parquet, and reads them again.
    fn pairs(left: &Table, right: &Table, path: &Path) -> Table {
        let places = vec![LonLat::new(5.0, 6.0); left.len()];
        let scores = [Numbers::Integers(vec![7, 8]), Numbers::Integers(vec![9])];
        let pairs = PairTable { left, right, geometries: Geometries::Places(&places) };
        let [first, second] = [0..2, 2..3].map(|batch: std::ops::Range<usize>| Pairs {
            rows: &[[1, 0], [0, 0], [1, 1]][batch.clone()],
            distances: Some(&[0.5, 1.25, 1e6][batch.clone()]),
            scores: Some(&scores[batch.start / 2]),
        });
        pairs.write::<Error>(path, |take| take(first).and_then(|()| take(second))).unwrap();
        Table::read(path).unwrap()
    }

    #[test]
    fn pairs_of_tables_and_pairs_of_pairs() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("a.csv"), "code,n,x\n007,1,\n+8,,2.5\n").unwrap();
        fs::write(path("b.csv"), "t,e\nb,\n\"c\nd\",\n").unwrap();
        let [left, right] = ["a.csv", "b.csv"].map(|name| Table::read(path(name)).unwrap());
        let table = pairs(&left, &right, &path("out.parquet"));
        let names = "left_row right_row distance_m score left.code left.n left.x right.t right.e geometry";
        assert_eq!(table.columns().join(" "), names);
        // Codes are not numbers, and missing values are null.
        assert_eq!(table.row(0).unwrap()[..9], ["1", "0", "0.5", "7", "+8", "", "2.5", "b", ""]);
        assert_eq!(table.row(1).unwrap()[..9], ["0", "0", "1.25", "8", "007", "1", "", "b", ""]);
        assert_eq!(table.row(2).unwrap()[..9], ["1", "1", "1000000", "9", "+8", "", "2.5", "c\nd", ""]);
        assert_eq!(table.numbers(0).unwrap(), Numbers::Integers(vec![1, 0, 1]));
        let columns = table.place_columns(None, None).unwrap();
        assert_eq!(table.places(columns).unwrap(), [LonLat::new(5.0, 6.0); 3]);
        // Types and geometries are kept.
        let again = pairs(&table, &right, &path("again.geoparquet"));
        assert_eq!(again.columns()[4 + 9], "left.geometry");
        assert_eq!(again.row(1).unwrap()[4..13], table.row(0).unwrap()[..9]);
    }

    #[test]
    fn changed_bytes_never_panic() {
        let points = [[1.0, 2.0], [3.0, 4.0]];
        let nulls = [true, false].into_iter();
        let columns = [
            ("g", Values::points(points.into_iter())),
            ("n", Values::integers(vec![5]).with_nulls(nulls)),
            ("t", texts(&["a", "a"])),
        ];
        let (_folder, path) = written(&columns, Some(&points_in("g")));
        let bytes = fs::read(&path).unwrap();
        let look = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            let Ok(table) = Table::read(&path) else { return };
            if let Ok(columns) = table.place_columns(None, None) {
                let _ = table.places(columns);
            }
            (0..table.columns().len()).for_each(|column| drop(table.texts(column)));
        };
        (0..bytes.len()).for_each(|len| look(&bytes[..len]));
        for at in 0..bytes.len() {
            for bit in [0x01, 0x10, 0x80, 0xFF] {
                let mut other = bytes.clone();
                other[at] ^= bit;
                look(&other);
            }
        }
    }
}
