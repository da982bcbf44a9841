//! Where the points of a left-balanced tree are in the memory of a [`CpuIndex`](crate::query::cpu::CpuIndex): the top nodes in level order,
//! then the subtrees below them. Such a subtree is a *bucket*: its points are in in-order sequence, so that a query scans them without
//! pruning.

use kauri_kernels::query::left_balanced::{full_tree, in_order_rank, level, num_levels};
use std::ops::Range;

/// Number of levels of the largest buckets, which have up to 31 points.
const BUCKET_LEVELS: u32 = 5;

/// The top nodes and the buckets of a tree over some points. A slot is the position of a point among all.
#[derive(Clone, Copy)]
pub(crate) struct Buckets {
    num_points: usize,
    top_levels: u32,
    bucket_levels: u32,
    /// Number of nodes on the last level of the tree.
    last_level: usize,
}

impl Buckets {
    pub(crate) fn new(num_points: usize) -> Self {
        let num_levels = num_levels(num_points as u32);
        let bucket_levels = num_levels.clamp(1, BUCKET_LEVELS);
        let above_last = full_tree(num_levels.saturating_sub(1)) as usize;
        let top_levels = num_levels.saturating_sub(bucket_levels);
        Self { num_points, top_levels, bucket_levels, last_level: num_points - above_last }
    }

    pub(crate) fn num_points(&self) -> usize {
        self.num_points
    }

    /// Number of nodes above the buckets, which is also the first node that is the root of a bucket.
    #[inline(always)]
    pub(crate) fn num_top(&self) -> usize {
        full_tree(self.top_levels) as usize
    }

    /// Number of subtrees that have a box: all but the buckets, unless the whole tree is one.
    pub(crate) fn num_boxes(&self) -> usize {
        self.num_top().max(1)
    }

    /// Number of levels above the buckets.
    pub(crate) fn top_levels(&self) -> u32 {
        self.top_levels
    }

    /// Number of buckets.
    pub(crate) fn num(&self) -> usize {
        1 << self.top_levels
    }

    /// Returns the slots of a bucket.
    #[inline(always)]
    pub(crate) fn slots(&self, bucket: usize) -> Range<usize> {
        let width = 1 << (self.bucket_levels - 1);
        let start =
            |bucket: usize| self.num_top() + bucket * (width - 1) + (bucket * width).min(self.last_level);
        start(bucket)..start(bucket + 1)
    }

    /// Iterates over the nodes of a bucket in in-order sequence, each with its rank in that sequence of the whole tree.
    pub(crate) fn nodes(&self, bucket: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let Self { num_points, bucket_levels, .. } = *self;
        let root = self.num_top() + bucket;
        // Position i = 2^z (2j + 1) of a full tree, from 1, is node j of the level z above the last.
        let node = move |i: usize| {
            let z = i.trailing_zeros();
            ((root + 1) << (bucket_levels - 1 - z)) - 1 + (i >> (z + 1))
        };
        let nodes = (1..1 << bucket_levels).map(node).filter(move |&node| node < num_points);
        // One top node comes after each bucket.
        let first_rank = self.slots(bucket).start - self.num_top() + bucket;
        nodes.zip(first_rank..)
    }

    /// Returns the bucket of a slot behind the top nodes, and the slot, of a node; for a top node its number.
    pub(crate) fn find(&self, node: usize) -> (Option<usize>, usize) {
        if node < self.num_top() {
            return (None, node);
        }
        let depth = level(node as u32) - self.top_levels;
        let bucket = ((node + 1) >> depth) - 1 - self.num_top();
        let rank = in_order_rank(node as u32, self.num_points as u32) as usize;
        (Some(bucket), self.num_top() + rank - bucket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_has_a_slot() {
        for n in (0..300).chain([1000, 4095, 4096, 4097, 100_000]) {
            let buckets = Buckets::new(n);
            let mut node_of_slot = vec![None; n];
            (0..buckets.num_top()).for_each(|node| node_of_slot[node] = Some(node));
            for bucket in 0..buckets.num() {
                let slots = buckets.slots(bucket);
                assert!(slots.len() < 1 << BUCKET_LEVELS && (buckets.num() == 1 || slots.len() >= 15));
                assert_eq!(buckets.nodes(bucket).count(), slots.len());
                for (slot, (node, rank)) in slots.zip(buckets.nodes(bucket)) {
                    assert_eq!(rank, in_order_rank(node as u32, n as u32) as usize);
                    assert_eq!(buckets.find(node), (Some(bucket), slot));
                    assert_eq!(node_of_slot[slot].replace(node), None);
                }
            }
            assert!(node_of_slot.iter().all(Option::is_some));
        }
    }
}
