//! Variants of `join`.
