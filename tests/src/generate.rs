//! Points to test with, from a seed: ordinary ones and the kinds that break trees.

use kauri_kernels::thread::coord::Float;

/// A coordinate type that tests make values of.
pub trait Scalar: Float + kauri::Scalar<Coord = Self> + std::fmt::Debug {
    /// The smallest positive value.
    const TINY: Self;
}

impl Scalar for f32 {
    const TINY: Self = f32::from_bits(1);
}

impl Scalar for f64 {
    const TINY: Self = f64::from_bits(1);
}

/// Random numbers (SplitMix64).
pub struct Random(u64);

impl Random {
    /// The sequence of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// An integer below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.bits() % end
    }

    /// A number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// How points lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Anywhere in the unit cube.
    Uniform,
    /// Nearly all in a few small balls.
    Clustered,
    /// All at one place.
    AllEqual,
    /// At three places.
    FewDistinct,
    /// On a coarse lattice: many equal coordinates and distances.
    Lattice,
    /// On the diagonal.
    Collinear,
    /// One axis constant.
    Flat,
    /// Sorted on every axis.
    Sorted,
    /// Sorted the other way.
    Reversed,
    /// -1, -0, 0 and 1 only.
    SignedZeros,
    /// Multiples of the smallest positive value, whose squares are 0.
    Subnormal,
    /// As large as is accepted.
    Largest,
    /// Small clusters at very different scales.
    Scales,
}

impl Shape {
    /// All of them.
    pub const ALL: [Shape; 13] = [
        Shape::Uniform,
        Shape::Clustered,
        Shape::AllEqual,
        Shape::FewDistinct,
        Shape::Lattice,
        Shape::Collinear,
        Shape::Flat,
        Shape::Sorted,
        Shape::Reversed,
        Shape::SignedZeros,
        Shape::Subnormal,
        Shape::Largest,
        Shape::Scales,
    ];

    /// `n` points of this shape.
    pub fn points<C: Scalar, const D: usize>(self, n: usize, seed: u64) -> Vec<[C; D]> {
        let mut random = Random::new(seed ^ (self as u64) << 32 ^ (D as u64) << 48);
        let mut points: Vec<[C; D]> = (0..n).map(|i| self.point(i, n, &mut random)).collect();
        if matches!(self, Shape::Sorted | Shape::Reversed) {
            for axis in 0..D {
                let mut values: Vec<C> = points.iter().map(|point| point[axis]).collect();
                values.sort_by_key(|value| value.key());
                if self == Shape::Reversed {
                    values.reverse();
                }
                for (point, value) in points.iter_mut().zip(values) {
                    point[axis] = value;
                }
            }
        }
        points
    }

    fn point<C: Scalar, const D: usize>(self, i: usize, n: usize, random: &mut Random) -> [C; D] {
        let cluster = random.below(4) as f64;
        let along = random.unit();
        std::array::from_fn(|axis| match self {
            Shape::Uniform | Shape::Sorted | Shape::Reversed => C::from_f64(random.unit()),
            Shape::Clustered if i + 3 < n => C::from_f64(cluster * 0.3 + 1e-4 * random.unit()),
            Shape::Clustered => C::from_f64(1e3 * random.unit()),
            Shape::AllEqual => C::from_f64(0.1 * (axis + 1) as f64),
            Shape::FewDistinct => C::from_f64(((i % 3) * (axis + 1)) as f64),
            Shape::Lattice => C::from_f64(random.below(4) as f64),
            Shape::Collinear => C::from_f64(along),
            Shape::Flat if axis == D - 1 => C::from_f64(-7.25),
            Shape::Flat => C::from_f64(random.unit()),
            Shape::SignedZeros => C::from_f64([-1.0, -0.0, 0.0, 1.0][random.below(4) as usize]),
            Shape::Subnormal => C::TINY * C::from_f64(random.below(1000) as f64),
            Shape::Largest => {
                C::LIMIT * C::from_f64([-1.0, 1.0, 0.0, random.unit()][random.below(4) as usize])
            }
            Shape::Scales => C::from_f64(10f64.powf(3.0 * (cluster - 2.0)) * (1.0 + 1e-3 * random.unit())),
        })
    }
}

/// Queries for a set of points: some of the points themselves, places near them, and places far off.
pub fn queries<C: Scalar, const D: usize>(points: &[[C; D]], n: usize, seed: u64) -> Vec<[C; D]> {
    let mut random = Random::new(seed ^ 0xa5a5);
    (0..n)
        .map(|i| {
            let at = match points.len() {
                0 => [C::ZERO; D],
                len => points[random.below(len as u64) as usize],
            };
            match i % 4 {
                0 | 1 => at,
                2 => std::array::from_fn(|axis| at[axis] * C::from_f64(1.0 - 0.01 * random.unit())),
                _ => std::array::from_fn(|_| C::from_f64((random.unit() - 0.5) * 10f64.powi(i as i32 % 12))),
            }
        })
        .collect()
}
