//! The input of hierarchies: meshes and boxes, in host or in device memory.

use super::gpu::input::DeviceInput;
use crate::device::{Buffer, Gpu, Stream};
use crate::error::{Error, Result};
use crate::mesh::{DeviceMesh, Mesh};
use crate::parallel::{self, TASK_ITEMS};
use crate::point::check_each_coordinate;
use crate::rays::Aabb;
use kauri_kernels::bvh::leaf::{Leaf, LeafBox, LeafTriangle};
use kauri_kernels::bvh::leaf_boxes::is_valid;
use kauri_kernels::rays::triangle::Corners;

/// Items of a hierarchy in host memory: a [`Mesh`], or boxes: a slice, a vector or an array of [`Aabb`].
///
/// Only kauri implements it.
pub trait BvhInput: sealed::Input {}

impl<I: sealed::Input + ?Sized> BvhInput for I {}

/// Items of a hierarchy in device memory: a [`DeviceMesh`], or a `&Buffer<Aabb>`.
///
/// Only kauri implements it.
pub trait DeviceBvhInput: DeviceInput {}

impl<I: DeviceInput> DeviceBvhInput for I {}

pub(super) mod sealed {
    use super::*;

    pub trait Input {
        /// The items of leaves.
        type Leaf: Leaf;
        /// The input in device memory.
        type OnDevice<'a>: DeviceInput<Leaf = Self::Leaf>;

        /// Returns the number of items.
        fn num_items(&self) -> usize;
        /// Validates the items and returns them, in the order of their ids.
        fn leaves(&self) -> Result<Vec<Self::Leaf>>;
        /// Calls `work` with the items in device memory and their stream.
        fn on_gpu<R>(
            &self,
            gpu: &Gpu,
            work: impl FnOnce(&Stream, Self::OnDevice<'_>) -> Result<R>,
        ) -> Result<R>;
    }
}

/// Items in device memory, and the stream that uses them.
pub(super) struct OnStream<'a, I>(pub(super) &'a Stream, pub(super) I);

impl<I: DeviceInput> sealed::Input for OnStream<'_, I> {
    type Leaf = I::Leaf;
    type OnDevice<'a> = I;

    fn num_items(&self) -> usize {
        self.1.num_items()
    }

    fn leaves(&self) -> Result<Vec<I::Leaf>> {
        Err(Error::NotOnCpu)
    }

    fn on_gpu<R>(&self, _: &Gpu, work: impl FnOnce(&Stream, I) -> Result<R>) -> Result<R> {
        work(self.0, self.1)
    }
}

impl sealed::Input for Mesh {
    type Leaf = LeafTriangle;
    type OnDevice<'a> = DeviceMesh<'a>;

    fn num_items(&self) -> usize {
        self.len()
    }

    fn leaves(&self) -> Result<Vec<LeafTriangle>> {
        let leaf = |i| LeafTriangle::new(i as u32, Corners::new(self.corners(i)));
        parallel::collect(self.len(), TASK_ITEMS, "triangles", leaf)
    }

    fn on_gpu<R>(&self, gpu: &Gpu, work: impl FnOnce(&Stream, DeviceMesh<'_>) -> Result<R>) -> Result<R> {
        let stream = Stream::new(gpu)?;
        let vertices = Buffer::from_slice(&stream, self.vertices().as_flattened(), "vertices")?;
        let triangles = Buffer::from_slice(&stream, self.triangles().as_flattened(), "triangles")?;
        work(&stream, DeviceMesh { vertices: &vertices, triangles: &triangles })
    }
}

impl<B: AsRef<[Aabb]> + ?Sized> sealed::Input for B {
    type Leaf = LeafBox;
    type OnDevice<'a> = &'a Buffer<Aabb>;

    fn num_items(&self) -> usize {
        self.as_ref().len()
    }

    fn leaves(&self) -> Result<Vec<LeafBox>> {
        let boxes = self.as_ref();
        check_boxes(boxes, "box")?;
        parallel::collect(boxes.len(), TASK_ITEMS, "boxes", |i| LeafBox::new(i as u32, boxes[i]))
    }

    fn on_gpu<R>(&self, gpu: &Gpu, work: impl FnOnce(&Stream, &Buffer<Aabb>) -> Result<R>) -> Result<R> {
        let stream = Stream::new(gpu)?;
        let boxes = Buffer::from_slice(&stream, self.as_ref(), "boxes")?;
        work(&stream, &boxes)
    }
}

/// Checks the coordinates of boxes, and that their low corners are not above the high ones. `what` names the boxes in errors.
pub(super) fn check_boxes(boxes: &[Aabb], what: &'static str) -> Result<()> {
    let invalid = |i: usize| (!is_valid(boxes[i])).then_some(i);
    let Some(index) = parallel::find_some(boxes.len(), TASK_ITEMS, invalid) else { return Ok(()) };
    let of = boxes[index];
    for corner in [of.low, of.high] {
        check_each_coordinate(&corner, 3, what, |_| index as u64)?;
    }
    let axis = (0..3).find(|&axis| of.low[axis] > of.high[axis]).unwrap_or(0);
    let (low, high) = (f64::from(of.low[axis]), f64::from(of.high[axis]));
    Err(Error::InvertedBox { what, index: index as u64, axis, low, high })
}
