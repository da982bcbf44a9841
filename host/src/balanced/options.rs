//! Build options of a [`BalancedKdTree`](super::BalancedKdTree).

/// The algorithm that a GPU builds with. All algorithms build the same tree, to the last bit.
///
/// [`research::balanced`](crate::research::balanced) compares them.
///
/// ```
/// use kauri::balanced::BalancedOptions;
/// use kauri::research::balanced::BuildAlgorithm;
/// let options = BalancedOptions::default().algorithm(BuildAlgorithm::Robinson);
/// # let _ = options;
/// ```
#[cfg(feature = "research")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildAlgorithm {
    /// Radix sorts, then partitions by path codes: what builds without the feature `research` do.
    #[default]
    Paths,
    /// Merge sorts by super key, then partitions of every array on every level by comparisons of coordinates (Robinson).
    Robinson,
}

/// Build options of a [`BalancedKdTree`](super::BalancedKdTree). They do not change the tree.
///
/// The default options suit every input. The feature `research` adds options that select the algorithms of papers.
///
/// ```
/// use kauri::Device;
/// use kauri::balanced::{BalancedKdTree, BalancedOptions};
/// let tree = BalancedKdTree::build(&Device::cpu(), &[[2.0f32, 3.0]], &BalancedOptions::default())?;
/// assert_eq!(tree.medians()?, [0]);
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct BalancedOptions {
    /// Renumbers the points on the way down even if there are few.
    pub(crate) renumber: bool,
    /// The coordinates are integers of 32 bits as `f64`. Set by builds over such points.
    pub(crate) are_integers: bool,
    #[cfg(feature = "research")]
    pub(crate) algorithm: BuildAlgorithm,
    /// Number of warps that partition with [`BuildAlgorithm::Robinson`]; `None` for the policy's.
    #[cfg(feature = "research")]
    pub(crate) warps: Option<u32>,
    #[cfg(feature = "research")]
    pub(crate) direct_stores: bool,
    #[cfg(feature = "research")]
    pub(crate) sequential_compactions: bool,
}

#[cfg(feature = "research")]
impl BalancedOptions {
    setters! {
        /// Sets the algorithm that a GPU builds with.
        algorithm: BuildAlgorithm;

        /// Sets the number of warps that partition with [`BuildAlgorithm::Robinson`], 4096 by default. It is rounded up to a power of two, and
        /// limited to a warp per 32 points.
        warps: u32 = Some(warps);

        /// Makes [`BuildAlgorithm::Robinson`] store each kept id straight to memory, without coalescing buffers in shared memory.
        direct_stores: bool;

        /// Makes [`BuildAlgorithm::Robinson`] compact the points of a run one side after the other, in two passes over the points, instead of
        /// both sides at once.
        sequential_compactions: bool;

        /// Makes [`BuildAlgorithm::Paths`] renumber the points on the way down even if they are few, as it does for many points. It takes more
        /// memory: 5 bytes per point.
        renumber: bool;
    }
}
