//! The best pairs under a limit that rises.

use super::best::Best;
use super::cells::{GridOn, TwoSets, join_args};
use super::{Asked, ScoredOn, with_kernel_dims};
use crate::device::{Layout, Workspace};
use crate::error::Result;
use kauri_kernels::join::rising::join_rising;
use kauri_kernels::policy::{JOIN, JOIN_THREADS};
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::words::Bits128;

/// The best pairs, of those that are not worse than a limit.
pub(super) fn best<C: Coord>(
    asked: &Asked<'_, C>,
    workspace: &mut Workspace,
    sets: [ScoredOn<'_, C>; 2],
    grid: GridOn,
    mut limit: Bits128,
) -> Result<Vec<Bits128>> {
    let &Asked { stream, dims, near, scoring, k, .. } = asked;
    let mut layout = Layout::new();
    let plan = TwoSets::plan(&mut layout, dims, &grid, sets.map(|set| set.len), false, true);
    let best = Best::plan(&mut layout, k);
    let temp = workspace.carve(stream, &layout, "top-k distance join")?;
    let coords = sets.map(|set| set.coords);
    // SAFETY: the sets are borrowed, and the memory is the plan's own.
    let joined = unsafe { plan.run(stream, &temp, dims, &grid, near, coords, Some(sets)) }?;
    let num_blocks = joined.right.ids.len().div_ceil(JOIN_THREADS) as u64;
    let stride = stride(num_blocks);
    loop {
        let mut keeping = best.begin(stream, &temp, limit)?;
        let (mut first, mut blocks) = (0, (JOIN.first_part / JOIN_THREADS) as u64);
        while first < num_blocks {
            let part = blocks.min(num_blocks - first);
            let (pairs, state) = keeping.room();
            let args = join_args!(
                joined,
                joined.left.ranks,
                joined.right.ranks,
                joined.left.extremes,
                scoring.to_bits(),
                scoring.weights[0],
                scoring.weights[1],
                first,
                stride,
                pairs,
                state,
            );
            // SAFETY: as above.
            unsafe {
                with_kernel_dims!(dims, D => stream.launch::<join_rising<C, D>>(part, args))?;
                keeping.keep_best()?;
            }
            first += part;
            blocks = blocks.saturating_mul(JOIN.growth(k) as u64);
        }
        let kept = keeping.kept()?;
        if !kept.has_lost {
            return Ok(kept.pairs);
        }
        // Once more: all that was lost was worse, or comes now.
        limit = kept.limit;
    }
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
