//! The experiments on joins of boxes that Løvik published (2020, chapters 4 and 6), with the published axes: times and memory of the
//! nested loop, the multi-layered grid and the sort-based filter as functions of the number of right boxes. Pairs are counted, in device
//! memory, by the wall clock.
//!
//! `--n` are the numbers of right boxes; published are 1e2 to 1e7. There are 1e5 left boxes, or fewer in proportion if all values of `--n`
//! are below 1e7. The thesis has the mean of 20 runs; the figures here have the median of up to 20 runs within a second, and the JSON file
//! has all runs.
//!
//! Phases are measured in further runs, which wait after each phase. The rival is `benches/rivals/thesis_boxes.cu`.

use crate::figures::{Figure, FigurePoint, Quantity};
use crate::measure::Effort;
use crate::points::cubes;
use crate::report::{Phase, Report, Row};
use crate::suites::{Settings, copy};
use kauri::device::{Buffer, Gpu, Stream, Workspace};
use kauri::join::BoxMethod;
use kauri::research::join::{BoxMethodOptions, BoxPhase, GridBuild, Streams, SweepAxis};
use kauri::{BoxJoin, Cartesian, Error, Result};
use std::collections::HashMap;
use std::time::Duration;

const fn figure(name: &'static str, x_axis: &'static str, quantity: Quantity) -> Figure {
    Figure { name, x_axis, quantity }
}

const OVER_RIGHTS: &str = "right boxes";
const NESTED: Figure = figure("4.1 nested loops", OVER_RIGHTS, Quantity::Milliseconds);
const GRID: Figure = figure("4.4 multi-layered grid", OVER_RIGHTS, Quantity::Milliseconds);
const DENSITY: Figure = figure("4.5 by density", OVER_RIGHTS, Quantity::Milliseconds);
const ALL: Figure = figure("4.6 methods", OVER_RIGHTS, Quantity::Milliseconds);
const PHASES: Figure = figure("4.6 phases", OVER_RIGHTS, Quantity::Percent);
const CELLS: Figure = figure("4.7 memory over cells", "length of a cell", Quantity::Megabytes);
const STREAMS: Figure = figure("4.7 memory of streams", "partitions", Quantity::Megabytes);
const PARTS: Figure = figure("4.8 memory of the grid", OVER_RIGHTS, Quantity::Megabytes);
const GRID_MEMORY: Figure = figure("4.8 memory of both sets", OVER_RIGHTS, Quantity::Megabytes);
const SORT_MEMORY: Figure = figure("4.10 memory of both sets", OVER_RIGHTS, Quantity::Megabytes);
const SORT: Figure = figure("4.11 sort-based filter", OVER_RIGHTS, Quantity::Milliseconds);
const TIMES: Figure = figure("6.2 run times", "ms", Quantity::Runs);
const FIGURES: [Figure; 12] =
    [NESTED, GRID, DENSITY, ALL, PHASES, CELLS, STREAMS, PARTS, GRID_MEMORY, SORT_MEMORY, SORT, TIMES];

/// The largest published number of boxes, and the left boxes of most figures.
const PUBLISHED: usize = 10_000_000;
const LEFT: usize = 100_000;
/// The right boxes and the runs of figure 6.2.
const RIGHT_OF_TIMES: usize = 10_000;
const RUNS_OF_TIMES: usize = 1000;
const RUNS: usize = 20;
/// A measurement ends with the run during which this time has passed.
const LIMIT: Duration = Duration::from_secs(1);
const DENSITIES: [f64; 3] = [0.1, 1.0, 10.0];
const CELL_LENGTHS: [f64; 6] = [0.0003, 0.001, 0.003, 0.01, 0.03, 0.1];
/// The cells of other figures, as long as the left boxes.
const CELL_LENGTH: f64 = 0.003;
const PARTITIONS: [u32; 7] = [1, 2, 4, 8, 16, 32, MOST_PARTITIONS];
const MOST_PARTITIONS: u32 = 64;

pub(super) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let Some(gpu) = settings.device.gpu() else { return Err(Error::NoDevice) };
    report.figures = &FIGURES;
    report.push(copy(gpu, settings.effort)?);
    let effort = Effort {
        runs: settings.effort.runs.min(RUNS),
        limit: settings.effort.limit.min(LIMIT),
        ..settings.effort
    };
    let most = settings.sizes.iter().copied().max().unwrap_or(0).min(PUBLISHED);
    let of_published = |len: usize| (len * most).div_ceil(PUBLISHED);
    let grid_bytes = (gpu.free_memory()? / 24).min(4 << 30);
    let mut bench = Bench { gpu, effort, seed: settings.seed, grid_bytes, report, counts: HashMap::new() };
    let num_left = of_published(LEFT);
    for &n in &settings.sizes {
        for density in DENSITIES {
            let sets = bench.sets::<2>([num_left, n], density)?;
            over_density(&mut bench, &sets)?;
            if density == 1.0 {
                over_options(&mut bench, &sets, n == most)?;
            }
        }
        of_dims::<3>(&mut bench, [num_left, n])?;
        of_dims::<4>(&mut bench, [num_left, n])?;
        of_dims::<5>(&mut bench, [num_left, n])?;
        for &num_left in settings.sizes.iter().filter(|&&len| len <= of_published(LEFT)) {
            memory_of_sets(&mut bench, [num_left, n])?;
        }
    }
    let sets = bench.sets::<2>([num_left, of_published(RIGHT_OF_TIMES)], 1.0)?;
    let limit = settings.effort.limit * 10;
    bench.effort = Effort { runs: RUNS_OF_TIMES, limit, ..settings.effort };
    let join = Join { name: ", nested loop, many runs".into(), ..Join::nested() };
    bench.count(&sets, &join, &[FigurePoint::new(TIMES.name, "", "", 0.0)])
}

/// Figures 4.1, 4.5 and 4.11.
fn over_density(bench: &mut Bench<'_>, sets: &Sets<2>) -> Result<()> {
    let (line, panel, n) = (&sets.density, &sets.density, sets.len as f64);
    let two = |method| format!("{method}, 2 dimensions");
    let point = |figure: &Figure, panel: &str, line: &str| FigurePoint::new(figure.name, panel, line, n);
    let mut plain = vec![point(&NESTED, &two("plain"), line)];
    let mut tiles = vec![point(&NESTED, &two("tiles"), line), point(&DENSITY, panel, "nested loop")];
    if sets.density == "density 1" {
        plain.push(point(&NESTED, "plain, density 1", "2 dimensions"));
        tiles.push(point(&NESTED, "tiles, density 1", "2 dimensions"));
    }
    bench.count(sets, &Join::plain(), &plain)?;
    bench.count(sets, &Join::nested(), &tiles)?;
    bench.count(sets, &Join::grid(CELL_LENGTH, MOST_PARTITIONS), &[point(&DENSITY, panel, "grid")])?;
    bench.count(sets, &Join::sort(), &[point(&SORT, "", line)])
}

/// Figures 4.4, 4.6 and 4.8, and 4.7 for the largest set.
fn over_options(bench: &mut Bench<'_>, sets: &Sets<2>, is_largest: bool) -> Result<()> {
    let n = sets.len as f64;
    for length in CELL_LENGTHS {
        let mut points = vec![FigurePoint::new(GRID.name, "cells", &length.to_string(), n)];
        if is_largest {
            points.push(FigurePoint::new(CELLS.name, "", "grid", length));
        }
        bench.count(sets, &Join::grid(length, MOST_PARTITIONS), &points)?;
    }
    for partitions in PARTITIONS {
        let line = format!("{partitions} partitions");
        let join = Join::grid(CELL_LENGTH, partitions);
        bench.count(sets, &join, &[FigurePoint::new(GRID.name, "partitions", &line, n)])?;
        if is_largest {
            let point = FigurePoint::new(STREAMS.name, "", "streams", partitions.into());
            bench.memory_of_phases(sets, &join, &[("streams", point)])?;
        }
    }
    let join = Join::grid(CELL_LENGTHS[0], MOST_PARTITIONS);
    let part = |name| (name, FigurePoint::new(PARTS.name, "", name, n));
    bench.memory_of_phases(sets, &join, &[part("grid"), part("probe"), part("streams")])?;

    let joins = [
        Join::plain(),
        Join::nested(),
        Join::grid(CELL_LENGTH, MOST_PARTITIONS),
        Join::fast_grid(Streams::Exact, false),
        Join::fast_grid(Streams::BitStrings, false),
        Join::fast_grid(Streams::Exact, true),
        Join::sort(),
        Join::cells(),
    ];
    for join in joins {
        let line = join.name.trim_start_matches(", ");
        let mut points = vec![FigurePoint::new(ALL.name, "", line, n)];
        if join.has_phases() {
            points.push(FigurePoint::new(PHASES.name, line, "", n));
        }
        bench.count(sets, &join, &points)?;
        bench.phases(sets, &join)?;
    }
    bench.count(sets, &Join::sort_of_least_overlap(), &[])
}

/// Figure 4.1, more dimensions.
fn of_dims<const D: usize>(bench: &mut Bench<'_>, lens: [usize; 2]) -> Result<()>
where
    [f32; D]: Cartesian<Coord = f32>,
{
    let (sets, line) = (bench.sets::<D>(lens, 1.0)?, format!("{D} dimensions"));
    let point = |panel| FigurePoint::new(NESTED.name, panel, &line, lens[1] as f64);
    bench.count(&sets, &Join::plain(), &[point("plain, density 1")])?;
    bench.count(&sets, &Join::nested(), &[point("tiles, density 1")])
}

/// Figures 4.8, right panel, and 4.10.
fn memory_of_sets(bench: &mut Bench<'_>, lens: [usize; 2]) -> Result<()> {
    let sets = bench.sets::<2>(lens, 1.0)?;
    for (figure, join) in
        [(GRID_MEMORY, Join::grid(CELL_LENGTHS[0], MOST_PARTITIONS)), (SORT_MEMORY, Join::sort())]
    {
        let line = format!("{:.0e} left", lens[0] as f64);
        let point = FigurePoint::new(figure.name, "", &line, lens[1] as f64);
        let effort = bench.effort;
        bench.effort = Effort { warm_up: 0, runs: 1, ..effort };
        let result = bench.count(&sets, &Join { name: format!("{}, one run", join.name), ..join }, &[point]);
        bench.effort = effort;
        result?;
    }
    Ok(())
}

/// A join to measure.
struct Join {
    /// The end of the name of its row.
    name: String,
    method: BoxMethod,
    options: BoxMethodOptions,
}

impl Join {
    fn new(name: &str, method: BoxMethod) -> Self {
        Self { name: format!(", {name}"), method, options: BoxMethodOptions::default() }
    }

    fn plain() -> Self {
        Self::new("plain nested loop", BoxMethod::PlainNestedLoop)
    }

    fn nested() -> Self {
        Self::new("nested loop", BoxMethod::NestedLoop)
    }

    fn cells() -> Self {
        Self::new("cells", BoxMethod::Cells)
    }

    fn sort() -> Self {
        Self::new("sort-based filter", BoxMethod::SortBased)
    }

    fn sort_of_least_overlap() -> Self {
        let join = Self::new("sort-based filter, axis of least overlap", BoxMethod::SortBased);
        Self { options: join.options.axis(SweepAxis::LeastOverlap), ..join }
    }

    /// The multi-layered grid as published.
    fn grid(cell_length: f64, partitions: u32) -> Self {
        let name = format!("multi-layered grid, cells {cell_length}, {partitions} partitions");
        let join = Self::new(&name, BoxMethod::MultiLayerGrid);
        let options = join.options.cell_length(cell_length).partitions(partitions);
        Self { options: options.build(GridBuild::Layers).streams(Streams::Fixed), ..join }
    }

    /// Without layers, and with cells as long as the left boxes.
    fn fast_grid(streams: Streams, z_order: bool) -> Self {
        let lists = if streams == Streams::Exact { "exact streams" } else { "bit strings" };
        let name = format!("grid by atomics, {lists}{}", if z_order { ", Z-order" } else { "" });
        let join = Self::new(&name, BoxMethod::MultiLayerGrid);
        Self { options: join.options.streams(streams).z_order(z_order), ..join }
    }

    fn has_phases(&self) -> bool {
        matches!(self.method, BoxMethod::MultiLayerGrid | BoxMethod::SortBased)
    }

    fn join(&self, grid_bytes: u64) -> BoxJoin<f32> {
        BoxJoin::intersects().method(self.method).options(self.options.grid_bytes(grid_bytes))
    }
}

/// Two sets on the device.
struct Sets<const D: usize> {
    left: Buffer<f32>,
    right: Buffer<f32>,
    /// Number of right boxes.
    len: usize,
    density: String,
    input: String,
}

/// The common part of all rows.
struct Bench<'a> {
    gpu: &'a Gpu,
    effort: Effort,
    seed: u64,
    /// Most bytes of a grid.
    grid_bytes: u64,
    report: &'a mut Report,
    /// The number of pairs by input and number of right boxes, to compare other methods with.
    counts: HashMap<(String, u64), u64>,
}

impl Bench<'_> {
    /// Makes equal cubes, as the rival does.
    fn sets<const D: usize>(&self, lens: [usize; 2], density: f64) -> Result<Sets<D>> {
        let stream = Stream::new(self.gpu)?;
        let upload = |set: usize| {
            let boxes = cubes::<f32, D>(lens[set], density, self.seed + set as u64);
            Buffer::from_slice(&stream, boxes.as_flattened().as_flattened(), "boxes")
        };
        let input = format!("f32 x {D}, density {density}, {} left", lens[0]);
        let density = format!("density {density}");
        Ok(Sets { left: upload(0)?, right: upload(1)?, len: lens[1], density, input })
    }

    /// Adds points to the row of a join, which is measured once.
    fn count<const D: usize>(&mut self, sets: &Sets<D>, join: &Join, points: &[FigurePoint]) -> Result<()>
    where
        [f32; D]: Cartesian<Coord = f32>,
    {
        let (work, n) = (format!("boxes counted{}", join.name), sets.len as u64);
        if let Some(row) = self.row(&work, sets) {
            row.figure_points.extend_from_slice(points);
            return Ok(());
        }
        let row = Row { work, input: sets.input.clone(), n, ..Row::default() };
        // A separate handle measures the memory of the join.
        let gpu = self.gpu.with_memory_limit(u64::MAX);
        let (stream, mut workspace) = (Stream::new(&gpu)?, Workspace::new(&gpu));
        let mut count = 0;
        let timing = self.effort.wall(|| {
            count = join.join(self.grid_bytes).count_on::<[f32; D]>(
                &stream,
                &mut workspace,
                &sets.left,
                Some(&sets.right),
            )?;
            Ok(())
        });
        let mut row = match timing {
            Ok(timing) => {
                let bytes = gpu.memory_use().peak_bytes;
                Row { timing: Some(timing), items: Some(count), temp_bytes: Some(bytes), ..row }
            }
            Err(error @ (Error::OutOfMemory { .. } | Error::ResultTooLarge { .. })) => {
                Row { note: Some(format!("left out: {error}")), ..row }
            }
            Err(error) => return Err(error),
        };
        if row.timing.is_some() {
            let expected = *self.counts.entry((sets.input.clone(), n)).or_insert(count);
            assert_eq!(count, expected, "methods disagree: {}, {}, {n}", row.work, row.input);
            row.check = Some("as by the other methods");
        }
        row.figure_points.extend_from_slice(points);
        self.report.push(row);
        Ok(())
    }

    /// Adds the phases to the row of a join that has them.
    fn phases<const D: usize>(&mut self, sets: &Sets<D>, join: &Join) -> Result<()>
    where
        [f32; D]: Cartesian<Coord = f32>,
    {
        if !join.has_phases() {
            return Ok(());
        }
        let phases = self.effort.repeat(|| self.run_in_phases(sets, join))?;
        let median = |i: usize| {
            let mut ms: Vec<_> = phases.iter().map(|run| run[i].duration.as_secs_f64() * 1e3).collect();
            ms.sort_by(f64::total_cmp);
            Phase { name: phases[0][i].name.to_owned(), ms: ms[ms.len() / 2] }
        };
        let medians = (0..phases[0].len()).map(median).collect();
        if let Some(row) = self.row(&format!("boxes counted{}", join.name), sets) {
            row.phases = medians;
        }
        Ok(())
    }

    /// Adds a row with the memory of each of some phases; the grid is that of the phases that build it.
    fn memory_of_phases<const D: usize>(
        &mut self,
        sets: &Sets<D>,
        join: &Join,
        parts: &[(&str, FigurePoint)],
    ) -> Result<()>
    where
        [f32; D]: Cartesian<Coord = f32>,
    {
        let phases = self.run_in_phases(sets, join)?;
        for (part, point) in parts {
            let is_part =
                |name| if *part == "grid" { matches!(name, "build" | "combine") } else { name == *part };
            let bytes = phases.iter().filter(|phase| is_part(phase.name)).map(|phase| phase.bytes).sum();
            self.report.push(Row {
                work: format!("memory of the {part}{}", join.name),
                input: sets.input.clone(),
                n: sets.len as u64,
                temp_bytes: Some(bytes),
                figure_points: vec![point.clone()],
                ..Row::default()
            });
        }
        Ok(())
    }

    fn run_in_phases<const D: usize>(&self, sets: &Sets<D>, join: &Join) -> Result<Vec<BoxPhase>>
    where
        [f32; D]: Cartesian<Coord = f32>,
    {
        let (stream, mut workspace) = (Stream::new(self.gpu)?, Workspace::new(self.gpu));
        // The first run allocates the memory.
        let mut run = || {
            let (left, right) = (&sets.left, Some(&sets.right));
            join.join(self.grid_bytes).count_in_phases_on::<[f32; D]>(&stream, &mut workspace, left, right)
        };
        run()?;
        Ok(run()?.1)
    }

    fn row<const D: usize>(&mut self, work: &str, sets: &Sets<D>) -> Option<&mut Row> {
        let is_it = |row: &&mut Row| {
            row.is_kauri() && row.work == work && row.input == sets.input && row.n == sets.len as u64
        };
        self.report.rows.iter_mut().find(is_it)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::Hardware;
    use crate::plots;
    use kauri::Device;
    use kauri::device::SimOptions;

    /// Small sets in the simulator, with little memory: rows of every figure, compared with each other, and their plots.
    #[test]
    fn figures_of_small_sets() {
        let device = Device::sim(SimOptions::default()).unwrap();
        let device = Device::from_gpu(device.gpu().unwrap().with_memory_limit(64 << 20));
        let effort = Effort { warm_up: 0, ..Effort::new(1, Duration::ZERO) };
        let settings = Settings { device, sizes: vec![1, 90], effort, seed: 1, models: Vec::new() };
        let mut report = Report::new("box-join-thesis", Hardware::of(&settings.device), 1);
        run(&settings, &mut report).unwrap();
        let folder = std::env::temp_dir().join(format!("kauri-box-figures-{}", std::process::id()));
        plots::write(&report, &folder).unwrap();
        let pictures: Vec<_> = std::fs::read_dir(&folder).unwrap().collect();
        assert_eq!(pictures.len(), FIGURES.len());
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(report.rows.iter().all(|row| row.note.is_none()));
        let with_phases = report.rows.iter().filter(|row| !row.phases.is_empty()).count();
        assert_eq!(with_phases, 2 * 5);
    }
}
