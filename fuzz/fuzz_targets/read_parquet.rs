//! Reads any bytes as a Parquet table: the result is an error of the file, or complete data.
//!
//! Run `cargo +nightly fuzz run read_parquet`, preferably with seeds in `corpus/read_parquet`: the test
//! `broken_parquet_files` of the conformance suite writes them if `KAURI_SEEDS` names the folder `fuzz/corpus`. That
//! test also runs without a fuzzer.

#![no_main]

#[path = "../../tests/src/read_any.rs"]
mod read_any;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let scratch = std::env::temp_dir().join(format!("kauri-read_parquet-{}", std::process::id()));
    // The decoder is behind both.
    read_any::read_table(&scratch, &[b"PAR1", bytes, b"PAR1"].concat());
    read_any::read_table(&scratch, bytes);
});
