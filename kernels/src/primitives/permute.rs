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
    Permute { indices, pieces }.for_each_piece(input.len(), |indexed, in_order| {
        output.store(in_order, input.load(indexed));
    })
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
    Permute { indices, pieces }.for_each_piece(output.len(), |indexed, in_order| {
        output.store(indexed, input.load(in_order));
    })
}

/// One block's items.
struct Permute<'a> {
    indices: Slice<'a, u32>,
    /// Pieces of an item.
    pieces: u32,
}

impl Permute<'_> {
    /// Calls `visit` with the position of each piece in the array that is indexed, of `len` pieces, and in the other one.
    #[inline(always)]
    unsafe fn for_each_piece(&self, len: usize, visit: impl Fn(usize, usize)) {
        let begin = thread::block_idx_x() as usize * PERMUTE_BLOCK_ITEMS;
        let rest = self.indices.len() - begin;
        let num_items = if rest < PERMUTE_BLOCK_ITEMS { rest } else { PERMUTE_BLOCK_ITEMS } as u32;
        let mut piece = thread::thread_idx_x();
        while piece < num_items * self.pieces {
            // A division that most launches do without.
            let item = if self.pieces == 1 { piece } else { piece / self.pieces };
            let within = (piece - item * self.pieces) as usize;
            let i = begin + item as usize;
            let indexed = self.indices.load(i) as usize * self.pieces as usize + within;
            if indexed < len {
                visit(indexed, i * self.pieces as usize + within);
            }
            piece += PER_ITEM_THREADS as u32;
        }
    }
}
