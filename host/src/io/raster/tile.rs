//! Compressed tiles of a raster.

use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::io::{self, Write};

/// Columns and rows of a tile.
pub(super) const SIDE: usize = 256;

/// Returns a tile of some rows of `columns` values. Cells of the tile beyond them have `nodata`, as have cells with NaN.
///
/// The bytes are prepared by the predictor for floating point numbers (TIFF Technical Note 3, 2005): the bytes of a row are in the order of
/// their significance, and each is replaced by its difference from the one before.
pub(super) fn compressed_tile(
    values: &[f32],
    columns: usize,
    [across, down]: [usize; 2],
    nodata: f32,
) -> io::Result<Vec<u8>> {
    let first = across * SIDE;
    let width = SIDE.min(columns - first);
    let mut rows = values.chunks(columns).skip(down * SIDE);
    let mut encoder = ZlibEncoder::new(Vec::with_capacity(SIDE * SIDE), Compression::default());
    let mut bytes = [0; 4 * SIDE];
    for _ in 0..SIDE {
        let mut row = [nodata; SIDE];
        for (to, &value) in row.iter_mut().zip(rows.next().map_or(&[][..], |row| &row[first..first + width]))
        {
            *to = if value.is_nan() { nodata } else { value };
        }
        for (i, value) in row.iter().enumerate() {
            for (significance, byte) in value.to_be_bytes().into_iter().enumerate() {
                bytes[significance * SIDE + i] = byte;
            }
        }
        for i in (1..bytes.len()).rev() {
            bytes[i] = bytes[i].wrapping_sub(bytes[i - 1]);
        }
        encoder.write_all(&bytes)?;
    }
    encoder.finish()
}
