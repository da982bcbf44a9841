//! The input and the output of a build of subtrees in device memory.

use crate::device::{Buffer, Stream};
use crate::error::Result;
use crate::primitives::permute::{Direction, permute_parts};
use crate::quadtree::options::QuadtreeOptions;
use cuda_std::mem::Slice;
use kauri_kernels::quadtree::codes::children::NodesMut;
use kauri_kernels::quadtree::frame::Frame;
use kauri_kernels::quadtree::node::Node;
use kauri_kernels::thread::coord::Coord;

/// A build of the subtrees of some nodes, its roots: the root of the tree, or nodes of one level.
pub(crate) struct Build<'a, C, const D: usize> {
    pub(crate) stream: &'a Stream,
    pub(crate) coords: Slice<'a, C>,
    pub(crate) roots: &'a [Node],
    /// The frame's words.
    pub(crate) frame: Buffer<u64>,
    /// The root of the tree has 2^`frame_levels` units on a side.
    pub(crate) frame_levels: u32,
    /// Number of levels below the root of the tree.
    pub(crate) depth: u32,
    /// Maximum number of points of a leaf above level `depth`.
    pub(crate) leaf_points: u32,
    /// Indices of the points in `coords`, in the order of the tree once it is built.
    pub(crate) ids: Buffer<u32>,
    pub(crate) nodes: NodeBuffers<D>,
}

/// Nodes, and the low corners of their cells in units.
pub(crate) struct NodeBuffers<const D: usize> {
    pub(crate) nodes: Buffer<Node>,
    pub(crate) cells: Buffer<u32>,
}

impl<'a, C: Coord, const D: usize> Build<'a, C, D> {
    /// Prepares a build. `corners` are the low corners of the roots' cells.
    pub(crate) fn new(
        stream: &'a Stream,
        coords: &'a Buffer<C>,
        (roots, corners): (&'a [Node], &[[u32; D]]),
        frame: &Frame<D>,
        options: &QuadtreeOptions,
    ) -> Result<Self> {
        let words: Vec<u64> = frame.to_words().collect();
        Ok(Self {
            stream,
            coords: coords.slice(),
            roots,
            frame: Buffer::from_slice(stream, &words, "quadtree frame")?,
            frame_levels: frame.levels,
            depth: options.depth(frame),
            leaf_points: options.leaf_points,
            ids: Buffer::uninitialized(stream.gpu(), coords.len() / D, "quadtree ids")?,
            nodes: NodeBuffers {
                nodes: Buffer::from_slice(stream, roots, "quadtree nodes")?,
                cells: Buffer::from_slice(stream, corners.as_flattened(), "quadtree cells")?,
            },
        })
    }

    /// Returns the coordinates in the order of the tree.
    ///
    /// # Safety
    /// The ids have been written.
    pub(crate) unsafe fn coords_in_order(&self) -> Result<Buffer<C>> {
        let mut in_order = Buffer::uninitialized(self.stream.gpu(), self.coords.len(), "quadtree points")?;
        // SAFETY: the new buffer is as long; all buffers wait for the device before they are freed.
        unsafe {
            let (ids, to) = (self.ids.slice(), in_order.slice_mut());
            permute_parts(self.stream, Direction::Gather, D, self.coords, ids, to)?;
        }
        Ok(in_order)
    }
}

impl<const D: usize> NodeBuffers<D> {
    /// Allocates `more` nodes, and returns the number of the first of them.
    pub(crate) fn grow(&mut self, stream: &Stream, more: usize) -> Result<u32> {
        let (gpu, len) = (stream.gpu(), self.nodes.len());
        let mut nodes = Buffer::uninitialized(gpu, len + more, "quadtree nodes")?;
        let mut cells = Buffer::uninitialized(gpu, (len + more) * D, "quadtree cells")?;
        // SAFETY: the new buffers are longer; all four wait for the device before they are freed.
        unsafe {
            stream.copy(nodes.slice_mut().part(0, len), self.nodes.slice())?;
            stream.copy(cells.slice_mut().part(0, len * D), self.cells.slice())?;
        }
        *self = Self { nodes, cells };
        Ok(len as u32)
    }

    /// Returns the nodes as an argument of kernels.
    pub(crate) fn view(&mut self) -> NodesMut<'_> {
        NodesMut { nodes: self.nodes.bits_mut(), cells: self.cells.slice_mut() }
    }
}
