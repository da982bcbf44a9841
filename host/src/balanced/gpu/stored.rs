//! Copies trees between device memory and the arrays of files.

use kauri_kernels::thread::coord::Float;

use crate::balanced::backend::Sections;
use crate::balanced::cpu::CpuTree;
use crate::balanced::gpu::GpuTree;
use crate::device::{Buffer, Gpu, Stream};
use crate::error::Result;

impl<C: Float> GpuTree<C> {
    /// Copies the arrays of the tree to host memory.
    pub(crate) fn copy_sections(&self) -> Result<Sections<'static, C>> {
        let stream = Stream::new(&self.gpu)?;
        Ok(Sections {
            coords: self.coords.to_vec(&stream)?.into(),
            medians: self.medians.to_vec(&stream)?.into(),
            representatives: self.representatives.to_vec(&stream)?.into(),
        })
    }

    /// Uploads the tree of a file.
    pub(crate) fn from_host(gpu: &Gpu, tree: &CpuTree<C>) -> Result<Self> {
        let stream = Stream::new(gpu)?;
        let upload = |ids, label| Buffer::from_slice(&stream, ids, label);
        let coords = Buffer::from_slice(&stream, &tree.coords, "coordinates of the points")?;
        let medians = upload(&tree.medians, "medians of the tree")?;
        let children = upload(&[], "children of the nodes")?;
        let representatives = upload(&tree.representatives, "representatives of the points")?;
        Ok(Self::new(gpu, tree.dims, tree.num_nodes, coords, medians, children, representatives))
    }
}
