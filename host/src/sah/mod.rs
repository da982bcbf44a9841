//! SAH k-d trees over triangles, and rays through them.
//!
//! Each node of the tree has a box. An inner node has an axis-aligned split plane and a child on each side of it. A leaf has
//! references to all triangles that reach into its box, so that a triangle can be in several leaves. Planes are chosen by
//! the surface area heuristic: a leaf costs an intersection test per reference; an inner node costs a traversal step, plus
//! the cost of its children, each weighted by the probability that a ray reaches it (MacDonald, Booth 1990).
//!
//! A GPU builds in two stages (Zhou et al. 2008: Real-time KD-tree construction on graphics hardware; Chang, Seo, Ihm).
//! Large nodes lose the empty space at their sides, and split in the middle; for [the best tree](Quality::Exact) they split at the cheapest of all planes.
//! Small nodes, with at most 64 references, split at the cheapest plane. The CPU builds the same trees, to the last bit.
//!
//! | build | time | scratch memory | random rays |
//! |---|--:|--:|--:|
//! | [`Quality::Fast`], the default | 3.6 ms | 71 MB | 1.8 ms |
//! | with [`clip`](SahOptions::clip) | 4.2 ms | 280 MB | |
//! | [`Quality::Exact`] | 13.3 ms | 146 MB | 1.6 ms |
//! | [`refit`](SahTree::refit_on) of a tree to a moved mesh | 1.9 ms | | |
//!
//! The table is of 871,414 triangles and 2,073,600 rays in device memory on an H200 (suite `sah`,
//! `benches/results/sah-h200.md`). Rays cost as follows; [`RayOptions::sorted`](crate::rays::RayOptions::sorted) adds 16 bytes of scratch memory per ray:
//!
//! | rays | number | in input order | sorted |
//! |---|--:|--:|--:|
//! | of a camera, first hit | 2,073,600 | 0.84 ms | 1.01 ms |
//! | random, first hit | 2,073,600 | 1.75 ms | 1.90 ms |
//! | to the sun, any hit | 473,160 | 0.71 ms | 0.67 ms |
//! | around surface points, any hit | 485,099 | 0.62 ms | 0.75 ms |
//!
//! Intersections are watertight: rays find no gap between triangles that share an edge (Woop, Benthin, Wald 2013). The
//! hits of a ray depend on ray and triangle alone, not on the tree, its builder or the device.
//!
//! [`SahTree`] has an example. With the feature `research`, `kauri::research::sah` has the stages and traversals of papers.

mod cpu;
mod gpu;
mod host_tree;
mod options;
mod tree;
#[cfg(feature = "research")]
pub(crate) mod variants;
mod verify;

pub use kauri_kernels::sah::node::Node;
pub use options::{Quality, SahOptions};
pub use tree::SahTree;
