//! Variants of `primitives`.
