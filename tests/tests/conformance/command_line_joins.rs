//! Joins on the command line, run in this process.

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

struct Answer {
    code: u8,
    out: String,
    err: String,
}

/// Runs the program in a folder with two tables; `@` in arguments is the folder.
fn run(cities: &str, airports: &str, arguments: &str) -> (Answer, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("cities.csv"), cities).unwrap();
    fs::write(folder.path().join("airports.csv"), airports).unwrap();
    let at = folder.path().display().to_string();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let arguments = format!("kauri {arguments}");
    let arguments = arguments.split_whitespace().map(|argument| argument.replace('@', &at));
    let code = kauri::cli::main_with(arguments, &mut out, &mut err);
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
        let metres = |city: (f64, f64), airport: (f64, f64)| {
            LonLat::new(city.0, city.1).metres_to(&LonLat::new(airport.0, airport.1))
        };
        let (near, far) = (metres((18.07, 59.33), (17.92, 59.65)), metres((10.75, 59.91), (11.1, 60.2)));
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
        rows(answer(&format!("knn {TABLES} --k 2 --within 500km --device cpu"))),
        ["0,0", "1,0", "1,1", "0,1", "2,2", "0,2"]
    );
    assert_eq!(rows(answer("self-join --left @/cities.csv --within 430km --device cpu")), ["0,1", "0,2"]);
    assert_eq!(answer("self-join --left @/cities.csv --within 430km --count --device cpu"), "2\n");
    assert!(answer("join --help").contains("--score"));
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
    let error = refused(CITIES, AIRPORTS, &format!("{join} --top 3"));
    assert!(error.contains("--score"), "{error}");
    let error = refused(CITIES, AIRPORTS, "join --left @/none.csv --right @/airports.csv --within 1km");
    assert!(error.starts_with("error: @/none.csv: "), "{error}");
}
