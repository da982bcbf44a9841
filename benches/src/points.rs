//! Random input that is the same in every run.

/// The generator SplitMix64: small, and good enough to scatter points.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Numbers that depend on `seed` alone.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// A coordinate type that points can be scattered in.
pub trait Uniform: Copy {
    /// The type's name.
    const NAME: &'static str;
    /// A number from 0 to 1, 1 not included.
    fn uniform(random: &mut Random) -> Self;
}

impl Uniform for f32 {
    const NAME: &'static str = "f32";
    fn uniform(random: &mut Random) -> f32 {
        (random.bits() >> 40) as f32 / (1u64 << 24) as f32
    }
}

impl Uniform for f64 {
    const NAME: &'static str = "f64";
    fn uniform(random: &mut Random) -> f64 {
        (random.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Points scattered evenly in the unit cube.
pub fn uniform<C: Uniform, const D: usize>(num_points: usize, seed: u64) -> Vec<[C; D]> {
    let mut random = Random::new(seed);
    (0..num_points).map(|_| std::array::from_fn(|_| C::uniform(&mut random))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_depend_on_the_seed_alone() {
        let points = uniform::<f32, 2>(1000, 7);
        assert_eq!(points, uniform::<f32, 2>(1000, 7));
        assert_ne!(points, uniform::<f32, 2>(1000, 8));
        assert!(points.iter().flatten().all(|x| (0.0..1.0).contains(x)));
        let mean = uniform::<f64, 1>(10_000, 1).as_flattened().iter().sum::<f64>() / 1e4;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
    }
}
