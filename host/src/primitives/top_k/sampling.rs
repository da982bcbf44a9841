//! The number of samples of top-k, and the rank of the sample that becomes the threshold.

use kauri_kernels::policy::TOP_K;

/// The negative logarithm of the probability that too few items reach the threshold, and that too many do: one in 10^9.
/// The result is right then too, but takes further passes.
const NEG_LN_FAILURE: f64 = 20.7;

/// The plan of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sampling {
    /// The blocks that sample.
    pub(super) num_blocks: usize,
    /// The samples of a lane.
    pub(super) lane_samples: u32,
    /// The threshold is the minimum of this rank, from 0, among the minima of all warps.
    pub(super) rank: usize,
    /// The capacity for candidates.
    pub(super) candidates: usize,
}

impl Sampling {
    /// Plans the sample for the `k` best of `len` items; `None` if most or all of them have to be candidates.
    pub(super) fn new(len: usize, k: usize) -> Option<Self> {
        if len <= TOP_K.sampled_items || k >= len {
            return None;
        }
        let num_blocks = (len / TOP_K.items_per_sample_block).clamp(1, TOP_K.sample_max_blocks);
        let warps = num_blocks * TOP_K.sample_threads / 32;
        let share = k as f64 / len as f64;
        // Per warp, enough samples that about one minimum in eight is among the k best; more samples do not improve the
        // estimate.
        let max_lane_samples = TOP_K.max_lane_samples[usize::from(k > TOP_K.few)];
        let lane_samples = (1.0 / (8.0 * 32.0 * share)).clamp(1.0, f64::from(max_lane_samples)) as u32;
        let samples = 32.0 * f64::from(lane_samples);

        // The probability that a minimum is among the k best.
        let probability = at_least_one(share, samples);
        // The smallest rank such that this many minima are almost never among the k best.
        let rank = (1..=warps).find(|&rank| {
            rank as f64 > probability * warps as f64 && is_reliable(rank, warps, probability)
        })?;
        // The smallest share of the items that almost always contains at least `rank` minima.
        let (mut low, mut high) = (rank as f64 / warps as f64, 1.0);
        if low >= high {
            return None;
        }
        for _ in 0..50 {
            let middle = f64::midpoint(low, high);
            if is_reliable(rank, warps, middle) { high = middle } else { low = middle }
        }
        let candidates = (len as f64 * -f64::exp_m1(f64::ln_1p(-high) / samples)).ceil();
        if candidates.is_nan() || candidates >= len as f64 {
            return None;
        }
        Some(Self { num_blocks, lane_samples, rank: rank - 1, candidates: (candidates as usize).max(k) })
    }

    /// Returns the number of minima: one per warp.
    pub(super) fn num_minima(&self) -> usize {
        self.num_blocks * TOP_K.sample_threads / 32
    }
}

/// Returns the probability that at least one of `samples` random items is in a `share` of all items.
fn at_least_one(share: f64, samples: f64) -> f64 {
    -f64::exp_m1(samples * f64::ln_1p(-share))
}

/// Returns true if `hits` of `tries` at the given probability are unlikely enough to be reached, or not to be reached,
/// whichever is less likely (Chernoff bound).
fn is_reliable(hits: usize, tries: usize, probability: f64) -> bool {
    let got = hits as f64 / tries as f64;
    let part = |got: f64, probability: f64| if got > 0.0 { got * f64::ln(got / probability) } else { 0.0 };
    let divergence = part(got, probability) + part(1.0 - got, 1.0 - probability);
    tries as f64 * divergence >= NEG_LN_FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_few_more_than_k() {
        for (len, k, most) in [
            (100_000_000, 1, 7_000),
            (100_000_000, 1024, 12_000),
            (100_000_000, 100_000, 350_000),
            (100_000_000, 5_000_000, 7_500_000),
            (1 << 32, 1024, 350_000),
            (1_000_000, 100, 8_000),
        ] {
            let plan = Sampling::new(len, k).unwrap();
            assert!((k..=most).contains(&plan.candidates), "{len} {k}: {plan:?}");
            assert!(plan.rank < plan.num_minima());
        }
    }

    #[test]
    fn without_a_sample_if_most_items_are_wanted() {
        for (len, k) in [(100, 1), (1 << 20, 1 << 20), (1 << 20, 1 << 19), (1 << 20, usize::MAX), (0, 0)] {
            assert_eq!(Sampling::new(len, k), None);
        }
        assert!(Sampling::new(1 << 24, 0).is_some());
    }
}
