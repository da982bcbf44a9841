//! The main job on a simulated device.

use std::fs;

#[test]
fn the_rows_are_those_of_the_cpu() {
    let folder = tempfile::tempdir().unwrap();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../data");
    let rows = ["cpu", "sim"].map(|device| {
        let out = folder.path().join(device).display().to_string();
        let (cities, airports) = (format!("{data}/cities.csv"), format!("{data}/airports.csv"));
        let arguments = ["kauri", "demo", "nearest", "--device", device, "--limit", "20", "--out", &out];
        let files = ["--cities", &cities, "--airports", &airports];
        let mut messages = Vec::new();
        let code = kauri::cli::main_with(arguments.iter().chain(&files), &mut Vec::new(), &mut messages);
        assert_eq!(code, 0, "{}", String::from_utf8_lossy(&messages));
        fs::read_to_string(out).unwrap()
    });
    assert_eq!(rows[0].lines().count(), 1 + 20 * 5);
    assert!(rows[0] == rows[1]);
}
