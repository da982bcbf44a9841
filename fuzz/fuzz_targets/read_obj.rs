//! Reads any bytes as an OBJ mesh: the result is an error of the file, or complete data.
//!
//! Run `cargo +nightly fuzz run read_obj`, preferably with seeds in `corpus/read_obj`: the test
//! `broken_tables_and_meshes` of the conformance suite writes them if `KAURI_SEEDS` names the folder `fuzz/corpus`.
//! That test also runs without a fuzzer.

#![no_main]

#[path = "../../tests/src/read_any.rs"]
mod read_any;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let scratch = std::env::temp_dir().join(format!("kauri-read_obj-{}", std::process::id()));
    if !bytes.starts_with(b"ply") {
        read_any::read_triangles(&scratch, bytes);
    }
});
