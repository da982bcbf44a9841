//! Build options of quadtrees and octrees.

use crate::error::{Error, Result};
use crate::point::MAX_POINTS;
use kauri_kernels::policy::QUADTREE_PIECE_POINTS;
use kauri_kernels::quadtree::frame::MAX_LEVELS;

/// Build options of a [`Quadtree`](super::Quadtree) or an [`Octree`](super::Octree).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QuadtreeOptions {
    /// Maximum number of points of a leaf, at least 1; a node with more points splits. The default is 20. Gluck calls it z.
    pub leaf_points: u32,
    /// Maximum number of levels below the root, at most [`MAX_DEPTH`](super::MAX_DEPTH), which is the default. Leaves on the last level may
    /// have more than `leaf_points` points.
    pub max_depth: u32,
    /// The build algorithm. It does not change the tree.
    pub algorithm: BuildAlgorithm,
    /// Where points and nodes are kept during a build on a GPU. It does not change the tree.
    pub out_of_core: OutOfCore,
    /// Launch parameters of [`BuildAlgorithm::Levels`], for experiments.
    #[doc(hidden)]
    pub levels: LevelsOptions,
}

/// The algorithm that builds a tree. All algorithms build the same tree, to the last bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildAlgorithm {
    /// Sorts the Morton codes of the points and cuts the nodes from the sorted codes. The fastest.
    #[default]
    Codes,
    /// Splits level by level, with a bucket sort per node (Gluck 2014). On a GPU a block splits one node; when all nodes are small, a
    /// thread does. The CPU uses one thread.
    Levels,
}

/// Where points and nodes are kept during a build on a GPU. Builds on the CPU ignore it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutOfCore {
    /// In device memory if everything fits, otherwise as [`Streamed`](Self::Streamed).
    #[default]
    WhereNeeded,
    /// In host memory. The points stream through the device in chunks: a first pass counts the points in the cells of an upper level, a
    /// second pass distributes them to batches of subtrees, and then the device builds the subtrees batch by batch.
    Streamed,
    /// In host memory. One CPU thread splits the upper levels until the largest node fits on the device; then the device builds the
    /// subtree of each node of the last of these levels, one after another (Gluck 2014).
    CpuTop,
}

/// Launch parameters of [`BuildAlgorithm::Levels`] on a GPU.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelsOptions {
    /// Threads of a block that splits one node: a power of two from 4 to 512 for quadtrees, from 32 to 128 for octrees. `None` chooses by
    /// the number of points of the largest node.
    pub threads: Option<u32>,
    /// Maximum number of points of a node that one block splits.
    pub block_points: u32,
    /// Maximum number of points of a node that one thread splits.
    pub thread_points: u32,
}

/// Of 80M points in a square (`quadtree-h200`): `block_points` from 512 to 4096 and `thread_points` from 8 to 64 took 12.6 to 13.2 ms.
const QUADTREE_LEVELS: LevelsOptions = LevelsOptions { threads: None, block_points: 2048, thread_points: 8 };

impl Default for LevelsOptions {
    fn default() -> Self {
        QUADTREE_LEVELS
    }
}

impl LevelsOptions {
    /// Checks the number of threads for a number of dimensions.
    pub(crate) fn check(&self, dims: usize) -> Result<()> {
        let (least, most) = if dims == 2 { (4, 512) } else { (32, 128) };
        match self.threads {
            Some(threads) if !(threads.is_power_of_two() && (least..=most).contains(&threads)) => {
                let (value, least, most) = (threads.into(), least.into(), most.into());
                Err(Error::OutOfRange { what: "threads of a block", value, least, most })
            }
            _ => Ok(()),
        }
    }

    /// Returns the number of threads of a block that splits a node of up to `points` points.
    pub(crate) fn threads_for(&self, points: u32, dims: usize) -> u32 {
        let num_pieces = points.div_ceil(QUADTREE_PIECE_POINTS as u32).next_power_of_two();
        self.threads.unwrap_or(num_pieces.clamp(32, if dims == 2 { 256 } else { 128 }))
    }
}

impl Default for QuadtreeOptions {
    fn default() -> Self {
        Self {
            leaf_points: 20,
            max_depth: MAX_LEVELS,
            algorithm: BuildAlgorithm::default(),
            out_of_core: OutOfCore::default(),
            levels: LevelsOptions::default(),
        }
    }
}

impl QuadtreeOptions {
    /// Sets the maximum number of points of a leaf.
    pub fn leaf_points(mut self, leaf_points: u32) -> Self {
        self.leaf_points = leaf_points;
        self
    }

    /// Sets the maximum number of levels below the root.
    pub fn max_depth(mut self, max_depth: u32) -> Self {
        self.max_depth = max_depth;
        self
    }

    /// Sets where points and nodes are kept during a build on a GPU.
    pub fn out_of_core(mut self, out_of_core: OutOfCore) -> Self {
        self.out_of_core = out_of_core;
        self
    }

    /// Sets the build algorithm.
    pub fn algorithm(mut self, algorithm: BuildAlgorithm) -> Self {
        self.algorithm = algorithm;
        self
    }

    /// Checks that `leaf_points` and `max_depth` are in their ranges.
    pub(crate) fn check(&self) -> Result<()> {
        let out_of_range =
            |what, value: u32, least, most| Err(Error::OutOfRange { what, value: value.into(), least, most });
        if self.leaf_points == 0 {
            return out_of_range("points of a leaf", 0, 1, MAX_POINTS);
        }
        if self.max_depth > MAX_LEVELS {
            return out_of_range("levels of a quadtree", self.max_depth, 0, MAX_LEVELS.into());
        }
        Ok(())
    }
}
