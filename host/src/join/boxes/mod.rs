//! The box join: all pairs of boxes that intersect, are within a distance, or of which one contains the other.

mod cpu;
#[cfg(feature = "research")]
mod flat_grid;
mod gpu;
mod grid;
mod method;
#[cfg(feature = "research")]
pub(crate) mod options;
mod params;
mod plan;
mod sets;
mod top_k;

use super::all_pairs::{self, AllPairs};
use super::distance::{SelfPairs, pairing_of};
use super::rows::VisitRows;
use super::sets::{HostSets, sides_on_device};
use crate::batches::{Batches, Delivered, Delivery};
use crate::device::{Buffer, Device, Gpu, Stream, Workspace};
use crate::error::Result;
use crate::point::Cartesian;
use crate::rows::{Rows, RowsBatch};
use cuda_std::mem::{Slice, SliceMut};
#[cfg(feature = "research")]
pub use gpu::BoxPhase;
use kauri_kernels::join::boxes::geometry::Predicate;
use kauri_kernels::join::cells::Pairing;
use kauri_kernels::thread::coord::{Coord, Float};
use kauri_kernels::thread::measure::Norm;
pub use method::BoxMethod;
#[cfg(feature = "research")]
use options::BoxMethodOptions;
use params::BoxParams;
use sets::checked_sets;
use std::ops::ControlFlow;
pub use top_k::TopKBoxJoin;

/// Box join: all pairs of a left and a right box that intersect, are within a distance, or of which the left one contains the right one.
///
/// A box is its low and its high corner, `[P; 2]`; both belong to the box, so that boxes that touch intersect, and a box may be a point.
/// A box whose low corner is above its high corner on an axis makes no pairs.
///
/// | method | result | of one set | in device memory |
/// |---|---|---|---|
/// | [`count`](Self::count) | the number of pairs | [`self_count`](Self::self_count) | [`count_on`](Self::count_on) |
/// | [`estimate`](Self::estimate) | an estimate of this number | [`self_estimate`](Self::self_estimate) | |
/// | [`rows`](Self::rows) | a row of right ids, ascending, for each left box | [`self_rows`](Self::self_rows) | [`rows_on`](Self::rows_on) |
/// | [`rows_batches`](Self::rows_batches) | the rows, part by part | [`self_rows_batches`](Self::self_rows_batches) | |
/// | [`pairs_on`](Self::pairs_on) | a list of (left, right) ids | | in a buffer of the caller |
/// | [`plan`](Self::plan) | method and memory of `rows` | | |
///
/// Results do not depend on the device or the [`BoxMethod`], except that the pairs of `pairs_on` are in no particular order.
///
/// ```
/// use kauri::{BoxJoin, Device};
/// let parcels = [[[0.0f32, 0.0], [2.0, 2.0]], [[3.0, 0.0], [4.0, 1.0]], [[8.0, 8.0], [9.0, 9.0]]];
/// let roads = [[[1.0f32, 1.5], [3.5, 1.6]], [[3.0, 1.0], [3.5, 1.2]]];
/// let device = Device::cpu();
///
/// let crossing = BoxJoin::intersects().rows(&device, &parcels, &roads)?;
/// assert_eq!([crossing.row(0), crossing.row(1), crossing.row(2)], [&[0][..], &[1], &[]]);
/// assert_eq!(BoxJoin::within(1.0).count(&device, &parcels, &roads)?, 4);
/// assert_eq!(BoxJoin::contains().count(&device, &parcels, &[[[0.5, 0.5], [1.0, 2.0]]])?, 1);
/// # Ok::<(), kauri::Error>(())
/// ```
///
/// # Method
/// Both sets are sorted by the cells of a grid with several levels. The cells of a level are four times as long as the cells of the level
/// below. Each box is stored once: at the lowest level where it touches at most two cells along each axis, in the low one of these cells
/// (Koudas, Sevcik 1997, *Size separation spatial join*). On the CPU the left boxes search the cells around them at all levels. On a GPU the
/// larger of two boxes searches for the other, or the smaller one if their levels are far apart. [`BoxMethod`] lists other methods. Distances
/// are compared as in a [`DistanceJoin`](super::DistanceJoin): for boxes that are points the pairs are the same.
///
/// Memory: up to 64 bytes per box of two dimensions, and 4 bytes per pair; while rows are sorted, up to 4 more.
#[derive(Clone, Debug)]
pub struct BoxJoin<C> {
    predicate: Predicate,
    epsilon: C,
    norm: Norm,
    method: BoxMethod,
    #[cfg(feature = "research")]
    options: BoxMethodOptions,
}

impl<C: Float> BoxJoin<C> {
    /// Creates a join of boxes that intersect, that is have a common point.
    pub fn intersects() -> Self {
        Self::new(Predicate::Intersects, C::ZERO)
    }

    /// Creates a join of left boxes that contain right boxes. Borders may touch, and equal boxes contain each other.
    pub fn contains() -> Self {
        Self::new(Predicate::Contains, C::ZERO)
    }

    /// Creates a join of boxes whose distance is at most `epsilon`. The distance of two boxes is that of their nearest points; it is 0 if
    /// they intersect.
    pub fn within(epsilon: C) -> Self {
        Self::new(Predicate::Within, epsilon)
    }

    fn new(predicate: Predicate, epsilon: C) -> Self {
        Self {
            predicate,
            epsilon,
            norm: Norm::Euclidean,
            method: BoxMethod::Auto,
            #[cfg(feature = "research")]
            options: BoxMethodOptions::default(),
        }
    }

    setters! {
        /// Sets the norm of distances, for [`within`](Self::within).
        norm: Norm;

        /// Sets the method on a GPU; results do not depend on it.
        method: BoxMethod;

        /// Sets the options of the methods that reproduce published works; see [`research::join`](crate::research::join).
        #[cfg(feature = "research")]
        options: BoxMethodOptions;
    }

    /// Counts the pairs.
    ///
    /// # Errors
    /// [`Error::NonFinite`](crate::Error::NonFinite) and [`Error::CoordinateTooLarge`](crate::Error::CoordinateTooLarge) with box, corner
    /// and axis; [`Error::TooManyItems`](crate::Error::TooManyItems) for 2^32 - 1 boxes or more of a set;
    /// [`Error::InvalidLength`](crate::Error::InvalidLength) for a distance that is negative or NaN;
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory), or the driver's.
    pub fn count<P: Cartesian<Coord: Coord<Distance = C>>>(
        &self,
        device: &Device,
        left: &[[P; 2]],
        right: &[[P; 2]],
    ) -> Result<u64> {
        self.count_sets(device, HostSets::two(left, right))
    }

    /// Counts the pairs of two boxes of one set. A box is never paired with itself.
    ///
    /// # Errors
    /// The errors of [`count`](Self::count).
    pub fn self_count<P: Cartesian<Coord: Coord<Distance = C>>>(
        &self,
        device: &Device,
        boxes: &[[P; 2]],
        pairs: SelfPairs,
    ) -> Result<u64> {
        self.count_sets(device, HostSets::one(boxes, pairs.pairing()))
    }

    /// Estimates the number of pairs from the pairs of about `sample` left boxes, evenly spaced by id. The result is exact if there are
    /// no more left boxes.
    ///
    /// # Errors
    /// The errors of [`count`](Self::count).
    pub fn estimate<P: Cartesian<Coord: Coord<Distance = C>>>(
        &self,
        device: &Device,
        left: &[[P; 2]],
        right: &[[P; 2]],
        sample: usize,
    ) -> Result<u64> {
        self.estimate_sets(device, HostSets::two(left, right), sample)
    }

    /// Estimates the number of pairs of two boxes of one set, as [`estimate`](Self::estimate).
    ///
    /// # Errors
    /// The errors of [`count`](Self::count).
    pub fn self_estimate<P: Cartesian<Coord: Coord<Distance = C>>>(
        &self,
        device: &Device,
        boxes: &[[P; 2]],
        pairs: SelfPairs,
        sample: usize,
    ) -> Result<u64> {
        self.estimate_sets(device, HostSets::one(boxes, pairs.pairing()), sample)
    }

    /// Finds the pairs: for each left box a row with the ids of its right boxes, ascending.
    ///
    /// # Errors
    /// The errors of [`count`](Self::count), and [`Error::ResultTooLarge`](crate::Error::ResultTooLarge) with the number of pairs.
    pub fn rows<P: Cartesian<Coord: Coord<Distance = C>>>(
        &self,
        device: &Device,
        left: &[[P; 2]],
        right: &[[P; 2]],
    ) -> Result<Rows> {
        self.rows_of_sets(device, HostSets::two(left, right))
    }

    /// Finds the pairs of two boxes of one set: for each box a row with the ids of the other boxes. A row is that of the left box of its
    /// pairs. For [`SelfPairs::Once`] it has only smaller ids; of two boxes of which one contains the other, such a join finds the pair
    /// only if the larger box has the greater id.
    ///
    /// # Errors
    /// The errors of [`rows`](Self::rows).
    pub fn self_rows<P: Cartesian<Coord: Coord<Distance = C>>>(
        &self,
        device: &Device,
        boxes: &[[P; 2]],
        pairs: SelfPairs,
    ) -> Result<Rows> {
        self.rows_of_sets(device, HostSets::one(boxes, pairs.pairing()))
    }

    /// Finds the pairs as [`rows`](Self::rows), and delivers the rows in batches, in order. The number of pairs may exceed 2^32 and
    /// memory.
    ///
    /// Memory: that of [`Batches`]; on a GPU also the right boxes. The left boxes are uploaded batch by batch.
    ///
    /// # Errors
    /// The errors of [`count`](Self::count), before any batch if they concern boxes; [`Error::RowTooLarge`](crate::Error::RowTooLarge)
    /// for the first row that exceeds a batch, after the rows before it have been delivered.
    pub fn rows_batches<P: Cartesian<Coord: Coord<Distance = C>>>(
        &self,
        device: &Device,
        left: &[[P; 2]],
        right: &[[P; 2]],
        batches: &mut Batches<'_>,
        callback: impl FnMut(RowsBatch<'_>) -> ControlFlow<()>,
    ) -> Result<Delivered> {
        self.deliver_sets(device, HostSets::two(left, right), batches, callback)
    }

    /// Finds the pairs as [`self_rows`](Self::self_rows), and delivers them in batches as [`rows_batches`](Self::rows_batches).
    ///
    /// # Errors
    /// The errors of [`rows_batches`](Self::rows_batches).
    pub fn self_rows_batches<P: Cartesian<Coord: Coord<Distance = C>>>(
        &self,
        device: &Device,
        boxes: &[[P; 2]],
        pairs: SelfPairs,
        batches: &mut Batches<'_>,
        callback: impl FnMut(RowsBatch<'_>) -> ControlFlow<()>,
    ) -> Result<Delivered> {
        self.deliver_sets(device, HostSets::one(boxes, pairs.pairing()), batches, callback)
    }

    /// Counts the pairs of two sets of boxes with corners of type `P` in the memory of a GPU, or of the left set with itself, each pair in
    /// both directions. A box is the coordinates of its low corner, then those of its high corner. Coordinates must be finite; this is
    /// not checked.
    ///
    /// # Errors
    /// [`Error::WrongDevice`](crate::Error::WrongDevice), and the errors of [`count`](Self::count) that do not concern boxes.
    pub fn count_on<P: Cartesian<Coord: Coord<Distance = C>>>(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        left: &Buffer<C>,
        right: Option<&Buffer<C>>,
    ) -> Result<u64> {
        let params = self.params::<P>(pairing_of(right))?;
        gpu::count(stream, workspace, sides_on_device(stream, params.width(), left, right)?, &params)
    }

    /// Finds the pairs of sets as in [`count_on`](Self::count_on). Returns the offsets and ids of [`rows`](Self::rows) in the memory of
    /// the GPU.
    ///
    /// # Errors
    /// The errors of [`count_on`](Self::count_on), and [`Error::ResultTooLarge`](crate::Error::ResultTooLarge).
    pub fn rows_on<P: Cartesian<Coord: Coord<Distance = C>>>(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        left: &Buffer<C>,
        right: Option<&Buffer<C>>,
    ) -> Result<(Buffer<u64>, Buffer<u32>)> {
        let params = self.params::<P>(pairing_of(right))?;
        gpu::rows(stream, workspace, sides_on_device(stream, params.width(), left, right)?, &params)
    }

    /// Finds the pairs of sets as in [`count_on`](Self::count_on), and writes `[left, right]` for each to `pairs`, in no particular order.
    /// Returns the number of all pairs. If it exceeds the length of `pairs`, only as many pairs as there is space for are written.
    ///
    /// Takes 12 bytes per left box besides the memory of `count_on`.
    ///
    /// # Errors
    /// The errors of [`count_on`](Self::count_on).
    pub fn pairs_on<P: Cartesian<Coord: Coord<Distance = C>>>(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        left: &Buffer<C>,
        right: Option<&Buffer<C>>,
        pairs: &mut Buffer<[u32; 2]>,
    ) -> Result<u64> {
        let params = self.params::<P>(pairing_of(right))?;
        let sides = sides_on_device(stream, params.width(), left, right)?;
        pairs.check_device(stream)?;
        let found: SliceMut<'_, u64> = pairs.bits_mut();
        gpu::pairs(stream, workspace, sides, &params, found)
    }

    /// Counts the pairs as [`count_on`](Self::count_on), waits after each phase, and returns the time and the memory of the phases.
    ///
    /// # Errors
    /// The errors of [`count_on`](Self::count_on).
    #[cfg(feature = "research")]
    pub fn count_in_phases_on<P: Cartesian<Coord: Coord<Distance = C>>>(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        left: &Buffer<C>,
        right: Option<&Buffer<C>>,
    ) -> Result<(u64, Vec<BoxPhase>)> {
        let params = self.params::<P>(pairing_of(right))?;
        let sides = sides_on_device(stream, params.width(), left, right)?;
        gpu::count_in_phases(stream, workspace, sides, &params)
    }

    fn count_sets<P: Cartesian<Coord: Coord<Distance = C>>>(
        &self,
        device: &Device,
        sets: HostSets<'_, [P; 2]>,
    ) -> Result<u64> {
        let _span = tracing::debug_span!("box_join_count", left = sets.left.len()).entered();
        let params = self.params::<P>(sets.pairing)?;
        all_pairs::count(device, checked_sets(sets)?.boxes(P::DIMS), &params)
    }

    fn estimate_sets<P: Cartesian<Coord: Coord<Distance = C>>>(
        &self,
        device: &Device,
        sets: HostSets<'_, [P; 2]>,
        sample: usize,
    ) -> Result<u64> {
        let params = self.params::<P>(sets.pairing)?;
        all_pairs::estimate(device, checked_sets(sets)?.slices(), sample, &params)
    }

    fn rows_of_sets<P: Cartesian<Coord: Coord<Distance = C>>>(
        &self,
        device: &Device,
        sets: HostSets<'_, [P; 2]>,
    ) -> Result<Rows> {
        let _span = tracing::debug_span!("box_join_rows", left = sets.left.len()).entered();
        let params = self.params::<P>(sets.pairing)?;
        all_pairs::rows(device, checked_sets(sets)?.boxes(P::DIMS), &params)
    }

    fn deliver_sets<P: Cartesian<Coord: Coord<Distance = C>>>(
        &self,
        device: &Device,
        sets: HostSets<'_, [P; 2]>,
        batches: &mut Batches<'_>,
        callback: impl FnMut(RowsBatch<'_>) -> ControlFlow<()>,
    ) -> Result<Delivered> {
        let _span = tracing::debug_span!("box_join_batches", left = sets.left.len()).entered();
        let params = self.params::<P>(sets.pairing)?;
        all_pairs::rows_batches(device, checked_sets(sets)?.slices(), &params, batches, callback)
    }

    fn params<P: Cartesian<Coord: Coord<Distance = C>>>(&self, pairing: Pairing) -> Result<BoxParams<C>> {
        let params = BoxParams::new::<P>(self.predicate, self.epsilon, self.norm, pairing, self.method)?;
        #[cfg(feature = "research")]
        let params = BoxParams { options: self.options.validate()?, ..params };
        Ok(params)
    }
}

impl<C: Float> AllPairs for BoxParams<C> {
    type Coord = C;

    fn width(&self) -> usize {
        BoxParams::width(self)
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
