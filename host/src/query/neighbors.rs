//! The result of a nearest-neighbor query.

use crate::error::{Error, Result};
use crate::memory;
use kauri_kernels::thread::coord::Coord;
use std::fmt;

use crate::point::{LonLat, Point};

/// The nearest points of every query, as two matrices with a row of `k` entries a query (row-major): the ids of the
/// points and their squared distances.
///
/// A row is sorted by (distance, id). Where the tree has fewer than `k` points the row ends in padding: id `u32::MAX`,
/// squared distance infinity. For [`LonLat`] the squared distances are squared chords of the unit sphere, and
/// [`meters`](Neighbors::meters) gives great-circle distances.
pub struct Neighbors<P: Point> {
    len: usize,
    k: usize,
    ids: Vec<u32>,
    dist2: Vec<P::Coord>,
}

/// The same of some rows, wherever they are.
#[derive(Clone, Copy)]
pub(crate) struct NeighborRows<'a, C> {
    pub(crate) len: usize,
    pub(crate) k: usize,
    pub(crate) ids: &'a [u32],
    pub(crate) dist2: &'a [C],
}

impl<'a, C> NeighborRows<'a, C> {
    pub(crate) fn row(&self, row: usize) -> (&'a [u32], &'a [C]) {
        assert!(row < self.len, "row {row} of {} rows", self.len);
        let entries = row * self.k..(row + 1) * self.k;
        (&self.ids[entries.clone()], &self.dist2[entries])
    }
}

impl<P: Point> Neighbors<P> {
    /// Takes `len` rows of `k` entries.
    pub(crate) fn new(len: usize, k: usize, ids: Vec<u32>, dist2: Vec<P::Coord>) -> Self {
        debug_assert!(ids.len() == len * k && dist2.len() == len * k);
        Self { len, k, ids, dist2 }
    }

    /// Entries of a row.
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

    /// All ids, row after row.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// All squared distances, row after row.
    pub fn dist2(&self) -> &[P::Coord] {
        &self.dist2
    }

    /// The ids and squared distances of query `query`.
    ///
    /// # Panics
    /// If there are not that many queries.
    pub fn row(&self, query: usize) -> (&[u32], &[P::Coord]) {
        let Self { len, k, ids, dist2 } = self;
        NeighborRows { len: *len, k: *k, ids, dist2 }.row(query)
    }

    /// The two matrices: ids and squared distances.
    pub fn into_parts(self) -> (Vec<u32>, Vec<P::Coord>) {
        (self.ids, self.dist2)
    }
}

impl Neighbors<LonLat> {
    /// Great-circle distances of query `query` in meters, infinity for padding.
    ///
    /// # Panics
    /// If there are not that many queries.
    pub fn meters(&self, query: usize) -> impl ExactSizeIterator<Item = f64> + '_ {
        self.row(query).1.iter().map(|&chord2| LonLat::chord2_to_meters(chord2))
    }
}

impl<P: Point> Clone for Neighbors<P> {
    fn clone(&self) -> Self {
        Self { len: self.len, k: self.k, ids: self.ids.clone(), dist2: self.dist2.clone() }
    }
}

impl<P: Point> fmt::Debug for Neighbors<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Neighbors").field("len", &self.len).field("k", &self.k).finish_non_exhaustive()
    }
}

/// Room for a result of `queries` x `k`: ids and squared distances, empty.
pub(crate) fn result_rows<C: Coord>(queries: usize, k: usize) -> Result<(Vec<u32>, Vec<C>)> {
    let count = (queries as u64).saturating_mul(k as u64);
    let bytes = count.saturating_mul(item_bytes::<C>());
    let room = || {
        memory::check(bytes, "neighbors")?;
        let len = usize::try_from(count).unwrap_or(usize::MAX);
        let ids = memory::vec_with_capacity(len, "ids of neighbors")?;
        Ok((ids, memory::vec_with_capacity(len, "distances of neighbors")?))
    };
    room().map_err(|error: Error| error.of_result(count, bytes))
}

/// Bytes of an item of a result: an id and a distance.
pub(crate) const fn item_bytes<C>() -> u64 {
    (size_of::<u32>() + size_of::<C>()) as u64
}
