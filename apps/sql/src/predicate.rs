//! The pairs that a spatial join finds.

use crate::error::Error;
use crate::geometry::Measure;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A distance that is 0 or greater.
#[derive(Clone, Copy, Debug)]
pub struct Radius(f64);

impl Radius {
    /// Checks a distance, which is an argument of `function`.
    ///
    /// # Errors
    /// [`Error::InvalidDistance`].
    pub fn new(value: f64, function: &'static str) -> Result<Self, Error> {
        // Adding zero turns -0.0 into 0.0.
        if value >= 0.0 { Ok(Self(value + 0.0)) } else { Err(Error::InvalidDistance { function, value }) }
    }

    /// Returns the distance.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl PartialEq for Radius {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Radius {}

impl PartialOrd for Radius {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.0.total_cmp(&other.0))
    }
}

impl Hash for Radius {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

impl fmt::Display for Radius {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Checks a number of neighbors or pairs, which is an argument of `function`.
///
/// # Errors
/// [`Error::InvalidK`].
pub fn check_k(value: i64, function: &'static str) -> Result<usize, Error> {
    match usize::try_from(value) {
        Ok(k) if k > 0 => Ok(k),
        _ => Err(Error::InvalidK { function, value }),
    }
}

/// The pairs of a join of boxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Hash)]
pub enum BoxRelation {
    /// Boxes that have a common point.
    Intersects,
    /// Left boxes that contain right boxes.
    Contains,
    /// Boxes whose distance is at most this.
    Within(Radius),
}

/// The pairs of left and right rows that a join finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Hash)]
pub enum SpatialPredicate {
    /// All pairs of points within a distance.
    Within {
        /// The distance.
        radius: Radius,
        /// How distances are measured.
        measure: Measure,
    },
    /// The nearest right points of each left point.
    Knn {
        /// The number of right points.
        k: usize,
        /// The largest distance of a right point, if there is one.
        within: Option<Radius>,
        /// How distances are measured.
        measure: Measure,
    },
    /// The pairs of points within a distance that have the greatest sums of scores.
    TopK {
        /// The number of pairs.
        k: usize,
        /// The distance.
        radius: Radius,
        /// How distances are measured.
        measure: Measure,
    },
    /// Pairs of boxes.
    Boxes(BoxRelation),
}

impl SpatialPredicate {
    /// Returns the measure of distances; `None` for boxes.
    pub fn measure(&self) -> Option<Measure> {
        match self {
            Self::Within { measure, .. } | Self::Knn { measure, .. } | Self::TopK { measure, .. } => {
                Some(*measure)
            }
            Self::Boxes(_) => None,
        }
    }
}

impl fmt::Display for SpatialPredicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Within { radius, .. } => write!(f, "kind=distance, d={radius}")?,
            Self::Knn { k, within: None, .. } => write!(f, "kind=knn, k={k}")?,
            Self::Knn { k, within: Some(radius), .. } => write!(f, "kind=knn, k={k}, d={radius}")?,
            Self::TopK { k, radius, .. } => write!(f, "kind=top_k, k={k}, d={radius}")?,
            Self::Boxes(BoxRelation::Intersects) => f.write_str("kind=intersects")?,
            Self::Boxes(BoxRelation::Contains) => f.write_str("kind=contains")?,
            Self::Boxes(BoxRelation::Within(radius)) => write!(f, "kind=box_distance, d={radius}")?,
        }
        self.measure().map_or(Ok(()), |measure| write!(f, ", measure={measure}"))
    }
}
