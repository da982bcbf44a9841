//! The cut of the points of a part at a point, by the super key of the first column: the passes of a radix selection that finds the point,
//! and the partition.

use super::compare;
use crate::policy::{CUT_BITS, CUT_ROWS, CUT_THREADS, PER_ITEM_THREADS};
use crate::thread::coord::Float;
use crate::thread::items::{own_item, strided};
use crate::thread::radix_key::RadixKey;
use cuda_std::prelude::*;

/// Number of values of a digit.
pub const CUT_DIGITS: usize = 1 << CUT_BITS;

/// Points of a block of [`balanced_cut`](balanced_cut()).
pub const CUT_ITEMS: usize = CUT_THREADS * CUT_ROWS;

/// Shared memory of the counts of a block.
#[repr(C)]
pub struct CountSmem {
    counts: [u32; CUT_DIGITS],
}

/// Counts the points by the bits `begin..end` of the key of their first column, at most [`CUT_BITS`]. Only points count whose bits from
/// `end` on are those of `prefix`. `counts` is initialized to 0.
#[kernel(family = "balanced", block = CUT_THREADS, shared = CountSmem)]
#[instances(C = [f32, f64])]
pub unsafe fn balanced_count_digits<C: Float>(
    coords: Slice<C>,
    dims: u32,
    prefix: u64,
    begin: u32,
    end: u32,
    counts: SliceMut<u32>,
) {
    let block_counts = shared_field!(shared_mem::<CountSmem>(), counts);
    let (thread, dims) = (thread::thread_idx_x() as usize, dims as usize);
    for digit in strided(thread, CUT_DIGITS, CUT_THREADS) {
        block_counts.store(digit, 0);
    }
    thread::sync_threads();
    let first = thread::index_1d_u64() as usize;
    let stride = thread::grid_dim_x() as usize * CUT_THREADS;
    for i in strided(first, coords.len() / dims, stride) {
        let key = coords.load(i * dims).key();
        if end == C::Key::BITS || (key ^ C::Key::low(prefix)).bits(end, C::Key::BITS) == C::Key::ZERO {
            let digit = key.bits(begin, end).low_bits(0) as usize;
            block_counts.atomic_add(digit, 1, Ordering::Relaxed, Scope::Block);
        }
    }
    thread::sync_threads();
    for digit in strided(thread, CUT_DIGITS, CUT_THREADS) {
        let count = block_counts.load(digit);
        if count > 0 {
            counts.atomic_add(digit, count, Ordering::Relaxed, Scope::Device);
        }
    }
}

/// Appends the coordinates of the points whose key of the first column has the bits of `prefix` from bit `bit` on, in any order, as far as
/// there is room. `num_found` is initialized to 0.
#[kernel(family = "balanced", block = PER_ITEM_THREADS)]
#[instances(C = [f32, f64])]
pub unsafe fn balanced_candidates<C: Float>(
    coords: Slice<C>,
    dims: u32,
    prefix: u64,
    bit: u32,
    found: SliceMut<C>,
    num_found: SliceMut<u32>,
) {
    let dims = dims as usize;
    let Some(i) = own_item(coords.len() / dims) else { return };
    let differing = coords.load(i * dims).key() ^ C::Key::low(prefix);
    if bit == C::Key::BITS || differing.bits(bit, C::Key::BITS) == C::Key::ZERO {
        let to = num_found.atomic_add(0, 1, Ordering::Relaxed, Scope::Device) as usize * dims;
        if to < found.len() {
            for axis in 0..dims {
                found.store(to + axis, coords.load(i * dims + axis));
            }
        }
    }
}

/// The classes of points: before, at and after the cut.
pub const CLASSES: usize = 3;

/// Shared memory of the partition of a block's points.
#[repr(C)]
pub struct CutSmem {
    counts: [u32; CLASSES],
    begins: [u32; CLASSES],
}

/// Orders the points of a part by class: those before the point `at` by the super key of the first column, those equal to it, and those
/// after it. Inside a class the order is undefined. `nexts` is initialized to the first position of each class.
#[kernel(family = "balanced", block = CUT_THREADS, shared = CutSmem)]
#[instances(C = [f32, f64])]
pub unsafe fn balanced_cut<C: Float>(
    coords: Slice<C>,
    dims: u32,
    at: Slice<C>,
    nexts: SliceMut<u32>,
    order: SliceMut<u32>,
) {
    let smem = shared_mem::<CutSmem>();
    let (counts, begins) = (shared_field!(smem, counts), shared_field!(smem, begins));
    let (thread, lane) = (thread::thread_idx_x() as usize, warp::lane_id());
    let first = thread::block_idx_x() as usize * CUT_ITEMS + thread;
    if thread < CLASSES {
        counts.store(thread, 0);
    }
    thread::sync_threads();
    // The class of each point, and its place among those of the block.
    let mut places = [(CLASSES, 0); CUT_ROWS];
    for row in 0..CUT_ROWS {
        let i = first + row * CUT_THREADS;
        if i < order.len() {
            let point = coords.part(i * dims as usize, dims as usize);
            places[row].0 = (1 + compare(point, at, dims, 0)) as usize;
        }
        for class in 0..CLASSES {
            let is_member = places[row].0 == class;
            let members = warp::warp_vote_ballot(warp::FULL_MASK, is_member);
            let mut before = 0;
            if lane == 0 && members != 0 {
                before = counts.atomic_add(class, members.count_ones(), Ordering::Relaxed, Scope::Block);
            }
            before = warp::shuffle_idx(warp::FULL_MASK, before, 0);
            if is_member {
                places[row].1 = before + (members & warp::lane_mask_lt()).count_ones();
            }
        }
    }
    thread::sync_threads();
    if thread < CLASSES {
        begins.store(thread, nexts.atomic_add(thread, counts.load(thread), Ordering::Relaxed, Scope::Device));
    }
    thread::sync_threads();
    for row in 0..CUT_ROWS {
        let (class, place) = places[row];
        if class < CLASSES {
            order.store((begins.load(class) + place) as usize, (first + row * CUT_THREADS) as u32);
        }
    }
}
