//! Ratios of times with intervals that assume no distribution.

/// Probability that an interval misses the true ratio.
pub(super) const ALPHA: f64 = 0.05;

/// A ratio of times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ratio {
    pub(super) median: f64,
    /// The confidence interval; `None` with too few runs.
    pub(super) interval: Option<(f64, f64)>,
}

impl Ratio {
    /// Compares runs that took turns: the median of the ratios of neighboring runs, and the interval of that median between two of the
    /// sorted ratios. Returns `None` without runs that took time.
    pub(super) fn of_pairs(before: &[f64], after: &[f64], alpha: f64) -> Option<Ratio> {
        let pairs = before.iter().zip(after).filter(|(before, after)| **before > 0.0 && **after > 0.0);
        let ratios = sorted(pairs.map(|(before, after)| after / before));
        Some(Ratio { median: median(&ratios)?, interval: interval(&ratios, alpha) })
    }

    /// Compares runs of different processes: the ratio of the medians, and an interval from both medians' intervals, each of half the
    /// error.
    pub(super) fn of_samples(before: &[f64], after: &[f64], alpha: f64) -> Option<Ratio> {
        let [before, after] = [before, after].map(|times| sorted(times.iter().copied().filter(|t| *t > 0.0)));
        let interval = interval(&before, alpha / 2.0)
            .zip(interval(&after, alpha / 2.0))
            .map(|((b0, b1), (a0, a1))| (a0 / b1, a1 / b0));
        Some(Ratio { median: median(&after)? / median(&before)?, interval })
    }

    pub(super) fn is_faster(&self) -> bool {
        self.interval.is_some_and(|(_, high)| high < 1.0)
    }

    pub(super) fn is_slower(&self) -> bool {
        self.interval.is_some_and(|(low, _)| low > 1.0)
    }

    /// Returns `0.94 [0.93, 0.96]`.
    pub(super) fn shown(&self) -> String {
        let interval =
            self.interval.map_or("[no interval]".to_owned(), |(low, high)| format!("[{low:.3}, {high:.3}]"));
        format!("{:.3} {interval}", self.median)
    }

    /// Returns a word if the interval excludes 1.
    pub(super) fn verdict(&self) -> &'static str {
        match (self.is_faster(), self.is_slower()) {
            (true, _) => "faster",
            (_, true) => "slower",
            _ => "",
        }
    }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Returns the median of sorted values.
fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    Some(if sorted.len().is_multiple_of(2) { (sorted[middle - 1] + upper) / 2.0 } else { upper })
}

/// Returns the interval of the median between the `r`-th smallest and `r`-th largest value, for the greatest `r` with which it misses
/// the median with probability `alpha` at most: each value is below the median with probability 1/2.
fn interval(sorted: &[f64], alpha: f64) -> Option<(f64, f64)> {
    let n = sorted.len();
    // Probability of exactly i of n values below the median, by logarithms because 2^-n can vanish.
    let (mut log, mut tail, mut r) = (-(n as f64) * 2f64.ln(), 0.0, 0);
    while r < n / 2 {
        tail += log.exp();
        if 2.0 * tail > alpha {
            break;
        }
        log += ((n - r) as f64 / (r + 1) as f64).ln();
        r += 1;
    }
    (r > 0).then(|| (sorted[r - 1], sorted[n - r]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(n: usize, alpha: f64) -> Option<(f64, f64)> {
        interval(&(1..=n).map(|i| i as f64).collect::<Vec<_>>(), alpha)
    }

    #[test]
    fn intervals_of_a_median() {
        // The ranks of published tables for 95 %.
        assert_eq!(ranks(5, 0.05), None);
        assert_eq!(ranks(6, 0.05), Some((1.0, 6.0)));
        assert_eq!(ranks(10, 0.05), Some((2.0, 9.0)));
        assert_eq!(ranks(20, 0.05), Some((6.0, 15.0)));
        assert_eq!(ranks(30, 0.05), Some((10.0, 21.0)));
        assert_eq!(ranks(30, 0.001), Some((6.0, 25.0)));
        assert_eq!(ranks(0, 0.05), None);
        let (low, high) = ranks(3000, 0.05).unwrap();
        assert!(low > 1440.0 && high < 1560.0);
    }

    #[test]
    fn pairs_cancel_a_drift() {
        // Both variants slow down to the double; one is 10 % faster in each round.
        let before: Vec<f64> = (0..20).map(|i| 1.0 + f64::from(i) / 20.0).collect();
        let after: Vec<f64> = before.iter().enumerate().map(|(i, t)| t * (0.9 + 0.001 * i as f64)).collect();
        let paired = Ratio::of_pairs(&before, &after, ALPHA).unwrap();
        assert_eq!(paired.verdict(), "faster");
        assert!((paired.median - 0.9095).abs() < 1e-3, "{paired:?}");
        let apart = Ratio::of_samples(&before, &after, ALPHA).unwrap();
        assert_eq!(apart.verdict(), "");
        assert_eq!(Ratio::of_pairs(&after, &before, ALPHA).unwrap().verdict(), "slower");
    }

    #[test]
    fn too_few_runs_and_none() {
        let ratio = Ratio::of_pairs(&[2.0, 2.0], &[1.0, 1.0, 9.0], ALPHA).unwrap();
        assert_eq!((ratio.median, ratio.interval, ratio.verdict()), (0.5, None, ""));
        assert_eq!(ratio.shown(), "0.500 [no interval]");
        assert_eq!(Ratio::of_pairs(&[], &[1.0], ALPHA), None);
        assert_eq!(Ratio::of_pairs(&[0.0], &[1.0], ALPHA), None);
        let equal = Ratio::of_pairs(&[2.0; 6], &[2.0; 6], ALPHA).unwrap();
        assert_eq!((equal.shown().as_str(), equal.verdict()), ("1.000 [1.000, 1.000]", ""));
    }
}
