//! Plots of throughput against size as SVG: one picture for each kind of work, one panel for each input, one line for each
//! system, and the copy bandwidth of the run as the upper bound.

mod chart;
mod figure;

use crate::report::{Report, Row};
use anyhow::{Context, Result, anyhow};
use chart::{COLUMNS, COPY, Drawn, KAURI, PANEL, distinct, swatch};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const RIVALS: [RGBColor; 3] = [RGBColor(200, 80, 40), RGBColor(90, 90, 200), RGBColor(150, 60, 150)];

/// Writes a picture for each kind of work that was measured at two or more sizes; for a published experiment, its figures.
///
/// # Errors
/// If the folder cannot be written.
pub fn write(report: &Report, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for item in report.figures {
        let path = folder.join(format!("{}.svg", file_name(item.name)));
        let picture = figure::draw(item, &report.rows).map_err(|error| anyhow!("{}: {error}", item.name))?;
        if let Some(picture) = picture {
            fs::write(&path, picture).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    if !report.figures.is_empty() {
        return Ok(());
    }
    let works: BTreeSet<&str> = report.rows.iter().map(|row| row.work.as_str()).collect();
    for work in works {
        let rows: Vec<&Row> = report.rows.iter().filter(|row| row.work == work).collect();
        let inputs = distinct(rows.iter().map(|row| row.input.as_str()));
        let is_line =
            |input: &&str| distinct(rows.iter().filter(|r| r.input == *input).map(|r| r.n)).len() > 1;
        let inputs: Vec<&str> = inputs.into_iter().filter(is_line).collect();
        if inputs.is_empty() {
            continue;
        }
        let path = folder.join(format!("{}.svg", file_name(work)));
        let picture = draw(work, &rows, &inputs, copy_bandwidth(report));
        let picture = picture.map_err(|error| anyhow!("{work}: {error}"))?;
        fs::write(&path, picture).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Returns the copy bandwidth of the run: bytes read and written a second.
fn copy_bandwidth(report: &Report) -> Option<f64> {
    let row = report.rows.iter().find(|row| row.work == "device copy")?;
    Some(row.bytes? as f64 / row.timing.as_ref()?.median_ms * 1e3)
}

fn draw(work: &str, rows: &[&Row], inputs: &[&str], copy: Option<f64>) -> Drawn<String> {
    let (columns, lines) = (inputs.len().min(COLUMNS), inputs.len().div_ceil(COLUMNS));
    let mut picture = String::new();
    {
        let size = (PANEL.0 * columns as u32, PANEL.1 * lines as u32);
        let area = SVGBackend::with_string(&mut picture, size).into_drawing_area();
        area.fill(&WHITE)?;
        for (panel, input) in area.split_evenly((lines, columns)).iter().zip(inputs) {
            let rows: Vec<&Row> = rows.iter().copied().filter(|row| row.input == *input).collect();
            draw_panel(panel, &format!("{work}, {input}"), &rows, copy)?;
        }
        area.present()?;
    }
    Ok(picture)
}

fn draw_panel(
    panel: &DrawingArea<SVGBackend<'_>, Shift>,
    title: &str,
    rows: &[&Row],
    copy: Option<f64>,
) -> Drawn<()> {
    let points = |row: &&&Row| {
        let seconds = row.timing.as_ref()?.median_ms / 1e3;
        Some((row.n as f64, row.items.unwrap_or(row.n) as f64 / seconds / 1e9))
    };
    // The throughput of a copy that moves the bytes per item of the row with the most bytes per item.
    let bytes_an_item = rows.iter().filter_map(|row| Some(row.bytes? as f64 / row.n as f64)).reduce(f64::max);
    let limit = copy.zip(bytes_an_item).map(|(bandwidth, bytes)| bandwidth / bytes / 1e9);

    let all: Vec<(f64, f64)> = rows.iter().filter_map(|row| points(&row)).collect();
    let (least, most) = all.iter().fold((f64::MAX, 0f64), |(least, most), p| (least.min(p.0), most.max(p.0)));
    let top = all.iter().map(|p| p.1).chain(limit).fold(0f64, f64::max) * 1.1;

    let mut chart = ChartBuilder::on(panel)
        .caption(title, ("sans-serif", 15))
        .margin(8)
        .x_label_area_size(36)
        .y_label_area_size(52)
        .build_cartesian_2d((least..most).log_scale(), 0f64..top)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc("items")
        .y_desc("G items/s")
        .x_label_formatter(&|n| format!("{n:.0e}"))
        .draw()?;
    if let Some(limit) = limit {
        let line = LineSeries::new([(least, limit), (most, limit)], COPY);
        chart.draw_series(line)?.label("copy bandwidth").legend(|at| swatch(at, COPY));
    }
    let mut rivals = RIVALS.iter().cycle();
    for system in distinct(rows.iter().map(|row| row.system.as_str())) {
        let (name, color) =
            if system.is_empty() { ("kauri", KAURI) } else { (system, *rivals.next().expect("a cycle")) };
        let mut line: Vec<(f64, f64)> =
            rows.iter().filter(|row| row.system == system).filter_map(|row| points(&row)).collect();
        line.sort_by(|a, b| a.0.total_cmp(&b.0));
        chart
            .draw_series(LineSeries::new(line.clone(), color.stroke_width(2)))?
            .label(name)
            .legend(move |at| swatch(at, color));
        chart.draw_series(line.into_iter().map(|at| Circle::new(at, 3, color.filled())))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(COPY)
        .draw()?;
    Ok(())
}

/// Returns the file name of a kind of work: `sort-pairs` for `sort pairs`.
fn file_name(work: &str) -> String {
    let words: Vec<&str> =
        work.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty()).collect();
    words.join("-")
}
