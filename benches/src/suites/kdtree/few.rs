//! Brute force and the walk over buckets where there are few points: which of them the dispatcher takes.

use super::Settings;
use crate::points;
use crate::report::{Report, Row};
use kauri::KdTree;
use kauri::KdTreeOptions;
use kauri::Result;
use kauri::device::{Buffer, Gpu, Stream, Workspace};
use kauri::kdtree::{DeviceQueries, QueryOptions, Traversal};

const NUM_QUERIES: usize = 1 << 20;

/// Many queries to trees of 16 to 2048 points.
pub(super) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let Some(gpu) = settings.device.gpu() else { return Ok(()) };
    for levels in 4..=11 {
        of_points(settings, gpu, 1 << levels, report)?;
    }
    Ok(())
}

fn of_points(settings: &Settings, gpu: &Gpu, n: usize, report: &mut Report) -> Result<()> {
    let points = points::uniform::<f32, 3>(n, settings.seed);
    let queries = points::uniform::<f32, 3>(NUM_QUERIES, settings.seed + 1);
    let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
    let coords = Buffer::from_slice(&stream, points.as_flattened(), "points")?;
    let queries = Buffer::from_slice(&stream, queries.as_flattened(), "queries")?;
    let options = KdTreeOptions::default();
    let tree = KdTree::<[f32; 3]>::build_on(&stream, &mut workspace, &coords, &options)?;
    for k in [1, 8, 32, 100] {
        let mut ids = Buffer::uninitialized(gpu, NUM_QUERIES * k, "ids of neighbours")?;
        let mut dist2 = Buffer::uninitialized(gpu, NUM_QUERIES * k, "distances of neighbours")?;
        for (way, traversal) in [("buckets", Traversal::Buckets), ("brute force", Traversal::BruteForce)] {
            let prepared = tree.prepare(&stream, &QueryOptions::default().traversal(traversal))?;
            let timing = settings.effort.events(&stream, || {
                let queries = DeviceQueries::Coordinates(&queries);
                tree.nearest_on(&stream, &mut workspace, queries, k, &prepared, &mut ids, &mut dist2)
            })?;
            report.push(Row {
                work: format!("nearest k={k} of 1M, {way}"),
                input: "f32 x 3, uniform".to_owned(),
                n: n as u64,
                timing: Some(timing),
                items: Some(NUM_QUERIES as u64),
                ..Row::default()
            });
        }
    }
    Ok(())
}
