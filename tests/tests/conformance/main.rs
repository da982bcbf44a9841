//! The conformance suite: what kauri promises, on every device of this machine.

mod arrow;
mod balanced;
mod balanced_multi_gpu;
mod balanced_on_device;
mod batches;
mod boxes;
mod boxes_top_k;
mod bvh;
mod bvh_searches;
mod clouds;
mod command_line;
mod command_line_boxes;
mod command_line_case;
mod command_line_dem;
mod command_line_joins;
mod command_line_parquet;
mod command_line_process;
mod command_line_render;
mod command_line_tables;
mod cust_bridge;
mod degenerate;
mod differential;
mod equal_points;
mod foreign_points;
mod frames;
mod hard_cases;
mod integers;
mod join_overfull_cells;
mod join_plans;
mod joins;
mod kdtree_build;
mod kdtree_large;
mod kdtree_nearest;
mod kdtree_queries;
mod kept_memory;
mod left_balanced;
mod limited_memory;
mod lonlat;
mod prepare;
mod primitives;
mod primitives_ordered;
mod properties;
mod quadtree;
mod quadtree_large;
mod quadtree_plan;
mod quadtree_to_file;
mod readers;
mod refusals;
mod results;
mod rtree;
mod sah;
mod save;
mod stored_integers;
mod terrain;
mod time_bounds;

use kauri::kdtree::{BuildAlgorithm, SplitRule};
use kauri::{Device, KdTree, KdTreeOptions, Point};

/// Builds and verifies the tree over `points`. Checks that every build algorithm builds this tree.
fn build<P: Point>(device: &Device, points: &[P]) -> KdTree<P> {
    build_by(device, points, SplitRule::RoundRobin)
}

/// [`build`] with a split rule.
fn build_by<P: Point>(device: &Device, points: &[P], rule: SplitRule) -> KdTree<P> {
    let what = format!("{} points by {rule:?} on {device}", points.len());
    let by = |algorithm| {
        let options = KdTreeOptions::default().algorithm(algorithm).split(rule);
        KdTree::build(device, points, &options).unwrap_or_else(|error| panic!("{what}: {error}"))
    };
    let tree = by(BuildAlgorithm::Selection);
    tree.verify().unwrap_or_else(|error| panic!("{what}: {error}"));
    // The CPU has no other algorithms.
    let on_cpu: &[_] = &[BuildAlgorithm::Tags];
    let on_gpu: &[_] = &[
        BuildAlgorithm::SelectionInPlace,
        BuildAlgorithm::Tags,
        BuildAlgorithm::TagsOfUnfinished,
        BuildAlgorithm::TagsAboveCoordinates,
        BuildAlgorithm::TagsInPlace,
    ];
    for &algorithm in if device.is_cpu() { on_cpu } else { on_gpu } {
        let other = by(algorithm);
        assert!(other.node_ids().unwrap() == tree.node_ids().unwrap(), "{what}: another by {algorithm:?}");
        other.verify().unwrap_or_else(|error| panic!("{what} by {algorithm:?}: {error}"));
    }
    tree
}
