//! Emulation of warp operations by one thread, with the same association as in the kernels.

use kauri_kernels::thread::operator::Operator;
use kauri_kernels::thread::words::Words;

/// Reduces 32 values like [`reduce`](kauri_kernels::warp::scan::reduce).
pub(super) fn reduce<T: Words, O: Operator<T>>(mut lanes: [T; 32]) -> T {
    let mut width = 1;
    while width < 32 {
        for lane in (0..32).step_by(2 * width) {
            lanes[lane] = O::combine(lanes[lane], lanes[lane + width]);
        }
        width *= 2;
    }
    lanes[0]
}

/// Scans 32 values like [`inclusive`](kauri_kernels::warp::scan::inclusive).
pub(super) fn inclusive<T: Words, O: Operator<T>>(lanes: &mut [T; 32]) {
    let mut delta = 1;
    while delta < 32 {
        for lane in (delta..32).rev() {
            lanes[lane] = O::combine(lanes[lane - delta], lanes[lane]);
        }
        delta *= 2;
    }
}

/// Pads up to 32 values with identities.
pub(super) fn padded<T: Words, O: Operator<T>>(values: &[T]) -> [T; 32] {
    let mut lanes = [O::IDENTITY; 32];
    lanes[..values.len()].copy_from_slice(values);
    lanes
}
