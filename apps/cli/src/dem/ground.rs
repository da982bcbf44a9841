//! Options of the ground filter.

use clap::Args;

use kauri::terrain::GroundFilter;

#[derive(Args)]
pub(super) struct GroundOptions {
    /// Find the ground of the DTM by a progressive morphological filter, as filters.pmf of PDAL, instead of by its class. The points must fit
    /// in memory
    #[arg(long)]
    ground_filter: bool,
    /// Side of the largest window of the ground filter, which must exceed the width of the largest building [default: 33]
    #[arg(long, value_name = "LENGTH", requires = "ground_filter", allow_negative_numbers = true)]
    max_window_size: Option<f64>,
    /// Greatest slope of the terrain for the ground filter [default: 1]
    #[arg(long, value_name = "SLOPE", requires = "ground_filter", allow_negative_numbers = true)]
    slope: Option<f64>,
}

impl GroundOptions {
    /// Returns the ground filter, if it is chosen.
    pub(super) fn filter(&self) -> Option<GroundFilter> {
        let mut filter = GroundFilter::default();
        filter.max_window_size = self.max_window_size.unwrap_or(filter.max_window_size);
        filter.slope = self.slope.unwrap_or(filter.slope);
        self.ground_filter.then_some(filter)
    }
}
