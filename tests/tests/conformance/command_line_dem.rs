//! `kauri dem` on LAS and LAZ files, run in this process. GeoTIFF files are read back with the crate `tiff`.

use crate::command_line_case::Case;
use kauri_tests::device_names;
use las::point::{Classification, Format};
use las::{Builder, Point, Transform, Vector, Vlr, Writer};
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;
use tiff::decoder::{Decoder, DecodingResult};
use tiff::tags::Tag;

/// The low corner of the points, on the cells of a resolution of 2.
const LOW: [f64; 2] = [450_010.0, 4_400_020.0];

/// A point: x and y from the low corner, height, class, number of its return.
type Return = ([f64; 2], f64, u8, u8);

/// GeoTIFF keys of a system with one code.
const UTM: [u16; 3] = [1, 3072, 25833];
const WGS84: [u16; 3] = [2, 2048, 4326];

fn case() -> Case {
    Case { folder: tempfile::tempdir().unwrap() }
}

fn write(path: &Path, system: Option<[u16; 3]>, points: &[Return]) {
    let mut builder = Builder::from((1, 2));
    builder.point_format = Format::new(1).unwrap();
    builder.point_format.is_compressed = path.extension().is_some_and(|extension| extension == "laz");
    let of = |offset: f64| Transform { scale: 0.01, offset };
    builder.transforms = Vector { x: of(LOW[0]), y: of(LOW[1]), z: of(50.0) };
    if let Some([model, key, code]) = system {
        let keys = [1, 1, 0, 2, 1024, 0, 1, model, key, 0, 1, code];
        builder.vlrs.push(Vlr {
            user_id: "LASF_Projection".to_owned(),
            record_id: 34735,
            description: String::new(),
            data: keys.iter().flat_map(|key| key.to_le_bytes()).collect(),
        });
    }
    let mut writer = Writer::from_path(path, builder.into_header().unwrap()).unwrap();
    for &([x, y], z, class, return_number) in points {
        let classification = Classification::new(class).unwrap();
        let (x, y, gps_time) = (LOW[0] + x, LOW[1] + y, Some(0.0));
        let (return_number, number_of_returns) = (return_number, 2);
        writer
            .write_point(Point {
                x,
                y,
                z,
                classification,
                return_number,
                number_of_returns,
                gps_time,
                ..Point::default()
            })
            .unwrap();
    }
    writer.close().unwrap();
}

/// The height of the ground, a plane.
fn ground([x, y]: [f64; 2]) -> f64 {
    100.0 + 0.5 * x - 0.25 * y
}

/// Ground at the corners of cells of 2 by 2 in an area of 20 by 16. Trees 10 above it, which the first pulses hit, stand where x is 8 or more. One point is
/// noise far above.
fn scan() -> Vec<Return> {
    let corners =
        (0..=10).flat_map(|column| (0..=8).map(move |row| [2.0 * f64::from(column), 2.0 * f64::from(row)]));
    let pulses = corners.flat_map(|at| {
        let tree = (at[0] >= 8.0).then(|| (at, ground(at) + 10.0, 5, 1));
        let ground = (at, ground(at), 2, if tree.is_some() { 2 } else { 1 });
        tree.into_iter().chain([ground])
    });
    pulses.chain([([4.0, 4.0], 5000.0, 7, 1)]).collect()
}

struct Raster {
    columns: usize,
    rows: usize,
    values: Vec<f32>,
    decoder: Decoder<BufReader<File>>,
}

impl Raster {
    fn read(path: &Path) -> Self {
        let mut decoder = Decoder::new(BufReader::new(File::open(path).unwrap())).unwrap();
        let (columns, rows) = decoder.dimensions().unwrap();
        let DecodingResult::F32(values) = decoder.read_image().unwrap() else { panic!("not 32-bit floats") };
        Self { columns: columns as usize, rows: rows as usize, values, decoder }
    }

    /// Returns the centers of cells, from the low corner of the points, with their values.
    fn cells(&self, [west, north]: [f64; 2], resolution: f64) -> impl Iterator<Item = ([f64; 2], f64)> {
        self.values.iter().enumerate().map(move |(i, &value)| {
            let (column, row) = ((i % self.columns) as f64 + 0.5, (i / self.columns) as f64 + 0.5);
            ([west + column * resolution, north - row * resolution], f64::from(value))
        })
    }
}

#[test]
fn models_of_the_ground_and_of_the_trees_on_every_device() {
    let case = case();
    write(&case.path("scan.laz"), Some(UTM), &scan());
    for (model, of) in [
        ("dtm", ground as fn([f64; 2]) -> f64),
        ("dsm", |at| ground(at) + if at[0] > 8.0 { 10.0 } else { 0.0 }),
        ("chm", |at| if at[0] > 8.0 { 10.0 } else { 0.0 }),
    ] {
        let mut files = Vec::new();
        for device in device_names() {
            let arguments =
                format!("dem @/scan.laz --model {model} --resolution 2 --out @/out.tif --device {device}");
            let text = case.answer(&arguments);
            for words in [
                "10 x 8 cells of 2, 0 without a value (0.0 %)",
                "a second",
                "interpolate",
                "wrote   @/out.tif",
            ] {
                assert!(text.contains(words), "'{words}' is not in\n{text}");
            }
            files.push(fs::read(case.path("out.tif")).unwrap());
        }
        assert!(files.iter().all(|file| *file == files[0]));
        let mut raster = Raster::read(&case.path("out.tif"));
        assert_eq!((raster.columns, raster.rows), (10, 8));
        // Between x of 6 and 8 the surface rises from the ground to the trees.
        for (at, value) in raster.cells([0.0, 16.0], 2.0).filter(|(at, _)| at[0] != 7.0) {
            assert!((value - of(at)).abs() < 1e-4, "{model} at {at:?}: {value}");
        }
        let corner = raster.decoder.get_tag_f64_vec(Tag::ModelTiepointTag).unwrap();
        assert_eq!(corner[3..5], [LOW[0], LOW[1] + 16.0]);
        let keys = raster.decoder.get_tag_u16_vec(Tag::GeoKeyDirectoryTag).unwrap();
        assert!(keys.chunks(4).any(|key| *key == [3072, 0, 1, 25833]));
    }
}

#[test]
fn several_files_and_other_methods() {
    let case = case();
    let all = scan();
    write(&case.path("tile-1.las"), Some(UTM), &all[..60]);
    write(&case.path("tile-2.laz"), Some(UTM), &all[60..]);
    let run = |options: &str| {
        let text =
            case.answer(&format!("dem @/tile-*.la? --resolution 2 --device cpu --out @/a.tif {options}"));
        (text, Raster::read(&case.path("a.tif")))
    };
    let (text, counts) = run("--model all --method count --radius 1.5");
    assert!(text.contains("points by count") && text.contains(&format!("of {} points", all.len())), "{text}");
    // The four corners of a cell, where there are trees twice.
    for ([x, _], count) in counts.cells([0.0, 16.0], 2.0).filter(|(at, _)| at[0] != 7.0) {
        assert_eq!(count, if x > 8.0 { 8.0 } else { 4.0 });
    }
    let (_, classes) = run("--class 5 --method max --radius 1.5");
    assert!(classes.cells([0.0, 16.0], 2.0).all(|(at, value)| value.is_nan() == (at[0] < 7.0)));
    for method in ["nearest", "idw", "idw-radius", "mean", "min", "natural", "spline", "stdev"] {
        let (text, raster) = run(&format!("--method {method}"));
        assert!(text.contains(&format!("DTM by {method}: 10 x 8")), "{text}");
        // The ground is from 96 to 110 high.
        let range = if method == "stdev" { 0.1..10.0 } else { 96.0..110.0 };
        assert!(raster.values.iter().all(|value| range.contains(value)), "{method}: {:?}", raster.values);
    }
}

#[test]
fn ground_without_classes() {
    let case = case();
    // A point each meter, and houses of 6 by 6.
    let all = (0..40).flat_map(|x| (0..40).map(move |y| [f64::from(x), f64::from(y)]));
    let is_house =
        |[x, y]: [f64; 2]| (6.0..=12.0).contains(&(x % 20.0)) && (6.0..=12.0).contains(&(y % 20.0));
    let scan: Vec<Return> = all.map(|at| (at, if is_house(at) { 8.0 } else { 0.0 }, 1, 1)).collect();
    write(&case.path("scan.laz"), Some(UTM), &scan);
    let err = case.refused("dem @/scan.laz --out @/a.tif --device cpu");
    assert!(err.contains("no points of class 2 for the DTM: the points have classes 1 (unassigned"), "{err}");
    let range = |options: &str| {
        let text =
            case.answer(&format!("dem @/scan.laz --out @/a.tif --device cpu --ground-filter {options}"));
        text.lines().find(|line| line.starts_with("values")).unwrap().to_owned()
    };
    assert_eq!(range("--max-window-size 20"), "values from 0.00 to 0.00");
    assert_eq!(range("--model chm"), "values from 0.00 to 8.00");
    let err = case.refused("dem @/scan.laz --out @/a.tif --device cpu --ground-filter --slope -1");
    assert!(err.contains("--slope: slope -1"), "{err}");
}

#[test]
fn areas_and_formats() {
    let case = case();
    write(&case.path("scan.las"), Some(UTM), &scan());
    let bounds = format!("{},{},{},{}", LOW[0] + 4.0, LOW[1] + 2.0, LOW[0] + 12.0, LOW[1] + 6.0);
    let run =
        |options: &str| case.answer(&format!("dem @/scan.las --device cpu --bounds {bounds} {options}"));
    let text =
        run("--resolution 1 --out @/part.tif --hillshade @/part.png --azimuth 90 --z-factor 2 --nodata -1");
    assert!(text.contains("8 x 4 cells of 1, 0 without") && text.contains("hillshade    32 cells"), "{text}");
    let mut part = Raster::read(&case.path("part.tif"));
    for (at, value) in part.cells([4.0, 6.0], 1.0) {
        assert!((value - ground(at)).abs() < 1e-4, "{at:?}: {value}");
    }
    assert_eq!(part.decoder.get_tag_ascii_string(Tag::GdalNodata).unwrap(), "-1");
    assert!(fs::read(case.path("part.png")).unwrap().starts_with(b"\x89PNG"));
    run("--resolution 4 --out @/part.asc");
    let text = fs::read_to_string(case.path("part.asc")).unwrap();
    let (head, values) = text.split_once("NODATA_value -9999\n").unwrap();
    assert_eq!(head, "ncols 3\nnrows 2\nxllcorner 450012\nyllcorner 4400020\ncellsize 4\n");
    assert_eq!(values.split_whitespace().count(), 6);
    // Heights do not depend on the bounds.
    run("--resolution 1 --method idw --out @/part.tif");
    case.answer("dem @/scan.las --device cpu --resolution 1 --method idw --out @/whole.tif");
    let [part, whole] = ["part.tif", "whole.tif"].map(|name| Raster::read(&case.path(name)));
    assert_eq!([part.columns, part.rows, whole.columns, whole.rows], [8, 4, 20, 16]);
    let of_whole = (10..14).flat_map(|row| &whole.values[20 * row + 4..][..8]);
    assert!(part.values.iter().eq(of_whole));
    // With a buffer, cells at the border have fewer points around them.
    let text = run("--resolution 1 --buffer 0 --out @/part.tif");
    assert!(text.contains("DTM: 15 of "), "{text}");
}

#[test]
fn a_plan_does_nothing() {
    let case = case();
    write(&case.path("scan.laz"), Some(UTM), &scan());
    let text = case.answer("dem @/scan.laz --resolution 0.5 --model chm --out @/a.tif --device cpu --plan");
    for words in [
        "163, or fewer that are kept",
        "CHM by tin",
        "40 x 32 of 0.5",
        "EPSG:25833",
        "memory",
        "x 450010 to 450030",
    ] {
        assert!(text.contains(words), "'{words}' is not in\n{text}");
    }
    assert_eq!(fs::read_dir(case.folder.path()).unwrap().count(), 1);
}

#[test]
fn headers_that_lie_about_the_area() {
    let case = case();
    write(&case.path("scan.las"), Some(UTM), &scan());
    let mut bytes = fs::read(case.path("scan.las")).unwrap();
    // The greatest x is at byte 179.
    bytes[179..187].copy_from_slice(&(LOW[0] + 3.0).to_le_bytes());
    fs::write(case.path("scan.las"), bytes).unwrap();
    let text = case.answer("dem @/scan.las --resolution 2 --out @/a.tif --device cpu");
    assert!(text.contains("10 x 8 cells"), "{text}");
}

#[test]
fn refused_options_and_files() {
    let case = case();
    write(&case.path("a.laz"), Some(UTM), &scan());
    write(&case.path("degrees.laz"), Some(WGS84), &scan());
    write(&case.path("none.laz"), Some(UTM), &[]);
    fs::write(case.path("b.txt"), "x y z").unwrap();
    for (arguments, what) in [
        (
            "@/a.laz --out @/o.tif --resolution 0",
            "--resolution: resolution 0: expected a length greater than 0",
        ),
        ("@/a.laz --out @/o.tif --resolution nan", "--resolution: resolution NaN"),
        ("@/a.laz --out @/o.tif --resolution -1", "--resolution: resolution -1"),
        ("@/a.laz --out @/o.tif --resolution 1e-6", "choose a larger resolution or smaller --bounds"),
        (
            "@/a.laz --out @/o.tif --class 3,9",
            "no points of classes 3, 9 for the DTM: the points have classes 2 (ground, 99 points), 5 (high vegetation, 63 points)",
        ),
        ("@/none.laz --out @/o.tif", "there are no points in this area"),
        ("@/a.laz --out @/o.tif --bounds 0,0,1,1", "there are no points in this area: check --bounds"),
        ("@/a.laz --out @/o.tif --bounds 1,0,1,1", "XMIN < XMAX"),
        ("@/a.laz --out @/o.tif --method mean --radius -1", "--radius: radius -1"),
        ("@/a.laz --out @/o.tif --method idw --k 0", "--k: number of nearest points 0: expected 1 to 32"),
        ("@/a.laz --out @/o.tif --method idw --power 0", "--power: power 0"),
        ("@/a.laz --out @/o.tif --max-edge nan", "--max-edge: edge NaN"),
        (
            "@/a.laz --out @/o.tif --hillshade @/h.png --altitude 91",
            "--altitude: altitude of the light in degrees 91",
        ),
        ("@/a.laz --out @/o.tif --altitude 40", "--hillshade"),
        ("@/a.laz --out @/o.tif --slope 1", "--ground-filter"),
        ("@/a.laz --out @/o.tif --model dsm --ground-filter", "--ground-filter is for --model dtm or chm"),
        ("@/a.laz --out @/o.jpg", "the name must end in .tif or .tiff or .asc"),
        ("@/a.laz --out @/missing/o.tif", "missing/o.tif: No such file"),
        (
            "@/degrees.laz --out @/o.tif",
            "the coordinates are longitudes and latitudes (EPSG:4326), so that a resolution of 1 is 1 degrees",
        ),
        ("@/b.txt --out @/o.tif", "b.txt"),
        ("@/*.las --out @/o.tif", "no file matches"),
        ("--out @/o.tif", "FILES"),
    ] {
        let err = case.refused(&format!("dem --device cpu {arguments}"));
        assert!(err.starts_with("error: ") && err.contains(what), "{arguments}: {err}");
    }
    assert_eq!(fs::read_dir(case.folder.path()).unwrap().count(), 4);
    case.answer("dem --device cpu @/degrees.laz --out @/o.tif --degrees");
}

#[test]
fn warnings() {
    let case = case();
    let line: Vec<Return> = (0..10).map(|i| ([f64::from(i); 2], 1.0, 2, 1)).collect();
    write(&case.path("line.las"), None, &line);
    let (code, out, err) = case.run("dem @/line.las --device cpu --out @/a.tif");
    assert!(code == 0 && out.contains("100.0 %"), "{out}");
    let [no_system, no_value] = [err.lines().next().unwrap(), err.lines().nth(1).unwrap()];
    assert!(no_system.starts_with("warning: the files name no reference system"), "{err}");
    assert!(no_value.starts_with("warning: no cell has a value; no triangle contains"), "{err}");
    assert_eq!(err.lines().count(), 2);
}

#[test]
fn the_demo_of_a_generated_scan() {
    let case = case();
    let arguments =
        "--points 2000 --per-square-meter 0.2 --resolution 4 --device cpu --out @/a.tif --hillshade @/a.png";
    let text = case.answer(&format!("demo terrain {arguments}"));
    assert!(text.starts_with("kauri dem ") && text.contains("DTM by tin: 25 x 25 cells of 4"), "{text}");
    assert_eq!(Raster::read(&case.path("a.tif")).values.len(), 625);
    let refused = case.refused("demo terrain --per-square-meter 0 --out @/b.tif");
    assert!(refused.contains("expected a number above 0"), "{refused}");
}
