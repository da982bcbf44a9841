//! Variants of [`join`](crate::join): top-k distance joins with a heap for each point, or with a sort of all pairs, a list of the cells that
//! are not empty, and methods of joins of boxes.
//!
//! | variant | reproduces | chosen by |
//! |---|---|---|
//! | heaps in registers | Løvik 2020, *Top-k spatial distance join on the GPU* | [`Strategy::RegisterHeap`] |
//! | heaps in shared memory | Løvik 2020 | [`Strategy::SharedHeap`] |
//! | all pairs appended, then sorted | Løvik 2020, the baseline | [`Strategy::AppendSort`] |
//! | list of cells | Gowanlock, Karsin 2018, *GPU accelerated self-join for the distance similarity metric* | [`Lookup::Cells`] |
//! | multi-layered grid | Ward, He, Zhang, Qin 2014, *Real-time continuous intersection joins over large sets of moving objects using graphic processing units*; Løvik 2020, chapter 4 | [`BoxMethod::MultiLayerGrid`] |
//! | sort-based filter | Aghajarian, Puri, Prasad 2016, *GCMF: An efficient end-to-end spatial join system over large polygonal datasets on GPGPU platform*; Løvik 2020, chapter 4 | [`BoxMethod::SortBased`] |
//! | plain nested loop | Løvik 2020, algorithm 2 | [`BoxMethod::PlainNestedLoop`] |
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
//! # Joins of boxes
//!
//! [`BoxJoin::options`] sets the variants of a method. Counts, rows and lists of pairs, self joins and all predicates are the same as by
//! the library's methods. [`BoxJoin::count_in_phases_on`] returns time and memory of each phase. `rows_batches` always uses the library's
//! cells.
//!
//! **Multi-layered grid.** Left box `i` of `n` belongs to partition `i * N / n`. A cell has a bit for each partition; the bit is set if
//! boxes of the partition touch the cell. A right box collects the bits of its cells. The right boxes with the bit of a partition are its
//! *stream*, and each left box of the partition is compared with all of them.
//!
//! | option | as published | default | memory |
//! |---|---|---|---|
//! | [`build`](BoxMethodOptions::build) | [`GridBuild::Layers`] | [`GridBuild::Atomic`] | a cell: 8 bytes per 64 partitions; with layers 4 more per partition |
//! | [`streams`](BoxMethodOptions::streams) | [`Streams::Fixed`] | [`Streams::Exact`] | a right box: 8 bytes per 64 partitions; 4 bytes in each stream, or per partition if lengths are fixed |
//! | [`partitions`](BoxMethodOptions::partitions) | 1 to 64 | 64 | |
//! | [`cell_length`](BoxMethodOptions::cell_length) | 0.0003 to 0.1 | mean side of a sample of the left boxes | at most [`grid_bytes`](BoxMethodOptions::grid_bytes) |
//! | [`z_order`](BoxMethodOptions::z_order) | no | no | a left box: a copy of it, and 24 bytes |
//!
//! Cells are longer than asked for if the grid would exceed `grid_bytes`, half of the free memory, 2^31 cells or, with the default length,
//! 16 cells per box. A thread visits the cells of a box, and a warp those of a box with more than 64 cells.
//!
//! **Sort-based filter.** The low and high ends of all boxes on an axis are sorted together, low ends before high ends of the same value. A
//! block for each box tests the boxes of the other set that begin between its ends. Further blocks continue after 16384 ends.
//! [`SweepAxis`] chooses the axis. Memory: 52 bytes per box (`f64`: 68). Both sets together have fewer than 2^31 boxes; otherwise the result
//! is [`Error::TooManyItems`](crate::Error::TooManyItems). A self join sorts the ends of the set twice.
//!
//! **Plain nested loop.** A thread compares a left box with all right boxes, and appends each pair by an atomic operation. No memory but the
//! counts of the rows. [`BoxMethod::NestedLoop`](crate::join::BoxMethod::NestedLoop) has tiles in shared memory, and one operation per tile.
//!
//! The suites `box-join-thesis` and `box-join` measure these methods; `benches/rivals/boxes.cuh` has all three in CUDA C++.
//!
//! [`BoxJoin::count_in_phases_on`]: crate::join::BoxJoin::count_in_phases_on
//! [`BoxJoin::options`]: crate::join::BoxJoin::options
//! [`BoxMethod::MultiLayerGrid`]: crate::join::BoxMethod::MultiLayerGrid
//! [`BoxMethod::PlainNestedLoop`]: crate::join::BoxMethod::PlainNestedLoop
//! [`BoxMethod::SortBased`]: crate::join::BoxMethod::SortBased
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

pub use crate::join::boxes::BoxPhase;
pub use crate::join::boxes::options::{BoxMethodOptions, GridBuild, Streams, SweepAxis};
pub use crate::join::params::Lookup;
