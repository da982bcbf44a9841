//! The tree on a GPU: by rounds of some levels each, from sorted codes, or level by level.

mod codes;
mod index;
mod levels;
mod nodes;
mod queries;
#[cfg(feature = "io")]
mod stored;
pub(crate) mod streamed;

use crate::device::{Buffer, Gpu, Layout, Stream, Workspace};
use crate::error::Result;
use crate::once::Once;
use crate::primitives::bounds::Bounds;
use crate::primitives::generate::iota_on;
use crate::primitives::permute::{Direction, permute_parts};
use crate::quadtree::host::{HostTree, NodeWords};
use crate::quadtree::{Builder, QuadtreeOptions, frame_over, level_begins};
use crate::query::backend::QueryBackend;
use crate::query::cpu::Corners;
use crate::query::gpu::BucketIndex;
use cuda_std::mem::Slice;
use index::{Cells, bucket_index};
use kauri_kernels::quadtree::frame::Frame;
use kauri_kernels::quadtree::node::Node;
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::words::Bits128;
use nodes::Nodes;
use std::sync::Arc;

/// A tree in device memory.
pub(crate) struct GpuTree<C> {
    pub(crate) frame: Vec<u64>,
    pub(crate) level_begins: Vec<u32>,
    pub(crate) options: QuadtreeOptions,
    pub(crate) dims: usize,
    nodes: Arc<Buffer<Bits128>>,
    cells: Buffer<u32>,
    coords: Buffer<C>,
    ids: Buffer<u32>,
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
        let asked = Asked {
            stream,
            coords: coords.slice(),
            frame: Buffer::from_slice(stream, &frame_words, "quadtree frame")?,
            depth: frame.levels.min(options.max_depth),
            most: options.leaf_points,
        };
        let mut room = Room {
            coords: Buffer::uninitialized(gpu, coords.len(), "quadtree points")?,
            ids: Buffer::uninitialized(gpu, n, "quadtree ids")?,
        };
        let root = Node { start: 0, end: n as u32, first_child: 0, level: 0 };
        let mut nodes = Nodes::of_roots(stream, &[root], &[[0; D]])?;
        // SAFETY: the buffers are owned or borrowed here, and wait for the device before they are freed.
        let splits = unsafe {
            if asked.depth == 0 || n <= asked.most as usize {
                iota_on(stream, 0, room.ids.slice_mut())?;
                stream.copy(room.coords.slice_mut(), coords.slice())?;
                Vec::new()
            } else {
                let splits = match options.builder {
                    Builder::Codes => codes::build(&asked, workspace, &mut room.ids, &mut nodes),
                    Builder::Levels => {
                        levels::build(&asked, workspace, &mut room.ids, &mut nodes, options.levels, (0, 1))
                    }
                }?;
                let (ids, in_order) = (room.ids.slice(), room.coords.slice_mut());
                permute_parts(stream, Direction::Gather, D, coords.slice(), ids, in_order)?;
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
            coords: room.coords,
            ids: room.ids,
            index: Once::new(),
        })
    }

    /// What answers queries, which the first one makes.
    pub(crate) fn query_backend(&self) -> Result<&dyn QueryBackend<C>> {
        let index = self.index.get_or_try_init(|| {
            let frame = Buffer::from_slice(&Stream::new(self.gpu())?, &self.frame, "quadtree frame")?;
            let num_points = self.num_points() as u32;
            let cells = Cells { frame, nodes: self.nodes.clone(), dims: self.dims, num_points };
            bucket_index(&self.coords, &self.ids, cells)
        })?;
        Ok(index)
    }

    pub(crate) fn num_points(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn nodes(&self) -> Result<Vec<Node>> {
        let bits = self.nodes.to_vec(&Stream::new(self.gpu())?)?;
        Ok(bits.into_iter().map(Node::from_bits).collect())
    }

    pub(crate) fn ids(&self) -> Result<Vec<u32>> {
        self.ids.to_vec(&Stream::new(self.gpu())?)
    }

    pub(crate) fn coords(&self) -> Result<Vec<C>> {
        self.coords.to_vec(&Stream::new(self.gpu())?)
    }

    /// The low corner of a node's cell.
    pub(crate) fn cell(&self, node: u32) -> Result<Vec<u32>> {
        let begin = node as usize * self.dims;
        self.cells.part_to_vec(&Stream::new(self.gpu())?, begin..begin + self.dims)
    }

    /// A copy in host memory.
    pub(crate) fn to_host(&self) -> Result<HostTree<C>> {
        Ok(HostTree {
            frame: self.frame.clone(),
            dims: self.dims,
            options: self.options.clone(),
            nodes: NodeWords::of_nodes(self.nodes()?),
            cells: self.cells.to_vec(&Stream::new(self.gpu())?)?,
            level_begins: self.level_begins.clone(),
            coords: self.coords()?.into(),
            ids: self.ids()?.into(),
            corners: Corners::new(),
            deep_leaves: Once::new(),
        })
    }

    fn gpu(&self) -> &Gpu {
        self.ids.gpu()
    }
}

/// What is asked for: a tree of more points than a leaf may have, and of a level at least.
struct Asked<'a, C> {
    stream: &'a Stream,
    coords: Slice<'a, C>,
    /// The frame's words.
    frame: Buffer<u64>,
    /// Levels below the root.
    depth: u32,
    /// A node with more points splits.
    most: u32,
}

/// Room for the points of the tree.
struct Room<C> {
    coords: Buffer<C>,
    ids: Buffer<u32>,
}

/// The frame over points in device memory. Waits for their box.
fn frame<C: Coord, const D: usize>(
    stream: &Stream,
    workspace: &mut Workspace,
    coords: Slice<'_, C>,
    options: &QuadtreeOptions,
) -> Result<Frame<D>> {
    let mut layout = Layout::new();
    let (bounds, corners) = (Bounds::<C>::plan(&mut layout, D), layout.reserve::<C>(2 * D));
    let temp = workspace.carve(stream, &layout, "box of points")?;
    let corners = temp.view(corners);
    // SAFETY: twice the dimensions, and coordinates of whole points; nothing else uses the plan's memory.
    let corners = unsafe {
        bounds.run::<D>(stream, &temp, coords, corners)?;
        stream.read(corners.read_only())?
    };
    let corners = corners.as_chunks::<D>().0;
    frame_over([corners[0], corners[1]], coords.is_empty(), options.max_depth)
}
