//! Parquet files and index files on the command line, run in this process.

use crate::command_line_case::Case;
use kauri::LonLat;
use kauri::io::{Numbers, Table};
use kauri_tests::device_names;
use parquet::data_type::DoubleType;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::fs;
use std::path::Path;
use std::sync::Arc;

const CITIES: &str = "\
name,lon,lat,population,code
Stockholm,18.07,59.33,984000,010
Helsinki,24.94,60.17,675000,
\"Oslo, the city\",10.75,59.91,717000,030
";
const AIRPORTS: &str = "\
iata,Longitude,Latitude,altitude_ft,runways
ARN,17.92,59.65,137,3
HEL,24.96,60.32,179.5,
OSL,11.10,60.20,681,2
";

fn case() -> Case {
    Case::new([("cities.csv", CITIES), ("airports.csv", AIRPORTS)])
}

const TABLES: &str = "--left @/cities.csv --right @/airports.csv";

#[test]
fn pairs_as_parquet_and_as_csv() {
    let score = "--top 2 --score left.population+right.altitude_ft";
    for device in device_names() {
        let case = case();
        let join = format!("join {TABLES} --within 45km {score} --device {device}");
        assert_eq!(case.answer(&format!("{join} --out @/pairs.parquet")), "");
        case.answer(&format!("{join} --out @/pairs.csv"));
        let read = |name| Table::read(case.path(name)).unwrap();
        let (parquet, csv) = (read("pairs.parquet"), read("pairs.csv"));
        let names = "left_row right_row distance_m score left.name left.lon left.lat left.population left.code right.iata \
                     right.Longitude right.Latitude right.altitude_ft right.runways";
        assert_eq!(csv.columns().join(" "), names);
        assert_eq!(parquet.columns().join(" "), format!("{names} geometry"));
        assert_eq!((parquet.len(), csv.len()), (2, 2));
        let column = |name: &str| parquet.numbers(parquet.column(name).unwrap()).unwrap();
        assert_eq!(column("left_row"), Numbers::Integers(vec![0, 2]));
        assert_eq!(column("score"), Numbers::Floats(vec![984_137.0, 717_681.0]));
        assert_eq!(column("left.population"), Numbers::Integers(vec![984_000, 717_000]));
        let meters = LonLat::new(18.07, 59.33).meters_to(&LonLat::new(17.92, 59.65));
        assert_eq!(column("distance_m").into_floats()[0], meters);
        let places = parquet.places(parquet.place_columns(None, None).unwrap()).unwrap();
        assert_eq!(places, [LonLat::new(18.07, 59.33), LonLat::new(10.75, 59.91)]);
        for (row, expected) in [(0, "ARN,17.92"), (1, "OSL,11.1")] {
            let fields = parquet.row(row).unwrap();
            assert_eq!(fields[9..11].join(","), expected);
            assert_eq!(fields[8], ["010", "030"][row], "codes with leading zeros are text");
        }
    }
}

#[test]
fn parquet_and_csv_input_give_equal_pairs() {
    let case = case();
    // Join each city with itself, and each airport, to get Parquet files of both tables.
    case.answer("knn --left @/cities.csv --right @/cities.csv --device cpu --out @/cities.parquet");
    case.answer("knn --left @/airports.csv --right @/airports.csv --device cpu --out @/airports.parquet");
    let rows = |text: String| {
        let rows = text.lines().map(|line| line.split(',').take(3).collect::<Vec<_>>().join(","));
        rows.collect::<Vec<_>>()
    };
    let expected = rows(case.answer(&format!("join {TABLES} --within 500km --device cpu")));
    assert!(expected.len() > 4, "{expected:?}");
    for tables in [
        // Places are the points of both files, the points of one file, or two columns.
        "--left @/cities.parquet --right @/airports.parquet",
        "--left @/cities.csv --right @/airports.parquet",
        "--left @/cities.parquet --left-lon left.lon --left-lat left.lat --right @/airports.csv",
    ] {
        let found = rows(case.answer(&format!("join {tables} --within 500km --device cpu")));
        assert_eq!(found, expected, "{tables}");
    }
    // The format of an input file follows from its bytes, not from its name.
    fs::copy(case.path("cities.parquet"), case.path("cities.data")).unwrap();
    assert_eq!(case.answer("self-join --left @/cities.data --within 430km --count --device cpu"), "2\n");
    case.answer(
        "join --left @/cities.parquet --right @/airports.csv --within 45km --device cpu --out @/out.parquet",
    );
    let out = Table::read(case.path("out.parquet")).unwrap();
    assert!(out.column("left.geometry").is_ok() && out.len() == 3);
    let info = case.answer("info @/cities.parquet");
    for text in ["3 rows", "left.name", "geometry", "places", "984000", "integers"] {
        assert!(info.contains(text), "'{text}' is not in\n{info}");
    }
}

/// Writes a Parquet file with one place and a column inside a list.
fn with_list(path: &Path) {
    let schema = "message schema { required double lon; required double lat;
        optional group tags (LIST) { repeated group list { required double element; } } }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let file = fs::File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for (values, levels) in [(&[18.0][..], None), (&[59.0], None), (&[1.0, 2.0], Some(([2, 2], [0, 1])))] {
        let mut column = group.next_column().unwrap().unwrap();
        let (definitions, repetitions) = levels.unzip();
        let [definitions, repetitions] =
            [&definitions, &repetitions].map(|levels| levels.as_ref().map(|levels| &levels[..]));
        column.typed::<DoubleType>().write_batch(values, definitions, repetitions).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
}

#[test]
fn columns_inside_lists_give_a_warning() {
    let case = case();
    with_list(&case.path("n.parquet"));
    let knn = "knn --left @/n.parquet --right @/airports.csv --device cpu";
    for out in ["", "--out @/o.csv", "--out @/o.parquet"] {
        let (code, _, err) = case.run(&format!("{knn} {out}"));
        let expected = "warning: @/n.parquet: columns within lists or maps are neither read nor written: tags.list.element\n";
        assert_eq!((code, err.as_str()), (0, expected));
    }
    assert_eq!(Table::read(case.path("o.parquet")).unwrap().columns()[3..5].join(" "), "left.lon left.lat");
    let info = case.answer("info @/n.parquet");
    assert!(info.lines().any(|line| line == "tags.list.element  within lists or maps: not read"), "{info}");
}

#[test]
fn info_describes_index_files() {
    use kauri::quadtree::{Quadtree, QuadtreeOptions};
    let case = case();
    let points: Vec<[f32; 2]> = (0..1200).map(|i| [i as f32, (i % 7) as f32]).collect();
    let options = QuadtreeOptions::default().leaf_points(2000);
    Quadtree::build(&kauri::Device::cpu(), &points, &options).unwrap().save(case.path("tree.kauri")).unwrap();
    let expected = "@/tree.kauri: index 'quadtree' of 1,200 points, f32 as 2 x f32, in 1 nodes\n\
                    section  bytes\n\
                    coords   9,600\n\
                    ids      4,800\n\
                    nodes    16\n\
                    frame    32\n\
                    options  8\n";
    assert_eq!(case.answer("info @/tree.kauri"), expected);
    kauri::RTree::build(&kauri::Device::cpu(), &points).unwrap().save(case.path("rtree.kauri")).unwrap();
    let expected = "@/rtree.kauri: index 'rtree' of 1,200 points, f32 as 2 x f32\n\
                    section  bytes\n\
                    coords   9,600\n\
                    ids      4,800\n\
                    corners  16\n\
                    num_ids  4\n";
    assert_eq!(case.answer("info @/rtree.kauri"), expected);
    let mut bytes = fs::read(case.path("tree.kauri")).unwrap();
    bytes.pop();
    fs::write(case.path("tree.kauri"), &bytes).unwrap();
    assert!(case.refused("info @/tree.kauri").contains("the file ends here"));
    fs::write(case.path("tree.kauri"), &bytes[..100]).unwrap();
    assert!(case.refused("info @/tree.kauri").contains("within a header"));
    assert!(case.refused("info @/none.kauri").contains("@/none.kauri"));
}

#[test]
fn errors_name_file_row_and_column() {
    let case = case();
    case.answer("knn --left @/cities.csv --right @/airports.csv --device cpu --out @/t.parquet");
    let right = "--right @/airports.csv --within 45km --device cpu";
    let with = |columns: &str| case.refused(&format!("join --left @/t.parquet {columns} {right}"));
    for (columns, expected) in [
        (
            "--left-lon left.name --left-lat left.lat",
            "@/t.parquet: column 'left.name': it has text; expected numbers",
        ),
        (
            "--left-lon left.lon --left-lat left.population",
            "@/t.parquet: row 0: column 'left.population': latitude 984000 is not within ±90 degrees",
        ),
        (
            "--left-lon left.lon --left-lat right.runways",
            "@/t.parquet: row 1: column 'right.runways': null; expected a number",
        ),
        (
            "--left-lon lon --left-lat left.lat",
            "@/t.parquet: no column 'lon'; the columns are: left_row, right_row, distance_m, left.name",
        ),
        (
            "--top 1 --score left.right.runways",
            "@/t.parquet: row 1: column 'right.runways': null; expected a number",
        ),
    ] {
        let error = with(columns);
        assert!(error.starts_with(&format!("error: {expected}")), "{columns}: {error}");
    }
    // Truncated and empty files.
    let bytes = fs::read(case.path("t.parquet")).unwrap();
    for broken in [&bytes[..4], &bytes[..bytes.len() / 2], &bytes[..bytes.len() - 1], b"PAR1PAR1"] {
        fs::write(case.path("t.parquet"), broken).unwrap();
        let error = with("");
        assert!(error.starts_with("error: @/t.parquet: the Parquet file cannot be read: "), "{error}");
    }
    fs::write(case.path("t.parquet"), b"").unwrap();
    assert_eq!(with(""), "error: @/t.parquet:1: the file is empty; expected a header\n");
}

#[test]
fn invalid_outputs() {
    let case = case();
    let join = format!("join {TABLES} --within 45km --device cpu");
    let error = case.refused(&format!("{join} --json --out @/out.parquet"));
    assert!(
        error.starts_with("error: --json and the extension of --out select different formats"),
        "{error}"
    );
    let error = case.refused(&format!("{join} --out @/missing/out.parquet"));
    assert!(error.starts_with("error: @/missing/out.parquet: No such file or directory"), "{error}");
    let count = "self-join --left @/cities.csv --within 1km --count --device cpu";
    assert!(case.refused(&format!("{count} --json")).contains("cannot be used with"));
    let entries = fs::read_dir(case.folder.path()).unwrap().count();
    assert_eq!(entries, 2, "an error leaves no file behind");
}

#[test]
fn plans_come_before_results() {
    let case = case();
    for device in device_names() {
        for (command, points, pairs) in [
            (format!("join {TABLES} --within 45km"), "3 left, 3 right", "about 3"),
            (
                format!("join {TABLES} --within 45km --top 2 --score left.population+right.altitude_ft"),
                "3 left, 3 right",
                "at most 2",
            ),
            (format!("knn {TABLES} --k 9"), "3 left, 3 right", "9"),
            (format!("knn {TABLES} --within 1km"), "3 left, 3 right", "at most 3"),
            ("self-join --left @/cities.csv --within 500km".to_owned(), "3 left, 3 right", "about 2"),
        ] {
            let (code, out, err) = case.run(&format!("{command} --device {device} --plan"));
            assert_eq!(code, 0, "{err}");
            assert_eq!(out, case.answer(&format!("{command} --device {device}")), "{command}");
            for line in ["device    ", "sets      ", "grid      ", "strategy  ", "memory    ", "pairs     "] {
                assert!(err.lines().any(|other| other.starts_with(line)), "no {line}in\n{err}");
            }
            assert!(err.contains(points) && err.ends_with(&format!("pairs     {pairs}\n")), "{err}");
        }
    }
}
