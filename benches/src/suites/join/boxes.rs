//! Joins of boxes in device memory, including the computation of the grid; wall-clock times, because the host takes part.
//!
//! The rival is `benches/rivals/join_boxes.cu`. A row that names a method is compared with the rival's time for that algorithm.

use crate::points::{Uniform, clustered_log_normal, clustered_squares, cubes, log_normal, noise};
use crate::report::{Report, Row};
use crate::suites::{Settings, copy, unless_too_large};
use kauri::device::{Buffer, Gpu, Stream, Workspace};
use kauri::join::{BoxMethod, DeviceScored, Norm, ScoredPair, Strategy};
use kauri::{BoxJoin, Cartesian, Error, Result, TopKBoxJoin, TopKDistanceJoin};
use rayon::prelude::*;

/// The most boxes of each set that are joined by a nested loop.
const NESTED_TO: usize = 100_000;
/// The right set of a join of 100M boxes.
const FEW: usize = 1_000_000;

pub(super) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let Some(gpu) = settings.device.gpu() else { return Err(Error::NoDevice) };
    report.push(copy(gpu, settings.effort)?);
    for &n in &settings.sizes {
        unless_too_large(of_size(settings, gpu, n, report))?;
    }
    Ok(())
}

fn of_size(settings: &Settings, gpu: &Gpu, n: usize, report: &mut Report) -> Result<()> {
    let mut bench = Bench { settings, gpu, report };
    let seeds = [settings.seed, settings.seed + 1];
    let lens = [n, if n > 20_000_000 { FEW } else { n }];
    let all = BoxJoin::<f32>::intersects;
    let both = |density: f64| [0, 1].map(|i| cubes::<f32, 2>(lens[i], density, seeds[i]));
    let uniform = both(1.0);
    bench.rows("", "uniform", &uniform, &all())?;
    if n <= NESTED_TO {
        bench.rows(", nested loop", "uniform", &uniform, &all().method(BoxMethod::NestedLoop))?;
        bench.rows(", cells", "uniform", &uniform, &all().method(BoxMethod::Cells))?;
    }
    if n > 20_000_000 {
        return Ok(());
    }
    let side = (1.0 / n as f64).sqrt() as f32;
    bench.rows(" within half a side", "uniform", &uniform, &BoxJoin::within(side / 2.0))?;
    bench.best(&uniform, side)?;
    drop(uniform);
    for density in [0.1, 10.0] {
        bench.rows("", &format!("uniform, density {density}"), &both(density), &all())?;
    }
    let skewed = seeds.map(|seed| log_normal::<f32, 2>(n, 1.0, seed));
    bench.rows("", "log-normal sides", &skewed, &all())?;
    bench.rows(" contained", "log-normal sides", &skewed, &BoxJoin::contains())?;
    drop(skewed);
    bench.rows("", "clustered", &seeds.map(|seed| clustered_squares(n, 0.01, seed)), &all())?;
    let skewed = seeds.map(|seed| clustered_log_normal(n, 0.01, seed));
    bench.rows("", "clustered, log-normal sides", &skewed, &all())?;
    drop(skewed);
    bench.rows("", "uniform", &seeds.map(|seed| cubes::<f32, 3>(n, 1.0, seed)), &all())?;
    bench.rows("", "log-normal sides", &seeds.map(|seed| log_normal::<f32, 3>(n, 1.0, seed)), &all())?;
    bench.rows("", "uniform", &seeds.map(|seed| cubes::<f64, 2>(n, 1.0, seed)), &BoxJoin::intersects())
}

/// The best pairs that the rows of top-k joins find.
const K: usize = 16;

/// The settings of all rows.
struct Bench<'a> {
    settings: &'a Settings,
    gpu: &'a Gpu,
    report: &'a mut Report,
}

impl Bench<'_> {
    /// Adds rows of the best pairs of equal squares with a side, and beside them of the low corners: two squares are as far apart as their
    /// corners less the side, under the Chebyshev norm.
    fn best(&mut self, boxes: &[Vec<[[f32; 2]; 2]>; 2], side: f32) -> Result<()> {
        let stream = Stream::new(self.gpu)?;
        let upload = |i: usize| -> Result<_> {
            let (set, seed) = (&boxes[i], self.settings.seed + 2 + i as u64);
            let corners: Vec<_> = set.par_iter().map(|of| of[0]).collect();
            let scores: Vec<_> =
                (0..set.len() as u64).into_par_iter().map(|i| (noise(seed, i) >> 40) as u32).collect();
            Ok((
                Buffer::from_slice(&stream, set.as_flattened().as_flattened(), "boxes")?,
                Buffer::from_slice(&stream, corners.as_flattened(), "points")?,
                Buffer::from_slice(&stream, &scores, "scores")?,
            ))
        };
        let sets = [upload(0)?, upload(1)?];
        let of_boxes = sets.each_ref().map(|(coords, _, scores)| DeviceScored { coords, scores });
        let of_points = sets.each_ref().map(|(_, coords, scores)| DeviceScored { coords, scores });
        for (name, strategy) in [("", Strategy::Auto), (", cells", Strategy::Cells)] {
            for (what, beyond) in [("intersecting", 0.0), ("within half a side", side / 2.0)] {
                let join = match beyond {
                    0.0 => TopKBoxJoin::intersects(K),
                    _ => TopKBoxJoin::within(beyond, K),
                };
                let join = join.norm(Norm::Chebyshev).strategy(strategy);
                self.top_k(&format!("boxes top {K} {what}{name}"), &stream, boxes[0].len(), |workspace| {
                    join.run_on::<[f32; 2], u32>(&stream, workspace, of_boxes[0], of_boxes[1])
                })?;
                let join = TopKDistanceJoin::new(side + beyond, K).norm(Norm::Chebyshev).strategy(strategy);
                self.top_k(&format!("corners top {K} {what}{name}"), &stream, boxes[0].len(), |workspace| {
                    join.run_on::<[f32; 2], u32>(&stream, workspace, of_points[0], of_points[1])
                })?;
            }
        }
        Ok(())
    }

    /// Adds a row of the best pairs.
    fn top_k(
        &mut self,
        work: &str,
        stream: &Stream,
        n: usize,
        mut find: impl FnMut(&mut Workspace) -> Result<Vec<ScoredPair>>,
    ) -> Result<()> {
        let mut workspace = Workspace::new(stream.gpu());
        let timing = self.settings.effort.wall(|| find(&mut workspace))?;
        self.report.push(Row {
            work: work.to_owned(),
            input: "f32 x 2, u24, uniform".to_owned(),
            n: n as u64,
            timing: Some(timing),
            items: Some(n as u64),
            temp_bytes: Some(workspace.bytes()),
            ..Row::default()
        });
        Ok(())
    }

    /// Adds rows of pairs counted, found as rows, and found as a list.
    fn rows<C: Uniform, const D: usize>(
        &mut self,
        name: &str,
        input: &str,
        boxes: &[Vec<[[C; D]; 2]>; 2],
        join: &BoxJoin<C>,
    ) -> Result<()>
    where
        [C; D]: Cartesian<Coord = C>,
    {
        let (stream, mut workspace) = (Stream::new(self.gpu)?, Workspace::new(self.gpu));
        let upload =
            |set: &Vec<[[C; D]; 2]>| Buffer::from_slice(&stream, set.as_flattened().as_flattened(), "boxes");
        let [left, right] = [upload(&boxes[0])?, upload(&boxes[1])?];
        let n = boxes[0].len().max(boxes[1].len()) as u64;
        let input = format!("{} x {D}, {input}", C::NAME);
        let mut push = |work: &str, timing, count, bytes, check| {
            self.report.push(Row {
                work: format!("boxes {work}{name}"),
                input: input.clone(),
                n,
                timing: Some(timing),
                items: Some(count),
                temp_bytes: Some(bytes),
                check,
                ..Row::default()
            });
        };
        let mut count = 0;
        let timing = self.settings.effort.wall(|| {
            count = join.count_on::<[C; D]>(&stream, &mut workspace, &left, Some(&right))?;
            Ok(())
        })?;
        push("counted", timing, count, workspace.bytes(), None);
        let mut num_found = 0;
        let timing = self.settings.effort.wall(|| {
            let (offsets, ids) = join.rows_on::<[C; D]>(&stream, &mut workspace, &left, Some(&right))?;
            num_found = ids.len() as u64;
            stream.synchronize()?;
            Ok((offsets, ids))
        })?;
        assert_eq!(count, num_found, "pairs found are those that were counted");
        push("found", timing, count, workspace.bytes(), Some("as counted"));
        let mut pairs = Buffer::<[u32; 2]>::uninitialized(self.gpu, count as usize, "pairs")?;
        let timing = self.settings.effort.wall(|| {
            num_found = join.pairs_on::<[C; D]>(&stream, &mut workspace, &left, Some(&right), &mut pairs)?;
            stream.synchronize()
        })?;
        assert_eq!(count, num_found, "pairs listed are those that were counted");
        push("listed", timing, count, workspace.bytes(), Some("as counted"));
        Ok(())
    }
}
