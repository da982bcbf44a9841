//! The tree on the CPU.

mod codes;
mod levels;

use super::host::{HostTree, NodeWords};
use super::{Builder, QuadtreeOptions, frame_over, level_begins};
use crate::error::Result;
use crate::kdtree::Coordinate;
use crate::kdtree::cpu::Corners;
use crate::primitives::cpu::bounds::bounds;
use crate::stats::Stats;
use kauri_kernels::quadtree::node::Node;

/// Builds the tree.
pub(super) fn build<C: Coordinate, const D: usize>(
    points: &[[C; D]],
    options: &QuadtreeOptions,
    stats: &mut Stats,
) -> Result<HostTree<C>> {
    let frame = stats.phase("bounds", || frame_over(bounds(points), points.is_empty(), options.max_depth))?;
    let depth = frame.levels.min(options.max_depth);
    let most = options.leaf_points;
    let ((nodes, cells, splits), Points { coords, ids }) = match options.builder {
        Builder::Codes if D as u32 * depth <= u64::BITS => {
            codes::build::<C, u64, D>(points, &frame, depth, most, stats)
        }
        Builder::Codes => codes::build::<C, u128, D>(points, &frame, depth, most, stats),
        Builder::Levels => stats.phase("levels", || levels::build(points, &frame, depth, most)),
    }?;
    Ok(HostTree {
        frame: frame.to_words().collect(),
        dims: D,
        options: options.clone(),
        level_begins: level_begins(&splits, D),
        nodes: NodeWords::of_nodes(nodes),
        cells,
        coords: coords.into(),
        ids: ids.into(),
        corners: Corners::new(),
    })
}

/// Nodes, the corners of their cells, and how many split on each level.
type Cut = (Vec<Node>, Vec<u32>, Vec<u32>);

/// Points in the order of the tree.
struct Points<C> {
    coords: Vec<C>,
    ids: Vec<u32>,
}
