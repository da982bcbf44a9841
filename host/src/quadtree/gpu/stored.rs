//! Conversion of a tree in device memory to the arrays of a file, and from host memory.

use crate::device::{Buffer, Gpu, Stream};
use crate::error::Result;
use crate::once::Once;
use crate::point::check_each_coordinate;
use crate::quadtree::gpu::GpuTree;
use crate::quadtree::host::HostTree;
use crate::quadtree::sections::Sections;
use kauri_kernels::thread::coord::Coord;

impl<C: Coord> GpuTree<C> {
    /// Copies the arrays that a file stores to host memory. Checks the coordinates, since those of device memory are unchecked.
    pub(super) fn to_sections(&self) -> Result<Sections<'_, C>> {
        let (coords, ids) = (self.coords_to_host()?, self.ids_to_host()?);
        check_each_coordinate(&coords, self.dims, "point", |place| ids[place].into())?;
        Ok(Sections {
            coords: coords.into(),
            ids: ids.into(),
            nodes: self.nodes_to_host()?.into(),
            frame: &self.frame,
            options: &self.options,
        })
    }

    /// Copies a tree from host memory.
    pub(crate) fn of_host(gpu: &Gpu, tree: &HostTree<C>) -> Result<Self> {
        let stream = Stream::new(gpu)?;
        let mut nodes = Buffer::uninitialized(gpu, tree.nodes().len(), "quadtree nodes")?;
        // SAFETY: nothing else uses the buffer yet. A node and its bits have the same bytes.
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
