//! Draws figures of published experiments: panels with lines on a logarithmic x axis.

use super::chart::{COLUMNS, COPY, Drawn, KAURI, PANEL, distinct, swatch};
use crate::figures::{Figure, FigurePoint, Quantity};
use crate::report::Row;
use plotters::coord::Shift;
use plotters::prelude::*;
use std::ops::Range;

/// A line of a panel: name and points.
type Line = (String, Vec<(f64, f64)>);

const COLORS: [RGBColor; 9] = [
    KAURI,
    RGBColor(200, 80, 40),
    RGBColor(90, 90, 200),
    RGBColor(150, 60, 150),
    RGBColor(200, 160, 30),
    RGBColor(60, 60, 60),
    RGBColor(80, 170, 200),
    RGBColor(230, 120, 170),
    RGBColor(140, 180, 80),
];

/// Bins of a histogram.
const BINS: usize = 50;

/// Draws a figure; returns `None` if no row has a point in it.
pub(super) fn draw(figure: &Figure, rows: &[Row]) -> Drawn<Option<String>> {
    let points_of_rows =
        || rows.iter().flat_map(|row| row.figure_points.iter().map(move |point| (row, point)));
    let points_of_rows: Vec<_> = points_of_rows().filter(|(_, point)| point.figure == figure.name).collect();
    let mut panels = Vec::new();
    for panel in distinct(points_of_rows.iter().map(|(_, point)| point.panel.as_str())) {
        let rows = points_of_rows.iter().filter(|(_, point)| point.panel == panel);
        let points = rows.flat_map(|(row, point)| points(figure.quantity, row, point));
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

/// Returns the points of a row, each with the name of its line.
fn points(quantity: Quantity, row: &Row, point: &FigurePoint) -> Vec<(String, (f64, f64))> {
    let one = |y: Option<f64>| y.map(|y| (point.line.clone(), (point.x, y))).into_iter().collect();
    match quantity {
        Quantity::Milliseconds => one(row.timing.as_ref().map(|timing| timing.median_ms)),
        Quantity::Megabytes => one(row.temp_bytes.filter(|&bytes| bytes > 0).map(|bytes| bytes as f64 / 1e6)),
        Quantity::TimesAsFast | Quantity::Profiled(_) => one(point.value),
        Quantity::Runs => {
            let times = row.timing.iter().flat_map(|timing| timing.times_ms.iter().copied());
            histogram(times.collect()).into_iter().map(|at| (point.line.clone(), at)).collect()
        }
        Quantity::Percent => {
            let all: f64 = row.phases.iter().map(|phase| phase.ms).sum();
            let part = |ms: f64| (point.x, if all > 0.0 { ms / all * 100.0 } else { 0.0 });
            row.phases.iter().map(|phase| (phase.name.clone(), part(phase.ms))).collect()
        }
    }
}

/// Returns the middle of each bin and the number of times in it.
fn histogram(times: Vec<f64>) -> Vec<(f64, f64)> {
    if times.is_empty() {
        return Vec::new();
    }
    let Range { start, end } = range(times.iter().copied());
    let width = (end - start) / BINS as f64;
    let num_in = |bin: usize| times.iter().filter(|&&time| ((time - start) / width) as usize == bin).count();
    (0..BINS).map(|bin| (start + (bin as f64 + 0.5) * width, num_in(bin) as f64)).collect()
}

/// Lines of points, in the order of their first ones, each along its axis; of points at one point the first.
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
    // A macro, because charts with different axes have different types.
    macro_rules! draw {
        ($y_axis:expr, $name:expr, $format:expr) => {{
            let mut chart = builder.build_cartesian_2d(across.log_scale(), $y_axis)?;
            chart
                .configure_mesh()
                .light_line_style(TRANSPARENT)
                .x_desc(figure.x_axis)
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
    let y_range = range(all().map(|point| point.1));
    // Leaves space above the lines for the legend.
    let y_range = y_range.start..y_range.end * (y_range.end / y_range.start).powf(0.5).max(1.5);
    match figure.quantity {
        Quantity::Runs => draw!(0f64..1.4 * all().map(|point| point.1).fold(1.0, f64::max), "runs", short),
        Quantity::Percent => draw!(0f64..140f64, "% of the time", |y: &f64| format!("{y:.0}")),
        Quantity::Profiled(name) => {
            draw!(0f64..all().map(|point| point.1).fold(f64::MIN_POSITIVE, f64::max) * 1.4, name, short)
        }
        Quantity::Milliseconds => draw!(y_range.log_scale(), "ms", short),
        Quantity::TimesAsFast => draw!(y_range.log_scale(), "times as fast as one core", short),
        Quantity::Megabytes => draw!(y_range.log_scale(), "MB beside the input", short),
    }
    Ok(())
}

/// Formats a number with up to three decimals.
fn short(y: &f64) -> String {
    let text = format!("{y:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns the range of the values, with a margin.
fn range(values: impl Iterator<Item = f64>) -> Range<f64> {
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
        let row = |ms, line: &str, across, panels: &[&str]| Row {
            timing: Some(Timing::of("wall", &[Duration::from_millis(ms)])),
            temp_bytes: Some(ms),
            phases: Phase::all([("sort", 1.0), ("filter", ms as f64)]),
            figure_points: panels
                .iter()
                .map(|panel| FigurePoint::new("time", panel, line, across).value(3.0))
                .collect(),
            ..Row::default()
        };
        let rows =
            [row(2, "cells", 10.0, &["a", "b"]), row(5, "cells", 1.0, &["a"]), row(3, "heaps", 1.0, &["a"])];
        for quantity in
            [Quantity::Milliseconds, Quantity::Megabytes, Quantity::Percent, Quantity::Profiled("% of hits")]
        {
            let figure = Figure { name: "time", x_axis: "n", quantity };
            let picture = draw(&figure, &rows).unwrap().unwrap();
            assert!(picture.contains("time, a") && picture.contains("time, b"), "{picture}");
            let line = if quantity == Quantity::Percent { "filter" } else { "heaps" };
            assert!(picture.contains(line), "{picture}");
        }
        let other = Figure { name: "memory", x_axis: "n", quantity: Quantity::Megabytes };
        assert!(draw(&other, &rows).unwrap().is_none());
        let points =
            [("a", 2.0), ("b", 1.0), ("a", 1.0), ("a", 2.0)].map(|(name, x)| (name.to_owned(), (x, x)));
        let expected = [("a".to_owned(), vec![(1.0, 1.0), (2.0, 2.0)]), ("b".to_owned(), vec![(1.0, 1.0)])];
        assert_eq!(lines(points.into()), expected);
    }
}
