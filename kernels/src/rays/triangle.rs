//! Watertight intersection of rays and triangles: no gap between triangles that share an edge.

use super::aabb::{component, largest_axis};
use super::ray::Ray;
use crate::plain::plain;

/// The corners of a triangle, 16 bytes each for aligned loads.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Corners([[f32; 4]; 3]);

plain! { Corners { [[f32; 4]; 3] } }

impl Corners {
    /// All corners at the origin.
    pub const ORIGIN: Self = Self([[0.0; 4]; 3]);

    /// Packs corners. Turns -0 into 0, so that comparisons of bits see equal coordinates.
    #[inline(always)]
    pub fn new([a, b, c]: [[f32; 3]; 3]) -> Self {
        Self([a, b, c].map(|[x, y, z]| [x + 0.0, y + 0.0, z + 0.0, 0.0]))
    }

    /// Returns the positions of the corners.
    #[inline(always)]
    pub fn positions(self) -> [[f32; 3]; 3] {
        self.0.map(|[x, y, z, _]| [x, y, z])
    }
}

/// The intersection of a ray with a triangle.
///
/// ```
/// use kauri_kernels::rays::{ray::Ray, triangle::Hit};
/// let hit = Ray::new([0.5, 1.0, 0.0], [0.0, 0.0, 1.0]).hit(0, [[0.0, 0.0, 5.0], [2.0, 0.0, 5.0], [0.0, 2.0, 5.0]]);
/// assert_eq!(hit, Some(Hit { triangle: 0, t: 5.0, u: 0.25, v: 0.5 }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// Id of the triangle.
    pub triangle: u32,
    /// Parameter of the hit point on the ray: `origin + t * direction`.
    pub t: f32,
    /// Barycentric weight of the second corner: the hit point is `(1 - u - v) * a + u * b + v * c`.
    pub u: f32,
    /// Barycentric weight of the third corner.
    pub v: f32,
}

impl Hit {
    /// The id of a ray without a hit.
    pub const NO_TRIANGLE: u32 = u32::MAX;

    /// No hit. Every hit is before it.
    pub const NONE: Self = Self { triangle: Self::NO_TRIANGLE, t: f32::INFINITY, u: 0.0, v: 0.0 };

    /// True if the hit is nearer, or equally near with a smaller triangle id.
    #[inline(always)]
    pub fn is_before(&self, other: &Self) -> bool {
        self.t < other.t || self.t == other.t && self.triangle < other.triangle
    }
}

/// A ray prepared for triangle tests: space is sheared so that the ray follows an axis (Woop, Benthin, Wald 2013: Watertight
/// Ray/Triangle Intersection).
///
/// A corner is rounded in the same way for every triangle, and signs are exact from then on: products of rounded coordinates
/// have 48 bits, and are computed in `f64` wherever `f32` does not rule the triangle out ([`may_hit`](Self::may_hit)). The barycentric weights are
/// computed in `f64` too, hence `t` is accurate even in slivers.
///
/// A triangle is given by its [`rows`](Self::rows): for each of the ray's [`axes`](Self::axes), the coordinates of its three corners.
#[derive(Clone, Copy)]
pub struct ShearedRay {
    /// The dominant axis of the direction.
    axis: u32,
    /// The coordinates of the origin, in the order of [`axes`](Self::axes).
    origin: [f32; 3],
    shear: [f32; 2],
}

impl ShearedRay {
    /// No ray.
    pub const NONE: Self = Self { axis: 0, origin: [0.0; 3], shear: [0.0; 2] };

    /// Prepares a valid ray.
    #[inline(always)]
    pub fn new(ray: &Ray) -> Self {
        let d = ray.direction;
        let mut sheared = Self { axis: largest_axis([d[0].abs(), d[1].abs(), d[2].abs()]), ..Self::NONE };
        let [x, y, z] = sheared.in_order(d);
        sheared.origin = sheared.in_order(ray.origin);
        sheared.shear = [x / z, y / z];
        sheared
    }

    /// Returns the axes across the ray, and the axis that it follows.
    #[inline(always)]
    pub fn axes(&self) -> [u32; 3] {
        let next = |axis: u32| if axis == 2 { 0 } else { axis + 1 };
        let across = next(self.axis);
        [across, next(across), self.axis]
    }

    /// Returns what belongs to the axes in the order of [`axes`](Self::axes).
    #[inline(always)]
    fn in_order<T: Copy>(&self, [x, y, z]: [T; 3]) -> [T; 3] {
        // By component, so that the compiler selects: rays of a warp have different axes.
        let (is_x, is_y) = (self.axis == 0, self.axis == 1);
        let pick = |a: T, b: T, c: T| if is_x { a } else { if is_y { b } else { c } };
        [pick(y, z, x), pick(z, x, y), pick(x, y, z)]
    }

    /// Returns the coordinates of the corners of a triangle on each of the [`axes`](Self::axes).
    #[inline(always)]
    pub fn rows(&self, [a, b, c]: [[f32; 3]; 3]) -> [[f32; 3]; 3] {
        self.in_order([[a[0], b[0], c[0]], [a[1], b[1], c[1]], [a[2], b[2], c[2]]])
    }

    /// Translates and shears all corners: their offsets across the ray, and their distances along it.
    #[inline(always)]
    fn sheared(&self, [x, y, z]: [[f32; 3]; 3]) -> [[f32; 3]; 3] {
        let of = |i: usize| {
            let z = z[i] - self.origin[2];
            [x[i] - self.origin[0] - self.shear[0] * z, y[i] - self.origin[1] - self.shear[1] * z, z]
        };
        [of(0), of(1), of(2)]
    }

    /// False if the ray misses a triangle, as far as `f32` can tell.
    #[inline(always)]
    pub fn may_hit(&self, rows: [[f32; 3]; 3]) -> bool {
        let [a, b, c] = self.sheared(rows);
        let area = |p: [f32; 3], q: [f32; 3]| p[0] * q[1] - p[1] * q[0];
        !misses([area(c, b), area(a, c), area(b, a)])
    }

    /// Intersects the ray, which is `ray`, with a triangle. Both sides count. A triangle without area, or seen edge-on, is never hit.
    #[inline(always)]
    pub fn hit(&self, ray: &Ray, triangle: u32, rows: [[f32; 3]; 3]) -> Option<Hit> {
        let [a, b, c] = self.sheared(rows);
        let area =
            |p: [f32; 3], q: [f32; 3]| f64::from(p[0]) * f64::from(q[1]) - f64::from(p[1]) * f64::from(q[0]);
        let [weight_a, weight_b, weight_c] = [area(c, b), area(a, c), area(b, a)];
        let area_sum = weight_a + weight_b + weight_c;
        if misses([weight_a, weight_b, weight_c]) || area_sum == 0.0 {
            return None;
        }
        let along =
            (weight_a * f64::from(a[2]) + weight_b * f64::from(b[2]) + weight_c * f64::from(c[2])) / area_sum;
        // Turns -0 into 0.
        let t = (along / f64::from(component(ray.direction, self.axis))) as f32 + 0.0;
        let is_in_range = t >= ray.t_min && t <= ray.t_max && t.is_finite();
        is_in_range.then(|| Hit {
            triangle,
            t,
            u: (weight_b / area_sum) as f32 + 0.0,
            v: (weight_c / area_sum) as f32 + 0.0,
        })
    }
}

impl Ray {
    /// Intersects the ray with one triangle, which gets the id `triangle`. Trees return the same hit, to the last bit.
    #[inline(always)]
    pub fn hit(&self, triangle: u32, corners: [[f32; 3]; 3]) -> Option<Hit> {
        if !self.is_valid() {
            return None;
        }
        let sheared = ShearedRay::new(self);
        sheared.hit(self, triangle, sheared.rows(corners))
    }
}

/// True if the ray passes edges on different sides. An area of 0 in `f32` has no known sign and excludes nothing.
#[inline(always)]
fn misses<T: Copy + Default + PartialOrd>([a, b, c]: [T; 3]) -> bool {
    let zero = T::default();
    (a < zero || b < zero || c < zero) && (a > zero || b > zero || c > zero)
}
