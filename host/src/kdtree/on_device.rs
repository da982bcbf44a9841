//! Trees and queries on buffers of a device, on the caller's stream: nothing waits for the host, and with a workspace that has
//! been used for as much before nothing is allocated, so that calls can be captured in a graph. Only those that give buffers as
//! large as what they find wait and allocate.

mod within;

use std::marker::PhantomData;
use std::sync::Arc;

use crate::device::{Buffer, Device, Stream, Workspace};
use crate::error::{Error, Result};
use crate::kdtree::backend::GpuBackend;
use crate::kdtree::gpu;
use crate::kdtree::{KdTree, KdTreeOptions, Storage, allocate};
use crate::point::{Dispatch, MAX_POINTS, Point, dims};
use crate::query::backend::DeviceQueryBackend;
use crate::query::on_device::{DeviceQueries, PreparedQuery};
use crate::query::options::{QueryOptions, ValidatedOptions};
use crate::stats::Stats;

impl<P: Point> KdTree<P> {
    /// Builds a tree over points in device memory, given as coordinates, point after point: those that
    /// [`Point::coordinates`] makes, which for arrays of floats are the arrays themselves, and `f64` for those of integers.
    ///
    /// The coordinates are not looked at by the host: where one is not a finite number or too large, queries may miss points;
    /// nothing worse happens. The tree is there when the stream has done the work.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of coordinates is not a multiple of the dimensions; [`Error::TooManyItems`];
    /// [`Error::WrongDevice`]; [`Error::OutOfMemory`]; the driver's.
    pub fn build_on(
        stream: &Stream,
        workspace: &mut Workspace,
        coords: &Buffer<P::Coord>,
        options: &KdTreeOptions,
    ) -> Result<Self> {
        let num_points = Self::num_points(coords)?;
        let device = Device::from_gpu(stream.gpu().clone());
        let mut stats = Stats::new(&device);
        stats.temp_bytes = gpu::work_bytes::<P::Coord>(num_points, P::DIMS, options);
        let storage = allocate(P::Coord::TYPE, stream.gpu(), num_points, P::DIMS, options.split)?;
        let mut tree = Self::of(device, stats, P::Coord::unwrap(storage));
        tree.rebuild_on(stream, workspace, coords, options)?;
        Ok(tree)
    }

    /// Builds the tree anew over as many other points; as [`build_on`](KdTree::build_on), without an allocation if the
    /// workspace has been used for it before. Nodes split by the rule of the tree, whatever the options say.
    ///
    /// # Errors
    /// [`Error::Shape`] if there are more or fewer points; [`Error::NotOnGpu`] if the tree is not a GPU's;
    /// [`Error::WrongDevice`]; [`Error::OutOfMemory`]; the driver's.
    pub fn rebuild_on(
        &mut self,
        stream: &Stream,
        workspace: &mut Workspace,
        coords: &Buffer<P::Coord>,
        options: &KdTreeOptions,
    ) -> Result<()> {
        Self::num_points(coords)?;
        let Storage::Gpu(tree) = &mut self.storage else { return Err(Error::NotOnGpu) };
        tree.rebuild(stream, workspace, coords, options.builder)
    }

    /// Checks options for queries to this tree, and brings what they need to its device.
    ///
    /// # Errors
    /// Those of [`SpatialIndex::nearest_with`](super::SpatialIndex::nearest_with) for options; [`Error::NotOnGpu`]; [`Error::OutOfMemory`]; the driver's.
    pub fn prepare(&self, stream: &Stream, options: &QueryOptions<P>) -> Result<PreparedQuery<P>> {
        let wanted = ValidatedOptions::new(options, self.len())?;
        let asked = self.gpu_tree()?.device_query_backend().prepare(stream, wanted)?;
        Ok(PreparedQuery { asked, tree: self.identity.clone(), points: PhantomData })
    }

    /// The `k` nearest points of every query: as [`SpatialIndex::nearest_with`](super::SpatialIndex::nearest_with), in device memory. `ids` and `dist2` have `k` items a
    /// query. As the host does not look at them, queries more than a period from a point, or with a coordinate that is NaN, are no error:
    /// their rows are wrong.
    ///
    /// # Errors
    /// [`Error::NotOnGpu`]; [`Error::OtherTree`] if the options were prepared for another tree; [`Error::Shape`] if lengths do not
    /// agree; [`Error::WrongDevice`]; [`Error::OutOfMemory`]; the driver's.
    #[allow(clippy::too_many_arguments)]
    pub fn nearest_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        queries: DeviceQueries<'_, P::Coord>,
        k: usize,
        prepared: &PreparedQuery<P>,
        ids: &mut Buffer<u32>,
        dist2: &mut Buffer<P::Coord>,
    ) -> Result<()> {
        let (tree, asked) = (self.prepared_tree(prepared)?, &prepared.asked);
        tree.nearest_on(stream, workspace, queries, k, asked, ids, dist2)
    }

    /// The tree on its GPU, if the options were prepared for it.
    fn prepared_tree(&self, prepared: &PreparedQuery<P>) -> Result<&dyn DeviceQueryBackend<P::Coord>> {
        let tree = self.gpu_tree()?;
        if Arc::ptr_eq(&self.identity.0, &prepared.tree.0) {
            Ok(tree.device_query_backend())
        } else {
            Err(Error::OtherTree)
        }
    }

    fn gpu_tree(&self) -> Result<&dyn GpuBackend<P::Coord>> {
        match &self.storage {
            Storage::Gpu(tree) => Ok(&**tree),
            Storage::Cpu(_) => Err(Error::NotOnGpu),
        }
    }

    fn num_points(coords: &Buffer<P::Coord>) -> Result<usize> {
        let (num_points, rest) = (coords.len() / dims::<P>(), coords.len() % dims::<P>());
        if rest != 0 {
            let (expected, got) = ((num_points * P::DIMS) as u64, coords.len() as u64);
            return Err(Error::Shape { what: "coordinates of the points", expected, got });
        }
        if num_points as u64 > MAX_POINTS {
            return Err(Error::TooManyItems { what: "points", count: num_points as u64, max: MAX_POINTS });
        }
        Ok(num_points)
    }
}
