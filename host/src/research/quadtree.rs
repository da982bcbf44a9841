//! Variants of `quadtree`.
