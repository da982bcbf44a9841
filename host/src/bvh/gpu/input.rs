//! Items in device memory: the launches that depend on what they are.

use crate::device::Stream;
use crate::error::{Error, Result};
use crate::rays::Aabb;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::bvh::leaf::Leaf;

/// Items in device memory.
pub trait DeviceInput: Copy {
    /// The items of leaves.
    type Leaf: Leaf;

    /// Returns the number of items.
    fn num_items(self) -> usize;
    /// Checks devices and lengths.
    fn check(self, stream: &Stream) -> Result<()>;
    /// Returns the error of items that the device found invalid.
    fn error(self, stream: &Stream) -> Error;
    /// Writes the bounding boxes of items and the [summary](kauri_kernels::rays::corners::summary) of all.
    ///
    /// # Safety
    /// There is a box for each item. Nothing else uses the memory until the stream has done the work.
    unsafe fn write_boxes(
        self,
        stream: &Stream,
        boxes: SliceMut<'_, Aabb>,
        found: SliceMut<'_, u32>,
    ) -> Result<()>;
    /// Writes the items of leaves, given their ids.
    ///
    /// # Safety
    /// There is an id for each item. Nothing else uses the memory until the stream has done the work.
    unsafe fn write_leaves(
        self,
        stream: &Stream,
        ids: Slice<'_, u32>,
        to: SliceMut<'_, Self::Leaf>,
    ) -> Result<()>;
    /// Writes the items of leaves at their places in another hierarchy.
    ///
    /// # Safety
    /// Both have as many items as the input. Nothing else uses the memory until the stream has done the work.
    unsafe fn move_leaves(
        self,
        stream: &Stream,
        old: Slice<'_, Self::Leaf>,
        to: SliceMut<'_, Self::Leaf>,
    ) -> Result<()>;
}
