//! Options of builds level by level.

use crate::error::{Error, Result};
use kauri_kernels::policy::QUADTREE_PIECE_POINTS;

/// Launch parameters of [`BuildAlgorithm::Levels`](super::BuildAlgorithm::Levels) on a GPU.
///
/// ```
/// use kauri::research::quadtree::{BuildAlgorithm, LevelsOptions};
/// // As in the paper: one block of 64 threads splits a node of any size.
/// let options = LevelsOptions { threads: Some(64), block_points: u32::MAX, ..LevelsOptions::default() };
/// let algorithm = BuildAlgorithm::Levels(options);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelsOptions {
    /// Threads of a block that splits one node: a power of two from 4 to 512 for quadtrees, from 32 to 128 for octrees. `None` chooses by
    /// the number of points of the largest node.
    pub threads: Option<u32>,
    /// Maximum number of points of a node that one block splits. Larger nodes are split by several blocks.
    pub block_points: u32,
    /// Maximum number of points of a node that one thread splits; it comes before `block_points`.
    pub thread_points: u32,
    /// The level from which on one thread splits each node, of any size; the root is on level 0. `u32::MAX` leaves the choice to the sizes.
    pub thread_level: u32,
    /// Whether only the nodes that split are on the list of the next level (algorithm A2 of the paper). Otherwise the list has all children
    /// of the level, and a node that does not split gets children without points, its null nodes, also on the levels below. They are removed
    /// at the end. A level then has up to 2^D times the entries of the level above, which
    /// [`plan`](crate::quadtree::CellTree::plan) does not count.
    pub prunes: bool,
}

impl Default for LevelsOptions {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl LevelsOptions {
    /// For 80M points in a square, `block_points` from 512 to 4096 and `thread_points` from 8 to 64 took 12.6 to 13.2 ms
    /// (`benches/results/pages/quadtree.md`).
    pub(crate) const DEFAULT: Self =
        Self { threads: None, block_points: 2048, thread_points: 8, thread_level: u32::MAX, prunes: true };

    /// One thread splits each node, of any size: the thread algorithm of the paper on all levels. On the upper levels few threads work, so
    /// it is for comparisons.
    pub const BY_THREADS: Self = Self { thread_level: 0, ..Self::DEFAULT };

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
