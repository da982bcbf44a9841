//! K-d trees whose points change: batches of points are inserted and removed.
//!
//! Each point keeps the id that it gets, and no id is given twice. Results equal the results of a [`KdTree`](crate::KdTree) over the same
//! points, except for the order of points in a range query that is not sorted.
//!
//! # On a GPU
//!
//! The buckets of a left-balanced k-d tree have free slots: half as many as points when the tree is built. A new point takes a free slot of
//! the bucket at its position, and a removed point frees its slot, so most batches move no other points. Points that find no slot go to a
//! second tree, which queries search after the first one.
//!
//! | change | cost of a batch of `m` points |
//! |---|---|
//! | insert, or remove | a sort of `m` points by bucket, and one pass over the slots and the boxes of all points |
//! | insert with points that find no slot | in addition a build of the second tree, if its own free slots are not enough |
//! | the worst case | a build of one tree of all points: if the second tree would have more than an eighth of all slots and points, if there are more new points than free slots, and if a removal leaves more than two slots for a point |
//!
//! Batches spread like the points themselves can add about 40 % to the points before the worst case, so that it costs each new point the
//! build of 3 to 4 points on average. If all new points are at one place, it occurs when they are a twelfth of the points: the build of
//! 13 points for each, and builds of the second tree before. Where as many points come as go, it occurs rarely or never. A removal pays
//! for the build of up to 3 points.
//!
//! Memory: 1.5 slots for a point after a build and 2 at most, in addition to the boxes of a [`KdTree`](crate::KdTree), and up to 1.5 bits
//! for each id that was ever given: 1.4 to 2 times the memory of a [`KdTree`](crate::KdTree) over points `[f32; 3]`. The worst case takes
//! about 3 times the memory of a [`KdTree`](crate::KdTree) beside the tree until the call returns, other inserts 25 bytes for a new
//! point and 4 for a slot. A query for all points keeps a copy of their coordinates, by id, until the next change.
//!
//! # On the CPU
//!
//! The points are in up to three trees of decreasing size (Bentley, Saxe 1980, *Decomposable searching problems*), which queries search
//! one after another. A batch becomes a tree, with the points of the smaller trees where these are small in comparison. A batch of `m`
//! points costs the build of about `1.5 (2 n / m)^(1/3) m` points on average where `n` is the number of points of the largest tree; the
//! worst case is one build of all points. A removal is one pass over all points; if more than half are gone, one tree of the others is
//! built.

mod backend;
mod cpu;
mod gpu;
mod on_device;
mod options;

pub use options::DynamicOptions;

use crate::device::{Device, gpu_of};
use crate::error::{Result, check_count};
use crate::point::{
    Dispatch, MAX_POINTS, NoValue, PerCoordinate, Point, Typed, checked_coordinates, dims, with_coordinate,
};
use crate::query::backend::QueryBackend;
use crate::query::{SealedIndex, SpatialIndex};
use backend::{Backend, GpuBackend};
use cpu::CpuParts;
use gpu::GpuPoints;
use kauri_kernels::thread::coord::Coord;
use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

/// A k-d tree whose points change: batches of points are inserted and removed. The [module](self) has its costs and its memory.
///
/// A point keeps its id, and no id is given twice. The trait [`SpatialIndex`] has the queries: with `n` ids given so far, a mask has `n`
/// points, and a query for all points has `n` rows, of which those of removed points are empty. A change makes prepared queries
/// ([`DeviceIndex::prepare`](crate::query::DeviceIndex::prepare)) invalid.
///
/// ```
/// use kauri::dynamic::DynamicOptions;
/// use kauri::{Device, DynamicKdTree, Error, SpatialIndex};
/// let mut tree = DynamicKdTree::new(&Device::cpu(), &DynamicOptions::default())?;
/// assert_eq!(tree.insert(&[[0.0f32, 0.0], [3.0, 4.0], [1.0, 0.0]])?, 0..3);
/// assert_eq!(tree.nearest(&[[0.9, 0.0]], 2)?.ids(), [2, 0]);
/// tree.remove(&[2])?;
/// assert_eq!(tree.insert(&[[0.9, 0.1]])?, 3..4);
/// assert_eq!(tree.nearest(&[[0.9, 0.0]], 2)?.ids(), [3, 0]);
/// assert!(tree.len() == 3 && tree.contains(3)? && !tree.contains(2)?);
/// assert!(matches!(tree.remove(&[0, 2]), Err(Error::UnknownId { id: 2 })));
/// assert_eq!(tree.len(), 3); // nothing was removed
/// # Ok::<(), kauri::Error>(())
/// ```
pub struct DynamicKdTree<P: Point> {
    device: Device,
    storage: Storage<P::Coord>,
    /// Its address distinguishes the tree in its state from all others, including dropped ones that have prepared queries.
    identity: Arc<()>,
    points: PhantomData<fn() -> P>,
}

/// A tree in the memory of its device.
enum Storage<C> {
    Cpu(Box<dyn Backend<C>>),
    Gpu(Box<dyn GpuBackend<C>>),
}

/// [`Storage`] for each type of coordinates.
struct Storages;

impl PerCoordinate for Storages {
    type Of<C: Coord> = Storage<C>;
}

impl<P: Point> DynamicKdTree<P> {
    /// Makes a tree without points.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory); errors of the device.
    pub fn new(device: &Device, options: &DynamicOptions) -> Result<Self> {
        let storage = P::Coord::unwrap(new(P::Coord::TYPE, device, dims::<P>(), options)?);
        Ok(Self { device: device.clone(), storage, identity: Arc::new(()), points: PhantomData })
    }

    /// Inserts points, and returns their ids, which follow the last id given.
    ///
    /// # Errors
    /// All errors leave the tree as it was: [`Error::TooManyItems`](crate::Error::TooManyItems) if there are no ids left, because ids are
    /// 32-bit, or on a GPU for more than 2.8 G points at a time; the errors of [`KdTree::build`](crate::KdTree::build) for the first point
    /// that cannot be indexed; [`Error::OutOfMemory`](crate::Error::OutOfMemory); errors of the device.
    pub fn insert(&mut self, points: &[P]) -> Result<Range<u32>> {
        let _span = tracing::debug_span!("dynamic_insert", points = points.len()).entered();
        let ids = self.next_ids(points.len())?;
        let coords = checked_coordinates(points, "point")?;
        self.backend_mut().insert(&coords)?;
        self.renew(points.len());
        Ok(ids)
    }

    /// Removes the points with these ids.
    ///
    /// # Errors
    /// All errors leave the tree as it was: [`Error::UnknownId`](crate::Error::UnknownId) and
    /// [`Error::RepeatedId`](crate::Error::RepeatedId) for the least id that does not belong to a point or that occurs twice;
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory); errors of the device.
    pub fn remove(&mut self, ids: &[u32]) -> Result<()> {
        let _span = tracing::debug_span!("dynamic_remove", points = ids.len()).entered();
        self.backend_mut().remove(ids)?;
        self.renew(ids.len());
        Ok(())
    }

    /// Returns the number of points.
    pub fn len(&self) -> usize {
        self.backend().num_points()
    }

    /// Returns true if there are no points.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if a point has this id: it has been given, and the point has not been removed.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn contains(&self, id: u32) -> Result<bool> {
        self.backend().contains(id)
    }

    /// Returns the device that holds the tree.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns the ids of the next points.
    fn next_ids(&self, num_points: usize) -> Result<Range<u32>> {
        let first = self.backend().num_ids() as u64;
        let end = first.saturating_add(num_points as u64);
        check_count("ids of points", end, MAX_POINTS)?;
        Ok(first as u32..end as u32)
    }

    /// Makes prepared queries invalid if points have changed.
    fn renew(&mut self, num_changed: usize) {
        if num_changed > 0 {
            self.identity = Arc::new(());
        }
    }

    fn backend(&self) -> &dyn Backend<P::Coord> {
        match &self.storage {
            Storage::Cpu(tree) => &**tree,
            Storage::Gpu(tree) => &**tree,
        }
    }

    fn backend_mut(&mut self) -> &mut dyn Backend<P::Coord> {
        match &mut self.storage {
            Storage::Cpu(tree) => &mut **tree,
            Storage::Gpu(tree) => &mut **tree,
        }
    }
}

impl<P: Point> SealedIndex for DynamicKdTree<P> {}

impl<P: Point> SpatialIndex for DynamicKdTree<P> {
    type Point = P;
    type StoredCoord = P::Coord;

    fn to_stored(coords: Cow<'_, [P::Coord]>) -> Result<Cow<'_, [P::Coord]>> {
        Ok(coords)
    }

    fn device(&self) -> &Device {
        &self.device
    }

    fn num_points(&self) -> usize {
        self.backend().num_ids()
    }

    fn query_backend(&self) -> Result<&dyn QueryBackend<P::Coord>> {
        Ok(self.backend().query_backend())
    }
}

impl<P: Point> std::fmt::Debug for DynamicKdTree<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DynamicKdTree")
            .field("len", &self.len())
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

/// Makes a tree without points. It is not generic over points, so it is compiled once, in this crate.
fn new(
    coordinate: Typed<NoValue>,
    device: &Device,
    dims: usize,
    options: &DynamicOptions,
) -> Result<Typed<Storages>> {
    Ok(with_coordinate!(coordinate, C, () => match gpu_of!(device) {
        Some(gpu) => Storage::<C>::Gpu(Box::new(GpuPoints::new(gpu, dims, options.split)?)),
        None => Storage::Cpu(Box::new(CpuParts::new(dims, options.split))),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn ids_are_exhausted() {
        let mut tree = DynamicKdTree::<[f32; 2]>::new(&Device::cpu(), &DynamicOptions::default()).unwrap();
        let num_ids = MAX_POINTS as usize - 2;
        tree.storage = Storage::Cpu(Box::new(CpuParts::with_ids_given(2, Default::default(), num_ids)));
        assert_eq!(tree.next_ids(2).unwrap(), (num_ids as u32)..MAX_POINTS as u32);
        let error = tree.insert(&[[0.0, 0.0]; 3]).unwrap_err();
        assert!(
            matches!(error, Error::TooManyItems { count, max: MAX_POINTS, .. } if count == MAX_POINTS + 1)
        );
        assert_eq!((tree.len(), tree.num_points()), (0, num_ids));
    }
}
