//! Joins on the CPU compared with kiddo: pairs within a distance of two uniform sets in host memory, on all threads of rayon.
//!
//! A join of kauri needs no index, and sorts both sets each time. For kiddo, rows have the time with the build of its tree on one thread,
//! the time of the queries alone, and the time of queries sorted along a Morton curve, its best case; the sort is not counted.

use crate::measure::Timing;
use crate::points;
use crate::report::{Report, Row};
use crate::suites::Settings;
use kauri::query::QueryOptions;
use kauri::{Device, DistanceJoin, KdTree, KdTreeOptions, Result, SpatialIndex};
use kiddo::immutable::float::kdtree::ImmutableKdTree;
use kiddo::{NearestNeighbour, SquaredEuclidean};
use rayon::prelude::*;

/// Average number of pairs per point.
const PARTNERS: f64 = 10.0;

type Kiddo = ImmutableKdTree<f32, u32, 2, 32>;

/// Rows of the same work are next to each other. Rows of kiddo name the work that they omit.
pub(super) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    settings.sizes.iter().try_for_each(|&n| of_size(settings, n, report))
}

fn of_size(settings: &Settings, n: usize, report: &mut Report) -> Result<()> {
    let [left, right] = [settings.seed, settings.seed + 1].map(|seed| points::uniform::<f32, 2>(n, seed));
    let epsilon = (PARTNERS / std::f64::consts::PI / n.max(1) as f64).sqrt() as f32;
    let (device, join, effort) = (Device::cpu(), DistanceJoin::new(epsilon), settings.effort);
    let (tree, mut in_order) = (kiddo_of(&right), left.clone());
    in_order.sort_by_cached_key(morton);

    let pairs = join.count(&device, &left, &right)?;
    let mut rows = Rows { n: n as u64, pairs, report };
    let counted = "pairs counted, 10 a point";
    rows.push("", counted, pairs, effort.wall(|| join.count(&device, &left, &right))?);
    let others = count_of(&tree, &left, epsilon);
    rows.push(
        "kiddo + rayon",
        counted,
        others,
        effort.wall(|| Ok(count_of(&kiddo_of(&right), &left, epsilon)))?,
    );
    for (system, lefts) in [(BUILT, &left), (IN_ORDER, &in_order)] {
        rows.push(system, counted, others, effort.wall(|| Ok(count_of(&tree, lefts, epsilon)))?);
    }

    let found = "pairs found, 10 a point";
    let num_found = join.rows(&device, &left, &right)?.ids().len() as u64;
    rows.push("", found, num_found, effort.wall(|| join.rows(&device, &left, &right))?);
    rows.push(
        "kiddo + rayon",
        found,
        others,
        effort.wall(|| Ok(rows_of(&kiddo_of(&right), &left, epsilon)))?,
    );
    let built = effort.wall(|| Ok(rows_of(&tree, &left, epsilon)))?;
    rows.push(BUILT, found, others, built.clone());
    let built_in_order = effort.wall(|| Ok(rows_of(&tree, &in_order, epsilon)))?;
    rows.push(IN_ORDER, found, others, built_in_order.clone());

    // The index of kauri that is built once and queried often.
    let within = "pairs found by a tree built before, 10 a point";
    let (index, options) =
        (KdTree::build(&device, &right, &KdTreeOptions::default())?, QueryOptions::default());
    let timing = effort.wall(|| index.within(&left, epsilon, &options))?;
    rows.push("", within, index.within(&left, epsilon, &options)?.ids().len() as u64, timing);
    rows.push(BUILT, within, others, built);
    rows.push(IN_ORDER, within, others, built_in_order);
    Ok(())
}

const BUILT: &str = "kiddo + rayon, tree built before";
const IN_ORDER: &str = "kiddo + rayon, tree built and queries sorted before";

/// Rows of one size.
struct Rows<'a> {
    n: u64,
    pairs: u64,
    report: &'a mut Report,
}

impl Rows<'_> {
    fn push(&mut self, system: &str, work: &str, pairs: u64, timing: Timing) {
        assert_eq!(pairs, self.pairs, "{system} finds as many pairs as are counted");
        self.report.push(Row {
            system: system.to_owned(),
            work: work.to_owned(),
            input: "f32 x 2, uniform, host memory".to_owned(),
            n: self.n,
            timing: Some(timing),
            items: Some(pairs),
            check: Some("as many pairs"),
            ..Row::default()
        });
    }
}

fn kiddo_of(points: &[[f32; 2]]) -> Kiddo {
    Kiddo::new_from_slice(points)
}

fn within(tree: &Kiddo, query: &[f32; 2], epsilon: f32) -> Vec<NearestNeighbour<f32, u32>> {
    tree.within_unsorted::<SquaredEuclidean>(query, epsilon * epsilon)
}

fn count_of(tree: &Kiddo, queries: &[[f32; 2]], epsilon: f32) -> u64 {
    queries.par_iter().map(|query| within(tree, query, epsilon).len() as u64).sum()
}

fn rows_of(tree: &Kiddo, queries: &[[f32; 2]], epsilon: f32) -> Vec<Vec<NearestNeighbour<f32, u32>>> {
    queries.par_iter().map(|query| within(tree, query, epsilon)).collect()
}

/// Returns the Morton code of a point of the unit square.
fn morton(point: &[f32; 2]) -> u64 {
    let [x, y] = point.map(|x| (x * 65_536.0) as u64);
    (0..16).fold(0, |place, bit| place | (x >> bit & 1) << (2 * bit) | (y >> bit & 1) << (2 * bit + 1))
}
