//! Sorting networks over items in registers (Batcher 1968). Every index is a constant once the loops are unrolled.

use super::ranked::Ranked;

/// Compares two items and swaps them if they are out of order.
#[inline(always)]
fn exchange<R: Ranked, const N: usize>(items: &mut [R; N], first: usize, second: usize) {
    let (a, b) = (items[first], items[second]);
    let swaps = b.is_before(a);
    items[first] = if swaps { b } else { a };
    items[second] = if swaps { a } else { b };
}

/// Sorts a bitonic sequence (rising then falling, or a rotation of it); `N` is a power of two.
#[inline(always)]
pub fn merge_bitonic<R: Ranked, const N: usize>(items: &mut [R; N]) {
    let mut stride = N / 2;
    while stride > 0 {
        for i in 0..N {
            if i & stride == 0 {
                exchange(items, i, i + stride);
            }
        }
        stride /= 2;
    }
}

/// Does the last `steps` steps of [`merge_bitonic`], whose strides are below `2^steps`.
#[inline(always)]
pub fn merge_adjacent<R: Ranked, const N: usize>(items: &mut [R; N], steps: u32) {
    let mut stride = N / 2;
    while stride > 0 {
        if stride >> steps == 0 {
            for i in 0..N {
                if i & stride == 0 {
                    exchange(items, i, i + stride);
                }
            }
        }
        stride /= 2;
    }
}

/// Merges each two sorted halves of a segment of `2^stage` items.
#[inline(always)]
pub fn merge_mirrored<R: Ranked, const N: usize>(items: &mut [R; N], stage: u32) {
    for i in 0..N {
        let mirrored = i ^ ((1 << stage) - 1);
        if i < mirrored {
            exchange(items, i, mirrored);
        }
    }
    merge_adjacent(items, stage - 1);
}

/// Sorts `N` items; `N` is a power of two.
#[inline(always)]
pub fn sort<R: Ranked, const N: usize>(items: &mut [R; N]) {
    let mut size = 2;
    while size <= N {
        let mut stride = size / 2;
        while stride > 0 {
            for i in 0..N {
                if i & stride == 0 {
                    let descends = i & size != 0;
                    exchange(
                        items,
                        if descends { i + stride } else { i },
                        if descends { i } else { i + stride },
                    );
                }
            }
            stride /= 2;
        }
        size *= 2;
    }
}

/// Merges `items` into `best`, which is sorted, and keeps the first `K` of both. `items` may have any order. `K` and
/// `N` are powers of two, `N <= K`.
#[inline(always)]
pub fn keep_first<R: Ranked, const K: usize, const N: usize>(best: &mut [R; K], mut items: [R; N]) {
    sort(&mut items);
    for i in 0..N {
        let last = best[K - 1 - i];
        best[K - 1 - i] = if items[i].is_before(last) { items[i] } else { last };
    }
    merge_bitonic(best);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the 0-1 principle a network that sorts all sequences of zeros and ones sorts everything.
    #[test]
    fn zeros_and_ones_are_sorted() {
        for bits in 0..1 << 16 {
            let mut items: [u64; 16] = core::array::from_fn(|i| bits >> i & 1);
            sort(&mut items);
            assert!(items.is_sorted(), "{bits:b}");
        }
    }

    #[test]
    fn segments_are_merged() {
        for bits in 0..1 << 16 {
            let mut items: [u64; 16] = core::array::from_fn(|i| bits >> i & 1);
            for stage in 1..=4 {
                merge_mirrored(&mut items, stage);
                assert!(items.chunks(1 << stage).all(|segment| segment.is_sorted()), "{bits:b}");
            }
        }
    }

    #[test]
    fn the_first_of_both_are_kept() {
        for bits in 0..1u64 << 12 {
            let mut best: [u64; 8] = core::array::from_fn(|i| 10 * i as u64);
            let items: [u64; 4] = core::array::from_fn(|i| (bits >> (3 * i) & 7) * 11 + 1);
            let mut all: [u64; 12] = core::array::from_fn(|i| if i < 8 { best[i] } else { items[i - 8] });
            all.sort_unstable();
            keep_first(&mut best, items);
            assert_eq!(best, all[..8], "{items:?}");
        }
    }
}
