//! Variants of `sah`.
pub use crate::sah::variants::{StagesOptions, Traversal};
