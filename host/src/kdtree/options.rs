//! Build options of a [`KdTree`](super::KdTree).

/// Build options of a [`KdTree`](super::KdTree): the split rule and the algorithm.
///
/// ```
/// use kauri::kdtree::{BuildAlgorithm, SplitRule};
/// use kauri::{Device, KdTree, KdTreeOptions, SpatialIndex};
/// let points = [[0.0f32, 0.0], [900.0, 1.0], [500.0, 3.0], [100.0, 2.0]];
/// let options = KdTreeOptions::default().split(SplitRule::Widest).algorithm(BuildAlgorithm::SelectionInPlace);
/// let tree = KdTree::build(&Device::cpu(), &points, &options)?;
/// assert_eq!(tree.nearest(&[[480.0, 0.0]], 1)?.ids(), [2]);
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct KdTreeOptions {
    /// The algorithm. It does not change the tree.
    pub algorithm: BuildAlgorithm,
    /// The rule that chooses the split axis of each node.
    pub split: SplitRule,
}

impl KdTreeOptions {
    setters! {
        /// Sets the build algorithm.
        algorithm: BuildAlgorithm;

        /// Sets the split rule.
        split: SplitRule;
    }
}

/// The rule that chooses the split axis of each node. Query results do not depend on it.
///
/// | rule | good for | build of 10M `f32` x 3 on a GPU | memory of the tree |
/// |---|---|---|---|
/// | [`RoundRobin`](Self::RoundRobin) | points that spread about as far along every axis, or not at all | 5.7 ms | |
/// | [`Widest`](Self::Widest) | points that spread much farther along some axes than along others | 6.4 ms | 1 byte more for every second point |
///
/// ```
/// use kauri::kdtree::SplitRule;
/// use kauri::{Device, KdTree, KdTreeOptions};
/// // The points of a long street.
/// let points: Vec<[f64; 2]> = (0..100).map(|i| [f64::from(i), f64::from(i % 3)]).collect();
/// let options = KdTreeOptions::default().split(SplitRule::Widest);
/// KdTree::build(&Device::cpu(), &points, &options)?.verify()?;
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SplitRule {
    /// Levels split on the axes in turn, from axis 0. They leave out every axis on which all points have equal coordinates, because such a
    /// split separates nothing: points in a plane or on a line along the axes have the tree of points with fewer coordinates. If all points
    /// are equal, no axis is left out.
    ///
    /// A build finds these axes by the first few points that differ; only an axis of equal coordinates costs a pass over the points.
    ///
    /// ```
    /// use kauri::{Device, KdTree, KdTreeOptions};
    /// let line: Vec<[f32; 3]> = (0..50).map(|i| [7.0, (i * 37 % 50) as f32, 2.0]).collect();
    /// let along: Vec<[f32; 1]> = line.iter().map(|point| [point[1]]).collect();
    /// let (device, options) = (Device::cpu(), KdTreeOptions::default());
    /// let tree = KdTree::build(&device, &line, &options)?;
    /// tree.verify()?;
    /// assert_eq!(tree.node_ids()?, KdTree::build(&device, &along, &options)?.node_ids()?);
    /// # Ok::<(), kauri::Error>(())
    /// ```
    #[default]
    RoundRobin,
    /// A node splits on the widest axis of its cell; a tie goes to the lower axis. The cell of the root is the bounding box of all points;
    /// the split plane of a node cuts its cell in two (Wald 2022, section 5).
    Widest,
}

impl SplitRule {
    /// Number of nodes whose split axis is stored: the inner nodes, or none if levels split on axes in turn.
    pub(crate) fn num_stored_axes(self, num_points: usize) -> usize {
        match self {
            SplitRule::RoundRobin => 0,
            SplitRule::Widest => num_points / 2,
        }
    }
}

/// The algorithm that builds a tree. All algorithms build the same tree, to the last bit; the [module](super) has a table of their costs on a
/// GPU. A build on the CPU partitions the points, except by tags.
///
/// ```
/// use kauri::kdtree::BuildAlgorithm;
/// use kauri::{Device, KdTree, KdTreeOptions};
/// let options = KdTreeOptions::default().algorithm(BuildAlgorithm::SelectionInPlace);
/// let plan = KdTree::<[f32; 3]>::plan(&Device::cpu(), 1_000_000, &options);
/// assert!(plan.tree_bytes >= 16_000_000);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildAlgorithm {
    /// Selection and partition: one pass over the points per level splits every subtree at its pivot. The fastest.
    #[default]
    Selection,
    /// [`Selection`](Self::Selection) with the least memory: it moves only ids, and permutes the coordinates in place at the end.
    SelectionInPlace,
    /// One radix sort per level, by tag and rank (Wald 2022, section 4). On the CPU all threads sort by tag, coordinate and id. Only with the
    /// feature `research`.
    #[cfg(feature = "research")]
    Tags,
    /// [`Tags`](Self::Tags) whose sorts leave out the nodes that are finished, which are at the front. Only with the feature `research`.
    #[cfg(feature = "research")]
    TagsOfUnfinished,
    /// [`Tags`](Self::Tags) without ranks: the tag is above the coordinate in a key of 64 bits, and each level sorts from the order of the
    /// ids. Coordinates of 64 bits are built by [`Tags`](Self::Tags). Only with the feature `research`.
    #[cfg(feature = "research")]
    TagsAboveCoordinates,
    /// [`Tags`](Self::Tags) in place: a bitonic sort (Batcher 1968) swaps the points, each with a tag. O(n log^3 n). Only with the feature
    /// `research`.
    #[cfg(feature = "research")]
    TagsInPlace,
}
