//! Balanced trees to files and from them.

use kauri_kernels::thread::coord::Coord;

use crate::balanced::gpu::GpuTree;
use crate::balanced::stored::{Loaded, Sections};
use crate::device::{Buffer, Gpu, Stream};
use crate::error::Result;

impl<C: Coord> GpuTree<C> {
    /// A copy in host memory.
    pub(crate) fn to_stored(&self) -> Result<Sections<'static, C>> {
        let stream = Stream::new(&self.gpu)?;
        Ok(Sections {
            coords: self.coords.to_vec(&stream)?.into(),
            medians: self.medians.to_vec(&stream)?.into(),
            stays: self.stays.to_vec(&stream)?.into(),
        })
    }

    /// The tree of a file.
    pub(crate) fn loaded(gpu: &Gpu, loaded: &Loaded<C>, dims: usize) -> Result<Self> {
        let stream = Stream::new(gpu)?;
        let ids = |ids, label| Buffer::from_slice(&stream, ids, label);
        let coords = Buffer::from_slice(&stream, &loaded.coords, "coordinates of the points")?;
        let medians = ids(&loaded.medians, "medians of the tree")?;
        let (children, stays) = (ids(&[], "children of the nodes")?, ids(&loaded.stays, "points that stay")?);
        Ok(Self::of_parts(gpu, dims, loaded.num_nodes, coords, medians, children, stays))
    }
}
