//! The sizes of a round: how many levels it splits, how many samples bracket the pivots (Floyd, Rivest 1975, *Expected time bounds for
//! selection*), and how long the lists of undecided points are.

use kauri_kernels::kdtree::selection::bracket::max_samples;
use kauri_kernels::kdtree::selection::{MAX_BINS, MAX_LEVELS, PerLevel};
use kauri_kernels::policy::SELECTION;
use kauri_kernels::query::left_balanced::{full_tree, subtree_size};

const _: () = assert!(SELECTION.levels as usize <= MAX_LEVELS);

/// A round that splits some levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RoundPlan {
    /// The level of the roots of its runs.
    pub(super) first_level: u32,
    pub(super) num_levels: u32,
    /// Maximum number of points of a run.
    pub(super) points: u32,
    /// The logarithm of the number of samples of a run.
    pub(super) log_samples: u32,
    /// Number of bins of a bracket, even.
    pub(super) num_bins: PerLevel,
    /// Number of ranks of samples between the ends of a bin.
    pub(super) gaps: u32,
    /// Number of undecided points of a node that are stored.
    pub(super) capacity: PerLevel,
    /// Number of points in the bin of a pivot that are stored.
    pub(super) bin_capacity: u32,
}

impl RoundPlan {
    /// Plans the split of `num_levels` levels of a tree over `n` points.
    pub(super) fn new<C>(n: u32, first_level: u32, num_levels: u32) -> Self {
        let points_at = |depth: u32| subtree_size(full_tree(first_level + depth), n);
        let points = points_at(0);
        let most = (max_samples::<C>() as u32).min((points / SELECTION.points_per_sample).max(1));
        let log_samples = most.max(SELECTION.min_samples).ilog2();
        let deviations = f64::from(SELECTION.deviations[usize::from(points > SELECTION.few)]);
        let samples_at = |depth: u32| f64::from(1_u32 << (log_samples - depth));
        // The standard deviation of a rank among samples is at most half the square root of their number.
        let width_at = |depth: u32| 2.0 * (deviations * samples_at(depth).sqrt() / 2.0 + 1.0);
        let per_sample = f64::from(points) / samples_at(0);
        let gaps = (f64::from(SELECTION.bin_points) / per_sample).max(width_at(0) / (MAX_BINS - 1) as f64);
        let gaps = gaps.ceil() as u32;
        let num_bins = PerLevel::new(|depth| 2 * (width_at(depth) / f64::from(2 * gaps)).ceil() as u32);
        // The number of points between two samples deviates by the root of the number of samples between them, times the points per sample.
        let points_within = |gaps: u32, depth: u32| {
            let most = f64::from(gaps) + deviations * (f64::from(gaps).sqrt() + 1.0);
            let per_sample = f64::from(points_at(depth)) / samples_at(depth);
            ((most * per_sample) as u32).saturating_add(64).min(points_at(depth))
        };
        let capacity = PerLevel::new(|depth| points_within(gaps * num_bins.get(depth), depth));
        let bin_capacity = (0..num_levels).map(|depth| points_within(gaps + 20, depth)).max().unwrap_or(0);
        Self { first_level, num_levels, points, log_samples, num_bins, gaps, capacity, bin_capacity }
    }

    /// Number of runs.
    pub(super) fn num_runs(&self) -> usize {
        1 << self.first_level
    }

    /// Number of nodes.
    pub(super) fn num_nodes(&self) -> usize {
        self.num_runs() * full_tree(self.num_levels) as usize
    }

    /// Number of items of all nodes, given the number of those of a node on each level.
    fn num_items(&self, per_node: PerLevel) -> usize {
        (0..self.num_levels).map(|depth| (self.num_runs() << depth) * per_node.get(depth) as usize).sum()
    }

    /// Number of bins.
    pub(super) fn num_bins(&self) -> usize {
        self.num_items(self.num_bins)
    }

    /// Number of undecided points that are stored.
    pub(super) fn num_undecided(&self) -> usize {
        self.num_items(self.capacity)
    }

    /// Number of points in the bins of pivots that are stored at a time.
    pub(super) fn num_in_bin(&self) -> usize {
        (self.num_runs() << (self.num_levels - 1)) * self.bin_capacity as usize
    }
}

/// Plans the rounds that split the first `num_top` levels of a tree over `n` points, of up to `most_levels` levels.
pub(super) fn rounds<C>(n: u32, num_top: u32, most_levels: u32) -> Vec<RoundPlan> {
    let mut rounds = Vec::new();
    let mut first = 0;
    while first < num_top {
        let remaining_rounds = (num_top - first).div_ceil(most_levels);
        // The longer rounds come first, because they have more samples.
        let num_levels = (num_top - first).div_ceil(remaining_rounds);
        rounds.push(RoundPlan::new::<C>(n, first, num_levels));
        first += num_levels;
    }
    rounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_shorter_than_the_points_of_large_runs() {
        for n in [100_000, 10_000_000, u32::MAX] {
            let rounds = rounds::<f32>(n, 32 - n.leading_zeros() - 11, SELECTION.levels);
            assert_eq!(rounds.iter().map(|round| round.num_levels).sum::<u32>(), 32 - n.leading_zeros() - 11);
            for round in rounds {
                let undecided = round.num_undecided() as f64 / f64::from(n);
                assert!(undecided < 1.1, "{round:?}: {undecided}");
                assert!(round.num_undecided() < u32::MAX as usize && round.num_in_bin() < u32::MAX as usize);
            }
        }
    }
}
