//! Hits of rays, in host and in device memory.

use crate::device::{Buffer, Gpu, Stream};
use crate::error::Result;
use crate::memory;
pub use kauri_kernels::sah::triangle::Hit;

/// Hits as a structure of arrays.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Hits {
    /// Triangle ids; [`Hit::NO_TRIANGLE`] for rays without a hit.
    pub triangles: Vec<u32>,
    /// Parameters of the hit points on the rays; infinite for rays without a hit.
    pub t: Vec<f32>,
    /// Barycentric weights of the second corners: a hit point is `(1 - u - v) * a + u * b + v * c`.
    pub u: Vec<f32>,
    /// Barycentric weights of the third corners.
    pub v: Vec<f32>,
}

impl Hits {
    /// Allocates memory for hits.
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

    /// True if there are no hits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a hit.
    ///
    /// # Panics
    /// If `i` is out of range.
    pub fn get(&self, i: usize) -> Hit {
        Hit { triangle: self.triangles[i], t: self.t[i], u: self.u[i], v: self.v[i] }
    }

    /// Iterates over the hits.
    pub fn iter(&self) -> impl Iterator<Item = Hit> + '_ {
        (0..self.len()).map(|i| self.get(i))
    }
}

/// All hits of rays, one row per ray (CSR).
#[derive(Clone, Debug, PartialEq)]
pub struct HitRows {
    pub(super) offsets: Vec<u64>,
    pub(super) hits: Hits,
}

impl HitRows {
    /// Allocates memory for the offsets of rows.
    pub(super) fn with_capacity(num_rows: usize) -> Result<Self> {
        let mut offsets = memory::vec_with_capacity(num_rows + 1, "hits of rays")?;
        offsets.push(0);
        Ok(Self { offsets, hits: Hits::default() })
    }

    /// Appends a row. Memory for its offset must be reserved.
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

    /// The start of each row in [`hits`](Self::hits), and the end of the last row.
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// The hits of all rays, row after row.
    pub fn hits(&self) -> &Hits {
        &self.hits
    }

    /// Returns the hits of a ray, sorted by `t` and triangle id.
    ///
    /// # Panics
    /// If `ray` is out of range.
    pub fn row(&self, ray: usize) -> impl Iterator<Item = Hit> + '_ {
        let (begin, end) = (self.offsets[ray] as usize, self.offsets[ray + 1] as usize);
        (begin..end).map(|i| self.hits.get(i))
    }
}

/// Hits in device memory as a structure of arrays, like [`Hits`].
#[derive(Debug)]
pub struct DeviceHits {
    /// Triangle ids; [`Hit::NO_TRIANGLE`] for rays without a hit.
    pub triangles: Buffer<u32>,
    /// Parameters of the hit points on the rays; infinite for rays without a hit.
    pub t: Buffer<f32>,
    /// Barycentric weights of the second corners.
    pub u: Buffer<f32>,
    /// Barycentric weights of the third corners.
    pub v: Buffer<f32>,
}

impl DeviceHits {
    /// Allocates memory for the hits of `len` rays, 16 bytes each, with undefined contents.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or the driver's.
    pub fn uninitialized(gpu: &Gpu, len: usize) -> Result<Self> {
        let part = || Buffer::uninitialized(gpu, len, "hits of rays");
        let triangles = Buffer::uninitialized(gpu, len, "hits of rays")?;
        Ok(Self { triangles, t: part()?, u: part()?, v: part()? })
    }

    /// Copies the hits to host memory.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or the driver's.
    pub fn to_host(&self, stream: &Stream) -> Result<Hits> {
        Ok(Hits {
            triangles: self.triangles.to_vec(stream)?,
            t: self.t.to_vec(stream)?,
            u: self.u.to_vec(stream)?,
            v: self.v.to_vec(stream)?,
        })
    }

    /// Checks devices, and that there is one element per ray.
    pub(super) fn check(&self, stream: &Stream, num_rays: usize) -> Result<()> {
        self.triangles.check(stream, "hits of rays", num_rays)?;
        [&self.t, &self.u, &self.v]
            .into_iter()
            .try_for_each(|part| part.check(stream, "hits of rays", num_rays))
    }
}
