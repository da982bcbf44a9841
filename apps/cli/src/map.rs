//! A map of the world as a PNG picture, equirectangular and without text.

use plotters::prelude::*;
use std::path::Path;

use super::picture::{self, Area, Drawn};
use kauri::{LonLat, Result};

/// The pixels of a degree, and the size of the picture in pixels.
const SCALE: i32 = 5;
const WIDTH: i32 = 360 * SCALE;
const HEIGHT: i32 = 180 * SCALE;
/// Degrees between the lines of the grid.
const GRID: i32 = 30;

const BACKGROUND: RGBColor = RGBColor(9, 14, 26);
const GRID_LINE: RGBColor = RGBColor(28, 36, 54);
/// Colors of pixels with few and with many places.
const SPARSE: [f64; 3] = [52.0, 88.0, 118.0];
const DENSE: [f64; 3] = [255.0, 244.0, 214.0];
const JOIN: RGBColor = RGBColor(255, 140, 60);
const AIRPORT: RGBColor = RGBColor(255, 84, 84);

/// Draws places as density, marks as dots, and lines between pairs, and writes the picture to `path`.
pub(super) fn write(
    path: &Path,
    places: &[LonLat],
    marks: &[LonLat],
    lines: &[(LonLat, LonLat)],
) -> Result<()> {
    picture::write(path, [WIDTH as u32, HEIGHT as u32], |area| draw(area, places, marks, lines))
}

fn draw(area: &Area<'_>, places: &[LonLat], marks: &[LonLat], lines: &[(LonLat, LonLat)]) -> Drawn {
    area.fill(&BACKGROUND)?;
    for degrees in (GRID..360).step_by(GRID as usize) {
        area.draw(&PathElement::new([(degrees * SCALE, 0), (degrees * SCALE, HEIGHT)], GRID_LINE))?;
        area.draw(&PathElement::new([(0, degrees * SCALE), (WIDTH, degrees * SCALE)], GRID_LINE))?;
    }
    for (pixel, color) in density(places) {
        area.draw_pixel(pixel, &color)?;
    }
    for &(from, to) in lines {
        for [a, b] in segments(from, to) {
            area.draw(&PathElement::new([a, b], JOIN))?;
        }
    }
    for &mark in marks {
        let (x, y) = pixel(mark);
        area.draw(&Circle::new((x, y), 1, AIRPORT.filled()))?;
    }
    Ok(())
}

/// Returns the pixels that contain places, with their colors.
fn density(places: &[LonLat]) -> impl Iterator<Item = ((i32, i32), RGBColor)> {
    let mut counts = vec![0u32; (WIDTH * HEIGHT) as usize];
    for &place in places {
        let (x, y) = pixel(place);
        counts[(y * WIDTH + x) as usize] += 1;
    }
    let most = f64::from(counts.iter().copied().max().unwrap_or(0)).max(2.0);
    (0..).zip(counts).filter(|&(_, count)| count > 0).map(move |(at, count)| {
        let share = f64::from(count).ln() / most.ln();
        let [r, g, b] = [0, 1, 2].map(|c| (SPARSE[c] + share * (DENSE[c] - SPARSE[c])) as u8);
        ((at % WIDTH, at / WIDTH), RGBColor(r, g, b))
    })
}

/// Returns the pixel of a place; longitudes are wrapped to -180..180.
fn pixel(place: LonLat) -> (i32, i32) {
    let x = ((wrapped(place.lon) + 180.0) * f64::from(SCALE)) as i32;
    let y = ((90.0 - place.lat) * f64::from(SCALE)) as i32;
    (x.clamp(0, WIDTH - 1), y.clamp(0, HEIGHT - 1))
}

fn wrapped(lon: f64) -> f64 {
    (lon + 180.0).rem_euclid(360.0) - 180.0
}

/// Returns the segments of a line in pixels: one, or one at each edge of the map if the line across the date line is shorter.
fn segments(from: LonLat, to: LonLat) -> Vec<[(i32, i32); 2]> {
    let (a, b) = (pixel(from), pixel(to));
    if (a.0 - b.0).abs() <= WIDTH / 2 {
        return vec![[a, b]];
    }
    let shift = if a.0 < b.0 { WIDTH } else { -WIDTH };
    vec![[(a.0 + shift, a.1), b], [a, (b.0 - shift, b.1)]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_on_the_edge_are_on_the_map() {
        assert_eq!(pixel(LonLat::new(-180.0, 90.0)), (0, 0));
        assert_eq!(pixel(LonLat::new(180.0, -90.0)), (0, HEIGHT - 1));
        assert_eq!(pixel(LonLat::new(360.0, 0.0)), (WIDTH / 2, HEIGHT / 2));
        assert_eq!(segments(LonLat::new(179.0, 0.0), LonLat::new(-179.0, 0.0)).len(), 2);
        assert_eq!(segments(LonLat::new(1.0, 0.0), LonLat::new(-1.0, 0.0)).len(), 1);
    }

    #[test]
    fn a_picture_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("map.png");
        let places = [LonLat::new(0.0, 0.0), LonLat::new(179.9, 10.0), LonLat::new(-179.9, 12.0)];
        write(&path, &places, &places[1..2], &[(places[1], places[2])]).unwrap();
        let decoder = png::Decoder::new(std::io::BufReader::new(std::fs::File::open(&path).unwrap()));
        let mut reader = decoder.read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        let color = |place| {
            let (x, y) = pixel(place);
            let at = 3 * (y * WIDTH + x) as usize;
            RGBColor(pixels[at], pixels[at + 1], pixels[at + 2])
        };
        assert_eq!(color(places[1]), AIRPORT);
        assert_eq!(color(LonLat::new(-91.0, 44.0)), BACKGROUND);
        assert_ne!(color(places[0]), BACKGROUND);
    }
}
