//! Queries of a tree in host memory, by all threads.

use crate::error::Result;
use crate::memory::{self, vec_with_capacity};
use crate::quadtree::host::HostTree;
use crate::quadtree::{NO_NODE, frame_of};
use crate::rows::Rows;
use kauri_kernels::quadtree::frame::Frame;
use kauri_kernels::thread::coord::Coord;
use rayon::prelude::*;

impl<C: Coord> HostTree<C> {
    /// The leaf of each query.
    pub(crate) fn leaves_of<const D: usize>(&self, queries: &[[C; D]]) -> Result<Vec<u32>> {
        let frame = frame_of::<D>(&self.frame);
        let mut leaves = vec_with_capacity(queries.len(), "leaves of points")?;
        queries.par_iter().map(|&query| self.leaf_of(&frame, query)).collect_into_vec(&mut leaves);
        Ok(leaves)
    }

    fn leaf_of<const D: usize>(&self, frame: &Frame<D>, query: [C; D]) -> u32 {
        if !frame.has(query) {
            return NO_NODE;
        }
        let (nodes, unit, mut leaf) = (self.nodes(), frame.unit(query), 0);
        while !nodes[leaf as usize].is_leaf() {
            let node = nodes[leaf as usize];
            leaf = node.first_child + frame.code(unit, node.level, 1);
        }
        leaf
    }

    /// The leaves around nodes.
    pub(crate) fn leaves_around<const D: usize>(&self, nodes: &[u32]) -> Result<Rows<u32>> {
        let levels = frame_of::<D>(&self.frame).levels;
        let rows: Vec<Vec<u32>> = nodes.par_iter().map(|&of| self.around::<D>(levels, of)).collect();
        let mut offsets = vec_with_capacity(rows.len() + 1, "offsets of rows")?;
        let mut end = 0;
        offsets.push(0);
        offsets.extend(rows.iter().map(|row| {
            end += row.len() as u64;
            end
        }));
        memory::check(4 * end, "leaves around nodes").map_err(|error| error.of_result(end, 4 * end))?;
        Ok(Rows::new(offsets, rows.concat()))
    }

    /// The leaves around a node, depth first.
    fn around<const D: usize>(&self, levels: u32, of: u32) -> Vec<u32> {
        let nodes = self.nodes();
        // The first unit of a cell on each axis, and the one behind the last.
        let units = |at: u32| {
            let side = 1_u64 << (levels - nodes[at as usize].level);
            let first: [u64; D] = std::array::from_fn(|axis| self.cell(at)[axis].into());
            (first, first.map(|unit| unit + side))
        };
        let (first, end) = units(of);
        let (mut found, mut left) = (Vec::new(), vec![0]);
        while let Some(at) = left.pop() {
            let (own_first, own_end) = units(at);
            let touches = (0..D).all(|axis| own_first[axis] <= end[axis] && first[axis] <= own_end[axis]);
            if at == of || !touches {
                continue;
            }
            let node = nodes[at as usize];
            if node.is_leaf() {
                found.push(at);
            } else {
                left.extend((0..1 << D).rev().map(|child| node.first_child + child));
            }
        }
        found
    }

    /// The place of the sample of each node of all levels up to one, and of all below these.
    pub(crate) fn samples<const D: usize>(&self) -> Result<Vec<u32>> {
        let frame = frame_of::<D>(&self.frame);
        let (nodes, points) = (self.nodes(), self.coords.as_chunks::<D>().0);
        let mut samples = vec_with_capacity(nodes.len(), "samples of nodes")?;
        samples.resize(nodes.len(), NO_NODE);
        // From the leaves up: children are behind their parents.
        for level in self.level_begins.windows(2).rev() {
            let (of_level, below) = samples[level[0] as usize..].split_at_mut((level[1] - level[0]) as usize);
            of_level.par_iter_mut().enumerate().for_each(|(i, sample)| {
                let at = level[0] as usize + i;
                let node = nodes[at];
                let half = 0.5 * (1_u64 << (frame.levels - node.level)) as f64;
                let middle: [f64; D] =
                    std::array::from_fn(|axis| f64::from(self.cells[at * D + axis]) + half);
                let mut best = (f64::INFINITY, NO_NODE);
                let mut look = |place: u32| {
                    let distance = frame.units_from(points[place as usize], middle);
                    if distance < best.0 {
                        best = (distance, place);
                    }
                };
                if !node.is_leaf() {
                    let children = &below[(node.first_child - level[1]) as usize..][..1 << D];
                    children.iter().filter(|&&place| place != NO_NODE).for_each(|&place| look(place));
                } else if node.len() > self.options.leaf_points {
                    best.1 = node.start;
                } else {
                    (node.start..node.end).for_each(look);
                }
                *sample = best.1;
            });
        }
        Ok(samples)
    }
}
