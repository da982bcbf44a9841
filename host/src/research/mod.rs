//! The algorithms of published works as their papers have them, beside the algorithms that the library uses.
//!
//! Every variant returns what the library's own algorithm returns, to the last bit; only time and memory differ. They are
//! here to be compared with, and to be read with the paper at hand. The feature `research` adds them, with PTX families of
//! their own, to the options of builds, queries and joins. Without the option of the third column a call runs the library's
//! own algorithm, also with the feature. Each module has the titles, the sections that are reproduced, and the costs.
//!
//! | module | reproduces | chosen by | suites with its rows |
//! |---|---|---|---|
//! | [`kdtree`] | left-balanced k-d trees by tags (Wald 2022) | `KdTreeOptions::algorithm` | `kdtree`, `kdtree-wald` |
//! | [`balanced`] | balanced k-d trees by merge sorts and partitions of runs (Robinson), on the CPU with a number of threads (Brown 2015) | `BalancedOptions::algorithm`, `warps`, `direct_stores`, `sequential_compactions` | `kdtree-robinson` |
//! | [`quadtree`] | quadtrees level by level, upper levels by the CPU (Gluck 2014) | `QuadtreeOptions::algorithm`, `out_of_core` | `quadtree`, `quadtree-host`, `quadtree-gluck` |
//! | [`query`] | traversals of left-balanced trees node by node (Wald 2022) | `QueryOptions::traversal` | `kdtree` |
//! | [`join`] | top-k joins with heaps (Løvik 2020), joins with a list of cells (Gowanlock, Karsin 2018), joins of boxes (Løvik 2020, with Ward et al. 2014 and Aghajarian et al. 2016) | `TopKDistanceJoin::strategy`, `lookup`, `BoxJoin::method`, `options` | `join`, `join-thesis`, `box-join-thesis` |
//! | [`sah`] | the stages of SAH builds (Zhou et al. 2008; Chang, Seo, Ihm 2015), rays without a stack (Foley, Sugerman 2005) | `SahOptions::stages`, `RayOptions::traversal` | `sah`, `sah-chang` |
//! | [`primitives`] | selection in two passes (Billeter, Olsson, Assarsson 2009), merge sort of points (Brown 2015) | a function of its own | `primitives` |
//!
//! The variants are written in Rust on the library's data structures, so their times are not those of the authors' programs.
//! The programs of `benches/rivals` are separate: implementations of Robinson's builder, Wald 2022 and Løvik
//! 2020 in CUDA C++, to compare with. `docs/experiments.md` has what each work published, with the suite that repeats it;
//! `benches/results/README.md` says how the rows were measured, and how to measure them again.

pub mod balanced;
pub mod join;
pub mod kdtree;
pub mod primitives;
pub mod quadtree;
pub mod query;
pub mod sah;
