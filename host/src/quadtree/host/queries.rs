//! Cell queries of a tree in host memory, on all threads.

use crate::error::Result;
use crate::memory;
use crate::parallel::{self, TASK_ITEMS};
use crate::quadtree::host::HostTree;
use crate::query::within::offsets_of;
use crate::rows::Rows;
use kauri_kernels::quadtree::frame::Frame;
use kauri_kernels::quadtree::queries::NO_NODE;
use kauri_kernels::thread::coord::Coord;

impl<C: Coord> HostTree<C> {
    /// Returns the leaf of each query.
    pub(super) fn leaf_of<const D: usize>(&self, queries: &[[C; D]]) -> Result<Vec<u32>> {
        let frame = self.outline.frame::<D>();
        let leaf_of_query = |i: usize| self.leaf_of_query(&frame, queries[i]);
        parallel::collect(queries.len(), TASK_ITEMS / 8, "leaves of points", leaf_of_query)
    }

    fn leaf_of_query<const D: usize>(&self, frame: &Frame<D>, query: [C; D]) -> u32 {
        if !frame.contains(query) {
            return NO_NODE;
        }
        let (nodes, unit, mut leaf) = (&self.nodes[..], frame.unit(query), 0);
        while !nodes[leaf as usize].is_leaf() {
            let node = nodes[leaf as usize];
            leaf = node.first_child + frame.code(unit, node.level, 1);
        }
        leaf
    }

    /// Returns the leaves adjacent to each node.
    pub(super) fn adjacent_leaves<const D: usize>(&self, nodes: &[u32]) -> Result<Rows<u32>> {
        let levels = self.outline.frame::<D>().levels;
        let rows = parallel::map(nodes.len(), 1, |i| self.leaves_adjacent_to::<D>(levels, nodes[i]));
        let offsets = offsets_of(rows.iter().map(|row| row.len() as u64))?;
        memory::check_result(offsets[rows.len()], 4, "adjacent leaves")?;
        Ok(Rows::new(offsets, rows.concat()))
    }

    /// Returns the leaves adjacent to a node, in depth-first order.
    pub(crate) fn leaves_adjacent_to<const D: usize>(&self, levels: u32, target: u32) -> Vec<u32> {
        let (nodes, corners) = (&self.nodes[..], self.cells.as_chunks::<D>().0);
        // The first unit of a cell on each axis, and the one after the last.
        let units = |node: u32| {
            let side = 1_u64 << (levels - nodes[node as usize].level);
            let first = corners[node as usize].map(u64::from);
            (first, first.map(|unit| unit + side))
        };
        let (first, end) = units(target);
        let (mut leaves, mut stack) = (Vec::new(), vec![0]);
        while let Some(number) = stack.pop() {
            let (node_first, node_end) = units(number);
            let touches = (0..D).all(|axis| node_first[axis] <= end[axis] && first[axis] <= node_end[axis]);
            if number == target || !touches {
                continue;
            }
            let node = nodes[number as usize];
            if node.is_leaf() {
                leaves.push(number);
            } else {
                stack.extend((0..1 << D).rev().map(|child| node.first_child + child));
            }
        }
        leaves
    }

    /// Returns the sample of each node, as an index in tree order; [`NO_NODE`] for a node without points.
    pub(super) fn samples<const D: usize>(&self) -> Result<Vec<u32>> {
        let frame = self.outline.frame::<D>();
        let (nodes, points) = (&self.nodes[..], self.coords.as_chunks::<D>().0);
        let corners = self.cells.as_chunks::<D>().0;
        let mut samples = memory::filled(nodes.len(), NO_NODE, "samples of nodes")?;
        // From the last level up, since children follow their parents.
        for level in self.outline.level_begins.windows(2).rev() {
            let (this_level, below) =
                samples[level[0] as usize..].split_at_mut((level[1] - level[0]) as usize);
            let sample = |i: usize| {
                let number = level[0] as usize + i;
                let node = nodes[number];
                let half = 0.5 * (1_u64 << (frame.levels - node.level)) as f64;
                let center = corners[number].map(|unit| f64::from(unit) + half);
                let mut best = (f64::INFINITY, NO_NODE);
                let mut consider = |candidate: u32| {
                    let distance = frame.dist2_in_units(points[candidate as usize], center);
                    if distance < best.0 {
                        best = (distance, candidate);
                    }
                };
                if !node.is_leaf() {
                    let children = &below[(node.first_child - level[1]) as usize..][..1 << D];
                    children.iter().filter(|&&sample| sample != NO_NODE).for_each(|&sample| consider(sample));
                } else if node.len() > self.outline.options.leaf_points {
                    best.1 = node.start;
                } else {
                    (node.start..node.end).for_each(consider);
                }
                best.1
            };
            parallel::for_chunks(this_level, TASK_ITEMS / 8, |chunk, samples| {
                for (i, to) in (chunk * (TASK_ITEMS / 8)..).zip(samples) {
                    *to = sample(i);
                }
            });
        }
        Ok(samples)
    }
}
