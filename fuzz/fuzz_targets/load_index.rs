//! Loads any bytes as every kind of index: the result is an error, or a tree that answers every query.
//!
//! Run `cargo +nightly fuzz run load_index`, preferably with a few small files from `save` in `corpus/load_index`.
//!
//! A fuzzer does not guess checksums, so every input is loaded a second time with correct checksums. The test
//! `any_bytes_are_an_error_or_a_tree` of the conformance suite does this without a fuzzer.

#![no_main]

#[path = "../../tests/src/load_any.rs"]
mod load_any;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    load_any::load_any(bytes);
    let mut sealed = bytes.to_vec();
    load_any::reseal(&mut sealed);
    load_any::load_any(&sealed);
});
