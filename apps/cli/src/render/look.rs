//! Size, light and camera of a picture, as they are asked for.

use clap::Args;
use std::str::FromStr;

use kauri::render::{Camera, RenderOptions};

/// Degrees that the light is to the left of the camera, and above the ground.
const LIGHT_LEFT: f64 = 55.0;
const LIGHT_ELEVATION: f64 = 42.0;

#[derive(Args)]
pub(super) struct Look {
    /// Pixels of the picture
    #[arg(long, value_name = "WIDTHxHEIGHT", default_value = "1280x720")]
    size: Size,
    /// Where the camera is: degrees around the mesh, to the right from its front
    #[arg(long, value_name = "DEGREES", default_value_t = 30.0, allow_negative_numbers = true,
        value_parser = degrees)]
    azimuth: f64,
    /// Degrees that the camera is above it
    #[arg(long, value_name = "DEGREES", default_value_t = 25.0, allow_negative_numbers = true,
        value_parser = degrees)]
    elevation: f64,
    /// Degrees between the upper and the lower edge of the picture
    #[arg(long, value_name = "DEGREES", default_value_t = 35.0)]
    field_of_view: f32,
    /// What is up [default: y for files, z for meshes that are made]
    #[arg(long, value_enum)]
    up: Option<UpAxis>,
    /// Rays from the camera for a pixel: more make smoother edges
    #[arg(long, value_name = "N", default_value_t = 2)]
    samples: u32,
    /// Rays of each of these that look for the sky
    #[arg(long, value_name = "N", default_value_t = 8)]
    ao: u32,
    /// Without shadows of the sun
    #[arg(long)]
    no_shadows: bool,
    /// Another number, other directions of rays
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, clap::ValueEnum)]
pub(super) enum UpAxis {
    Y,
    Z,
}

impl UpAxis {
    /// The direction so many degrees to the right from the front, and up.
    fn direction(self, azimuth: f64, elevation: f64) -> [f32; 3] {
        let ((sin, cos), (up, level)) =
            (libm::sincos(azimuth.to_radians()), libm::sincos(elevation.to_radians()));
        let [right, front, up] = [level * sin, level * cos, up].map(|x| x as f32);
        match self {
            Self::Y => [right, up, front],
            Self::Z => [right, -front, up],
        }
    }
}

impl Look {
    /// The size of the picture, how good it is, and light that comes over the camera's left shoulder.
    pub(super) fn options(&self, or_up: UpAxis) -> RenderOptions {
        let Size([width, height]) = self.size;
        let up = self.up.unwrap_or(or_up);
        RenderOptions::default()
            .size(width, height)
            .light(up.direction(self.azimuth - LIGHT_LEFT, LIGHT_ELEVATION))
            .shadows(!self.no_shadows)
            .occlusion_rays(self.ao)
            .samples(self.samples)
            .seed(self.seed)
    }

    /// A camera that sees all of these points.
    pub(super) fn camera(&self, points: &[[f32; 3]], or_up: UpAxis) -> Camera {
        let Size([width, height]) = self.size;
        let up = self.up.unwrap_or(or_up);
        Camera::new(up.direction(self.azimuth, self.elevation), [0.0; 3])
            .up(up.direction(0.0, 90.0))
            .field_of_view(self.field_of_view)
            .framing(points, f64::from(width) / f64::from(height))
    }
}

fn degrees(text: &str) -> Result<f64, &'static str> {
    text.parse().ok().filter(|degrees: &f64| degrees.is_finite()).ok_or("expected a number of degrees")
}

/// Width and height in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Size([u32; 2]);

impl FromStr for Size {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let sides =
            text.split_once('x').and_then(|(w, h)| Some([w.trim().parse().ok()?, h.trim().parse().ok()?]));
        sides.map(Self).ok_or("expected a width and a height in pixels, such as 1280x720")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        assert_eq!("1280x720".parse(), Ok(Size([1280, 720])));
        for text in ["", "12", "x", "1x", "-1x2", "1x2x3", "5000000000x1"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }

    #[test]
    fn degrees_are_numbers() {
        assert_eq!([degrees("-30"), degrees("1e2")], [Ok(-30.0), Ok(100.0)]);
        assert!(["", "NaN", "inf", "30°"].iter().all(|text| degrees(text).is_err()));
    }

    #[test]
    fn directions_around_an_axis() {
        let near = |a: [f32; 3], b: [f32; 3]| (0..3).all(|axis| (a[axis] - b[axis]).abs() < 1e-6);
        assert!(near(UpAxis::Z.direction(0.0, 0.0), [0.0, -1.0, 0.0]));
        assert!(near(UpAxis::Z.direction(90.0, 0.0), [1.0, 0.0, 0.0]));
        assert!(near(UpAxis::Y.direction(0.0, 0.0), [0.0, 0.0, 1.0]));
        assert!(near(UpAxis::Y.direction(90.0, 0.0), [1.0, 0.0, 0.0]));
        assert!(near(UpAxis::Y.direction(7.0, 90.0), [0.0, 1.0, 0.0]));
    }
}
