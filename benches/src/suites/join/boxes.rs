//! Joins of boxes in device memory, including the computation of the grid; wall-clock times, because the host takes part.
//!
//! The rival is `benches/rivals/join_boxes.cu`. A row that names a method is compared with the rival's time for that algorithm.

use crate::points::{Uniform, clustered_squares, cubes, log_normal};
use crate::report::{Report, Row};
use crate::suites::{Settings, copy, unless_too_large};
use kauri::device::{Buffer, Gpu, Stream, Workspace};
use kauri::join::BoxMethod;
use kauri::{BoxJoin, Cartesian, Error, Result};

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
    drop(uniform);
    for density in [0.1, 10.0] {
        bench.rows("", &format!("uniform, density {density}"), &both(density), &all())?;
    }
    let skewed = seeds.map(|seed| log_normal::<f32, 2>(n, 1.0, seed));
    bench.rows("", "log-normal sides", &skewed, &all())?;
    bench.rows(" contained", "log-normal sides", &skewed, &BoxJoin::contains())?;
    drop(skewed);
    bench.rows("", "clustered", &seeds.map(|seed| clustered_squares(n, 0.01, seed)), &all())?;
    bench.rows("", "uniform", &seeds.map(|seed| cubes::<f32, 3>(n, 1.0, seed)), &all())?;
    bench.rows("", "uniform", &seeds.map(|seed| cubes::<f64, 2>(n, 1.0, seed)), &BoxJoin::intersects())
}

/// The settings of all rows.
struct Bench<'a> {
    settings: &'a Settings,
    gpu: &'a Gpu,
    report: &'a mut Report,
}

impl Bench<'_> {
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
