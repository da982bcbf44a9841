//! Prefix scan in one pass, with look-back between tiles (Merrill, Garland 2016).

use crate::block::scan::exclusive_over_warps;
use crate::block::tile::{self, Items, THREADS, WARPS, tile_items};
use crate::policy::{SCAN_MIN_BLOCKS, SCAN_ROWS as ROWS};
use crate::thread::operator::*;
use crate::thread::words::{Words, computed};
use crate::warp::look_back::{Decoupled, FixedOrder, LookBack, Ticket};
use crate::warp::scan::{exclusive_of, inclusive};
use cuda_std::prelude::*;

/// Scans with operator `O` and look-back `L`; a block per tile. `words` are zeros: the ticket, then the words of the
/// look-back. Input and output may be the same memory. `exclusive` is 1 for an exclusive scan, 0 for an inclusive one.
#[kernel(family = "primitives-scan", block = THREADS, min_blocks = min_blocks::<T>(), shared = ScanSmem<T>, hot)]
#[instances(T = [u32, i32, u64, i64, f32, f64], O = [Sum, Min, Max], L = [Decoupled])]
#[instances(T = [f32, f64], O = [Sum], L = [FixedOrder])]
#[instance(Affine, Compose, Decoupled)]
pub unsafe fn primitives_scan<T: Words, O: Operator<T>, L: LookBack>(
    input: Slice<T>,
    output: SliceMut<T>,
    words: SliceMut<u64>,
    exclusive: u32,
) {
    Scan { input, output, words, exclusive: exclusive != 0 }.run::<O, L>()
}

/// Returns how many blocks a multiprocessor must hold. Four-word values need more registers.
pub const fn min_blocks<T: Words>() -> usize {
    if T::WORDS < 4 { SCAN_MIN_BLOCKS } else { SCAN_MIN_BLOCKS / 2 }
}

/// Operators whose scans and reductions have kernels.
#[diagnostic::on_unimplemented(
    message = "there is no kernel for the operator `{Self}` over `{T}`",
    note = "add an instance to `primitives_scan` and `primitives_reduce` in a kernel crate of your own"
)]
pub trait ScanOperator<T: Words>: Operator<T> {
    /// The look-back whose results have the same bits on every run.
    type LookBack: LookBack;
}

macro_rules! scan_operators {
    ($($o:ty: $l:ty, $($t:ty),*;)*) => { $($( impl ScanOperator<$t> for $o { type LookBack = $l; } )*)* };
}
scan_operators! {
    Sum: Decoupled, u32, i32, u64, i64;
    Sum: FixedOrder, f32, f64;
    Min: Decoupled, u32, i32, u64, i64, f32, f64;
    Max: Decoupled, u32, i32, u64, i64, f32, f64;
    Compose: Decoupled, Affine;
}

/// Shared memory of a scan.
#[repr(C)]
pub struct ScanSmem<T> {
    warp_sums: [T; WARPS],
    before: [T; 1],
    ticket: [u64; 1],
}

/// The scan of one tile.
struct Scan<'a, T> {
    input: Slice<'a, T>,
    output: SliceMut<'a, T>,
    words: SliceMut<'a, u64>,
    exclusive: bool,
}

impl<T: Words> Scan<'_, T> {
    #[inline(always)]
    unsafe fn run<O: Operator<T>, L: LookBack>(self) {
        let smem = shared_mem::<ScanSmem<T>>();
        let (before, ticket) = (shared_field!(smem, before), shared_field!(smem, ticket));
        let tile = Ticket { counter: self.words.part(0, 1) }.take(ticket);
        let items = tile::load(self.input, tile * tile_items::<T, ROWS>(), O::IDENTITY);

        let (mut items, warp_sum) = self.scan_warp::<O>(items);
        let (warps_before, sum) = exclusive_over_warps::<T, O>(warp_sum, shared_field!(smem, warp_sums));
        if thread::thread_idx_x() < 32 {
            let words = self.words.part(1, self.words.len() - 1);
            let num_tiles = thread::grid_dim_x() as usize;
            if warp::lane_id() == 0 {
                L::publish(words, num_tiles, tile, sum);
            }
            let tiles_before = L::exclusive_prefix::<T, O>(words, num_tiles, tile, sum);
            if warp::lane_id() == 0 {
                before.store(0, tiles_before);
            }
        }
        thread::sync_threads();

        // Reloaded: the items leave few registers for other values.
        let begin = ticket.load(0) as usize * tile_items::<T, ROWS>();
        let before = O::combine(before.load(0), warps_before);
        for row in 0..ROWS {
            for e in 0..T::PER_16 {
                items[row][e] = O::combine(before, items[row][e]);
            }
        }
        tile::store(self.output, begin, items);
    }

    /// Scans the warp's items and returns their sum. The scan replaces the items, so that few registers are in use
    /// during the look-back.
    #[inline(always)]
    unsafe fn scan_warp<O: Operator<T>>(&self, items: Items<T, ROWS>) -> (Items<T, ROWS>, T) {
        let mut scanned = items;
        let mut warp_sum = O::IDENTITY;
        for row in 0..ROWS {
            let mut sum = items[row][0];
            for e in 1..T::PER_16 {
                sum = O::combine(sum, items[row][e]);
            }
            let (lanes_before, row_sum) = exclusive_of::<T, O>(inclusive::<T, O>(sum));
            let mut sum = O::combine(warp_sum, lanes_before);
            for e in 0..T::PER_16 {
                let with_item = computed(O::combine(sum, items[row][e]));
                scanned[row][e] = computed(if self.exclusive { sum } else { with_item });
                sum = with_item;
            }
            warp_sum = O::combine(warp_sum, row_sum);
        }
        (scanned, warp_sum)
    }
}
