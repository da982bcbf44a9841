//! Which points of a cloud are read.

use super::records::Record;
use crate::point::Lattice;
use std::ops::RangeInclusive;

/// The returns of a pulse that are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Returns {
    /// All returns.
    #[default]
    All,
    /// The first return of each pulse.
    First,
    /// The last return of each pulse.
    Last,
}

/// Conditions for the points of a cloud that are read. By default all are.
///
/// ```
/// use kauri::io::{CloudFilter, Returns};
/// let ground = CloudFilter::default().classes([2]).without_withheld();
/// let surface = CloudFilter::default().returns(Returns::First).bounds([[0.0, 0.0, f64::MIN], [100.0, 100.0, f64::MAX]]);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CloudFilter {
    classes: Option<Vec<u8>>,
    returns: Returns,
    bounds: Option<[[f64; 3]; 2]>,
    skips_withheld: bool,
    levels: Option<RangeInclusive<u32>>,
}

impl CloudFilter {
    /// Reads only points of these classes: 2 is ground, 6 buildings, 9 water (LAS 1.4, section 2.6).
    pub fn classes(mut self, classes: impl Into<Vec<u8>>) -> Self {
        self.classes = Some(classes.into());
        self
    }

    /// Reads only these returns.
    pub fn returns(mut self, returns: Returns) -> Self {
        self.returns = returns;
        self
    }

    /// Reads only points within a box, given by its least and its greatest corner; borders belong to it. Of a COPC file, only the chunks
    /// that may have such points are read.
    pub fn bounds(mut self, bounds: [[f64; 3]; 2]) -> Self {
        self.bounds = Some(bounds);
        self
    }

    /// Leaves out points with the withheld flag, which should not be processed.
    pub fn without_withheld(mut self) -> Self {
        self.skips_withheld = true;
        self
    }

    /// Reads only these levels of the octree of a COPC file; level 0 is the coarsest. Other files have no levels, and give an error.
    pub fn levels(mut self, levels: RangeInclusive<u32>) -> Self {
        self.levels = Some(levels);
        self
    }

    /// Returns the levels to read, if not all of them.
    pub(super) fn chosen_levels(&self) -> Option<&RangeInclusive<u32>> {
        self.levels.as_ref()
    }

    /// True unless no point of a box is within the bounds.
    pub(super) fn may_be_in(&self, [low, high]: [[f64; 3]; 2]) -> bool {
        self.bounds.is_none_or(|[least, greatest]| {
            (0..3).all(|axis| low[axis] <= greatest[axis] && least[axis] <= high[axis])
        })
    }

    /// True if a point is read.
    pub(super) fn accepts(&self, record: Record<'_>, lattice: &Lattice) -> bool {
        let is_chosen = match self.returns {
            Returns::All => true,
            Returns::First => record.return_number() == 1,
            Returns::Last => record.return_number() == record.number_of_returns(),
        };
        is_chosen
            && self.classes.as_ref().is_none_or(|classes| classes.contains(&record.class()))
            && !(self.skips_withheld && record.withheld())
            && self.bounds.is_none_or(|[least, greatest]| {
                let position = lattice.position(record.point());
                (0..3).all(|axis| least[axis] <= position[axis] && position[axis] <= greatest[axis])
            })
    }
}
