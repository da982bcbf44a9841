//! The conformance suite: what kauri promises, on every device of this machine.

mod command_line;
mod degenerate;
mod kdtree_build;
mod kdtree_nearest;
mod kdtree_queries;
mod left_balanced;
mod lonlat;
mod primitives;
mod primitives_ordered;
mod properties;

use kauri::kdtree::Builder;
use kauri::{Device, KdTree, KdTreeOptions, Point};

/// The tree over `points`, verified, and the same by every builder.
fn build<P: Point>(device: &Device, points: &[P]) -> KdTree<P> {
    let what = format!("{} points on {device}", points.len());
    let by = |builder| {
        let options = KdTreeOptions::default().builder(builder);
        KdTree::build(device, points, &options).unwrap_or_else(|error| panic!("{what}: {error}"))
    };
    let tree = by(Builder::Selection);
    tree.verify().unwrap_or_else(|error| panic!("{what}: {error}"));
    if !device.is_cpu() {
        assert!(by(Builder::Tags).node_ids().unwrap() == tree.node_ids().unwrap(), "{what}: two trees");
    }
    tree
}
