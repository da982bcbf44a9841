//! Neighbors: points found by a query, with their distances.

use kauri_kernels::thread::coord::Float;
use std::fmt;
use std::iter::{Copied, FusedIterator, Zip};
use std::ops::Range;
use std::slice;

use crate::error::{Error, Result};
use crate::memory;
use crate::point::{DistanceOf, LonLat, Point};
use crate::query::batches::NearestBatch;
use crate::rows::sealed::{RowValues, Sealed};
use crate::rows::{RowItem, Rows, RowsBatch, RowsIter, SHOWN_ROWS};

/// A point found by a query, and its distance from the query.
///
/// ```
/// use kauri::{Device, KdTree, KdTreeOptions, Neighbor, SpatialIndex};
/// let points = [[0.0f32, 0.0], [3.0, 4.0], [1.0, 0.0]];
/// let tree = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default())?;
/// assert_eq!(tree.nearest_one(&[3.0, 3.0])?, Some(Neighbor { id: 1, dist2: 1.0 }));
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbor<C> {
    /// The id of the point: its index in the input of the index.
    pub id: u32,
    /// The squared distance under the Euclidean norm, for [`LonLat`] of chords of the unit sphere
    /// ([`LonLat::chord2_to_meters`]); the distance itself under the other norms.
    pub dist2: C,
}

/// The neighbors of one query: a slice of ids and a slice of distances.
///
/// ```
/// use kauri::{Device, KdTree, KdTreeOptions, SpatialIndex};
/// let points = [[0.0f32, 0.0], [3.0, 4.0], [1.0, 0.0]];
/// let tree = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default())?;
/// let near = tree.nearest(&[[0.0, 0.0]], 2)?;
/// let row = near.row(0);
/// assert_eq!((row.ids(), row.dist2()), (&[0, 2][..], &[0.0, 1.0][..]));
/// assert!(row.iter().all(|neighbor| neighbor.dist2 <= 1.0));
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq)]
pub struct NeighborRow<'a, C> {
    ids: &'a [u32],
    dist2: &'a [C],
}

impl<'a, C: Copy> NeighborRow<'a, C> {
    /// Takes as many ids as distances.
    pub(crate) fn new(ids: &'a [u32], dist2: &'a [C]) -> Self {
        debug_assert_eq!(ids.len(), dist2.len());
        Self { ids, dist2 }
    }

    /// The neighbors of a row of `k` entries, without its padding.
    pub(crate) fn without_padding(ids: &'a [u32], dist2: &'a [C]) -> Self {
        let num_found = ids.partition_point(|&id| id != u32::MAX);
        Self::new(&ids[..num_found], &dist2[..num_found])
    }

    /// Number of neighbors.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// True if there are no neighbors.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The ids.
    pub fn ids(&self) -> &'a [u32] {
        self.ids
    }

    /// The distances, as [`Neighbor::dist2`].
    pub fn dist2(&self) -> &'a [C] {
        self.dist2
    }

    /// Neighbor `i`, or `None` if there are no more than `i`.
    pub fn get(&self, i: usize) -> Option<Neighbor<C>> {
        Some(Neighbor { id: *self.ids.get(i)?, dist2: *self.dist2.get(i)? })
    }

    /// The first neighbor; the nearest one if the row is sorted.
    pub fn first(&self) -> Option<Neighbor<C>> {
        self.get(0)
    }

    /// Iterates over the neighbors.
    pub fn iter(&self) -> NeighborIter<'a, C> {
        NeighborIter(self.ids.iter().copied().zip(self.dist2.iter().copied()))
    }
}

impl<C: Float> RowValues for NeighborRow<'_, C> {
    fn part(self, range: Range<usize>) -> Self {
        Self { ids: &self.ids[range.clone()], dist2: &self.dist2[range] }
    }

    fn count(self) -> usize {
        self.len()
    }
}

/// Shows the distance of each id.
impl<C: fmt::Debug> fmt::Debug for NeighborRow<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.ids.iter().zip(self.dist2)).finish()
    }
}

impl<'a, C: Copy> IntoIterator for NeighborRow<'a, C> {
    type Item = Neighbor<C>;
    type IntoIter = NeighborIter<'a, C>;

    fn into_iter(self) -> NeighborIter<'a, C> {
        self.iter()
    }
}

/// Iterates over the neighbors of one query: [`NeighborRow::iter`].
///
/// ```
/// use kauri::{Device, KdTree, KdTreeOptions, SpatialIndex};
/// let tree = KdTree::build(&Device::cpu(), &[[0.0f32, 0.0], [3.0, 4.0]], &KdTreeOptions::default())?;
/// let near = tree.nearest(&[[0.0, 0.0]], 2)?;
/// assert_eq!(near.row(0).iter().map(|neighbor| neighbor.dist2).sum::<f32>(), 25.0);
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct NeighborIter<'a, C>(Zip<Copied<slice::Iter<'a, u32>>, Copied<slice::Iter<'a, C>>>);

impl<C: Copy> Iterator for NeighborIter<'_, C> {
    type Item = Neighbor<C>;

    fn next(&mut self) -> Option<Neighbor<C>> {
        self.0.next().map(|(id, dist2)| Neighbor { id, dist2 })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<C: Copy> DoubleEndedIterator for NeighborIter<'_, C> {
    fn next_back(&mut self) -> Option<Neighbor<C>> {
        self.0.next_back().map(|(id, dist2)| Neighbor { id, dist2 })
    }
}

impl<C: Copy> ExactSizeIterator for NeighborIter<'_, C> {}
impl<C: Copy> FusedIterator for NeighborIter<'_, C> {}

impl<C: Float> Sealed for Neighbor<C> {}

impl<C: Float> RowItem for Neighbor<C> {
    /// Ids, and as many distances.
    type Values = (Vec<u32>, Vec<C>);
    type Row<'a> = NeighborRow<'a, C>;

    fn all((ids, dist2): &Self::Values) -> NeighborRow<'_, C> {
        NeighborRow::new(ids, dist2)
    }
}

impl<C: Float> Rows<Neighbor<C>> {
    /// The ids of all rows, row after row.
    pub fn ids(&self) -> &[u32] {
        self.values().ids()
    }

    /// The distances of all rows, row after row, as [`Neighbor::dist2`].
    pub fn dist2(&self) -> &[C] {
        self.values().dist2()
    }
}

impl<'a, C: Float> RowsBatch<'a, Neighbor<C>> {
    /// The ids of all rows of the batch, row after row.
    pub fn ids(&self) -> &'a [u32] {
        self.values().ids()
    }

    /// The distances of all rows of the batch, row after row, as [`Neighbor::dist2`].
    pub fn dist2(&self) -> &'a [C] {
        self.values().dist2()
    }
}

/// The `k` nearest points of each query, as two row-major matrices with a row of `k` entries a query: the ids of the points and their
/// distances.
///
/// A row is sorted by (distance, id). Where fewer than `k` points are found, a row of the matrices ends in padding: id `u32::MAX`,
/// distance infinity. [`row`](Self::row) and iteration leave the padding out. For [`LonLat`] the distances are squared chords of the
/// unit sphere, and [`meters`](Neighbors::meters) gives great-circle distances.
///
/// ```
/// use kauri::{Device, KdTree, KdTreeOptions, SpatialIndex};
/// let points = [[0.0f32, 0.0], [3.0, 4.0]];
/// let tree = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default())?;
///
/// let nearest = tree.nearest(&[[0.0, 0.0]], 3)?;
/// for (query, neighbors) in &nearest {
///     for neighbor in neighbors {
///         println!("query {query}: point {} at squared distance {}", neighbor.id, neighbor.dist2);
///     }
/// }
/// assert_eq!(nearest.row(0).ids(), [0, 1]);
/// assert_eq!(nearest.ids(), [0, 1, u32::MAX]);
/// assert_eq!(nearest.dist2(), [0.0, 25.0, f32::INFINITY]);
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone)]
pub struct Neighbors<P: Point> {
    len: usize,
    k: usize,
    ids: Vec<u32>,
    dist2: Vec<DistanceOf<P>>,
}

impl<P: Point> Neighbors<P> {
    /// Takes `len` rows of `k` entries.
    pub(crate) fn new(len: usize, k: usize, ids: Vec<u32>, dist2: Vec<DistanceOf<P>>) -> Self {
        debug_assert!(ids.len() == len * k && dist2.len() == len * k);
        Self { len, k, ids, dist2 }
    }

    /// Entries of a row of the matrices.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Number of rows, one a query.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there were no queries.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The matrix of ids, with padding.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// The matrix of distances, as [`Neighbor::dist2`], with padding.
    pub fn dist2(&self) -> &[DistanceOf<P>] {
        &self.dist2
    }

    /// The neighbors of query `query`, without padding. O(log k).
    ///
    /// # Panics
    /// If there are not that many queries.
    pub fn row(&self, query: usize) -> NeighborRow<'_, DistanceOf<P>> {
        self.view().row(query)
    }

    /// The `k` ids and distances of query `query`, with padding.
    ///
    /// # Panics
    /// If there are not that many queries.
    pub fn padded_row(&self, query: usize) -> (&[u32], &[DistanceOf<P>]) {
        self.view().padded_row(query)
    }

    /// Iterates over the queries' numbers and neighbors, without padding.
    pub fn iter(&self) -> RowsIter<NearestBatch<'_, P>> {
        self.view().iter()
    }

    /// Returns the two matrices, ids and distances, with padding.
    pub fn into_parts(self) -> (Vec<u32>, Vec<DistanceOf<P>>) {
        (self.ids, self.dist2)
    }

    /// The whole result as one batch.
    fn view(&self) -> NearestBatch<'_, P> {
        NearestBatch::new(0..self.len, self.k, &self.ids, &self.dist2)
    }
}

impl Neighbors<LonLat> {
    /// Great-circle distances of query `query` in meters, infinity for padding.
    ///
    /// # Panics
    /// If there are not that many queries.
    pub fn meters(&self, query: usize) -> impl ExactSizeIterator<Item = f64> + '_ {
        self.view().meters(query)
    }
}

impl<'a, P: Point> IntoIterator for &'a Neighbors<P> {
    type Item = (usize, NeighborRow<'a, DistanceOf<P>>);
    type IntoIter = RowsIter<NearestBatch<'a, P>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Equal ids and equal distances.
impl<P: Point> PartialEq for Neighbors<P> {
    fn eq(&self, other: &Self) -> bool {
        (self.len, self.k, &self.ids, &self.dist2) == (other.len, other.k, &other.ids, &other.dist2)
    }
}

impl<P: Point> fmt::Debug for Neighbors<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first_rows: Vec<_> = self.iter().take(SHOWN_ROWS).map(|(_, row)| row).collect();
        f.debug_struct("Neighbors")
            .field("len", &self.len)
            .field("k", &self.k)
            .field("first_rows", &first_rows)
            .finish()
    }
}

/// Allocates the result matrices (`queries` x `k`), empty: ids and distances.
pub(crate) fn result_rows<C: Float>(queries: usize, k: usize) -> Result<(Vec<u32>, Vec<C>)> {
    let count = (queries as u64).saturating_mul(k as u64);
    memory::check_result(count, item_bytes::<C>(), "neighbors")?;
    let allocate = || {
        let len = usize::try_from(count).unwrap_or(usize::MAX);
        let ids = memory::vec_with_capacity(len, "ids of neighbors")?;
        Ok((ids, memory::vec_with_capacity(len, "distances of neighbors")?))
    };
    allocate().map_err(|error: Error| error.of_result(count, item_bytes::<C>()))
}

/// Bytes of an item of a result: an id and a distance.
pub(crate) const fn item_bytes<C>() -> u64 {
    (size_of::<u32>() + size_of::<C>()) as u64
}
