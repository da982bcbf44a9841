//! Compiles the kernels to PTX, which the program embeds.

use cuda_builder::{Arch, CudaBuilder};
use std::env;

fn main() {
    let to = env::var("OUT_DIR").expect("cargo sets it");
    let ptx = CudaBuilder::new("kernels")
        .arch(Arch::SM_75)
        // Without this feature the PTX has no entries of the family `own`.
        .features(["entries-own"])
        .copy_to(format!("{to}/own.ptx"))
        .build_one()
        .unwrap_or_else(|error| panic!("{error}"));
    for source in ptx.sources {
        println!("cargo::rerun-if-changed={}", source.display());
    }
}
