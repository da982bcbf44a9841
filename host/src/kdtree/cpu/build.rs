//! Building the left-balanced tree: split at the root's rank, then both sides at the same time.

use kauri_kernels::kdtree::left_balanced::{in_order_rank, subtree_size};
use kauri_kernels::thread::coord::Coord;
use rayon::prelude::*;
use std::cmp::Ordering;

use crate::error::Result;
use crate::memory;
use crate::stats::Stats;

/// Subtrees of at most this many points are built by one task.
const SEQUENTIAL: usize = 4096;

/// A point with its id. Moving it whole keeps every comparison free of indirect loads.
#[derive(Clone, Copy)]
pub(super) struct Item<C, const D: usize> {
    coords: [C; D],
    id: u32,
}

/// The nodes and their ids in level order.
pub(super) fn build<C: Coord, const D: usize>(
    points: &[[C; D]],
    stats: &mut Stats,
) -> Result<(Vec<[C; D]>, Vec<u32>)> {
    // The caller has checked that ids are enough.
    let n = points.len() as u32;
    let mut items: Vec<Item<C, D>> = memory::vec_with_capacity(points.len(), "points in build order")?;
    let mut nodes = memory::vec_with_capacity(points.len(), "nodes of the tree")?;
    let mut ids = memory::vec_with_capacity(points.len(), "ids of the nodes")?;

    stats.phase("split", || {
        let item = |(id, &coords): (usize, &[C; D])| Item { coords, id: id as u32 };
        if points.len() <= SEQUENTIAL {
            items.extend(points.iter().enumerate().map(item));
        } else {
            points.par_iter().enumerate().map(item).collect_into_vec(&mut items);
        }
        split(&mut items, 0, n, 0);
    });
    stats.phase("place", || {
        let node = |s| {
            let item = items[in_order_rank(s, n) as usize];
            (item.coords, item.id)
        };
        if points.len() <= SEQUENTIAL {
            (nodes, ids) = (0..n).map(node).unzip();
        } else {
            (0..n).into_par_iter().map(node).unzip_into_vecs(&mut nodes, &mut ids);
        }
    });
    Ok((nodes, ids))
}

/// Puts the points of subtree `s` of a tree over `n` points in order of a walk left, node, right.
fn split<C: Coord, const D: usize>(items: &mut [Item<C, D>], s: u32, n: u32, axis: usize) {
    if items.len() <= 1 {
        return;
    }
    debug_assert_eq!(items.len(), subtree_size(s, n) as usize);
    // More than one point: the left child exists, so its number fits.
    let left_child = 2 * s + 1;
    let (left, _, right) =
        items.select_nth_unstable_by(subtree_size(left_child, n) as usize, |a, b| compare(a, b, axis));
    let next = if axis + 1 == D { 0 } else { axis + 1 };
    // Without points on the right there is no task that could need the number of the right child.
    let right_child = left_child.wrapping_add(1);
    if left.len() > SEQUENTIAL {
        rayon::join(|| split(left, left_child, n, next), || split(right, right_child, n, next));
    } else {
        split(left, left_child, n, next);
        split(right, right_child, n, next);
    }
}

/// The order (coordinate, id) on one axis; ids differ, so nothing is ever equal. Written so that the test for `Less`,
/// all that a partition asks for, compiles to code without branches.
#[inline(always)]
fn compare<C: Coord, const D: usize>(a: &Item<C, D>, b: &Item<C, D>, axis: usize) -> Ordering {
    let less = |a: &Item<C, D>, b: &Item<C, D>| {
        let (x, y) = (a.coords[axis], b.coords[axis]);
        (x < y) | ((x == y) & (a.id < b.id))
    };
    if less(a, b) {
        Ordering::Less
    } else if less(b, a) {
        Ordering::Greater
    } else {
        Ordering::Equal
    }
}
