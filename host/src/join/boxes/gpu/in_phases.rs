//! Counts the pairs of a join of boxes phase by phase.

use super::pairs::{count, counting};
use super::phases::{BoxPhase, PhaseClock};
use super::published::PublishedPlan;
use crate::device::{Layout, Stream, Workspace};
use crate::error::Result;
use crate::join::boxes::params::BoxParams;
use crate::primitives::pairs::empty_view;
use cuda_std::mem::Slice;
use kauri_kernels::thread::coord::Float;

/// Counts the pairs of two sets, given as [right, left], and measures the phases. Methods of the library have one phase.
pub(in crate::join::boxes) fn count_in_phases<C: Float>(
    stream: &Stream,
    workspace: &mut Workspace,
    sets: [Slice<'_, C>; 2],
    params: &BoxParams<C>,
) -> Result<(u64, Vec<BoxPhase>)> {
    stream.synchronize()?;
    let mut clock = PhaseClock::on();
    let total = if params.method.is_published() && sets.iter().all(|set| !set.is_empty()) {
        let mut layout = Layout::new();
        let plan = PublishedPlan::new(stream, workspace, &mut layout, sets, params)?;
        clock.end(stream, "bounds", 0)?;
        match plan {
            None => 0,
            Some(plan) => {
                let total = layout.reserve::<u64>(1);
                let temp = workspace.carve(stream, &layout, "box join")?;
                temp.clear(total)?;
                let total = temp.view(total);
                // SAFETY: the sets are borrowed, and nothing else uses the memory of the plan.
                unsafe {
                    let finder = plan.run(&temp, sets, params, &mut clock)?;
                    finder.launch(stream, counting(empty_view(), total))?;
                    stream.read(total.read_only())?[0]
                }
            }
        }
    } else {
        count(stream, workspace, sets, params)?
    };
    clock.end(stream, "join", 0)?;
    Ok((total, clock.into_phases()))
}
