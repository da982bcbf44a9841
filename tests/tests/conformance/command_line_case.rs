//! A folder of input files for the program, which runs in this process.

use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

pub(crate) struct Case {
    pub(crate) folder: TempDir,
}

impl Case {
    /// Writes files, each given by its name and its text.
    pub(crate) fn new(files: [(&str, &str); 2]) -> Self {
        let case = Self { folder: tempfile::tempdir().unwrap() };
        files.iter().for_each(|(name, text)| case.write(name, text));
        case
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// Runs the program. `@` in an argument is the folder. Returns the exit code, standard output and standard error.
    pub(crate) fn run(&self, arguments: &str) -> (u8, String, String) {
        let at = self.folder.path().display().to_string();
        let arguments = format!("kauri {arguments}");
        let arguments = arguments.split_whitespace().map(|argument| argument.replace('@', &at));
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = kauri_cli::main_with(arguments, &mut out, &mut err);
        let text = |bytes| String::from_utf8(bytes).unwrap().replace(&at, "@");
        (code, text(out), text(err))
    }

    /// Returns the standard output of a run without errors and warnings.
    pub(crate) fn answer(&self, arguments: &str) -> String {
        let (code, out, err) = self.run(arguments);
        assert_eq!((code, err.as_str()), (0, ""), "{arguments}");
        out
    }

    /// Returns the standard error of a run that is refused.
    pub(crate) fn refused(&self, arguments: &str) -> String {
        let (code, out, err) = self.run(arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments}: {err}");
        err
    }
}

impl Case {
    /// Writes a Parquet file. Each column has its values in the order of the schema.
    pub(crate) fn write_parquet(&self, name: &str, schema: &str, geo: Option<&str>, columns: &[Column]) {
        let schema = Arc::new(parse_message_type(&format!("message m {{ {schema} }}")).unwrap());
        let geo = geo.map(|text| vec![KeyValue::new("geo".to_owned(), text.to_owned())]);
        let properties = Arc::new(WriterProperties::builder().set_key_value_metadata(geo).build());
        let file = fs::File::create(self.path(name)).unwrap();
        let mut writer = SerializedFileWriter::new(file, schema, properties).unwrap();
        let levels: Vec<i16> =
            writer.schema_descr().columns().iter().map(|column| column.max_def_level()).collect();
        let mut group = writer.next_row_group().unwrap();
        for (values, &level) in columns.iter().zip(&levels) {
            let mut column = group.next_column().unwrap().unwrap();
            fn present<T: Clone>(all: &[Option<T>]) -> Vec<T> {
                all.iter().flatten().cloned().collect()
            }
            let levels = |are_null: Vec<bool>| {
                are_null.iter().map(|&is_null| if is_null { 0 } else { level }).collect::<Vec<_>>()
            };
            match (column.untyped(), values) {
                (ColumnWriter::DoubleColumnWriter(to), Column::Numbers(all)) => {
                    let levels = levels(all.iter().map(Option::is_none).collect());
                    to.write_batch(&present(all), Some(&levels), None).unwrap();
                }
                (ColumnWriter::FloatColumnWriter(to), Column::Numbers(all)) => {
                    let levels = levels(all.iter().map(Option::is_none).collect());
                    let floats: Vec<f32> = present(all).iter().map(|&x| x as f32).collect();
                    to.write_batch(&floats, Some(&levels), None).unwrap();
                }
                (ColumnWriter::ByteArrayColumnWriter(to), Column::Geometries(all)) => {
                    let levels = levels(all.iter().map(Option::is_none).collect());
                    let bytes: Vec<ByteArray> = present(all).into_iter().map(ByteArray::from).collect();
                    to.write_batch(&bytes, Some(&levels), None).unwrap();
                }
                _ => panic!("the values do not have the type of their column"),
            }
            column.close().unwrap();
        }
        group.close().unwrap();
        writer.close().unwrap();
    }

    /// Writes a GeoParquet file with a column `geometry`, described by further fields of the metadata.
    pub(crate) fn write_geometries(&self, name: &str, fields: &str, geometries: &[Option<Vec<u8>>]) {
        let schema = "optional binary geometry;";
        self.write_parquet(name, schema, Some(&geo(fields)), &[Column::Geometries(geometries.to_vec())]);
    }
}

/// The values of a column; `None` is a null.
pub(crate) enum Column {
    Numbers(Vec<Option<f64>>),
    Geometries(Vec<Option<Vec<u8>>>),
}

pub(crate) fn numbers(values: &[f64]) -> Column {
    Column::Numbers(values.iter().copied().map(Some).collect())
}

/// GeoParquet metadata of a column `geometry` with these fields.
pub(crate) fn geo(fields: &str) -> String {
    format!(
        r#"{{"version": "1.1.0", "primary_column": "geometry", "columns": {{"geometry": {{"encoding": "WKB"{fields}}}}}}}"#
    )
}

/// Encodes the coordinates of points for well-known binary.
pub(crate) fn coords(points: &[[f64; 2]]) -> Vec<u8> {
    points.as_flattened().iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// Encodes a point in well-known binary.
pub(crate) fn point(at: [f64; 2]) -> Vec<u8> {
    [&[1, 1, 0, 0, 0], &coords(&[at])[..]].concat()
}

/// Returns left and right row of each line of CSV output.
pub(crate) fn rows(text: &str) -> Vec<String> {
    text.lines().skip(1).map(|line| line.split(',').take(2).collect::<Vec<_>>().join(",")).collect()
}
