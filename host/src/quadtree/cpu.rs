//! Builds on the CPU.

mod codes;
#[cfg(feature = "research")]
pub(crate) mod levels;

use crate::error::Result;
use crate::primitives::cpu::bounds::bounds;
use crate::quadtree::frame::frame_of_bounds;
use crate::quadtree::host::HostTree;
use crate::quadtree::node::node_bytes;
use crate::quadtree::options::{BuildAlgorithm, QuadtreeOptions};
use crate::stats::Stats;
use kauri_kernels::quadtree::frame::Frame;
use kauri_kernels::thread::coord::Coord;

/// Builds the tree.
pub(crate) fn build<C: Coord, const D: usize>(
    points: &[[C; D]],
    options: &QuadtreeOptions,
    stats: &mut Stats,
) -> Result<HostTree<C>> {
    let frame = stats.phase("bounds", || frame_of_bounds(bounds(points), points.is_empty(), options))?;
    build_in(points, &frame, options, stats)
}

/// Builds the tree over points that are in a frame.
pub(crate) fn build_in<C: Coord, const D: usize>(
    points: &[[C; D]],
    frame: &Frame<D>,
    options: &QuadtreeOptions,
    stats: &mut Stats,
) -> Result<HostTree<C>> {
    let depth = options.depth(frame);
    let leaf_points = options.leaf_points;
    let (part, ordered) = match options.algorithm {
        BuildAlgorithm::Codes if D as u32 * depth <= u64::BITS => {
            codes::build::<C, u64, D>(points, frame, depth, leaf_points, stats)
        }
        BuildAlgorithm::Codes => codes::build::<C, u128, D>(points, frame, depth, leaf_points, stats),
        #[cfg(feature = "research")]
        BuildAlgorithm::Levels(_) => {
            stats.phase("levels", || levels::build(points, frame, depth, leaf_points, 0))
        }
    }?;
    Ok(HostTree::new(frame, options, part, ordered))
}

/// Returns an upper bound of the temporary bytes of a build of `num_points` points and `num_nodes` nodes.
pub(crate) fn temp_bytes<C: Coord>(
    num_points: u64,
    num_nodes: u64,
    dims: usize,
    options: &QuadtreeOptions,
) -> u64 {
    let point_bytes = match options.algorithm {
        BuildAlgorithm::Codes if dims as u32 * options.max_depth <= u64::BITS => size_of::<(u64, u32)>(),
        BuildAlgorithm::Codes => size_of::<(u128, u32)>(),
        #[cfg(feature = "research")]
        BuildAlgorithm::Levels(_) => levels::temp_point_bytes::<C>(dims),
    };
    // While vectors of nodes grow, and for the children of one level.
    let temp_node_bytes = 2 * node_bytes(dims) + size_of::<usize>() as u64;
    num_points * point_bytes as u64 + num_nodes * temp_node_bytes
}
