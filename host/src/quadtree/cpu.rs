//! The tree on the CPU.

mod codes;
pub(super) mod levels;

use super::host::{HostTree, NodeWords, Part};
use super::{Builder, QuadtreeOptions, frame_over, level_begins};
use crate::error::Result;
use crate::kdtree::Coordinate;
use crate::kdtree::cpu::Corners;
use crate::once::Once;
use crate::primitives::cpu::bounds::bounds;
use crate::stats::Stats;

/// Builds the tree.
pub(super) fn build<C: Coordinate, const D: usize>(
    points: &[[C; D]],
    options: &QuadtreeOptions,
    stats: &mut Stats,
) -> Result<HostTree<C>> {
    let frame = stats.phase("bounds", || frame_over(bounds(points), points.is_empty(), options.max_depth))?;
    let depth = frame.levels.min(options.max_depth);
    let most = options.leaf_points;
    let ((tree, splits), Points { coords, ids }) = match options.builder {
        Builder::Codes if D as u32 * depth <= u64::BITS => {
            codes::build::<C, u64, D>(points, &frame, depth, most, stats)
        }
        Builder::Codes => codes::build::<C, u128, D>(points, &frame, depth, most, stats),
        Builder::Levels => stats.phase("levels", || levels::build(points, &frame, depth, most, 0)),
    }?;
    Ok(HostTree {
        frame: frame.to_words().collect(),
        dims: D,
        options: options.clone(),
        level_begins: level_begins(&splits, D),
        nodes: NodeWords::of_nodes(tree.nodes),
        cells: tree.corners.into_flattened(),
        coords: coords.into(),
        ids: ids.into(),
        corners: Corners::new(),
        deep_leaves: Once::new(),
    })
}

/// Nodes, and how many split on each level.
pub(super) type Cut<const D: usize> = (Part<D>, Vec<u32>);

/// Points in the order of the tree.
pub(super) struct Points<C> {
    pub(super) coords: Vec<C>,
    pub(super) ids: Vec<u32>,
}
