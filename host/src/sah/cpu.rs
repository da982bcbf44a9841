//! Building, refitting and tracing on the CPU.

mod cheapest_planes;
mod large_nodes;
mod references;
mod refit;
mod small_roots;
mod trace;

pub(super) use refit::refit;

use super::host_tree::{HostTree, Subtree};
use super::options::SahOptions;
use crate::error::Result;
use kauri_kernels::rays::extent::Extent;
use kauri_kernels::rays::triangle::Corners;
use references::{BuildInput, Reference, references_of, scene_extent};

/// Builds a tree over triangles with finite corners.
pub(super) fn build(corners: Vec<Corners>, options: &SahOptions) -> Result<HostTree> {
    if corners.is_empty() {
        return HostTree::new(&Subtree::empty(), Extent::ZERO, corners);
    }
    let references = references_of(&corners);
    let extent = scene_extent(&references);
    let input = BuildInput { corners: &corners, options };
    let root = large_nodes::build(&input, references, extent.bounds);
    HostTree::new(&root, extent, corners)
}

/// Returns the temporary bytes that every build takes: the references of the root.
pub(super) fn min_temp_bytes(num_triangles: usize) -> u64 {
    (num_triangles * size_of::<Reference>()) as u64
}
