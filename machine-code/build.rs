//! Includes the pack of this package's architecture, which `cargo xtask ptx --cubin` writes. Without it the crate is empty.

fn main() {
    let arch = env!("CARGO_PKG_NAME").trim_start_matches("kauri-sm-");
    let pack = format!("kernels.sm_{arch}.cubin.pack");
    cuda_pack::embed("../..", |name| name == pack);
}
