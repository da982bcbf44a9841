//! The distance join: all pairs of points within a distance, as a count, as rows, or in batches.

use super::all_pairs::{self, AllPairs};
use super::params::{JoinParams, Lookup};
use super::rows::VisitRows;
use super::sets::{HostSets, sides_on_device};
use super::{cpu, gpu};
use crate::batches::{Batches, Delivered, Delivery};
use crate::device::{Buffer, Device, Gpu, Stream, Workspace, gpus_of};
use crate::error::Result;
use crate::point::Point;
use crate::rows::{Rows, RowsBatch};
use cuda_std::mem::Slice;
use kauri_kernels::join::cells::Pairing;
use kauri_kernels::join::curve::Curve;
use kauri_kernels::thread::coord::{Coord, Float};
use kauri_kernels::thread::measure::Norm;
use std::ops::ControlFlow;

/// Which pairs of two points of one set a self join has. A point is never paired with itself.
///
/// ```
/// use kauri::join::SelfPairs;
/// use kauri::{Device, DistanceJoin};
/// let points = [[0.0f32], [1.0], [2.0]];
/// let count = |pairs| DistanceJoin::new(1.0).self_count(&Device::cpu(), &points, pairs);
/// assert_eq!([count(SelfPairs::Once)?, count(SelfPairs::Both)?], [2, 4]);
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelfPairs {
    /// Each pair once: a point is paired with the points of smaller ids.
    Once,
    /// Each pair in both directions.
    Both,
}

impl SelfPairs {
    pub(super) fn pairing(self) -> Pairing {
        match self {
            Self::Once => Pairing::Once,
            Self::Both => Pairing::Both,
        }
    }
}

/// Distance join: all pairs of a left and a right point within a distance, or of two points of one set.
///
/// | method | result | of one set | in device memory |
/// |---|---|---|---|
/// | [`count`](Self::count) | the number of pairs | [`self_count`](Self::self_count) | [`count_on`](Self::count_on) |
/// | [`estimate`](Self::estimate) | an estimate of this number | [`self_estimate`](Self::self_estimate) | |
/// | [`rows`](Self::rows) | a row of right ids for each left point | [`self_rows`](Self::self_rows) | [`rows_on`](Self::rows_on) |
/// | [`rows_batches`](Self::rows_batches) | the rows, part by part | [`self_rows_batches`](Self::self_rows_batches) | |
/// | [`plan`](Self::plan) | method and memory of `rows` | | |
///
/// ```
/// use kauri::join::SelfPairs;
/// use kauri::{Device, DistanceJoin};
/// let trees = [[0.0f32, 0.0], [1.0, 0.0], [5.0, 5.0]];
/// let lamps = [[0.5f32, 0.0], [5.0, 6.0], [9.0, 9.0]];
/// let join = DistanceJoin::new(1.0);
/// assert_eq!(join.count(&Device::cpu(), &trees, &lamps)?, 3);
/// let found = join.rows(&Device::cpu(), &trees, &lamps)?;
/// assert_eq!([found.row(0), found.row(1), found.row(2)], [&[0][..], &[0], &[1]]);
/// assert_eq!(join.self_count(&Device::cpu(), &trees, SelfPairs::Once)?, 1);
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct DistanceJoin<C> {
    epsilon: C,
    norm: Norm,
    curve: Curve,
    lookup: Lookup,
}

impl<C: Float> DistanceJoin<C> {
    /// Creates a join of pairs within `epsilon`, inclusive. For [`LonLat`](crate::LonLat) `epsilon` is in meters.
    pub fn new(epsilon: C) -> Self {
        Self { epsilon, norm: Norm::Euclidean, curve: Curve::Linear, lookup: Lookup::Points }
    }

    setters! {
        /// Sets the norm of distances.
        norm: Norm;

        /// Sets the order of the cells of the grid, which determines the order of ids in a row.
        curve: Curve;

        /// Sets how a GPU finds the points of cells; results do not depend on it.
        #[cfg(feature = "research")]
        lookup: Lookup;
    }

    /// Counts the pairs.
    ///
    /// # Errors
    /// The errors of [`KdTree::build`](crate::KdTree::build) for points;
    /// [`Error::InvalidLength`](crate::Error::InvalidLength) for a distance that is negative or NaN;
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory), or the driver's.
    pub fn count<P: Point<Coord: Coord<Distance = C>>>(
        &self,
        device: &Device,
        left: &[P],
        right: &[P],
    ) -> Result<u64> {
        self.count_sets(device, HostSets::two(left, right))
    }

    /// Counts the pairs of two points of one set.
    ///
    /// # Errors
    /// The errors of [`count`](Self::count).
    pub fn self_count<P: Point<Coord: Coord<Distance = C>>>(
        &self,
        device: &Device,
        points: &[P],
        pairs: SelfPairs,
    ) -> Result<u64> {
        self.count_sets(device, HostSets::one(points, pairs.pairing()))
    }

    /// Counts the pairs on several GPUs. Each one holds the whole right set, and counts the pairs of an equal part of the left set.
    ///
    /// # Errors
    /// The errors of [`count`](Self::count), and those of [`BalancedKdTree::build_over`](crate::balanced::BalancedKdTree::build_over) for
    /// the list of devices.
    pub fn count_over<P: Point<Coord: Coord<Distance = C>>>(
        &self,
        devices: &[Device],
        left: &[P],
        right: &[P],
    ) -> Result<u64> {
        let gpus = gpus_of("devices to join on", devices)?;
        let sets = HostSets::two(left, right);
        let params = self.params::<P>(sets.pairing)?;
        sets.join(&devices[0], |sides| gpu::count_over(&gpus, sides, &params))
    }

    /// Counts the pairs of two points of one set on several GPUs, as [`count_over`](Self::count_over).
    ///
    /// # Errors
    /// The errors of [`count_over`](Self::count_over).
    pub fn self_count_over<P: Point<Coord: Coord<Distance = C>>>(
        &self,
        devices: &[Device],
        points: &[P],
        pairs: SelfPairs,
    ) -> Result<u64> {
        // Parts have ids of their own. Each point is within the distance of itself, so it is one pair too many.
        let count = self.count_over(devices, points, points)? - points.len() as u64;
        Ok(match pairs {
            SelfPairs::Once => count / 2,
            SelfPairs::Both => count,
        })
    }

    /// Estimates the number of pairs from the pairs of about `sample` left points, evenly spaced by id. The result is exact if there
    /// are no more left points.
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
    /// The errors of [`count`](Self::count).
    pub fn estimate<P: Point<Coord: Coord<Distance = C>>>(
        &self,
        device: &Device,
        left: &[P],
        right: &[P],
        sample: usize,
    ) -> Result<u64> {
        self.estimate_sets(device, HostSets::two(left, right), sample)
    }

    /// Estimates the number of pairs of two points of one set, as [`estimate`](Self::estimate).
    ///
    /// # Errors
    /// The errors of [`count`](Self::count).
    pub fn self_estimate<P: Point<Coord: Coord<Distance = C>>>(
        &self,
        device: &Device,
        points: &[P],
        pairs: SelfPairs,
        sample: usize,
    ) -> Result<u64> {
        self.estimate_sets(device, HostSets::one(points, pairs.pairing()), sample)
    }

    /// Finds the pairs: for each left point a row with the ids of the right points near it, without distances.
    ///
    /// The ids of a row are in the order of cells, on every device. Memory: 4 bytes per pair and 8 per left point; on the CPU, while it
    /// runs, up to 4 more bytes per pair, limited to 64 MiB or 128 bytes per left point, whichever is larger.
    ///
    /// # Errors
    /// The errors of [`count`](Self::count), and [`Error::ResultTooLarge`](crate::Error::ResultTooLarge) with the number of pairs.
    pub fn rows<P: Point<Coord: Coord<Distance = C>>>(
        &self,
        device: &Device,
        left: &[P],
        right: &[P],
    ) -> Result<Rows> {
        self.rows_of_sets(device, HostSets::two(left, right))
    }

    /// Finds the pairs of two points of one set: for each point a row with the ids of the other points near it.
    ///
    /// # Errors
    /// The errors of [`rows`](Self::rows).
    pub fn self_rows<P: Point<Coord: Coord<Distance = C>>>(
        &self,
        device: &Device,
        points: &[P],
        pairs: SelfPairs,
    ) -> Result<Rows> {
        self.rows_of_sets(device, HostSets::one(points, pairs.pairing()))
    }

    /// Finds the pairs as [`rows`](Self::rows), and delivers the rows in batches, in order. The number of pairs may exceed 2^32 and
    /// memory.
    ///
    /// Memory: that of [`Batches`]; on a GPU also the right points in the order of cells. The left points are uploaded batch by batch.
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
    /// The errors of [`count`](Self::count), before any batch if they concern points; [`Error::RowTooLarge`](crate::Error::RowTooLarge)
    /// for the first row that exceeds a batch, after the rows before it have been delivered.
    pub fn rows_batches<P: Point<Coord: Coord<Distance = C>>>(
        &self,
        device: &Device,
        left: &[P],
        right: &[P],
        batches: &mut Batches<'_>,
        callback: impl FnMut(RowsBatch<'_>) -> ControlFlow<()>,
    ) -> Result<Delivered> {
        self.deliver_sets(device, HostSets::two(left, right), batches, callback)
    }

    /// Finds the pairs as [`self_rows`](Self::self_rows), and delivers them in batches as [`rows_batches`](Self::rows_batches).
    ///
    /// # Errors
    /// The errors of [`rows_batches`](Self::rows_batches).
    pub fn self_rows_batches<P: Point<Coord: Coord<Distance = C>>>(
        &self,
        device: &Device,
        points: &[P],
        pairs: SelfPairs,
        batches: &mut Batches<'_>,
        callback: impl FnMut(RowsBatch<'_>) -> ControlFlow<()>,
    ) -> Result<Delivered> {
        self.deliver_sets(device, HostSets::one(points, pairs.pairing()), batches, callback)
    }

    /// Counts the pairs of two sets of points of type `P` in the memory of a GPU, or of the left set with itself, each pair in both
    /// directions. Coordinates must be finite; this is not checked.
    ///
    /// # Errors
    /// [`Error::WrongDevice`](crate::Error::WrongDevice), and the errors of [`count`](Self::count) that do not concern points.
    pub fn count_on<P: Point<Coord: Coord<Distance = C>>>(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        left: &Buffer<C>,
        right: Option<&Buffer<C>>,
    ) -> Result<u64> {
        let params = self.params::<P>(pairing_of(right))?;
        gpu::count(stream, workspace, sides_on_device(stream, P::DIMS, left, right)?, &params)
    }

    /// Finds the pairs of sets as in [`count_on`](Self::count_on). Returns the offsets and ids of [`rows`](Self::rows) in the memory of
    /// the GPU.
    ///
    /// # Errors
    /// The errors of [`count_on`](Self::count_on), and [`Error::ResultTooLarge`](crate::Error::ResultTooLarge).
    pub fn rows_on<P: Point<Coord: Coord<Distance = C>>>(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        left: &Buffer<C>,
        right: Option<&Buffer<C>>,
    ) -> Result<(Buffer<u64>, Buffer<u32>)> {
        let params = self.params::<P>(pairing_of(right))?;
        gpu::rows(stream, workspace, sides_on_device(stream, P::DIMS, left, right)?, &params)
    }

    fn count_sets<P: Point<Coord: Coord<Distance = C>>>(
        &self,
        device: &Device,
        sets: HostSets<'_, P>,
    ) -> Result<u64> {
        let _span = tracing::debug_span!("distance_join_count", left = sets.left.len()).entered();
        let params = self.params::<P>(sets.pairing)?;
        sets.join(device, |sides| all_pairs::count(device, sides, &params))
    }

    fn estimate_sets<P: Point<Coord: Coord<Distance = C>>>(
        &self,
        device: &Device,
        sets: HostSets<'_, P>,
        sample: usize,
    ) -> Result<u64> {
        let params = self.params::<P>(sets.pairing)?;
        all_pairs::estimate(device, sets.validate()?.slices(), sample, &params)
    }

    fn rows_of_sets<P: Point<Coord: Coord<Distance = C>>>(
        &self,
        device: &Device,
        sets: HostSets<'_, P>,
    ) -> Result<Rows> {
        let _span = tracing::debug_span!("distance_join_rows", left = sets.left.len()).entered();
        let params = self.params::<P>(sets.pairing)?;
        sets.join(device, |sides| all_pairs::rows(device, sides, &params))
    }

    fn deliver_sets<P: Point<Coord: Coord<Distance = C>>>(
        &self,
        device: &Device,
        sets: HostSets<'_, P>,
        batches: &mut Batches<'_>,
        callback: impl FnMut(RowsBatch<'_>) -> ControlFlow<()>,
    ) -> Result<Delivered> {
        let _span = tracing::debug_span!("distance_join_batches", left = sets.left.len()).entered();
        let params = self.params::<P>(sets.pairing)?;
        all_pairs::rows_batches(device, sets.validate()?.slices(), &params, batches, callback)
    }

    pub(super) fn params<P: Point<Coord: Coord<Distance = C>>>(
        &self,
        pairing: Pairing,
    ) -> Result<JoinParams<C>> {
        let params = JoinParams::new::<P>(self.epsilon, self.norm, self.curve, pairing)?;
        Ok(JoinParams { lookup: self.lookup, ..params })
    }
}

/// Returns the pairs of a join with the right set, or of the left set with itself.
pub(super) fn pairing_of<T>(right: Option<T>) -> Pairing {
    if right.is_some() { Pairing::All } else { Pairing::Both }
}

impl<C: Float> AllPairs for JoinParams<C> {
    type Coord = C;

    fn width(&self) -> usize {
        self.dims
    }

    fn pairing(&self) -> Pairing {
        self.pairing
    }

    fn of_sample(&self) -> Self {
        Self { pairing: Pairing::All, ..*self }
    }

    fn count_on_cpu(&self, sides: [&[C]; 2]) -> Result<u64> {
        cpu::count(sides, self)
    }

    fn rows_on_cpu(&self, sides: [&[C]; 2]) -> Result<Rows> {
        cpu::rows(sides, self)
    }

    fn deliver_on_cpu(
        &self,
        sides: [&[C]; 2],
        delivery: &mut Delivery<'_, '_>,
        visit: &mut VisitRows<'_>,
    ) -> Result<ControlFlow<()>> {
        cpu::deliver(sides, self, delivery, visit)
    }

    fn count_on_gpu(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        sides: [Slice<'_, C>; 2],
    ) -> Result<u64> {
        gpu::count(stream, workspace, sides, self)
    }

    fn rows_on_gpu(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        sides: [Slice<'_, C>; 2],
    ) -> Result<(Buffer<u64>, Buffer<u32>)> {
        gpu::rows(stream, workspace, sides, self)
    }

    fn deliver_on_gpu(
        &self,
        gpu: &Gpu,
        sides: [&[C]; 2],
        delivery: &mut Delivery<'_, '_>,
        visit: &mut VisitRows<'_>,
    ) -> Result<ControlFlow<()>> {
        gpu::deliver(gpu, sides, self, delivery, visit)
    }
}
