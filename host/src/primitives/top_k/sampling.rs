//! How many samples top-k takes, and which of them is the threshold.

use kauri_kernels::policy::TOP_K;

/// How unlikely it is to be, as the negative of its natural logarithm, that a threshold lets through too few items, and that
/// it lets through too many: one in a thousand million. The result is right then too, but takes a second way.
const SURENESS: f64 = 20.7;

/// Plan of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sampling {
    /// Blocks that sample.
    pub(super) num_blocks: usize,
    /// Samples of a lane.
    pub(super) lane_samples: u32,
    /// The threshold is the minimum of this rank, from 0, of the minima of all warps.
    pub(super) rank: usize,
    /// Room for the items that the threshold lets through.
    pub(super) candidates: usize,
}

impl Sampling {
    /// A sample that tells the `k` best of `len` items; none where most or all of them have to be candidates.
    pub(super) fn new(len: usize, k: usize) -> Option<Self> {
        if len <= TOP_K.sampled_items || k >= len {
            return None;
        }
        let num_blocks = (len / TOP_K.items_per_sample_block).clamp(1, TOP_K.sample_max_blocks);
        let warps = num_blocks * TOP_K.sample_threads / 32;
        let share = k as f64 / len as f64;
        // As many samples a warp as make about one minimum in eight one of the k best: more tell no more.
        let max_lane_samples = TOP_K.max_lane_samples[usize::from(k > TOP_K.few)];
        let lane_samples = (1.0 / (8.0 * 32.0 * share)).clamp(1.0, f64::from(max_lane_samples)) as u32;
        let samples = 32.0 * f64::from(lane_samples);

        // The chance of a minimum to be among the k best; so many are expected.
        let chance = at_least_one(share, samples);
        // The rank is so high that hardly ever that many minima are among the k best.
        let rank =
            (1..=warps).find(|&rank| rank as f64 > chance * warps as f64 && is_sure(rank, warps, chance))?;
        // The share of items that hardly ever fewer than `rank` minima are in.
        let (mut low, mut high) = (rank as f64 / warps as f64, 1.0);
        if low >= high {
            return None;
        }
        for _ in 0..50 {
            let middle = f64::midpoint(low, high);
            if is_sure(rank, warps, middle) { high = middle } else { low = middle }
        }
        let candidates = (len as f64 * -f64::exp_m1(f64::ln_1p(-high) / samples)).ceil();
        if candidates.is_nan() || candidates >= len as f64 {
            return None;
        }
        Some(Self { num_blocks, lane_samples, rank: rank - 1, candidates: (candidates as usize).max(k) })
    }

    /// Minima of warps.
    pub(super) fn num_minima(&self) -> usize {
        self.num_blocks * TOP_K.sample_threads / 32
    }
}

/// The chance that at least one of some samples is of a share of all items.
fn at_least_one(share: f64, samples: f64) -> f64 {
    -f64::exp_m1(samples * f64::ln_1p(-share))
}

/// True if it is unlikely enough that `hits` of `tries` with some chance are reached, or not, whichever is the less likely
/// (Chernoff's bound).
fn is_sure(hits: usize, tries: usize, chance: f64) -> bool {
    let got = hits as f64 / tries as f64;
    let part = |got: f64, chance: f64| if got > 0.0 { got * f64::ln(got / chance) } else { 0.0 };
    let divergence = part(got, chance) + part(1.0 - got, 1.0 - chance);
    tries as f64 * divergence >= SURENESS
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
