//! Trees to files and from them.

use crate::device::{Buffer, Gpu, Stream};
use crate::error::Result;
use crate::once::Once;
use crate::point::check_each_coordinate;
use crate::quadtree::gpu::GpuTree;
use crate::quadtree::host::HostTree;
use crate::quadtree::stored::Sections;
use kauri_kernels::thread::coord::Coord;

impl<C: Coord> GpuTree<C> {
    /// A copy in host memory.
    pub(crate) fn to_stored(&self) -> Result<Sections<'_, C>> {
        let (coords, ids) = (self.coords()?, self.ids()?);
        check_each_coordinate(&coords, self.dims, "point", |place| ids[place].into())?;
        Ok(Sections {
            coords: coords.into(),
            ids: ids.into(),
            nodes: self.nodes()?.into(),
            frame: &self.frame,
            options: &self.options,
        })
    }

    /// A tree in host memory, on the device.
    pub(crate) fn loaded(gpu: &Gpu, tree: &HostTree<C>) -> Result<Self> {
        let stream = Stream::new(gpu)?;
        let mut nodes = Buffer::uninitialized(gpu, tree.nodes().len(), "quadtree nodes")?;
        // SAFETY: nobody else has the buffer yet. A node has the bytes of its bits.
        unsafe { stream.upload(nodes.bits_mut(), tree.nodes())? };
        Ok(Self {
            frame: tree.frame.clone(),
            level_begins: tree.level_begins.clone(),
            options: tree.options.clone(),
            dims: tree.dims,
            nodes: nodes.into(),
            cells: Buffer::from_slice(&stream, &tree.cells, "quadtree cells")?,
            coords: Buffer::from_slice(&stream, &tree.coords, "quadtree points")?,
            ids: Buffer::from_slice(&stream, &tree.ids, "quadtree ids")?,
            index: Once::new(),
        })
    }
}
