//! Level by level on one thread, with a bucket sort a node: what Gluck 2014 is measured against.

use super::{Cut, Points};
use crate::error::Result;
use crate::kdtree::Coordinate;
use crate::memory;
use crate::quadtree::check_num_nodes;
use kauri_kernels::quadtree::frame::Frame;
use kauri_kernels::quadtree::node::Node;

/// Nodes, and the points in their order.
pub(super) fn build<C: Coordinate, const D: usize>(
    points: &[[C; D]],
    frame: &Frame<D>,
    depth: u32,
    most: u32,
) -> Result<(Cut, Points<C>)> {
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
    let (mut nodes, mut cells, mut splits) = (vec![root], vec![0; D], Vec::new());
    let mut level_begin = 0;
    for level in 0..depth {
        let level_end = nodes.len();
        let mut num_splits = 0;
        for i in level_begin..level_end {
            let node = nodes[i];
            if node.len() <= most {
                continue;
            }
            num_splits += 1;
            check_num_nodes(nodes.len(), 1, D)?;
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

            memory::reserve_more(&mut nodes, 1 << D, "nodes of a quadtree")?;
            memory::reserve_more(&mut cells, D << D, "cells of a quadtree")?;
            nodes[i].first_child = nodes.len() as u32;
            let side = 1 << (frame.levels - level - 1);
            for child in 0..1_usize << D {
                let [start, end] = [begins[child], begins[child + 1]].map(|at| at as u32);
                nodes.push(Node { start, end, first_child: 0, level: level + 1 });
                for axis in 0..D {
                    let is_upper = (child >> (D - 1 - axis) & 1) as u32;
                    cells.push(cells[i * D + axis] + is_upper * side);
                }
            }
        }
        if num_splits == 0 {
            break;
        }
        splits.push(num_splits);
        level_begin = level_end;
    }
    Ok(((nodes, cells, splits), Points { coords: in_order.into_flattened(), ids }))
}
