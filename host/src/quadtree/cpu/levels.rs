//! Level-by-level build on one thread, with a bucket sort per node: the baseline of Gluck 2014.

use crate::error::Result;
use crate::memory;
use crate::quadtree::node::{OrderedPoints, Part};
use kauri_kernels::quadtree::frame::Frame;
use kauri_kernels::thread::coord::Coord;

/// Most children of a node.
const MAX_CHILDREN: usize = 8;

/// Builds nodes level by level, and brings the points into tree order. Stops at level `depth`, or at the first level on which every node
/// has at most `max_points` points.
pub(crate) fn build<C: Coord, const D: usize>(
    points: &[[C; D]],
    frame: &Frame<D>,
    depth: u32,
    leaf_points: u32,
    max_points: u32,
) -> Result<(Part<D>, OrderedPoints<C>)> {
    let n = points.len();
    let mut ids: Vec<u32> = memory::vec_with_capacity(n, "ids of points")?;
    let mut in_order: Vec<[C; D]> = memory::vec_with_capacity(n, "points in the order of a quadtree")?;
    let mut sorted_ids: Vec<u32> = memory::vec_with_capacity(n, "ids of points")?;
    let mut sorted: Vec<[C; D]> = memory::vec_with_capacity(n, "points in the order of a quadtree")?;
    ids.extend(0..n as u32);
    in_order.extend_from_slice(points);
    sorted_ids.resize(n, 0);
    sorted.extend_from_slice(points);

    let (mut part, mut level_begin) = (Part::of_root(n), 0);
    for level in 0..depth {
        let level_end = part.nodes.len();
        if part.nodes[level_begin..].iter().all(|node| node.len() <= max_points.max(leaf_points)) {
            break;
        }
        for i in level_begin..level_end {
            let node = part.nodes[i];
            if node.len() <= leaf_points {
                continue;
            }
            let range = node.start as usize..node.end as usize;
            let child_of = |point: [C; D]| frame.code(frame.unit(point), level, 1) as usize;
            // Histogram of the children, shifted by one, and its prefix sums.
            let mut begins = [0; MAX_CHILDREN + 1];
            for &point in &in_order[range.clone()] {
                begins[child_of(point) + 1] += 1;
            }
            begins[0] = range.start;
            for child in 0..1 << D {
                begins[child + 1] += begins[child];
            }
            let mut next = begins;
            for from in range.clone() {
                let to = &mut next[child_of(in_order[from])];
                (sorted[*to], sorted_ids[*to]) = (in_order[from], ids[from]);
                *to += 1;
            }
            in_order[range.clone()].copy_from_slice(&sorted[range.clone()]);
            ids[range.clone()].copy_from_slice(&sorted_ids[range]);

            part.push_children(i, frame.levels, |child| (begins[child + 1] - begins[child]) as u32)?;
        }
        level_begin = level_end;
    }
    Ok((part, OrderedPoints { coords: in_order.into_flattened(), ids }))
}

/// Returns the temporary bytes per point: a second copy of the point and its id.
pub(crate) fn temp_point_bytes<C>(dims: usize) -> usize {
    dims * size_of::<C>() + size_of::<u32>()
}
