//! Select: the items that satisfy a flag or a predicate, in input order, in one pass. Optionally also the other items,
//! which makes it a stable partition.

use crate::block::compact::{Compact, CompactSmem};
use crate::block::tile::{self, Items, THREADS, row_begin, tile_items};
use crate::policy::{SELECT_MIN_BLOCKS, SELECT_ROWS as ROWS};
use crate::thread::predicate::*;
use crate::thread::words::*;
use crate::warp::look_back::Ticket;
use core::marker::PhantomData;
use cuda_std::prelude::*;

/// Selects the items whose flag is not 0; a block per tile.
#[kernel(family = "primitives-select", block = THREADS, min_blocks = SELECT_MIN_BLOCKS, shared = CompactSmem, hot)]
#[instances(T = [u32, u64, Bits128])]
pub unsafe fn primitives_select_flagged<T: Words>(select: Select<'_, T>, flags: Slice<u8>) {
    select.run(Flagged { flags })
}

/// Selects the items that satisfy predicate `P`; `bound` has the bits of its bound. Otherwise like
/// `primitives_select_flagged`.
#[kernel(family = "primitives-select", block = THREADS, min_blocks = SELECT_MIN_BLOCKS, shared = CompactSmem, hot)]
#[instances(T = [u32, i32, u64, i64, f32, f64], P = [Below, AtLeast])]
pub unsafe fn primitives_select_if<T: Words, P: Predicate<T>>(select: Select<'_, T>, bound: u64) {
    let bound = T::from_words(split(bound));
    select.run(Holds::<T, P> { bound, predicate: PhantomData })
}

/// Predicates that have kernels.
#[diagnostic::on_unimplemented(
    message = "there is no kernel for the predicate `{Self}` of `{T}`",
    note = "add an instance to `primitives_select_if` in a kernel crate of your own, or select by flags"
)]
pub trait SelectPredicate<T: Words>: Predicate<T> {}

macro_rules! predicates {
    ($($p:ty: $($t:ty),*;)*) => { $($( impl SelectPredicate<$t> for $p {} )*)* };
}
predicates! {
    Below: u32, i32, u64, i64, f32, f64;
    AtLeast: u32, i32, u64, i64, f32, f64;
}

/// Decides which items are selected.
pub(super) trait Choice<T: Words> {
    /// Returns a bit per item of the thread; 0 beyond the input, which has `len` items.
    unsafe fn choose(&self, begin: usize, len: usize, items: &Items<T, ROWS>) -> u32;
}

/// The outputs of a selection.
#[derive(Clone, Copy, KernelArgs)]
pub struct Selected<'a, T> {
    /// The output of selected items, with capacity for all items.
    pub kept: SliceMut<'a, T>,
    /// The output of the other items, with capacity for all items; empty if they are not needed.
    pub others: SliceMut<'a, T>,
    /// One word: the number of selected items.
    pub count: SliceMut<'a, u64>,
}

/// A selection, of which each block handles one tile.
#[derive(Clone, Copy, KernelArgs)]
pub struct Select<'a, T> {
    /// The items.
    pub input: Slice<'a, T>,
    /// The outputs.
    pub to: crate::primitives::select::Selected<'a, T>,
    /// Zeros: the ticket, then the words of the look-back.
    pub words: SliceMut<'a, u64>,
}

impl<T: Words> Select<'_, T> {
    #[inline(always)]
    pub(super) unsafe fn run(self, choice: impl Choice<T>) {
        let smem = shared_mem::<CompactSmem>();
        let tile = Ticket { counter: self.words.part(0, 1) }.take(shared_field!(smem, ticket));
        let begin = tile * tile_items::<T, ROWS>();
        let items = tile::load(self.input, begin, T::ZEROS);
        let keep = choice.choose(begin, self.input.len(), &items);
        let words = self.words.part(1, self.words.len() - 1);
        let Selected { kept, others, count } = self.to;
        Compact { kept, others, count, words, smem }.run(tile, self.input.len(), items, keep)
    }
}

/// Selection by a byte per item.
struct Flagged<'a> {
    flags: Slice<'a, u8>,
}

impl<T: Words> Choice<T> for Flagged<'_> {
    #[inline(always)]
    unsafe fn choose(&self, begin: usize, len: usize, _: &Items<T, ROWS>) -> u32 {
        flag_bits::<T, ROWS>(self.flags, begin, len)
    }
}

/// Returns a bit per item of the thread in the tile at `begin`: set if its byte is not 0, and 0 from item `len` on.
#[inline(always)]
pub(super) unsafe fn flag_bits<T: Words, const ROWS: usize>(
    flags: Slice<u8>,
    begin: usize,
    len: usize,
) -> u32 {
    if begin + tile_items::<T, ROWS>() <= len && tile::is_aligned(flags.as_ptr()) {
        let first = (begin + row_begin::<T, ROWS>(0)) / T::PER_16;
        let mut bytes = [0; ROWS];
        // All loads are in flight before the first one is used.
        for row in 0..ROWS {
            let i = first + 32 * row;
            bytes[row] = match T::PER_16 {
                4 => Slice::<u32>::from_raw_parts(flags.as_ptr().cast(), len / 4).load(i),
                2 => Slice::<u16>::from_raw_parts(flags.as_ptr().cast(), len / 2).load(i).into(),
                _ => flags.load(i).into(),
            };
        }
        return tile::bits::<T, ROWS>(|row, e| bytes[row] >> (8 * e) & 0xFF != 0);
    }
    let mut set = 0;
    for row in 0..ROWS {
        let first = begin + row_begin::<T, ROWS>(row);
        for e in 0..T::PER_16 {
            if first + e < len && flags.load(first + e) != 0 {
                set |= 1 << (row * T::PER_16 + e);
            }
        }
    }
    set
}

/// Selection by a predicate.
struct Holds<T, P> {
    bound: T,
    predicate: PhantomData<P>,
}

impl<T: Words, P: Predicate<T>> Choice<T> for Holds<T, P> {
    #[inline(always)]
    unsafe fn choose(&self, begin: usize, len: usize, items: &Items<T, ROWS>) -> u32 {
        tile::bits::<T, ROWS>(|row, e| P::holds(items[row][e], self.bound))
            & tile::valid_bits::<T, ROWS>(begin, len)
    }
}
