//! Results whose rows have any length: range queries, joins, adjacent leaves and all hits of rays.

use std::fmt;
use std::iter::FusedIterator;
use std::ops::Range;

use sealed::RowValues;

/// Debug output shows at most this many rows.
pub(crate) const SHOWN_ROWS: usize = 4;
/// Debug output shows at most this many values of a row.
const SHOWN_VALUES: usize = 8;

pub(crate) mod sealed {
    use std::{fmt, ops::Range};

    pub trait Sealed {}

    /// The values of a row, borrowed.
    pub trait RowValues: Copy + fmt::Debug {
        /// Returns some consecutive values.
        fn part(self, range: Range<usize>) -> Self;

        /// Returns the number of values.
        fn count(self) -> usize;
    }

    impl RowValues for &[u32] {
        fn part(self, range: Range<usize>) -> Self {
            &self[range]
        }

        fn count(self) -> usize {
            self.len()
        }
    }
}

/// A value of a row: `u32` (ids of points or leaves), [`Neighbor`](crate::query::Neighbor) or [`Hit`](crate::rays::Hit).
///
/// Only kauri implements it.
///
/// ```
/// use kauri::Rows;
/// use kauri::rows::RowItem;
/// fn num_values<T: RowItem>(rows: &Rows<T>) -> u64 {
///     rows.offsets().last().copied().unwrap_or(0)
/// }
/// # let _ = num_values::<u32>;
/// ```
pub trait RowItem: sealed::Sealed + Copy + 'static {
    /// The values of all rows, one row behind the other, as [`Rows`] owns them.
    type Values;
    /// The values of one row, borrowed.
    type Row<'a>: RowValues;

    /// Borrows all values.
    #[doc(hidden)]
    fn all(values: &Self::Values) -> Self::Row<'_>;
}

impl sealed::Sealed for u32 {}

impl RowItem for u32 {
    type Values = Vec<u32>;
    type Row<'a> = &'a [u32];

    fn all(values: &Vec<u32>) -> &[u32] {
        values
    }
}

/// Rows of any length, one behind the other (compressed sparse rows, CSR): row `i` has the values `offsets[i]..offsets[i + 1]`.
///
/// A row of `Rows<u32>` is a slice of ids, a row of `Rows<Neighbor<C>>` a [`NeighborRow`](crate::query::NeighborRow), and a row of
/// `Rows<Hit>` a [`HitRow`](crate::rays::HitRow).
///
/// ```
/// use kauri::{Device, KdTree, KdTreeOptions, SpatialIndex};
/// use kauri::query::QueryOptions;
/// let points = [[0.0f32, 0.0], [3.0, 4.0], [1.0, 0.0]];
/// let tree = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default())?;
///
/// let found = tree.within(&[[0.0, 0.0], [9.0, 9.0]], 1.0, &QueryOptions::default().sorted())?;
/// for (query, neighbors) in &found {
///     for neighbor in neighbors {
///         println!("query {query}: point {} at squared distance {}", neighbor.id, neighbor.dist2);
///     }
/// }
/// assert_eq!(found.row(0).ids(), [0, 2]);
/// assert!(found.row(1).is_empty());
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Rows<T: RowItem = u32> {
    offsets: Vec<u64>,
    values: T::Values,
}

impl<T: RowItem> Rows<T> {
    /// Makes rows of their offsets, one more than rows, and of their values, as many as the last offset says.
    pub(crate) fn new(offsets: Vec<u64>, values: T::Values) -> Self {
        debug_assert_eq!(offsets.last().copied(), Some(T::all(&values).count() as u64));
        Self { offsets, values }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where each row begins in [`values`](Self::values), and where the last one ends: one more than rows.
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// The values of all rows, row after row.
    pub fn values(&self) -> T::Row<'_> {
        T::all(&self.values)
    }

    /// The values of row `row`.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: usize) -> T::Row<'_> {
        self.view().row(row)
    }

    /// Iterates over all rows, each with its number.
    pub fn iter(&self) -> RowsIter<RowsBatch<'_, T>> {
        self.view().iter()
    }

    /// Returns the offsets and the values.
    pub fn into_parts(self) -> (Vec<u64>, T::Values) {
        (self.offsets, self.values)
    }

    fn view(&self) -> RowsBatch<'_, T> {
        RowsBatch::new(0, &self.offsets, self.values())
    }
}

impl Rows<u32> {
    /// The ids of all rows, row after row: [`values`](Self::values).
    pub fn ids(&self) -> &[u32] {
        self.values()
    }
}

impl<T: RowItem> Default for Rows<T>
where
    T::Values: Default,
{
    /// No rows.
    fn default() -> Self {
        Self::new(vec![0], T::Values::default())
    }
}

impl<T: RowItem> fmt::Debug for Rows<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows")
            .field("len", &self.len())
            .field("values", &self.values().count())
            .field("first_rows", &FirstRows(self.view()))
            .finish()
    }
}

impl<'a, T: RowItem> IntoIterator for &'a Rows<T> {
    type Item = (usize, T::Row<'a>);
    type IntoIter = RowsIter<RowsBatch<'a, T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// A batch of the rows of a result that is delivered in batches, borrowed. Rows keep the numbers that they have in the whole result.
///
/// ```
/// use kauri::query::QueryOptions;
/// use kauri::{Batches, Device, KdTree, KdTreeOptions, SpatialIndex};
/// use std::ops::ControlFlow;
/// let points = [[0.0f32], [1.0], [2.0], [7.0]];
/// let tree = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default())?;
///
/// let (mut batches, mut lonely) = (Batches::new().rows(3), Vec::new());
/// tree.within_batches(&points, 1.0, &QueryOptions::default(), &mut batches, |batch| {
///     lonely.extend(batch.iter().filter(|(_, neighbors)| neighbors.len() == 1).map(|(query, _)| query));
///     ControlFlow::Continue(())
/// })?;
/// assert_eq!(lonely, [3]); // in the second batch
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct RowsBatch<'a, T: RowItem = u32> {
    first: usize,
    offsets: &'a [u64],
    values: T::Row<'a>,
}

impl<'a, T: RowItem> RowsBatch<'a, T> {
    /// Makes a batch of the rows from `first` on.
    pub(crate) fn new(first: usize, offsets: &'a [u64], values: T::Row<'a>) -> Self {
        Self { first, offsets, values }
    }

    /// The numbers of the rows in the batch.
    pub fn rows(&self) -> Range<usize> {
        self.first..self.first + self.offsets.len() - 1
    }

    /// Where each row of the batch begins in [`values`](Self::values), and where the last one ends: one more than rows.
    pub fn offsets(&self) -> &'a [u64] {
        self.offsets
    }

    /// The values of all rows of the batch, row after row.
    pub fn values(&self) -> T::Row<'a> {
        self.values
    }

    /// The values of row `row` of the whole result.
    ///
    /// # Panics
    /// If the row is not in the batch.
    pub fn row(&self, row: usize) -> T::Row<'a> {
        let row = row_in_batch(row, self.rows());
        self.values.part(self.offsets[row] as usize..self.offsets[row + 1] as usize)
    }

    /// Iterates over the rows of the batch, each with its number in the whole result.
    pub fn iter(self) -> RowsIter<Self> {
        RowsIter::new(self, self.rows())
    }
}

impl<'a> RowsBatch<'a, u32> {
    /// The ids of all rows of the batch, row after row: [`values`](Self::values).
    pub fn ids(&self) -> &'a [u32] {
        self.values
    }
}

/// The position in a batch of a row of the whole result.
pub(crate) fn row_in_batch(row: usize, rows: Range<usize>) -> usize {
    assert!(rows.contains(&row), "row {row} is not one of the rows {rows:?}");
    row - rows.start
}

impl<T: RowItem> fmt::Debug for RowsBatch<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowsBatch")
            .field("rows", &self.rows())
            .field("values", &self.values.count())
            .field("first_rows", &FirstRows(*self))
            .finish()
    }
}

impl<'a, T: RowItem> IntoIterator for RowsBatch<'a, T> {
    type Item = (usize, T::Row<'a>);
    type IntoIter = RowsIter<Self>;

    fn into_iter(self) -> RowsIter<Self> {
        self.iter()
    }
}

/// The first few rows, each with its first few values.
struct FirstRows<'a, T: RowItem>(RowsBatch<'a, T>);

impl<T: RowItem> fmt::Debug for FirstRows<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first_rows = self.0.iter().take(SHOWN_ROWS);
        f.debug_list().entries(first_rows.map(|(_, row)| row.part(0..row.count().min(SHOWN_VALUES)))).finish()
    }
}

/// Borrowed rows that a [`RowsIter`] iterates over. Only kauri implements it.
///
/// ```
/// use kauri::rows::{RowView, RowsIter};
/// fn last_row<V: RowView>(rows: RowsIter<V>) -> Option<V::Row> {
///     rows.last().map(|(_, row)| row)
/// }
/// # let _ = last_row::<kauri::RowsBatch<'_, u32>>;
/// ```
pub trait RowView: Copy + sealed::Sealed {
    /// A row.
    type Row;

    /// Returns the row of this number.
    #[doc(hidden)]
    fn get(self, row: usize) -> Self::Row;
}

impl<T: RowItem> sealed::Sealed for RowsBatch<'_, T> {}

impl<'a, T: RowItem> RowView for RowsBatch<'a, T> {
    type Row = T::Row<'a>;

    fn get(self, row: usize) -> T::Row<'a> {
        self.row(row)
    }
}

/// Iterates over rows, each with its number in the result: [`Rows::iter`], [`RowsBatch::iter`],
/// [`Neighbors::iter`](crate::Neighbors::iter).
///
/// ```
/// use kauri::{Device, KdTree, KdTreeOptions, SpatialIndex};
/// let points = [[0.0f32, 0.0], [3.0, 4.0]];
/// let tree = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default())?;
/// let near = tree.nearest(&points, 1)?;
/// assert_eq!(near.iter().map(|(query, row)| (query, row.ids()[0])).collect::<Vec<_>>(), [(0, 0), (1, 1)]);
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RowsIter<V> {
    view: V,
    rows: Range<usize>,
}

impl<V> RowsIter<V> {
    /// Iterates over these rows of a view.
    pub(crate) fn new(view: V, rows: Range<usize>) -> Self {
        Self { view, rows }
    }
}

impl<V: RowView> Iterator for RowsIter<V> {
    type Item = (usize, V::Row);

    fn next(&mut self) -> Option<Self::Item> {
        let row = self.rows.next()?;
        Some((row, self.view.get(row)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rows.size_hint()
    }
}

impl<V: RowView> DoubleEndedIterator for RowsIter<V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let row = self.rows.next_back()?;
        Some((row, self.view.get(row)))
    }
}

impl<V: RowView> ExactSizeIterator for RowsIter<V> {}
impl<V: RowView> FusedIterator for RowsIter<V> {}
