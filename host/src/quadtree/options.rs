//! Build options of quadtrees and octrees.

#[cfg(feature = "research")]
pub(crate) mod levels;

use crate::error::{Error, Result, check_range};
use crate::point::MAX_POINTS;
use kauri_kernels::quadtree::frame::{Frame, MAX_LEVELS};
#[cfg(feature = "research")]
use levels::LevelsOptions;

/// Build options of a [`Quadtree`](super::Quadtree) or an [`Octree`](super::Octree).
///
/// ```
/// use kauri::{Device, Quadtree, QuadtreeOptions};
/// let points: Vec<[f32; 2]> = (0..100).map(|i| [(i % 10) as f32, (i / 10) as f32]).collect();
/// let options = QuadtreeOptions::default().leaf_points(1).max_depth(2);
/// let tree = Quadtree::build(&Device::cpu(), &points, &options)?;
/// // Two levels below the root, leaves may have more than one point.
/// assert_eq!(tree.depth(), 2);
/// assert!(!tree.overfull_leaves()?.is_empty());
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QuadtreeOptions {
    /// Maximum number of points of a leaf, at least 1; a node with more points splits. The default is 20.
    pub leaf_points: u32,
    /// Maximum number of levels below the root, at most [`MAX_DEPTH`](super::MAX_DEPTH), which is the default. Leaves on the last level may
    /// have more than `leaf_points` points.
    pub max_depth: u32,
    /// The cell of the root, which determines all other cells.
    pub root: RootCell,
    /// Where points and nodes are kept during a build on a GPU. It does not change the tree.
    pub out_of_core: OutOfCore,
    pub(crate) algorithm: BuildAlgorithm,
}

/// The algorithm that builds a tree. All algorithms build the same tree, to the last bit.
#[cfg_attr(not(feature = "research"), allow(unreachable_pub, reason = "`research` exports it"))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildAlgorithm {
    /// Sorts the Morton codes of the points and cuts the nodes from the sorted codes: the algorithm of the library.
    #[default]
    Codes,
    /// Splits level by level, with a bucket sort per node (Gluck 2014). On a GPU a block splits one node; when all nodes are small, a
    /// thread does. The CPU uses one thread and ignores the options.
    #[cfg(feature = "research")]
    Levels(LevelsOptions),
}

#[cfg(feature = "research")]
impl BuildAlgorithm {
    /// [`Levels`](Self::Levels) with the default options.
    pub const LEVELS: Self = Self::Levels(LevelsOptions::DEFAULT);
}

/// The cell of the root. Each side of a cell is halved at each level, so all cells have its proportions.
///
/// ```
/// use kauri::quadtree::RootCell;
/// use kauri::{Device, Quadtree, QuadtreeOptions};
/// let points = [[0.0f32, 0.0], [30.0, 2.0], [6.0, 1.0]];
/// let options = QuadtreeOptions::default().leaf_points(1);
/// let bounds = |root| Quadtree::build(&Device::cpu(), &points, &options.clone().root(root))?.bounds(0);
/// assert_eq!(bounds(RootCell::Square)?, [[0.0, 0.0], [32.0, 32.0]]);
/// let [low, high] = bounds(RootCell::BoundingBox)?;
/// assert!(low == [0.0, 0.0] && high[0] - 30.0 < 1e-6 && high[1] - 2.0 < 1e-6);
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RootCell {
    /// The smallest square (cube) around the points whose side is a power of two. Borders of cells are exact numbers.
    #[default]
    Square,
    /// The bounding box of the points (Gluck 2014). Borders of cells are rounded numbers. A side with too few `f64` for distinct borders
    /// on all levels is made longer. A query on the CPU searches for each border, so
    /// it takes longer.
    BoundingBox,
}

/// Where points and nodes are kept during a build on a GPU. Builds on the CPU ignore it. The tree is the same in each case.
///
/// A tree built out of core is in host memory. Its GPU answers queries for neighbors and ranges:
///
/// - If the points fit in half of the device memory that is free at the first query, they stay in device memory until the tree is dropped.
/// - Otherwise they are cut into parts. A call brings the parts to the device one after another and merges their rows. It takes at least the
///   time of these copies, so the CPU answers calls with fewer than one query for 1024 points.
/// - The CPU answers calls that the device has no memory for, and finds leaves, adjacent leaves and samples.
///
/// Results are the results of a tree in device memory, in the same order. Such a tree has no calls on device buffers.
///
/// ```no_run
/// use kauri::quadtree::OutOfCore;
/// use kauri::{Device, Quadtree, QuadtreeOptions};
/// # let points = [[0.0f32, 0.0]];
/// let options = QuadtreeOptions::default().out_of_core(OutOfCore::Streamed);
/// let tree = Quadtree::build(&Device::best()?, &points, &options)?;
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutOfCore {
    /// In device memory if everything fits, otherwise as [`Streamed`](Self::Streamed).
    #[default]
    WhereNeeded,
    /// In host memory. The points stream through the device in chunks: a first pass counts the points in the cells of an upper level, a
    /// second pass distributes them to subtrees, and then the device builds the subtrees batch by batch.
    Streamed,
    /// In host memory. One CPU thread splits the upper levels until the largest node fits on the device; then the device builds the
    /// subtree of each node of the last of these levels, one after another (Gluck 2014).
    #[cfg(feature = "research")]
    CpuTop,
}

impl Default for QuadtreeOptions {
    fn default() -> Self {
        Self {
            leaf_points: 20,
            max_depth: MAX_LEVELS,
            root: RootCell::default(),
            out_of_core: OutOfCore::default(),
            algorithm: BuildAlgorithm::default(),
        }
    }
}

impl QuadtreeOptions {
    setters! {
        /// Sets the maximum number of points of a leaf.
        leaf_points: u32;

        /// Sets the maximum number of levels below the root.
        max_depth: u32;

        /// Sets the cell of the root.
        root: RootCell;

        /// Sets where points and nodes are kept during a build on a GPU.
        out_of_core: OutOfCore;

        /// Sets the build algorithm.
        #[cfg(feature = "research")]
        algorithm: BuildAlgorithm;
    }

    /// Returns the number of levels below the root of a tree with this frame.
    pub(crate) fn depth<const D: usize>(&self, frame: &Frame<D>) -> u32 {
        self.max_depth.min(frame.levels)
    }

    /// Checks that `leaf_points` and `max_depth` are in their ranges.
    pub(crate) fn check(&self) -> Result<()> {
        if self.leaf_points == 0 {
            return Err(Error::OutOfRange { what: "points of a leaf", value: 0, least: 1, most: MAX_POINTS });
        }
        check_range("levels of a quadtree", self.max_depth, 0, MAX_LEVELS.into())
    }
}
