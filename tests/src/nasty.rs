//! Generated test cases with coordinates that are hard for indexes. A failing case is shrunk to a small one.

use crate::naive::{Number, Space, larger};
use kauri::join::Norm;
use kauri_kernels::thread::coord::Coord;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};
use std::fmt::Debug;
use std::hash::{BuildHasher, RandomState};

/// The result of checking a case.
pub type Outcome = Result<(), TestCaseError>;

/// Families of coordinates. Failing cases shrink towards the first families.
#[derive(Clone, Copy, Debug)]
pub enum Family {
    /// Small integers: many equal coordinates and distances.
    Lattice,
    /// A single value.
    Constant,
    /// Zeros of both signs, and ones.
    Zeros,
    /// Consecutive representable values.
    Adjacent,
    /// Powers of two and their neighbors: the borders of cells.
    Borders,
    /// Uniform between 0 and 1.
    Uniform,
    /// Uniform between 0 and 1, with rare large values.
    Outlier,
    /// Negative values so small that their products underflow, with rare large values.
    TinyNegative,
    /// Subnormal values.
    Denormal,
    /// The smallest values mixed with large ones.
    SmallAndLarge,
    /// Values of every magnitude.
    Scales,
    /// The largest accepted values and their neighbors.
    Limits,
}

impl Family {
    const ALL: [Self; 12] = [
        Self::Lattice,
        Self::Constant,
        Self::Zeros,
        Self::Adjacent,
        Self::Borders,
        Self::Uniform,
        Self::Outlier,
        Self::TinyNegative,
        Self::Denormal,
        Self::SmallAndLarge,
        Self::Scales,
        Self::Limits,
    ];
}

/// A coordinate type of generated cases.
pub trait Nasty: kauri::Scalar<Coord: Coord<Distance: Number>> + Debug + PartialOrd {
    /// Returns a value of a family. Small `raw` numbers give simple values.
    fn of_family(family: Family, raw: u64) -> Self;
    /// Returns the coordinate as an index computes with it.
    fn number(self) -> Distance<Self>;
}

/// The type of the distances between points with such coordinates.
pub type Distance<S> = <<S as kauri::Scalar>::Coord as Coord>::Distance;

macro_rules! floats {
    ($($Float:ident, $Bits:ident: $small:expr, $large:expr, $exponents:expr;)*) => { $(
        impl Nasty for $Float {
            fn of_family(family: Family, raw: u64) -> Self {
                const LIMIT: $Float = <$Float as Number>::LIMIT;
                const SMALLEST: $Float = <$Float as Number>::SMALLEST;
                let pick = |values: &[$Float]| values[raw as usize % values.len()];
                // An odd factor spreads small raw numbers over the whole range.
                let unit = (raw.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as $Float / (1u64 << 24) as $Float;
                match family {
                    Family::Lattice => pick(&[0.0, 1.0, 2.0, 3.0, -1.0, -2.0]),
                    Family::Constant => 7.25,
                    Family::Zeros => pick(&[0.0, -0.0, 1.0, -1.0]),
                    Family::Adjacent => $Float::from_bits($Float::to_bits(1.0) - 4 + (raw % 9) as $Bits),
                    Family::Borders => {
                        let border = pick(&[1.0, 0.5, 2.0, 0.25, 4.0, -1.0, -0.5]);
                        [border, border.next_down(), border.next_up()][(raw / 7 % 3) as usize]
                    }
                    Family::Uniform => unit,
                    Family::Outlier => if raw % 32 == 31 { $large } else { unit },
                    Family::TinyNegative => match raw % 32 {
                        30 => $large,
                        31 => -$large,
                        _ => -$small * (1.0 + unit),
                    },
                    Family::Denormal => pick(&[0.0, SMALLEST, -SMALLEST, 2.0 * SMALLEST, 1000.0 * SMALLEST, $Float::MIN_POSITIVE]),
                    Family::SmallAndLarge => pick(&[0.0, $small, -$small, SMALLEST, -SMALLEST, $large, -$large, 1.0]),
                    Family::Scales => {
                        let exponent = raw as i32 % ($exponents) - $exponents / 2;
                        let sign = if raw / 7 % 2 == 0 { 1.0 } else { -1.0 };
                        sign * (1.0 + unit) * $Float::powi(2.0, exponent)
                    }
                    Family::Limits => pick(&[0.0, LIMIT, -LIMIT, LIMIT.next_down(), -LIMIT.next_down(), LIMIT / 2.0, 1.0, $small]),
                }
            }

            fn number(self) -> Self {
                self
            }
        }
    )* };
}
floats! {
    f32, u32: 1e-30, 1e15, 120;
    f64, u64: 1e-200, 1e150, 1000;
}

macro_rules! integers {
    ($($Integer:ident: $limit:expr;)*) => { $(
        impl Nasty for $Integer {
            fn of_family(family: Family, raw: u64) -> Self {
                const LIMIT: i64 = $limit;
                let pick = |values: &[i64]| values[raw as usize % values.len()];
                let spread = (raw.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 34) as i64;
                (match family {
                    Family::Lattice => pick(&[0, 1, 2, 3, -1, -2]),
                    Family::Constant => 7,
                    Family::Zeros => pick(&[0, 1, -1]),
                    Family::Adjacent => LIMIT - 4 - (raw % 9) as i64,
                    Family::Borders => (1 << 20) + pick(&[0, -1, 1]),
                    Family::Uniform => spread - (1 << 29),
                    Family::Outlier => if raw % 32 == 31 { LIMIT } else { spread % 1000 },
                    Family::TinyNegative => if raw % 32 == 31 { -LIMIT } else { -(spread % 3) },
                    Family::Denormal => pick(&[0, 1]),
                    Family::SmallAndLarge => pick(&[0, 1, -1, LIMIT / 2, -LIMIT / 2, LIMIT]),
                    Family::Scales => (1_i64 << (raw % 31)) - spread % 2,
                    Family::Limits => pick(&[0, LIMIT, -LIMIT, LIMIT - 1, 1 - LIMIT, if $Integer::BITS == 32 { -LIMIT - 1 } else { -LIMIT }]),
                }) as $Integer
            }

            fn number(self) -> f64 {
                self as f64
            }
        }
    )* };
}
integers! {
    i32: i32::MAX as i64;
    i64: 1 << 53;
}

/// The decisions of a draw besides coordinates. Each has its own random number.
#[derive(Clone, Copy, Debug)]
pub enum Choice {
    /// The coordinate type and the number of dimensions.
    Type,
    /// The norm.
    Norm,
    /// The mask: which points a query considers.
    Mask,
    /// The rule for the radius.
    Radius,
    /// The pair of points that determines the radius, and the weights of scores.
    Pair,
    /// Whether axes may be periodic, or the kind of join.
    IsPeriodic,
    /// The periodic axes and their periods.
    Periods,
    /// The build algorithm.
    Builder,
    /// The split rule, or the lookup of cells.
    Split,
    /// The traversal of queries, or the strategy of joins.
    Walk,
    /// The order of queries.
    Order,
    /// The source of the queries.
    Source,
    /// The number of neighbors or pairs.
    K,
    /// The rows of a batch.
    Batches,
    /// The points of a leaf.
    Leaf,
    /// The depth of a tree, or the type of scores.
    Depth,
    /// The score function.
    Function,
}

impl Choice {
    const NUM: usize = Self::Function as usize + 1;
}

/// The random numbers of a case, independent of the coordinate type.
#[derive(Clone, Debug)]
pub struct Draw {
    families: [u8; 8],
    /// Eight numbers for each point, one per axis.
    pub points: Vec<[u64; 8]>,
    /// Eight numbers for each query, or for each point of the right set of a join.
    pub others: Vec<[u64; 8]>,
    /// The number of different values per family, at most.
    distinct: u64,
    choices: [u8; Choice::NUM],
}

impl Draw {
    fn any(most: usize) -> impl Strategy<Value = Self> {
        let raw = || [(); 8].map(|()| any::<u64>());
        let distinct = prop_oneof![Just(1_u64), Just(3), Just(9), Just(64), Just(u64::MAX)];
        (
            [(); 8].map(|()| any::<u8>()),
            prop::collection::vec(raw(), 0..=most),
            prop::collection::vec(raw(), 0..=most.min(24)),
            distinct,
            [(); Choice::NUM].map(|()| any::<u8>()),
        )
            .prop_map(|(families, points, others, distinct, choices)| Self {
                families,
                points,
                others,
                distinct,
                choices,
            })
    }

    /// Returns a point. Either each axis has its own family, or all axes have the first one.
    fn point<S: Nasty, const D: usize>(&self, raw: &[u64; 8]) -> [S; D] {
        let is_mixed = self.families[7] % 2 == 1;
        std::array::from_fn(|axis| {
            let family = usize::from(self.families[if is_mixed { axis } else { 0 }]);
            S::of_family(Family::ALL[family % Family::ALL.len()], raw[axis] % self.distinct)
        })
    }

    /// Returns one of the options.
    pub fn choose<T: Copy>(&self, choice: Choice, among: &[T]) -> T {
        among[usize::from(self.choices[choice as usize]) % among.len()]
    }
}

/// A test case: points, queries and query parameters.
#[derive(Clone, Debug)]
pub struct Case<S: Nasty, const D: usize> {
    /// The points of the index, or the left set of a join.
    pub points: Vec<[S; D]>,
    /// Queries, or the right set of a join.
    pub others: Vec<[S; D]>,
    /// Query boxes: least and greatest coordinates.
    pub boxes: Vec<[[S; D]; 2]>,
    /// The norm and the periods.
    pub space: Space<Distance<S>>,
    /// The radius; `None` is unlimited.
    pub radius: Option<Distance<S>>,
    /// True for the ids that queries consider; `None` considers all.
    pub mask: Option<Vec<bool>>,
}

impl<S: Nasty, const D: usize> Case<S, D> {
    /// Converts a draw to a case. Axes are periodic only if `is_periodic`.
    pub fn of(draw: &Draw, is_periodic: bool) -> Self {
        let to_points = |raw: &[[u64; 8]]| raw.iter().map(|raw| draw.point(raw)).collect::<Vec<[S; D]>>();
        let (points, mut others) = (to_points(&draw.points), to_points(&draw.others));
        // Every second query coincides with a point.
        for (i, point) in points.iter().take(others.len() / 2).enumerate() {
            others[2 * i] = *point;
        }
        let norm =
            draw.choose(Choice::Norm, &[Norm::Euclidean, Norm::Euclidean, Norm::Manhattan, Norm::Chebyshev]);
        let mask = draw.choose(Choice::Mask, &[None, None, Some(2), Some(3), Some(1000)]);
        let mask = mask.map(|nth| (0..points.len()).map(|i| i % nth == 1).collect());
        let boxes = boxes(&points, &others);
        let mut case =
            Self { points, others, boxes, space: Space { norm, periods: Vec::new() }, radius: None, mask };
        case.radius = case.chosen_radius(draw);
        if is_periodic {
            case.space.periods = case.chosen_periods(draw);
        }
        case
    }

    /// Returns the points as an index stores them.
    pub fn point_numbers(&self) -> Vec<[Distance<S>; D]> {
        numbers(&self.points)
    }

    /// Returns the other points as an index stores them.
    pub fn other_numbers(&self) -> Vec<[Distance<S>; D]> {
        numbers(&self.others)
    }

    /// Returns no radius, a special value, or the distance of a pair of points, exactly or nearly.
    fn chosen_radius(&self, draw: &Draw) -> Option<Distance<S>> {
        let (points, others) = (self.point_numbers(), self.other_numbers());
        let nth = usize::from(draw.choices[Choice::Pair as usize]);
        let pair = points.get(nth % points.len().max(1)).zip(others.get(nth / 3 % others.len().max(1)));
        let between = |norm| {
            let space = Space { norm, periods: Vec::new() };
            pair.map_or(<Distance<S> as Number>::ZERO, |(a, b)| space.distance(a, b))
        };
        let (plain, root) = (between(Norm::Chebyshev), between(Norm::Euclidean).root());
        let manhattan = between(Norm::Manhattan);
        let zero = <Distance<S> as Number>::ZERO;
        draw.choose(
            Choice::Radius,
            &[
                None,
                Some(plain),
                Some(root),
                Some(root.up()),
                Some(larger(zero, root.down())),
                Some(manhattan),
                Some(plain.half()),
                Some(plain.half().half().half()),
                Some(root + root),
                Some(zero),
                Some(Distance::<S>::SMALLEST),
                Some(Distance::<S>::INFINITY),
                Some(Distance::<S>::LIMIT),
                Some(Distance::<S>::SMALLEST.root()),
            ],
        )
    }

    /// Returns the period of each axis: none, the extent of the points, twice the extent, or rarely one that is too small.
    fn chosen_periods(&self, draw: &Draw) -> Vec<Distance<S>> {
        let all: Vec<_> = self.point_numbers().into_iter().chain(self.other_numbers()).collect();
        (0..D)
            .map(|axis| {
                let along = all.iter().map(|point| point[axis]);
                let extent = along.clone().flat_map(|a| along.clone().map(move |b| a - b));
                let extent = extent.fold(<Distance<S> as Number>::ZERO, larger);
                let pick = usize::from(draw.choices[Choice::Periods as usize]) >> (axis % 4) & 7;
                [
                    extent,
                    extent + extent,
                    <Distance<S> as Number>::ZERO,
                    extent.up(),
                    extent,
                    extent,
                    extent,
                    extent.half(),
                ][pick]
            })
            .collect()
    }
}

/// Returns boxes with points as corners: most are ordered, some are reversed, some have no extent.
fn boxes<S: Nasty, const D: usize>(points: &[[S; D]], others: &[[S; D]]) -> Vec<[[S; D]; 2]> {
    let corners = others
        .iter()
        .enumerate()
        .filter_map(|(i, &a)| Some((i, a, *points.get(i * 7 % points.len().max(1))?)));
    let of_corners = corners.map(|(i, a, b)| match i % 4 {
        0 => [a, a],
        1 => [a, b],
        _ => {
            let low = std::array::from_fn(|axis| if a[axis] < b[axis] { a[axis] } else { b[axis] });
            let high = std::array::from_fn(|axis| if a[axis] < b[axis] { b[axis] } else { a[axis] });
            [low, high]
        }
    });
    of_corners.collect()
}

fn numbers<S: Nasty, const D: usize>(points: &[[S; D]]) -> Vec<[Distance<S>; D]> {
    points.iter().map(|point| point.map(Nasty::number)).collect()
}

/// Returns the number in an environment variable, if it is set.
fn number_in_env(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}

/// The seeds of every run, so that their failures repeat.
const SEEDS: [u64; 3] = [1, 2, 3];

/// Checks `cases` cases of up to `most` points for each of a few fixed seeds and one new seed. A failing case is shrunk.
///
/// If the environment variable `KAURI_ATTACK` is set, this number of new seeds is used instead; some of them generate one
/// case with many points. `KAURI_ATTACK_SEED` replays a seed that failed.
pub fn attack(what: &str, cases: u32, most: usize, check: &dyn Fn(&Draw) -> Outcome) {
    let fresh = || RandomState::new().hash_one(what) >> 16;
    let seeds = match (number_in_env("KAURI_ATTACK_SEED"), number_in_env("KAURI_ATTACK")) {
        (Some(seed), _) => vec![seed],
        (None, Some(num)) => (0..num).map(|_| fresh()).collect(),
        (None, None) => SEEDS.into_iter().chain([fresh() | 1]).collect(),
    };
    for seed in seeds {
        let (cases, most) = if seed.is_multiple_of(32) { (1, 40 * most) } else { (cases, most) };
        let config = Config {
            cases,
            failure_persistence: None,
            rng_seed: RngSeed::Fixed(seed),
            max_shrink_iters: 20_000,
            max_shrink_time: 60_000,
            ..Config::default()
        };
        match TestRunner::new(config).run(&Draw::any(most), |draw| check(&draw)) {
            Ok(()) => {}
            Err(TestError::Fail(reason, draw)) => {
                panic!("{what}: {reason}\nKAURI_ATTACK_SEED={seed} replays this. {draw:?}")
            }
            Err(error) => panic!("{what}, seed {seed}: {error}"),
        }
    }
}
