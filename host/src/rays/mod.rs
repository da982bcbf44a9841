//! Rays through meshes: their hits, and the queries that every index of triangles answers.
//!
//! Choose a [`Bvh`](crate::Bvh). It is ahead of a [`SahTree`](crate::SahTree) on all meshes that were measured, in builds and in rays. A `SahTree` is the published k-d tree, its
//! builds by stages, and the surface area heuristic in every node. In device memory on an H200, in ms (suite `sah`, `benches/results/pages/sah.md`); 2,073,600 rays:
//!
//! | mesh | triangles | rebuild | first hits, rays of a camera | first hits, random rays |
//! |---|--:|--:|--:|--:|
//! | dragon (scan), `Bvh` | 871,414 | 0.58 | 0.43 | 0.85 |
//! | `SahTree` | | 3.66 | 0.88 | 1.82 |
//! | bunny (scan), `Bvh` | 3,674 | 0.15 | 0.28 | 0.54 |
//! | `SahTree` | | 0.65 | 0.37 | 1.08 |
//! | terrain, `Bvh` | 999,698 | 0.61 | 0.32 | 0.74 |
//! | `SahTree` | | 3.38 | 0.67 | 1.51 |
//! | soup, `Bvh` | 10,000,000 | 5.80 | 0.93 | 3.62 |
//! | `SahTree` | | 44.9 | 1.19 | 5.52 |
//! | ball of hairs, `Bvh` | 1,000,000 | 0.62 | 1.86 | 3.25 |
//! | `SahTree` | | 9.40 | 4.47 | 8.02 |
//! | long thin triangles, `Bvh` | 1,000,000 | 0.80 | 60.7 | 248 |
//! | `SahTree` | | 5.30 | 168 | 1094 |
//!
//! A refit of the dragon to a moved mesh takes 0.22 and 1.88 ms. A `Bvh` takes 70 bytes per triangle, a `SahTree` 80.
//!
//! Intersections are watertight: rays find no gap between triangles that share an edge (Woop, Benthin, Wald 2013). The hits of a ray depend on
//! ray and triangle alone, not on the index, its builder or the device.

mod all_hits;
pub(crate) mod corners;
pub(crate) mod cpu;
pub(crate) mod gpu;
mod hits;
mod index;
pub(crate) mod options;
mod order;

pub(crate) use all_hits::scan_counts;
pub use hits::{DeviceHits, Hit, HitIter, HitRow, Hits};
pub use index::RayIndex;
pub(crate) use index::{Traced, sealed};
pub use kauri_kernels::rays::aabb::Aabb;
pub use kauri_kernels::rays::ray::Ray;
pub use options::RayOptions;
