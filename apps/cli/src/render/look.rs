//! Options for size, light and camera of a picture.

use clap::Args;
use std::str::FromStr;

use kauri::render::{Camera, RenderOptions};

/// Degrees of the light to the left of the camera, and above the ground.
const LIGHT_LEFT: f64 = 55.0;
const LIGHT_ELEVATION: f64 = 42.0;

#[derive(Args)]
pub(super) struct Look {
    /// Width and height of the picture in pixels
    #[arg(long, value_name = "WIDTHxHEIGHT", default_value = "1280x720")]
    size: Size,
    /// Azimuth of the camera: degrees around the mesh, from its front to the right
    #[arg(long, value_name = "DEGREES", default_value_t = 30.0, allow_negative_numbers = true,
        value_parser = degrees)]
    azimuth: f64,
    /// Elevation of the camera above the horizontal plane, in degrees
    #[arg(long, value_name = "DEGREES", default_value_t = 25.0, allow_negative_numbers = true,
        value_parser = degrees)]
    elevation: f64,
    /// Vertical field of view of the camera, in degrees
    #[arg(long, value_name = "DEGREES", default_value_t = 35.0)]
    field_of_view: f32,
    /// Axis of the mesh that points up [default: y for files, z for generated meshes]
    #[arg(long, value_enum)]
    up: Option<UpAxis>,
    /// Camera rays per pixel; more rays make smoother edges
    #[arg(long, value_name = "N", default_value_t = 2)]
    samples: u32,
    /// Ambient occlusion rays per camera ray; more rays make smoother shades, 0 turns ambient occlusion off
    #[arg(long, value_name = "N", default_value_t = 8)]
    ao: u32,
    /// Render without shadows from the sun
    #[arg(long)]
    no_shadows: bool,
    /// Seed of the random ray directions
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, clap::ValueEnum)]
pub(super) enum UpAxis {
    Y,
    Z,
}

impl UpAxis {
    /// Returns the direction with this azimuth and elevation in degrees.
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
    /// Returns the render options: size, samples, and light from over the camera's left shoulder.
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

    /// Returns a camera that sees all of these points.
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
