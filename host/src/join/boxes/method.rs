//! Methods of a join of boxes.

use kauri_kernels::policy::BOXES;

/// How a GPU finds the pairs of a [`BoxJoin`](super::BoxJoin). Results do not depend on it; the CPU ignores it.
///
/// ```
/// use kauri::join::{BoxJoin, BoxMethod};
/// let boxes = [[[0.0f32, 0.0], [1.0, 1.0]], [[1.0, 1.0], [2.0, 2.0]]];
/// let join = BoxJoin::intersects().method(BoxMethod::Cells);
/// assert_eq!(join.count(&kauri::Device::cpu(), &boxes, &boxes)?, 4);
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum BoxMethod {
    /// [`NestedLoop`](Self::NestedLoop) for small sets, otherwise [`Cells`](Self::Cells).
    #[default]
    Auto,
    /// Tests all pairs. No scratch memory but the counts of the rows.
    NestedLoop,
    /// Sorts both sets by the cells of a grid with levels for boxes of different sizes. Each box is in one cell.
    Cells,
    /// Divides the left boxes into partitions, and stores for each cell of a grid the partitions whose boxes touch it. Each partition is
    /// joined with the right boxes that touch its cells. See [`research::join`](crate::research::join).
    #[cfg(feature = "research")]
    MultiLayerGrid,
    /// Sorts the ends of all boxes along an axis; each box tests the boxes that begin between its ends. See
    /// [`research::join`](crate::research::join).
    #[cfg(feature = "research")]
    SortBased,
    /// Tests all pairs without shared memory, and appends each pair by an atomic operation. See
    /// [`research::join`](crate::research::join).
    #[cfg(feature = "research")]
    PlainNestedLoop,
}

impl BoxMethod {
    /// True for methods that reproduce published works.
    #[cfg(feature = "research")]
    pub(super) fn is_published(self) -> bool {
        matches!(self, Self::MultiLayerGrid | Self::SortBased | Self::PlainNestedLoop)
    }

    /// Replaces [`Auto`](Self::Auto) by the faster method for sets of `lens` boxes.
    pub(super) fn choose(self, lens: [usize; 2]) -> Self {
        match self {
            Self::Auto if lens[0] as u128 * lens[1] as u128 <= BOXES.nested_pairs => Self::NestedLoop,
            Self::Auto => Self::Cells,
            method => method,
        }
    }
}
