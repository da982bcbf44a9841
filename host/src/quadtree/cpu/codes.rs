//! Build from Morton codes: all threads sort the codes of all levels, then cut them into nodes level by level.

use crate::error::Result;
use crate::memory::{self, Parts};
use crate::parallel::{self, Ranges, TASK_ITEMS};
use crate::quadtree::node::{OrderedPoints, Part};
use crate::stats::Stats;
use kauri_kernels::quadtree::frame::Frame;
use kauri_kernels::quadtree::node::Node;
use kauri_kernels::thread::coord::Coord;
use rayon::prelude::*;

/// Most children of a node.
const MAX_CHILDREN: usize = 8;

/// A Morton code: the child number on each level, from the root down, the first level in the highest bits.
pub(crate) trait Code: Copy + Ord + Send + Sync {
    /// The code of no levels.
    const ROOT: Self;
    /// Appends `bits` bits.
    fn append(self, bits: u32, code: u32) -> Self;
    /// Returns `bits` bits from bit `shift` on.
    fn digit(self, shift: u32, bits: u32) -> u32;
}

macro_rules! codes {
    ($($Integer:ident)*) => {$(
        impl Code for $Integer {
            const ROOT: Self = 0;

            fn append(self, bits: u32, code: u32) -> Self {
                self.checked_shl(bits).unwrap_or(0) | Self::from(code)
            }

            fn digit(self, shift: u32, bits: u32) -> u32 {
                (self >> shift) as u32 & ((1 << bits) - 1)
            }
        }
    )*};
}
codes! { u64 u128 }

/// Builds nodes down to level `depth`, and brings the points into tree order.
pub(crate) fn build<C: Coord, K: Code, const D: usize>(
    points: &[[C; D]],
    frame: &Frame<D>,
    depth: u32,
    leaf_points: u32,
    stats: &mut Stats,
) -> Result<(Part<D>, OrderedPoints<C>)> {
    let n = points.len();
    let mut keyed: Vec<(K, u32)> = memory::vec_with_capacity(n, "codes of points")?;
    stats.temp_bytes = (n * size_of::<(K, u32)>()) as u64;
    let mut ids = memory::vec_with_capacity(n, "ids of points")?;
    let mut coords = memory::vec_with_capacity(n, "points in the order of a quadtree")?;
    stats.phase("codes", || {
        let keyed_point = |id: usize| (code(frame, frame.unit(points[id]), depth), id as u32);
        parallel::extend(&mut keyed, n, TASK_ITEMS, keyed_point);
    });
    // Ids differ, so an unstable sort gives one order.
    stats.phase("sort", || keyed.par_sort_unstable());
    let part = stats.phase("cut", || cut(&keyed, frame, depth, leaf_points))?;
    stats.phase("order", || {
        parallel::extend(&mut ids, n, TASK_ITEMS, |i| keyed[i].1);
        sort_leaves(&part.nodes, &mut ids);
        parallel::extend(&mut coords, n, TASK_ITEMS, |i| points[ids[i] as usize]);
    });
    Ok((part, OrderedPoints { coords: coords.into_flattened(), ids }))
}

/// Sorts the ids of each leaf.
fn sort_leaves(nodes: &[Node], ids: &mut [u32]) {
    let ids = Parts::of_initialized(ids);
    Ranges::new(nodes.len(), TASK_ITEMS / 8).for_each(&|range| {
        for leaf in nodes[range].iter().filter(|node| node.is_leaf()) {
            // SAFETY: leaves do not overlap.
            unsafe { ids.part(leaf.start as usize..leaf.end as usize).assume_init_mut() }.sort_unstable();
        }
    });
}

/// Returns the code of a unit over all levels down to `depth`.
fn code<K: Code, const D: usize>(frame: &Frame<D>, unit: [u32; D], depth: u32) -> K {
    let (mut code, mut level) = (K::ROOT, 0);
    while level < depth {
        let num_levels = (u32::BITS / D as u32).min(depth - level);
        code = code.append(D as u32 * num_levels, frame.code(unit, level, num_levels));
        level += num_levels;
    }
    code
}

/// Cuts sorted codes into nodes, level by level.
fn cut<K: Code, const D: usize>(
    keyed: &[(K, u32)],
    frame: &Frame<D>,
    depth: u32,
    leaf_points: u32,
) -> Result<Part<D>> {
    let (mut part, mut level_begin) = (Part::of_root(keyed.len()), 0);
    for level in 0..depth {
        let level_end = part.nodes.len();
        let parents: Vec<_> =
            (level_begin..level_end).filter(|&i| part.nodes[i].len() > leaf_points).collect();
        if parents.is_empty() {
            break;
        }
        part.reserve(parents.len())?;
        let shift = D as u32 * (depth - level - 1);
        // The end of each child's codes among the codes of its parent.
        let ends_of_children = |&i: &usize| -> [u32; MAX_CHILDREN] {
            let keyed = &keyed[part.nodes[i].start as usize..part.nodes[i].end as usize];
            let end_of = |child| keyed.partition_point(|(key, _)| key.digit(shift, D as u32) <= child) as u32;
            std::array::from_fn(|child| if child < 1 << D { end_of(child as u32) } else { 0 })
        };
        let ends = parallel::map(parents.len(), TASK_ITEMS / 8, |i| ends_of_children(&parents[i]));
        for (&i, ends) in parents.iter().zip(ends) {
            let begin_of = |child: usize| if child == 0 { 0 } else { ends[child - 1] };
            part.push_children(i, frame.levels, |child| ends[child] - begin_of(child))?;
        }
        level_begin = level_end;
    }
    Ok(part)
}
