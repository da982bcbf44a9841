//! Options of a picture.

use crate::error::{Error, Result, check_range};
use crate::point::Point;

/// Maximum pixels along a side.
const MAX_SIDE: u32 = 1 << 15;
/// Maximum samples per pixel, and maximum occlusion rays per surface point.
const MAX_RAYS: u32 = 1 << 12;

/// Size and light of a picture.
///
/// ```
/// use kauri::render::RenderOptions;
/// let options = RenderOptions::default().size(1920, 1080).samples(4).occlusion_rays(16);
/// assert_eq!(options.max_rays(), 1920.0 * 1080.0 * 4.0 * (1.0 + 16.0 + 1.0));
/// options.check()?;
/// # Ok::<(), kauri::Error>(())
/// ```
///
/// A picture takes `width * height * samples` camera rays. A camera ray that hits the mesh adds `occlusion_rays` rays, and a
/// ray to the light if there are shadows.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RenderOptions {
    /// Width in pixels, from 1 to 32768; 640 by default.
    pub width: u32,
    /// Height in pixels, from 1 to 32768; 480 by default.
    pub height: u32,
    /// Direction towards the sun, of any length. If it is 0, only the sky shines.
    pub light: [f32; 3],
    /// Whether triangles cast shadows. True by default.
    pub shadows: bool,
    /// Occlusion rays per surface point, up to 4096; 8 by default. With 0, every point gets all of the sky's light.
    pub occlusion_rays: u32,
    /// Maximum distance at which triangles occlude the sky, in diagonals of the mesh's bounding box; 0.25 by default.
    pub occlusion_reach: f32,
    /// Camera rays per pixel, from 1 to 4096; more give smoother edges. 1 by default.
    pub samples: u32,
    /// Seed of the directions of occlusion rays, and of the dithering.
    pub seed: u64,
}

impl Default for RenderOptions {
    fn default() -> Self {
        Self {
            width: 640,
            height: 480,
            light: [-0.4, -0.5, 0.8],
            shadows: true,
            occlusion_rays: 8,
            occlusion_reach: 0.25,
            samples: 1,
            seed: 0,
        }
    }
}

impl RenderOptions {
    /// Sets width and height in pixels.
    pub fn size(mut self, width: u32, height: u32) -> Self {
        (self.width, self.height) = (width, height);
        self
    }

    setters! {
        /// Sets the direction towards the light.
        light: [f32; 3];

        /// Sets whether triangles cast shadows.
        shadows: bool;

        /// Sets the number of occlusion rays.
        occlusion_rays: u32;

        /// Sets the reach of occlusion.
        occlusion_reach: f32;

        /// Sets the number of samples per pixel.
        samples: u32;

        /// Sets the seed.
        seed: u64;
    }

    /// Returns the maximum number of rays of a picture: every camera ray hits something.
    pub fn max_rays(&self) -> f64 {
        let rays_per_sample = 1.0 + f64::from(self.occlusion_rays) + f64::from(u8::from(self.shadows));
        f64::from(self.width) * f64::from(self.height) * f64::from(self.samples) * rays_per_sample
    }

    /// Checks the options.
    ///
    /// # Errors
    /// [`Error::OutOfRange`](crate::Error::OutOfRange), [`Error::InvalidLength`](crate::Error::InvalidLength) or an error of
    /// the direction of the light.
    pub fn check(&self) -> Result<()> {
        check_size([self.width, self.height])?;
        check_range("samples of a pixel", self.samples, 1, MAX_RAYS.into())?;
        check_range("rays of ambient occlusion", self.occlusion_rays, 0, MAX_RAYS.into())?;
        Point::coordinates(&[self.light], "direction of light")?;
        let reach = self.occlusion_reach;
        if reach >= 0.0 && reach.is_finite() {
            return Ok(());
        }
        Err(Error::InvalidLength { what: "reach of ambient occlusion", value: reach.into() })
    }
}

/// Checks the size of a picture.
pub(super) fn check_size([width, height]: [u32; 2]) -> Result<()> {
    check_range("width of a picture", width, 1, MAX_SIDE.into())?;
    check_range("height of a picture", height, 1, MAX_SIDE.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_options_are_errors() {
        let options = RenderOptions::default();
        assert!(options.check().is_ok());
        assert!(options.clone().light([0.0; 3]).occlusion_rays(0).occlusion_reach(0.0).check().is_ok());
        let what = |options: RenderOptions| match options.check() {
            Err(Error::OutOfRange { what, .. } | Error::InvalidLength { what, .. }) => what,
            Err(Error::NonFinite { what, .. } | Error::CoordinateTooLarge { what, .. }) => what,
            other => panic!("{other:?}"),
        };
        assert_eq!(what(options.clone().size(0, 1)), "width of a picture");
        assert_eq!(what(options.clone().size(1, MAX_SIDE + 1)), "height of a picture");
        assert_eq!(what(options.clone().samples(0)), "samples of a pixel");
        assert_eq!(what(options.clone().occlusion_rays(u32::MAX)), "rays of ambient occlusion");
        assert_eq!(what(options.clone().occlusion_reach(-0.5)), "reach of ambient occlusion");
        assert_eq!(what(options.clone().occlusion_reach(f32::NAN)), "reach of ambient occlusion");
        assert_eq!(what(options.clone().light([0.0, f32::INFINITY, 0.0])), "direction of light");
    }
}
