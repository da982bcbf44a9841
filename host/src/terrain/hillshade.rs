//! Hillshade: the brightness of a surface under a light.

use super::grid::RasterGrid;
use super::raster::Raster;
use crate::error::{Error, Result, check_range};
use crate::memory;
use crate::parallel;
use std::array::from_fn;

/// Greatest angles in degrees.
const GREATEST_AZIMUTH: u64 = 360;
const GREATEST_ALTITUDE: u64 = 90;

/// Options of [`Raster::hillshade`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct HillshadeOptions {
    /// Direction of the light in degrees from north to east; 315 by default, the north-west, as on maps.
    pub azimuth: f64,
    /// Degrees of the light above the horizon, from 0 to 90; 45 by default.
    pub altitude: f64,
    /// Factor by which heights are multiplied; 1 by default. Also converts heights to the units of the cells, for example feet to meters.
    pub z_factor: f64,
}

impl Default for HillshadeOptions {
    fn default() -> Self {
        Self { azimuth: 315.0, altitude: 45.0, z_factor: 1.0 }
    }
}

impl HillshadeOptions {
    setters! {
        /// Sets the direction of the light in degrees.
        azimuth: f64;

        /// Sets the degrees of the light above the horizon.
        altitude: f64;

        /// Sets the factor of heights.
        z_factor: f64;
    }

    /// Checks the options.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for an azimuth above 360 or an altitude above 90 degrees; [`Error::InvalidLength`] for a number that is negative
    /// or not finite.
    pub fn check(&self) -> Result<()> {
        for (what, degrees, most) in [
            ("azimuth of the light in degrees", self.azimuth, GREATEST_AZIMUTH),
            ("altitude of the light in degrees", self.altitude, GREATEST_ALTITUDE),
        ] {
            check_positive(what, degrees)?;
            check_range(what, degrees.ceil() as u64, 0, most)?;
        }
        check_positive("factor of heights", self.z_factor)
    }
}

fn check_positive(what: &'static str, value: f64) -> Result<()> {
    if value >= 0.0 && value.is_finite() { Ok(()) } else { Err(Error::InvalidLength { what, value }) }
}

impl Raster {
    /// Returns the hillshade of a surface: values from 1, in the shade, to 255, facing the light.
    ///
    /// The slope of a cell is that of Horn (1981) in the eight cells around it, and the shade that of `gdaldem hillshade`. A neighbor without
    /// a value is extrapolated from the others, so that all cells with a height have a shade. Heights and cells must have one unit
    /// of length, or [`HillshadeOptions::z_factor`] must convert.
    ///
    /// ```
    /// use kauri::terrain::{HillshadeOptions, Raster, RasterGrid};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("hillshade.png");
    /// // A hill.
    /// let grid = RasterGrid::covering([[-50.0; 2], [50.0; 2]], 1.0)?;
    /// let cells = (0..grid.rows()).flat_map(|row| (0..grid.columns()).map(move |column| grid.center(column, row)));
    /// let raster = Raster::new(grid, cells.map(|[x, y]| (40.0 - 0.01 * (x * x + y * y)) as f32).collect());
    /// let hillshade = raster.hillshade(&HillshadeOptions::default())?;
    /// // The north-western slope is brighter than the south-eastern one.
    /// assert!(hillshade.value(20, 20) > 1.5 * hillshade.value(79, 79));
    /// kauri::io::write_hillshade_png(&path, &hillshade)?;
    /// # Ok::<(), kauri::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`HillshadeOptions::check`]; [`Error::OutOfMemory`].
    pub fn hillshade(&self, options: &HillshadeOptions) -> Result<Self> {
        options.check()?;
        let light = Light::of(options, self.grid());
        let mut shades = memory::filled(self.values().len(), f32::NAN, "shades of a raster")?;
        parallel::for_chunks(&mut shades, self.grid().columns() as usize, |row, shades| {
            for (column, shade) in shades.iter_mut().enumerate() {
                if let Some(window) = self.window(column, row) {
                    *shade = light.shade(&window);
                }
            }
        });
        Ok(Self::new(*self.grid(), shades))
    }

    /// Returns the heights of a cell and its neighbors, in rows from the north-west; `None` if the cell has no height.
    fn window(&self, column: usize, row: usize) -> Option<[[f64; 3]; 3]> {
        let (columns, rows) = (self.grid().columns() as usize, self.grid().rows() as usize);
        let height = |down: usize, right: usize| {
            // Beyond the first row or column the difference wraps around, and is out of range too.
            let (row, column) = ((row + down).wrapping_sub(1), (column + right).wrapping_sub(1));
            let is_inside = row < rows && column < columns;
            if is_inside { f64::from(self.values()[row * columns + column]) } else { f64::NAN }
        };
        let mut window: [[f64; 3]; 3] = from_fn(|down| from_fn(|right| height(down, right)));
        let center = window[1][1];
        if !center.is_finite() {
            return None;
        }
        // The four nearest first, then the corners: a plane stays a plane.
        for [down, right] in [[0, 1], [1, 0], [1, 2], [2, 1]] {
            if !window[down][right].is_finite() {
                let opposite = window[2 - down][2 - right];
                window[down][right] = if opposite.is_finite() { 2.0 * center - opposite } else { center };
            }
        }
        for [down, right] in [[0, 0], [0, 2], [2, 0], [2, 2]] {
            if !window[down][right].is_finite() {
                window[down][right] = window[down][1] + window[1][right] - center;
            }
        }
        Some(window)
    }
}

/// The direction of the light, with the lengths of differences of heights.
struct Light {
    /// Multiplied by differences of eight heights across a cell.
    slope: f64,
    east: f64,
    north: f64,
    up: f64,
}

impl Light {
    fn of(options: &HillshadeOptions, grid: &RasterGrid) -> Self {
        let [(sin_azimuth, cos_azimuth), (sin_altitude, cos_altitude)] =
            [options.azimuth, options.altitude].map(|degrees| libm::sincos(degrees.to_radians()));
        Self {
            slope: options.z_factor / (8.0 * grid.resolution()),
            east: sin_azimuth * cos_altitude,
            north: cos_azimuth * cos_altitude,
            up: sin_altitude,
        }
    }

    /// Returns the cosine of the angle between the light and the normal of the surface, as a brightness from 1 to 255.
    fn shade(&self, [north, middle, south]: &[[f64; 3]; 3]) -> f32 {
        let across = |row: &[f64; 3]| row[2] - row[0];
        let sum = |row: &[f64; 3]| row[0] + 2.0 * row[1] + row[2];
        let to_east = self.slope * (across(north) + 2.0 * across(middle) + across(south));
        let to_north = self.slope * (sum(north) - sum(south));
        let length = (1.0 + to_east * to_east + to_north * to_north).sqrt();
        let cosine = (self.up - self.east * to_east - self.north * to_north) / length;
        (1.0 + 254.0 * cosine.max(0.0)) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a raster of the heights at the centers of cells.
    fn raster(columns: u32, rows: u32, resolution: f64, height: impl Fn([f64; 2]) -> f64) -> Raster {
        let high = [f64::from(columns) * resolution, f64::from(rows) * resolution];
        let grid = RasterGrid::covering([[0.0; 2], high], resolution).unwrap();
        let cells = (0..rows).flat_map(|row| (0..columns).map(move |column| grid.center(column, row)));
        Raster::new(grid, cells.map(|center| height(center) as f32).collect())
    }

    #[test]
    fn planes_have_one_shade() {
        for options in [
            HillshadeOptions::default(),
            HillshadeOptions::default().azimuth(90.0).altitude(30.0).z_factor(2.0),
        ] {
            let [azimuth, altitude] = [options.azimuth, options.altitude].map(f64::to_radians);
            for [east, north] in [[0.0, 0.0], [0.5, 0.0], [-0.25, 1.0], [3.0, -3.0]] {
                let plane = raster(5, 4, 2.0, |[x, y]| east * x + north * y);
                let shades = plane.hillshade(&options).unwrap();
                // The normal of the plane and the direction of the light.
                let [east, north] = [east, north].map(|slope| slope * options.z_factor);
                let light = [azimuth.sin() * altitude.cos(), azimuth.cos() * altitude.cos(), altitude.sin()];
                let cosine = (light[2] - east * light[0] - north * light[1])
                    / (1.0 + east * east + north * north).sqrt();
                let expected = 1.0 + 254.0 * cosine.max(0.0);
                // Also at the borders.
                for &shade in shades.values() {
                    assert!((f64::from(shade) - expected).abs() < 1e-3, "{shade} {expected}");
                }
            }
        }
    }

    #[test]
    fn cells_without_a_value() {
        let plane = raster(7, 5, 1.0, |[x, _]| x);
        let all = plane.hillshade(&HillshadeOptions::default()).unwrap();
        let mut heights = plane.values().to_vec();
        (heights[16], heights[18]) = (f32::NAN, f32::INFINITY);
        let shades = Raster::new(*all.grid(), heights).hillshade(&HillshadeOptions::default()).unwrap();
        for (i, (shade, all)) in shades.values().iter().zip(all.values()).enumerate() {
            // The cell between the two, without a neighbor to the west or to the east, is level in this direction.
            let is_close = (shade - all).abs() < 1e-4;
            assert!(if [16, 18].contains(&i) { shade.is_nan() } else { is_close || i == 17 }, "{i}: {shade}");
        }
        let one = raster(1, 1, 1.0, |_| 7.0).hillshade(&HillshadeOptions::default()).unwrap();
        assert!((one.values()[0] - (1.0 + 254.0 * 0.5_f32.sqrt())).abs() < 1e-4);
    }

    #[test]
    fn options_out_of_range() {
        let refused = |options: HillshadeOptions| options.check().unwrap_err().to_string();
        let default = HillshadeOptions::default();
        assert!(
            refused(default.azimuth(361.0))
                .contains("azimuth of the light in degrees 361: expected 0 to 360")
        );
        assert!(refused(default.altitude(90.5)).contains("91: expected 0 to 90"));
        for wrong in [f64::NAN, -1.0, f64::INFINITY] {
            for options in [default.azimuth(wrong), default.altitude(wrong), default.z_factor(wrong)] {
                assert!(options.check().is_err(), "{options:?}");
            }
        }
        assert!(raster(1, 1, 1.0, |_| 0.0).hillshade(&default.altitude(-1.0)).is_err());
    }
}
