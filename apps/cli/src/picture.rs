//! Pictures with text as PNG files, and animations as APNG files.

use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster};
use plotters::backend::BitMapBackend;
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
};
use std::io;
use std::path::Path;

use kauri::io::write_atomically_or;
use kauri::{Error, Result};

/// A drawing area.
pub(super) type Area<'a> = DrawingArea<Canvas<'a>, Shift>;

/// Result of drawing. Drawing in memory cannot fail; if it does, the picture is not written.
pub(super) type Drawn<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Draws a picture of `size` pixels, and writes it to `path`.
pub(super) fn write(path: &Path, size: [u32; 2], draw: impl FnOnce(&Area<'_>) -> Drawn) -> Result<()> {
    let [width, height] = size;
    let mut pixels = vec![0; 3 * width as usize * height as usize];
    let area = Canvas(BitMapBackend::with_buffer(&mut pixels, (width, height))).into_drawing_area();
    let drawn = draw(&area).and_then(|()| Ok(area.present()?));
    drop(area);
    drawn.map_err(|error| Error::Io { path: path.into(), source: io::Error::other(error.to_string()) })?;
    write_frames(path, size, 1, |_| Ok(std::mem::take(&mut pixels)))
}

/// Writes frames of red, green and blue bytes as one picture; several frames are an animation that repeats (APNG).
///
/// The temporary file is created before the first call of `frame`, so that a wrong path is an error before any work.
pub(super) fn write_frames<E: From<Error>>(
    path: &Path,
    [width, height]: [u32; 2],
    count: u32,
    mut frame: impl FnMut(u32) -> Result<Vec<u8>, E>,
) -> Result<(), E> {
    let refused = |error: png::EncodingError| {
        let source = match error {
            png::EncodingError::IoError(source) => source,
            error => io::Error::other(error),
        };
        Error::Io { path: path.into(), source }
    };
    write_atomically_or(path, |file| {
        let mut encoder = png::Encoder::new(file, width, height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        if count > 1 {
            encoder.set_animated(count, FOREVER).map_err(refused)?;
            encoder.set_frame_delay(1, FRAMES_A_SECOND).map_err(refused)?;
        }
        let mut writer = encoder.write_header().map_err(refused)?;
        for i in 0..count {
            writer.write_image_data(&frame(i)?).map_err(refused)?;
        }
        Ok(writer.finish().map_err(refused)?)
    })
}

const FRAMES_A_SECOND: u16 = 20;
/// Number of plays of an animation; 0 repeats it forever.
const FOREVER: u32 = 0;

/// A bitmap in memory. Text has a built-in font of one size, because not every system has fonts.
pub(super) struct Canvas<'a>(BitMapBackend<'a>);

const TEXT: RasterHeight = RasterHeight::Size20;

/// Returns the width of a character and the coverage of its pixels, row by row.
fn glyph(character: char) -> (usize, &'static [u8]) {
    let raster = get_raster(character, FontWeight::Regular, TEXT);
    let raster = raster.or_else(|| get_raster('?', FontWeight::Regular, TEXT));
    raster.map_or((1, &[]), |raster| (raster.width(), raster.pixels()))
}

type BackendResult<'a> =
    std::result::Result<(), DrawingErrorKind<<BitMapBackend<'a> as DrawingBackend>::ErrorType>>;

impl<'a> DrawingBackend for Canvas<'a> {
    type ErrorType = <BitMapBackend<'a> as DrawingBackend>::ErrorType;

    fn get_size(&self) -> (u32, u32) {
        self.0.get_size()
    }

    fn ensure_prepared(&mut self) -> BackendResult<'a> {
        self.0.ensure_prepared()
    }

    fn present(&mut self) -> BackendResult<'a> {
        self.0.present()
    }

    fn draw_pixel(&mut self, at: BackendCoord, color: BackendColor) -> BackendResult<'a> {
        self.0.draw_pixel(at, color)
    }

    fn draw_line<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
    ) -> BackendResult<'a> {
        self.0.draw_line(from, to, style)
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
        is_filled: bool,
    ) -> BackendResult<'a> {
        self.0.draw_rect(from, to, style, is_filled)
    }

    fn draw_text<S: BackendTextStyle>(
        &mut self,
        text: &str,
        style: &S,
        at: BackendCoord,
    ) -> BackendResult<'a> {
        let (width, height) = size(text);
        let left = match style.anchor().h_pos {
            HPos::Left => at.0,
            HPos::Right => at.0 - width,
            HPos::Center => at.0 - width / 2,
        };
        let top = match style.anchor().v_pos {
            VPos::Top => at.1,
            VPos::Center => at.1 - height / 2,
            VPos::Bottom => at.1 - height,
        };
        let color = style.color();
        for (character, place) in text.chars().zip(0..) {
            let (width, pixels) = glyph(character);
            for (i, &coverage) in pixels.iter().enumerate().filter(|&(_, &coverage)| coverage > 0) {
                let x = left + place * width as i32 + (i % width) as i32;
                let alpha = color.alpha * f64::from(coverage) / 255.0;
                self.draw_pixel((x, top + (i / width) as i32), BackendColor { alpha, ..color })?;
            }
        }
        Ok(())
    }

    fn estimate_text_size<S: BackendTextStyle>(
        &self,
        text: &str,
        _: &S,
    ) -> std::result::Result<(u32, u32), DrawingErrorKind<Self::ErrorType>> {
        let (width, height) = size(text);
        Ok((width as u32, height as u32))
    }
}

/// Returns the width and the height of a line of text in pixels.
fn size(text: &str) -> (i32, i32) {
    (text.chars().map(|character| glyph(character).0 as i32).sum(), TEXT.val() as i32)
}
