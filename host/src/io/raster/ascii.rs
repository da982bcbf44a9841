//! ESRI ASCII grids.

use crate::error::Result;
use crate::stored::write_atomically;
use crate::terrain::Raster;
use std::io::{self, Write};
use std::path::Path;

/// Writes a raster as an ESRI ASCII grid. Cells without a value have `nodata`, which is usually -9999. The format has no reference system.
///
/// ```
/// use kauri::terrain::{Raster, RasterGrid};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("dem.asc");
/// let grid = RasterGrid::covering([[10.0, 20.0], [12.0, 22.0]], 1.0)?;
/// kauri::io::write_ascii_grid(&path, &Raster::new(grid, vec![1.5, 2.0, f32::NAN, 3.25]), -9999.0)?;
/// let expected = "ncols 2\nnrows 2\nxllcorner 10\nyllcorner 20\ncellsize 1\nNODATA_value -9999\n1.5 2\n-9999 3.25\n";
/// assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
/// # Ok::<(), kauri::Error>(())
/// ```
///
/// # Errors
/// [`Error::Io`](crate::Error::Io): a folder that is missing or read-only, a full disk.
pub fn write_ascii_grid(path: impl AsRef<Path>, raster: &Raster, nodata: f32) -> Result<()> {
    write_atomically(path.as_ref(), |file| write(file, raster, nodata))
}

fn write(file: &mut dyn Write, raster: &Raster, nodata: f32) -> io::Result<()> {
    let (grid, [x, north]) = (raster.grid(), raster.grid().corner());
    let south = north - f64::from(grid.rows()) * grid.resolution();
    writeln!(file, "ncols {}\nnrows {}", grid.columns(), grid.rows())?;
    writeln!(file, "xllcorner {x}\nyllcorner {south}\ncellsize {}", grid.resolution())?;
    writeln!(file, "NODATA_value {nodata}")?;
    for row in raster.values().chunks(grid.columns() as usize) {
        let mut before = "";
        for &value in row {
            write!(file, "{before}{}", if value.is_nan() { nodata } else { value })?;
            before = " ";
        }
        writeln!(file)?;
    }
    Ok(())
}
