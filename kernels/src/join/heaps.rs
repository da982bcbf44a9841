//! The best pairs of each right point in a heap of its thread, in registers or in shared memory (Løvik 2020). Of a later batch of right
//! points pairs that are worse than the best of those before are left out.

use super::around::{Around, CellSets, Right};
use super::best::{pair, state};
use super::score::{PairRanks, Scoring};
use crate::thread::coord::Coord;
use crate::thread::ranked::Ranked;
use crate::thread::words::Bits128;
use core::cell::Cell;
use cuda_std::prelude::*;

/// Threads of a block, as there.
pub const HEAP_THREADS: usize = 64;
/// Blocks that a multiprocessor is to hold: more find no room for their heaps.
const HEAP_MIN_BLOCKS: usize = 4;
/// Most pairs of a heap in shared memory.
pub const MOST_SHARED: usize = 64;
/// Most pairs of a heap in registers.
pub const MOST_REGISTERS: usize = 64;

/// Writes the best `K` pairs of each right point from `first` on, in no order; a thread each.
#[kernel(family = "join-heaps", block = HEAP_THREADS, min_blocks = HEAP_MIN_BLOCKS, hot)]
#[instances(C = [f32, f64], D = [2, 3, 6], K = [16, 64])]
pub unsafe fn join_in_registers<C: Coord, const D: usize, const K: usize>(
    sets: CellSets<'_, C>,
    ranks: PairRanks<'_>,
    first: u64,
    state: Slice<u64>,
    pairs: SliceMut<Bits128>,
) {
    let (row, mut best) = (thread::index_1d_u64() as usize, Registers::<K>::EMPTY);
    if row >= pairs.len() / K {
        return;
    }
    let i = first as usize + row;
    let around = sets.around::<D>();
    let scoring = ranks.scoring.scoring();
    let right_id = sets.right_ids.load(i);
    if let Some(right) = sets.right(&around, i) {
        let (right_rank, worst) = (ranks.right.load(i), state.load(state::LIMIT));
        let first = Cell::new(least_left(&scoring, worst, right_rank));
        let take = |place, id| {
            let key = !scoring.rank(ranks.left.load(place), right_rank);
            if key <= worst {
                best.offer(key, id);
                let worst = if best.keys[0] < worst { best.keys[0] } else { worst };
                first.set(least_left(&scoring, worst, right_rank));
            }
        };
        look(&around, &right, &scoring, ranks.left, &first, take);
    }
    let mut entry = 0;
    while entry < K {
        pairs.store(row * K + entry, as_pair(best.keys[entry], best.ids[entry], right_id));
        entry += 1;
    }
}

/// Writes the best `k` pairs of each right point from `first` on, in no order; a thread each.
#[kernel(family = "join-heaps", block = HEAP_THREADS, min_blocks = HEAP_MIN_BLOCKS, shared = HeapSmem, hot)]
#[instances(C = [f32, f64], D = [2, 3, 6])]
pub unsafe fn join_in_shared<C: Coord, const D: usize>(
    sets: CellSets<'_, C>,
    ranks: PairRanks<'_>,
    first: u64,
    k: u32,
    state: Slice<u64>,
    pairs: SliceMut<Bits128>,
) {
    let (row, k) = (thread::index_1d_u64() as usize, k as usize);
    if row >= pairs.len() / k {
        return;
    }
    let i = first as usize + row;
    let around = sets.around::<D>();
    let scoring = ranks.scoring.scoring();
    let right_id = sets.right_ids.load(i);
    let mut heap = Heap::new(shared_mem(), k);
    if let Some(right) = sets.right(&around, i) {
        let (right_rank, worst) = (ranks.right.load(i), state.load(state::LIMIT));
        let first = Cell::new(least_left(&scoring, worst, right_rank));
        let take = |place, id| {
            let key = !scoring.rank(ranks.left.load(place), right_rank);
            if key <= worst {
                heap.offer((key, id));
                if heap.len == k {
                    first.set(least_left(&scoring, heap.entry(0).0, right_rank));
                }
            }
        };
        look(&around, &right, &scoring, ranks.left, &first, take);
    }
    let mut entry = 0;
    while entry < k {
        let (key, id) = if entry < heap.len { heap.entry(entry) } else { (u64::MAX, u32::MAX) };
        pairs.store(row * k + entry, as_pair(key, id, right_id));
        entry += 1;
    }
}

/// Goes through the left points around a right one: where it is known which scores suffice, distances are of those alone.
#[inline(always)]
unsafe fn look<C: Coord, const D: usize>(
    around: &Around<'_, C, D>,
    right: &Right<C, D>,
    scoring: &Scoring,
    ranks: Slice<'_, u64>,
    first: &Cell<u64>,
    take: impl FnMut(usize, u32),
) {
    let is_quick = scoring.is_quick();
    let suffices = |place| !is_quick | (ranks.load(place) >= first.get());
    around.each_wanted(right, (0, usize::MAX), || true, suffices, take);
}

/// The least left rank that is not worse than the worst of a heap, whose key is given.
#[inline(always)]
fn least_left(scoring: &Scoring, worst: u64, right: u64) -> u64 {
    if !scoring.is_quick() {
        return 0;
    }
    match scoring.lefts_for(!worst, right, [0, u64::MAX]) {
        Some((first, _)) => first,
        None => u64::MAX,
    }
}

/// An entry as a pair; [`LAST`](Ranked::LAST) if there is none.
#[inline(always)]
fn as_pair(key: u64, id: u32, right: u32) -> Bits128 {
    if id == u32::MAX { Bits128::LAST } else { pair(!key, id, right) }
}

/// True if the first entry, the complement of a score's rank and a left id, is the better one.
#[inline(always)]
fn is_before(a: (u64, u32), b: (u64, u32)) -> bool {
    (a.0 < b.0) | ((a.0 == b.0) & (a.1 < b.1))
}

/// Entries in registers, the worst first; those without a point are the worst.
struct Registers<const K: usize> {
    keys: [u64; K],
    ids: [u32; K],
}

impl<const K: usize> Registers<K> {
    const EMPTY: Self = Self { keys: [u64::MAX; K], ids: [u32::MAX; K] };

    /// Takes the place of the worst if it is better, and goes on to its own.
    #[inline(always)]
    fn offer(&mut self, key: u64, id: u32) {
        if !is_before((key, id), (self.keys[0], self.ids[0])) {
            return;
        }
        // Every entry knows by itself what it becomes, so that all indices are known to the compiler: those before the new one's
        // place move one on.
        let mut entry = 0;
        while entry < K {
            if entry + 1 < K && is_before((key, id), (self.keys[entry + 1], self.ids[entry + 1])) {
                (self.keys[entry], self.ids[entry]) = (self.keys[entry + 1], self.ids[entry + 1]);
            } else if is_before((key, id), (self.keys[entry], self.ids[entry])) {
                (self.keys[entry], self.ids[entry]) = (key, id);
            }
            entry += 1;
        }
    }
}

/// Shared memory of heaps: entry `e` of thread `t` at `e` times the number of threads and `t`, so that each lane has a bank.
#[repr(C, align(16))]
pub struct HeapSmem {
    keys: [u64; HEAP_THREADS * MOST_SHARED],
    ids: [u32; HEAP_THREADS * MOST_SHARED],
}

/// A binary heap of a thread, the worst entry at its root.
struct Heap<'a> {
    keys: SharedSlice<'a, u64>,
    ids: SharedSlice<'a, u32>,
    thread: usize,
    len: usize,
    k: usize,
}

impl Heap<'_> {
    #[inline(always)]
    fn new(smem: *mut HeapSmem, k: usize) -> Self {
        let thread = thread::thread_idx_x() as usize;
        Self { keys: shared_field!(smem, keys), ids: shared_field!(smem, ids), thread, len: 0, k }
    }

    #[inline(always)]
    unsafe fn entry(&self, i: usize) -> (u64, u32) {
        let at = i * HEAP_THREADS + self.thread;
        (self.keys.load(at), self.ids.load(at))
    }

    #[inline(always)]
    unsafe fn set(&self, i: usize, (key, id): (u64, u32)) {
        let at = i * HEAP_THREADS + self.thread;
        self.keys.store(at, key);
        self.ids.store(at, id);
    }

    #[inline(always)]
    unsafe fn offer(&mut self, entry: (u64, u32)) {
        if self.len < self.k {
            // Up from the end.
            let mut i = self.len;
            self.len += 1;
            while i > 0 {
                let above = self.entry((i - 1) / 2);
                if is_before(entry, above) {
                    break;
                }
                self.set(i, above);
                i = (i - 1) / 2;
            }
            self.set(i, entry);
        } else if is_before(entry, self.entry(0)) {
            // Down from the root.
            let mut i = 0;
            loop {
                let mut child = 2 * i + 1;
                if child >= self.len {
                    break;
                }
                let mut below = self.entry(child);
                if child + 1 < self.len {
                    let other = self.entry(child + 1);
                    if is_before(below, other) {
                        (child, below) = (child + 1, other);
                    }
                }
                if is_before(below, entry) {
                    break;
                }
                self.set(i, below);
                i = child;
            }
            self.set(i, entry);
        }
    }
}
