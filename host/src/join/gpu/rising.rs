//! The best pairs under a limit that rises.

use super::best::Best;
use super::cells::{GridOn, Joined, TwoSets};
use super::{Asked, ScoredOn, grid_on, with_kernel_dims};
use crate::device::{Layout, Region, Workspace};
use crate::error::Result;
use crate::join::Near;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::join::cells::Pairing;
use kauri_kernels::join::rising::{OwnLaunch, join_rising, join_rising_rest};
use kauri_kernels::policy::{JOIN, JOIN_SEGMENT, JOIN_THREADS};
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::words::Bits128;

/// The best pairs.
pub(super) fn best<C: Coord>(
    asked: &Asked<'_, C>,
    workspace: &mut Workspace,
    sets: [ScoredOn<'_, C>; 2],
    grid: GridOn,
) -> Result<Vec<Bits128>> {
    // The smaller set is the one that is looked in.
    let is_turned = JOIN.is_small_beside(sets[1].len, sets[0].len);
    let near = Near { pairing: if is_turned { Pairing::Turned } else { asked.near.pairing }, ..*asked.near };
    let (mut sets, mut scoring) = (sets, *asked.scoring);
    if is_turned {
        sets.reverse();
        scoring.weights.reverse();
    }
    let asked = &Asked { near: &near, scoring: &scoring, ..*asked };
    let &Asked { stream, dims, .. } = asked;
    let coords = sets.map(|set| set.coords);
    rising(asked, workspace, coords, Some(sets), grid, |joined, part| {
        let (sets_by_cells, ranks, extremes) = (joined.sets(), joined.ranks(&scoring), joined.left.extremes);
        let (first, stride, pairs, state) = (part.first_block, part.stride, part.pairs, part.state);
        let num_warps = part.num_blocks as usize * (JOIN_THREADS / 32);
        let tasks_per_warp = u32::try_from(part.tasks.len() / num_warps).unwrap_or(u32::MAX);
        let args = (sets_by_cells, ranks, extremes, first, stride, pairs, state, tasks_per_warp, part.tasks);
        // SAFETY: the sets are borrowed, and the memory is the plan's own.
        unsafe {
            with_kernel_dims!(dims, D => stream.launch::<join_rising<C, D>>(part.num_blocks, args))?;
            // A point goes through a segment at least.
            if sets[0].len <= JOIN_SEGMENT {
                return Ok(());
            }
            let args = (sets_by_cells, ranks, extremes, pairs, state, part.tasks.read_only());
            with_kernel_dims!(dims, D => stream.launch::<join_rising_rest<C, D>>(JOIN.task_blocks, args))
        }
    })
}

/// The best pairs by kernels of one's own.
pub(in crate::join) fn best_by<C: Coord>(
    asked: &Asked<'_, C>,
    workspace: &mut Workspace,
    coords: [Slice<'_, C>; 2],
    mut launch: impl FnMut(u64, OwnLaunch<'_, C>) -> Result<()>,
) -> Result<Vec<Bits128>> {
    let grid = grid_on(asked.stream, workspace, asked.dims, coords, asked.near)?;
    let Some(grid) = grid else { return Ok(Vec::new()) };
    rising(asked, workspace, coords, None, grid, |joined, part| {
        let own = OwnLaunch {
            sets: joined.sets(),
            first_block: part.first_block,
            stride: part.stride,
            pairs: part.pairs,
            state: part.state,
        };
        launch(part.num_blocks, own)
    })
}

/// Right points of a launch, by their blocks, and where their pairs go.
struct Part<'a> {
    first_block: u64,
    num_blocks: u64,
    stride: u64,
    pairs: SliceMut<'a, Bits128>,
    state: SliceMut<'a, u64>,
    /// What one part of a launch leaves to the other.
    tasks: SliceMut<'a, u64>,
}

/// Puts two sets in order, and lets `launch` offer the pairs of more and more right points until none was lost.
fn rising<C: Coord>(
    asked: &Asked<'_, C>,
    workspace: &mut Workspace,
    coords: [Slice<'_, C>; 2],
    scores: Option<[ScoredOn<'_, C>; 2]>,
    grid: GridOn,
    mut launch: impl FnMut(&Joined<'_, C>, Part<'_>) -> Result<()>,
) -> Result<Vec<Bits128>> {
    let &Asked { stream, dims, near, k, .. } = asked;
    let lens = coords.map(|coords| coords.len() / dims);
    let mut layout = Layout::new();
    let Plan { sets, best, tasks } = Plan::new(&mut layout, dims, &grid, lens, k, scores.is_some());
    let temp = workspace.carve(stream, &layout, "top-k distance join")?;
    // SAFETY: the sets are borrowed, and the memory is the plan's own.
    let joined = unsafe { sets.run(stream, &temp, dims, &grid, near, coords, scores) }?;
    let all_blocks = lens[1].div_ceil(JOIN_THREADS) as u64;
    let stride = stride(all_blocks);
    best.of(stream, &temp, asked.limit, |keeping| {
        let (mut first_block, mut blocks) = (0, (JOIN.first_part / JOIN_THREADS) as u64);
        while first_block < all_blocks {
            let num_blocks = blocks.min(all_blocks - first_block);
            let ((pairs, state), tasks) = (keeping.room(), temp.view(tasks));
            launch(&joined, Part { first_block, num_blocks, stride, pairs, state, tasks })?;
            // SAFETY: as above.
            unsafe { keeping.keep_best() }?;
            first_block += num_blocks;
            blocks = blocks.saturating_mul(JOIN.growth(k) as u64);
        }
        Ok(())
    })
}

/// Temporary memory.
struct Plan<C> {
    sets: TwoSets<C>,
    best: Best,
    tasks: Region<u64>,
}

impl<C: Coord> Plan<C> {
    fn new(
        layout: &mut Layout,
        dims: usize,
        grid: &GridOn,
        lens: [usize; 2],
        k: usize,
        has_scores: bool,
    ) -> Self {
        // Few look for many, and most of them in vain: no order makes up for what it takes.
        let lies = has_scores
            && JOIN.is_small_beside(lens[0], lens[1])
            && grid.part_around() * lens[0] as f64 <= JOIN.unordered_to;
        Self {
            sets: TwoSets::plan(layout, dims, grid, lens, false, has_scores, lies),
            best: Best::plan(layout, k),
            tasks: layout.reserve(most_tasks(lens)),
        }
    }
}

/// Plans the best `k` pairs of sets of so many points.
pub(super) fn plan<C: Coord>(layout: &mut Layout, dims: usize, grid: &GridOn, lens: [usize; 2], k: usize) {
    let [left, right] = lens;
    let lens = if JOIN.is_small_beside(right, left) { [right, left] } else { lens };
    Plan::<C>::new(layout, dims, grid, lens, k, true);
}

/// Room for the tasks of any launch with sets of so many points, none if there are none.
fn most_tasks(lens: [usize; 2]) -> usize {
    if lens[0] <= JOIN_SEGMENT {
        return 0;
    }
    let num_warps = lens[1].div_ceil(JOIN_THREADS) * (JOIN_THREADS / 32);
    JOIN.tasks.max(num_warps.saturating_mul(JOIN.tasks_of_warp))
}

/// A number without a common divisor with `len`, so that its multiples go all over as many blocks.
fn stride(len: u64) -> u64 {
    let gcd = |mut a: u64, mut b: u64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    // By the golden section they are spread evenly.
    let begin = (len as f64 * 0.618_034) as u64 | 1;
    (begin..).find(|&stride| gcd(stride, len) == 1).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_gone_through_once_each() {
        for len in [1, 2, 3, 7, 30, 128, 1000, 7813] {
            let mut seen = vec![false; len as usize];
            for block in 0..len {
                let at = (block * stride(len) % len) as usize;
                assert!(!std::mem::replace(&mut seen[at], true), "{len}");
            }
        }
    }
}
