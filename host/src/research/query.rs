//! Variants of `query`.
