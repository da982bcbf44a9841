//! A library that uses `cust` and `cuda_trampolines` on behalf of programs.

use cuda_trampolines as _;

/// Returns the result of `cust::quick_init` as text.
pub fn init() -> Result<(), cust::error::CudaError> {
    cust::quick_init().map(drop)
}
