//! K-d trees over overfull leaves.
//!
//! A leaf at the greatest depth can have any number of points, for example the points of a cluster when another point is far away.
//! Queries traverse a k-d tree of such a leaf instead of all its points.

use crate::error::Result;
use crate::kdtree::{KdTreeOptions, SplitRule};
use crate::query::cpu::CpuIndex;
use crate::stats::Stats;
use kauri_kernels::quadtree::node::Node;
use kauri_kernels::thread::coord::Coord;

/// A leaf with many points, and a k-d tree over them.
pub(crate) struct DeepLeaf<C> {
    /// The leaf's node number.
    pub(crate) node: u32,
    pub(crate) tree: CpuIndex<C>,
}

/// Builds a k-d tree over each leaf with at least `min_points` points. Returns them in the order of nodes.
pub(crate) fn build<C: Coord, const D: usize>(
    nodes: &[Node],
    points: &[[C; D]],
    ids: &[u32],
    min_points: u32,
) -> Result<Vec<DeepLeaf<C>>> {
    let is_deep = |node: &Node| node.is_leaf() && node.len() >= min_points;
    let deep_leaf = |(number, leaf): (u32, &Node)| {
        let range = leaf.start as usize..leaf.end as usize;
        let (coords, ids) = (points[range.clone()].as_flattened(), &ids[range]);
        // The ids of a leaf ascend, so local ids in the k-d tree order ties as the ids do.
        let options = KdTreeOptions::default().split(SplitRule::Widest);
        let tree = crate::kdtree::cpu::build(coords, D, &options, &mut Stats::default())?;
        Ok(DeepLeaf { node: number, tree: tree.with_ids(ids) })
    };
    (0..).zip(nodes).filter(|(_, node)| is_deep(node)).map(deep_leaf).collect()
}
