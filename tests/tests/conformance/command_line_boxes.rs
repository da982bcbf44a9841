//! The program's joins of boxes, run in this process.

use crate::command_line_case::{Case, Column, coords, geo, numbers, point, rows};
use kauri::io::{Numbers, Table};
use kauri_tests::device_names;
use kauri_tests::generate::Random;

type Bounds = [[f64; 2]; 2];

/// A parcel of 2 x 1, one that touches it, and one far away.
const PARCELS: &str = "\
id,xmin,ymin,xmax,ymax,value
a,0,0,2,1,10
b,2,1,3,4,20
c,10,10,11,11,40.5
";
/// A building inside of the first parcel, and one that is 3 and 4 from the second.
const BUILDINGS: &str = "\
XMin,XMax,YMin,YMax,height
0.5,1,0.5,1,3
6,7,8,9,5
";
const TABLES: &str = "--left @/parcels.csv --right @/buildings.csv --device cpu";

fn case() -> Case {
    Case::new([("parcels.csv", PARCELS), ("buildings.csv", BUILDINGS)])
}

/// Encodes a geometry in well-known binary from its type, the number of its parts, and their bytes.
fn wkb(geometry_type: u8, num_parts: u32, parts: &[u8]) -> Vec<u8> {
    [&[1, geometry_type, 0, 0, 0], &num_parts.to_le_bytes()[..], parts].concat()
}

fn line(points: &[[f64; 2]]) -> Vec<u8> {
    wkb(2, points.len() as u32, &coords(points))
}

fn polygon(ring: &[[f64; 2]]) -> Vec<u8> {
    wkb(3, 1, &[&(ring.len() as u32).to_le_bytes()[..], &coords(ring)].concat())
}

#[test]
fn all_predicates() {
    let case = case();
    assert_eq!(
        case.answer(&format!("join {TABLES} --predicate intersects")),
        "left_row,right_row,left.id,left.xmin,left.ymin,left.xmax,left.ymax,left.value,right.XMin,right.XMax,right.YMin,right.YMax,right.height\n\
         0,0,a,0,0,2,1,10,0.5,1,0.5,1,3\n"
    );
    assert_eq!(rows(&case.answer(&format!("join {TABLES} --predicate contains"))), ["0,0"]);
    let contained = "join --left @/buildings.csv --right @/parcels.csv --device cpu --predicate contains";
    assert_eq!(rows(&case.answer(contained)), [""; 0]);
    // A table without pairs has a header, too.
    assert!(case.answer(contained).starts_with("left_row,right_row,left.XMin,"));
    let within = case.answer(&format!("join {TABLES} --predicate within --within 5"));
    assert_eq!(rows(&within), ["0,0", "1,0", "1,1", "2,1"]);
    let distances = within.lines().map(|line| line.split(',').nth(2).unwrap());
    assert_eq!(distances.collect::<Vec<_>>(), ["distance", "0", "1", "5", &10_f64.sqrt().to_string()]);
    for (predicate, count) in [("intersects", "1\n"), ("contains", "1\n"), ("within --within 4.9", "3\n")] {
        assert_eq!(case.answer(&format!("join {TABLES} --predicate {predicate} --count")), count);
    }
}

#[test]
fn the_best_pairs() {
    let case = case();
    let join = format!("join {TABLES} --top 2 --score left.value+right.height");
    assert_eq!(rows(&case.answer(&format!("{join} --predicate within --within 5"))), ["2,1", "1,1"]);
    let json = case.answer(&format!("{join} --predicate within --within 5 --json"));
    let distance = 10_f64.sqrt();
    assert_eq!(
        json,
        format!(
            "[{{\"distance\":{distance},\"left\":2,\"right\":1,\"score\":45.5}},{{\"distance\":5.0,\"left\":1,\"right\":1,\"score\":25.0}}]\n"
        )
    );
    let intersecting = case.answer(&format!("{join} --predicate intersects"));
    assert!(intersecting.starts_with("left_row,right_row,score,left.id"), "{intersecting}");
    assert_eq!(intersecting.lines().nth(1).unwrap()[..8], *"0,0,13,a");
    let json = case.answer(&format!("{join} --predicate contains --json"));
    assert_eq!(json, "[{\"left\":0,\"right\":0,\"score\":13.0}]\n");
}

#[test]
fn pairs_of_one_table() {
    let case = case();
    case.write("nested.csv", "xmin,ymin,xmax,ymax\n1,1,2,2\n0,0,3,3\n1,1,2,2\n9,9,9,9\n");
    let join = |predicate: &str| {
        let arguments = format!("self-join --left @/nested.csv --device cpu --predicate {predicate}");
        let (pairs, count) = (rows(&case.answer(&arguments)), case.answer(&format!("{arguments} --count")));
        assert_eq!(count.trim().parse(), Ok(pairs.len()));
        pairs.join(" ")
    };
    assert_eq!(join("intersects"), "0,1 0,2 1,2");
    assert_eq!(join("within --within 10"), "0,1 0,2 0,3 1,2 1,3 2,3");
    // The containing box is the left one. Equal boxes contain each other.
    assert_eq!(join("contains"), "0,2 1,0 1,2 2,0");
}

#[test]
fn every_format_of_output() {
    let case = case();
    case.answer(&format!("join {TABLES} --predicate within --within 5 --out @/pairs.geoparquet"));
    case.answer(&format!("join {TABLES} --predicate within --within 5 --out @/pairs.csv"));
    let read = |name| Table::read(case.path(name)).unwrap();
    let (parquet, csv) = (read("pairs.geoparquet"), read("pairs.csv"));
    let names = "left_row right_row distance left.id left.xmin left.ymin left.xmax left.ymax left.value right.XMin right.XMax \
                 right.YMin right.YMax right.height";
    assert_eq!(csv.columns().join(" "), names);
    assert_eq!(parquet.columns().join(" "), format!("{names} geometry"));
    let column = |name: &str| parquet.numbers(parquet.column(name).unwrap()).unwrap();
    assert_eq!(column("right_row"), Numbers::Integers(vec![0, 0, 1, 1]));
    assert_eq!(column("distance"), Numbers::Floats(vec![0.0, 1.0, 5.0, 10_f64.sqrt()]));
    // The geometry is the left box, in an unknown reference system.
    let boxes = parquet.boxes(parquet.box_columns(None).unwrap()).unwrap();
    assert_eq!(boxes[2], [[2.0, 1.0], [3.0, 4.0]]);
    assert!(parquet.place_columns(None, None).unwrap_err().to_string().contains("(CRS) is unknown"));
    case.answer(&format!("join {TABLES} --predicate contains --out @/pairs.parquet"));
    assert_eq!(read("pairs.parquet").columns()[..3].join(" "), "left_row right_row left.id");
    assert_eq!(
        case.answer(&format!("join {TABLES} --predicate contains --json")),
        "[{\"left\":0,\"right\":0}]\n"
    );
    case.answer("join --left @/buildings.csv --right @/parcels.csv --device cpu --predicate contains --out @/none.parquet");
    let none = read("none.parquet");
    assert_eq!((none.len(), none.columns()[1..3].join(" ")), (0, "right_row left.XMin".to_owned()));
}

#[test]
fn boxes_of_any_column() {
    let case = case();
    case.write("other.csv", "w,s,e,n,xmin,ymin,xmax,ymax\n0.5,0.5,1,1,90,90,91,91\n");
    let join = "join --left @/parcels.csv --right @/other.csv --device cpu --predicate intersects";
    assert_eq!(case.answer(&format!("{join} --count")), "0\n");
    assert_eq!(case.answer(&format!("{join} --count --right-box w,s,e,N")), "1\n");
    let own =
        "self-join --left @/other.csv --left-box w,s,xmax,ymax --device cpu --predicate intersects --count";
    assert_eq!(case.answer(own), "0\n");
    let schema = "required double xmin; required double YMIN; required double xmax; required double ymax;";
    let columns = [[0.5, 6.0], [0.5, 8.0], [1.0, 7.0], [1.0, 9.0]].map(|values| numbers(&values));
    case.write_parquet("b.parquet", schema, None, &columns);
    let join = "join --left @/parcels.csv --right @/b.parquet --device cpu --predicate within --within 5";
    assert_eq!(rows(&case.answer(join)), ["0,0", "1,0", "1,1", "2,1"]);
}

#[test]
fn boxes_that_cover_geometries() {
    let case = case();
    let schema = "optional binary geometry; required group bbox { required float xmin; required float ymin; \
                  required float xmax; required float ymax; }";
    let covering = r#", "covering": {"bbox": {"xmin": ["bbox", "xmin"], "ymin": ["bbox", "ymin"], "xmax": ["bbox", "xmax"], "ymax": ["bbox", "ymax"]}}"#;
    let geometries = || Column::Geometries(vec![Some(point([50.0, 50.0])); 2]);
    let corners = [[0.5, 6.0], [0.5, 8.0], [1.0, 7.0], [1.0, 9.0]];
    let columns = |corners: [[f64; 2]; 4]| {
        let [a, b, c, d] = corners.map(|values| numbers(&values));
        [geometries(), a, b, c, d]
    };
    case.write_parquet("c.parquet", schema, Some(&geo(covering)), &columns(corners));
    let join = "join --left @/parcels.csv --right @/c.parquet --device cpu --predicate within --within 5";
    let (code, out, err) = case.run(join);
    assert_eq!((code, rows(&out).join(" ").as_str()), (0, "0,0 1,0 1,1 2,1"));
    assert_eq!(
        err,
        "right: the boxes in the columns `bbox.xmin`, `bbox.ymin`, `bbox.xmax`, `bbox.ymax` are joined, not the geometries themselves\n"
    );
    // Named columns come first, and need no message.
    let named = "--right-box bbox.xmin,bbox.ymin,bbox.xmax,bbox.ymax --count";
    assert_eq!(case.answer(&format!("{join} {named}")), "4\n");
    let inverted = [corners[0], corners[1], [1.0, -7.0], corners[3]];
    case.write_parquet("c.parquet", schema, Some(&geo(covering)), &columns(inverted));
    assert_eq!(
        case.refused(join),
        "error: @/c.parquet: row 1: column 'bbox.xmax': -7 is less than 6 in column 'bbox.xmin'; split a box over the date line in two\n"
    );
    case.write_parquet(
        "c.parquet",
        schema,
        Some(&geo(&covering.replace("\"xmin\"]", "\"west\"]"))),
        &columns(corners),
    );
    assert_eq!(
        case.refused(join),
        "error: @/c.parquet: its geo metadata name the column 'bbox.west', which does not exist\n"
    );
    case.write_parquet("c.parquet", schema, Some(&geo(r#", "covering": {"bbox": {}}"#)), &columns(corners));
    let error = case.refused(join);
    assert!(error.contains("column 'geometry': its covering has no paths of xmin"), "{error}");
    let optional = schema.replace("required group", "optional group");
    let nulls = [0.5, 0.5, 1.0, 1.0].map(|value| Column::Numbers(vec![Some(value), None]));
    let [a, b, c, d] = nulls;
    case.write_parquet("c.parquet", &optional, Some(&geo(covering)), &[geometries(), a, b, c, d]);
    assert_eq!(
        case.refused(join),
        "error: @/c.parquet: row 1: column 'bbox.xmin': null; expected a number\n"
    );
}

#[test]
fn boxes_of_geometries() {
    let case = case();
    let empty_polygon = wkb(3, 0, &[]);
    let collection = wkb(7, 2, &[line(&[[9.0, 9.0], [10.5, 10.5]]), point([8.0, 20.0])].concat());
    let geometries = [
        polygon(&[[0.0, 0.0], [1.0, 0.0], [0.5, 0.5], [0.0, 0.0]]),
        line(&[[2.5, 5.0], [2.5, 3.0], [9.0, 9.0]]),
        empty_polygon.clone(),
        wkb(6, 1, &polygon(&[[2.0, 1.0], [2.0, 1.0], [2.0, 1.0]])),
        collection,
        point([f64::NAN; 2]),
    ];
    let meters = r#", "crs": {"id": {"authority": "EPSG", "code": 25833}}"#;
    case.write_geometries("g.parquet", meters, &geometries.clone().map(Some));
    let join = "join --left @/g.parquet --right @/parcels.csv --device cpu";
    let expected_err = "left: the boxes of the geometries in column `geometry` are joined, not the geometries themselves\n\
                        left: 2 empty geometries have no box and no partner\n";
    let (code, out, err) = case.run(&format!("{join} --predicate intersects --out @/o.parquet"));
    assert_eq!((code, out.as_str(), err.as_str()), (0, "", expected_err));
    let out = Table::read(case.path("o.parquet")).unwrap();
    assert_eq!(out.numbers(0).unwrap(), Numbers::Integers(vec![0, 1, 3, 3, 4]));
    assert_eq!(out.numbers(1).unwrap(), Numbers::Integers(vec![0, 1, 0, 1, 2]));
    assert_eq!(out.columns()[2], "left.geometry");
    // The reference system is that of the left geometries.
    let error = out.place_columns(None, None).unwrap_err().to_string();
    assert!(error.contains("EPSG:25833"), "{error}");
    case.write_geometries("d.parquet", "", &[Some(point([0.5, 0.5]))]);
    let (code, out, err) =
        case.run("join --left @/g.parquet --right @/d.parquet --device cpu --predicate contains --count");
    assert_eq!((code, out.as_str()), (0, "1\n"));
    let warning =
        "warning: the tables have different reference systems (CRS), left EPSG:25833, right OGC:CRS84; ";
    assert!(err.lines().last().unwrap().starts_with(warning), "{err}");
    // Nothing is as far away as an empty geometry.
    let (code, out, _) = case.run(&format!("{join} --predicate within --within 1e9 --count"));
    assert_eq!((code, out.as_str()), (0, "12\n"));
    case.write_geometries("g.parquet", "", &[Some(empty_polygon)]);
    let (code, out, _) = case.run(&format!("{join} --predicate within --within 1e9 --count"));
    assert_eq!((code, out.as_str()), (0, "0\n"));
}

#[test]
fn geometries_that_have_no_boxes() {
    let case = case();
    let join = "self-join --left @/g.parquet --device cpu --predicate intersects";
    let valid = || Some(point([1.0, 2.0]));
    let curve = wkb(8, 3, &coords(&[[0.0, 0.0], [1.0, 1.0], [2.0, 0.0]]));
    for (geometry, reason) in [
        (None, "null; expected a geometry"),
        (Some(point([f64::NAN, 1.0])), "NaN is not a finite number"),
        (Some(line(&[[0.0, 0.0], [f64::INFINITY, 1.0]])), "inf is not a finite number"),
        (Some(vec![]), "0 bytes that are not well-known binary"),
        (Some(point([0.0, 1.0])[..20].to_vec()), "20 bytes that are not well-known binary"),
        (Some([point([0.0, 1.0]), vec![0]].concat()), "22 bytes that are not well-known binary"),
        (Some(wkb(7, 1, &wkb(7, u32::MAX, &[]))), "18 bytes that are not well-known binary"),
        (Some(wkb(7, 1, &[]).repeat(100_000)), "more than 64 collections of geometries within each other"),
        (Some(curve), "a curve; expected points, lines and polygons"),
    ] {
        case.write_geometries("g.parquet", "", &[valid(), geometry]);
        assert_eq!(case.refused(join), format!("error: @/g.parquet: row 1: column 'geometry': {reason}\n"));
    }
    case.write_geometries("g.parquet", r#", "edges": "spherical""#, &[valid()]);
    let error = case.refused(join);
    assert!(error.contains("column 'geometry': its edges are not straight lines"), "{error}");
    let native = r#"{"primary_column": "geometry", "columns": {"geometry": {"encoding": "polygon"}}}"#;
    case.write_parquet(
        "g.parquet",
        "required binary geometry;",
        Some(native),
        &[Column::Geometries(vec![valid()])],
    );
    assert!(case.refused(join).contains("its encoding is 'polygon'; expected geometries as WKB"));
    case.write_parquet("g.parquet", "required binary geometry;", None, &[Column::Geometries(vec![valid()])]);
    let error = case.refused(join);
    assert!(
        error.contains("no columns for boxes (xmin, ymin, xmax, ymax); the columns are: geometry"),
        "{error}"
    );
    // Points as structs are boxes, too.
    let points = r#"{"primary_column": "p", "columns": {"p": {"encoding": "point"}}}"#;
    let schema = "required group p { required double x; required double y; }";
    case.write_parquet(
        "g.parquet",
        schema,
        Some(points),
        &[numbers(&[1.0, 1.0, 5.0]), numbers(&[2.0, 2.0, 5.0])],
    );
    assert_eq!(rows(&case.answer(join)), ["0,1"]);
}

#[test]
fn mistakes_are_named() {
    let case = case();
    let join = format!("join {TABLES}");
    for (options, expected) in [
        ("--predicate within", "--within <DISTANCE>"),
        ("", "--within <DISTANCE>"),
        (
            "--predicate within --within 50km",
            "error: invalid value '50km' for '--within <DISTANCE>': planar coordinates have no unit of length; expected a number in the units of \
             the tables' coordinates",
        ),
        (
            "--predicate within --within far",
            "'far' for '--within <DISTANCE>': expected a number in the units",
        ),
        ("--predicate within --within nan", "expected a number in the units"),
        (
            "--predicate intersects --within 5",
            "error: invalid value '5' for '--within <DISTANCE>': only `--predicate within` has a distance",
        ),
        ("--predicate contains --within 5", "only `--predicate within` has a distance"),
        ("--predicate overlaps", "possible values: intersects, within, contains"),
        (
            "--within 5",
            "error: invalid value '5' for '--within <DISTANCE>': expected a distance with its unit",
        ),
        ("--within 5km --left-box a,b,c,d", "--predicate <PREDICATE>"),
        ("--within 5km --right-box a,b,c,d", "--predicate <PREDICATE>"),
        ("--predicate intersects --left-lon xmin", "cannot be used with"),
        ("--predicate intersects --right-lat XMin", "cannot be used with"),
        (
            "--predicate intersects --left-box a,b,c",
            "expected the names of four columns: XMIN,YMIN,XMAX,YMAX",
        ),
        (
            "--predicate intersects --left-box xmin,ymin,xmax,top",
            "error: @/parcels.csv:1: no column 'top'; the columns are: id, xmin",
        ),
        (
            "--predicate intersects --left-box id,ymin,xmax,ymax",
            "@/parcels.csv:2: column 'id': 'a' is not a number",
        ),
        ("--predicate intersects --count --json", "cannot be used with"),
        ("--predicate intersects --top 3", "--score"),
    ] {
        let error = case.refused(&format!("{join} {options}"));
        assert!(error.contains(expected), "{options}: {error}");
    }
    let error =
        case.refused("self-join --left @/parcels.csv --predicate intersects --top 3 --score left.value");
    assert!(error.contains("unexpected argument '--top'"), "{error}");
    case.write("parcels.csv", &PARCELS.replace("b,2,1,3,4", "b,179,1,-179,4"));
    assert_eq!(
        case.refused(&format!("{join} --predicate intersects")),
        "error: @/parcels.csv:3: column 'xmax': -179 is less than 179 in column 'xmin'; split a box over the date line in two\n"
    );
    case.write("parcels.csv", &PARCELS.replace("b,2", "b,1e300"));
    let error = case.refused(&format!("{join} --predicate intersects"));
    assert!(error.contains("column 'xmax': 3 is less than 1"), "{error}");
    case.write("parcels.csv", &PARCELS.replace("b,2", "b,-1e300"));
    let error = case.refused(&format!("{join} --predicate intersects"));
    assert!(error.starts_with("error: low corner of box 1"), "{error}");
}

#[test]
fn plans_and_devices() {
    let case = case();
    for device in device_names() {
        let join = format!("join --left @/parcels.csv --right @/buildings.csv --device {device}");
        for (options, pairs) in [
            ("--predicate within --within 5", "about 4"),
            ("--predicate contains --top 2 --score left.value", "at most 2"),
        ] {
            let (code, out, err) = case.run(&format!("{join} {options} --plan"));
            assert_eq!(code, 0, "{err}");
            assert_eq!(out, case.answer(&format!("{join} {options}")));
            assert!(
                err.contains("3 left, 2 right") && err.ends_with(&format!("pairs     {pairs}\n")),
                "{err}"
            );
        }
    }
    let (code, _, err) =
        case.run("join --left @/parcels.csv --right @/buildings.csv --predicate contains --quiet");
    assert_eq!(code, 0);
    assert!(err.starts_with("device: cpu (") && err.contains("0.00 s"), "{err}");
    let error =
        case.refused("join --left @/parcels.csv --right @/buildings.csv --predicate contains --device warp");
    assert!(error.starts_with("error: --device: unknown device 'warp'"), "{error}");
}

/// Boxes of a lattice, so that many touch and many are equal or points.
fn random_boxes(random: &mut Random, n: usize) -> Vec<Bounds> {
    let mut below = |n: u64| random.below(n) as f64;
    let mut boxes = Vec::new();
    for _ in 0..n {
        let low = [below(14) / 2.0, below(14) / 2.0 - 7.0];
        boxes.push([low, [low[0] + below(5), low[1] + below(5)]]);
    }
    boxes
}

#[test]
fn all_pairs_are_those_of_a_loop() {
    let case = case();
    let mut random = Random::new(11);
    let [left, right] = [70, 90].map(|n| random_boxes(&mut random, n));
    for (name, boxes) in [("left.csv", &left), ("right.csv", &right)] {
        let row = |[low, high]: &Bounds| format!("{},{},{},{}\n", low[0], low[1], high[0], high[1]);
        case.write(name, &format!("xmin,ymin,xmax,ymax\n{}", boxes.iter().map(row).collect::<String>()));
    }
    let intersects = |a: &Bounds, b: &Bounds| (0..2).all(|i| a[0][i] <= b[1][i] && b[0][i] <= a[1][i]);
    let contains = |a: &Bounds, b: &Bounds| (0..2).all(|i| a[0][i] <= b[0][i] && b[1][i] <= a[1][i]);
    let is_near = |a: &Bounds, b: &Bounds| {
        let gap = |i: usize| (a[0][i] - b[1][i]).max(b[0][i] - a[1][i]).max(0.0);
        gap(0) * gap(0) + gap(1) * gap(1) <= 2.5 * 2.5
    };
    type Holds<'a> = &'a dyn Fn(&Bounds, &Bounds) -> bool;
    for (predicate, holds) in
        [("intersects", &intersects as Holds<'_>), ("contains", &contains), ("within --within 2.5", &is_near)]
    {
        let expected: Vec<String> = (0..left.len())
            .flat_map(|l| (0..right.len()).map(move |r| (l, r)))
            .filter(|&(l, r)| holds(&left[l], &right[r]))
            .map(|(l, r)| format!("{l},{r}"))
            .collect();
        assert!(expected.len() > 50, "{predicate}");
        for device in device_names() {
            let join = format!(
                "join --left @/left.csv --right @/right.csv --device {device} --predicate {predicate}"
            );
            assert_eq!(rows(&case.answer(&join)), expected, "{predicate} on {device}");
        }
    }
}
