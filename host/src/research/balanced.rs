//! Variants of `balanced`.
