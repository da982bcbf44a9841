//! Level by level on one thread, with a bucket sort a node: what Gluck 2014 is measured against.

use crate::error::Result;
use crate::memory;
use crate::quadtree::cpu::{Cut, Points};
use crate::quadtree::host::Part;
use kauri_kernels::quadtree::frame::Frame;
use kauri_kernels::quadtree::node::Node;
use kauri_kernels::thread::coord::Coord;

/// Nodes, and the points in their order, down to the level, at most `depth`, on which no node has more points than `fits`.
pub(crate) fn build<C: Coord, const D: usize>(
    points: &[[C; D]],
    frame: &Frame<D>,
    depth: u32,
    most: u32,
    fits: u32,
) -> Result<(Cut<D>, Points<C>)> {
    let n = points.len();
    let mut ids: Vec<u32> = memory::vec_with_capacity(n, "ids of points")?;
    let mut in_order: Vec<[C; D]> = memory::vec_with_capacity(n, "points in the order of a quadtree")?;
    let mut moved_ids: Vec<u32> = memory::vec_with_capacity(n, "ids of points")?;
    let mut moved: Vec<[C; D]> = memory::vec_with_capacity(n, "points in the order of a quadtree")?;
    ids.extend(0..n as u32);
    in_order.extend_from_slice(points);
    moved_ids.resize(n, 0);
    moved.extend_from_slice(points);

    let root = Node { start: 0, end: n as u32, first_child: 0, level: 0 };
    let (mut tree, mut splits) = (Part::of_node(root, [0; D]), Vec::new());
    let mut level_begin = 0;
    for level in 0..depth {
        let level_end = tree.nodes.len();
        if tree.nodes[level_begin..].iter().all(|node| node.len() <= fits) {
            break;
        }
        let mut num_splits = 0;
        for i in level_begin..level_end {
            let node = tree.nodes[i];
            if node.len() <= most {
                continue;
            }
            num_splits += 1;
            let range = node.start as usize..node.end as usize;
            let child_of = |point: [C; D]| frame.code(frame.unit(point), level, 1) as usize;
            let mut begins = [0; 9];
            for &point in &in_order[range.clone()] {
                begins[child_of(point) + 1] += 1;
            }
            begins[0] = range.start;
            for child in 0..1 << D {
                begins[child + 1] += begins[child];
            }
            let mut next = begins;
            for at in range.clone() {
                let place = &mut next[child_of(in_order[at])];
                (moved[*place], moved_ids[*place]) = (in_order[at], ids[at]);
                *place += 1;
            }
            in_order[range.clone()].copy_from_slice(&moved[range.clone()]);
            ids[range.clone()].copy_from_slice(&moved_ids[range]);

            let side = 1 << (frame.levels - level - 1);
            tree.push_children(i, side, |child| (begins[child + 1] - begins[child]) as u32)?;
        }
        if num_splits == 0 {
            break;
        }
        splits.push(num_splits);
        level_begin = level_end;
    }
    Ok(((tree, splits), Points { coords: in_order.into_flattened(), ids }))
}
