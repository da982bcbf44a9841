//! Figures of published experiments: their axes, and the points of rows in them. `plots` draws them.

use serde::Serialize;

/// A figure: panels with lines over a logarithmic x axis.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Name, also of the file.
    pub name: &'static str,
    /// Label of the x axis.
    pub x_axis: &'static str,
    /// Quantity on the y axis.
    pub quantity: Quantity,
}

/// Quantity on the y axis of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Median time, logarithmic.
    Milliseconds,
    /// Temporary memory, logarithmic.
    Megabytes,
    /// Speed-up over a reference, logarithmic.
    TimesAsFast,
    /// Number of runs by their time: a histogram of the runs of a row.
    Runs,
    /// Share of each phase in the time of a row; one line for each phase.
    Percent,
    /// A number that a profiler measured, with this name and unit.
    Profiled(&'static str),
}

/// The point of a row in a figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigurePoint {
    pub(crate) figure: &'static str,
    pub(crate) panel: String,
    /// Empty in figures whose lines are phases.
    pub(crate) line: String,
    #[serde(rename = "across")]
    pub(crate) x: f64,
    /// The y value in figures whose quantity is not in the row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<f64>,
}

impl FigurePoint {
    /// Creates a point of the figure with this name.
    pub fn new(figure: &'static str, panel: &str, line: &str, x: f64) -> Self {
        Self { figure, panel: panel.to_owned(), line: line.to_owned(), x, value: None }
    }

    /// Sets the y value, for figures of [`Quantity::TimesAsFast`] and [`Quantity::Profiled`].
    pub fn value(mut self, value: f64) -> Self {
        self.value = Some(value);
        self
    }

    /// Moves the point to another system's line of this name, or to its panel in figures whose lines are phases.
    pub fn set_system(&mut self, system: &str) {
        let name = if self.line.is_empty() { &mut self.panel } else { &mut self.line };
        *name = format!("{system}, {name}");
    }
}
