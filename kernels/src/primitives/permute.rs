//! Gather and scatter of items of 4 to 64 bytes, as pieces of 4, 8 or 16 bytes that lie side by side: the accesses to the
//! array that is in order are coalesced, and an item of the other one is moved by neighbouring lanes.

use crate::policy::{PER_ITEM_THREADS, PERMUTE_BLOCK_ITEMS};
use crate::thread::words::*;
use cuda_std::prelude::*;

/// Item i becomes item `indices[i]` of the input. Items of indices out of range keep their value.
#[kernel(family = "primitives-moves", block = PER_ITEM_THREADS, hot)]
#[instance(u32)]
#[instance(u64)]
#[instance(Bits128)]
pub unsafe fn primitives_gather<P: Words>(
    input: Slice<P>,
    indices: Slice<u32>,
    output: SliceMut<P>,
    pieces: u32,
) {
    Permute { input, indices, output, pieces: pieces as usize }.run(|indexed, in_order| (indexed, in_order))
}

/// Item `indices[i]` becomes item i of the input. Indices out of range do nothing.
#[kernel(family = "primitives-moves", block = PER_ITEM_THREADS, hot)]
#[instance(u32)]
#[instance(u64)]
#[instance(Bits128)]
pub unsafe fn primitives_scatter<P: Words>(
    input: Slice<P>,
    indices: Slice<u32>,
    output: SliceMut<P>,
    pieces: u32,
) {
    Permute { input, indices, output, pieces: pieces as usize }.run(|indexed, in_order| (in_order, indexed))
}

/// Pieces of a thread that are under way at once.
const BATCH: usize = PERMUTE_BLOCK_ITEMS / PER_ITEM_THREADS;

/// One block's items.
struct Permute<'a, P> {
    input: Slice<'a, P>,
    indices: Slice<'a, u32>,
    output: SliceMut<'a, P>,
    /// Pieces of an item.
    pieces: usize,
}

impl<P: Words> Permute<'_, P> {
    /// Moves every piece. `places` says from where and to where, given its position in the array that is indexed and in the one
    /// that is in order.
    #[inline(always)]
    unsafe fn run(self, places: impl Fn(usize, usize) -> (usize, usize)) {
        let begin = thread::block_idx_x() as usize * PERMUTE_BLOCK_ITEMS;
        let rest = self.indices.len() - begin;
        let num_items = if rest < PERMUTE_BLOCK_ITEMS { rest } else { PERMUTE_BLOCK_ITEMS };
        // Rounded up, so that the upper half of the product with a number of pieces of a block is the exact quotient.
        let inverse = (u32::MAX / self.pieces as u32).wrapping_add(1);
        let num_pieces = num_items * self.pieces;
        let mut batch = 0;
        while batch < self.pieces {
            // In three steps, so that all accesses of one are under way at once.
            let piece = |j: usize| (batch * BATCH + j) * PER_ITEM_THREADS + thread::thread_idx_x() as usize;
            let item = |j: usize| {
                let quotient = ((piece(j) as u64 * u64::from(inverse)) >> 32) as usize;
                let item = if self.pieces == 1 { piece(j) } else { quotient };
                if item < num_items { item } else { num_items - 1 }
            };
            let mut indices = [0; BATCH];
            let mut j = 0;
            while j < BATCH {
                indices[j] = computed(self.indices.load(begin + item(j)));
                j += 1;
            }
            let (mut from, mut to) = ([usize::MAX; BATCH], [usize::MAX; BATCH]);
            let mut j = 0;
            while j < BATCH {
                if piece(j) < num_pieces {
                    let within = piece(j) - item(j) * self.pieces;
                    let in_order = begin * self.pieces + piece(j);
                    (from[j], to[j]) = places(indices[j] as usize * self.pieces + within, in_order);
                }
                j += 1;
            }
            let mut moved = [P::ZEROS; BATCH];
            let mut j = 0;
            while j < BATCH {
                if from[j] < self.input.len() {
                    moved[j] = computed(self.input.load(from[j]));
                }
                j += 1;
            }
            let mut j = 0;
            while j < BATCH {
                if from[j] < self.input.len() && to[j] < self.output.len() {
                    self.output.store(to[j], moved[j]);
                }
                j += 1;
            }
            batch += 1;
        }
    }
}
