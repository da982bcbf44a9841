//! Groups of operations whose kernels are loaded together.

/// Operations whose kernels [`Device::prepare`](super::Device::prepare) loads: an index with its queries, the joins, or the primitives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Family {
    /// [`KdTree`](crate::KdTree): builds and queries.
    KdTree,
    /// [`BalancedKdTree`](crate::balanced::BalancedKdTree): builds and queries.
    BalancedKdTree,
    /// [`RTree`](crate::RTree): builds, inserts, removals and queries.
    RTree,
    /// [`Quadtree`](crate::Quadtree) and [`Octree`](crate::Octree): builds, queries, access to cells.
    Quadtree,
    /// The joins of points and of boxes: [`join`](crate::join).
    Joins,
    /// [`SahTree`](crate::SahTree): builds, refits, rays; and pictures of [`render`](crate::render).
    Triangles,
    /// Elevation models: the module `terrain`.
    Terrain,
    /// [`primitives`](crate::primitives): sorts, scans, selections and the others.
    Primitives,
}

const QUERIES: &[&str] = &["query", "query-nearest", "query-nearest-many", "query-within"];
const SORTS_AND_SCANS: &[&str] =
    &["primitives-moves", "primitives-radix-sort", "primitives-scan", "primitives-search"];

impl Family {
    /// All families.
    pub const ALL: [Self; 8] = [
        Self::KdTree,
        Self::BalancedKdTree,
        Self::RTree,
        Self::Quadtree,
        Self::Joins,
        Self::Triangles,
        Self::Terrain,
        Self::Primitives,
    ];

    /// Returns the families in `#[kernel(family = …)]` of the kernels that the operations launch.
    pub(super) fn kernel_families(self) -> Vec<&'static str> {
        let lists: &[&[&str]] = match self {
            Self::KdTree => &[&["kdtree"], QUERIES, SORTS_AND_SCANS],
            Self::BalancedKdTree => {
                &[&["balanced", "kdtree", "primitives-merge", "primitives-select"], QUERIES, SORTS_AND_SCANS]
            }
            Self::RTree => &[&["rtree"], QUERIES, SORTS_AND_SCANS],
            Self::Quadtree => {
                &[&["quadtree", "primitives-segmented-sort", "primitives-select"], QUERIES, SORTS_AND_SCANS]
            }
            Self::Joins => &[
                &[
                    "join",
                    "join-boxes",
                    "kdtree",
                    "primitives-merge",
                    "primitives-segmented-sort",
                    "primitives-select",
                    "primitives-top-k",
                ],
                QUERIES,
                SORTS_AND_SCANS,
            ],
            Self::Triangles => &[
                &["bvh", "rays", "render", "sah", "primitives-segmented", "primitives-segmented-sort"],
                SORTS_AND_SCANS,
            ],
            Self::Terrain => &[
                &["terrain", "terrain-spline", "primitives-segmented-sort", "primitives-select", "quadtree"],
                QUERIES,
                SORTS_AND_SCANS,
            ],
            Self::Primitives => &[
                &[
                    "primitives-merge",
                    "primitives-segmented",
                    "primitives-segmented-sort",
                    "primitives-select",
                    "primitives-top-k",
                ],
                SORTS_AND_SCANS,
            ],
        };
        lists.concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// A family of kernels that no operation names would be compiled at a first call in spite of `prepare`.
    #[test]
    fn every_family_of_kernels_is_named() {
        let manifest = include_str!("../../../kernels/Cargo.toml");
        let features = manifest.lines().filter_map(|line| line.strip_prefix("entries-")?.split_once(' '));
        let built: BTreeSet<_> =
            features.map(|(family, _)| family).filter(|family| !family.starts_with("research-")).collect();
        let named: BTreeSet<_> = Family::ALL.into_iter().flat_map(Family::kernel_families).collect();
        assert_eq!(named, built);
    }
}
