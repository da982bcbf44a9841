//! What must hold for any bytes that are read as a table or a mesh: an error of the file, or something whole. The fuzz targets and their
//! twins in the conformance suite share it.

use kauri::io::{Table, read_mesh};
use kauri::{Error, LonLat};
use std::fs;
use std::path::Path;

/// Reads the bytes as a table, CSV or Parquet, and all that is in it; true if there was one.
///
/// # Panics
/// If the table is not whole, an error is not the file's, or the Parquet decoder had to be stopped.
pub fn read_table(scratch: &Path, bytes: &[u8]) -> bool {
    write(scratch, bytes);
    let Some(table) = read(Table::read(scratch)) else { return false };
    let (num_rows, num_columns) = (table.len(), table.columns().len());
    for column in 0..num_columns {
        // Both read the column.
        let texts = read(table.texts(column));
        assert!(texts.is_none_or(|texts| texts.len() == num_rows));
        if column % 4 == 0 {
            let numbers = read(table.numbers(column));
            assert!(numbers.is_none_or(|numbers| numbers.len() == num_rows));
        }
    }
    if let Some(places) = read(table.place_columns(None, None)).and_then(|at| read(table.places(at))) {
        assert_eq!(places.len(), num_rows);
        let is_one = |place: &LonLat| place.lon.abs() <= 360.0 && place.lat.abs() <= 90.0;
        assert!(places.iter().all(is_one));
    }
    if num_rows > 0
        && let Some(rows) = read(table.rows())
    {
        assert_eq!(rows.row(num_rows - 1).len(), num_columns);
    }
    true
}

/// Reads the bytes as a mesh, PLY or OBJ; true if there was one.
///
/// # Panics
/// If the mesh is not whole, or an error is not the file's.
pub fn read_triangles(scratch: &Path, bytes: &[u8]) -> bool {
    write(scratch, bytes);
    let Some(mesh) = read(read_mesh(scratch)) else { return false };
    let num_vertices = mesh.vertices().len();
    assert!(mesh.triangles().as_flattened().iter().all(|&vertex| (vertex as usize) < num_vertices));
    assert!(mesh.vertices().as_flattened().iter().all(|x| x.is_finite()));
    true
}

/// A new file each time: some file systems wait for the disk where one is written again.
fn write(scratch: &Path, bytes: &[u8]) {
    let removed = fs::remove_file(scratch);
    assert!(removed.is_ok() || !scratch.exists(), "a scratch file can be removed");
    fs::write(scratch, bytes).expect("a scratch file can be written");
}

/// What was read, or nothing for an error that a file may cause.
fn read<T>(result: kauri::Result<T>) -> Option<T> {
    let error = match result {
        Ok(read) => return Some(read),
        Err(error) => error,
    };
    assert!(matches!(error, Error::InvalidFile { .. } | Error::OutOfMemory { .. }), "{error:?}");
    // What the decoder of Parquet files panics at should be found before.
    assert!(!error.to_string().contains("its bytes are broken"), "{error}");
    None
}
