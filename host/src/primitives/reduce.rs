//! Reduce: all items combined by an operator. The result stays on the device.
//!
//! Any number of items; the result of none is the operator's identity. Items and operators are those of
//! [`scan`](super::scan). Each item is read once. The association depends only on the number of items, so that even
//! sums of floats have the same bits on every run and on the CPU.

use super::planned::{bytes_of, carve};
pub use super::scan::ScanOperator;
use crate::device::{Buffer, Layout, Region, Stream, Temp, Workspace};
use crate::error::Result;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::primitives::reduce::{MAX_BLOCKS, primitives_reduce, shape};
use kauri_kernels::thread::operator::Operator;
use kauri_kernels::thread::words::Words;

/// The temporary memory of reductions of up to a number of items.
pub(crate) struct Reduce<T> {
    /// The sum of each block.
    sums: Region<T>,
}

impl<T: Words> Reduce<T> {
    /// Plans reductions of `len` items.
    pub(crate) fn plan(layout: &mut Layout, len: usize) -> Self {
        let (_, num_blocks) = shape::<T>(len, MAX_BLOCKS);
        // A single block writes the result directly.
        Self { sums: layout.reserve(if num_blocks > 1 { num_blocks } else { 0 }) }
    }

    /// Reduces with operator `O` to the first item of `output`.
    ///
    /// # Safety
    /// The input has the planned length, and the output at least one entry. Nothing else uses them until the stream has
    /// done the work.
    pub(crate) unsafe fn run<O: Operator<T>>(
        &self,
        temp: &Temp<'_>,
        input: Slice<'_, T>,
        output: SliceMut<'_, T>,
    ) -> Result<()> {
        let (warp_rows, num_blocks) = shape::<T>(input.len(), MAX_BLOCKS);
        let sums = if num_blocks > 1 { temp.view(self.sums) } else { output };
        // SAFETY: passed on to the caller; `sums` has an entry per block.
        unsafe {
            temp.stream
                .launch::<primitives_reduce<T, O>>(num_blocks as u64, (input, sums, warp_rows as u64))?;
            if num_blocks > 1 {
                let (warp_rows, _) = shape::<T>(num_blocks, 1);
                let args = (sums.read_only(), output, warp_rows as u64);
                temp.stream.launch::<primitives_reduce<T, O>>(1, args)?;
            }
        }
        Ok(())
    }
}

/// Returns the bytes of temporary memory of a reduction of `len` items.
pub fn plan<T: Words>(len: usize) -> u64 {
    bytes_of(|layout| Reduce::<T>::plan(layout, len))
}

/// Combines all items of `input` in their order, and writes the result to `output`, which has one entry.
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) unless the output has one entry,
/// [`Error::WrongDevice`](crate::Error::WrongDevice), [`Error::OutOfMemory`](crate::Error::OutOfMemory), and errors of
/// the driver.
pub fn reduce<T: Words, O: ScanOperator<T>>(
    stream: &Stream,
    workspace: &mut Workspace,
    input: &Buffer<T>,
    output: &mut Buffer<T>,
) -> Result<()> {
    input.check_device(stream)?;
    output.check(stream, "items of a reduction's output", 1)?;
    let (reduce, temp) = carve(stream, workspace, "reduce", |layout| Reduce::<T>::plan(layout, input.len()))?;
    // SAFETY: the borrows keep both buffers apart, and buffers wait for the device before they are freed.
    unsafe { reduce.run::<O>(&temp, input.slice(), output.slice_mut()) }
}
