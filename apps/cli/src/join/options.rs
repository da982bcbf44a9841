//! Options of `kauri join` and `kauri self-join` that choose the pairs.

use clap::{ArgGroup, Args};

use super::condition::{BoxCondition, Near, Predicate};
use crate::length::{Meters, without_unit};
use crate::tables::BoxNames;
use crate::{CliError, Result};

/// The option of distances, as messages name it.
const WITHIN: &str = "--within <DISTANCE>";

#[derive(Args)]
#[command(group = ArgGroup::new("left degrees").args(["left_lon", "left_lat"]).multiple(true).conflicts_with("predicate"))]
pub(super) struct PairOptions {
    /// Largest distance of a pair. Between places, with its unit: 50km, 800m, 3mi, 10nmi (nautical miles) or 500ft. Between boxes, with
    /// --predicate within, a number in the units of their coordinates
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
    #[arg(long, value_name = "XMIN,YMIN,XMAX,YMAX", requires = "predicate")]
    pub(super) left_box: Option<BoxNames>,
    /// Print the number of pairs instead of the pairs
    #[arg(long, conflicts_with_all = ["json", "out"])]
    pub(super) count: bool,
}

/// The chosen kind of join.
pub(super) enum Chosen {
    Places(Near),
    Boxes(BoxCondition),
}

impl PairOptions {
    /// Validates the options.
    pub(super) fn chosen(&self) -> Result<Chosen> {
        let within = self.within.as_deref();
        let value =
            |reason| CliError::Value { option: WITHIN, value: within.unwrap_or_default().into(), reason };
        Ok(match (self.predicate, within) {
            (None, within) => {
                let Meters(meters) = within.unwrap_or_default().parse().map_err(value)?;
                Chosen::Places(Near(meters))
            }
            (Some(Predicate::Within), within) => {
                let distance = without_unit(within.unwrap_or_default()).map_err(value)?;
                Chosen::Boxes(BoxCondition::Within(distance))
            }
            (Some(_), Some(_)) => return Err(value("only `--predicate within` has a distance")),
            (Some(Predicate::Intersects), None) => Chosen::Boxes(BoxCondition::Intersects),
            (Some(Predicate::Contains), None) => Chosen::Boxes(BoxCondition::Contains),
        })
    }
}
