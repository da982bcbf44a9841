//! Trees over points in device buffers, on the caller's stream. [`DeviceIndex`] has the queries. A build does not wait for the host.

use crate::device::{Buffer, Device, Gpu, HAS_GPUS, Stream, Workspace};
use crate::error::{Error, Result, check_count};
use crate::kdtree::gpu::{self, GpuTree};
use crate::kdtree::{BuildAlgorithm, KdTree, KdTreeOptions, SplitRule, Storage, Storages};
use crate::point::{Dispatch, MAX_POINTS, NoValue, Point, Typed, with_coordinate};
use crate::query::DeviceIndex;
use crate::query::device_index::OnDevice;
use crate::query::gpu::padded_len;
use crate::query::on_device::num_points;
use crate::stats::Stats;

impl<P: Point> KdTree<P> {
    /// Builds a tree over points in device memory. `coords` has the coordinates that [`Point::coordinates`] returns, one point after
    /// another: the array itself for arrays of floats and of `i32`, `f64` for arrays of `i64`.
    ///
    /// The host does not check the coordinates. If one is not finite or is too large, queries may miss points, and nothing worse happens.
    /// The tree is complete when the stream has done the work.
    ///
    /// ```no_run
    /// use kauri::device::{Buffer, Stream, Workspace};
    /// use kauri::{Device, KdTree, KdTreeOptions};
    /// let device = Device::from_name("cuda")?;
    /// let gpu = device.gpu().expect("the device is a GPU");
    /// let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
    /// let coords = Buffer::from_slice(&stream, &[0.0f32, 0.0, 3.0, 4.0], "coordinates of the points")?;
    /// let tree = KdTree::<[f32; 2]>::build_on(&stream, &mut workspace, &coords, &KdTreeOptions::default())?;
    /// assert_eq!(tree.len(), 2);
    /// # Ok::<(), kauri::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of coordinates is not a multiple of the dimensions; [`Error::TooManyItems`];
    /// [`Error::WrongDevice`]; [`Error::OutOfMemory`]; errors of the driver.
    pub fn build_on(
        stream: &Stream,
        workspace: &mut Workspace,
        coords: &Buffer<P::Coord>,
        options: &KdTreeOptions,
    ) -> Result<Self> {
        let num_points = num_points::<P>(coords)?;
        let device = Device::from_gpu(stream.gpu().clone());
        let mut stats = Stats::new(&device);
        stats.temp_bytes = gpu::build_bytes::<P::Coord>(num_points, P::DIMS, options);
        let storage = allocate(P::Coord::TYPE, stream.gpu(), num_points, P::DIMS, options.split)?;
        let mut tree = Self::from_parts(device, stats, P::Coord::unwrap(storage));
        tree.rebuild_on(stream, workspace, coords, options)?;
        Ok(tree)
    }

    /// Returns the number of coordinates of the buffer that [`build_in_place_on`](Self::build_in_place_on) needs for `num_points` points:
    /// of the points, rounded up to a multiple of 4 points.
    ///
    /// ```
    /// use kauri::KdTree;
    /// assert_eq!(KdTree::<[f32; 3]>::padded_len(1001), 1004 * 3);
    /// ```
    pub fn padded_len(num_points: usize) -> usize {
        padded_len(num_points, P::DIMS)
    }

    /// Builds a tree of the first `num_points` points of a buffer in the memory of the buffer, which is part of the tree then: `coords`
    /// is left empty (Wald 2022, whose build permutes the points in place). Besides the tree, the build needs the bytes that
    /// [`plan`](KdTree::plan) returns for [`SelectionInPlace`](super::BuildAlgorithm::SelectionInPlace), 4 per point, whichever algorithm
    /// the options name.
    ///
    /// The buffer has [`padded_len`](Self::padded_len) items, of which those behind the points may have any value. Apart from that,
    /// coordinates and tree are as with [`build_on`](Self::build_on).
    ///
    /// ```no_run
    /// use kauri::device::{Buffer, Stream, Workspace};
    /// use kauri::{Device, KdTree, KdTreeOptions};
    /// type Tree = KdTree<[f32; 2]>;
    /// let device = Device::from_name("cuda")?;
    /// let gpu = device.gpu().expect("the device is a GPU");
    /// let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
    /// let mut coords = Buffer::uninitialized(gpu, Tree::padded_len(1_000_000), "coordinates of the points")?;
    /// // ... a kernel writes the points ...
    /// let options = KdTreeOptions::default();
    /// let tree = Tree::build_in_place_on(&stream, &mut workspace, &mut coords, 1_000_000, &options)?;
    /// assert!(coords.is_empty() && tree.len() == 1_000_000);
    /// # Ok::<(), kauri::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if the buffer has another number of items; [`Error::TooManyItems`]; [`Error::WrongDevice`];
    /// [`Error::OutOfMemory`]; errors of the driver. The buffer keeps its memory then; after an error of the driver the order of the
    /// points is undefined.
    pub fn build_in_place_on(
        stream: &Stream,
        workspace: &mut Workspace,
        coords: &mut Buffer<P::Coord>,
        num_points: usize,
        options: &KdTreeOptions,
    ) -> Result<Self> {
        check_count("points", num_points as u64, MAX_POINTS)?;
        coords.check(stream, "coordinates of the points and of the padding", Self::padded_len(num_points))?;
        let device = Device::from_gpu(stream.gpu().clone());
        let mut stats = Stats::new(&device);
        let in_place = options.clone().algorithm(BuildAlgorithm::SelectionInPlace);
        stats.temp_bytes = gpu::build_bytes::<P::Coord>(num_points, P::DIMS, &in_place);
        let storage = allocate(P::Coord::TYPE, stream.gpu(), num_points, P::DIMS, options.split)?;
        let mut storage = P::Coord::unwrap(storage);
        let Storage::Gpu(tree) = &mut storage else { return Err(Error::NotOnGpu) };
        tree.build_in_place(stream, workspace, coords)?;
        Ok(Self::from_parts(device, stats, storage))
    }

    /// Rebuilds the tree over other points of the same number, as [`build_on`](KdTree::build_on) does. It allocates nothing if the
    /// workspace was used for this build before. The tree keeps its split rule; the rule of the options is ignored.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of points differs; [`Error::NotOnGpu`] if the tree is on the CPU; [`Error::WrongDevice`];
    /// [`Error::OutOfMemory`]; errors of the driver.
    pub fn rebuild_on(
        &mut self,
        stream: &Stream,
        workspace: &mut Workspace,
        coords: &Buffer<P::Coord>,
        options: &KdTreeOptions,
    ) -> Result<()> {
        num_points::<P>(coords)?;
        let Storage::Gpu(tree) = &mut self.storage else { return Err(Error::NotOnGpu) };
        tree.rebuild(stream, workspace, coords, options.algorithm)
    }
}

impl<P: Point> DeviceIndex for KdTree<P> {
    fn on_device(&self) -> Result<OnDevice<'_, P::Coord>> {
        match &self.storage {
            Storage::Gpu(tree) => {
                Ok(OnDevice { backend: tree.device_query_backend(), identity: &self.identity })
            }
            Storage::Cpu(_) => Err(Error::NotOnGpu),
        }
    }
}

/// Allocates a tree over `num_points` points in device memory, without the memory of their coordinates.
fn allocate(
    coordinate: Typed<NoValue>,
    gpu: &Gpu,
    num_points: usize,
    dims: usize,
    rule: SplitRule,
) -> Result<Typed<Storages>> {
    if !HAS_GPUS {
        return Err(Error::CudaDisabled);
    }
    Ok(with_coordinate!(coordinate, C, () => {
        Storage::Gpu(Box::new(GpuTree::<C>::without_coords(gpu, num_points, dims, rule)?))
    }))
}
