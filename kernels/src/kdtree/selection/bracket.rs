//! Brackets: two points of a run that enclose its pivot with high probability.

use super::{COUNTS, LEFT, LevelRuns, Points, Remaining, Run};
use crate::block::bitonic;
use crate::policy::SELECTION;
use crate::primitives::generate::splitmix64;
use crate::thread::coord::Coord;
use crate::thread::items::strided;
use crate::thread::ranked::Ranked;
use crate::thread::words::Words;
use cuda_std::prelude::*;

const THREADS: usize = SELECTION.bracket_threads;
const MAX_SAMPLES: usize = SELECTION.max_samples;

/// Writes the bracket of each run of a level. Of `num_samples` samples, a power of two, the ends are the
/// ones `margin` ranks below and above the expected rank of the pivot; beyond the samples, an end is before or after all points. One block
/// per run.
#[kernel(family = "kdtree", block = THREADS, shared = BracketSmem<<C as Coord>::Ranked>, hot)]
#[instances(C = [f32, f64, i32])]
pub unsafe fn kdtree_bracket<C: Coord>(
    level: LevelRuns<'_, C>,
    counts: Slice<u32>,
    brackets: SliceMut<<C as Coord>::Ranked>,
    num_samples: u32,
    margin: u32,
) {
    let i = thread::block_idx_x() as usize;
    let run = level.run(i as u32);
    let (points, axis, remaining) = (level.points(), level.axis(run), level.remaining(run, i, counts));
    let samples = shared_field!(shared_mem::<BracketSmem<C::Ranked>>(), samples);
    let bracket = brackets.part(2 * i, 2);
    Bracket { points, axis, run, remaining, samples, bracket }.run(
        counts.load(i * COUNTS + LEFT),
        num_samples,
        margin,
    )
}

/// Shared memory of a block.
#[repr(C, align(16))]
pub struct BracketSmem<R> {
    samples: [R; MAX_SAMPLES],
}

/// The bracket of a run.
struct Bracket<'a, C: Coord> {
    points: Points<'a, C>,
    axis: usize,
    run: Run,
    remaining: Remaining<'a>,
    samples: SharedSlice<'a, C::Ranked>,
    bracket: SliceMut<'a, C::Ranked>,
}

impl<C: Coord> Bracket<'_, C> {
    #[inline(always)]
    unsafe fn run(self, num_left: u32, num_samples: u32, margin: u32) {
        if self.remaining.len == 0 {
            return;
        }
        for i in strided(thread::thread_idx_x(), num_samples, THREADS as u32) {
            // Scales a random number of 32 bits to the range: the upper half of the product.
            let random = splitmix64(u64::from(self.run.node) << 32 | u64::from(i)) >> 32;
            let sample = (random * u64::from(self.remaining.len)) >> 32;
            let point = self.points.ranked(self.remaining.position(sample as u32), self.axis);
            self.samples.store(i as usize, point);
        }
        thread::sync_threads();
        bitonic::sort(self.samples, num_samples);
        if thread::thread_idx_x() == 0 {
            let before = u64::from(self.run.left_len.saturating_sub(num_left));
            let expected = before * u64::from(num_samples) / u64::from(self.remaining.len);
            // If the bracket before has missed the pivot, the expected rank may be beyond all samples.
            let expected = if expected < u64::from(num_samples) { expected as u32 } else { num_samples - 1 };
            let (low, high) = (expected.saturating_sub(margin), expected + margin);
            if expected > margin {
                self.bracket.store(0, self.samples.load(low as usize));
            } else {
                self.bracket.store(0, C::Ranked::ZEROS);
            }
            if high < num_samples {
                self.bracket.store(1, self.samples.load(high as usize));
            } else {
                self.bracket.store(1, C::Ranked::LAST);
            }
        }
    }
}
