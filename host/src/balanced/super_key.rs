//! The order of points by super key, on the host.

use kauri_kernels::thread::coord::Float;
use std::cmp::Ordering;

/// The fault of a node that does not keep the order.
pub(crate) const WRONG_SIDE: &str = "its point is on the wrong side of an ancestor, or equal to it";

/// Compares the coordinates of two points by the super key that begins on an axis.
#[inline]
pub(crate) fn compare<C: Float>(a: &[C], b: &[C], axis: usize) -> Ordering {
    let by_axis = |axis: usize| a[axis].key().cmp(&b[axis].key());
    (axis..a.len()).chain(0..axis).map(by_axis).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}
