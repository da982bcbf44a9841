//! Every query and join of places against great circles: at the poles, at and around longitudes of ±180 and ±360 degrees, and elsewhere.

use super::{Run, attack_everywhere};
use kauri::balanced::{BalancedKdTree, BalancedOptions, Removed};
use kauri::join::{DistanceJoin, KnnJoin, Scored, SelfPairs, TopKDistanceJoin};
use kauri::kdtree::SplitRule;
use kauri::query::{Neighbors, PointMask, Queries, QueryOptions};
use kauri::{Batches, Device, EARTH_RADIUS_M, KdTree, KdTreeOptions, LonLat, SpatialIndex};
use kauri_tests::naive::angle;
use kauri_tests::nasty::{Choice, Draw, Outcome};
use proptest::prelude::*;
use std::f64::consts::PI;
use std::ops::ControlFlow::Continue;

const HALF_WAY_ROUND: f64 = PI * EARTH_RADIUS_M;

/// Draws a value of a list, a neighboring float, or a value near it.
fn around(raw: u64, values: &[f64]) -> f64 {
    let value = values[raw as usize % values.len()];
    let (near, limit) = (1e-7 * ((raw >> 32) as f64 / (1_u64 << 32) as f64), values[0].abs());
    let moved = match raw >> 8 & 7 {
        0..=2 => value,
        3 => value.next_up(),
        4 => value.next_down(),
        5 => value + near,
        6 => value - near,
        _ => value * (near * 1e7),
    };
    moved.clamp(-limit, limit)
}

fn place(raw: &[u64; 8]) -> LonLat {
    let turns = [
        360.0, -360.0, 180.0, -180.0, 0.0, -0.0, 90.0, -270.0, 45.0, -315.0, 135.0, -225.0, 225.0, -135.0,
        1e-300,
    ];
    let lon = around(raw[0], &turns);
    let lat = around(raw[1], &[90.0, -90.0, 90.0, -90.0, 0.0, -0.0, 45.0, -1e-300, 89.999, -60.0]);
    LonLat::new(lon, lat)
}

/// Returns the largest allowed error of a distance in meters: coordinates of unit vectors are rounded, and near an antipode a chord
/// hardly changes with the angle.
fn tolerance(meters: f64) -> f64 {
    let angle = meters.min(HALF_WAY_ROUND) / EARTH_RADIUS_M;
    EARTH_RADIUS_M * (3e-15 / (angle / 2.0).cos().max(1e-12)).min(8e-8)
}

/// True if two pairs of coordinates are one place: whole turns make no difference, and at a pole no longitude does.
fn is_same(a: LonLat, b: LonLat) -> bool {
    // From -180 up to 180, exactly.
    let reduced = |lon: f64| match lon % 360.0 {
        east @ 180.0.. => east - 360.0,
        west if west < -180.0 => west + 360.0,
        lon => lon,
    };
    a.lat == b.lat && (a.lat.abs() == 90.0 || reduced(a.lon) == reduced(b.lon))
}

struct World {
    left: Vec<LonLat>,
    right: Vec<LonLat>,
    /// Great-circle distances in meters: a row for each right place.
    meters: Vec<Vec<f64>>,
    radius: f64,
}

impl World {
    fn new(draw: &Draw) -> Self {
        let [left, right] = [&draw.points, &draw.others].map(|raw| raw.iter().map(place).collect::<Vec<_>>());
        let meters = great_circles(&right, &left);
        let some = meters.first().and_then(|row| row.get(row.len() / 2)).copied().unwrap_or(1.0);
        let radius = draw.choose(
            Choice::Radius,
            &[
                0.0,
                1e-300,
                1e-9,
                1.0,
                some,
                some / 2.0,
                1e6,
                HALF_WAY_ROUND / 2.0,
                HALF_WAY_ROUND.next_down(),
                HALF_WAY_ROUND - 1.0,
                HALF_WAY_ROUND,
                HALF_WAY_ROUND.next_up(),
                2.0 * HALF_WAY_ROUND,
                f64::INFINITY,
            ],
        );
        Self { left, right, meters, radius }
    }

    /// Checks rows of places found within the radius: each has all places that are surely within, and no place that is surely not.
    fn check_within(&self, rows: &[Vec<u32>], takes: impl Fn(u32) -> bool, what: &str) -> Outcome {
        prop_assert_eq!(rows.len(), self.right.len(), "{}", what);
        for (row, (ids, meters)) in rows.iter().zip(&self.meters).enumerate() {
            for (id, &meters) in (0..).zip(meters) {
                let (query, place) = (self.right[row], self.left[id as usize]);
                let what =
                    || format!("{what}: {query:?} and {place:?}, {meters} m apart, within {}", self.radius);
                let times = ids.iter().filter(|&&found| found == id).count();
                let surely = is_same(query, place)
                    || self.radius >= HALF_WAY_ROUND
                    || meters + tolerance(meters) < self.radius;
                let never = meters - tolerance(meters) > self.radius;
                match times {
                    0 => prop_assert!(!surely || !takes(id), "{} is missing", what()),
                    1 => prop_assert!(!never && takes(id), "{} is wrong", what()),
                    _ => prop_assert!(false, "{} is in the row {} times", what(), times),
                }
            }
        }
        Ok(())
    }

    /// Checks rows of nearest places and their meters.
    fn check_nearest(&self, near: &Neighbors<LonLat>, takes: impl Fn(u32) -> bool, what: &str) -> Outcome {
        for (row, (&query, meters)) in self.right.iter().zip(&self.meters).enumerate() {
            let (ids, dist2) = near.padded_row(row);
            let mut all: Vec<_> = (0..).zip(meters).filter(|&(id, _)| takes(id)).map(|(_, &m)| m).collect();
            all.sort_unstable_by(f64::total_cmp);
            let num = all.len().min(ids.len());
            prop_assert!(ids[num..].iter().all(|&id| id == u32::MAX), "{}: padding of {:?}", what, query);
            for (i, found) in near.meters(row).take(num).enumerate() {
                let (id, truth) = (ids[i], meters[ids[i] as usize]);
                let place = self.left[id as usize];
                let what =
                    || format!("{what}: place {i} of {query:?}: {place:?}, {found} m, on a circle {truth} m");
                prop_assert!((found - truth).abs() <= tolerance(truth), "{}", what());
                prop_assert!((found - all[i]).abs() <= tolerance(all[i]), "{}: {} m", what(), all[i]);
                let is_behind = i == 0 || (dist2[i - 1], ids[i - 1]) < (dist2[i], id);
                prop_assert!(takes(id) && is_behind, "{}: order", what());
                prop_assert_eq!(found, query.meters_to(&place), "{}", what());
            }
        }
        Ok(())
    }
}

fn great_circles(rows: &[LonLat], places: &[LonLat]) -> Vec<Vec<f64>> {
    let meters = |a: &LonLat, b: &LonLat| EARTH_RADIUS_M * angle([a.lon, a.lat], [b.lon, b.lat]);
    rows.iter().map(|a| places.iter().map(|b| meters(a, b)).collect()).collect()
}

fn check_index<I: SpatialIndex<Point = LonLat>>(
    world: &World,
    index: &I,
    is_in_tree: &dyn Fn(u32) -> bool,
    draw: &Draw,
    what: &str,
) -> Outcome {
    let nth = draw.choose(Choice::Mask, &[1, 2, 3, 1000]);
    let mask = PointMask::from_fn(world.left.len(), |id| id % nth == 0)?;
    let takes = |id: u32| is_in_tree(id) && id.is_multiple_of(nth);
    let options = QueryOptions::default().mask(mask);
    let (radius, right) = (world.radius, &world.right);

    let found = index.within(right, radius, &options)?;
    let rows: Vec<Vec<u32>> = (0..found.len()).map(|row| found.row(row).ids().to_vec()).collect();
    world.check_within(&rows, takes, what)?;
    let counts: Vec<u32> = rows.iter().map(|row| row.len() as u32).collect();
    prop_assert_eq!(index.count_within(right, radius, &options)?, counts, "{}", what);
    let mut ids = Vec::new();
    index.within_batches(right, radius, &options, &mut Batches::new().rows(3), |batch| {
        ids.extend_from_slice(batch.ids());
        Continue(())
    })?;
    prop_assert_eq!(ids, found.ids(), "{}, batches", what);

    let k = draw.choose(Choice::K, &[1, 3, world.left.len() + 2]);
    let near = index.nearest_with(right, k, &options)?;
    world.check_nearest(&near, takes, what)?;

    // A self-query that excludes each place from its own row.
    let own = index.nearest_with(Queries::SelfQuery { include_self: false }, 2, &QueryOptions::default())?;
    let meters = great_circles(&world.left, &world.left);
    for (row, meters) in meters.iter().enumerate() {
        let others = (0..).zip(meters).filter(|&(id, _)| id != row as u32 && is_in_tree(id));
        let least = others.map(|(_, &meters)| meters).fold(f64::INFINITY, f64::min);
        let found = own.meters(row).next().unwrap_or(f64::INFINITY);
        prop_assert!(found == least || (found - least).abs() <= tolerance(least), "{}, own {}", what, row);
    }
    Ok(())
}

fn check_joins(world: &World, device: &Device, draw: &Draw) -> Outcome {
    let (left, right, radius) = (&world.left, &world.right, world.radius);
    let what = format!("joins on {device}");
    let join = DistanceJoin::new(radius);
    // The first set of a join has the rows.
    let found = join.rows(device, right, left)?;
    let rows: Vec<Vec<u32>> = (0..found.len()).map(|row| found.row(row).to_vec()).collect();
    world.check_within(&rows, |_| true, &what)?;
    prop_assert_eq!(join.count(device, left, right)?, found.ids().len() as u64, "{}", &what);
    let mut ids = Vec::new();
    join.rows_batches(device, right, left, &mut Batches::new().rows(2), |batch| {
        ids.extend_from_slice(batch.ids());
        Continue(())
    })?;
    prop_assert_eq!(ids, found.ids(), "{}, batches", &what);

    let own = World { right: left.clone(), left: left.clone(), meters: great_circles(left, left), radius };
    let both = join.self_rows(device, left, SelfPairs::Both)?;
    let mut rows: Vec<Vec<u32>> = (0..both.len()).map(|row| both.row(row).to_vec()).collect();
    (0..).zip(&mut rows).for_each(|(id, row)| row.push(id));
    own.check_within(&rows, |_| true, &format!("{what}, one set"))?;
    prop_assert_eq!(
        2 * join.self_count(device, left, SelfPairs::Once)?,
        both.ids().len() as u64,
        "{}",
        &what
    );
    prop_assert_eq!(join.self_count(device, left, SelfPairs::Both)?, both.ids().len() as u64, "{}", &what);
    let once = join.self_rows(device, left, SelfPairs::Once)?;
    for row in 0..once.len() {
        let mut expected: Vec<u32> = both.row(row).iter().copied().filter(|&id| id < row as u32).collect();
        let mut ids = once.row(row).to_vec();
        expected.sort_unstable();
        ids.sort_unstable();
        prop_assert_eq!(ids, expected, "{}, once", &what);
    }

    // Scores order the pairs that were found.
    let scores = |raw: &[[u64; 8]]| raw.iter().map(|raw| (raw[2] % 4) as u32).collect::<Vec<_>>();
    let (left_scores, right_scores) = (scores(&draw.points), scores(&draw.others));
    let mut pairs: Vec<(i64, u32, u32)> = Vec::new();
    for (r, &right_score) in right_scores.iter().enumerate() {
        let score = |l: u32| -i64::from(left_scores[l as usize]) - i64::from(right_score);
        pairs.extend(found.row(r).iter().map(|&l| (score(l), l, r as u32)));
    }
    pairs.sort_unstable();
    let best = TopKDistanceJoin::new(radius, 20).run(
        device,
        Scored::new(left, &left_scores)?,
        Scored::new(right, &right_scores)?,
    )?;
    let best: Vec<_> = best.pairs().iter().map(|pair| (pair.left, pair.right)).collect();
    let expected: Vec<_> = pairs.iter().take(20).map(|&(_, l, r)| (l, r)).collect();
    prop_assert_eq!(best, expected, "{}, best within {}", &what, radius);

    let near = KnnJoin::new(3).within(radius).run(device, left, right)?;
    for row in 0..right.len() {
        let mut within = found.row(row).to_vec();
        let meters = |id: &u32| right[row].meters_to(&left[*id as usize]);
        within.sort_by(|a, b| meters(a).total_cmp(&meters(b)));
        let num = within.len().min(3);
        let found: Vec<f64> = near.meters(row).take(num).collect();
        let expected: Vec<f64> = within.iter().take(3).map(meters).collect();
        prop_assert_eq!(found, expected, "{}, nearest within {}", &what, radius);
        prop_assert!(near.padded_row(row).0[num..].iter().all(|&id| id == u32::MAX), "{}", &what);
    }
    Ok(())
}

fn check(run: &Run, draw: &Draw) -> Outcome {
    let world = World::new(draw);
    for device in &run.devices {
        for form in run.some(draw, Choice::Builder, &[0, 1, 2]) {
            match form {
                0 => {
                    let split = draw.choose(Choice::Split, &[SplitRule::RoundRobin, SplitRule::Widest]);
                    let tree = KdTree::build(device, &world.left, &KdTreeOptions::default().split(split))?;
                    check_index(&world, &tree, &|_| true, draw, &format!("KdTree, {split:?} on {device}"))?;
                }
                1 => check_balanced(&world, device, draw)?,
                _ => check_joins(&world, device, draw)?,
            }
        }
    }
    Ok(())
}

fn check_balanced(world: &World, device: &Device, draw: &Draw) -> Outcome {
    let tree = BalancedKdTree::build(device, &world.left, &BalancedOptions::default())?;
    let removed = tree.removed()?;
    for &Removed { id, kept } in &removed {
        let [a, b] = [id, kept].map(|id| world.left[id as usize]);
        prop_assert!(kept < id && a.meters_to(&b) == 0.0, "{:?} was removed for {:?}", a, b);
    }
    let is_in_tree = |id: u32| removed.iter().all(|removed| removed.id != id);
    check_index(world, &tree, &is_in_tree, draw, &format!("BalancedKdTree on {device}"))
}

#[test]
fn places() {
    attack_everywhere("places", 60, &|run, draw| {
        check(run, draw).map_err(|error| {
            let places = [&draw.points, &draw.others].map(|raw| raw.iter().map(place).collect::<Vec<_>>());
            TestCaseError::fail(format!("{error}\n{places:?}"))
        })
    });
}

/// Documented: half the circumference reaches every place.
#[test]
fn half_way_round_reaches_every_place() {
    let mut places: Vec<LonLat> = Vec::new();
    for lon in [-360.0, -180.0, 0.0, 17.3, 33.3, 180.0, 360.0] {
        for lat in [-90.0, -45.0, -12.34567, 0.0, 12.34567, 45.0, 90.0] {
            places.extend([LonLat::new(lon, lat), LonLat::new(lon - 180.0_f64.copysign(lon), -lat)]);
        }
    }
    let device = Device::cpu();
    let tree = KdTree::build(&device, &places, &KdTreeOptions::default()).unwrap();
    let all = vec![places.len() as u32; places.len()];
    for radius in [HALF_WAY_ROUND, HALF_WAY_ROUND.next_up(), 1e300, f64::INFINITY] {
        assert_eq!(tree.count_within(&places, radius, &QueryOptions::default()).unwrap(), all, "{radius}");
        let pairs = DistanceJoin::new(radius).count(&device, &places, &places).unwrap();
        assert_eq!(pairs as usize, places.len() * places.len(), "{radius}");
    }
}
