//! Views of a build's input that its stages share.

use crate::sah::options::SahOptions;
use cuda_std::mem::Slice;
use kauri_kernels::sah::aabb::Aabb;
use kauri_kernels::sah::small_roots::SmallRoot;
use kauri_kernels::sah::triangle::Corners;

/// The triangles and options of a build.
pub(super) struct BuildInput<'a> {
    pub(super) corners: Slice<'a, Corners>,
    /// The bounding box of each triangle.
    pub(super) boxes: Slice<'a, Aabb>,
    pub(super) options: &'a SahOptions,
}

/// Small roots with their references.
#[derive(Clone, Copy)]
pub(super) struct SmallRootViews<'a> {
    pub(super) roots: Slice<'a, SmallRoot>,
    pub(super) references: Slice<'a, u32>,
    /// Bounding boxes: by reference if triangles are clipped, otherwise by triangle.
    pub(super) boxes: Slice<'a, Aabb>,
}
