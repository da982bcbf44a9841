//! Small valid files of every kind that the readers support.

use parquet::basic::{Compression, Encoding, GzipLevel, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, FixedLenByteArray, Int96};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use std::sync::Arc;

pub(super) fn csv() -> Vec<Vec<u8>> {
    [
        "name,lon,lat\n\"a, \"\"b\"\"\",1.5,2\nc,-3, 4e0 \n",
        "\u{feff}LAT;x\r\n1;2\r\n",
        "x,y,iata\r\n1,2,ARN\r\n\r\n-180,90,\"L\r\nHR\"\r\n",
        "lon\tlat\n1\t2\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

pub(super) fn obj() -> Vec<Vec<u8>> {
    [
        "# square\nv 0 0 0\nv 1 0 0 1\nv 1 1 0\nv 0 1 0\nvt 0 0\nvn 0 0 1\nf 1/1/1 2 3//1 4\nf -1 -2 -3\n",
        "v 0 0 0 1 0 0\r\nv 1 0 0 0 1 0\r\nv 0 1 0 0 0 1\r\ng a\r\nf 3 2 1\r\nl 1 2\r\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

pub(super) fn ply() -> Vec<Vec<u8>> {
    let header = |format: &str| {
        format!(
            "ply\nformat {format} 1.0\ncomment c\nelement vertex 3\nproperty float x\nproperty double y\nproperty uchar z\n\
             element edge 1\nproperty list uchar short ends\nelement face 2\nproperty list uchar int vertex_indices\nend_header\n"
        )
    };
    let text = header("ascii") + "0 0 0\n1 0 0\n0 1e0 5\n2 0 1\n3 0 1 2\n4 0 1 2 0\n";
    fn put<const N: usize>(to: &mut Vec<u8>, mut little: [u8; N], is_little: bool) {
        if !is_little {
            little.reverse();
        }
        to.extend(little);
    }
    let binary = |is_little: bool| {
        let format = if is_little { "binary_little_endian" } else { "binary_big_endian" };
        let mut bytes = header(format).into_bytes();
        for (x, y, z) in [(0.0_f32, 0.0_f64, 0), (1.0, 0.0, 0), (0.0, 1.0, 5)] {
            put(&mut bytes, x.to_le_bytes(), is_little);
            put(&mut bytes, y.to_le_bytes(), is_little);
            bytes.push(z);
        }
        bytes.push(2);
        [2_i16, 0].iter().for_each(|end| put(&mut bytes, end.to_le_bytes(), is_little));
        for face in [&[0, 1, 2][..], &[0, 1, 2, 0]] {
            bytes.push(face.len() as u8);
            face.iter().for_each(|corner: &i32| put(&mut bytes, corner.to_le_bytes(), is_little));
        }
        bytes
    };
    vec![text.into_bytes(), binary(true), binary(false)]
}

/// The options of a Parquet file.
struct Shape {
    version: WriterVersion,
    compression: Compression,
    /// The encodings of some columns. Other columns are plain or have dictionaries.
    encodings: &'static [(&'static str, Encoding)],
    has_dictionaries: bool,
}

pub(super) fn parquet() -> Vec<Vec<u8>> {
    let (v1, v2) = (WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0);
    let zstd = Compression::ZSTD(ZstdLevel::try_new(1).unwrap());
    let gzip = Compression::GZIP(GzipLevel::try_new(1).unwrap());
    let deltas: &[_] = &[
        ("i", Encoding::DELTA_BINARY_PACKED),
        ("j", Encoding::DELTA_BINARY_PACKED),
        ("geometry", Encoding::DELTA_LENGTH_BYTE_ARRAY),
        ("s.t", Encoding::DELTA_BYTE_ARRAY),
        ("w", Encoding::DELTA_BYTE_ARRAY),
        ("b", Encoding::RLE),
    ];
    let split: &[_] = &[
        ("i", Encoding::BYTE_STREAM_SPLIT),
        ("j", Encoding::BYTE_STREAM_SPLIT),
        ("x", Encoding::BYTE_STREAM_SPLIT),
        ("y", Encoding::BYTE_STREAM_SPLIT),
        ("w", Encoding::BYTE_STREAM_SPLIT),
    ];
    [
        (v1, Compression::UNCOMPRESSED, &[][..], false),
        (v1, Compression::SNAPPY, &[], true),
        (v1, gzip, deltas, false),
        (v2, zstd, deltas, false),
        (v2, Compression::UNCOMPRESSED, deltas, false),
        (v2, Compression::UNCOMPRESSED, &[], true),
        (v1, Compression::UNCOMPRESSED, split, false),
        (v2, Compression::SNAPPY, split, false),
    ]
    .map(|(version, compression, encodings, has_dictionaries)| {
        written(&Shape { version, compression, encodings, has_dictionaries })
    })
    .to_vec()
}

/// Writes two row groups of a few rows, with nulls, in columns of all types.
fn written(shape: &Shape) -> Vec<u8> {
    let schema = "message m { required boolean b; optional int32 i (uint_32); optional int64 j (timestamp(micros, true)); \
        optional int96 k; required float x; optional double y; required binary geometry; \
        optional group s { optional binary t (string); } optional fixed_len_byte_array(3) w; \
        optional group l (list) { repeated group list { optional int32 element; } } }";
    let mut properties = WriterProperties::builder()
        .set_writer_version(shape.version)
        .set_compression(shape.compression)
        .set_dictionary_enabled(shape.has_dictionaries)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_data_page_row_count_limit(3)
        .set_write_batch_size(3)
        .set_key_value_metadata(Some(vec![KeyValue::new(
            "geo".into(),
            r#"{"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": {"encoding": "WKB"}}}"#.to_owned(),
        )]));
    for &(column, encoding) in shape.encodings {
        let path = column.split('.').map(str::to_owned).collect::<Vec<_>>();
        properties = properties.set_column_encoding(ColumnPath::new(path), encoding);
    }
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties.build())).unwrap();
    for rows in [5, 2] {
        let columns = writer.schema_descr().columns().to_vec();
        let mut group = writer.next_row_group().unwrap();
        for of in columns {
            let mut column = group.next_column().unwrap().unwrap();
            write_column(column.untyped(), of.name(), of.max_def_level(), rows);
            column.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.into_inner().unwrap()
}

/// Writes a few values to a column with this definition level. In a nullable column, every second row is a null of the value or of its
/// struct.
fn write_column(column: &mut ColumnWriter<'_>, name: &str, level: i16, rows: usize) {
    let levels: Vec<i16> = (0..rows as i16).map(|row| (level - row % 2).max(0)).collect();
    let present = levels.iter().filter(|&&own| own == level).count();
    let (levels, repeated) = (Some(&levels[..]), vec![0; rows]);
    let numbers = 0..present as i32;
    match column {
        ColumnWriter::BoolColumnWriter(to) => {
            let values: Vec<bool> = numbers.map(|i| i % 3 == 0).collect();
            to.write_batch(&values, levels, None)
        }
        ColumnWriter::Int32ColumnWriter(to) => {
            let values: Vec<i32> = numbers.map(|i| 1000 * i - 7).collect();
            to.write_batch(&values, levels, Some(&repeated))
        }
        ColumnWriter::Int64ColumnWriter(to) => {
            let values: Vec<i64> = numbers.map(|i| i64::from(i) << 33).collect();
            to.write_batch(&values, levels, None)
        }
        ColumnWriter::Int96ColumnWriter(to) => {
            let values: Vec<Int96> = numbers.map(|i| Int96::from(vec![i as u32, 9, 2_440_588])).collect();
            to.write_batch(&values, levels, None)
        }
        ColumnWriter::FloatColumnWriter(to) => {
            let values: Vec<f32> = numbers.map(|i| i as f32 / 3.0).collect();
            to.write_batch(&values, levels, None)
        }
        ColumnWriter::DoubleColumnWriter(to) => {
            let values: Vec<f64> = numbers.map(|i| f64::from(i) / -7.0).collect();
            to.write_batch(&values, levels, None)
        }
        ColumnWriter::ByteArrayColumnWriter(to) => {
            let is_text = name == "t";
            let value = |i: i32| {
                let mut point = vec![1, 1, 0, 0, 0];
                point.extend(f64::from(i).to_le_bytes());
                point.extend(5.5_f64.to_le_bytes());
                ByteArray::from(if is_text { format!("text {}", i / 2).into_bytes() } else { point })
            };
            to.write_batch(&numbers.map(value).collect::<Vec<_>>(), levels, None)
        }
        ColumnWriter::FixedLenByteArrayColumnWriter(to) => {
            let value = |i: i32| FixedLenByteArray::from(ByteArray::from(vec![1, 2, i as u8]));
            to.write_batch(&numbers.map(value).collect::<Vec<_>>(), levels, None)
        }
    }
    .unwrap();
}
