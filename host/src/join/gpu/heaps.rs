//! The best pairs by way of a heap of each probe point.

use super::best::BestPairs;
use super::cells::{Sets, Side, SidesPlan};
use super::grid::PackedGrid;
use super::scored::ScoredView;
use crate::device::{Layout, Stream, Workspace};
use crate::error::Result;
use crate::join::params::{JoinParams, TopKParams};
use crate::join::strategy::Strategy;
use crate::point::with_kernel_dims;
use kauri_kernels::join::curve::MAX_DIMS;
use kauri_kernels::join::heaps::{HeapArgs, heap_bytes, join_in_registers, join_in_shared};
use kauri_kernels::policy::JOIN;
use kauri_kernels::thread::coord::Float;
use kauri_kernels::thread::words::Bits128;

/// Least bytes for the heaps of a batch.
const MIN_BYTES: u64 = 1 << 20;

/// Returns the most bytes for the heaps of a batch if a join may take `bytes` bytes of device memory.
pub(super) fn max_bytes(bytes: u64) -> u64 {
    (bytes / 4).max(MIN_BYTES)
}

/// Returns the length of a row, the pairs of one heap, and the number of rows of a batch.
pub(super) fn row_len_and_batch<J>(params: &TopKParams<J>, k: usize, num_rows: usize) -> (usize, usize) {
    let row_len = match (params.strategy, k) {
        (Strategy::SharedHeap, k) => k,
        // The length of an array in registers is a constant of the kernel.
        (_, k) => k.next_power_of_two(),
    };
    let row_bytes = (row_len * size_of::<Bits128>()) as u64;
    (row_len, usize::try_from(params.heap_bytes / row_bytes).unwrap_or(usize::MAX).clamp(1, num_rows))
}

/// Returns the best pairs of two sets. The probe points are joined in batches; the first batch is small, and its threshold saves work in
/// the others.
pub(super) fn best_pairs<C: Float>(
    stream: &Stream,
    workspace: &mut Workspace,
    params: &TopKParams<JoinParams<C>>,
    sets: [ScoredView<'_, C>; 2],
    grid: &PackedGrid,
) -> Result<Vec<Bits128>> {
    let (num_rows, k) = (sets[1].len, params.k);
    let (row_len, batch) = row_len_and_batch(params, k, num_rows);
    let mut layout = Layout::new();
    let lens = sets.map(|set| set.len);
    let plan = SidesPlan::plan(&mut layout, grid, lens, Sets::TwoScored, Side::Probe);
    let rows = layout.reserve::<Bits128>(batch * row_len);
    let best = BestPairs::plan(&mut layout, k);
    let temp = workspace.carve(stream, &layout, "top-k distance join")?;
    let coords = sets.map(|set| set.coords);
    // SAFETY: the sets are borrowed, and nothing else uses the memory of the plan.
    let sides = unsafe { plan.run(&temp, grid, &params.join, coords, Some(sets)) }?;
    best.run(&temp, params.threshold, |running| {
        let (mut first, mut len) = (0, batch.min(num_rows.div_ceil(JOIN.first_rows)));
        while first < num_rows {
            // SAFETY: as above; the array has `len` rows.
            unsafe {
                let pairs = temp.view(rows).part(0, len * row_len);
                let (ranks, state) = (sides.ranks(&params.scoring), running.state().read_only());
                let args = HeapArgs { sides: sides.args(), ranks, first: first as u64, state, pairs };
                let n = len as u64;
                with_kernel_dims!(grid.dims, D in [2, 3] or MAX_DIMS => {
                    launch::<C, D>(stream, params, row_len, n, args)
                })?;
                running.offer(pairs.read_only())?;
            }
            first += len;
            len = batch.min(num_rows - first);
        }
        Ok(())
    })
}

/// Launches the kernel of a batch of `n` probe points.
///
/// # Safety
/// There is a row for each probe point. Nothing else uses the memory until the stream has done the work.
unsafe fn launch<C: Float, const D: usize>(
    stream: &Stream,
    params: &TopKParams<JoinParams<C>>,
    row_len: usize,
    n: u64,
    args: HeapArgs<'_, C>,
) -> Result<()> {
    if params.strategy == Strategy::SharedHeap {
        let args = (args, row_len as u32);
        // SAFETY: passed on to the caller.
        return unsafe {
            stream.launch_items_with_shared::<join_in_shared<C, D>>(n, heap_bytes(row_len), args)
        };
    }
    macro_rules! launch {
        ($($k:literal)*) => {
            match row_len {
                // SAFETY: passed on to the caller.
                $($k => unsafe { stream.launch_items::<join_in_registers<C, D, $k>>(n, (args,)) },)*
                len => unreachable!("heaps of {len} pairs"),
            }
        };
    }
    launch!(1 2 4 8 16 32 64 128)
}
