//! Orders of the cells of a grid: row-major, or along a space-filling curve.

/// Most dimensions of a grid.
pub const MAX_DIMS: usize = 6;

/// The order of the cells of a grid: it determines the order of ids in a row of a distance join, and how far apart neighbor cells are in
/// memory.
///
/// | | codes of the neighbor cells of a cell | top 16 of 1M points by cells |
/// |---|---|---|
/// | [`Linear`](Self::Linear) | runs of three | 0.364 ms |
/// | [`ZOrder`](Self::ZOrder) | single cells | 0.415 ms |
/// | [`Hilbert`](Self::Hilbert) | single cells | 0.484 ms |
///
/// The times are those of an H200 (benches/results/join-h200.md).
///
/// ```
/// use kauri_kernels::join::curve::Curve;
/// // Cell (2, 1) with 3 bits per axis.
/// assert_eq!(Curve::ZOrder.code([2, 1], 2, 3), 0b001001);
/// assert_eq!(Curve::Linear.code([2, 1], 2, 3), 0b001010);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Curve {
    /// Row-major order: consecutive cells are adjacent on the first axis.
    #[default]
    Linear = 0,
    /// Z-order: interleaves the bits of the cell coordinates (Morton 1966).
    ZOrder = 1,
    /// The Hilbert curve (Hilbert 1891): consecutive cells are adjacent. Computed as in Skilling 2004, *Programming the Hilbert curve*.
    Hilbert = 2,
}

impl Curve {
    /// Returns the curve of a number; numbers out of range give the last curve.
    #[inline(always)]
    pub const fn of(number: u32) -> Self {
        match number {
            0 => Self::Linear,
            1 => Self::ZOrder,
            _ => Self::Hilbert,
        }
    }

    /// Returns the code of a cell, its position in the order. Each of the `dims` coordinates has `bits` bits, at most [`most_bits`]. No
    /// two cells have equal codes.
    #[inline(always)]
    pub const fn code<const D: usize>(self, cell: [u32; D], dims: usize, bits: u32) -> u64 {
        match self {
            Self::Linear => {
                let (mut code, mut axis) = (0, D);
                while axis > 0 {
                    axis -= 1;
                    if axis < dims {
                        code = code << bits | cell[axis] as u64;
                    }
                }
                code
            }
            Self::ZOrder => interleaved(cell, dims, bits),
            Self::Hilbert => interleaved(transposed(cell, dims, bits), dims, bits),
        }
    }
}

/// Returns the most bits of a cell coordinate for which codes have at most 64 bits.
pub const fn most_bits(dims: usize) -> u32 {
    if dims <= 2 { 32 } else { 64 / dims as u32 }
}

/// Interleaves the bits of all coordinates from the highest on, the first axis first.
#[inline(always)]
const fn interleaved<const D: usize>(cell: [u32; D], dims: usize, bits: u32) -> u64 {
    let (mut code, mut axis) = (0, 0);
    while axis < D {
        if axis < dims {
            code = code << 1 | spread::<D>(cell[axis], dims, bits);
        }
        axis += 1;
    }
    code
}

/// Spreads the bits of a coordinate so that the bits of the other axes fit between them.
#[inline(always)]
const fn spread<const D: usize>(number: u32, dims: usize, bits: u32) -> u64 {
    let x = number as u64;
    match D {
        2 => {
            let x = (x | x << 16) & 0x0000_FFFF_0000_FFFF;
            let x = (x | x << 8) & 0x00FF_00FF_00FF_00FF;
            let x = (x | x << 4) & 0x0F0F_0F0F_0F0F_0F0F;
            let x = (x | x << 2) & 0x3333_3333_3333_3333;
            (x | x << 1) & 0x5555_5555_5555_5555
        }
        3 => {
            let x = (x | x << 32) & 0x001F_0000_0000_FFFF;
            let x = (x | x << 16) & 0x001F_0000_FF00_00FF;
            let x = (x | x << 8) & 0x100F_00F0_0F00_F00F;
            let x = (x | x << 4) & 0x10C3_0C30_C30C_30C3;
            (x | x << 2) & 0x1249_2492_4924_9249
        }
        _ => {
            let (mut spread, mut bit) = (0, 0);
            while bit < bits {
                spread |= (x >> bit & 1) << (bit * dims as u32);
                bit += 1;
            }
            spread
        }
    }
}

/// Returns the numbers whose interleaved bits are the position on the Hilbert curve (Skilling's transpose).
#[inline(always)]
const fn transposed<const D: usize>(mut cell: [u32; D], dims: usize, bits: u32) -> [u32; D] {
    // From the highest bit on, swap and mirror the lower bits, so that each part begins where the previous part ends.
    let mut bit = bits;
    while bit > 1 {
        bit -= 1;
        let below = (1 << bit) - 1;
        let mut axis = 0;
        while axis < D {
            if axis < dims {
                let is_set = cell[axis] >> bit & 1 == 1;
                let swapped = if is_set { 0 } else { (cell[0] ^ cell[axis]) & below };
                cell[0] ^= if is_set { below } else { swapped };
                cell[axis] ^= swapped;
            }
            axis += 1;
        }
    }
    // Gray code.
    let (mut last, mut axis) = (cell[0], 1);
    while axis < D {
        if axis < dims {
            cell[axis] ^= cell[axis - 1];
            last = cell[axis];
        }
        axis += 1;
    }
    let (mut flipped, mut bit) = (0, bits);
    while bit > 1 {
        bit -= 1;
        if last >> bit & 1 == 1 {
            flipped ^= (1 << bit) - 1;
        }
    }
    let mut axis = 0;
    while axis < D {
        cell[axis] ^= flipped;
        axis += 1;
    }
    cell
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    /// Returns all cells of a small grid with their codes, sorted.
    fn cells<const D: usize>(curve: Curve, bits: u32) -> Vec<(u64, [u32; D])> {
        let of_axis = 1_u64 << bits;
        let all = (0..of_axis.pow(D as u32)).map(|mut i| {
            let cell = core::array::from_fn(|_| {
                let number = i % of_axis;
                i /= of_axis;
                number as u32
            });
            (curve.code(cell, D, bits), cell)
        });
        let mut all: Vec<_> = all.collect();
        all.sort_unstable();
        all
    }

    fn every_cell_has_a_place<const D: usize>() {
        for curve in [Curve::Linear, Curve::ZOrder, Curve::Hilbert] {
            for bits in 1..=(12 / D as u32) {
                let cells = cells::<D>(curve, bits);
                assert!(cells.iter().enumerate().all(|(i, &(code, _))| code == i as u64), "{curve:?}, {D}");
                if curve == Curve::Hilbert {
                    let steps = |a: [u32; D], b: [u32; D]| -> u32 {
                        a.iter().zip(b).map(|(&a, b)| a.abs_diff(b)).sum()
                    };
                    assert!(
                        cells.windows(2).all(|pair| steps(pair[0].1, pair[1].1) == 1),
                        "{bits} bits, {D}"
                    );
                }
            }
        }
    }

    #[test]
    fn places_of_cells() {
        every_cell_has_a_place::<1>();
        every_cell_has_a_place::<2>();
        every_cell_has_a_place::<3>();
        every_cell_has_a_place::<4>();
        every_cell_has_a_place::<5>();
        every_cell_has_a_place::<6>();
    }

    #[test]
    fn axes_that_are_not_used_change_nothing() {
        for curve in [Curve::Linear, Curve::ZOrder, Curve::Hilbert] {
            for i in 0..64 {
                let (x, y, z) = (i & 3, i >> 2 & 3, i >> 4);
                assert_eq!(curve.code([x, y, z, 0, 0, 0], 3, 2), curve.code([x, y, z], 3, 2), "{curve:?}");
                assert_eq!(curve.code([x, y, 0, 0, 0, 0], 2, 2), curve.code([x, y], 2, 2), "{curve:?}");
                assert_eq!(curve.code([i, 0, 0, 0, 0, 0], 1, 6), i.into(), "{curve:?}");
            }
        }
    }

    #[test]
    fn the_first_axis_has_the_higher_bit() {
        // The example from Løvik.
        assert_eq!(Curve::ZOrder.code([2, 1], 2, 3), 0b001001);
        assert_eq!(Curve::Linear.code([2, 1], 2, 3), 0b001010);
    }

    fn the_last_cell_has_the_last_place<const D: usize>() {
        let bits = most_bits(D);
        let last = u32::MAX >> (32 - bits);
        let most = u64::MAX >> (64 - D as u32 * bits);
        for curve in [Curve::Linear, Curve::ZOrder] {
            assert_eq!(curve.code([last; D], D, bits), most, "{curve:?}, {D}");
        }
        // The curve ends in another corner of the grid.
        let corner = core::array::from_fn(|axis| if axis == 0 { last } else { 0 });
        assert_eq!(Curve::Hilbert.code::<D>(corner, D, bits), most, "{D}");
        assert_eq!(Curve::Hilbert.code::<D>([0; D], D, bits), 0, "{D}");
    }

    #[test]
    fn codes_have_up_to_64_bits() {
        the_last_cell_has_the_last_place::<1>();
        the_last_cell_has_the_last_place::<2>();
        the_last_cell_has_the_last_place::<3>();
        the_last_cell_has_the_last_place::<4>();
        the_last_cell_has_the_last_place::<5>();
        the_last_cell_has_the_last_place::<6>();
    }
}
