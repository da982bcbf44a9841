//! The tree on the CPU.

mod codes;
pub(crate) mod levels;
pub(crate) mod traversal;

use crate::error::Result;
use crate::once::Once;
use crate::primitives::cpu::bounds::bounds;
use crate::quadtree::host::{HostTree, NodeWords, Part};
use crate::quadtree::{Builder, QuadtreeOptions, frame_over, level_begins};
use crate::query::cpu::Corners;
use crate::stats::Stats;
use kauri_kernels::thread::coord::Coord;

/// Builds the tree.
pub(crate) fn build<C: Coord, const D: usize>(
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
pub(crate) type Cut<const D: usize> = (Part<D>, Vec<u32>);

/// Points in the order of the tree.
pub(crate) struct Points<C> {
    pub(crate) coords: Vec<C>,
    pub(crate) ids: Vec<u32>,
}
