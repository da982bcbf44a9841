//! Measurements for the rules that choose a traversal: brute force or buckets for few points, sorted or unsorted queries for few queries.

use super::Settings;
use crate::points;
use crate::report::{Report, Row};
use kauri::device::{Buffer, Gpu, Stream, Workspace};
use kauri::query::{DeviceIndex, DeviceQueries, QueryOptions, Traversal};
use kauri::{KdTree, KdTreeOptions, Result};

pub(super) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let Some(gpu) = settings.device.gpu() else { return Ok(()) };
    for levels in 4..=11 {
        let queries = queries(settings, 1 << 20);
        compare::<3>(settings, gpu, 1 << levels, &queries, &[1, 8, 32, 100], &traversals(), report)?;
    }
    for num_points in [10_000, 100_000, 1_000_000, 10_000_000] {
        for num_queries in [1_000, 10_000, 100_000, 1_000_000] {
            compare::<2>(
                settings,
                gpu,
                num_points,
                &queries(settings, num_queries),
                &[1, 8],
                &orders(),
                report,
            )?;
            compare::<3>(
                settings,
                gpu,
                num_points,
                &queries(settings, num_queries),
                &[1, 8, 32],
                &orders(),
                report,
            )?;
        }
    }
    Ok(())
}

fn queries<const D: usize>(settings: &Settings, len: usize) -> Vec<[f32; D]> {
    points::uniform(len, settings.seed + 1)
}

/// A variant: its name and its options.
type Variant<const D: usize> = (&'static str, QueryOptions<[f32; D]>);

fn traversals<const D: usize>() -> [Variant<D>; 2] {
    let by = |traversal| QueryOptions::default().traversal(traversal);
    [("buckets", by(Traversal::Buckets)), ("brute force", by(Traversal::BruteForce))]
}

fn orders<const D: usize>() -> [Variant<D>; 2] {
    [("put in order", QueryOptions::default()), ("as they come", QueryOptions::default().coherent())]
}

/// Measures the same queries with several variants.
fn compare<const D: usize>(
    settings: &Settings,
    gpu: &Gpu,
    num_points: usize,
    queries: &[[f32; D]],
    ks: &[usize],
    variants: &[Variant<D>],
    report: &mut Report,
) -> Result<()> {
    let points = points::uniform::<f32, D>(num_points, settings.seed);
    let num_queries = queries.len();
    let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
    let coords = Buffer::from_slice(&stream, points.as_flattened(), "points")?;
    let queries = Buffer::from_slice(&stream, queries.as_flattened(), "queries")?;
    let options = KdTreeOptions::default();
    let tree = KdTree::<[f32; D]>::build_on(&stream, &mut workspace, &coords, &options)?;
    for &k in ks {
        let mut ids = Buffer::uninitialized(gpu, num_queries * k, "ids of neighbors")?;
        let mut dist2 = Buffer::uninitialized(gpu, num_queries * k, "distances of neighbors")?;
        for (variant, options) in variants {
            let prepared = tree.prepare(&stream, options)?;
            let timing = settings.effort.events(&stream, || {
                let queries = DeviceQueries::Coordinates(&queries);
                tree.nearest_on(&stream, &mut workspace, queries, k, &prepared, &mut ids, &mut dist2)
            })?;
            report.push(Row {
                work: format!("nearest k={k} of {num_queries}, {variant}"),
                input: format!("f32 x {D}, uniform"),
                n: num_points as u64,
                timing: Some(timing),
                items: Some(num_queries as u64),
                ..Row::default()
            });
        }
    }
    Ok(())
}
