//! Coordinates of the kinds that break indexes, drawn so that a failing case shrinks.

use crate::naive::{Number, Space, larger};
use kauri::join::Norm;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};
use std::fmt::Debug;
use std::hash::{BuildHasher, RandomState};

/// What a check says of a case.
pub type Outcome = Result<(), TestCaseError>;

/// Families of coordinates. The ones that failures shrink towards come first.
#[derive(Clone, Copy, Debug)]
pub enum Family {
    /// Small integers: many equal coordinates and distances.
    Lattice,
    /// One value.
    Constant,
    /// Zeros of both signs, and ones.
    Zeros,
    /// A few values next to each other.
    Adjacent,
    /// Powers of two and the values on both sides of them, which are the borders of cells.
    Borders,
    /// Between 0 and 1.
    Uniform,
    /// Between 0 and 1, and now and then one far off.
    Outlier,
    /// Negative and so small that products with them vanish, and now and then a large one.
    TinyNegative,
    /// The smallest values there are.
    Denormal,
    /// The smallest values beside large ones.
    SmallAndLarge,
    /// Of every magnitude.
    Scales,
    /// The largest values accepted, and those next to them.
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

/// A type of coordinates that cases are made of.
pub trait Nasty: kauri::Scalar<Coord: Number> + Debug + PartialOrd {
    /// A value of a family. Small `raw` numbers make plain values.
    fn of_family(family: Family, raw: u64) -> Self;
    /// The number that an index takes it for.
    fn number(self) -> Self::Coord;
}

macro_rules! floats {
    ($($Float:ident, $Bits:ident: $small:expr, $large:expr, $exponents:expr;)*) => { $(
        impl Nasty for $Float {
            fn of_family(family: Family, raw: u64) -> Self {
                const LIMIT: $Float = <$Float as Number>::LIMIT;
                const SMALLEST: $Float = <$Float as Number>::SMALLEST;
                let pick = |values: &[$Float]| values[raw as usize % values.len()];
                // Odd factors spread what is drawn from a small range.
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

/// What a draw decides beside coordinates, each by a number of its own.
#[derive(Clone, Copy, Debug)]
pub enum Choice {
    /// The type of coordinates and their number.
    Type,
    /// The norm.
    Norm,
    /// Which points count.
    Mask,
    /// How the radius is made.
    Radius,
    /// Which pair of points it is made of, and weights of scores.
    Pair,
    /// If axes may repeat, or which join is done.
    IsPeriodic,
    /// Which axes do, and how often.
    Periods,
    /// How an index is built.
    Builder,
    /// On which axis, or how cells are looked up.
    Split,
    /// How queries or joins are done.
    Walk,
    /// In which order.
    Order,
    /// Where queries come from.
    Source,
    /// How many neighbors or pairs.
    K,
    /// How many rows a batch has.
    Batches,
    /// How many points a leaf has.
    Leaf,
    /// How deep a tree is, or the type of scores.
    Depth,
    /// What is made of two scores.
    Function,
}

impl Choice {
    const NUM: usize = Self::Function as usize + 1;
}

/// What a case is made of: numbers that mean something only to a type of coordinates.
#[derive(Clone, Debug)]
pub struct Draw {
    families: [u8; 8],
    /// Eight numbers a point.
    pub points: Vec<[u64; 8]>,
    /// Those of queries, or of the right set of a join.
    pub others: Vec<[u64; 8]>,
    /// Coordinates are drawn from so many values of their family at most.
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

    /// Points of a set, of which every axis has a family of its own, or all have the one of the first.
    fn place<S: Nasty, const D: usize>(&self, raw: &[u64; 8]) -> [S; D] {
        let is_mixed = self.families[7] % 2 == 1;
        std::array::from_fn(|axis| {
            let family = usize::from(self.families[if is_mixed { axis } else { 0 }]);
            S::of_family(Family::ALL[family % Family::ALL.len()], raw[axis] % self.distinct)
        })
    }

    /// One of some options.
    pub fn choose<T: Copy>(&self, choice: Choice, among: &[T]) -> T {
        among[usize::from(self.choices[choice as usize]) % among.len()]
    }
}

/// Points, what is asked of them, and how.
#[derive(Clone, Debug)]
pub struct Case<S: Nasty, const D: usize> {
    /// The set, or the left one of a join.
    pub points: Vec<[S; D]>,
    /// Queries, or the right set of a join.
    pub others: Vec<[S; D]>,
    /// The least and the greatest coordinates of each.
    pub boxes: Vec<[[S; D]; 2]>,
    /// How distances are measured.
    pub space: Space<S::Coord>,
    /// How far points may be; however far if there is none.
    pub radius: Option<S::Coord>,
    /// The points that count, by id.
    pub mask: Option<Vec<bool>>,
}

impl<S: Nasty, const D: usize> Case<S, D> {
    /// The case of a draw, with axes that repeat if that is `periodic`.
    pub fn of(draw: &Draw, is_periodic: bool) -> Self {
        let places = |raw: &[[u64; 8]]| raw.iter().map(|raw| draw.place(raw)).collect::<Vec<[S; D]>>();
        let (points, mut others) = (places(&draw.points), places(&draw.others));
        // Every other one is a point.
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

    /// Its points as numbers.
    pub fn point_numbers(&self) -> Vec<[S::Coord; D]> {
        numbers(&self.points)
    }

    /// Its other points as numbers.
    pub fn other_numbers(&self) -> Vec<[S::Coord; D]> {
        numbers(&self.others)
    }

    /// None, a special one, or one that some pair of points is at, or nearly.
    fn chosen_radius(&self, draw: &Draw) -> Option<S::Coord> {
        let (points, others) = (self.point_numbers(), self.other_numbers());
        let nth = usize::from(draw.choices[Choice::Pair as usize]);
        let pair = points.get(nth % points.len().max(1)).zip(others.get(nth / 3 % others.len().max(1)));
        let between = |norm| {
            let space = Space { norm, periods: Vec::new() };
            pair.map_or(S::Coord::ZERO, |(a, b)| space.distance(a, b))
        };
        let (plain, root) = (between(Norm::Chebyshev), between(Norm::Euclidean).root());
        let manhattan = between(Norm::Manhattan);
        let zero = S::Coord::ZERO;
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
                Some(S::Coord::SMALLEST),
                Some(S::Coord::INFINITY),
                Some(S::Coord::LIMIT),
                Some(S::Coord::SMALLEST.root()),
            ],
        )
    }

    /// On every axis none, or as far as all points reach, or twice that; rarely too little.
    fn chosen_periods(&self, draw: &Draw) -> Vec<S::Coord> {
        let all: Vec<_> = self.point_numbers().into_iter().chain(self.other_numbers()).collect();
        (0..D)
            .map(|axis| {
                let along = all.iter().map(|point| point[axis]);
                let extent = along.clone().flat_map(|a| along.clone().map(move |b| a - b));
                let extent = extent.fold(S::Coord::ZERO, larger);
                let pick = usize::from(draw.choices[Choice::Periods as usize]) >> (axis % 4) & 7;
                [extent, extent + extent, S::Coord::ZERO, extent.up(), extent, extent, extent, extent.half()]
                    [pick]
            })
            .collect()
    }
}

/// Boxes between points: most in order, some the wrong way round, some of one place.
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

fn numbers<S: Nasty, const D: usize>(points: &[[S; D]]) -> Vec<[S::Coord; D]> {
    points.iter().map(|point| point.map(Nasty::number)).collect()
}

/// The number that an environment variable has, if it is set.
fn number_in_env(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// Seeds that every run takes, and so every failure that they find is found again.
const SEEDS: [u64; 3] = [1, 2, 3];

/// Checks so many cases of each of some fixed seeds and a fresh one, of up to `most` points, and shrinks what fails.
///
/// `KAURI_ATTACK` is a number of fresh seeds to take instead, of which some make one case of many points; `KAURI_ATTACK_SEED` replays a seed
/// that failed.
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
