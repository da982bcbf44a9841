//! Trees over points in device buffers, on the caller's stream. [`DeviceIndex`] has the queries.

use crate::balanced::backend::Backend;
use crate::balanced::gpu::widen::DeviceCoords;
use crate::balanced::gpu::{self, GpuTree};
use crate::balanced::{Backends, BalancedKdTree, BalancedOptions};
use crate::device::{Buffer, Device, Gpu, HAS_GPUS, Stream, Workspace};
use crate::error::{Error, Result};
use crate::point::{Dispatch, DistanceOf, NoValue, PerCoordinate, Point, Typed, with_float};
use crate::query::DeviceIndex;
use crate::query::device_index::OnDevice;
use crate::query::on_device::{BufferRef, num_points};
use crate::stats::Stats;
use kauri_kernels::thread::coord::Coord;
use std::marker::PhantomData;

impl<P: Point> BalancedKdTree<P> {
    /// Builds a tree over points in device memory. `coords` has the coordinates that [`Point::coordinates`] returns, one point after
    /// another: the array itself for arrays of floats and of `i32`, `f64` for arrays of `i64`. The tree has a copy of them. From host memory,
    /// the fastest way is a copy of a [`PinnedBuffer`](crate::device::PinnedBuffer) ([`Buffer::copy_from_slice`]).
    ///
    /// Nodes, equal points and ids are those of [`build`](BalancedKdTree::build). The host does not check the coordinates. If one is not
    /// finite or is too large, queries may miss points, and nothing worse happens.
    ///
    /// The call waits for the device after the sort on the first axis, which tells the host whether many points have one coordinate in
    /// common, so that other sorts must follow, and whether points are equal; if they may be, it also waits for the number of distinct
    /// points, on which the levels of the tree depend. The tree is complete when the stream has done the work. Builds by
    /// [`build_on`](BalancedKdTree::build_on) do not record phases in [`stats`](BalancedKdTree::stats).
    ///
    /// ```
    /// use kauri::balanced::{BalancedKdTree, BalancedOptions};
    /// use kauri::device::{Buffer, Stream, Workspace};
    /// # fn main() -> kauri::Result<()> {
    /// let device = kauri::Device::best()?;
    /// let Some(gpu) = device.gpu() else { return Ok(()) }; // only GPUs have device memory
    /// let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
    /// let coords = Buffer::from_slice(&stream, &[3.0f32, 1.0, 2.0, 1.0], "coordinates of the points")?;
    /// let options = BalancedOptions::default();
    /// let tree = BalancedKdTree::<[f32; 1]>::build_on(&stream, &mut workspace, &coords, &options)?;
    /// assert_eq!((tree.len(), tree.num_points()), (3, 4));
    ///
    /// // The nodes of two levels, in device memory.
    /// let mut medians = Buffer::uninitialized(gpu, (1 << tree.num_levels()) - 1, "medians")?;
    /// tree.medians_on(&stream, &mut medians)?;
    /// assert_eq!(medians.to_vec(&stream)?, [2, 1, 0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of coordinates is not a multiple of the dimensions; [`Error::TooManyItems`];
    /// [`Error::WrongDevice`]; [`Error::OutOfMemory`]; errors of the driver.
    pub fn build_on(
        stream: &Stream,
        workspace: &mut Workspace,
        coords: &Buffer<P::Coord>,
        options: &BalancedOptions,
    ) -> Result<Self> {
        let num_points = num_points::<P>(coords)?;
        let device = Device::from_gpu(stream.gpu().clone());
        let mut stats = Stats::new(&device);
        stats.temp_bytes = gpu::memory_plan::<DistanceOf<P>>(num_points, P::DIMS, options).temp_bytes;
        let tree = allocate(DistanceOf::<P>::TYPE, stream.gpu(), num_points, P::DIMS)?;
        let mut tree = Self::from_parts(vec![device], stats, num_points, DistanceOf::<P>::unwrap(tree));
        tree.rebuild_on(stream, workspace, coords, options)?;
        Ok(tree)
    }

    /// Rebuilds the tree over other points of the same number, as [`build_on`](BalancedKdTree::build_on) does. If the tree was queried
    /// before, the call also rebuilds the buckets, and options that were [prepared](DeviceIndex::prepare) remain valid.
    ///
    /// The call allocates nothing if the workspace was used for this build before and the number of distinct points is that of the last
    /// build. Another number may change the number of levels and buckets, and the first removed point takes 4 bytes per point.
    ///
    /// If the arguments are refused, the tree is unchanged. After any other error it may have no nodes until a rebuild succeeds.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of points differs; [`Error::NotOnGpu`] if the tree is not on one GPU; [`Error::WrongDevice`];
    /// [`Error::OutOfMemory`]; errors of the driver.
    pub fn rebuild_on(
        &mut self,
        stream: &Stream,
        workspace: &mut Workspace,
        coords: &Buffer<P::Coord>,
        options: &BalancedOptions,
    ) -> Result<()> {
        num_points::<P>(coords)?;
        let tree = DistanceOf::<P>::wrap::<BackendMut<'_>>(&mut *self.tree);
        rebuild(tree, stream, workspace, P::Coord::wrap::<BufferRef<'_>>(coords), options)
    }

    /// Copies the [`medians`](BalancedKdTree::medians) in device memory, in the order of the stream. `medians` has 2^l - 1 items for
    /// [`num_levels`](BalancedKdTree::num_levels) l. The call does not wait for the host and allocates nothing.
    ///
    /// # Errors
    /// [`Error::NotOnGpu`] if the tree is not on one GPU; [`Error::Shape`] for another number of items; [`Error::WrongDevice`]; errors of
    /// the driver.
    pub fn medians_on(&self, stream: &Stream, medians: &mut Buffer<u32>) -> Result<()> {
        self.tree.medians_on(stream, medians)
    }
}

impl<P: Point> DeviceIndex for BalancedKdTree<P> {
    fn on_device(&self) -> Result<OnDevice<'_, DistanceOf<P>>> {
        Ok(OnDevice { backend: self.tree.device_query_backend()?, identity: &self.identity })
    }
}

/// A tree that is rebuilt, for each type of coordinates.
struct BackendMut<'a>(PhantomData<&'a ()>);

impl<'a> PerCoordinate for BackendMut<'a> {
    type Of<C: Coord> = &'a mut dyn Backend<C>;
}

/// Allocates a tree over `num_points` points in device memory.
fn allocate(
    coordinate: Typed<NoValue>,
    gpu: &Gpu,
    num_points: usize,
    dims: usize,
) -> Result<Typed<Backends>> {
    if !HAS_GPUS {
        return Err(Error::CudaDisabled);
    }
    Ok(with_float!(coordinate, C, () => {
        Box::new(GpuTree::<C>::uninitialized(gpu, num_points, dims)?) as Box<dyn Backend<C>>
    }))
}

/// Rebuilds a tree over coordinates of its type, or over integers, which become `f64`.
fn rebuild(
    tree: Typed<BackendMut<'_>>,
    stream: &Stream,
    workspace: &mut Workspace,
    coords: Typed<BufferRef<'_>>,
    options: &BalancedOptions,
) -> Result<()> {
    match (tree, coords) {
        (Typed::F32(tree), Typed::F32(coords)) => {
            tree.rebuild(stream, workspace, DeviceCoords::Floats(coords), options)
        }
        (Typed::F64(tree), Typed::F64(coords)) => {
            tree.rebuild(stream, workspace, DeviceCoords::Floats(coords), options)
        }
        (Typed::F64(tree), Typed::I32(coords)) => {
            tree.rebuild(stream, workspace, DeviceCoords::Integers(coords), options)
        }
        _ => unreachable!("the type of distances follows from that of coordinates"),
    }
}
