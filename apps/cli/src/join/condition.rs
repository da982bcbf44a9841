//! When two items are a pair: places or points of the plane within a distance, boxes by a predicate.

use clap::ValueEnum;
use std::ops::{ControlFlow, Range};

use crate::device::Work;
use crate::items::{Bounds, Item, Planar};
use crate::score::ScoreText;
use kauri::join::{
    BoxJoin, DistanceJoin, JoinPlan, Score, ScoreFunction, Scored, ScoredPair, SelfPairs, TopKBoxJoin,
    TopKDistanceJoin,
};
use kauri::{Batches, Device, LonLat, Result, RowsBatch};

/// The condition for a pair, and the joins of the library with this condition. Without right items the left ones are joined with
/// themselves.
pub(super) trait Condition: Copy {
    type Item: Item;

    /// Returns false if the left item of a pair cannot be exchanged with the right one.
    fn is_symmetric(self) -> bool;
    /// Returns true if the output has the distances of pairs.
    fn has_distances(self) -> bool;
    /// Estimates the time on the CPU.
    fn work(self, sets: [&[Self::Item]; 2]) -> Work;
    fn plan(self, on: &Device, left: &[Self::Item], right: Option<&[Self::Item]>) -> Result<JoinPlan>;
    fn count(self, on: &Device, left: &[Self::Item], right: Option<&[Self::Item]>) -> Result<u64>;
    fn estimate(
        self,
        on: &Device,
        left: &[Self::Item],
        right: Option<&[Self::Item]>,
        sample: usize,
    ) -> Result<u64>;
    /// Finds the pairs. A set that is joined with itself has each pair in both directions.
    fn find(
        self,
        on: &Device,
        left: &[Self::Item],
        right: Option<&[Self::Item]>,
        batches: &mut Batches<'_>,
        on_batch: impl FnMut(RowsBatch<'_>) -> ControlFlow<()>,
    ) -> Result<()>;
    fn plan_best<S: Score>(
        self,
        on: &Device,
        sets: [Scored<'_, Self::Item, S>; 2],
        k: usize,
        score: &ScoreText,
    ) -> Result<JoinPlan>;
    fn best<S: Score>(
        self,
        on: &Device,
        sets: [Scored<'_, Self::Item, S>; 2],
        k: usize,
        score: &ScoreText,
    ) -> Result<Vec<ScoredPair>>;
}

/// Places within a distance, in meters.
#[derive(Clone, Copy)]
pub(super) struct Near(pub(super) f64);

impl Near {
    fn join(self) -> DistanceJoin<f64> {
        DistanceJoin::new(self.0)
    }

    fn top(self, k: usize) -> TopKDistanceJoin<f64> {
        TopKDistanceJoin::new(self.0, k)
    }
}

/// The values of the option `--predicate`.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub(super) enum Predicate {
    /// Boxes that have a common point; borders belong to a box
    Intersects,
    /// Boxes whose nearest points are within the distance --within
    Within,
    /// Left boxes that contain the right box; borders may touch
    Contains,
}

/// Points of the plane within a distance, in the units of their coordinates.
#[derive(Clone, Copy)]
pub(super) struct NearPlanar(pub(super) f64);

impl NearPlanar {
    fn join(self) -> DistanceJoin<f64> {
        DistanceJoin::new(self.0)
    }

    fn top(self, k: usize) -> TopKDistanceJoin<f64> {
        TopKDistanceJoin::new(self.0, k)
    }
}

/// Boxes by a predicate.
#[derive(Clone, Copy)]
pub(super) enum BoxCondition {
    Intersects,
    /// The largest distance, in the units of the coordinates.
    Within(f64),
    Contains,
}

impl BoxCondition {
    fn join(self) -> BoxJoin<f64> {
        match self {
            Self::Intersects => BoxJoin::intersects(),
            Self::Within(distance) => BoxJoin::within(distance),
            Self::Contains => BoxJoin::contains(),
        }
    }

    fn top(self, k: usize) -> TopKBoxJoin<f64> {
        match self {
            Self::Intersects => TopKBoxJoin::intersects(k),
            Self::Within(distance) => TopKBoxJoin::within(distance, k),
            Self::Contains => TopKBoxJoin::contains(k),
        }
    }
}

/// Implements the methods that call a join of the library.
macro_rules! library_joins {
    () => {
        fn plan(self, on: &Device, left: &[Self::Item], right: Option<&[Self::Item]>) -> Result<JoinPlan> {
            self.join().plan(on, left, right)
        }

        fn count(self, on: &Device, left: &[Self::Item], right: Option<&[Self::Item]>) -> Result<u64> {
            match right {
                Some(right) => self.join().count(on, left, right),
                None => self.join().self_count(on, left, self_pairs(self)),
            }
        }

        fn estimate(
            self,
            on: &Device,
            left: &[Self::Item],
            right: Option<&[Self::Item]>,
            sample: usize,
        ) -> Result<u64> {
            match right {
                Some(right) => self.join().estimate(on, left, right, sample),
                None => self.join().self_estimate(on, left, self_pairs(self), sample),
            }
        }

        fn find(
            self,
            on: &Device,
            left: &[Self::Item],
            right: Option<&[Self::Item]>,
            batches: &mut Batches<'_>,
            on_batch: impl FnMut(RowsBatch<'_>) -> ControlFlow<()>,
        ) -> Result<()> {
            let delivered = match right {
                Some(right) => self.join().rows_batches(on, left, right, batches, on_batch),
                None => self.join().self_rows_batches(on, left, SelfPairs::Both, batches, on_batch),
            };
            delivered.map(drop)
        }

        fn plan_best<S: Score>(
            self,
            on: &Device,
            [left, right]: [Scored<'_, Self::Item, S>; 2],
            k: usize,
            score: &ScoreText,
        ) -> Result<JoinPlan> {
            with_score!(self.top(k), score).plan(on, left, right)
        }

        fn best<S: Score>(
            self,
            on: &Device,
            [left, right]: [Scored<'_, Self::Item, S>; 2],
            k: usize,
            score: &ScoreText,
        ) -> Result<Vec<ScoredPair>> {
            Ok(with_score!(self.top(k), score).run(on, left, right)?.into_pairs())
        }
    };
}

macro_rules! with_score {
    ($join:expr, $score:expr) => {
        match $score.function {
            ScoreFunction::Weighted => $join.weighted($score.weights[0], $score.weights[1]),
            function => $join.score(function),
        }
    };
}

/// Returns which pairs of one set are counted: each once, so both directions only if they are different pairs.
fn self_pairs(condition: impl Condition) -> SelfPairs {
    if condition.is_symmetric() { SelfPairs::Once } else { SelfPairs::Both }
}

impl Condition for Near {
    type Item = LonLat;

    library_joins!();

    fn is_symmetric(self) -> bool {
        true
    }

    fn has_distances(self) -> bool {
        true
    }

    fn work(self, [left, right]: [&[LonLat]; 2]) -> Work {
        Work::of_join(left.len(), right.len(), self.0)
    }
}

impl Condition for NearPlanar {
    type Item = Planar;

    library_joins!();

    fn is_symmetric(self) -> bool {
        true
    }

    fn has_distances(self) -> bool {
        true
    }

    fn work(self, [left, right]: [&[Planar]; 2]) -> Work {
        let covered = |axis: usize| {
            let all = left.iter().chain(right).map(|point| point[axis]);
            let (low, high) =
                all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
            covered(low..high, 2.0 * self.0)
        };
        Work::of_box_join(left.len(), right.len(), covered(0) * covered(1))
    }
}

/// Returns the part of a range that a length covers; 1 for an empty range and a range of one value.
fn covered(range: Range<f64>, length: f64) -> f64 {
    // NaN becomes 1.
    (length / (range.end - range.start)).min(1.0)
}

impl Condition for BoxCondition {
    type Item = Bounds;

    library_joins!();

    fn is_symmetric(self) -> bool {
        !matches!(self, Self::Contains)
    }

    fn has_distances(self) -> bool {
        matches!(self, Self::Within(_))
    }

    fn work(self, [left, right]: [&[Bounds]; 2]) -> Work {
        let within = if let Self::Within(distance) = self { distance } else { 0.0 };
        // The part of the space where a mean right box is a partner of a mean left box.
        let part = |axis: usize| {
            let all = || left.iter().chain(right);
            let low = all().map(|bounds| bounds[0][axis]).fold(f64::INFINITY, f64::min);
            let high = all().map(|bounds| bounds[1][axis]).fold(f64::NEG_INFINITY, f64::max);
            let mean = |set: &[Bounds]| {
                set.iter().map(|[low, high]| (high[axis] - low[axis]).max(0.0)).sum::<f64>()
                    / set.len() as f64
            };
            covered(low..high, mean(left) + mean(right) + 2.0 * within)
        };
        Work::of_box_join(left.len(), right.len(), part(0) * part(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_of_boxes() {
        let unit = |at: f64| [[at, at], [at + 1.0, at + 1.0]];
        let (left, right) = ([unit(0.0), unit(2.0)], [unit(3.0)]);
        let expected = Work::of_box_join(2, 1, (2.0 / 4.0) * (2.0 / 4.0));
        assert_eq!(BoxCondition::Intersects.work([&left, &right]), expected);
        assert_eq!(
            BoxCondition::Within(0.5).work([&left, &right]),
            Work::of_box_join(2, 1, (3.0 / 4.0) * (3.0 / 4.0))
        );
        // Without boxes, and for points at one place.
        assert_eq!(BoxCondition::Contains.work([&[], &[]]), Work::of_box_join(0, 0, 1.0));
        let point = [[[5.0, 5.0]; 2]];
        assert_eq!(BoxCondition::Contains.work([&point, &point]), Work::of_box_join(1, 1, 1.0));
    }
}
