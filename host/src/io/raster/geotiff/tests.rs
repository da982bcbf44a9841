//! Tests of GeoTIFF files: they are read back with the decoder of `tiff`.

use super::*;
use tiff::decoder::{Decoder, DecodingResult};

/// A GeoTIFF file, as a reader sees it.
struct Read {
    values: Vec<f32>,
    size: (u32, u32),
    decoder: Decoder<io::BufReader<File>>,
}

fn read(path: &Path) -> Read {
    let mut decoder = Decoder::new(io::BufReader::new(File::open(path).unwrap())).unwrap();
    let size = decoder.dimensions().unwrap();
    assert_eq!(decoder.chunk_dimensions(), (SIDE as u32, SIDE as u32));
    let DecodingResult::F32(values) = decoder.read_image().unwrap() else { panic!("not 32-bit floats") };
    Read { values, size, decoder }
}

fn grid(columns: u32, rows: u32) -> RasterGrid {
    let low = [450_000.0, 4_400_000.0];
    let high = [low[0] + 0.5 * f64::from(columns), low[1] + 0.5 * f64::from(rows)];
    RasterGrid::covering([low, high], 0.5).unwrap()
}

fn raster(columns: u32, rows: u32) -> Raster {
    let grid = grid(columns, rows);
    let value = |i: usize| if i % 7 == 3 { f32::NAN } else { 100.0 + (i as f32 * 0.37).sin() };
    Raster::new(grid, (0..grid.len()).map(value).collect())
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn rasters_of_all_sizes_are_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dem.tif");
    for (columns, rows) in [(1, 1), (3, 700), (256, 256), (257, 255), (512, 1), (1000, 600)] {
        let raster = raster(columns, rows);
        for is_big in [false, true] {
            write(&path, raster.grid(), &GeoTiffOptions::default(), is_big, &mut |rows| {
                let cells = |row: u32| row as usize * columns as usize;
                Ok(Cow::Borrowed(&raster.values()[cells(rows.start)..cells(rows.end)]))
            })
            .unwrap();
            // The version of the format is at byte 2.
            assert_eq!(std::fs::read(&path).unwrap()[2], if is_big { 43 } else { 42 });
            let mut file = read(&path);
            assert_eq!(file.size, (columns, rows));
            assert!(bits(&file.values) == bits(raster.values()), "{columns} x {rows}");
            for tag in [Tag::TileOffsets, Tag::TileByteCounts] {
                let tiles = columns.div_ceil(256) * rows.div_ceil(256);
                assert_eq!(file.decoder.get_tag_u64_vec(tag).unwrap().len(), tiles as usize);
            }
            let offsets = file.decoder.get_tag_u64_vec(Tag::TileOffsets).unwrap();
            assert!(offsets.iter().all(|offset| offset % 2 == 0));
        }
    }
}

#[test]
fn position_and_system() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dem.tif");
    let raster = raster(4, 6);
    let tags = |options: &GeoTiffOptions| {
        write_geotiff(&path, &raster, options).unwrap();
        read(&path)
    };
    let mut file = tags(&GeoTiffOptions::default());
    assert_eq!(file.decoder.get_tag_f64_vec(Tag::ModelPixelScaleTag).unwrap(), [0.5, 0.5, 0.0]);
    let corner = [0.0, 0.0, 0.0, 450_000.0, 4_400_003.0, 0.0];
    assert_eq!(file.decoder.get_tag_f64_vec(Tag::ModelTiepointTag).unwrap(), corner);
    assert_eq!(file.decoder.get_tag_ascii_string(Tag::GdalNodata).unwrap(), "nan");
    assert_eq!(
        file.decoder.get_tag_u16_vec(Tag::GeoKeyDirectoryTag).unwrap()[..8],
        [1, 1, 1, 1, 1025, 0, 1, 1]
    );
    assert!(file.decoder.find_tag(Tag::GeoAsciiParamsTag).unwrap().is_none());

    let wkt = r#"GEOGCS["mine",UNIT["degree",0.0174532925199433]]"#;
    let options = GeoTiffOptions::default().nodata(-9999.0).reference_system(ReferenceSystem::from_wkt(wkt));
    let mut file = tags(&options);
    assert_eq!(file.decoder.get_tag_ascii_string(Tag::GdalNodata).unwrap(), "-9999");
    let expected = |value: &f32| if value.is_nan() { -9999.0 } else { *value };
    assert_eq!(file.values, raster.values().iter().map(expected).collect::<Vec<_>>());
    let texts = file.decoder.get_tag_ascii_string(Tag::GeoAsciiParamsTag).unwrap();
    assert_eq!(texts, format!("mine|ESRI PE String = {wkt}|"));
}

#[test]
fn rows_arrive_from_north_to_south() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dem.tif");
    let (grid, mut end) = (grid(300, 50_000), 0);
    write_geotiff_rows(&path, &grid, &GeoTiffOptions::default(), |rows| {
        assert!(rows.start == end && (rows.end % 256 == 0 || rows.end == 50_000));
        end = rows.end;
        Ok(rows.flat_map(|row| [row as f32; 300]).collect())
    })
    .unwrap();
    assert_eq!(end, 50_000);
    assert!(read(&path).values.chunks(300).zip(0..).all(|(values, row)| *values == [row as f32; 300]));
    // An error leaves the file as it is.
    let before = std::fs::read(&path).unwrap();
    let short = write_geotiff_rows(&path, &grid, &GeoTiffOptions::default(), |_| Ok(vec![1.0].into()));
    assert!(matches!(short, Err(Error::Shape { got: 1, .. })));
    let failed = write_geotiff_rows(&path, &grid, &GeoTiffOptions::default(), |_| Err(Error::NoRadius));
    assert!(matches!(failed, Err(Error::NoRadius)));
    assert!(std::fs::read(&path).unwrap() == before);
    let missing = folder.path().join("missing/dem.tif");
    let error = write_geotiff(&missing, &raster(1, 1), &GeoTiffOptions::default()).unwrap_err();
    assert!(matches!(&error, Error::Io { path, .. } if *path == missing));
}
