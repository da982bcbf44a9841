//! The published experiment of Robinson: builds of balanced trees over points of four coordinates, by phase and by number of warps, from
//! device memory, and from and to page-locked and pageable host memory; the variants of Robinson's builder; Brown's builder on the CPU by
//! number of threads. On the CPU the suite has only Brown's builder.

use crate::figures::{Figure, FigurePoint, Quantity};
use crate::measure::Timing;
use crate::points;
use crate::report::{Report, Row};
use crate::suites::{Settings, copy};
use kauri::balanced::{BalancedKdTree, BalancedOptions};
use kauri::device::{Buffer, PinnedBuffer, Stream, Workspace};
use kauri::research::balanced::BuildAlgorithm;
use kauri::{Device, Error, Point, Result, Stats};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::thread;
use std::time::Duration;

/// Number of points of the published experiment.
const PUBLISHED: usize = 1 << 24;
/// The phases of a build after the copy of the points to the device.
const PHASES: [&str; 3] = ["sort", "dedupe", "partition"];
/// The time of the phases by the number of warps of Robinson's builder, or of threads of Brown's.
const FIGURES: [Figure; 2] = [
    Figure { name: "warps", x_axis: "warps", quantity: Quantity::Milliseconds },
    Figure { name: "threads of the CPU", x_axis: "threads", quantity: Quantity::Milliseconds },
];

pub(super) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    report.figures = &FIGURES;
    let Some(gpu) = settings.device.gpu() else {
        return settings.sizes.iter().try_for_each(|&n| {
            let points = points::uniform::<f32, 4>(n, settings.seed);
            brown(Bench::new(settings, "f32 x 4, uniform".to_owned(), &points, report))
        });
    };
    report.push(copy(gpu, settings.effort)?);
    for &n in &settings.sizes {
        // Fewer dimensions where the published four do not fit in device memory.
        match n {
            0..400_000_000 => of_dims::<4>(settings, n, report)?,
            400_000_000..800_000_000 => of_dims::<3>(settings, n, report)?,
            _ => of_dims::<2>(settings, n, report)?,
        }
        if n == 100_000_000 {
            of_dims::<3>(settings, n, report)?;
        }
    }
    Ok(())
}

fn of_dims<const D: usize>(settings: &Settings, n: usize, report: &mut Report) -> Result<()> {
    let points = points::uniform::<f32, D>(n, settings.seed);
    let mut bench = Bench::new(settings, format!("f32 x {D}, uniform"), &points, report);
    let options = BalancedOptions::default();
    bench.builds("balanced", &options)?;
    bench.on_device("balanced", &options)?;
    if n > PUBLISHED {
        return Ok(());
    }
    let robinson = options.clone().algorithm(BuildAlgorithm::Robinson);
    bench.builds("Robinson", &robinson)?;
    bench.on_device("Robinson", &robinson)?;
    for warps in (5..=16).step_by(2).map(|log| 1 << log) {
        bench.place = Some((FIGURES[0].name, f64::from(warps)));
        bench.builds(&format!("Robinson, {warps} warps"), &robinson.clone().warps(warps))?;
    }
    bench.place = None;
    bench.builds("Robinson, without coalescing buffers", &robinson.clone().direct_stores(true))?;
    let sequential = robinson.clone().sequential_compactions(true);
    bench.builds("Robinson, one compaction after the other", &sequential)?;
    let Bench { input, report, .. } = bench;
    brown(Bench::new(settings, input.clone(), &points, report))?;
    let lattice: Vec<_> = points.iter().map(|point| point.map(|x| (x * 30.0).floor())).collect();
    let many_equal = "balanced, many equal coordinates and points";
    let mut bench = Bench::new(settings, input, &lattice, report);
    bench.builds(many_equal, &options)?;
    bench.on_device(many_equal, &options)?;

    // Integers of 32 bits. Those of type `i64` become `f64` on the host, and a GPU reads `f64`.
    let integers: Vec<_> =
        points.iter().map(|point| point.map(|x| ((x - 0.5) * 4_294_967_296.0) as i32)).collect();
    let input = format!("i32 x {D}, uniform");
    let mut bench = Bench::new(settings, input, &integers, bench.report);
    bench.builds("balanced", &options)?;
    bench.on_device("balanced", &options)?;
    let integers: Vec<_> = integers.iter().map(|point| point.map(i64::from)).collect();
    let input = format!("i64 x {D}, uniform");
    let mut bench = Bench::new(settings, input, &integers, bench.report);
    bench.builds("balanced", &options)?;
    bench.on_device("balanced", &options)
}

/// Measures Brown's builder on the CPU with each number of threads that the machine has.
fn brown<P: Point>(mut bench: Bench<'_, P>) -> Result<()> {
    bench.device = Device::cpu();
    let most = thread::available_parallelism().map_or(1, usize::from);
    for threads in [1, 2, 4, 8].into_iter().filter(|&threads| threads <= most) {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build();
        bench.pool = Some(pool.expect("the system starts threads"));
        bench.place = Some((FIGURES[1].name, threads as f64));
        bench.builds(&format!("Brown, threads: {threads}"), &BalancedOptions::default())?;
    }
    Ok(())
}

/// The state that the rows of one input share.
struct Bench<'a, P> {
    settings: &'a Settings,
    input: String,
    points: &'a [P],
    report: &'a mut Report,
    /// The device that [`builds`](Bench::builds) builds on.
    device: Device,
    /// The CPU threads that build; `None` for all.
    pool: Option<ThreadPool>,
    /// The figure of the next builds, and their place on its x axis.
    place: Option<(&'static str, f64)>,
}

impl<'a, P: Point> Bench<'a, P> {
    fn new(settings: &'a Settings, input: String, points: &'a [P], report: &'a mut Report) -> Self {
        Self { settings, input, points, report, device: settings.device.clone(), pool: None, place: None }
    }

    fn push(&mut self, work: &str, row: Row) {
        let n = self.points.len() as u64;
        self.report.push(Row { work: work.to_owned(), input: self.input.clone(), n, items: Some(n), ..row });
    }

    /// Runs work on the threads.
    fn on_threads<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.pool {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }

    /// Measures the phases of a build over host memory and their sum, and the check of the tree.
    fn builds(&mut self, work: &str, options: &BalancedOptions) -> Result<()> {
        let (effort, points, device) = (self.settings.effort, self.points, &self.device);
        let mut tree = None;
        let runs = effort.repeat(|| {
            // Memory holds one tree at a time.
            tree = None;
            let built = self.on_threads(|| BalancedKdTree::build(device, points, options))?;
            let stats = built.stats().clone();
            tree = Some(built);
            Ok(stats)
        })?;
        let verify = match &tree {
            Some(tree) => effort.wall(|| self.on_threads(|| tree.verify()))?,
            None => unreachable!("at least one run counts"),
        };
        let of = |stats: &Stats, names: &[&str]| -> Duration {
            let phases = stats.phases.iter().filter(|phase| names.contains(&phase.name));
            phases.map(|phase| phase.duration).sum()
        };
        let mut push = |what: &str, names: &[&str]| {
            let times: Vec<_> = runs.iter().map(|stats| of(stats, names)).collect();
            let timing = Some(Timing::of("wall", &times));
            let temp_bytes = runs.first().map(|stats| stats.temp_bytes);
            let at = |(figure, x)| FigurePoint::new(figure, "", what, x);
            let place = self.place.filter(|_| PHASES.contains(&names[0]));
            let figure_points = place.map(at).into_iter().collect();
            let row = Row { timing, temp_bytes, figure_points, check: Some("verify"), ..Row::default() };
            self.push(&format!("{work}: {what}"), row);
        };
        push("init", &["init"]);
        PHASES.into_iter().for_each(|phase| push(phase, &[phase]));
        push("sort, dedupe and partition", &PHASES);
        self.push(&format!("{work}: verify"), Row { timing: Some(verify), ..Row::default() });
        Ok(())
    }

    /// Measures a build from device memory to device memory, a build from and to page-locked host memory with its copies, and a build from
    /// and to pageable host memory. The workspace and the tree are reused. Compares the tree with one over host memory.
    fn on_device(&mut self, work: &str, options: &BalancedOptions) -> Result<()> {
        let Self { settings, points, .. } = *self;
        let Some(gpu) = settings.device.gpu() else { return Err(Error::NoDevice) };
        let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
        let effort = settings.effort;
        let mut pinned = PinnedBuffer::<P::Coord>::zeroed(gpu, points.len() * P::DIMS, "points")?;
        pinned.copy_from_slice(&P::coordinates(points, "point")?);
        let mut coords = Buffer::from_slice(&stream, &pinned, "points")?;
        let mut tree = BalancedKdTree::<P>::build_on(&stream, &mut workspace, &coords, options)?;
        let mut medians = Buffer::uninitialized(gpu, (1 << tree.num_levels()) - 1, "medians")?;
        let mut pinned_medians = PinnedBuffer::<u32>::zeroed(gpu, medians.len(), "medians")?;

        let temp_bytes = Some(workspace.bytes());
        let timing = effort.events(&stream, || tree.rebuild_on(&stream, &mut workspace, &coords, options))?;
        tree.verify()?;
        let row = Row { timing: Some(timing), temp_bytes, check: Some("verify"), ..Row::default() };
        self.push(&format!("{work}: build on the device"), row);
        let mut push = |what: &str, timing| {
            self.push(&format!("{work}: {what}"), Row { timing: Some(timing), ..Row::default() });
        };
        push("points from pinned memory", effort.wall(|| coords.copy_from_slice(&stream, &pinned))?);
        let timing = effort.wall(|| {
            tree.medians_on(&stream, &mut medians)?;
            medians.copy_to_slice(&stream, &mut pinned_medians)
        })?;
        push("nodes to pinned memory", timing);
        let timing = effort.wall(|| {
            coords.copy_from_slice(&stream, &pinned)?;
            tree.rebuild_on(&stream, &mut workspace, &coords, options)?;
            tree.medians_on(&stream, &mut medians)?;
            medians.copy_to_slice(&stream, &mut pinned_medians)
        })?;
        push("from and to pinned memory", timing);
        // The device has memory for only one build over many points.
        drop((tree, coords, workspace));
        let build = || BalancedKdTree::build(&settings.device, points, options);
        let timing = effort.wall(|| build()?.medians())?;
        push("from and to pageable memory", timing);
        let tree = build()?;
        push("nodes to pageable memory", effort.wall(|| tree.medians())?);
        push("nodes with children", effort.wall(|| tree.nodes())?);
        assert!(tree.medians()? == *pinned_medians, "{work}: trees over host and device memory differ");
        Ok(())
    }
}
