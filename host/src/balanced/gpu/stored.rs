//! Copies trees between device memory and the arrays of files.

use kauri_kernels::thread::coord::Float;

use crate::balanced::backend::Sections;
use crate::balanced::cpu::CpuTree;
use crate::balanced::gpu::{COORDS, GpuTree, MEDIANS, REPRESENTATIVES};
use crate::device::{Buffer, Gpu, Stream};
use crate::error::Result;

impl<C: Float> GpuTree<C> {
    /// Copies the arrays of the tree to host memory.
    pub(crate) fn copy_sections(&self) -> Result<Sections<'static, C>> {
        let stream = self.stream()?;
        // SAFETY: the arrays have been written.
        unsafe {
            Ok(Sections {
                coords: stream.read(self.coords.slice())?.into(),
                medians: stream.read(self.medians_view())?.into(),
                representatives: stream.read(self.representatives_view())?.into(),
            })
        }
    }

    /// Uploads the tree of a file.
    pub(crate) fn from_host(gpu: &Gpu, from: &CpuTree<C>) -> Result<Self> {
        let stream = Stream::new(gpu)?;
        let mut tree = Self::without_nodes(Buffer::from_slice(&stream, &from.coords, COORDS)?, from.dims)?;
        tree.medians = Buffer::from_slice(&stream, &from.medians, MEDIANS)?;
        tree.representatives = Buffer::from_slice(&stream, &from.representatives, REPRESENTATIVES)?;
        tree.num_nodes = from.num_nodes;
        Ok(tree)
    }
}
