//! Options of the joins that choose the pairs.

use clap::{ArgGroup, Args, ValueEnum};

use super::condition::{BoxCondition, Predicate};
use crate::length::{Meters, without_unit};
use crate::tables::{BoxNames, Crs};
use crate::{CliError, Result};

/// The option of distances, as messages name it.
const WITHIN: &str = "--within <DISTANCE>";

#[derive(Args)]
#[command(group = ArgGroup::new("left degrees").args(["left_lon", "left_lat"]).multiple(true).conflicts_with("predicate"))]
pub(super) struct PairOptions {
    /// Largest distance of a pair. Between places, with its unit: 50km, 800m, 3mi, 10nmi (nautical miles) or 500ft. Between points with planar
    /// coordinates, and between boxes with --predicate within, a number in the units of the coordinates
    #[arg(
        long,
        value_name = "DISTANCE",
        required_unless_present = "predicate",
        required_if_eq("predicate", "within")
    )]
    within: Option<String>,
    /// Join tables of boxes, and find the pairs for which this is true [default: join tables of places by --within]
    #[arg(long, value_name = "PREDICATE", value_enum)]
    predicate: Option<Predicate>,
    /// Columns of the left boxes [default: the columns named xmin, ymin, xmax and ymax, or else the boxes that cover the geometries of a
    /// GeoParquet file, or else the bounding boxes of its geometries]
    #[arg(
        long,
        value_name = "XMIN,YMIN,XMAX,YMAX",
        requires = "predicate",
        conflicts_with = "left_geometry"
    )]
    pub(super) left_box: Option<BoxNames>,
    /// Print the number of pairs instead of the pairs
    #[arg(long, conflicts_with_all = ["json", "out"])]
    pub(super) count: bool,
}

/// The chosen kind of join.
pub(super) enum Chosen<'a> {
    Points(Within<'a>),
    Boxes(BoxCondition),
}

/// The largest distance of points, whose unit depends on their coordinates.
#[derive(Clone, Copy)]
pub(super) struct Within<'a>(&'a str);

impl<'a> Within<'a> {
    /// Parses a distance, as far as the coordinates are known.
    pub(super) fn new(text: &'a str, crs: Option<Crs>) -> Result<Self> {
        let within = Self(text);
        match crs {
            Some(Crs::Planar) => within.planar()?,
            None if without_unit(text).is_ok() => 0.0,
            _ => within.meters()?,
        };
        Ok(within)
    }

    /// Returns the distance of places.
    pub(super) fn meters(self) -> Result<f64> {
        self.0.parse().map(|Meters(meters)| meters).map_err(|reason| self.invalid(reason))
    }

    /// Returns the distance of points of the plane, in the units of their coordinates.
    pub(super) fn planar(self) -> Result<f64> {
        without_unit(self.0).map_err(|reason| self.invalid(reason))
    }

    fn invalid(self, reason: &'static str) -> CliError {
        CliError::Value { option: WITHIN, value: self.0.into(), reason }
    }
}

/// The left rows in the output.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum How {
    /// Left rows with a match
    Inner,
    /// All left rows: one without a match is written once, with empty right columns
    Left,
}

impl PairOptions {
    /// Validates the options.
    pub(super) fn chosen(&self, crs: Option<Crs>) -> Result<Chosen<'_>> {
        let within = self.within.as_deref();
        if self.predicate.is_some() && crs == Some(Crs::Lonlat) {
            let reason = "boxes have planar coordinates: leave out --crs";
            return Err(CliError::Value { option: "--crs <CRS>", value: "lonlat".into(), reason });
        }
        Ok(match (self.predicate, within) {
            (None, within) => Chosen::Points(Within::new(within.unwrap_or_default(), crs)?),
            (Some(Predicate::Within), within) => {
                Chosen::Boxes(BoxCondition::Within(Within(within.unwrap_or_default()).planar()?))
            }
            (Some(_), Some(text)) => {
                return Err(Within(text).invalid("only `--predicate within` has a distance"));
            }
            (Some(Predicate::Intersects), None) => Chosen::Boxes(BoxCondition::Intersects),
            (Some(Predicate::Contains), None) => Chosen::Boxes(BoxCondition::Contains),
        })
    }
}
