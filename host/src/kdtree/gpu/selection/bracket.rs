//! The sizes of the brackets around pivots (Floyd, Rivest 1975, *Expected time bounds for selection*).

use kauri_kernels::kdtree::selection::MAX_STAGES;
use kauri_kernels::kdtree::selection::settle::MAX_SORTED;
use kauri_kernels::policy::SELECTION;

const _: () = assert!(MAX_SORTED.is_power_of_two(), "the bitonic sort pads its input to a power of two");
const _: () = assert!(
    SELECTION.samples[0] <= SELECTION.max_samples
        && SELECTION.samples[1] <= SELECTION.max_samples
        && SELECTION.samples[0].is_power_of_two()
        && SELECTION.samples[1].is_power_of_two(),
    "a bitonic sort sorts the samples"
);

/// One bracket around the pivot of each run of a level, and the split by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stage {
    /// Maximum number of points of a run that are not split yet.
    pub(super) points: usize,
    pub(super) num_samples: usize,
    /// Number of samples between the pivot and either end of its bracket.
    pub(super) margin: usize,
    /// Number of positions that a run can store of the points inside its bracket.
    pub(super) capacity: usize,
}

impl Stage {
    /// Chooses the bracket of a pivot among `points` points.
    fn new(points: usize) -> Self {
        let class = usize::from(points > SELECTION.few);
        let (num_samples, deviations) = (SELECTION.samples[class], f64::from(SELECTION.deviations[class]));
        // The standard deviation of a rank among samples is at most half the square root of their number.
        let deviation = (num_samples as f64).sqrt() / 2.0;
        let margin = (deviations * deviation).ceil() as usize + 1;
        // The unit is the number of points per sample. The number of points inside deviates by the square root of the number of samples
        // between the ends.
        let width = (2 * margin + 1) as f64;
        let most = width + deviations * width.sqrt();
        let capacity = (points as f64 * most / num_samples as f64).ceil() as usize;
        Self { points, num_samples, margin, capacity: capacity.min(points) }
    }
}

/// Returns the stages that reduce a run of `num_points` points to few enough points to sort.
pub(super) fn stages(num_points: u32) -> Vec<Stage> {
    let mut stages = Vec::new();
    let mut points = num_points as usize;
    while points > MAX_SORTED && stages.len() < MAX_STAGES {
        let stage = Stage::new(points);
        points = stage.capacity;
        stages.push(stage);
    }
    stages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_stages_are_enough_for_any_number() {
        for (points, num_stages) in [(1000, 0), (2048, 0), (2049, 1), (100_000, 3), (u32::MAX, 9)] {
            let stages = stages(points);
            assert!(stages.len() <= num_stages, "{points}: {stages:?}");
            let last = stages.last().map_or(points as usize, |stage| stage.capacity);
            assert!(last <= MAX_SORTED, "{points}: {stages:?}");
        }
    }
}
