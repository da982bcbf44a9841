//! Copies trees between device memory and the arrays of files.

use kauri_kernels::thread::coord::Float;

use crate::balanced::backend::Sections;
use crate::balanced::cpu::CpuTree;
use crate::balanced::gpu::{COORDS, GpuTree, MEDIANS, REPRESENTATIVES};
use crate::device::{Gpu, Stream, download, upload};
use crate::error::Result;

impl<C: Float> GpuTree<C> {
    /// Copies the arrays of the tree to host memory.
    pub(crate) fn copy_sections(&self) -> Result<Sections<'static, C>> {
        let stream = self.stream()?;
        // SAFETY: the arrays have been written.
        unsafe {
            Ok(Sections {
                coords: download(&stream, self.coords.slice())?.into(),
                medians: download(&stream, self.medians_view())?.into(),
                representatives: download(&stream, self.representatives_view())?.into(),
            })
        }
    }

    /// Uploads the tree of a file.
    pub(crate) fn from_host(gpu: &Gpu, from: &CpuTree<C>) -> Result<Self> {
        let stream = Stream::new(gpu)?;
        let mut tree = Self::without_nodes(upload(&stream, &from.coords, from.dims, COORDS)?, from.dims)?;
        tree.medians = upload(&stream, &from.medians, 1, MEDIANS)?;
        tree.representatives = upload(&stream, &from.representatives, 1, REPRESENTATIVES)?;
        tree.num_nodes = from.num_nodes;
        Ok(tree)
    }
}
