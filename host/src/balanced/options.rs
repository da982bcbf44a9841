//! Build options of a [`BalancedKdTree`](super::BalancedKdTree).

/// The algorithm that a GPU builds a tree with. Both algorithms build the same tree, to the last bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildAlgorithm {
    /// Sorts with radix sorts, then partitions by path codes. A byte per point holds its path code on the last levels. Only the array of
    /// a level's split axis is partitioned on that level, by those bytes alone; the other arrays catch up later. Blocks finish runs of up
    /// to 4096 points in shared memory (2048 points of more than four coordinates). The fastest.
    #[default]
    Paths,
    /// Sorts with merge sorts, by super key. Every array is partitioned on every level, by comparing the coordinates of its points with
    /// those of the median (Robinson).
    Robinson,
}

/// Build options of a [`BalancedKdTree`](super::BalancedKdTree).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BalancedOptions {
    /// The algorithm that a GPU builds with. It does not change the tree.
    pub algorithm: BuildAlgorithm,
    /// Number of warps that partition with [`Robinson`](BuildAlgorithm::Robinson), rounded up to a power of two. It does not change the
    /// tree.
    pub warps: u32,
    /// Renumbers the points on the way down even if there are few, to test the code path of many points.
    #[doc(hidden)]
    pub renumber: bool,
}

impl Default for BalancedOptions {
    fn default() -> Self {
        Self {
            algorithm: BuildAlgorithm::default(),
            warps: kauri_kernels::policy::BALANCED_WARPS,
            renumber: false,
        }
    }
}

impl BalancedOptions {
    /// Sets the build algorithm.
    pub fn algorithm(mut self, algorithm: BuildAlgorithm) -> Self {
        self.algorithm = algorithm;
        self
    }

    /// Sets the number of warps.
    pub fn warps(mut self, warps: u32) -> Self {
        self.warps = warps;
        self
    }
}
