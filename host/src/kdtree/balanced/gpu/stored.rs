//! Balanced trees to files and from them.

use kauri_kernels::thread::coord::Coord;

use super::GpuTree;
use crate::device::{Buffer, Gpu, Stream};
use crate::error::Result;
use crate::kdtree::balanced::stored::{Loaded, Stored};

impl<C: Coord> GpuTree<C> {
    /// A copy in host memory.
    pub(super) fn to_stored(&self) -> Result<Stored<'static, C>> {
        let stream = Stream::new(&self.gpu)?;
        Ok(Stored {
            coords: self.coords.to_vec(&stream)?.into(),
            medians: self.medians.to_vec(&stream)?.into(),
            stays: self.stays.to_vec(&stream)?.into(),
        })
    }

    /// The tree of a file.
    pub(in crate::kdtree::balanced) fn loaded(gpu: &Gpu, loaded: &Loaded<C>, dims: usize) -> Result<Self> {
        let stream = Stream::new(gpu)?;
        let ids = |ids, label| Buffer::from_slice(&stream, ids, label);
        Ok(Self {
            gpu: gpu.clone(),
            dims,
            num_nodes: loaded.num_nodes,
            coords: Buffer::from_slice(&stream, &loaded.coords, "coordinates of the points")?,
            medians: ids(&loaded.medians, "medians of the tree")?,
            children: ids(&[], "children of the nodes")?,
            stays: ids(&loaded.stays, "points that stay")?,
        })
    }
}
