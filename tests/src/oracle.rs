//! Reference results, computed in the simplest way with kauri's own arithmetic.

use kauri::Point;
use kauri::kdtree::SplitRule;
use kauri_kernels::thread::coord::{Coord, Float, dist2};
use std::collections::BTreeMap;

/// The type of the distances between points of a type.
pub type DistanceOf<P> = <<P as Point>::Coord as Coord>::Distance;

/// Returns the coordinates of points as an index stores them.
pub fn coordinates<P: Point>(points: &[P]) -> Vec<P::Coord> {
    P::coordinates(points, "point").expect("the points are valid").into_owned()
}

/// Returns the coordinates of points in the type of distances.
fn widened<P: Point>(points: &[P]) -> Vec<DistanceOf<P>> {
    coordinates(points).into_iter().map(Coord::widen).collect()
}

/// Brute force over a set of points.
pub struct BruteForce<P: Point> {
    coords: Vec<DistanceOf<P>>,
}

impl<P: Point> BruteForce<P> {
    /// Creates the set. A point's id is its position.
    pub fn new(points: &[P]) -> Self {
        Self { coords: widened(points) }
    }

    /// Returns the `k` nearest points of a query, or all if there are fewer, sorted by (squared distance, id).
    pub fn nearest(&self, query: P, k: usize) -> Vec<(DistanceOf<P>, u32)> {
        let query = widened(&[query]);
        let mut best: Vec<(DistanceOf<P>, u32)> = Vec::new();
        for (point, id) in self.coords.chunks_exact(P::DIMS).zip(0..) {
            let distance = dist2(P::DIMS, |axis| query[axis], |axis| point[axis]);
            // Ids ascend, so a new point follows all points at the same distance.
            if best.len() < k || best.last().is_some_and(|&(worst, _)| distance < worst) {
                best.insert(best.partition_point(|&(other, _)| other <= distance), (distance, id));
                best.truncate(k);
            }
        }
        best
    }

    /// Returns [`nearest`](Self::nearest) as a row of a result: ids and squared distances, padded to `k`.
    pub fn row(&self, query: P, k: usize) -> (Vec<u32>, Vec<DistanceOf<P>>) {
        padded_row(&self.nearest(query, k), k)
    }
}

/// Converts neighbors to a row of a result: ids and squared distances, padded to `k`.
pub fn padded_row<C: Float>(found: &[(C, u32)], k: usize) -> (Vec<u32>, Vec<C>) {
    let padding = std::iter::repeat((C::INFINITY, u32::MAX));
    found.iter().copied().chain(padding).take(k).map(|(distance, id)| (id, distance)).unzip()
}

/// Builds the left-balanced k-d tree under the order (coordinate, id) by sorting every subtree. Returns the ids in level
/// order.
pub fn tree_ids<P: Point>(points: &[P], rule: SplitRule) -> Vec<u32> {
    let (flat, dims) = (widened(points), P::DIMS);
    let mut ids: Vec<u32> = (0..points.len() as u32).collect();
    let mut nodes = vec![u32::MAX; points.len()];
    // The range of the coordinates on each axis.
    let sides = |axis: usize| {
        let along = flat.iter().skip(axis).step_by(dims);
        let [least, greatest] = DistanceOf::<P>::EMPTY;
        let side = (least, greatest);
        along.fold(side, |(low, high), &x| (low.min(x), high.max(x)))
    };
    let sides: Vec<_> = (0..dims).map(sides).collect();
    let by = match rule {
        SplitRule::Widest => Split::Cell(sides),
        _ => {
            let mut axes: Vec<usize> = (0..dims).filter(|&axis| sides[axis].0 < sides[axis].1).collect();
            if axes.is_empty() {
                axes = (0..dims).collect();
            }
            Split::InTurn(axes)
        }
    };
    place_subtree(&flat, dims, &mut ids, 0, by, &mut nodes);
    nodes
}

/// The split rule's state at a node: the axes of the levels from the node down, which repeat, or the node's cell.
enum Split<C> {
    InTurn(Vec<usize>),
    Cell(Vec<(C, C)>),
}

fn place_subtree<C: Float>(
    flat: &[C],
    dims: usize,
    ids: &mut [u32],
    node: usize,
    by: Split<C>,
    nodes: &mut [u32],
) {
    if ids.is_empty() {
        return;
    }
    let axis = match &by {
        Split::InTurn(axes) => axes[0],
        Split::Cell(sides) => {
            let width = |axis: &usize| (sides[*axis].1 - sides[*axis].0).key();
            // `max_by_key` returns the last of equal values; the lowest axis should win.
            (0..dims).rev().max_by_key(width).unwrap()
        }
    };
    ids.sort_by_key(|&id| (flat[id as usize * dims + axis].key(), id));
    let left_size = left_size(ids.len() as u64) as usize;
    nodes[node] = ids[left_size];
    let at = flat[ids[left_size] as usize * dims + axis];
    let (by_left, by_right) = match by {
        Split::InTurn(mut axes) => {
            axes.rotate_left(1);
            (Split::InTurn(axes.clone()), Split::InTurn(axes))
        }
        Split::Cell(sides) => {
            let (mut left, mut right) = (sides.clone(), sides);
            (left[axis].1, right[axis].0) = (at, at);
            (Split::Cell(left), Split::Cell(right))
        }
    };
    let (left, right) = ids.split_at_mut(left_size);
    place_subtree(flat, dims, left, 2 * node + 1, by_left, nodes);
    place_subtree(flat, dims, &mut right[1..], 2 * node + 2, by_right, nodes);
}

/// Returns the size of the left subtree of a left-balanced tree of `n` nodes. By definition all levels but the last are
/// full, and the last level is filled from the left.
pub fn left_size(n: u64) -> u64 {
    if n <= 1 {
        return 0;
    }
    let last_level = n.ilog2();
    let in_last_level = n - ((1 << last_level) - 1);
    let half = 1 << (last_level - 1);
    (half - 1) + in_last_level.min(half)
}

/// Builds the balanced tree over distinct points by its definition: it sorts every subtree. Returns the id of the point at
/// each address, level by level, or `u32::MAX`; and the representative of each point, which is the first equal point.
pub fn balanced<P: Point>(points: &[P]) -> (Vec<u32>, Vec<u32>) {
    let (flat, dims) = (coordinates(points), P::DIMS);
    let key = |id: u32, axis: usize| flat[id as usize * dims + axis].key();
    let super_key =
        |id: u32, axis: usize| -> Vec<_> { (0..dims).map(|i| key(id, (axis + i) % dims)).collect() };
    let mut first_equal = BTreeMap::new();
    let representatives: Vec<u32> =
        (0..points.len() as u32).map(|id| *first_equal.entry(super_key(id, 0)).or_insert(id)).collect();
    let mut ids: Vec<u32> =
        (0..points.len() as u32).filter(|&id| representatives[id as usize] == id).collect();
    let mut medians = vec![u32::MAX; ids.len().checked_ilog2().map_or(0, |log| (2 << log) - 1)];
    place_median(&mut ids, &|id, level| super_key(id, level % dims), 0, 0, &mut medians);
    (medians, representatives)
}

fn place_median<K: Ord>(
    ids: &mut [u32],
    key: &impl Fn(u32, usize) -> K,
    level: usize,
    address: usize,
    medians: &mut [u32],
) {
    if ids.is_empty() {
        return;
    }
    ids.sort_by_key(|&id| key(id, level));
    let middle = (ids.len() - 1) / 2;
    medians[address] = ids[middle];
    let (less, greater) = ids.split_at_mut(middle);
    place_median(less, key, level + 1, 2 * address + 1, medians);
    place_median(&mut greater[1..], key, level + 1, 2 * address + 2, medians);
}
