//! Coordinates in device memory, and their conversion to the type of a tree.

use cuda_std::mem::SliceMut;
use kauri_kernels::balanced::widen::balanced_widen;
use kauri_kernels::thread::coord::Float;

use crate::device::{Buffer, Stream};
use crate::error::Result;

/// The coordinates of points for a tree that stores them as `C`.
#[derive(Clone, Copy)]
pub(crate) enum DeviceCoords<'a, C> {
    Floats(&'a Buffer<C>),
    /// Integers, which a tree of `f64` converts.
    Integers(&'a Buffer<i32>),
}

impl<C: Float> DeviceCoords<'_, C> {
    /// Checks that there are `expected` coordinates on the device of the stream.
    pub(super) fn check(self, stream: &Stream, expected: usize) -> Result<()> {
        let what = "coordinates of the points";
        match self {
            Self::Floats(coords) => coords.check(stream, what, expected),
            Self::Integers(coords) => coords.check(stream, what, expected),
        }
    }

    /// Writes the coordinates to the memory of a tree, which has the same length.
    ///
    /// # Safety
    /// Nothing else uses that memory until the stream has done the work.
    pub(super) unsafe fn write(self, stream: &Stream, to: SliceMut<'_, C>) -> Result<()> {
        // SAFETY: passed on to the caller; buffers wait for the device before they are freed.
        unsafe {
            match self {
                Self::Floats(coords) => stream.copy(to, coords.slice()),
                Self::Integers(coords) => {
                    stream.launch_items::<balanced_widen<C>>(to.len() as u64, (coords.slice(), to))
                }
            }
        }
    }
}
