//! The best pairs by a heap of each right point.

use super::best::Best;
use super::cells::{GridOn, TwoSets};
use super::{Asked, ScoredOn, with_kernel_dims};
use crate::device::{Layout, Workspace};
use crate::error::Result;
use kauri_kernels::join::heaps::{join_in_registers, join_in_shared};
use kauri_kernels::policy::JOIN;
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::words::Bits128;

/// Pairs of a row, and rows of a batch.
pub(super) fn rows_of(k: usize, in_registers: bool, num_rows: usize, result_bytes: u64) -> (usize, usize) {
    // The compiler has to know how many there are in registers.
    let of_row = match (in_registers, k) {
        (false, k) => k,
        (true, ..=16) => 16,
        (true, _) => 64,
    };
    let row_bytes = (of_row * size_of::<Bits128>()) as u64;
    (of_row, usize::try_from(result_bytes / row_bytes).unwrap_or(usize::MAX).clamp(1, num_rows))
}

/// The best pairs by way of the best of each right point, in batches of right points, of which the first is small: its limit spares the
/// others work.
pub(super) fn best<C: Coord>(
    asked: &Asked<'_, C>,
    workspace: &mut Workspace,
    sets: [ScoredOn<'_, C>; 2],
    grid: GridOn,
    in_registers: bool,
) -> Result<Vec<Bits128>> {
    let &Asked { stream, dims, near, scoring, k, result_bytes, .. } = asked;
    let num_rows = sets[1].len;
    let (of_row, batch) = rows_of(k, in_registers, num_rows, result_bytes);
    let mut layout = Layout::new();
    let plan = TwoSets::plan(&mut layout, dims, &grid, sets.map(|set| set.len), false, true, false);
    let rows = layout.reserve::<Bits128>(batch * of_row);
    let best = Best::plan(&mut layout, k);
    let temp = workspace.carve(stream, &layout, "top-k distance join")?;
    let coords = sets.map(|set| set.coords);
    // SAFETY: the sets are borrowed, and the memory is the plan's own.
    let joined = unsafe { plan.run(stream, &temp, dims, &grid, near, coords, Some(sets)) }?;
    best.of(stream, &temp, asked.limit, |keeping| {
        let (mut first, mut len) = (0, batch.min(num_rows.div_ceil(JOIN.first_rows)));
        while first < num_rows {
            // SAFETY: as above; there is room for as many rows.
            unsafe {
                let rows = temp.view(rows).part(0, len * of_row);
                let (n, sets, ranks) = (len as u64, joined.sets(), joined.ranks(scoring));
                let (first_row, state) = (first as u64, keeping.state().read_only());
                if in_registers {
                    let args = (sets, ranks, first_row, state, rows);
                    with_kernel_dims!(dims, D => match of_row {
                        16 => stream.launch_items::<join_in_registers<C, D, 16>>(n, args),
                        _ => stream.launch_items::<join_in_registers<C, D, 64>>(n, args),
                    })?;
                } else {
                    let args = (sets, ranks, first_row, k as u32, state, rows);
                    with_kernel_dims!(dims, D => stream.launch_items::<join_in_shared<C, D>>(n, args))?;
                }
                keeping.offer(rows.read_only())?;
            }
            first += len;
            len = batch.min(num_rows - first);
        }
        Ok(())
    })
}
