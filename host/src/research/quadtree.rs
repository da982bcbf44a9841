//! Quadtrees and octrees level by level, and out-of-core builds with upper levels from the CPU (Gluck 2014).
//!
//! Both build the tree that the library's own algorithm builds, to the last bit. The times are those of points `[f32; 2]` on one H200, from
//! `benches/results`.
//!
//! | variant | reproduces | choose it by | cost |
//! |---|---|---|---|
//! | [`BuildAlgorithm::Levels`] | Gluck 2014: a bucket sort per node and level, with a block per node or a thread per small node | [`QuadtreeOptions::algorithm`] | 10M uniform points in device memory: 3.5 ms and 196 MB of temporary memory, against 1.5 ms and 122 MB (`quadtree-h200`) |
//! | [`LevelsOptions`] | Gluck 2014, figure 9: the threads of the block that splits a node | [`BuildAlgorithm::Levels`] | 10M points of a laser scan: from 1668 ms with 4 threads to 29 ms with 512, against 3.5 ms with the default options (`quadtree-gluck-h200`) |
//! | [`LevelsOptions::thread_level`] | Gluck 2014: the thread algorithm, in which one thread splits each node, from a level on; [`LevelsOptions::BY_THREADS`] from the root on | [`BuildAlgorithm::Levels`] | not measured; from the root on, one thread reads all points on the first level |
//! | [`LevelsOptions::prunes`] | Gluck 2014: the list of a level with null nodes, or compacted to the nodes that split (A2) | [`BuildAlgorithm::Levels`] | 10M points of a laser scan: 11.9 ms with null nodes, against 3.4 ms (`quadtree-gluck-h200`) |
//! | [`RootCell::BoundingBox`] | Gluck 2014: the root is the bounding box of the points. Not a research option | [`QuadtreeOptions::root`] | not measured |
//! | [`OutOfCore::CpuTop`] | Gluck 2014: one CPU thread splits the upper levels, the GPU builds the subtrees one after another | [`QuadtreeOptions::out_of_core`] | 80M uniform points in 4 GiB of device memory: 2.0 s, against 0.27 s with [`OutOfCore::Streamed`] (`quadtree-host-h200`) |
//!
//! On the CPU [`BuildAlgorithm::Levels`] is the paper's rival, a program for one core: a bucket sort per node, which compares each point once a level
//! with the middle of its node. It ignores the options.
//!
//! ```
//! use kauri::research::quadtree::{BuildAlgorithm, LevelsOptions};
//! use kauri::{Device, Quadtree, QuadtreeOptions};
//! let points: Vec<[f32; 2]> = (0..500).map(|i| [(i * 37 % 101) as f32, (i * 73 % 97) as f32]).collect();
//! let options = QuadtreeOptions::default();
//! let by_codes = Quadtree::build(&Device::cpu(), &points, &options)?;
//! // A block of 64 threads per node, as in the paper. The CPU uses one thread, and ignores the options.
//! let blocks = LevelsOptions { threads: Some(64), block_points: u32::MAX, ..LevelsOptions::default() };
//! let options = options.algorithm(BuildAlgorithm::Levels(blocks));
//! let by_levels = Quadtree::build(&Device::cpu(), &points, &options)?;
//! assert_eq!(by_levels.nodes()?, by_codes.nodes()?);
//! assert_eq!(by_levels.ids()?, by_codes.ids()?);
//! # Ok::<(), kauri::Error>(())
//! ```
//!
//! [`QuadtreeOptions::algorithm`]: crate::QuadtreeOptions::algorithm
//! [`QuadtreeOptions::out_of_core`]: crate::QuadtreeOptions::out_of_core
//! [`QuadtreeOptions::root`]: crate::QuadtreeOptions::root
//! [`RootCell::BoundingBox`]: crate::quadtree::RootCell::BoundingBox
//! [`OutOfCore::CpuTop`]: crate::quadtree::OutOfCore::CpuTop
//! [`OutOfCore::Streamed`]: crate::quadtree::OutOfCore::Streamed

pub use crate::quadtree::options::BuildAlgorithm;
pub use crate::quadtree::options::levels::LevelsOptions;
