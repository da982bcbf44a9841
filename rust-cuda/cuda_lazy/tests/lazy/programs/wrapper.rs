//! A library that uses `cust` and `cuda_lazy` on behalf of programs.

use cuda_lazy as _;

/// What `cust::quick_init` says.
pub fn init() -> Result<(), cust::error::CudaError> {
    cust::quick_init().map(drop)
}
