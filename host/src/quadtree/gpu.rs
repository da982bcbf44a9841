//! A tree in device memory, and its build: in rounds of several levels from sorted codes, or level by level.

mod algorithm;
mod build;
mod codes;
mod index;
#[cfg(feature = "research")]
mod levels;
pub(crate) mod out_of_core;
mod queries;
pub(crate) mod streamed;
mod verify;

use crate::device::{Buffer, Gpu, Layout, Region, Stream, Workspace};
use crate::error::Result;
use crate::once::Once;
use crate::primitives::bounds::Bounds;
use crate::primitives::generate::iota_on;
use crate::primitives::planned::{bytes_of, carve};
use crate::quadtree::backend::{Backend, DeviceTree, Outline};
use crate::quadtree::dims::with_2_or_3;
use crate::quadtree::frame::frame_of_bounds;
#[cfg(feature = "io")]
use crate::quadtree::host::HostTree;
use crate::quadtree::node::{Part, node_bytes};
use crate::quadtree::options::{BuildAlgorithm, QuadtreeOptions};
use crate::query::backend::QueryBackend;
use crate::query::gpu::BucketIndex;
use crate::rows::Rows;
use build::{Build, NodeBuffers};
use cuda_std::mem::Slice;
use index::{Cells, bucket_index};
use kauri_kernels::quadtree::frame::Frame;
use kauri_kernels::quadtree::node::Node;
use kauri_kernels::thread::coord::Coord;
#[cfg(feature = "terrain")]
use kauri_kernels::thread::words::Bits128;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// A tree in device memory.
pub(crate) struct GpuTree<C> {
    outline: Outline,
    /// The frame's words.
    frame: Arc<Buffer<u64>>,
    nodes: Arc<Buffer<Node>>,
    /// The low corner of each node's cell, in units.
    cells: Buffer<u32>,
    /// Coordinates in tree order.
    coords: Buffer<C>,
    /// Ids in tree order.
    ids: Buffer<u32>,
    /// The bucket index that answers queries, which the first query builds.
    index: Once<BucketIndex<C>>,
    /// The parent of each group of siblings, which the first query for adjacent leaves computes.
    parents: Once<Buffer<u32>>,
    /// The caller's stream that builds the tree.
    built_on: Option<Stream>,
}

impl<C: Coord> GpuTree<C> {
    /// Builds the tree over points in device memory.
    pub(crate) fn build<const D: usize>(
        stream: &Stream,
        workspace: &mut Workspace,
        coords: &Buffer<C>,
        options: &QuadtreeOptions,
    ) -> Result<Self> {
        let frame = frame::<C, D>(stream, workspace, coords.slice(), options)?;
        Self::build_in(stream, workspace, coords, &frame, options)
    }

    /// Builds the tree over points that are in a frame.
    pub(crate) fn build_in<const D: usize>(
        stream: &Stream,
        workspace: &mut Workspace,
        coords: &Buffer<C>,
        frame: &Frame<D>,
        options: &QuadtreeOptions,
    ) -> Result<Self> {
        let (num_points, mut level_begins) = (coords.len() / D, vec![0, 1]);
        let Part { nodes: roots, corners } = Part::<D>::of_root(num_points);
        let mut build = Build::new(stream, coords, (&roots, &corners), frame, options)?;
        // SAFETY: the buffers are owned or borrowed here, and wait for the device before they are freed.
        let in_order = unsafe {
            if build.depth == 0 || num_points <= options.leaf_points as usize {
                iota_on(stream, 0, build.ids.slice_mut())?;
            } else {
                for num_splits in
                    options.algorithm.run(&mut build, workspace)?.into_iter().take_while(|&num| num > 0)
                {
                    level_begins.push(level_begins[level_begins.len() - 1] + (num_splits << D));
                }
            }
            build.coords_in_order()?
        };
        let Build { ids, nodes: NodeBuffers { nodes, cells }, frame: frame_words, .. } = build;
        let outline = Outline {
            frame: frame.to_words().collect(),
            dims: D,
            options: options.clone(),
            num_points,
            level_begins,
        };
        Ok(Self {
            outline,
            frame: frame_words.into(),
            nodes: nodes.into(),
            cells,
            coords: in_order,
            ids,
            index: Once::new(),
            parents: Once::new(),
            built_on: None,
        })
    }

    /// Copies a tree from host memory.
    #[cfg(feature = "io")]
    pub(crate) fn of_host(gpu: &Gpu, tree: &HostTree<C>) -> Result<Self> {
        let stream = Stream::new(gpu)?;
        Ok(Self {
            outline: tree.outline.clone(),
            frame: Buffer::from_slice(&stream, &tree.outline.frame, "quadtree frame")?.into(),
            nodes: Buffer::from_slice(&stream, &tree.nodes, "quadtree nodes")?.into(),
            cells: Buffer::from_slice(&stream, &tree.cells, "quadtree cells")?,
            coords: Buffer::from_slice(&stream, &tree.coords, "quadtree points")?,
            ids: Buffer::from_slice(&stream, &tree.ids, "quadtree ids")?,
            index: Once::new(),
            parents: Once::new(),
            built_on: None,
        })
    }

    /// Builds the tree on the caller's stream, which later work on other streams waits for.
    pub(crate) fn build_on<const D: usize>(
        stream: &Stream,
        workspace: &mut Workspace,
        coords: &Buffer<C>,
        options: &QuadtreeOptions,
    ) -> Result<Self> {
        let tree = Self::build::<D>(stream, workspace, coords, options)?;
        Ok(Self { built_on: Some(stream.clone()), ..tree })
    }

    /// Builds the tree over points that are in a frame, as [`build_on`](Self::build_on) does.
    #[cfg(feature = "terrain")]
    pub(crate) fn build_in_on<const D: usize>(
        stream: &Stream,
        workspace: &mut Workspace,
        coords: &Buffer<C>,
        frame: &Frame<D>,
        options: &QuadtreeOptions,
    ) -> Result<Self> {
        let tree = Self::build_in(stream, workspace, coords, frame, options)?;
        Ok(Self { built_on: Some(stream.clone()), ..tree })
    }

    /// Creates a stream that waits for the build.
    fn stream(&self) -> Result<Stream> {
        let stream = Stream::new(self.gpu())?;
        self.wait(&stream)?;
        Ok(stream)
    }

    /// Makes a stream wait for the build.
    fn wait(&self, stream: &Stream) -> Result<()> {
        self.built_on.as_ref().map_or(Ok(()), |built_on| stream.wait_for(built_on))
    }

    /// Copies a buffer of the tree to host memory.
    fn to_host<T: cust_core::DeviceCopy + bytemuck::Pod>(&self, buffer: &Buffer<T>) -> Result<Cow<'_, [T]>> {
        buffer.to_vec(&self.stream()?).map(Cow::Owned)
    }

    fn gpu(&self) -> &Gpu {
        self.ids.gpu()
    }

    /// Returns the arrays of the tree.
    #[cfg(feature = "terrain")]
    pub(crate) fn arrays(&self) -> TreeArrays<'_, C> {
        TreeArrays {
            frame: self.frame.slice(),
            nodes: self.nodes.bits(),
            cells: self.cells.slice(),
            coords: self.coords.slice(),
            ids: self.ids.slice(),
        }
    }
}

/// The arrays of a tree in device memory; the fields of [`GpuTree`] describe them.
#[cfg(feature = "terrain")]
pub(crate) struct TreeArrays<'a, C> {
    pub(crate) frame: Slice<'a, u64>,
    pub(crate) nodes: Slice<'a, Bits128>,
    pub(crate) cells: Slice<'a, u32>,
    pub(crate) coords: Slice<'a, C>,
    pub(crate) ids: Slice<'a, u32>,
}

impl<C: Coord> GpuTree<C> {
    /// Returns the bucket index, which the first call builds.
    fn bucket_index(&self) -> Result<&BucketIndex<C>> {
        self.index.get_or_try_init(|| {
            let (frame, nodes) = (self.frame.clone(), self.nodes.clone());
            let (dims, num_points) = (self.outline.dims, self.ids.len() as u32);
            let cells = Cells { frame, nodes, dims, num_points };
            bucket_index(&self.stream()?, &self.coords, &self.ids, cells)
        })
    }
}

impl<C: Coord> Backend<C> for GpuTree<C> {
    fn outline(&self) -> &Outline {
        &self.outline
    }
    fn nodes(&self) -> Result<Cow<'_, [Node]>> {
        self.to_host(&self.nodes)
    }
    fn cells(&self, nodes: Range<u32>) -> Result<Cow<'_, [u32]>> {
        let range = nodes.start as usize * self.outline.dims..nodes.end as usize * self.outline.dims;
        self.cells.part_to_vec(&self.stream()?, range).map(Cow::Owned)
    }
    fn ids(&self) -> Result<Cow<'_, [u32]>> {
        self.to_host(&self.ids)
    }
    fn coords(&self) -> Result<Cow<'_, [C]>> {
        self.to_host(&self.coords)
    }
    fn leaf_of(&self, queries: &[C]) -> Result<Vec<u32>> {
        self.leaf_of(queries)
    }
    fn adjacent_leaves(&self, nodes: &[u32]) -> Result<Rows<u32>> {
        self.adjacent_leaves(nodes)
    }
    fn samples(&self) -> Result<Vec<u32>> {
        with_2_or_3!(self.outline.dims, D => self.samples::<D>())
    }
    fn verify(&self) -> Result<()> {
        with_2_or_3!(self.outline.dims, D => self.verify::<D>())
    }
    fn query_backend(&self) -> Result<&dyn QueryBackend<C>> {
        Ok(self.bucket_index()?)
    }
    fn on_device(&self) -> Result<&dyn DeviceTree<C>> {
        Ok(self)
    }
}

/// Returns an upper bound of the temporary bytes of a build of `num_points` points in host memory and `num_nodes` nodes.
pub(crate) fn temp_bytes<C: Coord>(
    num_points: usize,
    num_nodes: u64,
    dims: usize,
    options: &QuadtreeOptions,
) -> u64 {
    let input_bytes = num_points * dims * size_of::<C>();
    let mut workspace_bytes = bytes_of(|layout| plan_bounds::<C>(layout, dims));
    let mut temp_node_bytes = 0;
    if num_points > options.leaf_points as usize && options.max_depth > 0 {
        let depth = options.max_depth;
        let build_bytes = match options.algorithm {
            BuildAlgorithm::Codes => codes::workspace_bytes(num_points, dims, options.leaf_points, depth),
            #[cfg(feature = "research")]
            BuildAlgorithm::Levels(_) => levels::workspace_bytes(num_points, dims, options.leaf_points),
        };
        workspace_bytes = workspace_bytes.max(build_bytes);
        // The old buffers while the new ones are filled, and lists of the nodes that split.
        temp_node_bytes = num_nodes * node_bytes(dims);
        if options.algorithm == BuildAlgorithm::Codes {
            temp_node_bytes += (num_nodes >> dims) * codes::TEMP_SPLIT_BYTES + codes::TEMP_BYTES;
        }
    }
    input_bytes as u64 + workspace_bytes + temp_node_bytes
}

/// Returns the bytes of a frame in device memory.
pub(crate) fn frame_bytes(dims: usize) -> u64 {
    let words = with_2_or_3!(dims, D => Frame::<D>::WORDS);
    (words * size_of::<u64>()) as u64
}

/// Plans the bounds of the points.
fn plan_bounds<C: Coord>(layout: &mut Layout, dims: usize) -> (Bounds<C>, Region<C>) {
    (Bounds::<C>::plan(layout, dims), layout.reserve::<C>(2 * dims))
}

/// Returns the frame of points in device memory. Waits for their bounds.
pub(crate) fn frame<C: Coord, const D: usize>(
    stream: &Stream,
    workspace: &mut Workspace,
    coords: Slice<'_, C>,
    options: &QuadtreeOptions,
) -> Result<Frame<D>> {
    let plan = |layout: &mut _| plan_bounds(layout, D);
    let ((bounds, corners), temp) = carve(stream, workspace, "box of points", plan)?;
    let corners = temp.view(corners);
    // SAFETY: `corners` has two corners, and `coords` has whole points; nothing else uses the plan's memory.
    let corners = unsafe {
        bounds.run(&temp, coords, D, corners)?;
        stream.read(corners.read_only())?
    };
    let corners = corners.as_chunks::<D>().0;
    frame_of_bounds([corners[0], corners[1]], coords.is_empty(), options)
}
