//! Validation of the two sets of a join of boxes.

use crate::error::{Error, Result};
use crate::join::sets::{HostSets, HostSides, check_count};
use crate::point::{Cartesian, DistanceOf, checked_floats};
use std::borrow::Cow;

/// Validates the boxes of two sets, or of one that is joined with itself.
pub(super) fn checked_sets<P: Cartesian>(sets: HostSets<'_, [P; 2]>) -> Result<HostSides<'_, DistanceOf<P>>> {
    let probe = checked_boxes(sets.left, ["low corner of box", "high corner of box"])?;
    let build =
        sets.right.map(|right| checked_boxes(right, ["low corner of right box", "high corner of right box"]));
    Ok(HostSides { build: build.transpose()?, probe })
}

/// Validates the boxes of a set. `corners` names the corners in errors.
fn checked_boxes<'a, P: Cartesian>(
    boxes: &'a [[P; 2]],
    corners: [&'static str; 2],
) -> Result<Cow<'a, [DistanceOf<P>]>> {
    check_count(boxes.len())?;
    checked_floats(boxes.as_flattened(), corners[0]).map_err(|error| match error {
        Error::NonFinite { index, axis, value, .. } => {
            Error::NonFinite { what: corners[index as usize % 2], index: index / 2, axis, value }
        }
        Error::CoordinateTooLarge { index, axis, value, limit, .. } => {
            let what = corners[index as usize % 2];
            Error::CoordinateTooLarge { what, index: index / 2, axis, value, limit }
        }
        error => error,
    })
}
