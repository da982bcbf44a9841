//! Trees and cell queries on device buffers, on the caller's stream. [`DeviceIndex`] has the queries for neighbors and ranges.

use crate::device::{Buffer, Device, Stream, Workspace};
use crate::error::{Error, Result, check_count};
use crate::point::{Dispatch, MAX_POINTS};
use crate::quadtree::build;
use crate::quadtree::device_leaves::DeviceLeaves;
use crate::quadtree::dims::CartesianPoint;
use crate::quadtree::options::QuadtreeOptions;
use crate::quadtree::tree::CellTree;
use crate::query::DeviceIndex;
use crate::query::device_index::OnDevice;
use crate::query::on_device::BufferRef;
use crate::stats::Stats;

impl<P: CartesianPoint<D>, const D: usize> CellTree<P, D> {
    /// Builds the tree over coordinates in device memory, point after point, in the order of the stream. Waits for node counts.
    /// Coordinates are not checked one by one: a point with a NaN ends up in some leaf, and the error for a coordinate that is too large
    /// names only its axis.
    ///
    /// # Errors
    /// The errors of [`build`](CellTree::build), and [`Error::Shape`] if the last point is incomplete.
    pub fn build_on(
        stream: &Stream,
        workspace: &mut Workspace,
        coords: &Buffer<P::Coord>,
        options: &QuadtreeOptions,
    ) -> Result<Self> {
        options.check()?;
        let num_points = coords.len() / D;
        coords.check(stream, "coordinates of points", num_points * D)?;
        check_count("points", num_points as u64, MAX_POINTS)?;
        let device = Device::from_gpu(stream.gpu().clone());
        let coords = P::Coord::wrap::<BufferRef<'_>>(coords);
        let tree = build::build_on(stream, workspace, coords, Self::DIMS, options)?;
        Ok(Self::new(device.clone(), Stats::new(&device), P::Coord::unwrap(tree)))
    }

    /// Replaces the tree by a tree over other points, of any number, as [`build_on`](CellTree::build_on) builds it. After an error the
    /// tree is unchanged.
    ///
    /// The call allocates the new tree, and frees the old one when the new one is built; a workspace that was used for such a build before
    /// allocates nothing. The tree refuses options that were [prepared](DeviceIndex::prepare) before with
    /// [`OtherTree`](Error::OtherTree), since a mask of theirs belongs to the old points.
    ///
    /// ```
    /// use kauri::device::{Buffer, Stream, Workspace};
    /// use kauri::{Device, Quadtree, QuadtreeOptions};
    /// # fn main() -> kauri::Result<()> {
    /// let device = Device::best()?;
    /// let Some(gpu) = device.gpu() else { return Ok(()) }; // only GPUs have device memory
    /// let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
    /// let options = QuadtreeOptions::default().leaf_points(1);
    /// let coords = Buffer::from_slice(&stream, &[0.0f32, 0.0, 3.0, 4.0], "points")?;
    /// let mut tree = Quadtree::<[f32; 2]>::build_on(&stream, &mut workspace, &coords, &options)?;
    /// let coords = Buffer::from_slice(&stream, &[0.0f32, 0.0, 3.0, 4.0, 1.0, 0.0], "points of the next frame")?;
    /// tree.rebuild_on(&stream, &mut workspace, &coords, &options)?;
    /// assert_eq!(tree.len(), 3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`build_on`](CellTree::build_on); [`Error::NotOnGpu`] if the device of the tree is the CPU; [`Error::WrongDevice`].
    pub fn rebuild_on(
        &mut self,
        stream: &Stream,
        workspace: &mut Workspace,
        coords: &Buffer<P::Coord>,
        options: &QuadtreeOptions,
    ) -> Result<()> {
        self.device().gpu().ok_or(Error::NotOnGpu)?.check_same(stream.gpu())?;
        *self = Self::build_on(stream, workspace, coords, options)?;
        Ok(())
    }

    /// Writes the leaf that contains each query, as [`leaf_of`](CellTree::leaf_of) does, in device memory. `queries` has the coordinates of
    /// points, point after point; `leaves` has one item per query.
    ///
    /// The call does not wait for the host and allocates nothing. The host does not check the queries: one with a NaN coordinate gets any
    /// leaf, or none.
    ///
    /// # Errors
    /// [`Error::NotOnGpu`] if the tree is in host memory; [`Error::Shape`] if lengths do not agree; [`Error::WrongDevice`]; errors of the
    /// driver.
    pub fn leaf_of_on(
        &self,
        stream: &Stream,
        queries: &Buffer<P::Coord>,
        leaves: &mut Buffer<u32>,
    ) -> Result<()> {
        self.backend().on_device()?.leaf_of_on(stream, queries, leaves)
    }

    /// Writes the leaves adjacent to each of the `nodes`, up to the capacity of `leaves`, as
    /// [`adjacent_leaves`](CellTree::adjacent_leaves) does, in device memory.
    ///
    /// - `offsets` has one item more than `nodes`. Row `i` is `offsets[i]..offsets[i + 1]`, whatever the capacity is; the last offset is the
    ///   number of leaves found ([`num_found`](crate::query::num_found)).
    /// - `leaves` may have any length. Leaf `i`, counted over all rows, is written to `leaves[i]` if `i` is less than that length, and
    ///   dropped otherwise. Items after the last leaf are unchanged.
    ///
    /// The call does not wait for the host. It allocates nothing if the workspace was used for that many nodes before, except that the
    /// first call to a tree computes the parents of its nodes, 4 bytes per node that splits. The host does not check the nodes: the row
    /// of a number that is not the number of a node is empty.
    ///
    /// # Errors
    /// The errors of [`leaf_of_on`](CellTree::leaf_of_on); [`Error::OutOfMemory`].
    pub fn adjacent_leaves_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        nodes: &Buffer<u32>,
        offsets: &mut Buffer<u64>,
        leaves: &mut Buffer<u32>,
    ) -> Result<()> {
        self.backend().on_device()?.adjacent_leaves_on(stream, workspace, nodes, offsets, leaves)
    }

    /// Writes the leaves adjacent to each of the `nodes` in buffers of the exact size. The call waits for the number of leaves found, and
    /// then allocates. The result is complete when the stream has done the work.
    ///
    /// ```
    /// use kauri::device::{Buffer, Stream, Workspace};
    /// use kauri::{Device, Quadtree, QuadtreeOptions};
    /// # fn main() -> kauri::Result<()> {
    /// let device = Device::best()?;
    /// let Some(gpu) = device.gpu() else { return Ok(()) }; // only GPUs have device memory
    /// let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
    /// let points = [[0.0f32, 0.0], [7.0, 7.0], [1.0, 1.0], [6.0, 1.0]];
    /// let tree = Quadtree::build(&device, &points, &QuadtreeOptions::default().leaf_points(2))?;
    /// let nodes = Buffer::from_slice(&stream, &[1], "nodes")?;
    /// let found = tree.all_adjacent_leaves_on(&stream, &mut workspace, &nodes)?;
    /// assert_eq!(found.leaves.to_vec(&stream)?, [2, 3, 4]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`adjacent_leaves_on`](CellTree::adjacent_leaves_on); [`Error::ResultTooLarge`], with the number of leaves found, if
    /// the device has no memory for them.
    pub fn all_adjacent_leaves_on(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        nodes: &Buffer<u32>,
    ) -> Result<DeviceLeaves> {
        self.backend().on_device()?.all_adjacent_leaves_on(stream, workspace, nodes)
    }
}

/// A tree that was built [out of core](super::OutOfCore) is in host memory, so it has no calls on device buffers.
impl<P: CartesianPoint<D>, const D: usize> DeviceIndex for CellTree<P, D> {
    fn on_device(&self) -> Result<OnDevice<'_, P::Coord>> {
        let backend = self.backend().on_device()?.device_query_backend()?;
        Ok(OnDevice { backend, identity: self.identity() })
    }
}
