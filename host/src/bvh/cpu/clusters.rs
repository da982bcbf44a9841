//! The binary tree, by merges of nearest clusters, as the kernel makes it.

use crate::parallel;
use kauri_kernels::bvh::clusters::{MAX_CLUSTERS, Part, Shape, distance, half_area, shape};
use kauri_kernels::bvh::subtree::Subtree;
use kauri_kernels::policy::BVH_RADIUS;
use kauri_kernels::rays::aabb::Aabb;

/// A range with more triangles is processed by several threads.
const PARALLEL_TRIANGLES: usize = 4096;

/// A node of the binary tree.
#[derive(Clone, Copy)]
pub(super) struct Binary {
    pub(super) bounds: Aabb,
    pub(super) children: [Subtree; 2],
    /// The [size](Shape::size) in the tree of rays, or 0.
    pub(super) size: u64,
}

impl Binary {
    pub(super) const NONE: Self = Self { bounds: Aabb::EMPTY, children: [Subtree::NONE; 2], size: 0 };
}

/// A subtree that is to be merged with others, and the number of the node that is made when it is merged into a cluster before it.
#[derive(Clone, Copy)]
pub(super) struct Cluster {
    pub(super) subtree: Subtree,
    pub(super) shape: Shape,
    number: usize,
    bounds: Aabb,
}

impl Cluster {
    /// The triangle at a position along the curve.
    pub(super) const fn of_triangle(position: usize, id: u32, bounds: Aabb) -> Self {
        Self { subtree: Subtree::few(id, 1), shape: Shape::FEW, number: position, bounds }
    }
}

/// Returns the clusters of a range of triangles, at most [`MAX_CLUSTERS`], given their codes, the position of the first one, and their nodes.
pub(super) fn clusters_of(
    codes: &[(u64, u32)],
    first: usize,
    triangle: &(impl Fn(usize) -> Cluster + Sync),
    nodes: &mut [Binary],
) -> Vec<Cluster> {
    let len = codes.len();
    if len <= MAX_CLUSTERS as usize {
        return (first..first + len).map(triangle).collect();
    }
    let middle = middle(codes, first);
    let ((low, high), (low_nodes, high_nodes)) = (codes.split_at(middle), nodes.split_at_mut(middle));
    let mut below = || clusters_of(low, first, triangle, low_nodes);
    let mut above = || clusters_of(high, first + middle, triangle, high_nodes);
    let (mut all, above) =
        if len > PARALLEL_TRIANGLES { parallel::join(below, above) } else { (below(), above()) };
    all.extend(above);
    merged(all, MAX_CLUSTERS as usize, first, nodes)
}

/// Returns where the second child of a range begins in the radix tree of codes. Equal codes are told apart by their positions.
fn middle(codes: &[(u64, u32)], first: usize) -> usize {
    let last = codes.len() - 1;
    let of_codes = codes[0].0 ^ codes[last].0;
    if of_codes != 0 {
        let bit = of_codes.ilog2();
        return codes.partition_point(|(code, _)| code >> bit == codes[0].0 >> bit);
    }
    let bit = (first ^ (first + last)).ilog2();
    ((first + last) >> bit << bit) - first
}

/// Merges nearest clusters until at most `most` are left. `first` is the number of the first of the nodes.
pub(super) fn merged(
    mut clusters: Vec<Cluster>,
    most: usize,
    first: usize,
    nodes: &mut [Binary],
) -> Vec<Cluster> {
    while clusters.len() > most {
        let nearest: Vec<usize> = (0..clusters.len()).map(|i| nearest(&clusters, i)).collect();
        let mut left = Vec::with_capacity(clusters.len());
        for (i, &other) in nearest.iter().enumerate() {
            let is_mutual = nearest[other] == i;
            if is_mutual && other > i {
                left.push(pair(clusters[i], clusters[other], first, nodes));
            } else if !is_mutual {
                left.push(clusters[i]);
            }
        }
        clusters = left;
    }
    clusters
}

/// Returns the cluster whose common box with another one has the least surface, of those near it.
fn nearest(clusters: &[Cluster], i: usize) -> usize {
    let radius = BVH_RADIUS as usize;
    let others = i.saturating_sub(radius)..clusters.len().min(i + radius + 1);
    let distance_to = |other: usize| {
        let area = half_area(clusters[i].bounds.union(clusters[other].bounds));
        (distance(area, i as u32, other as u32), other)
    };
    others.filter(|&other| other != i).map(distance_to).min().map_or(i, |(_, other)| other)
}

/// Makes a node of two clusters.
fn pair(a: Cluster, b: Cluster, first: usize, nodes: &mut [Binary]) -> Cluster {
    let (number, bounds) = (b.number, a.bounds.union(b.bounds));
    let children = [a.subtree, b.subtree];
    nodes[number - first] = Binary { bounds, children, size: 0 };
    let (subtree, shape) = match children.map(Subtree::num_few) {
        [Some(x), Some(y)] if x + y <= Subtree::MOST_FEW => (Subtree::few(number as u32, x + y), Shape::FEW),
        _ => {
            let part =
                |of: Cluster| Part { subtree: of.subtree, shape: of.shape, area: half_area(of.bounds) };
            let (shape, are_parts) = shape(part(a), part(b));
            for (child, is_part) in [a, b].into_iter().zip(are_parts) {
                if child.subtree.is_node() && !is_part {
                    nodes[child.subtree.index() as usize - first].size = child.shape.size();
                }
            }
            (Subtree::node(number as u32), shape)
        }
    };
    Cluster { subtree, shape, number: a.number, bounds }
}
