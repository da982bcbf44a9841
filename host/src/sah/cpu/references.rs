//! Primitive references while a tree is built, and their partition by a split plane.

use crate::sah::options::SahOptions;
use kauri_kernels::sah::aabb::{Aabb, Side};
use kauri_kernels::sah::clip::clipped;
use kauri_kernels::sah::cost::{reaches_above, reaches_below};
use kauri_kernels::sah::extent::Extent;
use kauri_kernels::sah::triangle::Corners;
use rayon::prelude::*;

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
            if references.len() > PARALLEL_REFERENCES {
                references.par_iter().filter_map(part).collect()
            } else {
                references.iter().filter_map(part).collect()
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
    let reference = |(i, corners): (usize, &Corners)| Reference {
        triangle: i as u32,
        bounds: Aabb::of_corners(corners.positions()),
    };
    corners.par_iter().enumerate().map(reference).collect()
}

/// Returns the bounding box of all references.
pub(super) fn bounding_box(references: &[Reference]) -> Aabb {
    if references.len() > PARALLEL_REFERENCES {
        references.par_iter().map(|reference| reference.bounds).reduce(|| Aabb::EMPTY, Aabb::union)
    } else {
        references.iter().fold(Aabb::EMPTY, |all, reference| all.union(reference.bounds))
    }
}

/// Returns the extent of unclipped triangles.
pub(super) fn scene_extent(references: &[Reference]) -> Extent {
    let extents = references.par_iter().map(|reference| Extent::of(reference.bounds));
    extents.reduce(|| Extent::EMPTY, Extent::union)
}
