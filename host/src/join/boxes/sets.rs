//! Validation of the two sets of a join of boxes.

use crate::error::{Error, Result};
use crate::join::sets::check_count;
use crate::point::{Cartesian, checked_coordinates};
use kauri_kernels::join::cells::Pairing;
use kauri_kernels::thread::coord::Coord;
use std::borrow::Cow;

/// The boxes of a join in host memory.
#[derive(Clone, Copy)]
pub(super) struct HostBoxes<'a, P> {
    pub(super) left: &'a [[P; 2]],
    /// `None` if the left set is joined with itself.
    right: Option<&'a [[P; 2]]>,
    pub(super) pairing: Pairing,
}

impl<'a, P: Cartesian> HostBoxes<'a, P> {
    pub(super) fn two(left: &'a [[P; 2]], right: &'a [[P; 2]]) -> Self {
        Self { left, right: Some(right), pairing: Pairing::All }
    }

    pub(super) fn one(left: &'a [[P; 2]], pairing: Pairing) -> Self {
        Self { left, right: None, pairing }
    }

    /// Validates the boxes.
    pub(super) fn validate(self) -> Result<HostSides<'a, P::Coord>> {
        let left = checked_boxes(self.left, ["low corner of box", "high corner of box"])?;
        let right = self
            .right
            .map(|right| checked_boxes(right, ["low corner of right box", "high corner of right box"]));
        Ok(HostSides { right: right.transpose()?, left })
    }
}

/// The validated coordinates of two sets of boxes.
pub(super) struct HostSides<'a, C: Coord> {
    /// `None` if a set is joined with itself.
    right: Option<Cow<'a, [C]>>,
    left: Cow<'a, [C]>,
}

impl<C: Coord> HostSides<'_, C> {
    /// Returns the coordinates as [right, left].
    pub(super) fn slices(&self) -> [&[C]; 2] {
        [self.right.as_ref().unwrap_or(&self.left), &self.left]
    }
}

/// Validates the boxes of a set. `corners` names the corners in errors.
pub(super) fn checked_boxes<'a, P: Cartesian>(
    boxes: &'a [[P; 2]],
    corners: [&'static str; 2],
) -> Result<Cow<'a, [P::Coord]>> {
    check_count(boxes.len())?;
    checked_coordinates(boxes.as_flattened(), corners[0]).map_err(|error| match error {
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
