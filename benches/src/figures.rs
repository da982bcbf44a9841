//! Pictures of published experiments, with the axes that they have there: panels, in them lines over a quantity that grows by factors.

use crate::plots::{COLUMNS, COPY, Drawn, KAURI, PANEL, distinct, swatch};
use crate::report::Row;
use plotters::coord::Shift;
use plotters::prelude::*;
use serde::Serialize;

/// A picture.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Its name, which the file takes.
    pub name: &'static str,
    /// What its panels are over.
    pub across: &'static str,
    /// What they show.
    pub up: Up,
}

/// What a picture shows of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Up {
    /// Medians, by factors.
    Milliseconds,
    /// Temporary memory, by factors.
    Megabytes,
    /// How many times as fast as another it is, by factors.
    TimesAsFast,
    /// What part of the time the phases of a row take; a line for each.
    Percent,
}

/// Where a row stands in a picture.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Place {
    figure: &'static str,
    panel: String,
    /// Nothing where phases have the lines.
    line: String,
    across: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    times_as_fast: Option<f64>,
}

impl Place {
    /// In the figure of that name.
    pub fn new(figure: &'static str, panel: &str, line: &str, across: f64) -> Self {
        Self { figure, panel: panel.to_owned(), line: line.to_owned(), across, times_as_fast: None }
    }

    /// In a figure that shows this.
    pub fn times_as_fast(mut self, factor: f64) -> Self {
        self.times_as_fast = Some(factor);
        self
    }

    /// For another system: on a line of its own, or in a panel of its own where phases have the lines.
    pub fn take(&mut self, system: &str) {
        let name = if self.line.is_empty() { &mut self.panel } else { &mut self.line };
        system.clone_into(name);
    }
}

/// A line of a panel, by its name.
type Line = (String, Vec<(f64, f64)>);

const COLORS: [RGBColor; 7] = [
    KAURI,
    RGBColor(200, 80, 40),
    RGBColor(90, 90, 200),
    RGBColor(150, 60, 150),
    RGBColor(200, 160, 30),
    RGBColor(60, 60, 60),
    RGBColor(80, 170, 200),
];

/// Draws a figure; nothing if no row has a place in it.
pub(crate) fn draw(figure: &Figure, rows: &[Row]) -> Drawn<Option<String>> {
    let placed = || rows.iter().flat_map(|row| row.places.iter().map(move |place| (row, place)));
    let placed: Vec<_> = placed().filter(|(_, place)| place.figure == figure.name).collect();
    let mut panels = Vec::new();
    for panel in distinct(placed.iter().map(|(_, place)| place.panel.as_str())) {
        let rows = placed.iter().filter(|(_, place)| place.panel == panel);
        let points = rows.flat_map(|(row, place)| points(figure.up, row, place));
        let lines = lines(points.collect());
        if !lines.is_empty() {
            panels.push((panel, lines));
        }
    }
    if panels.is_empty() {
        return Ok(None);
    }
    let (columns, height) = (panels.len().min(COLUMNS), panels.len().div_ceil(COLUMNS));
    let mut picture = String::new();
    {
        let size = (PANEL.0 * columns as u32, PANEL.1 * height as u32);
        let area = SVGBackend::with_string(&mut picture, size).into_drawing_area();
        area.fill(&WHITE)?;
        for (part, (panel, lines)) in area.split_evenly((height, columns)).iter().zip(&panels) {
            let title =
                if panel.is_empty() { figure.name.to_owned() } else { format!("{}, {panel}", figure.name) };
            draw_panel(part, &title, figure, lines)?;
        }
        area.present()?;
    }
    Ok(Some(picture))
}

/// The points that a row makes, each with the name of its line.
fn points(up: Up, row: &Row, place: &Place) -> Vec<(String, (f64, f64))> {
    let one = |y: Option<f64>| y.map(|y| (place.line.clone(), (place.across, y))).into_iter().collect();
    match up {
        Up::Milliseconds => one(row.timing.as_ref().map(|timing| timing.median_ms)),
        Up::Megabytes => one(row.temp_bytes.filter(|&bytes| bytes > 0).map(|bytes| bytes as f64 / 1e6)),
        Up::TimesAsFast => one(place.times_as_fast),
        Up::Percent => {
            let all: f64 = row.phases.iter().map(|phase| phase.ms).sum();
            let part = |ms: f64| (place.across, if all > 0.0 { ms / all * 100.0 } else { 0.0 });
            row.phases.iter().map(|phase| (phase.name.clone(), part(phase.ms))).collect()
        }
    }
}

/// Lines of points, in the order of their first ones, each along its axis; of points at one place the first.
fn lines(points: Vec<(String, (f64, f64))>) -> Vec<Line> {
    let names = distinct(points.iter().map(|(name, _)| name.clone()));
    let line = |name: String| {
        let mut line: Vec<_> = points.iter().filter(|point| point.0 == name).map(|point| point.1).collect();
        line.sort_by(|a, b| a.0.total_cmp(&b.0));
        line.dedup_by_key(|point| point.0);
        (name, line)
    };
    names.into_iter().map(line).collect()
}

fn draw_panel(
    panel: &DrawingArea<SVGBackend<'_>, Shift>,
    title: &str,
    figure: &Figure,
    lines: &[Line],
) -> Drawn<()> {
    let all = || lines.iter().flat_map(|(_, line)| line.iter().copied());
    let across = range(all().map(|point| point.0));
    let mut builder = ChartBuilder::on(panel);
    builder.caption(title, ("sans-serif", 15)).margin(8).x_label_area_size(36).y_label_area_size(56);
    // Two types of charts, which have no common one.
    macro_rules! draw {
        ($up:expr, $name:expr, $format:expr) => {{
            let mut chart = builder.build_cartesian_2d(across.log_scale(), $up)?;
            chart
                .configure_mesh()
                .light_line_style(TRANSPARENT)
                .x_desc(figure.across)
                .y_desc($name)
                .x_label_formatter(&|x| format!("{x:.0e}"))
                .y_label_formatter(&$format)
                .draw()?;
            for ((name, line), &color) in lines.iter().zip(COLORS.iter().cycle()) {
                chart
                    .draw_series(LineSeries::new(line.clone(), color.stroke_width(2)))?
                    .label(name)
                    .legend(move |at| swatch(at, color));
                chart.draw_series(line.iter().map(|&at| Circle::new(at, 3, color.filled())))?;
            }
            chart
                .configure_series_labels()
                .position(SeriesLabelPosition::UpperLeft)
                .background_style(WHITE.mix(0.8))
                .border_style(COPY)
                .draw()?;
        }};
    }
    let up = range(all().map(|point| point.1));
    // With room for the names of the lines above them.
    let up = up.start..up.end * (up.end / up.start).powf(0.5).max(1.5);
    match figure.up {
        Up::Percent => draw!(0f64..140f64, "% of the time", |y: &f64| format!("{y:.0}")),
        Up::Milliseconds => draw!(up.log_scale(), "ms", short),
        Up::TimesAsFast => draw!(up.log_scale(), "times as fast as one core", short),
        Up::Megabytes => draw!(up.log_scale(), "MB beside the input", short),
    }
    Ok(())
}

/// A number with up to three digits behind the point.
fn short(y: &f64) -> String {
    let text = format!("{y:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// From the least to the greatest, and a little more.
fn range(values: impl Iterator<Item = f64>) -> std::ops::Range<f64> {
    let (least, most) = values.fold((f64::MAX, f64::MIN_POSITIVE), |(a, b), x| (a.min(x), b.max(x)));
    least / 1.1..most * 1.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Timing;
    use crate::report::Phase;
    use std::time::Duration;

    #[test]
    fn lines_of_panels() {
        let row = |ms, line: &str, across, places: &[&str]| Row {
            timing: Some(Timing::of("wall", &[Duration::from_millis(ms)])),
            temp_bytes: Some(ms),
            phases: Phase::all([("sort", 1.0), ("filter", ms as f64)]),
            places: places.iter().map(|panel| Place::new("time", panel, line, across)).collect(),
            ..Row::default()
        };
        let rows =
            [row(2, "cells", 10.0, &["a", "b"]), row(5, "cells", 1.0, &["a"]), row(3, "heaps", 1.0, &["a"])];
        for up in [Up::Milliseconds, Up::Megabytes, Up::Percent] {
            let figure = Figure { name: "time", across: "n", up };
            let picture = draw(&figure, &rows).unwrap().unwrap();
            assert!(picture.contains("time, a") && picture.contains("time, b"), "{picture}");
            let line = if up == Up::Percent { "filter" } else { "heaps" };
            assert!(picture.contains(line), "{picture}");
        }
        let other = Figure { name: "memory", across: "n", up: Up::Megabytes };
        assert!(draw(&other, &rows).unwrap().is_none());
        let points =
            [("a", 2.0), ("b", 1.0), ("a", 1.0), ("a", 2.0)].map(|(name, x)| (name.to_owned(), (x, x)));
        let expected = [("a".to_owned(), vec![(1.0, 1.0), (2.0, 2.0)]), ("b".to_owned(), vec![(1.0, 1.0)])];
        assert_eq!(lines(points.into()), expected);
    }
}
