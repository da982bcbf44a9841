//! By codes: those of all levels are sorted by all threads, then cut level by level.

use crate::error::Result;
use crate::memory;
use crate::quadtree::check_num_nodes;
use crate::quadtree::cpu::{Cut, Points};
use crate::quadtree::host::Part;
use crate::stats::Stats;
use kauri_kernels::quadtree::frame::Frame;
use kauri_kernels::quadtree::node::Node;
use kauri_kernels::thread::coord::Coord;
use rayon::prelude::*;

/// The ways from the root to points, of up to so many bits.
pub(crate) trait Code: Copy + Ord + Send + Sync {
    /// The way that goes on.
    fn then(self, bits: u32, code: u32) -> Self;
    /// The way but for its last digits, and the lowest bits of that.
    fn digit(self, shift: u32, bits: u32) -> u32;
    /// The way of no levels.
    const ROOT: Self;
}

macro_rules! codes {
    ($($Integer:ident)*) => {$(
        impl Code for $Integer {
            const ROOT: Self = 0;

            fn then(self, bits: u32, code: u32) -> Self {
                self.checked_shl(bits).unwrap_or(0) | Self::from(code)
            }

            fn digit(self, shift: u32, bits: u32) -> u32 {
                (self >> shift) as u32 & ((1 << bits) - 1)
            }
        }
    )*};
}
codes! { u64 u128 }

/// Nodes, and the points in their order.
pub(crate) fn build<C: Coord, K: Code, const D: usize>(
    points: &[[C; D]],
    frame: &Frame<D>,
    depth: u32,
    most: u32,
    stats: &mut Stats,
) -> Result<(Cut<D>, Points<C>)> {
    let n = points.len();
    let mut keyed: Vec<(K, u32)> = memory::vec_with_capacity(n, "codes of points")?;
    stats.temp_bytes = (n * size_of::<(K, u32)>()) as u64;
    let mut ids = memory::vec_with_capacity(n, "ids of points")?;
    let mut coords = memory::vec_with_capacity(n * D, "points in the order of a quadtree")?;
    stats.phase("codes", || {
        let keyed_point = |(id, &point): (usize, &[C; D])| (code(frame, frame.unit(point), depth), id as u32);
        points.par_iter().enumerate().map(keyed_point).collect_into_vec(&mut keyed);
    });
    // All pairs differ.
    stats.phase("sort", || keyed.par_sort_unstable());
    let (tree, splits) = stats.phase("cut", || cut(&keyed, frame, depth, most))?;
    stats.phase("order", || {
        keyed.par_iter().map(|&(_, id)| id).collect_into_vec(&mut ids);
        // Where leaves begin, their points cut in pieces at those places.
        let mut ends: Vec<_> = tree.nodes.iter().filter(|node| node.is_leaf()).map(|node| node.end).collect();
        ends.sort_unstable();
        let (mut rest, mut leaves, mut begin) = (&mut ids[..], Vec::with_capacity(ends.len()), 0);
        for end in ends {
            let (leaf, behind) = rest.split_at_mut((end - begin) as usize);
            leaves.push(leaf);
            (rest, begin) = (behind, end);
        }
        leaves.into_par_iter().for_each(|leaf| leaf.sort_unstable());
        coords.par_extend(ids.par_iter().flat_map_iter(|&id| points[id as usize]));
    });
    Ok(((tree, splits), Points { coords, ids }))
}

/// The way to a unit through all levels down to `depth`.
fn code<K: Code, const D: usize>(frame: &Frame<D>, unit: [u32; D], depth: u32) -> K {
    let (mut code, mut level) = (K::ROOT, 0);
    while level < depth {
        let num_levels = (u32::BITS / D as u32).min(depth - level);
        code = code.then(D as u32 * num_levels, frame.code(unit, level, num_levels));
        level += num_levels;
    }
    code
}

/// Cuts nodes from sorted codes, level by level.
fn cut<K: Code, const D: usize>(
    keyed: &[(K, u32)],
    frame: &Frame<D>,
    depth: u32,
    most: u32,
) -> Result<Cut<D>> {
    let root = Node { start: 0, end: keyed.len() as u32, first_child: 0, level: 0 };
    let (Part { mut nodes, mut corners }, mut splits) = (Part::of_node(root, [0; D]), Vec::new());
    let mut level_begin = 0;
    for level in 0..depth {
        // Those of this level that split.
        let level_end = nodes.len();
        let of_level = (level_begin..level_end).filter(|&i| nodes[i].len() > most);
        let parents: Vec<_> = of_level.collect();
        if parents.is_empty() {
            break;
        }
        check_num_nodes(nodes.len(), parents.len() as u64, D)?;
        let num_children = parents.len() << D;
        memory::reserve(&mut nodes, num_children, "nodes of a quadtree")?;
        memory::reserve(&mut corners, num_children, "cells of a quadtree")?;
        let (shift, side) = (D as u32 * (depth - level - 1), 1 << (frame.levels - level - 1));
        let children: Vec<_> = parents
            .par_iter()
            .flat_map_iter(|&i| {
                let node = nodes[i];
                let keyed = &keyed[node.start as usize..node.end as usize];
                let ends =
                    move |child| keyed.partition_point(|(key, _)| key.digit(shift, D as u32) <= child) as u32;
                let corner = corners[i];
                (0..1 << D).map(move |child: u32| {
                    let start = if child == 0 { 0 } else { ends(child - 1) };
                    let [start, end] = [start, ends(child)].map(|at| node.start + at);
                    let cell: [u32; D] =
                        std::array::from_fn(|axis| corner[axis] + (child >> (D - 1 - axis) & 1) * side);
                    (Node { start, end, first_child: 0, level: level + 1 }, cell)
                })
            })
            .collect();
        for (k, &i) in parents.iter().enumerate() {
            nodes[i].first_child = (level_end + (k << D)) as u32;
        }
        for (node, cell) in children {
            nodes.push(node);
            corners.push(cell);
        }
        splits.push(parents.len() as u32);
        level_begin = level_end;
    }
    Ok((Part { nodes, corners }, splits))
}
