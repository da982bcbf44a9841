//! Permutation of coordinates in place, one 32-bit word of every point at a time: one kernel gathers the words, a second one writes them
//! back.

use crate::policy::PER_ITEM_THREADS;
use crate::thread::items::own_item;
use cuda_std::prelude::*;

/// Gathers word `word` of every point in the order of `ids`. A point has `num_words` words. One thread per point.
#[kernel(family = "kdtree", block = PER_ITEM_THREADS)]
pub unsafe fn kdtree_gather_word(
    points: Slice<u32>,
    ids: Slice<u32>,
    num_words: u32,
    word: u32,
    words: SliceMut<u32>,
) {
    let Some(i) = own_item(ids.len()) else { return };
    words.store(i, points.load(ids.load(i) as usize * num_words as usize + word as usize));
}

/// Writes word `word` of every point. One thread per point.
#[kernel(family = "kdtree", block = PER_ITEM_THREADS)]
pub unsafe fn kdtree_write_word(words: Slice<u32>, num_words: u32, word: u32, points: SliceMut<u32>) {
    let Some(i) = own_item(words.len()) else { return };
    points.store(i * num_words as usize + word as usize, words.load(i));
}
