//! Variants of `sah`.
