//! All pairs within a distance of each other.

use super::estimate::Sample;
use super::top_k::check_count;
use super::{Curve, Lookup, Near, Norm, cpu, gpu};
use crate::batches::{Batches, Delivered, Delivery};
use crate::device::{Buffer, Device, Stream, Workspace};
use crate::error::Result;
use crate::memory;
use crate::point::{Point, checked_coordinates};
use crate::rows::{Rows, RowsBatch};
use kauri_kernels::join::cells::Pairing;
use kauri_kernels::thread::coord::Coord;
use std::ops::ControlFlow;

/// Takes the rows from one on: their offsets and ids.
pub(super) type ShowRows<'s> = dyn FnMut(usize, &[u64], &[u32]) -> ControlFlow<()> + 's;

/// All pairs of a left and a right point within a distance of each other, or of two points of one set.
///
/// ```
/// use kauri::{Device, DistanceJoin};
/// let trees = [[0.0f32, 0.0], [1.0, 0.0], [5.0, 5.0]];
/// let lamps = [[0.5f32, 0.0], [5.0, 6.0], [9.0, 9.0]];
/// let join = DistanceJoin::new(1.0);
/// assert_eq!(join.count(&Device::cpu(), &trees, &lamps)?, 3);
/// let found = join.rows(&Device::cpu(), &trees, &lamps)?;
/// assert_eq!([found.row(0), found.row(1), found.row(2)], [&[0][..], &[0], &[1]]);
/// // Pairs of trees, each once.
/// assert_eq!(join.self_count(&Device::cpu(), &trees, true)?, 1);
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct DistanceJoin<C> {
    epsilon: C,
    norm: Norm,
    curve: Curve,
    lookup: Lookup,
}

impl<C: Coord> DistanceJoin<C> {
    /// Pairs within `epsilon`, inclusive. For [`LonLat`](crate::LonLat) `epsilon` is in meters.
    pub fn new(epsilon: C) -> Self {
        Self { epsilon, norm: Norm::Euclidean, curve: Curve::Linear, lookup: Lookup::Points }
    }

    /// With distances by this norm.
    pub fn norm(mut self, norm: Norm) -> Self {
        self.norm = norm;
        self
    }

    /// With the cells of the grid in this order; the rows are the same, the order of ids in a row is not.
    pub fn curve(mut self, curve: Curve) -> Self {
        self.curve = curve;
        self
    }

    /// With the points of cells found so on a GPU; results do not depend on it.
    pub fn lookup(mut self, lookup: Lookup) -> Self {
        self.lookup = lookup;
        self
    }

    /// How many pairs there are.
    ///
    /// # Errors
    /// Those of points as of [`KdTree::build`](crate::KdTree::build);
    /// [`Error::InvalidLength`](crate::Error::InvalidLength) for a distance that is negative or NaN;
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory), or the driver's.
    pub fn count<P: Point<Coord = C>>(&self, device: &Device, left: &[P], right: &[P]) -> Result<u64> {
        self.counted(device, left, Some(right), Pairing::All)
    }

    /// How many pairs of two points of one set there are: each both ways, or `once`. A point is no pair with itself.
    ///
    /// # Errors
    /// Those of [`count`](Self::count).
    pub fn self_count<P: Point<Coord = C>>(&self, device: &Device, points: &[P], once: bool) -> Result<u64> {
        self.counted(device, points, None, of_one(once))
    }

    /// How many pairs there are likely to be, by the pairs of about `sample` of the left points, which are spread evenly over all; all
    /// are counted if there are no more.
    ///
    /// ```
    /// use kauri::{Device, DistanceJoin};
    /// let points: Vec<[f32; 1]> = (0..1000).map(|x| [x as f32]).collect();
    /// let (join, device) = (DistanceJoin::new(2.0), Device::cpu());
    /// let estimate = join.estimate(&device, &points, &points, 100)?;
    /// assert!((4900..=5100).contains(&estimate) && join.count(&device, &points, &points)? == 4994);
    /// # Ok::<(), kauri::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`count`](Self::count).
    pub fn estimate<P: Point<Coord = C>>(
        &self,
        device: &Device,
        left: &[P],
        right: &[P],
        sample: usize,
    ) -> Result<u64> {
        self.estimated(device, left, Some(right), Pairing::All, sample)
    }

    /// [`estimate`](Self::estimate) of the pairs of two points of one set.
    ///
    /// # Errors
    /// Those of [`count`](Self::count).
    pub fn self_estimate<P: Point<Coord = C>>(
        &self,
        device: &Device,
        points: &[P],
        once: bool,
        sample: usize,
    ) -> Result<u64> {
        self.estimated(device, points, None, of_one(once), sample)
    }

    /// The right points near each left point, a row of their ids each.
    ///
    /// Ids of a row are in the order of cells, which is the same on every device. Memory: 4 bytes a pair, 8 a left point;
    /// on the CPU, while it runs, up to 4 more a pair, but no more than 64 MiB or 128 bytes a left point.
    ///
    /// # Errors
    /// Those of [`count`](Self::count), and [`Error::ResultTooLarge`](crate::Error::ResultTooLarge) with the number of pairs.
    pub fn rows<P: Point<Coord = C>>(&self, device: &Device, left: &[P], right: &[P]) -> Result<Rows> {
        self.found(device, left, Some(right), Pairing::All)
    }

    /// The other points near each point of one set; if pairs are wanted `once`, those with a smaller id.
    ///
    /// # Errors
    /// Those of [`rows`](Self::rows).
    pub fn self_rows<P: Point<Coord = C>>(&self, device: &Device, points: &[P], once: bool) -> Result<Rows> {
        self.found(device, points, None, of_one(once))
    }

    /// The right points near each left point, as [`rows`](Self::rows), in batches, in order. There may be any number, also more than 2^32.
    ///
    /// Memory: that of [`Batches`]; of a GPU also the right points in the order of cells. The left points come and go.
    ///
    /// ```
    /// use kauri::{Batches, Device, DistanceJoin};
    /// use std::ops::ControlFlow;
    /// let points: Vec<[f32; 1]> = (0..100).map(|x| [x as f32]).collect();
    /// let mut pairs = 0;
    /// let mut batches = Batches::new().rows(30);
    /// DistanceJoin::new(1.0).rows_batches(&Device::cpu(), &points, &points, &mut batches, |batch| {
    ///     pairs += batch.rows().map(|row| batch.row(row).len()).sum::<usize>();
    ///     ControlFlow::Continue(())
    /// })?;
    /// assert_eq!(pairs, 298);
    /// # Ok::<(), kauri::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`count`](Self::count), of points before any batch; [`Error::RowTooLarge`](crate::Error::RowTooLarge) for the first row
    /// that a batch has no room for, when those before it have been delivered.
    pub fn rows_batches<P: Point<Coord = C>>(
        &self,
        device: &Device,
        left: &[P],
        right: &[P],
        batches: &mut Batches<'_>,
        look: impl FnMut(RowsBatch<'_>) -> ControlFlow<()>,
    ) -> Result<Delivered> {
        self.delivered(device, left, Some(right), Pairing::All, batches, look)
    }

    /// [`self_rows`](Self::self_rows) in batches, as [`rows_batches`](Self::rows_batches).
    ///
    /// # Errors
    /// Those of [`rows_batches`](Self::rows_batches).
    pub fn self_rows_batches<P: Point<Coord = C>>(
        &self,
        device: &Device,
        points: &[P],
        once: bool,
        batches: &mut Batches<'_>,
        look: impl FnMut(RowsBatch<'_>) -> ControlFlow<()>,
    ) -> Result<Delivered> {
        self.delivered(device, points, None, of_one(once), batches, look)
    }

    fn delivered<P: Point<Coord = C>>(
        &self,
        device: &Device,
        left: &[P],
        right: Option<&[P]>,
        pairing: Pairing,
        batches: &mut Batches<'_>,
        mut look: impl FnMut(RowsBatch<'_>) -> ControlFlow<()>,
    ) -> Result<Delivered> {
        let _span = tracing::debug_span!("distance_join_batches", left = left.len()).entered();
        let near = self.near::<P>(pairing)?;
        with_sets(left, right, |coords| {
            Delivery::run(batches, device, left.len(), |delivery| {
                let show = &mut |first: usize, offsets: &[u64], ids: &[u32]| {
                    look(RowsBatch::new(first, offsets, ids))
                };
                match device.gpu() {
                    None => cpu::deliver(P::DIMS, coords, &near, delivery, show),
                    Some(gpu) => gpu::deliver(gpu, P::DIMS, coords, &near, delivery, show),
                }
            })
        })
    }

    /// [`count`](Self::count) of sets of points of type `P` in the memory of a GPU, or of the left one with itself, each pair both
    /// ways. Coordinates have to be finite, which nobody checks.
    ///
    /// # Errors
    /// [`Error::WrongDevice`](crate::Error::WrongDevice), and those of [`count`](Self::count) that are not of points.
    pub fn count_on<P: Point<Coord = C>>(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        left: &Buffer<C>,
        right: Option<&Buffer<C>>,
    ) -> Result<u64> {
        let near = self.near::<P>(if right.is_some() { Pairing::All } else { Pairing::Both })?;
        let sets = sets_on(stream, P::DIMS, left, right)?;
        gpu::count(stream, workspace, P::DIMS, sets, &near)
    }

    /// [`rows`](Self::rows) of sets in the memory of a GPU, as offsets and ids there; as [`count_on`](Self::count_on).
    ///
    /// # Errors
    /// Those of [`count_on`](Self::count_on), and [`Error::ResultTooLarge`](crate::Error::ResultTooLarge).
    pub fn rows_on<P: Point<Coord = C>>(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        left: &Buffer<C>,
        right: Option<&Buffer<C>>,
    ) -> Result<(Buffer<u64>, Buffer<u32>)> {
        let near = self.near::<P>(if right.is_some() { Pairing::All } else { Pairing::Both })?;
        let sets = sets_on(stream, P::DIMS, left, right)?;
        gpu::rows(stream, workspace, P::DIMS, sets, &near)
    }

    fn estimated<P: Point<Coord = C>>(
        &self,
        device: &Device,
        left: &[P],
        right: Option<&[P]>,
        pairing: Pairing,
        sample: usize,
    ) -> Result<u64> {
        let near = self.near::<P>(pairing)?;
        with_sets(left, right, |[set, rows_of]| {
            let sample = Sample::new(P::DIMS, rows_of, sample, &near)?;
            let count = count_in(device, P::DIMS, [set, &sample.coords], &sample.near(&near))?;
            Ok(sample.of_all(count, left.len()))
        })
    }

    fn counted<P: Point<Coord = C>>(
        &self,
        device: &Device,
        left: &[P],
        right: Option<&[P]>,
        pairing: Pairing,
    ) -> Result<u64> {
        let _span = tracing::debug_span!("distance_join_count", left = left.len()).entered();
        let near = self.near::<P>(pairing)?;
        with_sets(left, right, |coords| count_in(device, P::DIMS, coords, &near))
    }

    fn found<P: Point<Coord = C>>(
        &self,
        device: &Device,
        left: &[P],
        right: Option<&[P]>,
        pairing: Pairing,
    ) -> Result<Rows> {
        let _span = tracing::debug_span!("distance_join_rows", left = left.len()).entered();
        let near = self.near::<P>(pairing)?;
        with_sets(left, right, |coords| match device.gpu() {
            None => cpu::rows(P::DIMS, coords, &near),
            Some(gpu) => {
                let stream = Stream::new(gpu)?;
                let sets = Uploaded::new(&stream, coords, near.is_one())?;
                let mut workspace = Workspace::new(gpu);
                let (offsets, ids) = gpu::rows(&stream, &mut workspace, P::DIMS, sets.slices(), &near)?;
                let (count, bytes) = (ids.len() as u64, (ids.len() * size_of::<u32>()) as u64);
                memory::check(bytes, "pairs of a join").map_err(|error| error.of_result(count, bytes))?;
                Ok(Rows::new(offsets.to_vec(&stream)?, ids.to_vec(&stream)?))
            }
        })
    }

    pub(super) fn near<P: Point<Coord = C>>(&self, pairing: Pairing) -> Result<Near<C>> {
        Ok(Near { lookup: self.lookup, ..Near::new::<P>(self.epsilon, self.norm, self.curve, pairing)? })
    }
}

/// Counts the pairs of sets in host memory.
fn count_in<C: Coord>(device: &Device, dims: usize, coords: [&[C]; 2], near: &Near<C>) -> Result<u64> {
    let Some(gpu) = device.gpu() else { return cpu::count(dims, coords, near) };
    let stream = Stream::new(gpu)?;
    let sets = Uploaded::new(&stream, coords, near.is_one())?;
    gpu::count(&stream, &mut Workspace::new(gpu), dims, sets.slices(), near)
}

fn of_one(once: bool) -> Pairing {
    if once { Pairing::Once } else { Pairing::Both }
}

/// Calls `run` with the coordinates of the set that is looked in, the right one, and of the set that has the rows, the left one.
pub(super) fn with_sets<P: Point, R>(
    left: &[P],
    right: Option<&[P]>,
    run: impl FnOnce([&[P::Coord]; 2]) -> Result<R>,
) -> Result<R> {
    check_count(left.len())?;
    let rows = checked_coordinates(left, if right.is_some() { "left point" } else { "point" })?;
    match right {
        None => run([&rows, &rows]),
        Some(right) => {
            check_count(right.len())?;
            run([&checked_coordinates(right, "right point")?, &rows])
        }
    }
}

/// Sets that were brought to the device; one if both are the same.
struct Uploaded<C> {
    of_rows: Buffer<C>,
    other: Option<Buffer<C>>,
}

impl<C: Coord> Uploaded<C> {
    fn new(stream: &Stream, coords: [&[C]; 2], is_one: bool) -> Result<Self> {
        let buffer = |coords: &[C]| Buffer::from_slice(stream, coords, "points of a join");
        let other = if is_one { None } else { Some(buffer(coords[0])?) };
        Ok(Self { of_rows: buffer(coords[1])?, other })
    }

    fn slices(&self) -> [cuda_std::mem::Slice<'_, C>; 2] {
        [self.other.as_ref().unwrap_or(&self.of_rows).slice(), self.of_rows.slice()]
    }
}

/// Sets in the memory of a GPU: the one that is looked in, and the one that has the rows.
pub(super) fn sets_on<'a, C: Coord>(
    stream: &Stream,
    dims: usize,
    left: &'a Buffer<C>,
    right: Option<&'a Buffer<C>>,
) -> Result<[cuda_std::mem::Slice<'a, C>; 2]> {
    for set in [left, right.unwrap_or(left)] {
        check_count(set.len() / dims)?;
        set.check(stream, "coordinates of the points", set.len() / dims * dims)?;
    }
    Ok([right.unwrap_or(left).slice(), left.slice()])
}
