//! Primitive references while a tree is built, and their partition by a split plane.

use crate::parallel;
use crate::sah::options::SahOptions;
use kauri_kernels::rays::aabb::{Aabb, Side};
use kauri_kernels::rays::extent::Extent;
use kauri_kernels::rays::triangle::Corners;
use kauri_kernels::sah::clip::clipped;
use kauri_kernels::sah::cost::{reaches_above, reaches_below};
use std::ops::Range;

/// A node with more references is processed by several threads.
pub(super) const PARALLEL_REFERENCES: usize = 4096;

/// A reference to a triangle, with the bounding box of the triangle, or of its clipped part in the node.
#[derive(Clone, Copy)]
pub(super) struct Reference {
    pub(super) triangle: u32,
    pub(super) bounds: Aabb,
}

/// The triangles and options of a build.
pub(super) struct BuildInput<'a> {
    pub(super) corners: &'a [Corners],
    pub(super) options: &'a SahOptions,
}

impl BuildInput<'_> {
    /// Returns the references below and above a plane. A triangle on both sides has a reference on each, clipped if the options say so.
    pub(super) fn partition(&self, references: &[Reference], axis: u32, plane: f32) -> [Vec<Reference>; 2] {
        [Side::Below, Side::Above].map(|side| {
            let part = |reference: &Reference| self.part(reference, axis, plane, side);
            let parts = |range: Range<usize>| references[range].iter().filter_map(part).collect();
            if references.len() > PARALLEL_REFERENCES {
                parallel::concat(references.len(), PARALLEL_REFERENCES / 4, parts)
            } else {
                parts(0..references.len())
            }
        })
    }

    /// Returns the reference on one side of a plane, if the triangle reaches that side.
    fn part(&self, reference: &Reference, axis: u32, plane: f32, side: Side) -> Option<Reference> {
        let bounds = reference.bounds;
        let (low, high) = (bounds.low[axis as usize], bounds.high[axis as usize]);
        let (below, above) = (reaches_below(low, high, plane), reaches_above(high, plane));
        let is_on_side = match side {
            Side::Below => below,
            Side::Above => above,
        };
        if !is_on_side {
            return None;
        }
        if !(self.options.clip && below && above) {
            return Some(*reference);
        }
        let corners = self.corners[reference.triangle as usize].positions();
        let bounds = clipped(corners, bounds, axis, plane, side);
        (!bounds.is_empty()).then_some(Reference { bounds, ..*reference })
    }
}

/// Returns a reference to each triangle.
pub(super) fn references_of(corners: &[Corners]) -> Vec<Reference> {
    let reference =
        |i: usize| Reference { triangle: i as u32, bounds: Aabb::of_corners(corners[i].positions()) };
    parallel::map(corners.len(), PARALLEL_REFERENCES, reference)
}

/// Returns the bounding box of all references.
pub(super) fn bounding_box(references: &[Reference]) -> Aabb {
    let bounds_of = |range: Range<usize>| {
        references[range].iter().fold(Aabb::EMPTY, |all, reference| all.union(reference.bounds))
    };
    parallel::reduce(references.len(), PARALLEL_REFERENCES, bounds_of, Aabb::union).unwrap_or(Aabb::EMPTY)
}

/// Returns the extent of unclipped triangles.
pub(super) fn scene_extent(references: &[Reference]) -> Extent {
    let extent_of = |range: Range<usize>| {
        let extents = references[range].iter().map(|reference| Extent::of(reference.bounds));
        extents.fold(Extent::EMPTY, Extent::union)
    };
    parallel::reduce(references.len(), PARALLEL_REFERENCES, extent_of, Extent::union).unwrap_or(Extent::EMPTY)
}
