//! Splits of nodes by blocks: a block splits a whole node.

use super::super::node::Node;
use super::children::{LevelSplit, Parent};
use super::chunk::{Chunk, LevelSmem, min_blocks};
use super::counts::{MAX_CHILDREN, count_child};
use crate::policy::QUADTREE_PIECE_POINTS;
use crate::thread::items::strided;
use crate::thread::words::computed;
use cuda_std::prelude::*;

/// Splits nodes: sorts their points by child and writes the children. One block per node.
#[kernel(family = "research-quadtree", block = THREADS, min_blocks = min_blocks(D, THREADS), shared = LevelSmem<THREADS>, hot)]
#[instances(D = [2], THREADS = [32, 64, 128, 4, 8, 16, 256, 512])]
#[instances(D = [3], THREADS = [32, 64, 128])]
pub unsafe fn quadtree_level_by_block<const D: usize, const THREADS: usize>(level: LevelSplit<'_>) {
    let parent = level.children.parent(thread::block_idx_x() as usize);
    BlockSplit::<D, THREADS> { smem: shared_mem(), parent, level }.run();
}

/// The split of a node by a block.
struct BlockSplit<'a, const D: usize, const THREADS: usize> {
    smem: *mut LevelSmem<THREADS>,
    parent: Parent,
    level: LevelSplit<'a>,
}

impl<const D: usize, const THREADS: usize> BlockSplit<'_, D, THREADS> {
    /// Splits the node. All threads call.
    #[inline(always)]
    unsafe fn run(&self) {
        // Takes the smallest chunk that holds the node, so that few threads have no point.
        match self.parent.node.len() as usize / THREADS {
            0 => self.split_at_once::<1>(),
            1 => self.split_at_once::<2>(),
            2 | 3 => self.split_at_once::<4>(),
            4..QUADTREE_PIECE_POINTS => self.split_at_once::<QUADTREE_PIECE_POINTS>(),
            _ => self.split_by_chunks(),
        }
        if thread::thread_idx_x() == 0 {
            self.level.children.write_parent::<D>(&self.parent);
        }
    }

    /// Splits a node of fewer points than a chunk with `ITEMS` points per thread. All threads call.
    #[inline(always)]
    unsafe fn split_at_once<const ITEMS: usize>(&self) {
        let Node { start, .. } = self.parent.node;
        let len = self.parent.node.len();
        let chunk =
            Chunk::<D, THREADS, ITEMS>::load::<false>(self.smem, self.level.points, start as usize, len);
        let begins = chunk.total.begins();
        let splits = self.splits(|child| chunk.total.get(child as u32));
        chunk.sort::<false>();
        chunk.store::<false>(splits, self.level.to, |_| start);
        for child in strided(thread::thread_idx_x(), 1 << D, THREADS as u32) {
            let begin = start + begins.get(child);
            self.level.children.write::<D>(
                &self.parent,
                child as usize,
                begin,
                begin + chunk.total.get(child),
            );
        }
    }

    /// Splits a node of any number of points: counts all of them, then moves one chunk after another. All threads call.
    #[inline(always)]
    unsafe fn split_by_chunks(&self) {
        let (begins, next) = (shared_field!(self.smem, begins), shared_field!(self.smem, next));
        let (rows, bases) = (shared_field!(self.smem, points), shared_field!(self.smem, bases));
        let (node, thread) = (self.parent.node, thread::thread_idx_x() as usize);
        let (mut at, end) = (node.start as usize, node.end as usize);
        self.count();
        if thread == 0 {
            let mut begin = node.start;
            for child in 0..1 << D {
                begins.store(child, begin);
                next.store(child, begin);
                begin += rows.load(child * THREADS) as u32;
            }
        }
        thread::sync_threads();
        // The last child ends where its parent does.
        let end_of = |child: usize| if child + 1 < 1 << D { begins.load(child + 1) } else { node.end };
        let splits = self.splits(|child| end_of(child) - begins.load(child));
        let max_points = Chunk::<D, THREADS, QUADTREE_PIECE_POINTS>::MAX_POINTS;
        while at < end {
            let len = if end - at < max_points { end - at } else { max_points };
            let chunk = Chunk::<D, THREADS, QUADTREE_PIECE_POINTS>::load::<false>(
                self.smem,
                self.level.points,
                at,
                len as u32,
            );
            for child in strided(thread, 1 << D, THREADS) {
                let (begin, number) = (next.load(child), child as u32);
                bases.store(child, begin.wrapping_sub(chunk.total.begins().get(number)));
                next.store(child, begin + chunk.total.get(number));
            }
            chunk.sort::<false>();
            // No barrier: in the next chunk each thread overwrites the entries that it has read here.
            chunk.store::<false>(splits, self.level.to, |child| bases.load(child));
            at += len;
        }
        for child in strided(thread, 1 << D, THREADS) {
            self.level.children.write::<D>(&self.parent, child, begins.load(child), end_of(child));
        }
    }

    /// Returns a bit for each child that splits, given the numbers of points of the children.
    #[inline(always)]
    unsafe fn splits(&self, len: impl Fn(usize) -> u32) -> u32 {
        let mut splits = 0;
        for child in 0..1 << D {
            splits |= u32::from(len(child) >= self.level.children.splits_from) << child;
        }
        splits
    }

    /// Counts the points of the node by child. The count of a child is the first number of its row of `points`. All threads call.
    #[inline(always)]
    unsafe fn count(&self) {
        let (rows, thread) = (shared_field!(self.smem, points), thread::thread_idx_x() as usize);
        let (mut counts, mut i) = ([0; MAX_CHILDREN], self.parent.node.start as usize + thread);
        while i < self.parent.node.end as usize {
            count_child::<D>(&mut counts, self.level.points, self.level.points.codes.load(i));
            i += THREADS;
        }
        for child in 0..1 << D {
            rows.store(child * THREADS + thread, counts[child].into());
        }
        thread::sync_threads();
        // Tree reduction.
        let mut half = THREADS as u32 / 2;
        while half > 0 {
            if thread < half as usize {
                for child in 0..1 << D {
                    let at = child * THREADS + thread;
                    rows.store(at, rows.load(at) + rows.load(at + half as usize));
                }
            }
            thread::sync_threads();
            half = computed(half / 2);
        }
    }
}
