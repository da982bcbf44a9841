//! The program's demos, `doctor` and help, run in this process.

use kauri::LonLat;
use kauri_tests::device_names;
use kauri_tests::oracle::BruteForce;
use rayon::prelude::*;
use std::fs;
use std::io::{
    Write, {self},
};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const CITIES: &[u8] = include_bytes!("../../../data/cities.csv");
const AIRPORTS: &[u8] = include_bytes!("../../../data/airports.csv");

/// A folder with two input files.
struct Case {
    folder: TempDir,
}

/// The result of a run: exit code, standard output, standard error.
struct Answer {
    code: u8,
    out: String,
    err: String,
}

impl Case {
    fn new(cities: impl AsRef<[u8]>, airports: impl AsRef<[u8]>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("cities.csv"), cities).unwrap();
        fs::write(folder.path().join("airports.csv"), airports).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs `kauri demo nearest` on the two files with additional arguments. `@` in an argument is the folder.
    fn demo(&self, arguments: &str) -> Answer {
        let folder = self.folder.path().display().to_string();
        let all = format!("kauri demo nearest --cities @/cities.csv --airports @/airports.csv {arguments}");
        run(all.split_whitespace().map(|argument| argument.replace('@', &folder)))
    }

    /// Runs on the CPU, and expects an error that leaves no file behind. Returns the message.
    fn refused(&self, arguments: &str) -> String {
        let before = entries(self.folder.path());
        let answer = self.demo(&format!("--device cpu {arguments}"));
        assert_eq!((answer.code, answer.out.as_str()), (2, ""), "{}", answer.err);
        assert_eq!(entries(self.folder.path()), before);
        assert!(answer.err.starts_with("error: "), "{}", answer.err);
        answer.err
    }
}

fn run(arguments: impl IntoIterator<Item = String>) -> Answer {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = kauri_cli::main_with(arguments, &mut out, &mut err);
    Answer { code, out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap() }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Returns the expected file of `--out`.
fn expected_pairs(cities: &[LonLat], airports: &[LonLat], k: usize) -> String {
    let oracle = BruteForce::new(cities);
    let rows: Vec<String> = airports
        .par_iter()
        .enumerate()
        .map(|(airport, &place)| {
            let found = oracle.nearest(place, k);
            let lines = found.iter().zip(1..).map(|(&(_, city), rank)| {
                let km = place.meters_to(&cities[city as usize]) / 1e3;
                format!("{airport},{rank},{city},{km:.6}\n")
            });
            lines.collect()
        })
        .collect();
    format!("airport_id,rank,city_id,km\n{}", rows.concat())
}

const SMALL_CITIES: &str =
    "lon,lat,name\n179.9,0,East\n-179.9,0.5,West\n0,90,Pole\n2.35,48.85,\"Paris, \"\"France\"\"\"\n";
const SMALL_AIRPORTS: &str = "iata,LON,Lat\nAAA,180,0\nBBB,10,89\nCCC,2.5,49\n";

fn small_cities() -> [LonLat; 4] {
    [(179.9, 0.0), (-179.9, 0.5), (0.0, 90.0), (2.35, 48.85)].map(|(lon, lat)| LonLat::new(lon, lat))
}

fn small_airports() -> [LonLat; 3] {
    [(180.0, 0.0), (10.0, 89.0), (2.5, 49.0)].map(|(lon, lat)| LonLat::new(lon, lat))
}

#[test]
fn a_small_table_on_every_device() {
    for device in device_names() {
        let case = Case::new(SMALL_CITIES, SMALL_AIRPORTS);
        let answer = case.demo(&format!("--device {device} --k 3 --out @/out.csv --map @/map.png"));
        assert_eq!((answer.code, answer.err.as_str()), (0, ""));
        for text in [
            "4 cities, 3 airports, 3 nearest",
            "AAA",
            "#1",
            "Paris, \"France\"",
            "East 11.1 km",
            "read ",
            "build ",
        ] {
            assert!(answer.out.contains(text), "'{text}' is not in\n{}", answer.out);
        }
        let pairs = fs::read_to_string(case.path("out.csv")).unwrap();
        assert_eq!(pairs, expected_pairs(&small_cities(), &small_airports(), 3));
        assert!(fs::read(case.path("map.png")).unwrap().starts_with(b"\x89PNG"));
        assert_eq!(entries(case.folder.path()).len(), 4);
    }
}

#[test]
fn all_airports_and_all_cities() {
    let case = Case::new(CITIES, AIRPORTS);
    let read = |name| kauri::io::read_lonlat(case.path(name)).unwrap();
    let (cities, airports) = (read("cities.csv"), read("airports.csv"));
    assert_eq!((cities.points.len(), airports.points.len()), (135_233, 7184));
    let expected = expected_pairs(&cities.points, &airports.points, 5);
    for device in device_names() {
        let answer = case.demo(&format!("--device {device} --out @/out.csv"));
        assert_eq!((answer.code, answer.err.as_str()), (0, ""));
        assert!(answer.out.contains("London Heathrow Airport"), "{}", answer.out);
        assert!(fs::read_to_string(case.path("out.csv")).unwrap() == expected, "{device}");
    }
}

#[test]
fn a_scan_and_its_quadtree() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let demo = |arguments: &str| {
        let all = format!("kauri demo quadtree --tree @/tree.png --density @/density.png {arguments}");
        run(all.split_whitespace().map(|one| one.replace('@', &folder.path().display().to_string())))
    };
    let mut found = Vec::new();
    for device in device_names() {
        let answer =
            demo(&format!("--device {device} --points 30000 --per-square-meter 0.05 --leaf-points 8"));
        assert_eq!((answer.code, answer.err.as_str()), (0, ""));
        for text in
            ["30,000 points", "0.05 a square meter", "775 by 775 meters", "ground ", "scan ", "build "]
        {
            assert!(answer.out.contains(text), "'{text}' is not in\n{}", answer.out);
        }
        let (summary, _) = answer.out.split_once("\ndevice").unwrap();
        let pictures = ["tree.png", "density.png"].map(|name| fs::read(path(name)).unwrap());
        assert!(pictures.iter().all(|picture| picture.starts_with(b"\x89PNG")));
        found.push((summary.to_owned(), pictures));
    }
    assert!(found.iter().all(|one| *one == found[0]));
    for points in [0, 1, 21] {
        let answer = demo(&format!("--device cpu --points {points}"));
        assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    }
    for (arguments, what) in [
        ("--per-square-meter 0", "--per-square-meter"),
        ("--per-square-meter NaN", "--per-square-meter"),
        ("--leaf-points 0", "--leaf-points: points of a leaf 0"),
        ("--points 5000000000", "--points"),
    ] {
        let answer = demo(&format!("--device cpu {arguments}"));
        assert_eq!((answer.code, answer.out.as_str()), (2, ""));
        assert!(answer.err.contains(what), "{}", answer.err);
    }
    for arguments in
        ["quadtree --tree a.svg", "quadtree --density a", "render --out a.jpg", "join --map a.gif"]
    {
        let answer = run(format!("kauri demo {arguments}").split(' ').map(String::from));
        assert!(answer.code == 2 && answer.err.contains("the name must end in .png"), "{}", answer.err);
    }
}

#[test]
fn options() {
    let case = Case::new(SMALL_CITIES, SMALL_AIRPORTS);
    for (arguments, k, limit) in
        [("--limit 1 --k 2", 2, 1), ("--limit 0", 5, 0), ("--k 0", 0, 3), ("--k 9 --limit 9", 9, 3)]
    {
        let answer = case.demo(&format!("--device cpu --out @/out.csv --map @/map.png {arguments}"));
        assert_eq!(answer.code, 0, "{}", answer.err);
        let pairs = fs::read_to_string(case.path("out.csv")).unwrap();
        assert_eq!(pairs, expected_pairs(&small_cities(), &small_airports()[..limit], k), "{arguments}");
    }
    let folder = case.folder.path().display().to_string();
    let short = format!("kauri demo --cities {folder}/cities.csv --airports {folder}/airports.csv --k 2");
    let answer = run(short.split(' ').map(String::from));
    assert!(answer.out.contains("2 nearest cities"));
    // Without --device the program prints its choice.
    assert!(answer.err.starts_with("device: cpu (") && answer.err.lines().count() == 1, "{}", answer.err);
    assert!(answer.out.contains("opening a GPU takes"), "{}", answer.out);
}

#[test]
fn variants_of_csv_files() {
    let plain = Case::new(SMALL_CITIES, SMALL_AIRPORTS);
    assert_eq!(plain.demo("--device cpu --out @/out.csv").code, 0);
    let expected = fs::read(plain.path("out.csv")).unwrap();
    let crlf = SMALL_CITIES.replace('\n', "\r\n");
    let bom = format!("\u{feff}{SMALL_CITIES}");
    let other_names = SMALL_CITIES.replace("lon,lat", "Longitude,LATITUDE");
    let no_last_end = SMALL_CITIES.trim_end().to_owned();
    for cities in [crlf, bom, other_names, no_last_end] {
        let case = Case::new(&cities, SMALL_AIRPORTS);
        let answer = case.demo("--device cpu --out @/out.csv");
        assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{cities}");
        assert_eq!(fs::read(case.path("out.csv")).unwrap(), expected, "{cities}");
    }
    let none = Case::new("lon,lat\n", SMALL_AIRPORTS);
    assert_eq!(none.demo("--device cpu --out @/out.csv").code, 0);
    assert_eq!(fs::read_to_string(none.path("out.csv")).unwrap(), "airport_id,rank,city_id,km\n");
}

#[test]
fn invalid_tables() {
    for (cities, expected) in [
        ("", "cities.csv:1: the file is empty"),
        ("a,b\n1,2\n", "the columns are: a, b"),
        ("lon,lat\n1,2\n3,north\n", "cities.csv:3: column 'lat': 'north' is not a number"),
        ("lon,lat\n1,91\n", "cities.csv:2: column 'lat': latitude 91 is not within ±90 degrees"),
        ("lon,lat\n1,NaN\n", "not a finite number"),
        ("lon,lat\n1\n", "cities.csv:2: column 'lat': missing"),
    ] {
        let error = Case::new(cities, SMALL_AIRPORTS).refused("--out @/out.csv --map @/map.png");
        assert!(error.contains(expected), "{error}");
    }
    let error = Case::new(SMALL_CITIES, "lon,lat\n\"1\n\",2\nx,2\n").refused("");
    assert!(error.contains("airports.csv:4: column 'lon'"), "{error}");
}

#[test]
fn invalid_arguments() {
    let case = Case::new(SMALL_CITIES, SMALL_AIRPORTS);
    assert!(case.refused("--cities @/none.csv").contains("cannot be used multiple times"));
    assert!(case.refused("--k -1").contains("'-1'"));
    assert!(case.refused("--out @/missing/out.csv").contains("missing/out.csv: No such file or directory"));
    assert!(case.refused("--out @").contains("is a directory"));
    for (option, name) in [("--out", "x.parquet"), ("--out", "x"), ("--map", "x.jpg"), ("--map", "x.png.gz")]
    {
        let error = case.refused(&format!("{option} @/{name}"));
        assert!(error.contains(option) && error.contains("the name must end in ."), "{error}");
    }
    assert!(case.refused("--map @/missing/map.png").contains("missing/map.png"));
    let all = case.demo("--device cpu --k 1000000000000000");
    assert!(all.code == 0 && all.out.contains("4 nearest cities"), "fewer cities than --k: {}", all.err);
    let unknown = case.demo("--device quantum");
    assert_eq!((unknown.code, unknown.out.as_str()), (2, ""));
    assert_eq!(
        unknown.err,
        "error: --device: unknown device 'quantum': expected best, cpu, cuda, cuda:N or sim\n"
    );

    fs::remove_file(case.path("airports.csv")).unwrap();
    assert!(case.refused("").contains("airports.csv: No such file or directory"));
}

#[test]
fn doctor_describes_the_machine() {
    let answer = run(["kauri", "doctor"].map(String::from));
    assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{}", answer.out);
    for line in ["kauri ", "kernels ", "driver ", "cpu ", "best "] {
        assert!(answer.out.lines().any(|other| other.starts_with(line)), "no {line}in\n{}", answer.out);
    }
}

#[test]
fn help_and_unknown_commands() {
    let words = |text: &str| run(text.split(' ').map(String::from).collect::<Vec<_>>());
    let help = words("kauri --help");
    assert_eq!((help.code, help.err.as_str()), (0, ""));
    assert!(help.out.contains("demo"));
    let unknown = words("kauri frobnicate");
    assert_eq!((unknown.code, unknown.out.as_str()), (2, ""));
    assert!(unknown.err.starts_with("error: "));
    assert_eq!(words("kauri").code, 2);
}

/// A closed pipe or a full disk as standard output.
struct Broken(io::ErrorKind);

impl Write for Broken {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(self.0.into())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let case = Case::new(SMALL_CITIES, SMALL_AIRPORTS);
    let folder = case.folder.path().display().to_string();
    let arguments =
        format!("kauri demo --device cpu --cities {folder}/cities.csv --airports {folder}/airports.csv");
    let run = |kind, out: &str| {
        let mut err = Vec::new();
        let arguments = format!("{arguments} --out {folder}/{out}");
        let code = kauri_cli::main_with(arguments.split(' '), &mut Broken(kind), &mut err);
        assert!(case.path(out).exists(), "files are written before text");
        (code, String::from_utf8(err).unwrap())
    };
    assert_eq!(run(io::ErrorKind::BrokenPipe, "a.csv"), (0, String::new()));
    let (code, error) = run(io::ErrorKind::StorageFull, "b.csv");
    assert!(code == 2 && error.starts_with("error: standard output: "), "{error}");
}
