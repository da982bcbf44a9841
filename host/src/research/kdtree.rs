//! Variants of `kdtree`.
