//! Hits of rays, in host and in device memory.

use crate::device::{Buffer, Gpu, Stream};
use crate::error::Result;
use crate::memory;
use crate::rows::RowItem;
use crate::rows::sealed::{RowValues, Sealed};
use kauri_kernels::rays::hits::HitsMut;
pub use kauri_kernels::rays::triangle::Hit;
use std::fmt;
use std::iter::{Map, RepeatN, Zip, repeat_n};
use std::ops::Range;

/// Hits of rays in host memory, as a structure of arrays.
///
/// [`closest_hits`](super::RayIndex::closest_hits) returns one for each ray. [`all_hits`](super::RayIndex::all_hits) returns
/// rows of hits, whose values they are.
///
/// ```
/// use kauri::mesh::shapes;
/// use kauri::rays::{Hit, Ray, RayIndex};
/// use kauri::sah::{SahOptions, SahTree};
/// use kauri::Device;
/// let square = shapes::grid(2, [1, 1])?;
/// let tree = SahTree::build(&Device::cpu(), &square, &SahOptions::default())?;
/// let down = |x: f32| Ray::new([x, 0.25, 1.0], [0.0, 0.0, -1.0]);
/// let hits = tree.closest_hits(&[down(0.5), down(7.0)])?;
/// assert_eq!(hits.triangles, [0, Hit::NO_TRIANGLE]);
/// assert_eq!(hits.t, [1.0, f32::INFINITY]);
/// assert!(hits.iter().any(|hit| hit == hits.get(0)));
/// # Ok::<(), kauri::Error>(())
/// ```
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
    pub(super) fn extend(&mut self, hits: &[Hit]) -> Result<()> {
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
    pub fn iter(&self) -> HitIter<'_> {
        HitRow { hits: self, begin: 0, end: self.len() }.iter()
    }
}

impl<'a> IntoIterator for &'a Hits {
    type Item = Hit;
    type IntoIter = HitIter<'a>;

    fn into_iter(self) -> HitIter<'a> {
        self.iter()
    }
}

impl Sealed for Hit {}

impl RowItem for Hit {
    type Values = Hits;
    type Row<'a> = HitRow<'a>;

    fn all(hits: &Hits) -> HitRow<'_> {
        HitRow { hits, begin: 0, end: hits.len() }
    }
}

/// All hits of one ray, borrowed from [`Rows`](crate::Rows). The nearest hit is first. Hits at one distance are in the order
/// of triangle ids.
///
/// ```
/// use kauri::mesh::Mesh;
/// use kauri::rays::{Ray, RayIndex};
/// use kauri::sah::{SahOptions, SahTree};
/// use kauri::Device;
/// let triangle = |z: f32| [[0.0, 0.0, z], [2.0, 0.0, z], [0.0, 2.0, z]];
/// let mesh = Mesh::new([triangle(5.0), triangle(3.0)].concat(), vec![[0, 1, 2], [3, 4, 5]])?;
/// let tree = SahTree::build(&Device::cpu(), &mesh, &SahOptions::default())?;
/// let rows = tree.all_hits(&[Ray::new([0.5, 0.5, 0.0], [0.0, 0.0, 1.0])])?;
/// let hits = rows.row(0);
/// assert_eq!(hits.len(), 2);
/// assert!(hits.iter().map(|hit| (hit.triangle, hit.t)).eq([(1, 3.0), (0, 5.0)]));
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct HitRow<'a> {
    hits: &'a Hits,
    begin: usize,
    end: usize,
}

impl<'a> HitRow<'a> {
    /// Number of hits.
    pub fn len(&self) -> usize {
        self.end - self.begin
    }

    /// True if there are no hits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Hit `i`, or `None` if there are no more than `i`.
    pub fn get(&self, i: usize) -> Option<Hit> {
        (i < self.len()).then(|| self.hits.get(self.begin + i))
    }

    /// Iterates over the hits.
    pub fn iter(&self) -> HitIter<'a> {
        (self.begin..self.end).zip(repeat_n(self.hits, self.len())).map(|(i, hits)| hits.get(i))
    }
}

impl RowValues for HitRow<'_> {
    fn part(self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.len());
        Self { begin: self.begin + range.start, end: self.begin + range.end, ..self }
    }

    fn count(self) -> usize {
        self.len()
    }
}

impl fmt::Debug for HitRow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(*self).finish()
    }
}

impl<'a> IntoIterator for HitRow<'a> {
    type Item = Hit;
    type IntoIter = HitIter<'a>;

    fn into_iter(self) -> HitIter<'a> {
        self.iter()
    }
}

/// Iterates over hits.
///
/// ```
/// # use kauri::mesh::shapes;
/// # use kauri::rays::{Hit, HitIter, Ray, RayIndex};
/// # use kauri::sah::{SahOptions, SahTree};
/// # let tree = SahTree::build(&kauri::Device::cpu(), &shapes::grid(2, [1, 1])?, &SahOptions::default())?;
/// let hits = tree.closest_hits(&[Ray::new([0.5, 0.2, 1.0], [0.0, 0.0, -1.0])])?;
/// let mut iter: HitIter = hits.iter();
/// assert_eq!(iter.next().map(|hit| hit.t), Some(1.0));
/// # Ok::<(), kauri::Error>(())
/// ```
pub type HitIter<'a> = Map<Zip<Range<usize>, RepeatN<&'a Hits>>, fn((usize, &'a Hits)) -> Hit>;

/// Hits in device memory as a structure of arrays, like [`Hits`]. Ray queries write them in the order of a stream, so that
/// a kernel can use them next.
///
/// ```no_run
/// use kauri::device::{Buffer, Device, Stream, Workspace};
/// use kauri::mesh::shapes;
/// use kauri::rays::{DeviceHits, Ray, RayIndex, RayOptions};
/// use kauri::sah::{SahOptions, SahTree};
/// let device = Device::from_name("cuda")?;
/// let gpu = device.gpu().expect("it is one");
/// let tree = SahTree::build(&device, &shapes::torus_knot([2, 3], 1000, 100)?, &SahOptions::default())?;
/// let stream = Stream::new(gpu)?;
/// let rays = Buffer::from_slice(&stream, &[Ray::new([-4.0, 0.3, 0.2], [1.0, 0.0, 0.0])], "rays")?;
/// let mut hits = DeviceHits::uninitialized(gpu, rays.len())?;
/// let options = RayOptions::default();
/// tree.closest_hits_on(&stream, &mut Workspace::new(gpu), &rays, &options, &mut hits)?;
/// println!("{:?}", hits.to_host(&stream)?);
/// # Ok::<(), kauri::Error>(())
/// ```
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
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory), or the driver's.
    pub fn uninitialized(gpu: &Gpu, len: usize) -> Result<Self> {
        let part = || Buffer::uninitialized(gpu, len, "hits of rays");
        let triangles = Buffer::uninitialized(gpu, len, "hits of rays")?;
        Ok(Self { triangles, t: part()?, u: part()?, v: part()? })
    }

    pub(crate) fn view_mut(&mut self) -> HitsMut<'_> {
        let Self { triangles, t, u, v } = self;
        HitsMut { triangles: triangles.slice_mut(), t: t.slice_mut(), u: u.slice_mut(), v: v.slice_mut() }
    }

    /// Copies the hits to host memory.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory), or the driver's.
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
