//! All queries of all indexes.

use super::{Run, attack_everywhere, with_case};
use kauri::balanced::{BalancedKdTree, BalancedOptions};
use kauri::kdtree::{BuildAlgorithm, SplitRule};
use kauri::query::{NearestPoints, PointMask, Queries, QueryOptions, Traversal, Visit};
use kauri::research::balanced;
use kauri::{Batches, Device, Error, KdTree, KdTreeOptions, RTree, SpatialIndex};
use kauri_tests::naive::{Number, is_inside};
use kauri_tests::nasty::{Case, Choice, Distance, Draw, Nasty, Outcome};
use proptest::prelude::*;
use std::ops::ControlFlow::Continue;

const ALGORITHMS: [BuildAlgorithm; 4] = [
    BuildAlgorithm::Selection,
    BuildAlgorithm::SelectionInPlace,
    BuildAlgorithm::Tags,
    BuildAlgorithm::TagsInPlace,
];
const TRAVERSALS: [Traversal; 6] = [
    Traversal::Auto,
    Traversal::Buckets,
    Traversal::BruteForce,
    Traversal::StackFree,
    Traversal::Stack,
    Traversal::ClosestCorner,
];

/// Distances and ids of points, one row per query.
type Rows<C> = Vec<Vec<(C, u32)>>;

/// The queries to an index, and their expected results.
pub(super) struct IndexCheck<'a, S: Nasty, const D: usize> {
    case: &'a Case<S, D>,
    draw: &'a Draw,
    run: &'a Run,
    points: Vec<[Distance<S>; D]>,
    /// The points that may be found, by id.
    takes: Vec<bool>,
    options: QueryOptions<[S; D]>,
    what: &'a str,
}

/// The source of queries.
#[derive(Clone, Copy, Debug)]
enum Source {
    Others,
    Own,
    OwnWithoutItself,
}

impl<'a, S: Nasty, const D: usize> IndexCheck<'a, S, D> {
    /// Takes the ids of the points that the index has.
    pub(super) fn new(
        run: &'a Run,
        (case, draw): (&'a Case<S, D>, &'a Draw),
        mut takes: Vec<bool>,
        what: &'a str,
    ) -> Result<Self, Error> {
        let mut options = QueryOptions::default().norm(case.space.norm);
        if !case.space.periods.is_empty() {
            options = options.periods(case.space.periods.clone());
        }
        if let Some(mask) = &case.mask {
            options = options.mask(PointMask::from_fn(mask.len(), |id| mask[id as usize])?);
            takes.iter_mut().zip(mask).for_each(|(takes, &is_in_mask)| *takes &= is_in_mask);
        }
        options = options.traversal(draw.choose(Choice::Walk, &TRAVERSALS));
        options.coherent = draw.choose(Choice::Order, &[false, true]);
        Ok(Self { case, draw, run, points: case.point_numbers(), takes, options, what })
    }

    /// Runs all queries.
    pub(super) fn check<I: SpatialIndex<Point = [S; D]>>(&self, index: &I) -> Outcome {
        let sources = [Source::Others, Source::Own, Source::OwnWithoutItself];
        for source in self.run.some(self.draw, Choice::Source, &sources) {
            self.check_source(index, source)?;
        }
        self.check_boxes(index)
    }

    fn check_source<I: SpatialIndex<Point = [S; D]>>(&self, index: &I, source: Source) -> Outcome {
        let (queries, numbers) = match source {
            Source::Others => (Queries::Points(&self.case.others[..]), self.case.other_numbers()),
            Source::Own => (Queries::SelfQuery { include_self: true }, self.points.clone()),
            Source::OwnWithoutItself => (Queries::SelfQuery { include_self: false }, self.points.clone()),
        };
        let what = format!("{}, {source:?}", self.what);
        if let Some(beyond) = self.case.space.beyond_period(&self.points, &numbers) {
            return self.is_refused(index, queries, beyond, &what);
        }
        let rows = |radius| -> Rows<Distance<S>> {
            let (space, bound) = (&self.case.space, self.case.space.bound(radius));
            let left_out = |row: u32| matches!(source, Source::OwnWithoutItself).then_some(row);
            let of = |(query, row)| {
                let takes = |id: u32| self.takes[id as usize] && left_out(row) != Some(id);
                space.neighbors(&self.points, query, bound, takes)
            };
            numbers.iter().zip(0..).map(of).collect()
        };
        self.check_nearest(index, queries, &rows(self.case.radius), &what)?;
        let radius = self.case.radius.unwrap_or(Distance::<S>::INFINITY);
        self.check_visits(index, queries, radius, &rows(Some(radius)), &what)?;
        self.check_within(index, queries, radius, rows(Some(radius)), &what)
    }

    fn check_nearest<I: SpatialIndex<Point = [S; D]>>(
        &self,
        index: &I,
        queries: Queries<'_, [S; D]>,
        rows: &Rows<Distance<S>>,
        what: &str,
    ) -> Outcome {
        let mut options = self.options.clone();
        options.radius = self.case.radius;
        let ks = [1, 0, 3, self.points.len() + 2];
        for k in self.run.some(self.draw, Choice::K, &ks) {
            let padded = |row: &Vec<(Distance<S>, u32)>| {
                let padding = std::iter::repeat((Distance::<S>::INFINITY, u32::MAX));
                row.iter().copied().chain(padding).take(k).collect::<Vec<_>>()
            };
            let expected: Vec<_> = rows.iter().flat_map(padded).collect();
            let near = index.nearest_with(queries, k, &options)?;
            let found = near.dist2().iter().copied().zip(near.ids().iter().copied());
            same(found.collect(), &expected, &format!("{what}, {k} nearest"))?;

            let mut found = Vec::new();
            index.nearest_batches(queries, k, &options, &mut self.batches(), |batch| {
                found.extend(batch.dist2().iter().copied().zip(batch.ids().iter().copied()));
                Continue(())
            })?;
            same(found, &expected, &format!("{what}, {k} nearest in batches"))?;
        }
        Ok(())
    }

    fn check_within<I: SpatialIndex<Point = [S; D]>>(
        &self,
        index: &I,
        queries: Queries<'_, [S; D]>,
        radius: Distance<S>,
        rows: Rows<Distance<S>>,
        what: &str,
    ) -> Outcome {
        let counts: Vec<u32> = rows.iter().map(|row| row.len() as u32).collect();
        prop_assert_eq!(&index.count_within(queries, radius, &self.options)?, &counts, "{}, counts", what);
        let sorted = self.options.clone().sorted();
        let mut expected: Vec<_> = rows.concat();
        let found = index.within(queries, radius, &sorted)?;
        prop_assert_eq!(found.offsets(), offsets(&counts), "{}, offsets", what);
        let found = found.dist2().iter().copied().zip(found.ids().iter().copied());
        same(found.collect(), &expected, &format!("{what}, within {radius:?}"))?;

        // Batches have the rows of the whole result, in the order of the tree.
        let at_once = index.within(queries, radius, &self.options)?;
        let (mut ids, mut dist2) = (Vec::new(), Vec::new());
        index.within_batches(queries, radius, &self.options, &mut self.batches(), |batch| {
            ids.extend_from_slice(batch.ids());
            dist2.extend_from_slice(batch.dist2());
            Continue(())
        })?;
        prop_assert!(ids == at_once.ids() && dist2 == at_once.dist2(), "{}, batches", what);
        let rows = (0..counts.len()).flat_map(|row| {
            let mut found: Vec<_> = at_once.row(row).iter().map(|near| (near.dist2, near.id)).collect();
            found.sort_by(|a, b| a.partial_cmp(b).expect("distances are numbers"));
            found
        });
        same(rows.collect(), &std::mem::take(&mut expected), &format!("{what}, within {radius:?} as found"))
    }

    /// Visits find the points within the radius, and the nearest of them.
    fn check_visits<I: SpatialIndex<Point = [S; D]>>(
        &self,
        index: &I,
        queries: Queries<'_, [S; D]>,
        radius: Distance<S>,
        rows: &Rows<Distance<S>>,
        what: &str,
    ) -> Outcome {
        let options = self.options.clone().radius(radius);
        let begin = |_, bound| All { bound, found: Vec::new() };
        let found = index.visit(queries, &options, begin, |query, all| (query, all.found));
        if matches!(found, Err(Error::NotOnCpu)) && !index.device().is_cpu() {
            return Ok(());
        }
        for (row, (query, mut found)) in found?.into_iter().enumerate() {
            prop_assert_eq!(query, row, "{}, visits", what);
            found.sort_by(|a, b| a.partial_cmp(b).expect("distances are numbers"));
            same(found, &rows[row], &format!("{what}, visit {row} within {radius:?}"))?;
        }
        let begin = |_, bound| NearestPoints::<Distance<S>, 3>::new(bound);
        let nearest = index.visit(queries, &options, begin, |_, nearest| {
            let mut found = Vec::new();
            nearest.for_each(|distance, id| found.push((distance, id)));
            found
        })?;
        prop_assert_eq!(nearest.len(), rows.len(), "{}, visits", what);
        for (row, found) in nearest.into_iter().enumerate() {
            same(found, &rows[row][..rows[row].len().min(3)], &format!("{what}, nearest of visit {row}"))?;
        }
        Ok(())
    }

    fn check_boxes<I: SpatialIndex<Point = [S; D]>>(&self, index: &I) -> Outcome {
        let boxes = self.case.boxes.iter().map(|corners| corners.map(|corner| corner.map(Nasty::number)));
        let inside = |corners: [[Distance<S>; D]; 2]| {
            let ids = (0..self.points.len() as u32).filter(|&id| self.takes[id as usize]);
            ids.filter(|&id| is_inside(&self.points[id as usize], &corners)).collect::<Vec<_>>()
        };
        let expected: Vec<Vec<u32>> = boxes.map(inside).collect();
        let counts: Vec<u32> = expected.iter().map(|row| row.len() as u32).collect();
        let (boxes, mask) = (&self.case.boxes, self.options.mask.as_ref());
        prop_assert_eq!(&index.count_in_boxes(boxes, mask)?, &counts, "{}, in boxes", self.what);
        let found = index.in_boxes(boxes, mask)?;
        prop_assert_eq!(found.offsets(), offsets(&counts), "{}, in boxes", self.what);
        for (row, expected) in expected.into_iter().enumerate() {
            let mut ids = found.row(row).to_vec();
            ids.sort_unstable();
            prop_assert_eq!(ids, expected, "{}, box {:?}", self.what, boxes[row]);
        }
        let mut ids = Vec::new();
        index.in_boxes_batches(boxes, mask, &mut self.batches(), |batch| {
            ids.extend_from_slice(batch.ids());
            Continue(())
        })?;
        prop_assert!(ids == found.ids(), "{}, boxes in batches", self.what);
        Ok(())
    }

    /// Every call has the same error for a query that is beyond a period.
    fn is_refused<I: SpatialIndex<Point = [S; D]>>(
        &self,
        index: &I,
        queries: Queries<'_, [S; D]>,
        beyond: (u64, usize),
        what: &str,
    ) -> Outcome {
        let (radius, options) = (self.case.radius.unwrap_or(Distance::<S>::ZERO), &self.options);
        let mut batches = self.batches();
        let outcomes = [
            index.nearest_with(queries, 1, options).map(drop),
            index.nearest_with(queries, 0, options).map(drop),
            index.nearest_batches(queries, 1, options, &mut batches, |_| Continue(())).map(drop),
            index.count_within(queries, radius, options).map(drop),
            index.within(queries, radius, options).map(drop),
            index.within_batches(queries, radius, options, &mut batches, |_| Continue(())).map(drop),
            index.visit(queries, options, |_, bound| All { bound, found: Vec::new() }, |_, _| ()).map(drop),
        ];
        for (call, outcome) in outcomes.into_iter().enumerate() {
            let named = match outcome {
                Err(Error::BeyondPeriod { index, axis, .. }) => Some((index, axis)),
                _ => None,
            };
            prop_assert_eq!(named, Some(beyond), "{}, call {}", what, call);
        }
        Ok(())
    }

    fn batches(&self) -> Batches<'static> {
        Batches::new().rows(self.draw.choose(Choice::Batches, &[1, 2, 5, 1000]))
    }
}

/// A visitor that keeps all points within its bound.
struct All<C> {
    bound: C,
    found: Vec<(C, u32)>,
}

impl<C: Copy> Visit<C> for All<C> {
    fn bound(&self) -> C {
        self.bound
    }

    fn point(&mut self, distance: C, id: u32) {
        self.found.push((distance, id));
    }
}

fn offsets(counts: &[u32]) -> Vec<u64> {
    let ends = counts.iter().scan(0, |end, &count| {
        *end += u64::from(count);
        Some(*end)
    });
    std::iter::once(0).chain(ends).collect()
}

/// Compares distances and ids.
fn same<C: Number>(found: Vec<(C, u32)>, expected: &[(C, u32)], what: &str) -> Outcome {
    prop_assert_eq!(found.len(), expected.len(), "{}", what);
    if let Some(i) = (0..found.len()).find(|&i| found[i] != expected[i]) {
        let (found, expected) = (found[i], expected[i]);
        return Err(TestCaseError::fail(format!("{what}: {found:?} instead of {expected:?} at {i}")));
    }
    Ok(())
}

fn k_d_trees<S: Nasty, const D: usize>(run: &Run, draw: &Draw) -> Outcome {
    let case = Case::<S, D>::of(draw, draw.choose(Choice::IsPeriodic, &[true, false, false]));
    with_case(trees_of(run, draw, &case), &case)
}

fn trees_of<S: Nasty, const D: usize>(run: &Run, draw: &Draw, case: &Case<S, D>) -> Outcome {
    for device in &run.devices {
        for form in run.some(draw, Choice::Split, &[0, 1, 2, 3]) {
            match form {
                0 => check_tree(device, run, draw, case, SplitRule::RoundRobin)?,
                1 => check_tree(device, run, draw, case, SplitRule::Widest)?,
                2 => check_balanced(device, run, draw, case)?,
                _ => check_rtree(device, run, draw, case)?,
            }
        }
    }
    Ok(())
}

fn check_tree<S: Nasty, const D: usize>(
    device: &Device,
    run: &Run,
    draw: &Draw,
    case: &Case<S, D>,
    split: SplitRule,
) -> Outcome {
    let options = KdTreeOptions::default().algorithm(draw.choose(Choice::Builder, &ALGORITHMS)).split(split);
    let tree = KdTree::build(device, &case.points, &options)?;
    tree.verify()?;
    let what = format!("KdTree by {options:?} on {device}");
    IndexCheck::new(run, (case, draw), vec![true; case.points.len()], &what)?.check(&tree)
}

fn check_rtree<S: Nasty, const D: usize>(
    device: &Device,
    run: &Run,
    draw: &Draw,
    case: &Case<S, D>,
) -> Outcome {
    let (tree, what) = (RTree::build(device, &case.points)?, format!("RTree on {device}"));
    IndexCheck::new(run, (case, draw), vec![true; case.points.len()], &what)?.check(&tree)
}

/// A tree over the first of all equal points.
fn check_balanced<S: Nasty, const D: usize>(
    device: &Device,
    run: &Run,
    draw: &Draw,
    case: &Case<S, D>,
) -> Outcome {
    let algorithms = [balanced::BuildAlgorithm::Paths, balanced::BuildAlgorithm::Robinson];
    let algorithm = draw.choose(Choice::Builder, &algorithms);
    let tree = BalancedKdTree::build(device, &case.points, &BalancedOptions::default().algorithm(algorithm))?;
    tree.verify()?;
    let what = format!("BalancedKdTree by {algorithm:?} on {device}");
    let points = case.point_numbers();
    let is_first = |id: usize| !points[..id].contains(&points[id]);
    let firsts: Vec<bool> = (0..points.len()).map(is_first).collect();
    let removed: Vec<_> = tree.removed()?.iter().map(|removed| removed.id as usize).collect();
    let equal: Vec<_> = (0..points.len()).filter(|&id| !firsts[id]).collect();
    prop_assert_eq!(removed, equal, "{}, removed", what);
    IndexCheck::new(run, (case, draw), firsts, &what)?.check(&tree)
}

#[test]
fn k_d_trees_f32() {
    attack_everywhere("k-d trees, f32", 50, &|run, draw| match draw.choose(Choice::Type, &[2, 1, 3, 5, 8]) {
        1 => k_d_trees::<f32, 1>(run, draw),
        2 => k_d_trees::<f32, 2>(run, draw),
        3 => k_d_trees::<f32, 3>(run, draw),
        5 => k_d_trees::<f32, 5>(run, draw),
        _ => k_d_trees::<f32, 8>(run, draw),
    });
}

#[test]
fn k_d_trees_f64() {
    attack_everywhere(
        "k-d trees, f64",
        12,
        &|run, draw| match draw.choose(Choice::Type, &[2, 1, 3, 4, 6, 7]) {
            1 => k_d_trees::<f64, 1>(run, draw),
            2 => k_d_trees::<f64, 2>(run, draw),
            3 => k_d_trees::<f64, 3>(run, draw),
            4 => k_d_trees::<f64, 4>(run, draw),
            6 => k_d_trees::<f64, 6>(run, draw),
            _ => k_d_trees::<f64, 7>(run, draw),
        },
    );
}

#[test]
fn k_d_trees_of_integers() {
    attack_everywhere(
        "k-d trees of integers",
        12,
        &|run, draw| match draw.choose(Choice::Type, &[0, 1, 2, 3]) {
            0 => k_d_trees::<i32, 2>(run, draw),
            1 => k_d_trees::<i32, 3>(run, draw),
            2 => k_d_trees::<i64, 2>(run, draw),
            _ => k_d_trees::<i64, 8>(run, draw),
        },
    );
}
