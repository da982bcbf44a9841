//! A parameter that lets threads race.
use cuda_std::prelude::*;

#[kernel]
pub unsafe fn fill(out: &mut [u32]) {}

fn main() {}
