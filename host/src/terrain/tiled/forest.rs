//! All points of a cloud, of which the blocks that searches need are in memory.

use super::store::StoredPoints;
use crate::error::{Error, Result};
use crate::once::Once;
use crate::terrain::cpu::{CpuPoints, CpuTree, around};
use kauri_kernels::terrain::known::Known;
use kauri_kernels::terrain::order::Frame;
use kauri_kernels::terrain::tree::{Alone, Corners, Points, Search};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The trees of blocks, below a tree of the blocks' bounding boxes.
pub(super) struct Forest<'a> {
    points: &'a StoredPoints,
    frame: Frame,
    is_distinct: bool,
    /// The boxes of a complete binary tree over the blocks, the root at index 1; `None` without blocks.
    boxes: Vec<Option<Corners>>,
    /// The trees of the blocks that have been needed.
    trees: Vec<Once<CpuTree>>,
    /// The number of points in them.
    num_loaded: AtomicUsize,
    /// The first error of a block, whose points were left out. After it searches find nothing, so that they end.
    error: OnceLock<Error>,
}

impl<'a> Forest<'a> {
    /// Creates a forest without trees.
    pub(super) fn new(points: &'a StoredPoints, frame: Frame, is_distinct: bool) -> Self {
        let num_leaves = points.blocks.len().next_power_of_two();
        let mut boxes = vec![None; 2 * num_leaves];
        for (block, to) in points.blocks.iter().zip(&mut boxes[num_leaves..]) {
            *to = Some(block.corners.map(|corner| frame.position(corner)));
        }
        for node in (1..num_leaves).rev() {
            let children = [boxes[2 * node], boxes[2 * node + 1]];
            boxes[node] = children[0].is_some().then(|| around(children.into_iter().flatten()));
        }
        let trees = points.blocks.iter().map(|_| Once::new()).collect();
        Self {
            points,
            frame,
            is_distinct,
            boxes,
            trees,
            num_loaded: AtomicUsize::new(0),
            error: OnceLock::new(),
        }
    }

    /// Returns the number of points in memory, or the first error of the searches so far.
    pub(super) fn num_loaded(&mut self) -> Result<usize> {
        self.error.take().map_or(Ok(*self.num_loaded.get_mut()), Err)
    }

    /// Returns the tree of a block; `None` after an error.
    fn tree(&self, block: usize) -> Option<&CpuTree> {
        let read = || {
            self.num_loaded.fetch_add(self.points.blocks[block].len as usize, Ordering::Relaxed);
            CpuPoints::new(&self.points.read_block(block)?, self.frame)?.tree(self.is_distinct)
        };
        match self.trees[block].get_or_try_init(read) {
            Ok(tree) => Some(tree),
            Err(error) => {
                let _ = self.error.set(error);
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
        let mut children = [2 * node, 2 * node + 1].map(|child| (child, self.boxes[child]));
        if let [Some(first), Some(second)] = children.map(|(_, corners)| corners)
            && search.key(second) < search.key(first)
        {
            children.swap(0, 1);
        }
        for (child, corners) in children {
            // The keys of a search for a third corner depend on the points that it has visited.
            if corners.is_some_and(|corners| search.key(corners) <= search.bound()) {
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
        if self.error.get().is_some() {
            return;
        }
        let is_within = self.boxes[1].is_some_and(|corners| search.key(corners) <= search.bound());
        if is_within {
            // SAFETY: passed on to the caller.
            unsafe { self.search_node(1, search) };
        }
    }

    fn known(&self) -> &Known {
        &Known::ALL
    }
}

#[cfg(test)]
mod tests {
    use super::super::store::{AllPoints, PointStore};
    use super::*;
    use crate::random::Random;
    use crate::terrain::backend::{Backend, CellMethod};
    use crate::terrain::cpu::write_values;
    use kauri_kernels::terrain::cells::Cells;

    /// At each position, also between two clusters of points and outside of all.
    #[test]
    fn a_forest_is_the_tree_of_all_points() {
        let mut random = Random::of(5, 0);
        let mut point = |low: i32, side: u64| [(); 3].map(|()| low + random.below(side) as i32);
        let points: Vec<[i32; 3]> =
            (0..4000).map(|i| if i % 2 == 0 { point(0, 900) } else { point(3000, 2000) }).collect();
        let mut store = PointStore::new(u64::MAX, 0, std::path::Path::new(""));
        store.append(&points).unwrap();
        let AllPoints::Blocks(stored) = store.finish().unwrap() else { panic!("points without blocks") };
        assert!(stored.blocks.len() > 20, "{}", stored.blocks.len());
        let frame = Frame { low_x: -1000, low_y: -1000, steps: 2 };
        let whole = CpuPoints::new(&points, frame).unwrap();
        let cells = Cells {
            x: 1500.0,
            y: 13_500.0,
            step: 200.0,
            first_column: 0,
            first_row: 0,
            columns: 60,
            rows: 60,
            height_offset: 0.0,
            height_scale: 1.0,
        };
        for method in [
            CellMethod::Tin { max_edge2: i64::MAX },
            CellMethod::NaturalNeighbor,
            CellMethod::WeightedNearest { k: 5, radius2: i64::MAX, power: 2 },
            CellMethod::WeightedDisk { radius2: 100_000, power: 1 },
        ] {
            let forest = Forest::new(&stored, frame, method.is_of_distinct_positions());
            let mut values = vec![0.0; cells.len()];
            // SAFETY: slots are those of the forest.
            unsafe { write_values(&&forest, &cells, &method, |i| i, &mut values) };
            let expected = whole.raster(&cells, &method).unwrap();
            let differing = values.iter().zip(&expected).filter(|(a, b)| a.to_bits() != b.to_bits());
            assert_eq!(differing.count(), 0, "{method:?}");
        }
    }
}
