//! What rays hit.

use crate::error::Result;
use crate::memory;
pub use kauri_kernels::sah::triangle::Hit;

/// Hits, an array for each of their parts.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Hits {
    /// The triangles; [`Hit::NO_TRIANGLE`] where there is none.
    pub triangles: Vec<u32>,
    /// How far the rays go, in their directions; infinite where they hit nothing.
    pub t: Vec<f32>,
    /// How much of the second corner is in the place: `(1 - u - v) * a + u * b + v * c`.
    pub u: Vec<f32>,
    /// How much of the third.
    pub v: Vec<f32>,
}

impl Hits {
    /// No hits, with room for some.
    pub(super) fn with_capacity(len: usize) -> Result<Self> {
        let part = || memory::vec_with_capacity(len, "hits of rays");
        let triangles = memory::vec_with_capacity(len, "hits of rays")?;
        Ok(Self { triangles, t: part()?, u: part()?, v: part()? })
    }

    pub(super) fn from_hits(hits: &[Hit]) -> Result<Self> {
        let mut all = Self::with_capacity(hits.len())?;
        all.extend(hits)?;
        Ok(all)
    }

    fn extend(&mut self, hits: &[Hit]) -> Result<()> {
        memory::reserve_more(&mut self.triangles, hits.len(), "hits of rays")?;
        for part in [&mut self.t, &mut self.u, &mut self.v] {
            memory::reserve_more(part, hits.len(), "hits of rays")?;
        }
        self.triangles.extend(hits.iter().map(|hit| hit.triangle));
        self.t.extend(hits.iter().map(|hit| hit.t));
        self.u.extend(hits.iter().map(|hit| hit.u));
        self.v.extend(hits.iter().map(|hit| hit.v));
        Ok(())
    }

    /// Number of hits.
    pub fn len(&self) -> usize {
        self.triangles.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A hit.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn get(&self, i: usize) -> Hit {
        Hit { triangle: self.triangles[i], t: self.t[i], u: self.u[i], v: self.v[i] }
    }

    /// The hits in their order.
    pub fn iter(&self) -> impl Iterator<Item = Hit> + '_ {
        (0..self.len()).map(|i| self.get(i))
    }
}

/// All hits of rays, a row a ray, one behind the other.
#[derive(Clone, Debug, PartialEq)]
pub struct HitRows {
    pub(super) offsets: Vec<u64>,
    pub(super) hits: Hits,
}

impl HitRows {
    /// No rows, with room for the offsets of some.
    pub(super) fn with_capacity(num_rows: usize) -> Result<Self> {
        let mut offsets = memory::vec_with_capacity(num_rows + 1, "hits of rays")?;
        offsets.push(0);
        Ok(Self { offsets, hits: Hits::default() })
    }

    /// Adds a row, for which there is room.
    pub(super) fn push(&mut self, row: &[Hit]) -> Result<()> {
        self.hits.extend(row)?;
        self.offsets.push(self.hits.len() as u64);
        Ok(())
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where each row begins in [`hits`](Self::hits), and where the last ends: one more than rows.
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// The hits of all rays, row after row.
    pub fn hits(&self) -> &Hits {
        &self.hits
    }

    /// The hits of a ray, from the first on; of several in one place that of the smallest triangle comes first.
    ///
    /// # Panics
    /// If there is no such ray.
    pub fn row(&self, ray: usize) -> impl Iterator<Item = Hit> + '_ {
        let (begin, end) = (self.offsets[ray] as usize, self.offsets[ray + 1] as usize);
        (begin..end).map(|i| self.hits.get(i))
    }
}
