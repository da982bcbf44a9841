//! The points of a balanced tree in in-order sequence, in buckets, for queries.

use super::{Run, Tree};
use crate::policy::{BUCKET_LEVELS, PER_ITEM_THREADS};
use crate::query::buckets::{BucketLayout, NO_POINT};
use crate::query::left_balanced::{full_tree, num_levels};
use crate::thread::coord::Float;
use cuda_std::prelude::*;

/// Returns the capacity of a bucket of a tree of `num_nodes` nodes: the points of the longest subtree, and the point that follows it.
pub const fn bucket_len(num_nodes: u32) -> u32 {
    let levels = num_levels(num_nodes).saturating_sub(BUCKET_LEVELS);
    (num_nodes as u64 + 1).div_ceil(1 << levels) as u32
}

/// Returns the number of slots of all buckets.
pub const fn num_slots(num_nodes: u32) -> u64 {
    (bucket_len(num_nodes) as u64) << num_levels(num_nodes).saturating_sub(BUCKET_LEVELS)
}

/// Returns the index in the medians of the node at an in-order position of a tree of `num_nodes` nodes.
#[inline(always)]
fn median_slot(position: u32, num_nodes: u32) -> usize {
    let (mut run, mut level, mut address) = (Run::of(0, 0, num_nodes), 0, 0);
    while position != run.median() {
        let is_greater = position > run.median();
        run = if is_greater { run.greater() } else { run.less() };
        address = 2 * address + is_greater as u32;
        level += 1;
    }
    (full_tree(level) + address) as usize
}

/// Writes the points of a tree and their ids to buckets of [`bucket_len`] slots. A bucket holds the points of its subtree, then empty
/// slots, then, in its last slot, the point that follows the subtree. The columns of the tree's coordinates are the axes from `first_axis`
/// on, cyclically. `point_ids` are the ids of the points; if it is empty, point `i` has id `i`. One thread per slot.
#[kernel(family = "balanced", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64])]
pub unsafe fn balanced_put_in_order<C: Float>(
    tree: Tree<'_, C>,
    first_axis: u32,
    point_ids: Slice<u32>,
    bucket_len: u32,
    to: SliceMut<C>,
    ids: SliceMut<u32>,
) {
    let Tree { coords, dims, medians, num_nodes } = tree;
    let i = thread::index_1d_u64();
    if i >= ids.len() as u64 {
        return;
    }
    let i = i as u32;
    let (bucket, offset) = (i / bucket_len, i % bucket_len);
    let run = Run::of(bucket, BucketLayout::equal(ids.len() as u32, bucket_len).levels, num_nodes);
    let follows = run.begin + run.len;
    let position = if offset < run.len {
        run.begin + offset
    } else if offset == bucket_len - 1 {
        follows
    } else {
        num_nodes
    };
    let has_point = position < num_nodes;
    let mut point = 0;
    if has_point {
        point = medians.load(median_slot(position, num_nodes)) as usize;
    }
    for axis in 0..dims {
        let coord = if has_point { coords.load(point * dims as usize + axis as usize) } else { C::NAN };
        let to_axis = if axis + first_axis < dims { axis + first_axis } else { axis + first_axis - dims };
        to.store(i as usize * dims as usize + to_axis as usize, coord);
    }
    let id = if !has_point {
        NO_POINT
    } else if point_ids.is_empty() {
        point as u32
    } else {
        point_ids.load(point)
    };
    ids.store(i as usize, id);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subtrees_and_what_follows_fill_their_buckets() {
        for num_nodes in (1..3000).chain([(1 << 24) - 1, 1 << 24, (1 << 24) + 12_345]) {
            let (len, slots) = (bucket_len(num_nodes), num_slots(num_nodes));
            let levels = BucketLayout::equal(slots as u32, len).levels;
            assert_eq!(levels, num_levels(num_nodes).saturating_sub(BUCKET_LEVELS));
            assert!(len <= 1 << BUCKET_LEVELS, "{num_nodes}");
            let num_buckets = 1_u32 << levels;
            for bucket in (0..num_buckets).step_by((num_buckets / 512).max(1) as usize) {
                let run = Run::of(bucket, levels, num_nodes);
                assert!((len - 2..len).contains(&run.len), "bucket {bucket} of {num_nodes}");
            }
        }
    }
}
