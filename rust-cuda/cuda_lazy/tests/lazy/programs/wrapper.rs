//! A library that uses `cust` and `cuda_lazy` on behalf of programs.

use cuda_lazy as _;

/// Returns the result of `cust::quick_init` as text.
pub fn init() -> Result<(), cust::error::CudaError> {
    cust::quick_init().map(drop)
}
