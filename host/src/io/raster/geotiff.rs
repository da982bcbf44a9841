//! GeoTIFF files (OGC 19-008r4): 32-bit floats in tiles of 256 x 256, compressed by Deflate.

use super::tile::{SIDE, compressed_tile};
use crate::error::{Error, Result, check_len};
use crate::io::system::{KeyTags, ReferenceSystem};
use crate::parallel;
use crate::stored::write_in_place;
use crate::terrain::{Raster, RasterGrid};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::Path;
use tiff::encoder::{DirectoryEncoder, TiffEncoder, TiffKind, TiffKindBig, TiffKindStandard};
use tiff::tags::{
    CompressionMethod, PhotometricInterpretation, PlanarConfiguration, Predictor, SampleFormat, Tag,
};
use tiff::{TiffError, TiffResult};

/// Tiles that each thread compresses at a time.
const TILES_PER_THREAD: usize = 4;
/// Upper limit of the bytes that a tile takes beyond its values: what Deflate adds if it cannot compress them, the offset and the length.
const TILE_OVERHEAD: u64 = 1024;
/// Upper limit of the bytes of all tags without the offsets and lengths of tiles: texts have at most 2^16 bytes.
const TAG_BYTES: u64 = 1 << 18;

/// Options of a GeoTIFF file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GeoTiffOptions {
    /// The value of cells without a value, as the file has it; NaN by default. NaN cannot be the height of a cell, and stays no number in programs
    /// that ignore the tag for it; GDAL, QGIS and terra (lidR) read it. Programs that do not know NaN expect a number such as -9999.
    pub nodata: f32,
    /// The reference system; none by default. A text without a code is written as a citation, which GDAL and ArcGIS read.
    pub reference_system: Option<ReferenceSystem>,
}

impl Default for GeoTiffOptions {
    fn default() -> Self {
        Self { nodata: f32::NAN, reference_system: None }
    }
}

impl GeoTiffOptions {
    setters! {
        /// Sets the value of cells without a value.
        nodata: f32;

        /// Sets the reference system.
        reference_system: ReferenceSystem = Some(reference_system);
    }
}

/// Writes a raster as a GeoTIFF file: 32-bit floats in tiles, compressed by Deflate on all threads. A file that could exceed 4 GiB is a
/// BigTIFF. The file is replaced completely or not at all.
///
/// ```
/// use kauri::io::{GeoTiffOptions, ReferenceSystem, write_geotiff};
/// use kauri::terrain::{Raster, RasterGrid};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("dem.tif");
/// let grid = RasterGrid::covering([[450_000.0, 4_400_000.0], [450_003.0, 4_400_002.0]], 1.0)?;
/// let raster = Raster::new(grid, vec![101.5, 102.0, f32::NAN, 101.0, 100.5, 100.0]);
/// let options = GeoTiffOptions::default().reference_system(ReferenceSystem::projected(32632));
/// write_geotiff(&path, &raster, &options)?;
/// # Ok::<(), kauri::Error>(())
/// ```
///
/// # Errors
/// [`Error::Io`]: a folder that is missing or read-only, a full disk, a pipe.
pub fn write_geotiff(path: impl AsRef<Path>, raster: &Raster, options: &GeoTiffOptions) -> Result<()> {
    let columns = raster.grid().columns() as usize;
    write_geotiff_rows(path, raster.grid(), options, |rows| {
        let [begin, end] = [rows.start, rows.end].map(|row| row as usize * columns);
        Ok(Cow::Borrowed(&raster.values()[begin..end]))
    })
}

/// Writes a GeoTIFF file of a raster that need not fit in memory: `values` returns the values of some rows, which are asked for from north to
/// south. All but the last are multiples of 256 rows. The file is that of [`write_geotiff`].
///
/// ```
/// use kauri::io::{GeoTiffOptions, write_geotiff_rows};
/// use kauri::terrain::RasterGrid;
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("slope.tif");
/// let grid = RasterGrid::covering([[0.0; 2], [1000.0; 2]], 1.0)?;
/// write_geotiff_rows(&path, &grid, &GeoTiffOptions::default(), |rows| {
///     let cells = rows.flat_map(|row| (0..grid.columns()).map(move |column| (column, row)));
///     Ok(cells.map(|(column, row)| grid.center(column, row)[1] as f32).collect())
/// })?;
/// # Ok::<(), kauri::Error>(())
/// ```
///
/// # Errors
/// The errors of `values`; [`Error::Shape`] if it returns more or fewer values than the rows have; [`Error::Io`] as [`write_geotiff`].
pub fn write_geotiff_rows<'a>(
    path: impl AsRef<Path>,
    grid: &RasterGrid,
    options: &GeoTiffOptions,
    mut values: impl FnMut(Range<u32>) -> Result<Cow<'a, [f32]>>,
) -> Result<()> {
    let [across, down] = tiles_of(grid);
    let is_big = across * down * ((4 * SIDE * SIDE) as u64 + TILE_OVERHEAD) + TAG_BYTES > u32::MAX.into();
    write(path.as_ref(), grid, options, is_big, &mut values)
}

fn write(
    path: &Path,
    grid: &RasterGrid,
    options: &GeoTiffOptions,
    is_big: bool,
    values: &mut Values<'_, '_>,
) -> Result<()> {
    write_in_place(path, |file| {
        let output = Output { path, grid, options };
        if is_big {
            output.write::<TiffKindBig>(file, values)
        } else {
            output.write::<TiffKindStandard>(file, values)
        }
    })
}

/// Returns the numbers of tiles from west to east and from north to south.
fn tiles_of(grid: &RasterGrid) -> [u64; 2] {
    [grid.columns(), grid.rows()].map(|cells| u64::from(cells).div_ceil(SIDE as u64))
}

/// Returns the values of some rows.
type Values<'v, 'a> = dyn FnMut(Range<u32>) -> Result<Cow<'a, [f32]>> + 'v;

/// A file that is being written.
struct Output<'a> {
    path: &'a Path,
    grid: &'a RasterGrid,
    options: &'a GeoTiffOptions,
}

impl Output<'_> {
    fn write<K: TiffKind>(&self, file: &File, values: &mut Values<'_, '_>) -> Result<()> {
        let failed = |error| self.failed(error);
        let mut file = BufWriter::with_capacity(1 << 20, file);
        let mut encoder = TiffEncoder::<_, K>::new_generic(&mut file).map_err(failed)?;
        let mut directory = encoder.image_directory().map_err(failed)?;
        let (mut offsets, mut lengths) = (Vec::new(), Vec::new());
        for rows in self.parts() {
            let part = values(rows.clone())?;
            let columns = self.grid.columns() as usize;
            check_len("values of rows", rows.len() * columns, part.len())?;
            let across = columns.div_ceil(SIDE);
            let tiles = parallel::map(across * rows.len().div_ceil(SIDE), 1, |i| {
                compressed_tile(&part, columns, [i % across, i / across], self.options.nodata)
            });
            for tile in tiles {
                let tile = tile.map_err(|source| failed(source.into()))?;
                align(&mut directory).map_err(failed)?;
                let offset = directory.write_data(&*tile).map_err(failed)?;
                offsets.push(K::convert_offset(offset).map_err(failed)?);
                lengths.push(tile.len() as u32);
            }
        }
        self.write_tags(directory, &offsets, &lengths).map_err(failed)?;
        file.flush().map_err(|source| failed(source.into()))
    }

    /// Returns the rows that are compressed at a time.
    fn parts(&self) -> impl Iterator<Item = Range<u32>> {
        let ([across, _], rows) = (tiles_of(self.grid), self.grid.rows());
        let num_tiles = TILES_PER_THREAD * rayon::current_num_threads();
        let step = SIDE * num_tiles.div_ceil(across as usize);
        (0..rows).step_by(step).map(move |begin| begin..rows.min(begin.saturating_add(step as u32)))
    }

    fn write_tags<K: TiffKind>(
        &self,
        mut directory: DirectoryEncoder<'_, &mut BufWriter<&File>, K>,
        offsets: &[K::OffsetType],
        lengths: &[u32],
    ) -> TiffResult<()> {
        let (grid, [x, y]) = (self.grid, self.grid.corner());
        let keys = KeyTags::of(self.options.reference_system.as_ref());
        align(&mut directory)?;
        directory.write_tag(Tag::ImageWidth, grid.columns())?;
        directory.write_tag(Tag::ImageLength, grid.rows())?;
        directory.write_tag(Tag::BitsPerSample, 32_u16)?;
        directory.write_tag(Tag::SampleFormat, SampleFormat::IEEEFP.to_u16())?;
        directory.write_tag(Tag::SamplesPerPixel, 1_u16)?;
        directory
            .write_tag(Tag::PhotometricInterpretation, PhotometricInterpretation::BlackIsZero.to_u16())?;
        directory.write_tag(Tag::PlanarConfiguration, PlanarConfiguration::Chunky.to_u16())?;
        directory.write_tag(Tag::Compression, CompressionMethod::Deflate.to_u16())?;
        directory.write_tag(Tag::Predictor, Predictor::FloatingPoint.to_u16())?;
        directory.write_tag(Tag::TileWidth, SIDE as u32)?;
        directory.write_tag(Tag::TileLength, SIDE as u32)?;
        directory.write_tag(Tag::TileOffsets, K::convert_slice(offsets))?;
        directory.write_tag(Tag::TileByteCounts, lengths)?;
        directory.write_tag(Tag::ModelPixelScaleTag, &[grid.resolution(), grid.resolution(), 0.0][..])?;
        directory.write_tag(Tag::ModelTiepointTag, &[0.0, 0.0, 0.0, x, y, 0.0][..])?;
        directory.write_tag(Tag::GeoKeyDirectoryTag, &*keys.directory)?;
        if !keys.numbers.is_empty() {
            directory.write_tag(Tag::GeoDoubleParamsTag, &*keys.numbers)?;
        }
        // Texts last: their lengths may be odd.
        if !keys.texts.is_empty() {
            directory.write_tag(Tag::GeoAsciiParamsTag, &*keys.texts)?;
            align(&mut directory)?;
        }
        let nodata = self.options.nodata;
        let nodata = if nodata.is_nan() { "nan".to_owned() } else { nodata.to_string() };
        directory.write_tag(Tag::GdalNodata, &*nodata)?;
        align(&mut directory)?;
        directory.finish()
    }

    fn failed(&self, error: TiffError) -> Error {
        let source = match error {
            TiffError::IoError(source) => source,
            error => io::Error::other(error),
        };
        Error::Io { path: self.path.into(), source }
    }
}

/// Moves to an even offset, where the values of tags and directories begin (TIFF 6.0, section 2).
fn align<K: TiffKind>(directory: &mut DirectoryEncoder<'_, &mut BufWriter<&File>, K>) -> TiffResult<()> {
    if directory.write_data::<&[u8]>(&[])? % 2 == 1 {
        directory.write_data(0_u8)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
