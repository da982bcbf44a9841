//! Triangles in device memory.

use super::input::DeviceInput;
use crate::device::Stream;
use crate::error::{Error, Result};
use crate::mesh::DeviceMesh;
use crate::rays::Aabb;
use crate::rays::corners::launch_corners;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::bvh::leaf::LeafTriangle;
use kauri_kernels::bvh::leaf_triangles::{bvh_leaf_triangles, bvh_move_triangles};

impl DeviceInput for DeviceMesh<'_> {
    type Leaf = LeafTriangle;

    fn num_items(self) -> usize {
        self.len()
    }

    fn check(self, stream: &Stream) -> Result<()> {
        DeviceMesh::check(&self, stream)
    }

    fn error(self, stream: &Stream) -> Error {
        DeviceMesh::error(self, stream)
    }

    unsafe fn write_boxes(
        self,
        stream: &Stream,
        boxes: SliceMut<'_, Aabb>,
        found: SliceMut<'_, u32>,
    ) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { launch_corners(stream, self, None, boxes, found) }
    }

    unsafe fn write_leaves(
        self,
        stream: &Stream,
        ids: Slice<'_, u32>,
        to: SliceMut<'_, LeafTriangle>,
    ) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { stream.launch_items::<bvh_leaf_triangles>(to.len() as u64, (ids, self.view(), to)) }
    }

    unsafe fn move_leaves(
        self,
        stream: &Stream,
        old: Slice<'_, LeafTriangle>,
        to: SliceMut<'_, LeafTriangle>,
    ) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { stream.launch_items::<bvh_move_triangles>(to.len() as u64, (old, self.view(), to)) }
    }
}
