//! The algorithms of published works as their papers have them, beside the algorithms that the library uses.
//!
//! Every variant returns what the library's own algorithm returns, to the last bit; only time and memory differ. They are
//! here to be compared with, and to be read with the paper at hand. The feature `research` adds them, with PTX families of
//! their own, to the options of builds, queries and joins:
//!
//! | module | reproduces |
//! |---|---|
//! | [`kdtree`] | left-balanced k-d trees by tags (Wald 2022) |
//! | [`balanced`] | balanced k-d trees by merge sorts and partitions of runs (Robinson) |
//! | [`quadtree`] | quadtrees level by level (Gluck 2014) |
//! | [`query`] | traversals of left-balanced trees node by node (Wald 2022) |
//! | [`join`] | top-k joins with heaps (Løvik 2020), joins with a list of cells (Gowanlock, Karsin 2018) |
//! | [`sah`] | the stages of SAH builds (Zhou et al. 2008; Chang, Seo, Ihm 2015) |
//! | [`primitives`] | selection in two passes (Billeter, Olsson, Assarsson 2009) |

pub mod balanced;
pub mod join;
pub mod kdtree;
pub mod primitives;
pub mod quadtree;
pub mod query;
pub mod sah;
