//! Level-by-level build on one thread, with a bucket sort per node: the baseline of Gluck 2014.
//!
//! A level compares each point once with the middle of its node, and keeps the number of its child in a byte. It counts these bytes and
//! moves the points from one of two buffers to the other.

use crate::error::Result;
use crate::memory;
use crate::quadtree::node::{OrderedPoints, Part};
use kauri_kernels::quadtree::frame::Frame;
use kauri_kernels::quadtree::node::Node;
use kauri_kernels::thread::coord::{Coord, Float};
use kauri_kernels::thread::radix_key::RadixKey;
use kauri_kernels::thread::ranked::RankBits;
use std::ops::Range;

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
    ids.extend(0..n as u32);
    let mut tree = Points { coords: memory::copy(points, "points in the order of a quadtree")?, ids };
    let mut other = Points {
        coords: memory::copy(points, "points in the order of a quadtree")?,
        ids: memory::filled(n, 0, "ids of points")?,
    };
    let mut classes = memory::filled(n, 0, "children of the points")?;

    let (mut part, mut level_begin) = (Part::of_root(n), 0);
    for level in 0..depth {
        let level_nodes = level_begin..part.nodes.len();
        // The points of nodes that split are in `tree` on even levels, the points of leaves always.
        let is_even = level % 2 == 0;
        if part.nodes[level_nodes.clone()].iter().all(|node| node.len() <= max_points.max(leaf_points)) {
            if !is_even {
                let splits = part.nodes[level_nodes].iter().filter(|node| node.len() > leaf_points);
                splits.for_each(|node| tree.copy(&other, node));
            }
            break;
        }
        for i in level_nodes.clone() {
            let node = part.nodes[i];
            if node.len() <= leaf_points {
                continue;
            }
            let middle = middle::<C, D>(frame, part.corners[i], level);
            let classes = &mut classes[..node.len() as usize];
            let (from, to) = if is_even { (&tree, &mut other) } else { (&other, &mut tree) };
            let counts = from.classify(range(&node), middle, classes);
            from.scatter(range(&node), &counts, classes, to);
            let first_child = part.nodes.len();
            part.push_children(i, frame.levels, |child| counts[child])?;
            if is_even {
                let is_leaf = |child: &&Node| child.len() <= leaf_points || child.level == depth;
                part.nodes[first_child..].iter().filter(is_leaf).for_each(|leaf| tree.copy(&other, leaf));
            }
        }
        level_begin = level_nodes.end;
    }
    Ok((part, OrderedPoints { coords: tree.coords.into_flattened(), ids: tree.ids }))
}

/// Returns the temporary bytes per point: a second copy of the point and its id, and the number of its child.
pub(crate) fn temp_point_bytes<C>(dims: usize) -> usize {
    dims * size_of::<C>() + size_of::<u32>() + size_of::<u8>()
}

/// Points and their ids.
struct Points<C, const D: usize> {
    coords: Vec<[C; D]>,
    ids: Vec<u32>,
}

impl<C: Coord, const D: usize> Points<C, D> {
    /// Copies the points of a node.
    fn copy(&mut self, from: &Self, node: &Node) {
        let range = range(node);
        self.coords[range.clone()].copy_from_slice(&from.coords[range.clone()]);
        self.ids[range.clone()].copy_from_slice(&from.ids[range]);
    }

    /// Writes the child of each point of a node, and returns the number of points of each child.
    fn classify(
        &self,
        range: Range<usize>,
        middle: [C::Distance; D],
        classes: &mut [u8],
    ) -> [u32; MAX_CHILDREN] {
        let mut counts = [0; MAX_CHILDREN];
        for (class, point) in classes.iter_mut().zip(&self.coords[range]) {
            let mut child = 0;
            for axis in 0..D {
                child = child << 1 | u32::from(point[axis].widen() >= middle[axis]);
            }
            *class = child as u8;
            // A sum for each child compiles to vector instructions; a counter at the index of the child does not.
            for (other, count) in (0..).zip(&mut counts[..1 << D]).skip(1) {
                *count += u32::from(child == other);
            }
        }
        counts[0] = classes.len() as u32 - counts[1..].iter().sum::<u32>();
        counts
    }

    /// Copies the points of a node to another buffer, sorted by child.
    fn scatter(&self, range: Range<usize>, counts: &[u32; MAX_CHILDREN], classes: &[u8], to: &mut Self) {
        let mut next = [range.start; MAX_CHILDREN];
        for child in 1..1 << D {
            next[child] = next[child - 1] + counts[child - 1] as usize;
        }
        for ((&class, &point), &id) in classes.iter().zip(&self.coords[range.clone()]).zip(&self.ids[range]) {
            let next = &mut next[class as usize % MAX_CHILDREN];
            (to.coords[*next], to.ids[*next]) = (point, id);
            *next += 1;
        }
    }
}

fn range(node: &Node) -> Range<usize> {
    node.start as usize..node.end as usize
}

/// Returns the least coordinates in the upper halves of a cell.
fn middle<C: Coord, const D: usize>(frame: &Frame<D>, corner: [u32; D], level: u32) -> [C::Distance; D] {
    let half = 1 << (frame.levels - level - 1);
    frame.corner(corner.map(|unit| u64::from(unit) + half)).map(|border| {
        let near = C::Distance::from_f64(border);
        if near.to_f64() < border {
            let next = near.key().plus(<C::Distance as Coord>::Key::low(1));
            C::Distance::from_key(next)
        } else {
            near
        }
    })
}
