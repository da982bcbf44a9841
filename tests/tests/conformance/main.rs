//! The conformance suite: what kauri promises, on every device of this machine.

mod command_line;
mod degenerate;
mod kdtree_build;
mod kdtree_nearest;
mod left_balanced;
mod lonlat;
mod primitives;
mod primitives_ordered;
mod properties;

use kauri::{Device, KdTree, KdTreeOptions, Point};

/// The tree over `points`, verified.
fn build<P: Point>(device: &Device, points: &[P]) -> KdTree<P> {
    let tree = KdTree::build(device, points, &KdTreeOptions::default())
        .unwrap_or_else(|error| panic!("building over {} points on {device}: {error}", points.len()));
    tree.verify().unwrap_or_else(|error| panic!("{} points on {device}: {error}", points.len()));
    tree
}
