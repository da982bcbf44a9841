//! Unique on the CPU; see [the GPU version](crate::primitives::unique).

use super::select::split;
use kauri_kernels::thread::predicate::SameRun;
use kauri_kernels::thread::words::Words;

/// Returns the first item of every run.
pub fn unique<T: Words, R: SameRun<T>>(input: &[T]) -> Vec<T> {
    split(input, |i, item| i == 0 || !R::same(input[i - 1], item)).0
}
