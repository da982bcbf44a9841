//! The best pairs by way of a heap of each probe point.

use super::best::BestPairs;
use super::cells::{PointOrder, Sets, SidesPlan};
use super::grid::PackedGrid;
use super::prepared::{PreparedJoin, ScoredView};
use crate::device::{Layout, Workspace};
use crate::error::Result;
use kauri_kernels::join::heaps::{join_in_registers, join_in_shared};
use kauri_kernels::policy::JOIN;
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::words::Bits128;

/// The memory of the heaps.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum HeapMemory {
    Registers,
    Shared,
}

/// Returns the length of a row, the pairs of one heap, and the number of rows of a batch.
pub(super) fn row_len_and_batch(
    k: usize,
    memory: HeapMemory,
    num_rows: usize,
    result_bytes: u64,
) -> (usize, usize) {
    let row_len = match (memory, k) {
        (HeapMemory::Shared, k) => k,
        // The length of an array in registers is a constant of the kernel.
        (HeapMemory::Registers, ..=16) => 16,
        (HeapMemory::Registers, _) => 64,
    };
    let row_bytes = (row_len * size_of::<Bits128>()) as u64;
    (row_len, usize::try_from(result_bytes / row_bytes).unwrap_or(usize::MAX).clamp(1, num_rows))
}

/// Returns the best pairs of two sets. The probe points are joined in batches; the first batch is small, and its threshold saves work in
/// the others.
pub(super) fn best_pairs<C: Coord>(
    prepared: &PreparedJoin<'_, C>,
    workspace: &mut Workspace,
    sets: [ScoredView<'_, C>; 2],
    grid: PackedGrid,
    memory: HeapMemory,
) -> Result<Vec<Bits128>> {
    let &PreparedJoin { stream, dims, params, scoring, k, result_bytes, .. } = prepared;
    let num_rows = sets[1].len;
    let (row_len, batch) = row_len_and_batch(k, memory, num_rows, result_bytes);
    let mut layout = Layout::new();
    let lens = sets.map(|set| set.len);
    let plan = SidesPlan::plan(&mut layout, dims, &grid, lens, Sets::TwoScored, PointOrder::ByCell);
    let rows = layout.reserve::<Bits128>(batch * row_len);
    let best = BestPairs::plan(&mut layout, k);
    let temp = workspace.carve(stream, &layout, "top-k distance join")?;
    let coords = sets.map(|set| set.coords);
    // SAFETY: the sets are borrowed, and nothing else uses the memory of the plan.
    let sides = unsafe { plan.run(stream, &temp, dims, &grid, params, coords, Some(sets)) }?;
    best.run(stream, &temp, prepared.threshold, |running| {
        let (mut first, mut len) = (0, batch.min(num_rows.div_ceil(JOIN.first_rows)));
        while first < num_rows {
            // SAFETY: as above; the array has `len` rows.
            unsafe {
                let rows = temp.view(rows).part(0, len * row_len);
                let (n, args, ranks) = (len as u64, sides.args(), sides.ranks(scoring));
                let (first_row, state) = (first as u64, running.state().read_only());
                if memory == HeapMemory::Registers {
                    let args = (args, ranks, first_row, state, rows);
                    with_kernel_dims!(dims, D => match row_len {
                        16 => stream.launch_items::<join_in_registers<C, D, 16>>(n, args),
                        _ => stream.launch_items::<join_in_registers<C, D, 64>>(n, args),
                    })?;
                } else {
                    let args = (args, ranks, first_row, k as u32, state, rows);
                    with_kernel_dims!(dims, D => stream.launch_items::<join_in_shared<C, D>>(n, args))?;
                }
                running.offer(rows.read_only())?;
            }
            first += len;
            len = batch.min(num_rows - first);
        }
        Ok(())
    })
}
