//! A tree in host memory from a file.

use crate::error::Result;
use crate::kdtree::stored::check_coords;
use crate::primitives::cpu::bounds::bounds;
use crate::quadtree::check::Unchecked;
use crate::quadtree::frame::{file_words, frame_of_bounds, root_of_file_words};
use crate::quadtree::host::HostTree;
use crate::quadtree::options::QuadtreeOptions;
use crate::query::ids;
use crate::stored::{IndexFile, Section};
use kauri_kernels::quadtree::frame::{Frame, MAX_LEVELS};
use kauri_kernels::quadtree::node::Node;
use kauri_kernels::thread::coord::Coord;

impl<C: Coord> HostTree<C> {
    /// Reads a tree. Accepts exactly the tree that a build makes of the points.
    pub(crate) fn of_file<const D: usize>(mut file: IndexFile) -> Result<Self> {
        let num_points = file.num_points()?;
        let num_nodes = file.num_nodes(1..=u32::MAX as usize)?;
        let coords: Section<C> = file.section("coords", &[num_points * D])?;
        let point_ids = file.section("ids", &[num_points])?;
        let nodes: Section<Node> = file.section("nodes", &[num_nodes])?;
        let frame: Section<u64> = file.section("frame", &[2 + D])?;
        let options = file.section("options", &[2])?;
        file.end()?;
        check_coords(&coords, D)?;
        if let Some((index, what)) = ids::first_invalid(&point_ids.items)? {
            return Err(point_ids.corrupt(index, what));
        }
        let options = checked_options(&options)?.root(root_of_file_words(&frame.items));
        let points = coords.items.as_chunks().0;
        let frame = checked_frame(&frame, points, &options)?;
        let (items, ids) = (&nodes.items, &point_ids.items);
        let tree = Unchecked::<C, D> { frame, options: &options, nodes: items, points, ids };
        let corners = tree.check(|node, what| nodes.corrupt(node, format!("node {node}: {what}")))?;
        Ok(Self::of_items(&frame, &options, nodes.items, corners, coords.items, point_ids.items))
    }
}

/// Returns the options of a file: `leaf_points` and `max_depth`.
fn checked_options(section: &Section<u32>) -> Result<QuadtreeOptions> {
    let [leaf_points, max_depth] = [section.items[0], section.items[1]];
    if leaf_points == 0 {
        return Err(section.corrupt(0, "leaves have at most 0 points, and are to have at least 1".into()));
    }
    if max_depth > MAX_LEVELS {
        return Err(section.corrupt(1, format!("{max_depth} levels, where there are at most {MAX_LEVELS}")));
    }
    Ok(QuadtreeOptions::default().leaf_points(leaf_points).max_depth(max_depth))
}

/// Returns the frame of a file, which must be the frame of the points.
fn checked_frame<C: Coord, const D: usize>(
    section: &Section<u64>,
    points: &[[C; D]],
    options: &QuadtreeOptions,
) -> Result<Frame<D>> {
    let frame = frame_of_bounds(bounds(points), points.is_empty(), options)?;
    let words = file_words(&frame, options.root);
    match words.iter().zip(section.items.iter()).position(|(expected, found)| expected != found) {
        None => Ok(frame),
        Some(i) => Err(section.corrupt(i, format!("the points have another frame: {frame:?}"))),
    }
}
