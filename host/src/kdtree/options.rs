//! Build options of a [`KdTree`](super::KdTree).

/// Build options of a [`KdTree`](super::KdTree).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct KdTreeOptions {
    /// The algorithm that a GPU builds with. It does not change the tree.
    pub algorithm: BuildAlgorithm,
    /// The rule that chooses the split axis of each node.
    pub split: SplitRule,
}

impl KdTreeOptions {
    /// Sets the build algorithm.
    pub fn algorithm(mut self, algorithm: BuildAlgorithm) -> Self {
        self.algorithm = algorithm;
        self
    }

    /// Sets the split rule.
    pub fn split(mut self, split: SplitRule) -> Self {
        self.split = split;
        self
    }
}

/// The rule that chooses the split axis of each node. Query results do not depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SplitRule {
    /// Nodes of level `l` split on axis `l mod dims`. If all points lie on a line along one axis, only every `dims`-th level separates
    /// them, and a query visits O(n^(1 - 1 / dims)) nodes; [`Widest`](Self::Widest) keeps O(log n).
    #[default]
    RoundRobin,
    /// A node splits on the widest axis of its cell; a tie goes to the lower axis. Choose it for points that spread much farther along
    /// some axes than along others. The cell of the root is the bounding box of all points; the split plane of a node cuts its cell in
    /// two (Wald 2022, section 5). The tree stores one more byte for every second point.
    Widest,
}

impl SplitRule {
    /// Number of nodes whose split axis is stored: the inner nodes, or none if the axis follows from the level.
    pub(crate) fn num_stored_axes(self, num_points: usize) -> usize {
        match self {
            SplitRule::RoundRobin => 0,
            SplitRule::Widest => num_points / 2,
        }
    }
}

/// The algorithm that a GPU builds a tree with. All algorithms build the same tree, to the last bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildAlgorithm {
    /// Selection and partition: one pass over the points per level splits every subtree at its pivot. The fastest.
    #[default]
    Selection,
    /// [`Selection`](Self::Selection) with the least memory: it moves only ids, and permutes the coordinates in place at the end.
    SelectionInPlace,
    /// One radix sort per level, by tag and rank (Wald 2022, section 4).
    Tags,
    /// [`Tags`](Self::Tags) in place: a bitonic sort (Batcher 1968) swaps the points, each with a tag. O(n log^3 n).
    TagsInPlace,
}
