//! Chooses the grid of a join of boxes from the bounding boxes of its sets and the sizes of some boxes.

use super::params::BoxParams;
use crate::primitives::cpu::bounds::bounds;
use kauri_kernels::join::boxes::levels::LevelGrid;
use kauri_kernels::policy::BOXES;
use kauri_kernels::thread::coord::Float;

/// Most boxes of the sample of a set.
pub(super) const SAMPLE: usize = 512;

/// Returns the indices of a sample of `len` boxes.
pub(super) fn sample_indices(len: usize) -> impl Iterator<Item = usize> {
    (0..len).step_by(len.div_ceil(SAMPLE).max(1))
}

/// Returns the grid of two sets with these bounding boxes, or `None` if no pair is possible. `sample` has some boxes of both sets.
pub(super) fn grid_of<'a, C: Float, const D: usize>(
    bounds: [[[C; D]; 2]; 2],
    sample: impl Iterator<Item = &'a [[C; D]; 2]>,
    lens: [usize; 2],
    params: &BoxParams<C>,
) -> Option<LevelGrid<D>> {
    let reach = params.reach();
    let (mut low, mut high) = ([0.0; D], [0.0; D]);
    for axis in 0..D {
        let of = |set: usize, corner: usize| bounds[set][corner][axis].to_f64();
        // A little more than half the distance, by which boxes grow, because of rounding.
        let growth = reach / 2.0 * (1.0 + 1e-5);
        low[axis] = (f64::max(of(0, 0), of(1, 0)) - growth).next_down();
        high[axis] = (f64::min(of(0, 1), of(1, 1)) + growth).next_up();
        if low[axis] > high[axis] {
            return None;
        }
    }
    let mut sides: Vec<f64> = sample.filter_map(longest_side).collect();
    sides.sort_unstable_by(f64::total_cmp);
    // Most boxes touch at most two cells of level 0 along each axis.
    let side = sides
        .get(sides.len() * BOXES.level_0_percent / 100)
        .or(sides.last())
        .map_or(0.0, |side| side + reach);
    let extents: [f64; D] = std::array::from_fn(|axis| high[axis] - low[axis]);
    let shortest = spacing(extents, lens[0].max(lens[1])) / BOXES.cells_per_spacing;
    Some(LevelGrid::new(D, low, high, side.max(shortest), reach))
}

/// Returns the grid of two sets in host memory, or `None` if no pair is possible.
pub(super) fn grid_of_host_sets<C: Float, const D: usize>(
    sets: [&[[[C; D]; 2]]; 2],
    params: &BoxParams<C>,
) -> Option<LevelGrid<D>> {
    if sets.iter().any(|set| set.is_empty()) {
        return None;
    }
    let sample = sets.iter().flat_map(|set| sample_indices(set.len()).map(|i| &set[i]));
    grid_of(sets.map(|set| bounds(set.as_flattened())), sample, sets.map(<[_]>::len), params)
}

/// Returns boxes from their coordinates.
pub(super) fn as_boxes<C, const D: usize>(coords: &[C]) -> &[[[C; D]; 2]] {
    coords.as_chunks::<D>().0.as_chunks::<2>().0
}

/// Returns the longest side of a box, or `None` if a low coordinate is above the high one.
fn longest_side<C: Float, const D: usize>([low, high]: &[[C; D]; 2]) -> Option<f64> {
    let mut sides = low.iter().zip(high).map(|(low, high)| high.to_f64() - low.to_f64());
    sides.try_fold(0.0, |longest: f64, side: f64| (side >= 0.0).then(|| side.max(longest)))
}

/// Returns the side of a cube for each of `len` boxes that lie evenly in a region. Axes along which the region is shorter do not count.
fn spacing<const D: usize>(mut extents: [f64; D], len: usize) -> f64 {
    extents.sort_unstable_by(|a, b| b.total_cmp(a));
    let of = |axes: usize| {
        let volume: f64 = extents[..axes].iter().product();
        (volume / len.max(1) as f64).powf(1.0 / axes as f64)
    };
    (1..=D)
        .rev()
        .map(|axes| (of(axes), extents[axes - 1]))
        .find(|(spacing, shortest)| *shortest > 0.0 && spacing <= shortest)
        .map_or(0.0, |of| of.0)
}

/// A grid in the form that kernels load, independent of the number of dimensions.
pub(super) struct PackedGrid {
    pub(super) words: Vec<f64>,
    pub(super) bits: u32,
    pub(super) key_bits: u32,
}

impl PackedGrid {
    pub(super) fn new<const D: usize>(grid: &LevelGrid<D>) -> Self {
        Self { words: grid.to_words().collect(), bits: grid.bits, key_bits: grid.key_bits() }
    }

    /// Returns a grid that takes at least as much memory as any grid of boxes of `dims` dimensions.
    pub(super) fn largest(dims: usize) -> Self {
        Self { words: vec![0.0; 2 + 2 * dims], bits: 31, key_bits: 63 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thin_axes_do_not_count() {
        assert_eq!(spacing([1.0, 4.0], 100), 0.2);
        assert_eq!(spacing([100.0, 1e-9], 100), 1.0);
        assert_eq!(spacing([0.0, 100.0, 0.0], 50), 2.0);
        assert_eq!(spacing([0.0, 0.0], 50), 0.0);
    }

    #[test]
    fn inverted_boxes_have_no_side() {
        assert_eq!(longest_side(&[[0.0f32, 1.0], [2.0, 4.0]]), Some(3.0));
        assert_eq!(longest_side(&[[0.0f32, 1.0], [2.0, 0.0]]), None);
    }
}
