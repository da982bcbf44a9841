//! Reads arbitrary bytes as tables and meshes: each read returns an error about the file, or complete data. The fuzz
//! targets and their tests in the conformance suite share this module.

use kauri::io::{Table, read_mesh};
use kauri::{Error, LonLat};
use std::fs;
use std::path::Path;

/// Reads the bytes as a CSV or Parquet table, with all columns. Returns true if they are a table.
///
/// # Panics
/// If the table is incomplete, if an error is not about the file, or if the Parquet decoder panicked.
pub fn read_table(scratch: &Path, bytes: &[u8]) -> bool {
    write(scratch, bytes);
    let Some(table) = read(Table::read(scratch)) else { return false };
    let (num_rows, num_columns) = (table.len(), table.columns().len());
    for column in 0..num_columns {
        // `numbers` and `texts` both decode the column: every fourth column is decoded twice.
        let texts = read(table.texts(column));
        assert!(texts.is_none_or(|texts| texts.len() == num_rows));
        if column % 4 == 0 {
            let numbers = read(table.numbers(column));
            assert!(numbers.is_none_or(|numbers| numbers.len() == num_rows));
        }
    }
    if let Some(places) = read(table.place_columns(None, None)).and_then(|at| read(table.places(at))) {
        assert_eq!(places.len(), num_rows);
        let is_valid = |place: &LonLat| place.lon.abs() <= 360.0 && place.lat.abs() <= 90.0;
        assert!(places.iter().all(is_valid));
    }
    if let Some(points) = read(table.point_columns(None, None)).and_then(|at| read(table.present_points(at)))
    {
        assert_eq!(points.items.len(), points.rows.len());
        assert!(points.items.as_flattened().iter().all(|x| x.is_finite()));
        assert!(points.rows.iter().all(|&row| (row as usize) < num_rows));
    }
    if let Some(boxes) = read(table.box_columns(None)).and_then(|at| read(table.boxes(at))) {
        assert_eq!(boxes.len(), num_rows);
        assert!(boxes.as_flattened().as_flattened().iter().all(|x| x.is_finite()));
    }
    if num_rows > 0
        && let Some(row) = read(table.row(num_rows - 1))
    {
        assert_eq!(row.len(), num_columns);
    }
    true
}

/// Reads the bytes as a PLY or OBJ mesh. Returns true if they are a mesh.
///
/// # Panics
/// If the mesh is invalid, or if an error is not about the file.
pub fn read_triangles(scratch: &Path, bytes: &[u8]) -> bool {
    write(scratch, bytes);
    let Some(mesh) = read(read_mesh(scratch)) else { return false };
    let num_vertices = mesh.vertices().len();
    assert!(mesh.triangles().as_flattened().iter().all(|&vertex| (vertex as usize) < num_vertices));
    assert!(mesh.vertices().as_flattened().iter().all(|x| x.is_finite()));
    true
}

/// Writes a new file. Some file systems wait for the disk when an existing file is overwritten.
fn write(scratch: &Path, bytes: &[u8]) {
    let removed = fs::remove_file(scratch);
    assert!(removed.is_ok() || !scratch.exists(), "a scratch file can be removed");
    fs::write(scratch, bytes).expect("a scratch file can be written");
}

/// Returns the data, or `None` for an error that an invalid file may cause.
fn read<T>(result: kauri::Result<T>) -> Option<T> {
    let error = match result {
        Ok(read) => return Some(read),
        Err(error) => error,
    };
    assert!(matches!(error, Error::InvalidFile { .. } | Error::OutOfMemory { .. }), "{error:?}");
    // The checks before the Parquet decoder should find everything that makes it panic.
    assert!(!error.to_string().contains("its bytes are broken"), "{error}");
    None
}
