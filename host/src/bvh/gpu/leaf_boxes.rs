//! Boxes in device memory.

use super::input::DeviceInput;
use crate::bvh::input::check_boxes;
use crate::device::{Buffer, Stream};
use crate::error::{self, Error, Result};
use crate::rays::Aabb;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::bvh::leaf::LeafBox;
use kauri_kernels::bvh::leaf_boxes::{bvh_boxes, bvh_leaf_boxes, bvh_move_boxes};
use kauri_kernels::rays::mesh::MAX_TRIANGLES;

impl DeviceInput for &Buffer<Aabb> {
    type Leaf = LeafBox;

    fn num_items(self) -> usize {
        self.len()
    }

    fn check(self, stream: &Stream) -> Result<()> {
        Buffer::check(self, stream, "boxes", self.len())?;
        error::check_count("boxes", self.len() as u64, MAX_TRIANGLES)
    }

    fn error(self, stream: &Stream) -> Error {
        match self.to_vec(stream).and_then(|boxes| check_boxes(&boxes, "box")) {
            Err(error) => error,
            // Another stream has written the boxes since.
            Ok(()) => Error::corrupt(0, "the boxes have changed during the build"),
        }
    }

    unsafe fn write_boxes(
        self,
        stream: &Stream,
        boxes: SliceMut<'_, Aabb>,
        found: SliceMut<'_, u32>,
    ) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe {
            stream.fill_bytes(found, 0xFF)?;
            stream.launch_items::<bvh_boxes>(self.len() as u64, (self.slice(), boxes, found))
        }
    }

    unsafe fn write_leaves(
        self,
        stream: &Stream,
        ids: Slice<'_, u32>,
        to: SliceMut<'_, LeafBox>,
    ) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { stream.launch_items::<bvh_leaf_boxes>(to.len() as u64, (ids, self.slice(), to)) }
    }

    unsafe fn move_leaves(
        self,
        stream: &Stream,
        old: Slice<'_, LeafBox>,
        to: SliceMut<'_, LeafBox>,
    ) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { stream.launch_items::<bvh_move_boxes>(to.len() as u64, (old, self.slice(), to)) }
    }
}
