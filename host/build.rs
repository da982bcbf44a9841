//! Includes the packs of PTX in the library, and builds none: `cargo xtask ptx` does. Machine code is in crates of its own. Without packs,
//! or with the environment variable `KAURI_EMBED_PTX` set to 0, the library builds all the same and says so when a GPU is used.

use std::env;

fn main() {
    let has_feature = |name: &str| env::var_os(format!("CARGO_FEATURE_{name}")).is_some();
    let (cuda, research) = (has_feature("CUDA"), has_feature("RESEARCH"));
    // The kernels of the tests and of the research variants are for this workspace, which turns `research` on.
    let is_wanted =
        |name: &str| cuda && name.ends_with(".ptx.pack") && (research || name.starts_with("kernels."));
    if cuda_pack::embed("..", is_wanted) == Some(0) && cuda {
        println!(
            "cargo::warning=this build has no kernels and cannot use a GPU: run `cargo xtask ptx` in the clone of kauri and build again"
        );
    }
}
