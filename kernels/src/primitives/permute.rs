//! Gather and scatter of items of 4 to 64 bytes, split into pieces of 4, 8 or 16 bytes: accesses to the array in order
//! are coalesced, and adjacent lanes move the pieces of an item of the indexed array.

use crate::policy::{PER_ITEM_THREADS, PERMUTE_BLOCK_ITEMS};
use crate::thread::divisor::Divisor;
use crate::thread::words::*;
use cuda_std::prelude::*;

/// Sets item i to item `indices[i]` of the input. Items with an index out of range keep their value. The number of pieces
/// per item is `PIECES`, or that of the argument if `PIECES` is 0.
#[kernel(family = "primitives-moves", block = PER_ITEM_THREADS, hot)]
#[instances(P = [u32, u64, Bits128], PIECES = [1, 0])]
#[instance(u32, 3)]
pub unsafe fn primitives_gather<P: Words, const PIECES: u32>(permute: Permute<'_, P>) {
    permute.with_pieces::<PIECES>().run(|indexed, in_order| (indexed, in_order))
}

/// Sets item `indices[i]` of the output to item i of the input. Indices out of range are ignored. Pieces as in
/// `primitives_gather`.
#[kernel(family = "primitives-moves", block = PER_ITEM_THREADS, hot)]
#[instances(P = [u32, u64, Bits128], PIECES = [1, 0])]
#[instance(u32, 3)]
pub unsafe fn primitives_scatter<P: Words, const PIECES: u32>(permute: Permute<'_, P>) {
    permute.with_pieces::<PIECES>().run(|indexed, in_order| (in_order, indexed))
}

/// Pieces that a thread moves at once.
const BATCH: usize = PERMUTE_BLOCK_ITEMS / PER_ITEM_THREADS;

/// A permutation, of which each block handles a part.
#[derive(Clone, Copy, KernelArgs)]
pub struct Permute<'a, P> {
    /// The pieces of the items.
    pub input: Slice<'a, P>,
    /// An index per item of the array that is in order.
    pub indices: Slice<'a, u32>,
    /// The pieces of the output.
    pub output: SliceMut<'a, P>,
    /// The pieces of an item.
    pub pieces: u32,
    /// The items of the indexed array.
    pub num_indexed: u64,
}

impl<P: Words> Permute<'_, P> {
    /// Makes the number of pieces a constant, unless it is 0.
    #[inline(always)]
    fn with_pieces<const PIECES: u32>(self) -> Self {
        Self { pieces: if PIECES == 0 { self.pieces } else { PIECES }, ..self }
    }

    /// Moves every piece. `addresses` returns the source and target of a piece, given its index in the indexed array
    /// and in the array in order.
    #[inline(always)]
    unsafe fn run(self, addresses: impl Fn(usize, usize) -> (usize, usize)) {
        let begin = thread::block_idx_x() as usize * PERMUTE_BLOCK_ITEMS;
        let rest = self.indices.len() - begin;
        if rest >= PERMUTE_BLOCK_ITEMS {
            self.run_block::<true>(begin, PERMUTE_BLOCK_ITEMS as u32, addresses);
        } else {
            self.run_block::<false>(begin, rest as u32, addresses);
        }
    }

    /// Indices within the block are 32-bit: integer arithmetic bounds the throughput of small items that are in order.
    #[inline(always)]
    unsafe fn run_block<const IS_FULL: bool>(
        &self,
        begin: usize,
        num_items: u32,
        addresses: impl Fn(usize, usize) -> (usize, usize),
    ) {
        let pieces = self.pieces;
        let divisor = Divisor::new(pieces);
        let num_pieces = num_items * pieces;
        let indices = self.indices.part(begin, num_items as usize);
        let mut batch = 0;
        while batch < pieces {
            // In three steps, so that all accesses of a step are in flight at once.
            let first = batch * PERMUTE_BLOCK_ITEMS as u32 + thread::thread_idx_x();
            let piece = |j: usize| first + (j * PER_ITEM_THREADS) as u32;
            let item = |j: usize| divisor.quotient(piece(j));
            let mut index = [u32::MAX; BATCH];
            for j in 0..BATCH {
                if IS_FULL || piece(j) < num_pieces {
                    index[j] = computed(indices.load(item(j) as usize));
                }
            }
            let is_moved =
                |j: usize| (IS_FULL || piece(j) < num_pieces) && u64::from(index[j]) < self.num_indexed;
            let address = |j: usize| {
                let within = (piece(j) - item(j) * pieces) as usize;
                let in_order = begin * pieces as usize + piece(j) as usize;
                addresses(index[j] as usize * pieces as usize + within, in_order)
            };
            let mut moved = [P::ZEROS; BATCH];
            for j in 0..BATCH {
                if is_moved(j) {
                    moved[j] = computed(self.input.load(address(j).0));
                }
            }
            for j in 0..BATCH {
                if is_moved(j) {
                    self.output.store(address(j).1, moved[j]);
                }
            }
            batch += 1;
        }
    }
}
