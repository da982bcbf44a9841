//! Rays through meshes: their hits, and the queries that every index of triangles answers.
//!
//! Choose a [`Bvh`](crate::Bvh). It is ahead of a [`SahTree`](crate::SahTree) on all meshes that were measured, in builds and in rays. A `SahTree` is the published k-d tree, its
//! builds by stages, and the surface area heuristic in every node. In device memory on an H200, in ms (suite `sah`, `benches/results/pages/sah.md`); 2,073,600 rays:
//!
//! | mesh | triangles | rebuild | first hits, rays of a camera | first hits, random rays |
//! |---|--:|--:|--:|--:|
//! | dragon (scan), `Bvh` | 871,414 | 0.44 | 0.39 | 0.80 |
//! | `SahTree` | | 3.64 | 0.84 | 1.75 |
//! | bunny (scan), `Bvh` | 3,674 | 0.15 | 0.23 | 0.52 |
//! | `SahTree` | | 0.70 | 0.35 | 1.06 |
//! | terrain, `Bvh` | 999,698 | 0.48 | 0.33 | 0.74 |
//! | `SahTree` | | 3.23 | 0.65 | 1.45 |
//! | soup, `Bvh` | 10,000,000 | 4.48 | 0.75 | 3.30 |
//! | `SahTree` | | 44.6 | 1.21 | 5.51 |
//! | ball of hairs, `Bvh` | 1,000,000 | 0.49 | 1.84 | 4.22 |
//! | `SahTree` | | 9.30 | 4.34 | 7.87 |
//! | long thin triangles, `Bvh` | 1,000,000 | 0.58 | 62.8 | 248 |
//! | `SahTree` | | 5.48 | 170 | 1093 |
//!
//! A refit of the dragon to a moved mesh takes 0.22 and 1.87 ms. A `Bvh` takes 70 bytes per triangle, a `SahTree` 80.
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
