//! Rays through meshes: their hits, and the queries that every index of triangles answers.
//!
//! | index | choose it for |
//! |---|---|
//! | [`Bvh`](crate::Bvh) | all meshes that were measured: scans, soups of up to 10 million triangles |
//! | [`SahTree`](crate::SahTree) | the published k-d tree, its builds by stages, the surface area heuristic in every node |
//!
//! 871,414 triangles and 2,073,600 rays (shadows: 473,160) in device memory on an H200, in ms (suite `sah`, `benches/results/sah-h200.md`):
//!
//! | | [`Bvh`](crate::Bvh) | [`SahTree`](crate::SahTree) |
//! |---|--:|--:|
//! | rebuild | 0.59 | 3.80 |
//! | refit to a moved mesh | 0.23 | 1.89 |
//! | first hits, rays of a camera | 0.55 | 1.20 |
//! | first hits, random rays | 1.07 | 3.80 |
//! | any hits, rays to the sun | 0.43 | 0.89 |
//! | bytes per triangle | 70 | 80 |
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
