//! The experiment of Chang, Seo and Ihm: an animated mesh, whose tree is rebuilt for each frame. Measures each stage for all
//! combinations of the three variants of large nodes and the layout of candidates.

use super::{Resident, Settings, copy, meshes};
use crate::figures::{Figure, FigurePoint, Quantity};
use crate::measure::Timing;
use crate::report::{Phase, Report, Row};
use kauri::device::Stream;
use kauri::mesh::Motion;
use kauri::research::sah::{CandidateLayout, StagesOptions};
use kauri::sah::{SahOptions, SahTree};
use kauri::{Error, Result};
use std::time::Instant;

/// Frames of a motion.
const FRAMES: usize = 8;

const fn figure(name: &'static str) -> Figure {
    Figure { name, x_axis: "triangles", quantity: Quantity::Milliseconds }
}

/// The choices for large nodes, and where small nodes keep their candidates.
const CHOICES: &str = "choices for large nodes";
const LAYOUTS: &str = "layouts of candidates";
const FIGURES: [Figure; 2] = [figure(CHOICES), figure(LAYOUTS)];

/// Returns the points of a row in the figures. The figure of choices has the rows of the first layout, the figure of layouts those of the first
/// choices.
fn figure_points(
    name: &str,
    num_triangles: usize,
    variant: usize,
    layout: (usize, &str),
    work: &str,
) -> Vec<FigurePoint> {
    let point = |figure, line: &str| FigurePoint::new(figure, name, line, num_triangles as f64);
    let choices = (layout.0 == 0).then(|| point(CHOICES, work));
    choices.into_iter().chain((variant == 0).then(|| point(LAYOUTS, layout.1))).collect()
}

pub(super) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let Some(gpu) = settings.device.gpu() else { return Err(Error::NoDevice) };
    let stream = Stream::new(gpu)?;
    report.figures = &FIGURES;
    report.push(copy(gpu, settings.effort)?);
    for (name, mesh) in meshes(settings)? {
        let mut moved = mesh.clone();
        let mut frames = Vec::new();
        for frame in 0..FRAMES {
            Motion::Waves.apply(&mesh, frame as f64 / FRAMES as f64, &mut moved)?;
            frames.push(Resident::new(&stream, &moved)?);
        }
        let default = "all atomics, shuffles; small nodes in shared memory".to_owned();
        let points = [CHOICES, LAYOUTS]
            .map(|figure| FigurePoint::new(figure, &name, "kauri's default", mesh.len() as f64));
        let mut variants = vec![(default, StagesOptions::default(), points.to_vec())];
        let layouts = [
            ("masks apart", CandidateLayout::Arrays),
            ("masks apart, by the read-only path", CandidateLayout::ReadOnlyMasks),
            ("masks in records", CandidateLayout::Records),
        ];
        for (number, (layout, candidates)) in layouts.into_iter().enumerate() {
            for variant in 0..8 {
                let [sort_by_scans, boxes_by_reductions, by_shared_memory] =
                    [0, 1, 2].map(|bit| variant >> bit & 1 == 1);
                let which = |no: &'static str, yes: &'static str, is: bool| if is { yes } else { no };
                let choices = format!(
                    "sort by {}, boxes by {}, {}",
                    which("atomics", "scans", sort_by_scans),
                    which("atomics", "reductions", boxes_by_reductions),
                    which("shuffles", "shared memory", by_shared_memory),
                );
                let points = figure_points(&name, mesh.len(), variant, (number, layout), &choices);
                let stages = StagesOptions {
                    sort_by_scans,
                    boxes_by_reductions,
                    by_shared_memory,
                    small_by_levels: true,
                    candidates,
                    ..StagesOptions::default()
                };
                variants.push((format!("{choices}, {layout}"), stages, points));
            }
        }
        for (work, stages, figure_points) in variants {
            let options = SahOptions::default().stages(stages);
            let mut tree = SahTree::build_on(&stream, frames[0].mesh(), &options)?;
            let mut frame = 0;
            let times = settings.effort.repeat(|| {
                frame = (frame + 1) % FRAMES;
                let start = Instant::now();
                tree.rebuild_on(&stream, frames[frame].mesh())?;
                Ok(start.elapsed())
            })?;
            // Once more with waits after each step of large nodes, for the times of boxes and sort.
            let options = SahOptions::default().stages(StagesOptions { time_steps: true, ..stages });
            let mut tree = SahTree::build_on(&stream, frames[0].mesh(), &options)?;
            let phases = settings.effort.repeat(|| {
                frame = (frame + 1) % FRAMES;
                tree.rebuild_on(&stream, frames[frame].mesh())?;
                Ok(tree.stats().phases.clone())
            })?;
            // All runs have the same phases.
            let median = |i: usize| {
                let times: Vec<_> = phases.iter().map(|of_run| of_run[i].duration).collect();
                Timing::of("wall", &times).median_ms
            };
            let phases = (0..phases[0].len())
                .map(|i| Phase { name: phases[0][i].name.to_owned(), ms: median(i) })
                .collect();
            report.push(Row {
                work,
                input: name.clone(),
                n: mesh.len() as u64,
                timing: Some(Timing::of("wall", &times)),
                items: Some(mesh.len() as u64),
                phases,
                figure_points,
                ..Row::default()
            });
        }
    }
    Ok(())
}
