//! The order of items by the codes of their cells, on the CPU.

use crate::error::Result;
use crate::memory;
use rayon::prelude::*;

/// Bits of a digit.
const DIGIT: u32 = 11;
/// More items are sorted by comparison on all threads.
const MAX_COUNTED: usize = 1 << 20;

/// Sorts pairs of a code and an id, whose ids ascend. The lowest `bits` bits of the codes have the order of the codes. Takes as much memory
/// again.
pub(in crate::join) fn sort_by_code(pairs: &mut Vec<(u64, u32)>, bits: u32) -> Result<()> {
    if pairs.len() > MAX_COUNTED {
        pairs.par_sort_unstable();
        return Ok(());
    }
    let mut to = memory::copy(pairs, "cells in order")?;
    for shift in (0..bits.min(u64::BITS)).step_by(DIGIT as usize) {
        let digit = |code: u64| (code >> shift) as usize & ((1 << DIGIT) - 1);
        let mut indices = [0_u32; 1 << DIGIT];
        for &(code, _) in &*pairs {
            indices[digit(code)] += 1;
        }
        let mut begin = 0;
        for index in &mut indices {
            (begin, *index) = (begin + *index, begin);
        }
        for &pair in &*pairs {
            let index = &mut indices[digit(pair.0)];
            to[*index as usize] = pair;
            *index += 1;
        }
        std::mem::swap(pairs, &mut to);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kauri_kernels::primitives::generate::splitmix64;

    #[test]
    fn codes_ascend_and_ids_break_ties() {
        for bits in [1, 5, 11, 12, 30, 33, 63, 64] {
            let code = |i: u32| splitmix64(u64::from(i / 2)) >> (64 - bits);
            let mut pairs: Vec<_> = (0..500).map(|i| (code(i), i)).collect();
            let mut expected = pairs.clone();
            expected.sort_unstable();
            sort_by_code(&mut pairs, bits).unwrap();
            assert_eq!(pairs, expected, "{bits} bits");
        }
    }
}
