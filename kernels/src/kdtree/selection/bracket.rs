//! Two points of a run between which its pivot lies, nearly always.

use super::{COUNTS, LEFT, Left, Points, Run};
use crate::block::bitonic;
use crate::policy::SELECTION;
use crate::primitives::generate::splitmix64;
use crate::thread::coord::Coord;
use crate::thread::ranked::Ranked;
use crate::thread::words::Words;
use cuda_std::prelude::*;

const THREADS: usize = SELECTION.bracket_threads;
const MAX_SAMPLES: usize = SELECTION.max_samples;

/// Writes two points for each run of a level, which begins at `first_node`: `margin` samples below and above where the pivot
/// is expected among `num_samples`, a power of two; where there is none so far below or above, what comes before or behind all
/// points. A block a run. `axes` are those of the nodes, coordinates are in the order of points or, if these are `by_id`, of ids.
/// `positions` are those inside the bracket of the stage before, with room for `capacity` a run.
#[kernel(family = "kdtree", block = THREADS, shared = BracketSmem<<C as Coord>::Ranked>, hot)]
#[instances(C = [f32, f64])]
pub unsafe fn kdtree_bracket<C: Coord>(
    coords: Slice<C>,
    ids: Slice<u32>,
    by_id: u32,
    dims: u32,
    axes: Slice<u8>,
    first_node: u32,
    positions: Slice<u32>,
    counts: Slice<u32>,
    stage: u32,
    capacity: u32,
    brackets: SliceMut<<C as Coord>::Ranked>,
    num_samples: u32,
    margin: u32,
) {
    let i = thread::block_idx_x() as usize;
    let points = Points { coords, ids, dims: dims as usize, by_id: by_id != 0 };
    let num_points = (coords.len() / dims as usize) as u32;
    let run = Run::of(first_node + i as u32, num_points);
    let axis = axes.load(run.node as usize) as usize;
    let left = Left::new(run, i, positions, counts, stage, capacity);
    let samples = shared_field!(shared_mem::<BracketSmem<C::Ranked>>(), samples);
    let bracket = brackets.part(2 * i, 2);
    Bracket { points, axis, run, left, samples, bracket }.run(
        counts.load(i * COUNTS + LEFT),
        num_samples,
        margin,
    )
}

/// Shared memory of the samples.
#[repr(C, align(16))]
pub struct BracketSmem<R> {
    samples: [R; MAX_SAMPLES],
}

/// One run's bracket.
struct Bracket<'a, C: Coord> {
    points: Points<'a, C>,
    axis: usize,
    run: Run,
    left: Left<'a>,
    samples: SharedSlice<'a, C::Ranked>,
    bracket: SliceMut<'a, C::Ranked>,
}

impl<C: Coord> Bracket<'_, C> {
    #[inline(always)]
    unsafe fn run(self, num_left: u32, num_samples: u32, margin: u32) {
        if self.left.len == 0 {
            return;
        }
        let mut i = thread::thread_idx_x();
        while i < num_samples {
            // The upper half of a product with a random number of 32 bits.
            let random = splitmix64(u64::from(self.run.node) << 32 | u64::from(i)) >> 32;
            let place = (random * u64::from(self.left.len)) >> 32;
            let point = self.points.ranked(self.left.position(place as u32), self.axis);
            self.samples.store(i as usize, point);
            i += THREADS as u32;
        }
        thread::sync_threads();
        bitonic::sort(self.samples, num_samples);
        if thread::thread_idx_x() == 0 {
            let before = u64::from(self.run.left.saturating_sub(num_left));
            let expected = before * u64::from(num_samples) / u64::from(self.left.len);
            // Where the bracket before has missed it may lie beyond all samples.
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
