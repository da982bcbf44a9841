//! The point of a triangle that is nearest to another point.

/// A point or a vector.
type Vector = [f64; 3];

#[inline(always)]
fn minus([a, b, c]: Vector, [d, e, f]: Vector) -> Vector {
    [a - d, b - e, c - f]
}

#[inline(always)]
fn dot([a, b, c]: Vector, [d, e, f]: Vector) -> f64 {
    a * d + b * e + c * f
}

/// Returns the point at `t` times a vector from another point.
#[inline(always)]
fn at([a, b, c]: Vector, t: f64, [d, e, f]: Vector) -> Vector {
    [a + t * d, b + t * e, c + t * f]
}

/// Returns the square of the distance of two points.
#[inline(always)]
pub fn distance2(a: Vector, b: Vector) -> f64 {
    let between = minus(a, b);
    dot(between, between)
}

/// Returns the point of the triangle that is nearest to `point`. A triangle without an area is the line or the point that it is.
///
/// The three sides come first, so that rounding errors of a thin triangle's plane can only lead to a point of the triangle that is farther
/// away than theirs. Then the foot of the perpendicular, if it is in the triangle (Ericson 2005, Real-Time Collision Detection, 5.1.5).
#[inline(always)]
pub fn nearest_on_triangle(point: Vector, corners: [[f32; 3]; 3]) -> Vector {
    let [a, b, c] = corners.map(|corner| corner.map(f64::from));
    let mut nearest = nearest_on_side(point, a, b);
    let mut take = |other: Vector| {
        if distance2(point, other) < distance2(point, nearest) {
            nearest = other;
        }
    };
    take(nearest_on_side(point, b, c));
    take(nearest_on_side(point, c, a));
    // The weights of b and c at the foot, times the determinant.
    let (ab, ac, to_point) = (minus(b, a), minus(c, a), minus(point, a));
    let (bb, bc, cc) = (dot(ab, ab), dot(ab, ac), dot(ac, ac));
    let (pb, pc) = (dot(to_point, ab), dot(to_point, ac));
    let (v, w, all) = (cc * pb - bc * pc, bb * pc - bc * pb, bb * cc - bc * bc);
    if v > 0.0 && w > 0.0 && v + w < all {
        take(at(at(a, v / all, ab), w / all, ac));
    }
    nearest
}

/// Returns the point of the side from `a` to `b` that is nearest to `point`.
#[inline(always)]
fn nearest_on_side(point: Vector, a: Vector, b: Vector) -> Vector {
    let side = minus(b, a);
    let (along, all) = (dot(minus(point, a), side), dot(side, side));
    if along <= 0.0 {
        a
    } else if along >= all {
        b
    } else {
        at(a, along / all, side)
    }
}
