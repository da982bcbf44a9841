//! Rows of leaves, one per node that was given.

/// Leaves in rows, one row per node, concatenated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafRows {
    pub(crate) offsets: Vec<u64>,
    pub(crate) leaves: Vec<u32>,
}

impl LeafRows {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the offset of each row in [`leaves`](Self::leaves), and the end of the last row: one entry more than rows.
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// Returns the node numbers of the leaves of all rows.
    pub fn leaves(&self) -> &[u32] {
        &self.leaves
    }

    /// Returns the leaves of row `row`.
    ///
    /// # Panics
    /// If `row` is not below the number of rows.
    pub fn row(&self, row: usize) -> &[u32] {
        assert!(row < self.len(), "row {row} of {} rows", self.len());
        &self.leaves[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }
}
