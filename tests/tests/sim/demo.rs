//! Demos on a simulated device print what they print on the CPU.

use std::fs;

#[test]
fn nearest_rows_equal_the_cpu() {
    let folder = tempfile::tempdir().unwrap();
    // A tree of all cities would take the simulator most of a minute.
    let some_cities: Vec<_> = include_str!("../../../data/cities.csv").lines().step_by(9).collect();
    let cities = folder.path().join("cities.csv");
    fs::write(&cities, some_cities.join("\n")).unwrap();
    let airports = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/airports.csv");
    let rows = ["cpu", "sim"].map(|device| {
        let out = folder.path().join(format!("{device}.csv")).display().to_string();
        let arguments = ["kauri", "demo", "nearest", "--device", device, "--limit", "20", "--out", &out];
        let files = ["--cities", cities.to_str().unwrap(), "--airports", airports];
        let mut messages = Vec::new();
        let code = kauri_cli::main_with(arguments.iter().chain(&files), &mut Vec::new(), &mut messages);
        assert_eq!(code, 0, "{}", String::from_utf8_lossy(&messages));
        fs::read_to_string(out).unwrap()
    });
    assert_eq!(rows[0].lines().count(), 1 + 20 * 5);
    assert!(rows[0] == rows[1]);
}

#[test]
fn quadtree_summaries_equal_the_cpu() {
    let summaries = ["cpu", "sim"].map(|device| {
        let (mut out, mut messages) = (Vec::new(), Vec::new());
        let arguments = ["kauri", "demo", "quadtree", "--device", device, "--points", "1500"];
        let code = kauri_cli::main_with(arguments, &mut out, &mut messages);
        assert_eq!(code, 0, "{}", String::from_utf8_lossy(&messages));
        String::from_utf8(out).unwrap().split_once("\ndevice").unwrap().0.to_owned()
    });
    assert!(summaries[0].contains("1,500 points"), "{}", summaries[0]);
    assert_eq!(summaries[0], summaries[1]);
}
