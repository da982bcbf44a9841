//! All points of a cloud, of which the blocks that searches need are in memory.

use super::store::StoredPoints;
use crate::error::{Error, Result};
use crate::terrain::cpu::{CpuPoints, CpuTree, around};
use kauri_kernels::terrain::order::Frame;
use kauri_kernels::terrain::tree::{Alone, Corners, Points, Search};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// The trees of blocks, below a tree of the blocks' bounding boxes.
pub(super) struct Forest<'a> {
    points: &'a StoredPoints,
    frame: Frame,
    is_distinct: bool,
    /// The boxes of a complete binary tree over the blocks, the root at index 1; `None` without blocks.
    boxes: Vec<Option<Corners>>,
    /// The trees in memory, and the number of their points.
    loaded: RwLock<(HashMap<usize, Arc<CpuTree>>, usize)>,
    max_points: usize,
    /// The first error of a block, whose points were left out.
    error: Mutex<Option<Error>>,
    /// After an error searches find nothing, so that they end.
    has_failed: AtomicBool,
}

impl<'a> Forest<'a> {
    /// Creates a forest that keeps up to about `max_points` points in memory.
    pub(super) fn new(points: &'a StoredPoints, frame: Frame, is_distinct: bool, max_points: usize) -> Self {
        let num_leaves = points.blocks.len().next_power_of_two();
        let mut boxes = vec![None; 2 * num_leaves];
        for (block, to) in points.blocks.iter().zip(&mut boxes[num_leaves..]) {
            *to = Some(block.corners.map(|corner| frame.position(corner)));
        }
        for node in (1..num_leaves).rev() {
            let children = [boxes[2 * node], boxes[2 * node + 1]];
            boxes[node] = children[0].is_some().then(|| around(children.into_iter().flatten()));
        }
        let loaded = RwLock::new((HashMap::new(), 0));
        Self {
            points,
            frame,
            is_distinct,
            boxes,
            loaded,
            max_points,
            error: Mutex::new(None),
            has_failed: AtomicBool::new(false),
        }
    }

    /// Returns the first error of the searches so far.
    pub(super) fn check(&self) -> Result<()> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }

    /// Returns the tree of a block; `None` after an error, which [`check`](Self::check) returns.
    fn tree(&self, block: usize) -> Option<Arc<CpuTree>> {
        let loaded = self.loaded.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(tree) = loaded.0.get(&block) {
            return Some(tree.clone());
        }
        drop(loaded);
        let read = || CpuPoints::new(&self.points.read_block(block)?, self.frame)?.tree(self.is_distinct);
        match read() {
            Ok(tree) => {
                let tree = Arc::new(tree);
                let len = self.points.blocks[block].len as usize;
                let mut loaded = self.loaded.write().unwrap_or_else(PoisonError::into_inner);
                if loaded.1 + len > self.max_points {
                    *loaded = (HashMap::new(), 0);
                }
                if loaded.0.insert(block, tree.clone()).is_none() {
                    loaded.1 += len;
                }
                Some(tree)
            }
            Err(error) => {
                self.has_failed.store(true, Ordering::Relaxed);
                self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                None
            }
        }
    }

    /// Returns the block of a slot, and the slot in the block.
    fn block_of(&self, slot: u32) -> (usize, u32) {
        let blocks = &self.points.blocks;
        let block = blocks.partition_point(|block| block.begin <= slot) - 1;
        (block, slot - blocks[block].begin)
    }

    /// Searches the subtree of a node whose box is within the bound.
    unsafe fn search_node<S: Search>(&self, node: usize, search: &mut S) {
        let num_leaves = self.boxes.len() / 2;
        if node >= num_leaves {
            let block = node - num_leaves;
            if let Some(tree) = self.tree(block) {
                let begin = self.points.blocks[block].begin;
                // SAFETY: the search starts at the root.
                unsafe { tree.view().search(None, &mut InBlock { search, begin }) };
            }
            return;
        }
        let mut children =
            [2 * node, 2 * node + 1].map(|child| (child, self.boxes[child].map(|b| search.key(b))));
        if children[1].1 < children[0].1 && children[1].1.is_some() {
            children.swap(0, 1);
        }
        for (child, key) in children {
            if key.is_some_and(|key| key <= search.bound()) {
                // SAFETY: passed on to the caller.
                unsafe { self.search_node(child, search) };
            }
        }
    }
}

/// A search in the tree of a block, with slots of the forest.
struct InBlock<'s, S> {
    search: &'s mut S,
    begin: u32,
}

impl<S: Search> Search for InBlock<'_, S> {
    type Key = S::Key;

    fn bound(&self) -> S::Key {
        self.search.bound()
    }

    fn key(&self, corners: Corners) -> S::Key {
        self.search.key(corners)
    }

    fn visit(&mut self, slot: u32, position: [i32; 2]) {
        self.search.visit(self.begin + slot, position);
    }
}

impl Points for &Forest<'_> {
    type Lanes = Alone;

    unsafe fn position(&self, slot: u32) -> [i32; 2] {
        let (block, slot) = self.block_of(slot);
        // SAFETY: passed on to the caller.
        self.tree(block).map_or([0; 2], |tree| unsafe { Points::position(&tree.view(), slot) })
    }

    unsafe fn height(&self, slot: u32) -> i32 {
        let (block, slot) = self.block_of(slot);
        // SAFETY: passed on to the caller.
        self.tree(block).map_or(0, |tree| unsafe { tree.view().height(slot) })
    }

    unsafe fn search<S: Search>(&self, _: Option<u32>, search: &mut S) {
        if self.has_failed.load(Ordering::Relaxed) {
            return;
        }
        let is_within = self.boxes[1].is_some_and(|corners| search.key(corners) <= search.bound());
        if is_within {
            // SAFETY: passed on to the caller.
            unsafe { self.search_node(1, search) };
        }
    }

    fn covers(&self, _: [[f64; 2]; 2]) -> bool {
        true
    }
}
