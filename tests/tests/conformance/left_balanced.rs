//! The index rules of left-balanced trees against their definition.

use cuda_std::mem::Slice;
use kauri_kernels::policy::BUCKET_LEVELS;
use kauri_kernels::query::buckets::{
    BucketLayout, BucketPoints, GAPS, slots_with_gaps, {self},
};
use kauri_kernels::query::left_balanced::{
    full_tree, in_order_begin, in_order_rank, left_size, level, num_levels, parent, pivot, subtree_begin,
    subtree_size,
};
use kauri_tests::generate::Random;
use kauri_tests::oracle;

#[test]
fn every_node_of_every_small_tree() {
    for n in 1..=2000u32 {
        // Sizes from the leaves up, then the runs of every level from left to right.
        let mut sizes = vec![0; 2 * n as usize + 2];
        for s in (0..n as usize).rev() {
            sizes[s] = 1 + sizes[2 * s + 1] + sizes[2 * s + 2];
        }
        let (mut begin, mut depth) = (0, 0);
        for s in 0..n {
            if s == (1 << (depth + 1)) - 1 {
                depth += 1;
                begin = s;
            }
            let (size, left) = (sizes[s as usize], sizes[2 * s as usize + 1]);
            assert_eq!(level(s), depth, "level({s})");
            assert_eq!(subtree_size(s, n), size, "size of {s} in {n}");
            assert_eq!(subtree_begin(s, n), begin, "begin of {s} in {n}");
            assert_eq!(pivot(s, n), begin + left, "pivot of {s} in {n}");
            assert_eq!(left_size(s, n), left, "nodes left of {s} in {n}");
            // A left child begins where its parent's subtree begins, a right child after its parent.
            let first = match s {
                0 => 0,
                s if s % 2 == 1 => in_order_begin(parent(s), n),
                s => in_order_begin(parent(s), n) + sizes[s as usize - 1] + 1,
            };
            assert_eq!(in_order_begin(s, n), first, "begin in order of {s} in {n}");
            assert_eq!(in_order_rank(s, n), first + left, "rank in order of {s} in {n}");
            assert!(s == 0 || s == 2 * parent(s) + 1 || s == 2 * parent(s) + 2);
            begin += size;
        }
        assert_eq!(num_levels(n), depth + 1, "levels of {n}");
        assert_eq!((subtree_size(n, n), subtree_size(2 * n + 2, n)), (0, 0));
    }
    assert_eq!((num_levels(0), subtree_size(0, 0), full_tree(0), full_tree(32)), (0, 0, 0, u32::MAX));
}

#[test]
fn buckets_are_subtrees_and_the_nodes_that_follow() {
    for n in (1..=2000u32).chain([u32::MAX - 1, u32::MAX - 2, 1 << 31, (1 << 31) - 1, 1 << 30]) {
        let levels = buckets::levels(n);
        let num_buckets = 1 << levels;
        let layout = BucketLayout::left_balanced(n);
        let run_begin = |i, level| layout.begin(i, level);
        let step = (num_buckets / 512).max(1) as usize;
        for bucket in (0..num_buckets).step_by(step) {
            let node = full_tree(levels) + bucket;
            assert_eq!(run_begin(bucket, levels), in_order_begin(node, n), "bucket {bucket} of {n}");
            let len = run_begin(bucket + 1, levels) - run_begin(bucket, levels);
            let follows = u32::from(bucket + 1 < num_buckets);
            assert_eq!(len, subtree_size(node, n) + follows, "bucket {bucket} of {n}");
            assert!((1..=1 << BUCKET_LEVELS).contains(&len));
        }
        // Every point of a tree is in its bucket.
        if n <= 2000 {
            // SAFETY: nothing is read.
            let (coords, ids) = unsafe {
                let no_coords: *const f32 = std::ptr::dangling();
                (Slice::from_raw_parts(no_coords, 0), Slice::from_raw_parts(std::ptr::dangling(), n as usize))
            };
            let tree = BucketPoints::new(coords, ids, 1, 0);
            for bucket in 0..num_buckets {
                let points = run_begin(bucket, levels)..run_begin(bucket + 1, levels);
                assert!(points.into_iter().all(|i| tree.bucket_of(i) == bucket), "bucket {bucket} of {n}");
            }
            for k in 1..=n.min(300) {
                let level = tree.lowest_level_with(k, levels);
                assert!(level == 0 || run_begin(1, level) >= k.min(1 << BUCKET_LEVELS >> 1), "{k} of {n}");
                let smallest = (0..1 << level).map(|i| run_begin(i + 1, level) - run_begin(i, level)).min();
                assert!(level == 0 || smallest.unwrap() + 1 >= k, "{k} of {n}: {smallest:?}");
            }
        }
        assert_eq!(run_begin(num_buckets, levels), n);
        // With gaps, a bucket has half as many slots more.
        let Ok(num_slots) = u32::try_from(slots_with_gaps(n)) else { continue };
        let with_gaps = BucketLayout::new(num_slots, GAPS);
        assert_eq!((with_gaps.levels, with_gaps.num_points), (levels, n));
        for bucket in (0..=num_buckets).step_by(step) {
            let begin = run_begin(bucket, levels);
            assert_eq!(with_gaps.begin(bucket, levels), begin + begin / 2, "bucket {bucket} of {n}");
        }
    }
}

#[test]
fn random_nodes_of_large_trees() {
    let mut random = Random::new(1);
    let extremes = [u32::MAX, u32::MAX - 1, 1 << 31, (1 << 31) - 1, (1 << 31) + 1];
    let mut nodes = 0;
    while nodes < 100_000 {
        let n = match extremes.get(nodes) {
            Some(&n) => n,
            None => (random.bits() as u32 >> random.below(31)).max(1),
        };
        // Descends from the root in 64 bits: the node, its size, and the number of nodes in subtrees to its left on its level.
        let (mut s, mut size, mut to_the_left, mut depth) = (0u64, u64::from(n), 0, 0);
        loop {
            let first_of_level = (1u64 << depth) - 1;
            let left = oracle::left_size(size);
            let begin = first_of_level + to_the_left;
            let node = s as u32;
            assert_eq!(level(node), depth, "level({s})");
            assert_eq!(u64::from(subtree_size(node, n)), size, "size of {s} in {n}");
            assert_eq!(u64::from(subtree_begin(node, n)), begin, "begin of {s} in {n}");
            assert_eq!(u64::from(pivot(node, n)), begin + left, "pivot of {s} in {n}");
            assert_eq!(u64::from(left_size(node, n)), left, "nodes left of {s} in {n}");
            // One node of a level above is between two adjacent subtrees.
            let in_order = to_the_left + (s - first_of_level);
            assert_eq!(u64::from(in_order_begin(node, n)), in_order, "begin in order of {s} in {n}");
            assert_eq!(u64::from(in_order_rank(node, n)), in_order + left, "rank in order of {s} in {n}");
            nodes += 1;
            let right = size - 1 - left;
            let goes_right = random.below(2) == 1;
            if (if goes_right { right } else { left }) == 0 {
                break;
            }
            // On the next level, the subtrees to the left no longer include their roots.
            to_the_left -= s - first_of_level;
            (s, size) = if goes_right { (2 * s + 2, right) } else { (2 * s + 1, left) };
            to_the_left += if goes_right { left } else { 0 };
            depth += 1;
        }
    }
}
