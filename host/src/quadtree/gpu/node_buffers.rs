//! The nodes of a tree during its build on a GPU.

use crate::device::{Buffer, Stream};
use crate::error::Result;
use kauri_kernels::quadtree::node::Node;
use kauri_kernels::thread::words::Bits128;

/// Nodes, and the low corners of their cells in units.
pub(crate) struct NodeBuffers<const D: usize> {
    pub(crate) nodes: Buffer<Bits128>,
    pub(crate) cells: Buffer<u32>,
}

impl<const D: usize> NodeBuffers<D> {
    /// Copies nodes without children to the device.
    pub(crate) fn of_roots(stream: &Stream, roots: &[Node], corners: &[[u32; D]]) -> Result<Self> {
        let bits: Vec<_> = roots.iter().map(|root| root.to_bits()).collect();
        Ok(Self {
            nodes: Buffer::from_slice(stream, &bits, "quadtree nodes")?,
            cells: Buffer::from_slice(stream, corners.as_flattened(), "quadtree cells")?,
        })
    }

    /// Allocates `more` nodes, and returns the number of the first of them.
    pub(crate) fn grow(&mut self, stream: &Stream, more: usize) -> Result<u32> {
        let len = self.nodes.len();
        let mut nodes = Buffer::uninitialized(stream.gpu(), len + more, "quadtree nodes")?;
        let mut cells = Buffer::uninitialized(stream.gpu(), (len + more) * D, "quadtree cells")?;
        // SAFETY: the new buffers are longer; all four wait for the device before they are freed.
        unsafe {
            stream.copy(nodes.slice_mut().part(0, len), self.nodes.slice())?;
            stream.copy(cells.slice_mut().part(0, len * D), self.cells.slice())?;
        }
        (self.nodes, self.cells) = (nodes, cells);
        Ok(len as u32)
    }
}
