//! A tree in device memory, and its build: in rounds of several levels from sorted codes, or level by level.

mod build_input;
mod codes;
mod index;
mod levels;
mod node_buffers;
mod queries;
#[cfg(feature = "io")]
mod stored;
pub(crate) mod streamed;

use crate::device::{Buffer, Gpu, Layout, Region, Stream, Workspace};
use crate::error::Result;
use crate::once::Once;
use crate::primitives::bounds::Bounds;
use crate::primitives::generate::iota_on;
use crate::primitives::permute::{Direction, permute_parts};
use crate::quadtree::backend::Backend;
use crate::quadtree::dims::with_2_or_3;
use crate::quadtree::frame::frame_of_bounds;
use crate::quadtree::host::HostTree;
use crate::quadtree::leaf_rows::LeafRows;
use crate::quadtree::node::{NodeWords, level_begins, node_bytes};
use crate::quadtree::options::{BuildAlgorithm, QuadtreeOptions};
#[cfg(feature = "io")]
use crate::quadtree::sections::Sections;
use crate::query::backend::QueryBackend;
use crate::query::cpu::Corners;
use crate::query::gpu::BucketIndex;
use build_input::BuildInput;
use cuda_std::mem::Slice;
use index::{Cells, bucket_index};
use kauri_kernels::quadtree::frame::Frame;
use kauri_kernels::quadtree::node::Node;
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::words::Bits128;
use node_buffers::NodeBuffers;
use std::borrow::Cow;
use std::sync::Arc;

/// A tree in device memory.
pub(crate) struct GpuTree<C> {
    /// The frame's words.
    frame: Vec<u64>,
    /// The first node of each level, and the number of nodes.
    level_begins: Vec<u32>,
    options: QuadtreeOptions,
    dims: usize,
    nodes: Arc<Buffer<Bits128>>,
    /// The low corner of each node's cell, in units.
    cells: Buffer<u32>,
    /// Coordinates in tree order.
    coords: Buffer<C>,
    /// Ids in tree order.
    ids: Buffer<u32>,
    /// The bucket index that answers queries, which the first query builds.
    index: Once<BucketIndex<C>>,
}

impl<C: Coord> GpuTree<C> {
    /// Builds the tree over points in device memory.
    pub(crate) fn build<const D: usize>(
        stream: &Stream,
        workspace: &mut Workspace,
        coords: &Buffer<C>,
        options: &QuadtreeOptions,
    ) -> Result<Self> {
        let (gpu, n) = (stream.gpu(), coords.len() / D);
        options.levels.check(D)?;
        let frame = frame::<C, D>(stream, workspace, coords.slice(), options)?;
        let frame_words: Vec<u64> = frame.to_words().collect();
        let input = BuildInput {
            stream,
            coords: coords.slice(),
            frame: Buffer::from_slice(stream, &frame_words, "quadtree frame")?,
            depth: frame.levels.min(options.max_depth),
            leaf_points: options.leaf_points,
        };
        let mut tree_coords = Buffer::uninitialized(gpu, coords.len(), "quadtree points")?;
        let mut ids = Buffer::uninitialized(gpu, n, "quadtree ids")?;
        let root = Node { start: 0, end: n as u32, first_child: 0, level: 0 };
        let mut nodes = NodeBuffers::of_roots(stream, &[root], &[[0; D]])?;
        // SAFETY: the buffers are owned or borrowed here, and wait for the device before they are freed.
        let splits = unsafe {
            if input.depth == 0 || n <= options.leaf_points as usize {
                iota_on(stream, 0, ids.slice_mut())?;
                stream.copy(tree_coords.slice_mut(), coords.slice())?;
                Vec::new()
            } else {
                let splits = match options.algorithm {
                    BuildAlgorithm::Codes => codes::build(&input, workspace, &mut ids, &mut nodes),
                    BuildAlgorithm::Levels => {
                        levels::build(&input, workspace, &mut ids, &mut nodes, options.levels, (0, 1))
                    }
                }?;
                let in_order = tree_coords.slice_mut();
                permute_parts(stream, Direction::Gather, D, coords.slice(), ids.slice(), in_order)?;
                splits
            }
        };
        Ok(Self {
            frame: frame_words,
            level_begins: level_begins(&splits, D),
            options: options.clone(),
            dims: D,
            nodes: nodes.nodes.into(),
            cells: nodes.cells,
            coords: tree_coords,
            ids,
            index: Once::new(),
        })
    }

    /// Copies the tree to host memory.
    fn to_host(&self) -> Result<HostTree<C>> {
        Ok(HostTree {
            frame: self.frame.clone(),
            dims: self.dims,
            options: self.options.clone(),
            nodes: NodeWords::of_nodes(self.nodes_to_host()?),
            cells: self.cells.to_vec(&Stream::new(self.gpu())?)?,
            level_begins: self.level_begins.clone(),
            coords: self.coords_to_host()?.into(),
            ids: self.ids_to_host()?.into(),
            corners: Corners::new(),
            deep_leaves: Once::new(),
        })
    }

    fn nodes_to_host(&self) -> Result<Vec<Node>> {
        let bits = self.nodes.to_vec(&Stream::new(self.gpu())?)?;
        Ok(bits.into_iter().map(Node::from_bits).collect())
    }

    fn ids_to_host(&self) -> Result<Vec<u32>> {
        self.ids.to_vec(&Stream::new(self.gpu())?)
    }

    fn coords_to_host(&self) -> Result<Vec<C>> {
        self.coords.to_vec(&Stream::new(self.gpu())?)
    }

    fn gpu(&self) -> &Gpu {
        self.ids.gpu()
    }
}

impl<C: Coord> Backend<C> for GpuTree<C> {
    fn options(&self) -> &QuadtreeOptions {
        &self.options
    }
    fn frame(&self) -> &[u64] {
        &self.frame
    }
    fn level_begins(&self) -> &[u32] {
        &self.level_begins
    }
    fn num_points(&self) -> usize {
        self.ids.len()
    }
    fn nodes(&self) -> Result<Cow<'_, [Node]>> {
        self.nodes_to_host().map(Cow::Owned)
    }
    fn ids(&self) -> Result<Cow<'_, [u32]>> {
        self.ids_to_host().map(Cow::Owned)
    }
    fn coords(&self) -> Result<Cow<'_, [C]>> {
        self.coords_to_host().map(Cow::Owned)
    }
    fn cell(&self, node: u32) -> Result<Vec<u32>> {
        let begin = node as usize * self.dims;
        self.cells.part_to_vec(&Stream::new(self.gpu())?, begin..begin + self.dims)
    }
    fn verify(&self) -> Result<()> {
        Backend::verify(&self.to_host()?)
    }
    fn leaf_of(&self, queries: &[C]) -> Result<Vec<u32>> {
        with_2_or_3!(self.dims, D => self.leaf_of(queries.as_chunks::<D>().0))
    }
    fn adjacent_leaves(&self, nodes: &[u32]) -> Result<LeafRows> {
        with_2_or_3!(self.dims, D => self.adjacent_leaves::<D>(nodes))
    }
    fn samples(&self) -> Result<Vec<u32>> {
        with_2_or_3!(self.dims, D => self.samples::<D>())
    }
    fn query_backend(&self) -> Result<&dyn QueryBackend<C>> {
        let index = self.index.get_or_try_init(|| {
            let frame = Buffer::from_slice(&Stream::new(self.gpu())?, &self.frame, "quadtree frame")?;
            let num_points = self.ids.len() as u32;
            let cells = Cells { frame, nodes: self.nodes.clone(), dims: self.dims, num_points };
            bucket_index(&self.coords, &self.ids, cells)
        })?;
        Ok(index)
    }
    #[cfg(feature = "io")]
    fn sections(&self) -> Result<Sections<'_, C>> {
        self.to_sections()
    }
}

/// Returns an upper bound of the temporary bytes of a build of `num_points` points in host memory and `num_nodes` nodes.
pub(crate) fn temp_bytes<C: Coord>(
    num_points: usize,
    num_nodes: u64,
    dims: usize,
    options: &QuadtreeOptions,
) -> u64 {
    let input_bytes = num_points * dims * size_of::<C>() + (2 + dims) * size_of::<u64>();
    let mut layout = Layout::new();
    plan_bounds::<C>(&mut layout, dims);
    let mut workspace_bytes = layout.bytes();
    let mut temp_node_bytes = 0;
    if num_points > options.leaf_points as usize && options.max_depth > 0 {
        let depth = options.max_depth;
        let build_bytes = match options.algorithm {
            BuildAlgorithm::Codes => codes::workspace_bytes(num_points, dims, options.leaf_points, depth),
            BuildAlgorithm::Levels => levels::workspace_bytes(num_points, dims, options.leaf_points),
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

/// Plans the bounds of the points.
fn plan_bounds<C: Coord>(layout: &mut Layout, dims: usize) -> (Bounds<C>, Region<C>) {
    (Bounds::<C>::plan(layout, dims), layout.reserve::<C>(2 * dims))
}

/// Returns the frame of points in device memory. Waits for their bounds.
fn frame<C: Coord, const D: usize>(
    stream: &Stream,
    workspace: &mut Workspace,
    coords: Slice<'_, C>,
    options: &QuadtreeOptions,
) -> Result<Frame<D>> {
    let mut layout = Layout::new();
    let (bounds, corners) = plan_bounds(&mut layout, D);
    let temp = workspace.carve(stream, &layout, "box of points")?;
    let corners = temp.view(corners);
    // SAFETY: `corners` has two corners, and `coords` has whole points; nothing else uses the plan's memory.
    let corners = unsafe {
        bounds.run::<D>(stream, &temp, coords, corners)?;
        stream.read(corners.read_only())?
    };
    let corners = corners.as_chunks::<D>().0;
    frame_of_bounds([corners[0], corners[1]], coords.is_empty(), options.max_depth)
}
