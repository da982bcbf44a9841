//! Variants of [`sah`](crate::sah): the stages of a GPU's build as Zhou et al. and Chang et al. describe them, and rays without a stack.
//!
//! | variant | reproduces | choose it by |
//! |---|---|---|
//! | small nodes level by level | Zhou, Hou, Wang, Guo 2008, *Real-Time KD-Tree Construction on Graphics Hardware*, section 4.2: a mask of triangles for each candidate plane, in device memory | [`StagesOptions::small_by_levels`] |
//! | layouts of candidates | Chang, Seo, Ihm 2015, *On the Efficient Implementation of a Real-Time Kd-Tree Construction Algorithm* (GPU Computing and Applications, chapter 13): plane and masks apart, the masks by the read-only path, or together in 20 bytes | [`StagesOptions::candidates`] |
//! | sort by segmented scans | Zhou 2008, section 4.1; Chang 2015 compares it with atomics | [`StagesOptions::sort_by_scans`] |
//! | boxes by segmented reductions | Zhou 2008, section 4.1; Chang 2015 compares it with atomics | [`StagesOptions::boxes_by_reductions`] |
//! | blocks exchange values through shared memory | Zhou 2008; Chang 2015 compares it with shuffles | [`StagesOptions::by_shared_memory`] |
//! | rays without a stack | Foley, Sugerman 2005, *KD-Tree Acceleration Structures for a GPU Raytracer*: traversal restarts from the root; here with the trail of Laine 2010, *Restart Trail for Stackless BVH Traversal* | [`RayTraversal::Restart`] |
//!
//! Trees and hits do not depend on the choice. The CPU ignores the stages; it traces rays without a stack if asked to:
//!
//! ```
//! use kauri::mesh::shapes;
//! use kauri::research::sah::{StagesOptions, RayTraversal};
//! use kauri::rays::{Ray, RayIndex, RayOptions};
//! use kauri::sah::{SahOptions, SahTree};
//! use kauri::Device;
//! let stages = StagesOptions { sort_by_scans: true, small_by_levels: true, ..StagesOptions::default() };
//! let knot = shapes::torus_knot([2, 3], 60, 8)?;
//! let tree = SahTree::build(&Device::cpu(), &knot, &SahOptions::default().stages(stages))?;
//! let rays = [Ray::new([-4.0, 0.3, 0.2], [1.0, 0.0, 0.0])];
//! let restart = RayOptions::default().traversal(RayTraversal::Restart);
//! assert_eq!(tree.closest_hits_with(&rays, &restart)?, tree.closest_hits(&rays)?);
//! # Ok::<(), kauri::Error>(())
//! ```
//!
//! # Costs
//!
//! A rebuild over 871,414 triangles in device memory on an H200 (suite `sah-chang`, `benches/results/sah-chang-h200.md`). Each row
//! below the second adds one option to `small_by_levels`; they do not accumulate:
//!
//! | stages | ms |
//! |---|--:|
//! | the library's own: atomics, shuffles, a warp per small root | 4.07 |
//! | `small_by_levels` | 5.92 |
//! | `small_by_levels`, [`CandidateLayout::Records`] | 5.86 |
//! | `small_by_levels`, `by_shared_memory` | 6.05 |
//! | `small_by_levels`, `sort_by_scans` | 6.83 |
//! | `small_by_levels`, `boxes_by_reductions` | 7.56 |
//!
//! Scratch memory of the first two, on the same mesh: 71 MB and 494 MB, of which the candidates take up to
//! [`candidate_bytes`](StagesOptions::candidate_bytes) (suite `sah`, `benches/results/sah-h200.md`).
//!
//! First hits of 2,073,600 rays in the same tree (suite `sah`, where [`RayTraversal::Restart`] is called `restarts`):
//!
//! | rays | with a stack, ms | [`RayTraversal::Restart`], ms |
//! |---|--:|--:|
//! | of a camera | 0.84 | 1.96 |
//! | random | 1.75 | 3.43 |

pub use crate::rays::options::RayTraversal;
pub use crate::sah::variants::{CandidateLayout, StagesOptions};
