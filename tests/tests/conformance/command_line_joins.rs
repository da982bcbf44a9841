//! The program's joins, run in this process.

use kauri::LonLat;
use kauri_tests::device_names;
use std::fs;
use tempfile::TempDir;

const CITIES: &str = "\
name,lon,lat,population
Stockholm,18.07,59.33,984000
Helsinki,24.94,60.17,675000
\"Oslo, the city\",10.75,59.91,717000
";
const AIRPORTS: &str = "\
iata;no,Longitude,Latitude,altitude_ft
ARN,17.92,59.65,137
HEL,24.96,60.32,179.5
OSL,11.10,60.20,681
";

/// The result of a run: exit code, standard output, standard error.
struct Answer {
    code: u8,
    out: String,
    err: String,
}

/// Runs the program in a folder with two tables. `@` in an argument is the folder.
fn run(cities: &str, airports: &str, arguments: &str) -> (Answer, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("cities.csv"), cities).unwrap();
    fs::write(folder.path().join("airports.csv"), airports).unwrap();
    let at = folder.path().display().to_string();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let arguments = format!("kauri {arguments}");
    let arguments = arguments.split_whitespace().map(|argument| argument.replace('@', &at));
    let code = kauri_cli::main_with(arguments, &mut out, &mut err);
    let text = |bytes| String::from_utf8(bytes).unwrap().replace(&at, "@");
    (Answer { code, out: text(out), err: text(err) }, folder)
}

const TABLES: &str = "--left @/cities.csv --right @/airports.csv";

fn answer(arguments: &str) -> String {
    let (answer, _folder) = run(CITIES, AIRPORTS, arguments);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{arguments}");
    answer.out
}

fn refused(cities: &str, airports: &str, arguments: &str) -> String {
    let (answer, _folder) = run(cities, airports, arguments);
    assert_eq!((answer.code, answer.out.as_str()), (2, ""), "{}", answer.err);
    answer.err
}

#[test]
fn best_pairs() {
    for device in device_names() {
        let arguments = format!(
            "join {TABLES} --within 45km --top 2 --score left.population+right.altitude_ft --device {device}"
        );
        let meters = |city: (f64, f64), airport: (f64, f64)| {
            LonLat::new(city.0, city.1).meters_to(&LonLat::new(airport.0, airport.1))
        };
        let (near, far) = (meters((18.07, 59.33), (17.92, 59.65)), meters((10.75, 59.91), (11.1, 60.2)));
        let expected = format!(
            "left_row,right_row,distance_m,score,left.name,left.lon,left.lat,left.population,right.iata;no,\
             right.Longitude,right.Latitude,right.altitude_ft\n\
             0,0,{near:.3},984137,Stockholm,18.07,59.33,984000,ARN,17.92,59.65,137\n\
             2,2,{far:.3},717681,\"Oslo, the city\",10.75,59.91,717000,OSL,11.10,60.20,681\n"
        );
        assert_eq!(answer(&arguments), expected);
        let json = answer(&format!("{arguments} --json"));
        assert!(json.starts_with(&format!("[{{\"distance_m\":{near}")), "{json}");
        assert!(json.contains("\"left\":0,\"right\":0,\"score\":984137.0}"), "{json}");
    }
}

#[test]
fn all_pairs_nearest_and_own() {
    let rows = |text: String| text.lines().skip(1).map(|line| line[..3].to_owned()).collect::<Vec<_>>();
    assert_eq!(rows(answer(&format!("join {TABLES} --within 45km --device cpu"))), ["0,0", "1,1", "2,2"]);
    assert_eq!(
        rows(answer("self-join --left @/airports.csv --within 20100km --device cpu")),
        ["0,1", "0,2", "1,2"]
    );
    assert_eq!(answer(&format!("join {TABLES} --within 45km --count --device cpu")), "3\n");
    assert_eq!(rows(answer("self-join --left @/cities.csv --within 430km --device cpu")), ["0,1", "0,2"]);
    assert_eq!(answer("self-join --left @/cities.csv --within 430km --count --device cpu"), "2\n");
    assert!(answer("join --help").contains("--score"));
}

/// Returns the expected lines of `kauri knn`: for each left place the nearest right places.
fn nearest(left: &[LonLat], right: &[LonLat], k: usize, within: f64) -> Vec<String> {
    let mut lines = Vec::new();
    for (row, place) in left.iter().enumerate() {
        let mut near: Vec<_> = right.iter().map(|other| place.meters_to(other)).zip(0..).collect();
        near.retain(|&(meters, _)| meters <= within);
        near.sort_by(|a, b| a.partial_cmp(b).unwrap());
        lines.extend(near.iter().take(k).map(|(meters, other)| format!("{row},{other},{meters:.3},")));
    }
    lines
}

#[test]
fn the_nearest_right_places_of_each_left_one() {
    let left: Vec<_> =
        (0..9).map(|i| LonLat::new(f64::from(i) * 39.5 - 178.0, f64::from(i * i) - 30.0)).collect();
    let right: Vec<_> =
        (0..13).map(|i| LonLat::new(f64::from(i) * 27.5 - 171.0, 44.0 - f64::from(7 * i))).collect();
    let table = |places: &[LonLat]| {
        let rows = places.iter().map(|place| format!("{},{}\n", place.lon, place.lat));
        format!("lon,lat\n{}", rows.collect::<String>())
    };
    for device in device_names() {
        for (options, k, within) in [
            ("", 1, f64::MAX),
            ("--k 3", 3, f64::MAX),
            ("--k 4 --within 4000km", 4, 4e6),
            // There are only 13 right places.
            ("--k 18446744073709551615", 13, f64::MAX),
            ("--k 0", 0, f64::MAX),
        ] {
            let arguments = format!("knn {TABLES} {options} --device {device}");
            let (answer, _folder) = run(&table(&left), &table(&right), &arguments);
            assert_eq!((answer.code, answer.err.as_str()), (0, ""));
            let lines: Vec<&str> = answer.out.lines().skip(1).collect();
            let expected = nearest(&left, &right, k, within);
            assert_eq!(lines.len(), expected.len(), "{options}: {}", answer.out);
            assert!(
                lines.iter().zip(&expected).all(|(line, expected)| line.starts_with(expected)),
                "{}",
                answer.out
            );
        }
    }
}

#[test]
fn unknown_extensions_are_refused() {
    for (command, name) in [
        (format!("join {TABLES} --within 45km"), "x.geojson"),
        (format!("join {TABLES} --within 45km"), "x.csv.gz"),
        (format!("knn {TABLES}"), "x.jpg"),
        ("self-join --left @/cities.csv --within 1km".to_owned(), "x"),
    ] {
        let error = refused(CITIES, AIRPORTS, &format!("{command} --device cpu --out @/{name}"));
        let expected = "the name must end in .csv or .json or .parquet or .geoparquet";
        assert!(error.contains("--out") && error.contains(expected), "{error}");
    }
    let error = refused(CITIES, AIRPORTS, &format!("knn {TABLES} --device cpu --json --out @/x.csv"));
    assert!(
        error.starts_with("error: --json and the extension of --out select different formats"),
        "{error}"
    );
}

#[test]
fn extensions_select_the_format() {
    let (answer, folder) = run(CITIES, AIRPORTS, &format!("knn {TABLES} --device cpu --out @/x.JSON"));
    assert_eq!((answer.code, answer.out.as_str(), answer.err.as_str()), (0, "", ""));
    let text = fs::read_to_string(folder.path().join("x.JSON")).unwrap();
    assert!(text.starts_with("[{\"distance_m\":") && text.ends_with("}]\n"), "{text}");
    assert_eq!(text.matches("\"left\":").count(), 3);
    assert_eq!(self::answer(&format!("knn {TABLES} --k 0 --json --device cpu")), "[]\n");
}

#[test]
fn the_chosen_device_is_printed() {
    let (answer, _folder) = run(CITIES, AIRPORTS, &format!("join {TABLES} --within 45km"));
    assert_eq!(answer.code, 0);
    let expected = "; this takes it about 0.00 s, and opening a GPU takes 0.35 s\n";
    assert!(answer.err.starts_with("device: cpu (") && answer.err.ends_with(expected), "{}", answer.err);
    let named = self::answer(&format!("join {TABLES} --within 45km --device cpu"));
    assert_eq!(answer.out, named);
}

/// Fields that need quotes, bytes that are no UTF-8, and rows that end in any way.
#[test]
fn fields_are_written_as_they_were_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let table = b"lon,lat,\"a \"\"b\"\"\"\r\n1,2,\"x\ny\"\r\n\r\n3,4,caf\xe9\n5,6,\"\"\n7,8,\"c\"\"d,\"";
    fs::write(path("t.csv"), table).unwrap();
    let arguments =
        ["kauri", "join", "--within", "0m", "--device", "cpu", "--left"].map(String::from).into_iter();
    let arguments =
        arguments.chain([path("t.csv"), "--right".into(), path("t.csv"), "--out".into(), path("o.csv")]);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    assert_eq!(kauri_cli::main_with(arguments, &mut out, &mut err), 0, "{}", String::from_utf8_lossy(&err));
    let expected = b"left_row,right_row,distance_m,left.lon,left.lat,\"left.a \"\"b\"\"\",right.lon,right.lat,\"right.a \"\"b\"\"\"\n\
        0,0,0.000,1,2,\"x\ny\",1,2,\"x\ny\"\n\
        1,1,0.000,3,4,caf\xe9,3,4,caf\xe9\n\
        2,2,0.000,5,6,,5,6,\n\
        3,3,0.000,7,8,\"c\"\"d,\",7,8,\"c\"\"d,\"\n";
    assert_eq!(String::from_utf8_lossy(&fs::read(path("o.csv")).unwrap()), String::from_utf8_lossy(expected));
}

#[test]
fn semicolons_and_tabs_separate_fields() {
    let join = format!("join {TABLES} --within 45km --device cpu");
    let expected = answer(&join);
    let airports = AIRPORTS.replace("iata;no", "\"iata;no\"");
    for separator in [";", "\t"] {
        // The quoted name of a city has a comma.
        let cities = CITIES.replace(',', separator).replace(&format!("Oslo{separator}"), "Oslo,");
        let (answer, _folder) = run(&cities, &airports.replace(',', separator), &join);
        assert_eq!((answer.code, answer.err.as_str(), answer.out.as_str()), (0, "", expected.as_str()));
    }
    let error = refused(&CITIES.replace(',', ";").replace("18.07", "18,07"), AIRPORTS, &join);
    assert_eq!(
        error,
        "error: @/cities.csv:2: column 'lon': '18,07' is not a number; expected a decimal point\n"
    );
}

#[test]
fn mistakes_are_named() {
    let join = format!("join {TABLES} --within 45km --device cpu");
    let bad = AIRPORTS.replace("60.32", "north");
    let error = refused(CITIES, &bad, &join);
    assert_eq!(error, "error: @/airports.csv:3: column 'Latitude': 'north' is not a number\n");
    let error = refused(CITIES, AIRPORTS, &format!("{join} --top 3 --score left.people+right.altitude_ft"));
    assert!(
        error.starts_with("error: @/cities.csv:1: no column 'people'; the columns are: name, lon"),
        "{error}"
    );
    let error = refused(
        &CITIES.replace("675000", "many"),
        AIRPORTS,
        &format!("{join} --top 3 --score left.population"),
    );
    assert_eq!(error, "error: @/cities.csv:3: column 'population': 'many' is not a number\n");
    let error = refused(CITIES, AIRPORTS, &format!("join {TABLES} --within 45 --device cpu"));
    assert!(error.contains("expected a distance with its unit"), "{error}");
    let error = refused(CITIES, AIRPORTS, &format!("{join} --top 3 --score population"));
    assert!(error.contains("expected left.COLUMN+right.COLUMN"), "{error}");
    let error = refused(CITIES, AIRPORTS, &format!("{join} --top 3 --score 1e999*left.population"));
    assert!(error.contains("--score") && error.contains("expected left.COLUMN+right.COLUMN"), "{error}");
    let error = refused(CITIES, AIRPORTS, &format!("{join} --count --top 3 --score left.population"));
    assert!(error.contains("cannot be used with"), "{error}");
    let error = refused(CITIES, AIRPORTS, &format!("{join} --top 3"));
    assert!(error.contains("--score"), "{error}");
    let error = refused(CITIES, AIRPORTS, "join --left @/none.csv --right @/airports.csv --within 1km");
    assert!(error.starts_with("error: @/none.csv: "), "{error}");
}
