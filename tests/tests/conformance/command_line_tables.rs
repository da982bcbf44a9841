//! Tables of the program's joins: planar coordinates, rows without a match, nulls, and geometries without metadata.

use crate::command_line_case::{Case, Column, geo, numbers, point, rows};
use kauri::io::{PointColumns, Table};
use kauri_tests::device_names;

/// Wells and houses in meters. House 1 is 5 from well 0, and well 2 has no house within 100.
const WELLS: &str = "id,x,y,yield\na,1000,2000,7\nb,1040,2000,8\nc,-5e6,0,9\n";
const HOUSES: &str = "name;y;x\nred;2030;1040\n\"blue; new\";2004;1003\n";
const TABLES: &str = "--left @/wells.csv --right @/houses.csv --device cpu";

fn case() -> Case {
    Case::new([("wells.csv", WELLS), ("houses.csv", HOUSES)])
}

/// A field of GeoParquet metadata with a reference system of EPSG.
fn crs(code: u32, kind: &str) -> String {
    format!(r#", "crs": {{"type": "{kind}", "id": {{"authority": "EPSG", "code": {code}}}}}"#)
}

#[test]
fn planar_points() {
    let case = case();
    for device in device_names() {
        let tables = TABLES.replace("--device cpu", &format!("--crs planar --device {device}"));
        assert_eq!(
            case.answer(&format!("join {tables} --within 30")),
            "left_row,right_row,distance,left.id,left.x,left.y,left.yield,right.name,right.y,right.x\n\
             0,1,5,a,1000,2000,7,blue; new,2004,1003\n\
             1,0,30,b,1040,2000,8,red,2030,1040\n"
        );
        assert_eq!(case.answer(&format!("join {tables} --within 29.9 --count")), "1\n");
        let best = case.answer(&format!("join {tables} --within 1e9 --top 1 --score left.yield --json"));
        assert!(
            best.ends_with("\"left\":2,\"right\":0,\"score\":9.0}]\n") && best.contains("\"distance\":50"),
            "{best}"
        );
        assert_eq!(
            rows(&case.answer(&format!("knn {tables} --k 2"))),
            ["0,1", "0,0", "1,0", "1,1", "2,1", "2,0"]
        );
        assert_eq!(rows(&case.answer(&format!("knn {tables} --within 6"))), ["0,1"]);
    }
    let own = "self-join --left @/wells.csv --crs planar --device cpu";
    assert_eq!(rows(&case.answer(&format!("{own} --within 40"))), ["0,1"]);
    assert_eq!(case.answer(&format!("{own} --within 40 --left-x yield --left-y yield --count")), "3\n");
    let (code, _, err) = case.run(&format!("join {TABLES} --crs planar --within 30 --plan"));
    assert!(code == 0 && err.contains("3 left, 2 right") && err.ends_with("pairs     about 2\n"), "{err}");
}

#[test]
fn projected_geoparquet() {
    let case = case();
    let [utm, lon_lat] = [crs(25833, "ProjectedCRS"), crs(4326, "GeographicCRS")];
    let points = |all: &[[f64; 2]]| all.iter().map(|&at| Some(point(at))).collect::<Vec<_>>();
    case.write_geometries("a.parquet", &utm, &points(&[[1000.0, 2000.0], [9000.0, 0.0]]));
    case.write_geometries("b.parquet", &utm, &points(&[[1003.0, 2004.0]]));
    case.write_geometries("c.parquet", &lon_lat, &points(&[[13.0, 52.0]]));
    case.write_geometries("d.parquet", &crs(4258, "GeographicCRS"), &points(&[[13.0, 52.0]]));
    let join = |right: &str| format!("join --left @/a.parquet --right @/{right} --within 5 --device cpu");
    assert_eq!(rows(&case.answer(&join("b.parquet"))), ["0,0"]);
    case.answer(&format!("{} --out @/o.parquet", join("b.parquet")));
    let out = Table::read(case.path("o.parquet")).unwrap();
    assert_eq!(out.columns().join(" "), "left_row right_row distance left.geometry right.geometry geometry");
    assert_eq!(out.reference_system().as_deref(), Some("EPSG:25833"));
    assert_eq!(out.points(out.point_columns(None, None).unwrap()).unwrap(), [[1000.0, 2000.0]]);
    // The output is joined as planar, too.
    assert_eq!(case.answer("self-join --left @/o.parquet --within 1 --count --device cpu"), "0\n");
    for (right, expected) in [
        (
            "c.parquet",
            "the tables have different reference systems (CRS), left EPSG:25833, right OGC:CRS84; convert one of them",
        ),
        (
            "houses.csv",
            "the left table has the reference system (CRS) EPSG:25833, and the right table names none; add --crs planar if its \
             coordinates are in EPSG:25833 too",
        ),
    ] {
        assert_eq!(case.refused(&join(right)), format!("error: {expected}\n"));
    }
    assert_eq!(case.answer(&format!("{} --crs planar --count", join("houses.csv"))), "1\n");
    let error = case.refused(&format!("{} --crs planar", join("c.parquet")));
    assert!(error.contains("different reference systems"), "{error}");
    let error = case.refused(&join("b.parquet").replace("--within 5", "--within 5km"));
    assert!(
        error.contains("invalid value '5km' for '--within <DISTANCE>': planar coordinates have no unit"),
        "{error}"
    );
    // Degrees on another ellipsoid are not planar.
    let own = "self-join --left @/d.parquet --within 5km --count --device cpu";
    let error = case.refused(own);
    assert!(error.contains("(CRS) is EPSG:4258; expected longitudes and latitudes"), "{error}");
    assert_eq!(case.answer(&format!("{own} --crs planar").replace("5km", "5")), "0\n");
    let error =
        case.refused(&format!("{} --crs lonlat", join("b.parquet").replace("--within 5", "--within 5m")));
    assert!(error.contains("(CRS) is EPSG:25833; expected longitudes and latitudes"), "{error}");
    // Named columns are not the points that the metadata describe.
    let schema = "required binary geometry; required double lon; required double lat;";
    let columns = [Column::Geometries(points(&[[1.0, 2.0]])), numbers(&[13.0]), numbers(&[52.0])];
    case.write_parquet("e.parquet", schema, Some(&geo(&utm)), &columns);
    let named = "knn --left @/e.parquet --left-lon lon --left-lat lat --right @/c.parquet --device cpu";
    assert_eq!(case.answer(named).lines().nth(1).unwrap()[..10], *"0,0,0.000,");
}

#[test]
fn left_rows_without_a_match() {
    let case = case();
    for device in device_names() {
        let tables = TABLES.replace("--device cpu", &format!("--crs planar --how left --device {device}"));
        let expected = "left_row,right_row,distance,left.id,left.x,left.y,left.yield,right.name,right.y,right.x\n\
                        0,1,5,a,1000,2000,7,blue; new,2004,1003\n\
                        1,,,b,1040,2000,8,,,\n\
                        2,,,c,-5e6,0,9,,,\n";
        assert_eq!(case.answer(&format!("join {tables} --within 6")), expected);
        assert_eq!(case.answer(&format!("knn {tables} --within 6")), expected);
        assert_eq!(rows(&case.answer(&format!("knn {tables} --k 0"))), ["0,", "1,", "2,"]);
    }
    let knn = format!("knn {TABLES} --crs planar --how left --within 6");
    assert_eq!(
        case.answer(&format!("{knn} --json")),
        "[{\"distance\":5.0,\"left\":0,\"right\":1},{\"distance\":null,\"left\":1,\"right\":null},\
         {\"distance\":null,\"left\":2,\"right\":null}]\n"
    );
    case.answer(&format!("{knn} --out @/o.parquet"));
    let out = Table::read(case.path("o.parquet")).unwrap();
    assert_eq!(out.row(1).unwrap()[..9], ["1", "", "", "b", "1040", "2000", "8", "", ""]);
    assert_eq!(
        out.points(PointColumns::Geometries(out.column("geometry").unwrap())).unwrap()[2],
        [-5e6, 0.0]
    );
    // A table without matches, and boxes.
    case.write("none.csv", "x,y\n");
    let none = case
        .answer("join --left @/wells.csv --right @/none.csv --crs planar --within 1 --how left --device cpu");
    assert_eq!(rows(&none), ["0,", "1,", "2,"]);
    case.write("boxes.csv", "xmin,ymin,xmax,ymax\n0,0,1,1\n5,5,6,6\n");
    case.write("other.csv", "xmin,ymin,xmax,ymax\n5,5,5,5\n");
    let boxes = "join --left @/boxes.csv --right @/other.csv --predicate intersects --how left --device cpu";
    assert_eq!(
        case.answer(boxes),
        "left_row,right_row,left.xmin,left.ymin,left.xmax,left.ymax,right.xmin,right.ymin,right.xmax,right.ymax\n\
         0,,0,0,1,1,,,,\n1,0,5,5,6,6,5,5,5,5\n"
    );
    for options in ["--count", "--top 1 --score left.yield"] {
        let error = case.refused(&format!("join {TABLES} --crs planar --within 5 --how left {options}"));
        assert!(error.contains("--how") && error.contains("cannot be used with"), "{error}");
    }
}

#[test]
fn rows_with_nulls_are_left_out() {
    let case = case();
    case.write("gaps.csv", "id,x,y,score\na,,1,1\nb,1,2,5\nc, ,,1\nd,1,2,7\ne,3,,1\n");
    let join = "join --left @/gaps.csv --right @/gaps.csv --crs planar --within 1 --device cpu";
    assert_eq!(case.refused(join), "error: @/gaps.csv:2: column 'x': empty; expected a number\n");
    let (code, out, err) = case.run(&format!("{join} --skip-nulls"));
    let skipped =
        "left: rows without points that are left out: 3\nright: rows without points that are left out: 3\n";
    assert_eq!((code, rows(&out).join(" ").as_str(), err.as_str()), (0, "1,1 1,3 3,1 3,3", skipped));
    assert!(out.contains("\n1,3,0,b,1,2,5,d,1,2,7\n"), "{out}");
    let (_, best, _) = case.run(&format!("{join} --skip-nulls --top 1 --score left.score+right.score"));
    assert_eq!(rows(&best), ["3,3"]);
    let (_, _, err) = case.run(&format!("{join} --skip-nulls --out @/o.parquet"));
    assert_eq!(err, skipped);
    let out = Table::read(case.path("o.parquet")).unwrap();
    assert_eq!(out.points(out.point_columns(None, None).unwrap()).unwrap(), [[1.0, 2.0]; 4]);
    // Other mistakes stay errors.
    case.write("gaps.csv", "x,y\n,1\n1,north\n");
    assert_eq!(
        case.refused(&format!("{join} --skip-nulls")),
        "error: @/gaps.csv:3: column 'y': 'north' is not a number\n"
    );
    // Without nulls nothing is printed.
    assert_eq!(
        case.answer(
            "self-join --left @/wells.csv --crs planar --within 50 --count --skip-nulls --device cpu"
        ),
        "1\n"
    );
    // Null and empty points, null numbers, and null boxes.
    case.write_geometries("p.parquet", "", &[None, Some(point([1.0, 2.0])), Some(point([f64::NAN; 2]))]);
    let own = "self-join --left @/p.parquet --within 1km --count --device cpu";
    assert_eq!(case.refused(own), "error: @/p.parquet: row 0: column 'geometry': null; expected a point\n");
    let (_, out, err) = case.run(&format!("{own} --skip-nulls"));
    assert_eq!((out.as_str(), err.as_str()), ("0\n", "left: rows without places that are left out: 2\n"));
    let (_, out, err) =
        case.run("self-join --left @/p.parquet --predicate intersects --count --skip-nulls --device cpu");
    assert!(out == "0\n" && err.contains("left: rows without boxes that are left out: 1\n"), "{out}{err}");
    let schema = "optional double lon; required double lat;";
    case.write_parquet(
        "n.parquet",
        schema,
        None,
        &[Column::Numbers(vec![Some(1.0), None, Some(1.0)]), numbers(&[2.0; 3])],
    );
    let (_, out, err) = case.run(&own.replace("p.parquet", "n.parquet").replace("--count", "--skip-nulls"));
    assert_eq!(
        (rows(&out).join(" ").as_str(), err.as_str()),
        ("0,2", "left: rows without places that are left out: 1\n")
    );
    let covering = r#", "covering": {"bbox": {"xmin": ["b", "x0"], "ymin": ["b", "y0"], "xmax": ["b", "x1"], "ymax": ["b", "y1"]}}"#;
    let schema = "optional binary geometry; optional group b { required double x0; required double y0; required double x1; required double y1; }";
    let boxes = || [0.0, 0.0, 1.0, 1.0].map(|value| Column::Numbers(vec![None, Some(value), Some(value)]));
    let [a, b, c, d] = boxes();
    let geometries = Column::Geometries(vec![None, Some(point([0.5; 2])), Some(point([0.5; 2]))]);
    case.write_parquet("c.parquet", schema, Some(&geo(covering)), &[geometries, a, b, c, d]);
    let (_, out, err) =
        case.run("self-join --left @/c.parquet --predicate intersects --skip-nulls --device cpu");
    assert!(
        rows(&out) == ["1,2"] && err.contains("left: rows without boxes that are left out: 1\n"),
        "{out}{err}"
    );
}

#[test]
fn geometries_without_metadata() {
    let case = case();
    let schema = "required binary shape; required binary other (string);";
    let texts = || Column::Geometries(vec![Some(b"t".to_vec()); 2]);
    let points = Column::Geometries(vec![Some(point([1000.0, 2000.0])), Some(point([13.0, 52.0]))]);
    case.write_parquet("g.parquet", schema, None, &[points, texts()]);
    let join = "join --left @/g.parquet --left-geometry shape --right @/houses.csv --crs planar --within 5 --device cpu";
    assert_eq!(rows(&case.answer(join)), ["0,1"]);
    let right =
        "knn --left @/houses.csv --right @/g.parquet --right-geometry SHAPE --crs planar --device cpu";
    assert_eq!(rows(&case.answer(right)), ["0,0", "1,0"]);
    let own = "self-join --left @/g.parquet --left-geometry shape --device cpu";
    assert_eq!(
        case.refused(&format!("{own} --within 5km")),
        "error: @/g.parquet: row 0: column 'shape': longitude 1000 is not within ±360 degrees; --crs planar joins other coordinates \
         as points of the plane\n"
    );
    let (code, out, err) = case.run(&format!("{own} --predicate within --within 1e4 --count"));
    assert_eq!((code, out.as_str()), (0, "1\n"));
    assert_eq!(
        err,
        "left: the boxes of the geometries in column `shape` are joined, not the geometries themselves\n"
    );
    for (arguments, expected) in [
        (
            own.replace("shape", "other"),
            "@/g.parquet: row 0: column 'other': 1 bytes that are not well-known binary",
        ),
        (own.replace("shape", "none"), "@/g.parquet: no column 'none'; the columns are: shape, other"),
        (format!("{own} --left-x a"), "cannot be used with"),
        (
            own.replace("g.parquet", "wells.csv").replace("shape", "id"),
            "@/wells.csv:1: column 'id': a CSV file has no geometries as bytes",
        ),
    ] {
        let error = case.refused(&format!("{arguments} --crs planar --within 5"));
        assert!(error.contains(expected), "{error}");
    }
    let error = case.refused("self-join --left @/wells.csv --predicate intersects --crs lonlat");
    assert!(error.contains("'lonlat' for '--crs <CRS>': boxes have planar coordinates"), "{error}");
    // The metadata describe the named column.
    case.write_geometries("m.parquet", &crs(25833, "ProjectedCRS"), &[Some(point([1.0, 2.0]))]);
    let own = "self-join --left @/m.parquet --left-geometry geometry --within 5 --device cpu --count";
    assert_eq!(case.answer(own), "0\n");
}

#[test]
fn info_tells_planar_from_geographic_coordinates() {
    let case = case();
    let info = case.answer("info @/wells.csv");
    assert!(info.contains("\nx       x coordinates  -5000000"), "{info}");
    case.write_geometries("a.parquet", &crs(25833, "ProjectedCRS"), &[Some(point([1.0, 2.0]))]);
    let info = case.answer("info @/a.parquet");
    assert!(info.starts_with("@/a.parquet: 1 rows, reference system (CRS) EPSG:25833\n"), "{info}");
    assert!(info.contains("\ngeometry  points"), "{info}");
}

#[test]
fn output_to_standard_output() {
    let case = case();
    let knn = format!("knn {TABLES} --crs planar");
    assert_eq!(case.answer(&format!("{knn} --out -")), case.answer(&knn));
    assert_eq!(case.answer(&format!("{knn} --out - --json")), case.answer(&format!("{knn} --json")));
    let error = case.refused("join --left - --right - --within 5km");
    assert!(error.starts_with("error: only one table can be standard input"), "{error}");
}

#[test]
fn large_numbers() {
    let case = case();
    case.write("wells.csv", "x,y\n1e300,0\n-1e300,0\n");
    let error = case.refused("self-join --left @/wells.csv --crs planar --within 5 --device cpu");
    assert!(error.starts_with("error: "), "{error}");
}
