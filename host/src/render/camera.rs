//! The camera of a picture.

use libm::tan;

use super::options::check_size;
use super::vector::{V3, cross, dot, minus, perpendicular, sum, unit};
use crate::error::{Error, Result};
use crate::mesh::around;
use crate::parallel::{self, TASK_ITEMS};
use crate::point::Point;
use crate::rays::Ray;

/// Range of the field of view in degrees.
const LEAST_FIELD: u64 = 1;
const GREATEST_FIELD: u64 = 179;
/// Distance of the camera relative to the smallest that shows all points.
const MARGIN: f64 = 1.02;

/// A pinhole camera.
///
/// ```
/// use kauri::mesh::shapes;
/// use kauri::render::Camera;
/// let knot = shapes::torus_knot([2, 3], 60, 8)?;
/// let camera = Camera::around(knot.bounds().unwrap(), [1.0, -2.0, 1.0], 16.0 / 9.0);
/// assert!(camera.position[1] < -3.4);
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Camera {
    /// Position of the eye.
    pub position: [f32; 3],
    /// The point at the center of the picture. If it equals the position, the camera looks down the z axis.
    pub target: [f32; 3],
    /// The direction that is up in the picture; z by default. It may have any length and any angle to the line of sight. If
    /// it is parallel to the line of sight or 0, an axis replaces it.
    pub up: [f32; 3],
    /// Vertical field of view in degrees, from 1 to 179; 40 by default.
    pub field_of_view: f32,
}

impl Camera {
    /// Creates a camera at `position` that looks at `target`.
    pub const fn new(position: [f32; 3], target: [f32; 3]) -> Self {
        Self { position, target, up: [0.0, 0.0, 1.0], field_of_view: 40.0 }
    }

    /// Creates a camera that shows all of a box from the direction `from`, for a picture with this aspect ratio (width /
    /// height). An object that does not fill its box can be shown larger with [`framing`](Self::framing).
    pub fn around(bounds: [[f32; 3]; 2], from: [f32; 3], aspect: f64) -> Self {
        let corner = |i: usize| [0, 1, 2].map(|axis| bounds[i >> axis & 1][axis]);
        Self::new(from, [0.0; 3]).framing(&[0, 1, 2, 3, 4, 5, 6, 7].map(corner), aspect)
    }

    setters! {
        /// Sets the up direction.
        up: [f32; 3];

        /// Sets the field of view in degrees.
        field_of_view: f32;
    }

    /// Returns the ray through the center of each pixel, row by row from the upper left corner. Directions have length 1.
    ///
    /// # Errors
    /// The errors of [`image`](super::image) that concern size and camera; [`Error::OutOfMemory`].
    pub fn rays(&self, [width, height]: [u32; 2]) -> Result<Vec<Ray>> {
        check_size([width, height])?;
        let (view, num) = (View::of(self, [width, height])?, width as usize * height as usize);
        parallel::collect(num, TASK_ITEMS, "rays of a picture", |pixel| view.center(pixel))
    }

    /// Moves the camera so that it shows all of these points, for example the vertices of a mesh, as large as possible with
    /// a small margin. The direction of view stays; the target is the center of the points' bounding box. `aspect` is width
    /// / height of the picture.
    ///
    /// If all points are equal the camera is placed next to them. Without points it stays as it is.
    pub fn framing(self, points: &[[f32; 3]], aspect: f64) -> Self {
        let Some(bounds) = points.iter().map(|&point| [point; 2]).reduce(around) else { return self };
        let [low, high] = bounds.map(|corner| corner.map(f64::from));
        let center = sum([(0.5, low), (0.5, high)]);
        let axes = Axes::of(&self);
        // Distance of the eye from the center at which a point is just inside the picture.
        let away = |&point: &[f32; 3]| {
            let at = minus(point.map(f64::from), center);
            let beside = (dot(at, axes.right).abs() / aspect).max(dot(at, axes.up).abs());
            beside / axes.slope - dot(at, axes.ahead)
        };
        let distance = MARGIN * points.iter().map(away).fold(0.0, f64::max);
        // The minimum keeps the position from being rounded to the target.
        let greatest = center.iter().fold(0.0, |greatest: f64, x| greatest.max(x.abs()));
        let least = if greatest > 0.0 { greatest * 1e-3 } else { 1e-3 };
        let position = sum([(1.0, center), (-distance.max(least), axes.ahead)]);
        Self { position: position.map(|x| x as f32), target: center.map(|x| x as f32), ..self }
    }

    fn check(&self) -> Result<()> {
        Point::coordinates(&[self.position, self.target, self.up], "vector of the camera")?;
        let field = self.field_of_view;
        if (LEAST_FIELD as f32..=GREATEST_FIELD as f32).contains(&field) {
            return Ok(());
        }
        // Rounded away from the range, so that the message is true.
        let value = if field > 1.0 { field.ceil() as u64 } else { 0 };
        let what = "field of view in degrees";
        Err(Error::OutOfRange { what, value, least: LEAST_FIELD, most: GREATEST_FIELD })
    }
}

/// The unit vectors of a camera.
struct Axes {
    right: V3,
    up: V3,
    ahead: V3,
    /// Half the height of the picture at distance 1.
    slope: f64,
}

impl Axes {
    fn of(camera: &Camera) -> Self {
        let [position, target, up] = [camera.position, camera.target, camera.up].map(|at| at.map(f64::from));
        let ahead = if position == target { [0.0, 0.0, -1.0] } else { unit(minus(target, position)) };
        let up = perpendicular(ahead, up);
        let slope = tan(0.5 * f64::from(camera.field_of_view).to_radians());
        Self { right: cross(ahead, up), up, ahead, slope }
    }
}

/// A camera with the size of its picture in pixels.
pub(super) struct View {
    eye: [f32; 3],
    axes: Axes,
    size: [f64; 2],
}

impl View {
    pub(super) fn of(camera: &Camera, size: [u32; 2]) -> Result<Self> {
        camera.check()?;
        Ok(Self { eye: camera.position, axes: Axes::of(camera), size: size.map(f64::from) })
    }

    /// Returns the up vector of the picture.
    pub(super) fn up(&self) -> V3 {
        self.axes.up
    }

    /// Returns the vector from the eye to the center of the first pixel, and the steps to the next pixel of a row and to the
    /// next row.
    pub(super) fn pixel_steps(&self) -> [V3; 3] {
        let Axes { right, up, ahead, slope } = self.axes;
        let [width, height] = self.size;
        let pixel = 2.0 * slope / height;
        let first =
            sum([(1.0, ahead), ((0.5 - 0.5 * width) * pixel, right), ((0.5 * height - 0.5) * pixel, up)]);
        [first, right.map(|x| x * pixel), up.map(|x| -x * pixel)]
    }

    /// Returns the ray through the center of a pixel, indexed row by row.
    pub(super) fn center(&self, pixel: usize) -> Ray {
        let width = self.size[0] as usize;
        self.ray([pixel % width, pixel / width].map(|at| at as f64 + 0.5))
    }

    /// Returns the ray through a point of the picture, in pixels right and down from the upper left corner. Its direction
    /// has length 1.
    pub(super) fn ray(&self, [x, y]: [f64; 2]) -> Ray {
        let Axes { right, up, ahead, slope } = self.axes;
        let [width, height] = self.size;
        let pixel = 2.0 * slope / height;
        let direction =
            sum([(1.0, ahead), ((x - 0.5 * width) * pixel, right), ((0.5 * height - y) * pixel, up)]);
        Ray::new(self.eye, unit(direction).map(|x| x as f32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: [u32; 2] = [64, 32];

    fn direction(view: &View, at: [f64; 2]) -> V3 {
        view.ray(at).direction.map(f64::from)
    }

    fn degrees(a: V3, b: V3) -> f64 {
        dot(a, b).min(1.0).acos().to_degrees()
    }

    #[test]
    fn the_center_of_the_picture_is_the_target() {
        let camera = Camera::new([1.0, -2.0, 3.0], [4.0, 5.0, -6.0]);
        let view = View::of(&camera, SIZE).unwrap();
        let ray = view.ray([32.0, 16.0]);
        assert_eq!(ray.origin, camera.position);
        assert!(degrees(direction(&view, [32.0, 16.0]), unit([3.0, 7.0, -9.0])) < 1e-2);
    }

    #[test]
    fn the_field_of_view_is_from_edge_to_edge() {
        for field in [1.0, 40.0, 90.0, 179.0] {
            let camera = Camera::new([0.0, -5.0, 0.0], [0.0; 3]).field_of_view(field);
            let view = View::of(&camera, SIZE).unwrap();
            let [top, bottom] = [0.0, 32.0].map(|y| direction(&view, [32.0, y]));
            assert!((degrees(top, bottom) - f64::from(field)).abs() < 1e-2, "{field}");
            assert!(top[2] > 0.0 && bottom[2] < 0.0);
            // Pixels are square: the same number of pixels sideways spans the same angle.
            let [left, right] = [16.0, 48.0].map(|x| direction(&view, [x, 16.0]));
            assert!((degrees(left, right) - f64::from(field)).abs() < 1e-2, "{field}");
            assert!(left[0] < 0.0 && right[0] > 0.0);
        }
    }

    #[test]
    fn all_of_a_box_is_in_the_picture_and_fills_it() {
        let bounds = [[-3.0, 10.0, 0.0], [5.0, 11.0, 2.0]];
        for (from, aspect) in [([1.0, 0.3, 0.2], 0.5), ([0.1, -1.0, 0.7], 1.0), ([0.0, 0.0, 1.0], 2.5)] {
            let camera = Camera::around(bounds, from, aspect);
            assert_eq!(camera.target, [1.0, 10.5, 1.0]);
            let axes = Axes::of(&camera);
            let mut greatest = 0.0_f64;
            for corner in 0..8 {
                let at = [0, 1, 2].map(|axis| f64::from(bounds[corner >> axis & 1][axis]));
                let seen = minus(at, camera.position.map(f64::from));
                let edge = dot(seen, axes.ahead) * axes.slope;
                assert!(edge > 0.0);
                greatest = greatest.max(dot(seen, axes.up).abs() / edge);
                greatest = greatest.max(dot(seen, axes.right).abs() / (edge * aspect));
            }
            assert!((0.85..1.0).contains(&greatest), "{from:?}: {greatest}");
        }
        let point = Camera::around([[7.0; 3]; 2], [1.0, 0.0, 0.0], 1.0);
        assert!(point.target == [7.0; 3] && point.position[0] > 7.0);
        assert_eq!(point.framing(&[], 1.0), point);
        // A triangle that leaves part of its box empty can be seen from nearer.
        let nearer = point.framing(&[[0.0; 3], [0.0, 2.0, 0.0], [0.0, 1.0, 2.0]], 1.0);
        assert!(nearer.target == [0.0, 1.0, 1.0] && nearer.position[0] > 1.0);
    }

    #[test]
    fn cameras_without_an_up_or_a_way_to_look_see_something() {
        for up in [[0.0; 3], [0.0, 0.0, 1.0], [0.0, 0.0, -2.0]] {
            let view = View::of(&Camera::new([0.0, 0.0, 5.0], [0.0; 3]).up(up), SIZE).unwrap();
            assert!((dot(view.up(), view.up()) - 1.0).abs() < 1e-9);
            assert_eq!(view.ray([32.0, 16.0]).direction, [0.0, 0.0, -1.0]);
        }
        let inside = View::of(&Camera::new([1.0; 3], [1.0; 3]), SIZE).unwrap();
        assert_eq!(inside.ray([32.0, 16.0]).direction, [0.0, 0.0, -1.0]);
    }

    #[test]
    fn invalid_cameras_are_errors() {
        let error = |camera: Camera| View::of(&camera, SIZE).err().unwrap();
        let camera = Camera::new([1.0; 3], [0.0; 3]);
        assert!(matches!(error(camera.up([0.0, f32::NAN, 0.0])), Error::NonFinite { index: 2, axis: 1, .. }));
        let far = Camera { position: [f32::MAX; 3], ..camera };
        assert!(matches!(error(far), Error::CoordinateTooLarge { index: 0, axis: 0, .. }));
        for (field, value) in
            [(0.0, 0), (-7.0, 0), (0.99, 0), (f32::NAN, 0), (179.5, 180), (f32::INFINITY, u64::MAX)]
        {
            let error = error(camera.field_of_view(field));
            assert!(matches!(error, Error::OutOfRange { value: found, .. } if found == value), "{error}");
        }
    }
}
