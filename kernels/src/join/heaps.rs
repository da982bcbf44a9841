//! The best pairs of each probe point in a heap of its thread, in registers or in shared memory (Løvik 2020). The probe points are joined
//! in batches, and pairs after the threshold of the previous batches are skipped.

use super::best::{pair, state};
use super::neighbor_cells::{NeighborCells, ProbePoint};
use super::score::Scoring;
use crate::thread::coord::Float;
use crate::thread::ranked::Ranked;
use crate::thread::words::Bits128;
use core::cell::Cell;
use cuda_std::prelude::*;
use cuda_std::shared::dynamic_shared_slice;

/// Threads of a block, as in Løvik's implementation.
pub const HEAP_THREADS: usize = 64;
/// Blocks per multiprocessor, as in Løvik's implementation with 64 pairs.
const HEAP_MIN_BLOCKS: usize = 4;
/// Most pairs of a heap. Registers hold up to 64; 128 are in local memory. Shared memory of every architecture has space for 128.
pub const MAX_K: usize = 128;

/// Returns the bytes of shared memory for the heaps of a block: 12 per thread and pair.
pub const fn heap_bytes(k: usize) -> usize {
    HEAP_THREADS * k * (size_of::<u64>() + size_of::<u32>())
}

/// The arguments of the kernels with heaps.
#[derive(Clone, Copy, KernelArgs)]
pub struct HeapArgs<'a, C> {
    /// The two sides.
    pub sides: crate::join::neighbor_cells::JoinSides<'a, C>,
    /// The ranks of their scores.
    pub ranks: crate::join::score::PairRanks<'a>,
    /// The first probe point of the batch.
    pub first: u64,
    /// The state of the best pairs, with the threshold.
    pub state: Slice<'a, u64>,
    /// A row for each probe point of the batch.
    pub pairs: SliceMut<'a, crate::thread::words::Bits128>,
}

/// Writes the best `K` pairs of each probe point from `first` on, in no order; a thread per point.
#[kernel(family = "research-join", block = HEAP_THREADS, min_blocks = HEAP_MIN_BLOCKS, hot)]
#[instances(C = [f32, f64], D = [2, 3, 6], K = [1, 2, 4, 8, 16, 32, 64, 128])]
pub unsafe fn join_in_registers<C: Float, const D: usize, const K: usize>(args: HeapArgs<'_, C>) {
    write_best_pairs::<C, D, _>(args, K, || Registers::<K>::EMPTY);
}

/// Writes the best `k` pairs of each probe point from `first` on, in no order; a thread per point. The launch has
/// [`heap_bytes`]`(k)` bytes of shared memory.
#[kernel(family = "research-join", block = HEAP_THREADS, min_blocks = HEAP_MIN_BLOCKS, shared = [u8; heap_bytes(MAX_K)], hot)]
#[instances(C = [f32, f64], D = [2, 3, 6])]
pub unsafe fn join_in_shared<C: Float, const D: usize>(args: HeapArgs<'_, C>, k: u32) {
    write_best_pairs::<C, D, _>(args, k as usize, || Heap::new(k as usize));
}

/// The best entries of a thread. An entry is the complement of a score's rank, and a build id.
trait BestEntries {
    /// Adds an entry if it is among the best.
    unsafe fn offer(&mut self, entry: (u64, u32));

    /// Returns the key of the worst entry, or the greatest key while there is capacity for more entries.
    unsafe fn worst_key(&self) -> u64;

    /// Returns an entry; the id of an empty entry is `u32::MAX`.
    unsafe fn entry(&self, i: usize) -> (u64, u32);
}

/// Finds the best `k` pairs of the probe point of this thread, and writes them to its row.
#[inline(always)]
unsafe fn write_best_pairs<C: Float, const D: usize, B: BestEntries>(
    HeapArgs { sides, ranks, first, state, pairs }: HeapArgs<'_, C>,
    k: usize,
    new: impl FnOnce() -> B,
) {
    let row = thread::index_1d_u64() as usize;
    if row >= pairs.len() / k {
        return;
    }
    let (i, mut best) = (first as usize + row, new());
    let cells = sides.neighbor_cells::<D>();
    let scoring = ranks.scoring.scoring();
    let probe_id = sides.probe_ids.load(i);
    if let Some(probe) = sides.probe_point(&cells, i) {
        let (probe_rank, worst) = (ranks.probe.load(i), state.load(state::THRESHOLD));
        let first = Cell::new(least_left(&scoring, worst, probe_rank));
        let visit = |position, id| {
            let key = !scoring.rank(ranks.build.load(position), probe_rank);
            if key <= worst {
                best.offer((key, id));
                let own_worst = best.worst_key();
                first.set(least_left(
                    &scoring,
                    if own_worst < worst { own_worst } else { worst },
                    probe_rank,
                ));
            }
        };
        visit_neighbors(&cells, &probe, &scoring, ranks.build, &first, visit);
    }
    for entry in 0..k {
        let (key, id) = best.entry(entry);
        let pair = if id == u32::MAX { Bits128::LAST } else { pair(!key, id, probe_id) };
        pairs.store(row * k + entry, pair);
    }
}

/// Visits the near points of the neighbor cells. If the score function has a least sufficient rank, only points of at least this rank are
/// tested for distance.
#[inline(always)]
unsafe fn visit_neighbors<C: Float, const D: usize>(
    cells: &NeighborCells<'_, C, D>,
    probe: &ProbePoint<C, D>,
    scoring: &Scoring,
    ranks: Slice<'_, u64>,
    first: &Cell<u64>,
    visit: impl FnMut(usize, u32),
) {
    let has_closed_form = scoring.has_closed_form();
    let suffices = |position| !has_closed_form | (ranks.load(position) >= first.get());
    cells.for_each_match_where(probe, (0, usize::MAX), || true, suffices, visit);
}

/// Returns the least build rank that is not worse than the worst entry of a heap, given by its key.
#[inline(always)]
fn least_left(scoring: &Scoring, worst: u64, right: u64) -> u64 {
    if !scoring.has_closed_form() {
        return 0;
    }
    match scoring.left_ranks_reaching(!worst, right, [0, u64::MAX]) {
        Some((first, _)) => first,
        None => u64::MAX,
    }
}

/// True if entry `a` is better than entry `b`.
#[inline(always)]
fn is_before(a: (u64, u32), b: (u64, u32)) -> bool {
    (a.0 < b.0) | ((a.0 == b.0) & (a.1 < b.1))
}

/// Entries in registers, the worst first; empty entries count as the worst.
struct Registers<const K: usize> {
    keys: [u64; K],
    ids: [u32; K],
}

impl<const K: usize> Registers<K> {
    const EMPTY: Self = Self { keys: [u64::MAX; K], ids: [u32::MAX; K] };
}

impl<const K: usize> BestEntries for Registers<K> {
    #[inline(always)]
    unsafe fn offer(&mut self, (key, id): (u64, u32)) {
        if !is_before((key, id), (self.keys[0], self.ids[0])) {
            return;
        }
        // The new entry replaces the worst one and moves to its sorted position: entries worse than it move forward by one. Each entry
        // decides from itself and the next one what it becomes, so that all indices are constants.
        for entry in 0..K {
            if entry + 1 < K && is_before((key, id), (self.keys[entry + 1], self.ids[entry + 1])) {
                (self.keys[entry], self.ids[entry]) = (self.keys[entry + 1], self.ids[entry + 1]);
            } else if is_before((key, id), (self.keys[entry], self.ids[entry])) {
                (self.keys[entry], self.ids[entry]) = (key, id);
            }
        }
    }

    #[inline(always)]
    unsafe fn worst_key(&self) -> u64 {
        self.keys[0]
    }

    #[inline(always)]
    unsafe fn entry(&self, i: usize) -> (u64, u32) {
        (self.keys[i], self.ids[i])
    }
}

/// A binary heap of a thread in shared memory, the worst entry at its root. Entry `e` of thread `t` is at `e * HEAP_THREADS + t`, so that
/// each lane has its bank.
struct Heap<'a> {
    keys: SharedSlice<'a, u64>,
    ids: SharedSlice<'a, u32>,
    thread: usize,
    len: usize,
    k: usize,
}

impl Heap<'_> {
    #[inline(always)]
    unsafe fn new(k: usize) -> Self {
        let (thread, len) = (thread::thread_idx_x() as usize, HEAP_THREADS * k);
        // The ids follow the keys.
        let (keys, words) = (dynamic_shared_slice::<u64>(), dynamic_shared_slice::<u32>());
        Self { keys: keys.part(0, len), ids: words.part(2 * len, len), thread, len: 0, k }
    }

    #[inline(always)]
    unsafe fn load(&self, i: usize) -> (u64, u32) {
        let at = i * HEAP_THREADS + self.thread;
        (self.keys.load(at), self.ids.load(at))
    }

    #[inline(always)]
    unsafe fn store(&self, i: usize, (key, id): (u64, u32)) {
        let at = i * HEAP_THREADS + self.thread;
        self.keys.store(at, key);
        self.ids.store(at, id);
    }
}

impl BestEntries for Heap<'_> {
    #[inline(always)]
    unsafe fn offer(&mut self, entry: (u64, u32)) {
        if self.len < self.k {
            // Sift up from the end.
            let mut i = self.len;
            self.len += 1;
            while i > 0 {
                let above = self.load((i - 1) / 2);
                if is_before(entry, above) {
                    break;
                }
                self.store(i, above);
                i = (i - 1) / 2;
            }
            self.store(i, entry);
        } else if is_before(entry, self.load(0)) {
            // Sift down from the root.
            let mut i = 0;
            loop {
                let mut child = 2 * i + 1;
                if child >= self.len {
                    break;
                }
                let mut below = self.load(child);
                if child + 1 < self.len {
                    let other = self.load(child + 1);
                    if is_before(below, other) {
                        (child, below) = (child + 1, other);
                    }
                }
                if is_before(below, entry) {
                    break;
                }
                self.store(i, below);
                i = child;
            }
            self.store(i, entry);
        }
    }

    #[inline(always)]
    unsafe fn worst_key(&self) -> u64 {
        if self.len == self.k { self.load(0).0 } else { u64::MAX }
    }

    #[inline(always)]
    unsafe fn entry(&self, i: usize) -> (u64, u32) {
        if i < self.len { self.load(i) } else { (u64::MAX, u32::MAX) }
    }
}
