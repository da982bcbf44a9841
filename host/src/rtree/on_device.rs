//! Trees over points in device buffers, on the caller's stream. [`DeviceIndex`] has the queries. A build does not wait for the host.

use crate::device::{Buffer, Device, Gpu, HAS_GPUS, Stream, Workspace};
use crate::error::{Error, Result};
use crate::point::{Dispatch, NoValue, Point, Typed, with_coordinate};
use crate::query::DeviceIndex;
use crate::query::device_index::OnDevice;
use crate::query::on_device::num_points;
use crate::rtree::gpu::{self, GpuTree};
use crate::rtree::{RTree, Storage, Storages};
use crate::stats::Stats;

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

    /// Rebuilds the tree over other points of the same number, as [`build_on`](RTree::build_on) does. It allocates nothing if the
    /// workspace was used for this build before.
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
