//! Top-k on the CPU; see [the GPU version](mod@crate::primitives::top_k).

use crate::primitives::top_k::Best;
use kauri_kernels::thread::ranked::{KeyRanks, RankBits, RankKey, Ranked};
use rayon::prelude::*;
use std::cmp::Ordering;

/// Returns the `k` best keys in order, and their indices; padded if there are fewer keys.
///
/// # Panics
/// Panics if there are 2^32 keys or more.
pub fn top_k<K: RankKey>(keys: &[K], k: usize, best: Best) -> (Vec<K>, Vec<u32>) {
    let (ids, ranks) =
        (u32::try_from(keys.len()).expect("fewer than 2^32 keys"), KeyRanks::new(best.order::<K>()));
    let rank = |id: u32| <K::Bits as RankBits>::Ranked::new(ranks.rank(keys[id as usize].to_bits()), id);
    let mut items: Vec<_> = (0..ids).into_par_iter().map(rank).collect();
    if k < items.len() && k > 0 {
        items.select_nth_unstable_by(k - 1, order);
    }
    items.truncate(k);
    items.par_sort_unstable_by(order);
    items.resize(k, Ranked::LAST);
    items.iter().map(|item| (K::from_bits(ranks.bits(item.rank())), item.id())).unzip()
}

/// Returns the `k` best keys of every segment, and their indices in `keys`; a row of `k` entries per segment.
///
/// # Panics
/// Panics like [`top_k`], and if the offsets do not ascend from 0 to the number of keys.
pub fn top_k_segmented<K: RankKey>(keys: &[K], offsets: &[u64], k: usize, best: Best) -> (Vec<K>, Vec<u32>) {
    let row = |ends: &[u64]| {
        let (row, mut ids) = top_k(&keys[ends[0] as usize..ends[1] as usize], k, best);
        for id in ids.iter_mut().filter(|id| **id != u32::MAX) {
            *id += ends[0] as u32;
        }
        (row, ids)
    };
    let (rows, ids): (Vec<_>, Vec<_>) = offsets.par_windows(2).map(row).unzip();
    (rows.concat(), ids.concat())
}

fn order<R: Ranked>(a: &R, b: &R) -> Ordering {
    b.is_before(*a).cmp(&a.is_before(*b))
}
