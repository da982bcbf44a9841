//! 3D vectors in double precision. Results are the same on every machine.

/// A position, a direction, or an RGB color.
pub(super) type V3 = [f64; 3];

pub(super) fn dot(a: V3, b: V3) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(super) fn cross(a: V3, b: V3) -> V3 {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

pub(super) fn minus(a: V3, b: V3) -> V3 {
    [0, 1, 2].map(|axis| a[axis] - b[axis])
}

/// Returns a weighted sum of vectors.
pub(super) fn sum<const N: usize>(terms: [(f64, V3); N]) -> V3 {
    [0, 1, 2].map(|axis| terms.iter().map(|(times, of)| times * of[axis]).sum())
}

/// Returns the normalized vector; 0 stays 0.
pub(super) fn unit(a: V3) -> V3 {
    let length = dot(a, a).sqrt();
    if length > 0.0 { a.map(|x| x / length) } else { [0.0; 3] }
}

/// Returns the unit vector perpendicular to `a` that is nearest to `preferred`, or any perpendicular one if `preferred` is
/// parallel to `a` or 0. `a` has length 1.
pub(super) fn perpendicular(a: V3, preferred: V3) -> V3 {
    let rejected = |preferred| unit(sum([(1.0, preferred), (-dot(preferred, a), a)]));
    let preferred = unit(preferred);
    let side = cross(a, preferred);
    if dot(side, side) > PARALLEL * PARALLEL { rejected(preferred) } else { rejected(least_axis(a)) }
}

/// Returns the unit vector of the axis on which `a` is smallest.
fn least_axis(a: V3) -> V3 {
    let least = (1..3).fold(0, |least, axis| if a[axis].abs() < a[least].abs() { axis } else { least });
    [0, 1, 2].map(|axis| f64::from(u8::from(axis == least)))
}

/// Sine of the angle up to which directions count as parallel.
const PARALLEL: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perpendicular_vectors_are_perpendicular() {
        let a = unit([1.0, 2.0, -3.0]);
        for preferred in [[0.0, 0.0, 1.0], [1.0, 2.0, -3.0], [-5.0, -10.0, 15.0], [0.0; 3], [3.0, 1e-9, 0.0]]
        {
            let found = perpendicular(a, preferred);
            assert!(dot(found, a).abs() < 1e-12 && (dot(found, found) - 1.0).abs() < 1e-12);
            assert!(dot(found, preferred) > -1e-6);
        }
        assert_eq!(perpendicular([0.0, 0.0, 1.0], [2.0, 0.0, 7.0]), [1.0, 0.0, 0.0]);
        assert_eq!(unit([0.0; 3]), [0.0; 3]);
    }
}
