//! Vectors of space, in double precision: what is rounded is rounded the same everywhere.

/// A place, a direction, or the red, green and blue of light.
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

/// A sum of vectors, each so many times.
pub(super) fn sum<const N: usize>(terms: [(f64, V3); N]) -> V3 {
    [0, 1, 2].map(|axis| terms.iter().map(|(times, of)| times * of[axis]).sum())
}

/// The same direction with length 1; 0 if there is none.
pub(super) fn unit(a: V3) -> V3 {
    let length = dot(a, a).sqrt();
    if length > 0.0 { a.map(|x| x / length) } else { [0.0; 3] }
}

/// The direction across `a`, of length 1, that is nearest to `wanted`; any across it where that is along `a` or 0. `a` has length 1.
pub(super) fn across(a: V3, wanted: V3) -> V3 {
    let rejected = |wanted| unit(sum([(1.0, wanted), (-dot(wanted, a), a)]));
    let wanted = unit(wanted);
    let side = cross(a, wanted);
    if dot(side, side) > PARALLEL * PARALLEL { rejected(wanted) } else { rejected(least_axis(a)) }
}

/// The axis that a direction goes along least.
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
    fn across_is_across() {
        let a = unit([1.0, 2.0, -3.0]);
        for wanted in [[0.0, 0.0, 1.0], [1.0, 2.0, -3.0], [-5.0, -10.0, 15.0], [0.0; 3], [3.0, 1e-9, 0.0]] {
            let found = across(a, wanted);
            assert!(dot(found, a).abs() < 1e-12 && (dot(found, found) - 1.0).abs() < 1e-12);
            assert!(dot(found, wanted) > -1e-6);
        }
        assert_eq!(across([0.0, 0.0, 1.0], [2.0, 0.0, 7.0]), [1.0, 0.0, 0.0]);
        assert_eq!(unit([0.0; 3]), [0.0; 3]);
    }
}
