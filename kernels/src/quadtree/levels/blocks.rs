//! Splits of nodes by blocks: a block splits a whole node.

use super::super::node::Node;
use super::children::{ChildWriter, Parent};
use super::chunk::{Chunk, LevelSmem, min_blocks};
use super::counts::{MAX_CHILDREN, count_child};
use super::points::{LevelPoints, PointTargets};
use crate::policy::QUADTREE_PIECE_POINTS;
use crate::thread::words::{Bits128, computed};
use cuda_std::prelude::*;

/// Splits nodes: sorts their points by child and writes the children. One block per node.
#[kernel(family = "research-quadtree", block = THREADS, min_blocks = min_blocks(D, THREADS), shared = LevelSmem<THREADS>, hot)]
#[instances(D = [2], THREADS = [32, 64, 128, 4, 8, 16, 256, 512])]
#[instances(D = [3], THREADS = [32, 64, 128])]
pub unsafe fn quadtree_level_by_block<const D: usize, const THREADS: usize>(
    codes: Slice<u32>,
    ids: Slice<u32>,
    shift: u32,
    frame: Slice<u64>,
    nodes: SliceMut<Bits128>,
    cells: SliceMut<u32>,
    parents: Slice<u32>,
    splits_from: u32,
    first_node: u32,
    next_codes: SliceMut<u32>,
    next_ids: SliceMut<u32>,
    tree_ids: SliceMut<u32>,
    numbers: SliceMut<u32>,
    flags: SliceMut<u8>,
) {
    let (points, to) = (LevelPoints { codes, ids, shift }, PointTargets { next_codes, next_ids, tree_ids });
    let children = ChildWriter::<D> { frame, nodes, cells, splits_from, first_node, numbers, flags };
    let parent = children.parent(parents, thread::block_idx_x() as usize);
    split_by_block::<D, THREADS>(shared_mem::<LevelSmem<THREADS>>(), &parent, &points, &to, &children);
}

/// Splits a node. All threads call.
#[inline(always)]
unsafe fn split_by_block<const D: usize, const THREADS: usize>(
    smem: *mut LevelSmem<THREADS>,
    parent: &Parent,
    points: &LevelPoints<'_, D>,
    to: &PointTargets<'_>,
    children: &ChildWriter<'_, D>,
) {
    // Takes the smallest chunk that holds the node, so that few threads have no point.
    match parent.node.len() as usize / THREADS {
        0 => split_at_once::<D, THREADS, 1>(smem, parent, points, to, children),
        1 => split_at_once::<D, THREADS, 2>(smem, parent, points, to, children),
        2 | 3 => split_at_once::<D, THREADS, 4>(smem, parent, points, to, children),
        4..QUADTREE_PIECE_POINTS => {
            split_at_once::<D, THREADS, QUADTREE_PIECE_POINTS>(smem, parent, points, to, children);
        }
        _ => split_by_chunks::<D, THREADS>(smem, parent, points, to, children),
    }
    if thread::thread_idx_x() == 0 {
        children.write_parent(parent);
    }
}

/// Splits a node of fewer points than a chunk with `ITEMS` points per thread. All threads call.
#[inline(always)]
unsafe fn split_at_once<const D: usize, const THREADS: usize, const ITEMS: usize>(
    smem: *mut LevelSmem<THREADS>,
    parent: &Parent,
    points: &LevelPoints<'_, D>,
    to: &PointTargets<'_>,
    children: &ChildWriter<'_, D>,
) {
    let Node { start, .. } = parent.node;
    let chunk = Chunk::<D, THREADS, ITEMS>::load::<false>(smem, points, start as usize, parent.node.len());
    let (begins, mut splits, mut child) = (chunk.total.begins(), 0, 0);
    while child < 1 << D {
        splits |= u32::from(chunk.total.get(child) >= children.splits_from) << child;
        child += 1;
    }
    chunk.sort::<false>();
    chunk.store::<false>(splits, to, |_| start);
    let mut child = thread::thread_idx_x();
    while child < 1 << D {
        let begin = start + begins.get(child);
        children.write(parent, child as usize, begin, begin + chunk.total.get(child));
        child += THREADS as u32;
    }
}

/// Splits a node of any number of points: counts all of them, then moves one chunk after another. All threads call.
#[inline(always)]
unsafe fn split_by_chunks<const D: usize, const THREADS: usize>(
    smem: *mut LevelSmem<THREADS>,
    parent: &Parent,
    points: &LevelPoints<'_, D>,
    to: &PointTargets<'_>,
    children: &ChildWriter<'_, D>,
) {
    let (begins, next) = (shared_field!(smem, begins), shared_field!(smem, next));
    let (rows, bases) = (shared_field!(smem, points), shared_field!(smem, bases));
    let (node, thread) = (parent.node, thread::thread_idx_x() as usize);
    let (mut at, end) = (node.start as usize, node.end as usize);
    count::<D, THREADS>(smem, points, at, end);
    if thread == 0 {
        let (mut begin, mut child) = (node.start, 0);
        while child < 1 << D {
            begins.store(child, begin);
            next.store(child, begin);
            begin += rows.load(child * THREADS) as u32;
            child += 1;
        }
    }
    thread::sync_threads();
    let (mut splits, mut child) = (0, 0);
    while child < 1 << D {
        let len = end_of::<D>(begins, child, node.end) - begins.load(child);
        splits |= u32::from(len >= children.splits_from) << child;
        child += 1;
    }
    let max_points = Chunk::<D, THREADS, QUADTREE_PIECE_POINTS>::MAX_POINTS;
    while at < end {
        let len = if end - at < max_points { end - at } else { max_points };
        let chunk = Chunk::<D, THREADS, QUADTREE_PIECE_POINTS>::load::<false>(smem, points, at, len as u32);
        let mut child = thread;
        while child < 1 << D {
            let (begin, number) = (next.load(child), child as u32);
            bases.store(child, begin.wrapping_sub(chunk.total.begins().get(number)));
            next.store(child, begin + chunk.total.get(number));
            child += THREADS;
        }
        chunk.sort::<false>();
        // No barrier: in the next chunk each thread overwrites the entries that it has read here.
        chunk.store::<false>(splits, to, |child| bases.load(child));
        at += len;
    }
    let mut child = thread;
    while child < 1 << D {
        children.write(parent, child, begins.load(child), end_of::<D>(begins, child, node.end));
        child += THREADS;
    }
}

/// Returns the end of a child's points; the last child ends where its parent does.
#[inline(always)]
unsafe fn end_of<const D: usize>(begins: SharedSlice<'_, u32>, child: usize, end: u32) -> u32 {
    if child + 1 < 1 << D { begins.load(child + 1) } else { end }
}

/// Counts the points `begin..end` by child. The count of a child is the first number of its row of `points`. All threads call.
#[inline(always)]
unsafe fn count<const D: usize, const THREADS: usize>(
    smem: *mut LevelSmem<THREADS>,
    points: &LevelPoints<'_, D>,
    begin: usize,
    end: usize,
) {
    let (rows, thread) = (shared_field!(smem, points), thread::thread_idx_x() as usize);
    let (mut counts, mut i) = ([0; MAX_CHILDREN], begin + thread);
    while i < end {
        count_child(&mut counts, points, points.codes.load(i));
        i += THREADS;
    }
    let mut child = 0;
    while child < 1 << D {
        rows.store(child * THREADS + thread, counts[child].into());
        child += 1;
    }
    thread::sync_threads();
    // Tree reduction.
    let mut half = THREADS as u32 / 2;
    while half > 0 {
        if thread < half as usize {
            let mut child = 0;
            while child < 1 << D {
                let at = child * THREADS + thread;
                rows.store(at, rows.load(at) + rows.load(at + half as usize));
                child += 1;
            }
        }
        thread::sync_threads();
        half = computed(half / 2);
    }
}
