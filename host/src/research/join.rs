//! Variants of [`join`](crate::join): top-k distance joins with a heap for each point, or with a sort of all pairs, and a list of the cells
//! that are not empty.
//!
//! | variant | reproduces | chosen by |
//! |---|---|---|
//! | heaps in registers | Løvik 2020, *Top-k spatial distance join on the GPU* | [`Strategy::RegisterHeap`] |
//! | heaps in shared memory | Løvik 2020 | [`Strategy::SharedHeap`] |
//! | all pairs appended, then sorted | Løvik 2020, the baseline | [`Strategy::AppendSort`] |
//! | list of cells | Gowanlock, Karsin 2018, *GPU accelerated self-join for the distance similarity metric* | [`Lookup::Cells`] |
//!
//! The CPU accepts all of them and ignores them. Results do not depend on them.
//!
//! ```
//! use kauri::join::{Scored, Strategy, TopKDistanceJoin};
//! use kauri::research::join::Lookup;
//! use kauri::Device;
//! let points = [[0.0f32, 0.0], [0.5, 0.0], [9.0, 9.0]];
//! let set = Scored::new(&points, &[3u32, 5, 4])?;
//! let device = Device::cpu(); // or Device::best()?
//!
//! let heaps = TopKDistanceJoin::new(1.0, 2).strategy(Strategy::RegisterHeap).heap_bytes(1 << 30);
//! let list = TopKDistanceJoin::new(1.0, 2).strategy(Strategy::Cells).lookup(Lookup::Cells);
//! assert_eq!(heaps.run(&device, set, set)?.pairs(), list.run(&device, set, set)?.pairs());
//! # Ok::<(), kauri::Error>(())
//! ```
//!
//! # Heaps
//!
//! Each thread keeps the best `k` pairs of one right point, `k` up to 128, and writes them to a row. The rows of a batch of right points are
//! merged into the best pairs so far. As in the library's own strategies, pairs after the threshold of earlier batches are skipped, and the
//! cells have a directory. The memory of a batch is 16 bytes per right point and pair, limited by [`TopKDistanceJoin::heap_bytes`].
//!
//! | heap | entries of a thread | of a block of 64 threads |
//! |---|---|---|
//! | in registers | the next power of two from `k`, a kernel for each; 128 are in local memory | registers as compiled (`kernels/budget.txt`) |
//! | in shared memory | `k` | `768 k` bytes: 12 per thread and pair |
//!
//! # Sort of all pairs
//!
//! Every pair within the distance is appended to a list by an atomic counter: 16 bytes, and as many for the second copy of a radix sort by
//! score. Pairs of equal scores are in any order in the list, so those that may be among the best are sorted again by ids. The first list has
//! the capacity for all pairs of the neighbor cells of uniform points, within [`TopKDistanceJoin::heap_bytes`]. If it overflows, the pairs are
//! counted, and a second run has a list for exactly all of them, or returns [`Error::ResultTooLarge`]. The library's
//! [`Strategy::Filter`] counts first, and selects the best pairs instead of a sort.
//!
//! # Rivals
//!
//! The programs of `benches/rivals` are an implementation of the three strategies of the thesis in CUDA C++. They skip no pairs by a
//! threshold, and do not order pairs of equal scores.
//!
//! Milliseconds for the 16 best of two sets of uniform points within 0.001 on an H200 (benches/results/join-h200.md, suite `join`):
//!
//! | points of each set | [`Strategy::Auto`] | [`Strategy::Cells`] | registers | shared memory |
//! |---|---|---|---|---|
//! | 1M | 0.140 | 0.364 | 0.66 | 0.68 |
//! | 10M | 0.166 | 2.40 | 5.8 | 7.9 |
//! | 100M | 0.398 | 22.4 | 146 | 247 |
//!
//! [`TopKDistanceJoin::best_points`] changes a number of [`Strategy::Threshold`] that the library chooses otherwise.
//!
//! # List of cells
//!
//! A binary search finds a cell in a list of the cells that are not empty, which has the first point of each. The library searches the cell
//! codes of all points instead. The list takes 12 bytes per point of the build side, and its scratch memory. It was as fast at 19 points per
//! cell, and took 1.09 to 1.12 times as long at 1, 10 and 100 points per cell (suite `join`).
//!
//! [`Error::ResultTooLarge`]: crate::Error::ResultTooLarge
//! [`Strategy::AppendSort`]: crate::join::Strategy::AppendSort
//! [`Strategy::Auto`]: crate::join::Strategy::Auto
//! [`Strategy::Cells`]: crate::join::Strategy::Cells
//! [`Strategy::Filter`]: crate::join::Strategy::Filter
//! [`Strategy::RegisterHeap`]: crate::join::Strategy::RegisterHeap
//! [`Strategy::SharedHeap`]: crate::join::Strategy::SharedHeap
//! [`Strategy::Threshold`]: crate::join::Strategy::Threshold
//! [`TopKDistanceJoin::best_points`]: crate::join::TopKDistanceJoin::best_points
//! [`TopKDistanceJoin::heap_bytes`]: crate::join::TopKDistanceJoin::heap_bytes

pub use crate::join::params::Lookup;
