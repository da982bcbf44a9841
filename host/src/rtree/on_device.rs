//! Trees over points in device buffers, and changes by device buffers, on the caller's stream. [`DeviceIndex`] has the queries.

use crate::device::{Buffer, Device, Gpu, HAS_GPUS, Stream, Workspace};
use crate::error::{Error, Result};
use crate::point::{Dispatch, NoValue, Point, Typed, with_coordinate};
use crate::query::DeviceIndex;
use crate::query::device_index::OnDevice;
use crate::query::on_device::num_points;
use crate::rtree::gpu::{self, GpuTree};
use crate::rtree::{RTree, Storage, Storages};
use crate::stats::Stats;
use std::ops::Range;

impl<P: Point> RTree<P> {
    /// Builds a tree over points in device memory. `coords` has the coordinates that [`Point::coordinates`] returns, one point after
    /// another.
    ///
    /// The host does not check the coordinates. If one is not finite or is too large, queries may miss points, and nothing worse happens.
    /// The tree is complete when the stream has done the work.
    ///
    /// ```no_run
    /// use kauri::device::{Buffer, Stream, Workspace};
    /// use kauri::{Device, RTree};
    /// let device = Device::from_name("cuda")?;
    /// let gpu = device.gpu().expect("the device is a GPU");
    /// let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
    /// let coords = Buffer::from_slice(&stream, &[0.0f32, 0.0, 3.0, 4.0], "coordinates of the points")?;
    /// let tree = RTree::<[f32; 2]>::build_on(&stream, &mut workspace, &coords)?;
    /// assert_eq!(tree.len(), 2);
    /// # Ok::<(), kauri::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of coordinates is not a multiple of the dimensions; [`Error::TooManyItems`];
    /// [`Error::WrongDevice`]; [`Error::OutOfMemory`]; errors of the driver.
    pub fn build_on(stream: &Stream, workspace: &mut Workspace, coords: &Buffer<P::Coord>) -> Result<Self> {
        let num_points = num_points::<P>(coords)?;
        let device = Device::from_gpu(stream.gpu().clone());
        let mut stats = Stats::new(&device);
        stats.temp_bytes = gpu::build_bytes::<P::Coord>(num_points, P::DIMS);
        let storage = allocate(P::Coord::TYPE, stream.gpu(), num_points, P::DIMS)?;
        let mut tree = Self::from_parts(device, stats, P::Coord::unwrap(storage));
        tree.rebuild_on(stream, workspace, coords)?;
        Ok(tree)
    }

    /// Rebuilds the tree over other points of the same number, as [`build_on`](RTree::build_on) does: ids begin with 0 again. It allocates
    /// nothing if the workspace was used for this build before.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of points differs; [`Error::NotOnGpu`] if the tree is on the CPU; [`Error::WrongDevice`];
    /// [`Error::OutOfMemory`]; errors of the driver.
    pub fn rebuild_on(
        &mut self,
        stream: &Stream,
        workspace: &mut Workspace,
        coords: &Buffer<P::Coord>,
    ) -> Result<()> {
        num_points::<P>(coords)?;
        let Storage::Gpu(tree) = &mut self.storage else { return Err(Error::NotOnGpu) };
        tree.rebuild(stream, workspace, coords)
    }

    /// Inserts points in device memory, as [`insert`](Self::insert), and returns their ids. `coords` has the coordinates that
    /// [`Point::coordinates`] returns, one point after another.
    ///
    /// The host does not check the coordinates: if one is not finite or is too large, queries may miss points, and nothing worse happens.
    /// The call does not wait for the device. The tree is complete when the stream has done the work; queries wait for it.
    ///
    /// ```
    /// use kauri::device::{Buffer, Stream, Workspace};
    /// use kauri::{Device, RTree, SpatialIndex};
    /// # fn main() -> kauri::Result<()> {
    /// let device = Device::best()?;
    /// let Some(gpu) = device.gpu() else { return Ok(()) }; // only GPUs have device memory
    /// let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
    /// let mut tree = RTree::build(&device, &[[0.0f32, 0.0]])?;
    /// let coords = Buffer::from_slice(&stream, &[3.0f32, 4.0], "coordinates of the points")?;
    /// assert_eq!(tree.insert_on(&stream, &mut workspace, &coords)?, 1..2);
    /// tree.remove_on(&stream, &mut workspace, &Buffer::from_slice(&stream, &[0], "ids")?)?;
    /// assert_eq!(tree.nearest(&[[0.0, 0.0]], 1)?.ids(), [1]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::NotOnGpu`]; [`Error::Shape`] if the number of coordinates is not a multiple of the dimensions; otherwise the errors of
    /// [`insert`](Self::insert) except for those of coordinates.
    pub fn insert_on(
        &mut self,
        stream: &Stream,
        workspace: &mut Workspace,
        coords: &Buffer<P::Coord>,
    ) -> Result<Range<u32>> {
        let num_new = num_points::<P>(coords)?;
        let ids = self.next_ids(num_new)?;
        let Storage::Gpu(tree) = &mut self.storage else { return Err(Error::NotOnGpu) };
        tree.insert_on(stream, workspace, coords)?;
        self.renew(num_new);
        Ok(ids)
    }

    /// Removes the points with these ids in device memory, as [`remove`](Self::remove). The call waits for the check of the ids.
    ///
    /// # Errors
    /// [`Error::NotOnGpu`]; otherwise the errors of [`remove`](Self::remove).
    pub fn remove_on(&mut self, stream: &Stream, workspace: &mut Workspace, ids: &Buffer<u32>) -> Result<()> {
        let Storage::Gpu(tree) = &mut self.storage else { return Err(Error::NotOnGpu) };
        tree.remove_on(stream, workspace, ids)?;
        self.renew(ids.len());
        Ok(())
    }
}

impl<P: Point> DeviceIndex for RTree<P> {
    fn on_device(&self) -> Result<OnDevice<'_, P::Coord>> {
        match &self.storage {
            Storage::Gpu(tree) => {
                Ok(OnDevice { backend: tree.device_query_backend(), identity: &self.identity })
            }
            Storage::Cpu(_) => Err(Error::NotOnGpu),
        }
    }
}

/// Allocates a tree over `num_points` points in device memory.
fn allocate(
    coordinate: Typed<NoValue>,
    gpu: &Gpu,
    num_points: usize,
    dims: usize,
) -> Result<Typed<Storages>> {
    if !HAS_GPUS {
        return Err(Error::CudaDisabled);
    }
    Ok(with_coordinate!(coordinate, C, () => {
        Storage::Gpu(Box::new(GpuTree::<C>::uninitialized(gpu, num_points, dims)?))
    }))
}
