//! R-trees in device memory, in comparison with k-d trees over the same points: builds, nearest queries in random order, along a curve and
//! of all points; then changes by batches, and the queries of a changed tree.
//!
//! A row of changes has the time of each batch by the clock of the host, which waits for the device: the median, the least and the
//! greatest.

use super::{Settings, Suite, copy, unless_too_large};
use crate::measure::Timing;
use crate::points::{self, Number};
use crate::report::{Report, Row};
use kauri::device::{Buffer, Gpu, Stream, Workspace};
use kauri::query::{DeviceIndex, DeviceQueries, QueryOptions};
use kauri::{KdTree, KdTreeOptions, Point, RTree, Result};
use std::time::Instant;

/// The suites.
pub const SUITES: [(&str, Suite); 1] = [("rtree", run)];

/// Points of a batch.
const BATCHES: [usize; 2] = [100_000, 1_000_000];
/// Most batches of a row.
const MAX_BATCHES: usize = 20;

/// The k-d tree, in the column of systems.
const KD_TREE: &str = "kauri, k-d tree";

fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let Some(gpu) = settings.device.gpu() else { return Ok(()) };
    report.push(copy(gpu, settings.effort)?);
    for &n in &settings.sizes {
        type Make = fn(usize, u64) -> Vec<[f32; 3]>;
        let inputs = [
            ("uniform", points::uniform as Make),
            ("clustered", points::clustered),
            ("duplicated", points::duplicated),
            ("lidar-like", points::lidar),
        ];
        for (how, make) in inputs {
            // Queries that are at no point.
            let make_queries = if how == "duplicated" { points::uniform } else { make };
            let queries = make_queries(n, settings.seed + 1);
            unless_too_large(on_input(settings, gpu, how, make(n, settings.seed), queries, report))?;
            for batch in BATCHES.into_iter().filter(|&batch| batch <= n && how != "duplicated") {
                let points = [make(n, settings.seed), make(n, settings.seed + 2)];
                unless_too_large(changes(settings, gpu, how, points, batch, report))?;
            }
        }
        let (points, queries) = (points::uniform(n, settings.seed), points::uniform(n, settings.seed + 1));
        unless_too_large(on_input::<f32, 2>(settings, gpu, "uniform", points, queries, report))?;
        let (points, queries) = (points::uniform(n, settings.seed), points::uniform(n, settings.seed + 1));
        unless_too_large(on_input::<f64, 3>(settings, gpu, "uniform", points, queries, report))?;
    }
    Ok(())
}

fn on_input<C: Number, const D: usize>(
    settings: &Settings,
    gpu: &Gpu,
    how: &str,
    points: Vec<[C; D]>,
    mut queries: Vec<[C; D]>,
    report: &mut Report,
) -> Result<()>
where
    [C; D]: Point<Coord = C>,
{
    let stream = Stream::new(gpu)?;
    let coords = Buffer::from_slice(&stream, points.as_flattened(), "points")?;
    let mut workspace = Workspace::new(gpu);
    let mut tree = RTree::<[C; D]>::build_on(&stream, &mut workspace, &coords)?;
    let options = KdTreeOptions::default();
    let mut other = KdTree::<[C; D]>::build_on(&stream, &mut workspace, &coords, &options)?;
    let mut push = |system: &str, work: &str, timing: Timing, row: Row| {
        report.push(Row {
            system: system.to_owned(),
            work: work.to_owned(),
            input: format!("{} x {D}, {how}", C::NAME),
            n: points.len() as u64,
            timing: Some(timing),
            items: Some(points.len() as u64),
            ..row
        });
    };
    let timing = settings.effort.events(&stream, || tree.rebuild_on(&stream, &mut workspace, &coords))?;
    let temp_bytes = Some(tree.stats().temp_bytes);
    push("", "build", timing, Row { temp_bytes, ..Row::default() });
    let rebuild = || other.rebuild_on(&stream, &mut workspace, &coords, &options);
    let timing = settings.effort.events(&stream, rebuild)?;
    push(KD_TREE, "build", timing, Row::default());
    for k in [8, 32] {
        let entries = points.len() * k;
        let mut ids = Buffer::uninitialized(gpu, entries, "ids of neighbors")?;
        let mut dist2 = Buffer::uninitialized(gpu, entries, "distances of neighbors")?;
        let prepared = tree.prepare(&stream, &QueryOptions::default())?;
        let own = DeviceQueries::SelfQuery { include_self: true };
        let timing = settings.effort.events(&stream, || {
            tree.rebuild_on(&stream, &mut workspace, &coords)?;
            tree.nearest_on(&stream, &mut workspace, own, k, &prepared, &mut ids, &mut dist2)
        })?;
        push("", &format!("build, nearest k={k} of all points"), timing, Row::default());
    }
    for (order, options) in
        [("", QueryOptions::default()), (", along a curve", QueryOptions::default().coherent())]
    {
        if !order.is_empty() {
            super::kdtree::along_curve(&mut queries);
        }
        let queries = Buffer::from_slice(&stream, queries.as_flattened(), "queries")?;
        for k in [1, 8, 32] {
            let work = format!("nearest k={k}{order}");
            let (ids, timing) = nearest(settings, &stream, &tree, &queries, k, &options)?;
            let (expected, other_timing) = nearest(settings, &stream, &other, &queries, k, &options)?;
            assert!(ids == expected, "{work}: the trees disagree");
            push("", &work, timing, Row { check: Some("as by the k-d tree"), ..Row::default() });
            push(KD_TREE, &work, other_timing, Row::default());
        }
    }
    Ok(())
}

/// Measures nearest queries, and returns the ids of the first.
fn nearest<C: Number, I: DeviceIndex<StoredCoord = C>>(
    settings: &Settings,
    stream: &Stream,
    tree: &I,
    queries: &Buffer<C>,
    k: usize,
    options: &QueryOptions<I::Point>,
) -> Result<(Vec<u32>, Timing)> {
    let gpu = stream.gpu();
    let entries = queries.len() / <I::Point as Point>::DIMS * k;
    let mut ids = Buffer::uninitialized(gpu, entries, "ids of neighbors")?;
    let mut dist2 = Buffer::uninitialized(gpu, entries, "distances of neighbors")?;
    let (prepared, mut workspace) = (tree.prepare(stream, options)?, Workspace::new(gpu));
    let queries = DeviceQueries::Coordinates(queries);
    let timing = settings.effort.events(stream, || {
        tree.nearest_on(stream, &mut workspace, queries, k, &prepared, &mut ids, &mut dist2)
    })?;
    Ok((ids.front_to_vec(stream, entries.min(1_000_000))?, timing))
}

/// For each batch, inserts new points and removes as many of the oldest. Measures both, and queries to the tree after the last batch.
fn changes(
    settings: &Settings,
    gpu: &Gpu,
    how: &str,
    [points, more]: [Vec<[f32; 3]>; 2],
    batch: usize,
    report: &mut Report,
) -> Result<()> {
    let (n, num_batches) = (points.len(), (points.len() / batch).min(MAX_BATCHES));
    let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
    let upload = |points: &[[f32; 3]]| Buffer::from_slice(&stream, points.as_flattened(), "points");
    let mut tree = RTree::<[f32; 3]>::build_on(&stream, &mut workspace, &upload(&points)?)?;
    let (mut inserts, mut removals) = (Vec::new(), Vec::new());
    for i in 0..num_batches {
        let range = i * batch..(i + 1) * batch;
        let oldest: Vec<u32> = range.clone().map(|id| id as u32).collect();
        let (new, ids) = (upload(&more[range])?, Buffer::from_slice(&stream, &oldest, "ids")?);
        stream.synchronize()?;
        let begin = Instant::now();
        tree.insert_on(&stream, &mut workspace, &new)?;
        stream.synchronize()?;
        inserts.push(begin.elapsed());
        let begin = Instant::now();
        tree.remove_on(&stream, &mut workspace, &ids)?;
        stream.synchronize()?;
        removals.push(begin.elapsed());
    }
    // The first batches load kernels and take memory.
    let first = 2.min(num_batches - 1);
    let mut push = |system: &str, work: String, timing: Timing, items: usize, row: Row| {
        report.push(Row {
            system: system.to_owned(),
            work,
            input: format!("f32 x 3, {how}"),
            n: n as u64,
            timing: Some(timing),
            items: Some(items as u64),
            ..row
        });
    };
    for (what, times) in [("insert", &inserts), ("remove", &removals)] {
        let temp_bytes = Some(workspace.bytes());
        let timing = Timing::of("wall", &times[first..]);
        push("", format!("{what} {batch}"), timing, batch, Row { temp_bytes, ..Row::default() });
    }
    let remaining = [&points[num_batches * batch..], &more[..num_batches * batch]].concat();
    let coords = upload(&remaining)?;
    let other = KdTree::<[f32; 3]>::build_on(&stream, &mut workspace, &coords, &KdTreeOptions::default())?;
    let (queries, options) = (upload(&points)?, QueryOptions::default());
    for k in [1, 8] {
        let (ids, timing) = nearest(settings, &stream, &tree, &queries, k, &options)?;
        let (expected, other_timing) = nearest(settings, &stream, &other, &queries, k, &options)?;
        let renamed = expected.iter().map(|id| id + (num_batches * batch) as u32);
        assert!(ids.iter().copied().eq(renamed), "k = {k}: the trees disagree");
        let work = || format!("nearest k={k} after {num_batches} x {batch} in and out");
        push("", work(), timing, n, Row { check: Some("as by the k-d tree"), ..Row::default() });
        push(KD_TREE, work(), other_timing, n, Row::default());
    }
    Ok(())
}
