//! Compares all joins with a loop over all pairs.

use super::{Run, attack_everywhere, with_case};
use kauri::join::{
    Curve, DistanceJoin, KnnIndex, KnnJoin, PairScore, Score, ScoreFunction, Scored, SelfPairs, Strategy,
    TopKDistanceJoin,
};
use kauri::research::join::Lookup;
use kauri::{Batches, Device};
use kauri_tests::naive::{Number, Scores, sort_by_score};
use kauri_tests::nasty::{Case, Choice, Distance, Draw, Nasty, Outcome};
use proptest::prelude::*;
use std::ops::ControlFlow::Continue;

const STRATEGIES: [Strategy; 8] = [
    Strategy::Auto,
    Strategy::NestedLoop,
    Strategy::Threshold,
    Strategy::Cells,
    Strategy::RegisterHeap,
    Strategy::SharedHeap,
    Strategy::AppendSort,
    Strategy::Filter,
];
const FUNCTIONS: [ScoreFunction; 5] = [
    ScoreFunction::Sum,
    ScoreFunction::Product,
    ScoreFunction::Min,
    ScoreFunction::Max,
    ScoreFunction::Weighted,
];
const CURVES: [Curve; 3] = [Curve::Linear, Curve::ZOrder, Curve::Hilbert];
const LOOKUPS: [Lookup; 2] = [Lookup::Points, Lookup::Cells];

/// Draws a score: one of a few values, or any value up to the extremes.
trait NastyScore: Score + std::fmt::Debug {
    fn of_raw(raw: u64) -> Self;
    fn with(self, right: Self) -> Scores;
}

macro_rules! scores {
    ($($t:ty: $variant:ident, [$($value:expr),*], |$raw:ident| $any:expr;)*) => { $(
        impl NastyScore for $t {
            fn of_raw($raw: u64) -> Self {
                let values = [$($value),*];
                values.get(($raw % 16) as usize).copied().unwrap_or($any)
            }
            fn with(self, right: Self) -> Scores {
                Scores::$variant(self.into(), right.into())
            }
        }
    )* };
}
scores! {
    u32: Integers, [0, 1, 2, 7, u32::MAX], |raw| (raw >> 20) as u32;
    i64: Integers, [0, 1, -1, -3, i64::MAX, i64::MIN, i64::MIN + 1], |raw| raw as i64;
    f32: Floats, [0.0, -0.0, 1.5, -2.0, f32::MAX, f32::MIN, f32::MIN_POSITIVE], |raw| (raw >> 40) as f32 - 1e6;
    f64: Floats, [0.0, -0.0, 1.5, -2.0, f64::MAX, f64::MIN, 1e-300], |raw| (raw >> 12) as f64 - 1e15;
}

/// Two sets, and all their pairs in the order of ids.
struct Sets<'a, S: Nasty, const D: usize> {
    case: &'a Case<S, D>,
    draw: &'a Draw,
    radius: Distance<S>,
    what: String,
}

impl<S: Nasty, const D: usize> Sets<'_, S, D> {
    /// Returns for each point of a set the points of another set within the distance that `takes` accepts.
    fn near(
        &self,
        rows: &[[Distance<S>; D]],
        points: &[[Distance<S>; D]],
        takes: impl Fn(u32, u32) -> bool,
    ) -> Vec<Vec<u32>> {
        let bound = self.case.space.bound(Some(self.radius));
        let is_near = |a: &[Distance<S>; D], b: &[Distance<S>; D]| self.case.space.distance(a, b) <= bound;
        let ids = 0..points.len() as u32;
        let of = |(row, a): (u32, &[Distance<S>; D])| {
            ids.clone().filter(|&id| takes(row, id) && is_near(a, &points[id as usize])).collect()
        };
        (0..).zip(rows).map(of).collect()
    }

    fn join(&self) -> DistanceJoin<Distance<S>> {
        let (curve, lookup) =
            (self.draw.choose(Choice::Order, &CURVES), self.draw.choose(Choice::Split, &LOOKUPS));
        DistanceJoin::new(self.radius).norm(self.case.space.norm).curve(curve).lookup(lookup)
    }

    fn distance_join(&self, device: &Device) -> Outcome {
        let (left, right, join) = (&self.case.points, &self.case.others, self.join());
        let (points, others) = (self.case.point_numbers(), self.case.other_numbers());
        let expected = self.near(&points, &others, |_, _| true);
        let count = expected.concat().len() as u64;
        prop_assert_eq!(join.count(device, left, right)?, count, "{}, count", self.what);
        prop_assert_eq!(join.estimate(device, left, right, left.len())?, count, "{}, estimate", self.what);
        let rows = join.rows(device, left, right)?;
        self.same_rows(&rows, expected, "rows")?;
        let mut found = Vec::new();
        let collect = |batch: kauri::RowsBatch<'_>| {
            found.extend_from_slice(batch.ids());
            Continue(())
        };
        join.rows_batches(device, left, right, &mut self.batches(), collect)?;
        prop_assert!(found == rows.ids(), "{}, batches", self.what);
        Ok(())
    }

    fn self_join(&self, device: &Device, run: &Run) -> Outcome {
        let (left, points, join) = (&self.case.points, self.case.point_numbers(), self.join());
        for pairs in run.some(self.draw, Choice::Source, &[SelfPairs::Both, SelfPairs::Once]) {
            let what = if pairs == SelfPairs::Once { "pairs once" } else { "pairs in both directions" };
            let is_pair = |row, id| if pairs == SelfPairs::Once { id < row } else { id != row };
            let expected = self.near(&points, &points, is_pair);
            let count = expected.concat().len() as u64;
            prop_assert_eq!(join.self_count(device, left, pairs)?, count, "{}, {}, count", self.what, what);
            let rows = join.self_rows(device, left, pairs)?;
            self.same_rows(&rows, expected, what)?;
            let mut found = Vec::new();
            let collect = |batch: kauri::RowsBatch<'_>| {
                found.extend_from_slice(batch.ids());
                Continue(())
            };
            join.self_rows_batches(device, left, pairs, &mut self.batches(), collect)?;
            prop_assert!(found == rows.ids(), "{}, {} in batches", self.what, what);
        }
        Ok(())
    }

    fn same_rows(&self, rows: &kauri::Rows, expected: Vec<Vec<u32>>, what: &str) -> Outcome {
        prop_assert_eq!(rows.len(), expected.len(), "{}, {}", self.what, what);
        for (row, expected) in expected.into_iter().enumerate() {
            let mut found = rows.row(row).to_vec();
            found.sort_unstable();
            prop_assert_eq!(found, expected, "{}, {}, row {}", self.what, what, row);
        }
        Ok(())
    }

    fn top_k<T: NastyScore>(&self, device: &Device, run: &Run) -> Outcome {
        let (case, draw) = (self.case, self.draw);
        let scores = |raw: &[[u64; 8]]| raw.iter().map(|raw| T::of_raw(raw[7])).collect::<Vec<T>>();
        let (left, right) = (scores(&draw.points), scores(&draw.others));
        let function = draw.choose(Choice::Function, &FUNCTIONS);
        let weights = draw.choose(Choice::Pair, &[[1.0, 1.0], [0.5, -0.25], [0.0, -1.0]]);
        let near = self.near(&case.point_numbers(), &case.other_numbers(), |_, _| true);
        let mut pairs: Vec<(u32, u32, PairScore)> = Vec::new();
        for (l, row) in near.iter().enumerate() {
            let score = |&r: &u32| left[l].with(right[r as usize]).of_pair(function, weights);
            pairs.extend(row.iter().map(|r| (l as u32, *r, score(r))));
        }
        sort_by_score(&mut pairs);

        let ks = [1, 0, 16, 64, left.len() * right.len() + 2];
        let strategies = if device.is_cpu() { &STRATEGIES[..1] } else { &STRATEGIES[..] };
        for strategy in run.some(draw, Choice::Walk, strategies) {
            for k in run.some(draw, Choice::K, &ks) {
                let keeps_few = matches!(strategy, Strategy::RegisterHeap | Strategy::SharedHeap);
                if keeps_few && k.min(left.len() * right.len()) > 128 {
                    continue;
                }
                let join = TopKDistanceJoin::new(self.radius, k).norm(case.space.norm).strategy(strategy);
                let join = join
                    .curve(draw.choose(Choice::Order, &CURVES))
                    .lookup(draw.choose(Choice::Split, &LOOKUPS))
                    .best_points(draw.choose(Choice::Leaf, &[1, 3, 30]));
                let join = match function {
                    ScoreFunction::Weighted => join.weighted(weights[0], weights[1]),
                    function => join.score(function),
                };
                let sets = [Scored::new(&case.points, &left)?, Scored::new(&case.others, &right)?];
                let found = join.run(device, sets[0], sets[1])?;
                let found: Vec<_> =
                    found.pairs().iter().map(|pair| (pair.left, pair.right, pair.score)).collect();
                let expected = &pairs[..k.min(pairs.len())];
                let first = (0..found.len().max(expected.len())).find(|&i| found.get(i) != expected.get(i));
                if let Some(i) = first {
                    let (found, expected) = (found.get(i), expected.get(i));
                    let what = format!("{}, {join:?}, scores {left:?} {right:?}", self.what);
                    return Err(TestCaseError::fail(format!("{what}: {found:?} for {expected:?} at {i}")));
                }
            }
        }
        Ok(())
    }

    fn top_k_of_scores(&self, device: &Device, run: &Run) -> Outcome {
        match self.draw.choose(Choice::Depth, &[0, 1, 2, 3]) {
            0 => self.top_k::<u32>(device, run),
            1 => self.top_k::<i64>(device, run),
            2 => self.top_k::<f32>(device, run),
            _ => self.top_k::<f64>(device, run),
        }
    }

    fn batches(&self) -> Batches<'static> {
        Batches::new().rows(self.draw.choose(Choice::Batches, &[1, 2, 5, 1000]))
    }
}

/// The nearest points of one set for each point of another, also with more dimensions than other joins support.
fn knn<S: Nasty, const D: usize>(device: &Device, draw: &Draw, case: &Case<S, D>) -> Outcome {
    let (points, space) = (case.point_numbers(), &case.space);
    let k = draw.choose(Choice::K, &[1, 0, 3, points.len() + 2]);
    let index = draw.choose(Choice::Builder, &[KnnIndex::Auto, KnnIndex::Tree, KnnIndex::Grid]);
    let mut join = KnnJoin::new(k).norm(space.norm).index(index);
    if let Some(radius) = case.radius {
        join = join.within(radius);
    }
    let found = join.run(device, &case.points, &case.others)?;
    for (row, query) in case.other_numbers().iter().enumerate() {
        let near = space.neighbors(&points, query, space.bound(case.radius), |_| true);
        let padding = std::iter::repeat((Distance::<S>::INFINITY, u32::MAX));
        let expected: Vec<_> = near.into_iter().chain(padding).take(k).collect();
        let (ids, dist2) = found.padded_row(row);
        let found: Vec<_> = dist2.iter().copied().zip(ids.iter().copied()).collect();
        prop_assert_eq!(found, expected, "{:?} on {}, row {}", join, device, row);
    }
    Ok(())
}

fn joins<S: Nasty, const D: usize>(run: &Run, draw: &Draw) -> Outcome {
    let mut case = Case::<S, D>::of(draw, false);
    case.mask = None;
    let outcome = (|| {
        for device in &run.devices {
            let radius = case.radius.unwrap_or(Distance::<S>::INFINITY);
            let what = format!("within {radius:?} on {device}");
            let sets = Sets { case: &case, draw, radius, what };
            for join in run.some(draw, Choice::IsPeriodic, &[0, 1, 2, 3]) {
                match join {
                    0 => sets.distance_join(device)?,
                    1 => sets.self_join(device, run)?,
                    2 => sets.top_k_of_scores(device, run)?,
                    _ => knn(device, draw, &case)?,
                }
            }
        }
        Ok(())
    })();
    with_case(outcome, &case)
}

fn knn_joins<S: Nasty, const D: usize>(run: &Run, draw: &Draw) -> Outcome {
    let case = Case::<S, D>::of(draw, false);
    with_case(run.devices.iter().try_for_each(|device| knn(device, draw, &case)), &case)
}

#[test]
fn joins_f32() {
    attack_everywhere("joins, f32", 100, &|run, draw| match draw.choose(Choice::Type, &[2, 1, 3, 5, 8]) {
        1 => joins::<f32, 1>(run, draw),
        2 => joins::<f32, 2>(run, draw),
        3 => joins::<f32, 3>(run, draw),
        5 => joins::<f32, 5>(run, draw),
        _ => knn_joins::<f32, 8>(run, draw),
    });
}

#[test]
fn joins_f64() {
    attack_everywhere("joins, f64", 100, &|run, draw| match draw.choose(Choice::Type, &[2, 1, 3, 4, 6, 7]) {
        1 => joins::<f64, 1>(run, draw),
        2 => joins::<f64, 2>(run, draw),
        3 => joins::<f64, 3>(run, draw),
        4 => joins::<f64, 4>(run, draw),
        6 => joins::<f64, 6>(run, draw),
        _ => knn_joins::<f64, 7>(run, draw),
    });
}

#[test]
fn joins_of_integers() {
    attack_everywhere("joins of integers", 100, &|run, draw| match draw.choose(Choice::Type, &[0, 1, 2]) {
        0 => joins::<i32, 2>(run, draw),
        1 => joins::<i64, 2>(run, draw),
        _ => joins::<i64, 3>(run, draw),
    });
}
