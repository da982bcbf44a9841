//! Pictures of hillshades.

use crate::error::{Error, Result};
use crate::stored::write_atomically_or;
use crate::terrain::Raster;
use png::{BitDepth, ColorType, Encoder, EncodingError};
use std::io::{self, Write};
use std::path::Path;

/// The brightness of cells without a value, which are transparent. Shades begin at 1.
const TRANSPARENT: u8 = 0;

/// Writes a hillshade as a PNG file with a pixel for each cell. Cells without a value are transparent.
/// [`Raster::hillshade`] has an example.
///
/// # Errors
/// [`Error::Io`]: a folder that is missing or read-only, a full disk.
pub fn write_hillshade_png(path: impl AsRef<Path>, hillshade: &Raster) -> Result<()> {
    let path = path.as_ref();
    let failed = |source| Error::Io { path: path.into(), source };
    let refused = |error| {
        failed(match error {
            EncodingError::IoError(source) => source,
            error => io::Error::other(error),
        })
    };
    write_atomically_or(path, |file| {
        let grid = hillshade.grid();
        let mut encoder = Encoder::new(file, grid.columns(), grid.rows());
        encoder.set_color(ColorType::Grayscale);
        encoder.set_depth(BitDepth::Eight);
        encoder.set_trns(vec![0, TRANSPARENT]);
        let mut writer = encoder.write_header().map_err(refused)?;
        let mut stream = writer.stream_writer().map_err(refused)?;
        for row in hillshade.values().chunks(grid.columns() as usize) {
            let pixels: Vec<u8> = row.iter().map(|&shade| pixel(shade)).collect();
            stream.write_all(&pixels).map_err(failed)?;
        }
        stream.finish().map_err(refused)?;
        writer.finish().map_err(refused)
    })
}

fn pixel(shade: f32) -> u8 {
    if shade.is_nan() { TRANSPARENT } else { shade.round().clamp(1.0, 255.0) as u8 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terrain::RasterGrid;

    #[test]
    fn cells_without_a_value_are_transparent() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shade.png");
        let grid = RasterGrid::covering([[0.0, 0.0], [3.0, 2.0]], 1.0).unwrap();
        let raster = Raster::new(grid, vec![1.0, 127.6, 255.0, f32::NAN, 300.0, -5.0]);
        write_hillshade_png(&path, &raster).unwrap();
        let mut decoder = png::Decoder::new(io::BufReader::new(std::fs::File::open(&path).unwrap()));
        decoder.set_transformations(png::Transformations::EXPAND);
        let mut reader = decoder.read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height, info.color_type), (3, 2, ColorType::GrayscaleAlpha));
        assert_eq!(pixels, [1, 255, 128, 255, 255, 255, 0, 0, 255, 255, 1, 255]);
        assert!(write_hillshade_png(folder.path(), &raster).is_err());
    }
}
