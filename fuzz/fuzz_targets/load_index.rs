//! Any bytes, loaded as every kind of index: an error, or a tree that can be asked anything.
//!
//! `cargo +nightly fuzz run load_index`, best with a few small files that `save` wrote in `corpus/load_index`.
//!
//! A fuzzer does not guess checksums, so every input is tried a second time with those that it should have. The test
//! `any_bytes_are_an_error_or_a_tree` of the conformance suite does the same without a fuzzer.

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
