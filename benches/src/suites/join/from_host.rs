//! Top-k joins of sets in host memory, with ten left points per right point, also of sets that exceed the device memory. The
//! lower bound is a copy of all input from page-locked memory.

use super::super::{Settings, unless_too_large};
use crate::points::{self, noise};
use crate::report::{Report, Row};
use kauri::device::{Buffer, Gpu, PinnedBuffer, Stream};
use kauri::join::{Scored, ScoredPair, Strategy, TopKDistanceJoin};
use kauri::{Device, Error, Result};
use rayon::prelude::*;

const INPUT: &str = "f32 x 2, u24, uniform, host memory, right a tenth";
/// Bytes of the copy that measures the bandwidth.
const COPY_BYTES: usize = 1 << 30;
/// Number of best pairs.
const K: usize = 16;
const EPSILON: f32 = 0.001;

pub(super) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let Some(gpu) = settings.device.gpu() else { return Err(Error::NoDevice) };
    report.push(copy(settings, gpu)?);
    for &n in &settings.sizes {
        unless_too_large(of_size(settings, gpu, n, report))?;
    }
    Ok(())
}

fn copy(settings: &Settings, gpu: &Gpu) -> Result<Row> {
    let stream = Stream::new(gpu)?;
    let from = PinnedBuffer::<u8>::zeroed(gpu, COPY_BYTES, "copied from")?;
    let mut to = Buffer::<u8>::uninitialized(gpu, COPY_BYTES, "copied to")?;
    let timing = settings.effort.wall(|| to.copy_from_slice(&stream, &from))?;
    let (work, input) = ("copy from page-locked memory".to_owned(), "bytes".to_owned());
    let (n, bytes) = (COPY_BYTES as u64, Some(COPY_BYTES as u64));
    Ok(Row { work, input, n, timing: Some(timing), bytes, ..Row::default() })
}

fn of_size(settings: &Settings, gpu: &Gpu, n: usize, report: &mut Report) -> Result<()> {
    let device = Device::from_gpu(gpu.clone());
    let lens = [n, (n / 10).max(1)];
    let points = [0, 1].map(|set: usize| points::uniform::<f32, 2>(lens[set], settings.seed + set as u64));
    let scores = [0, 1].map(|set: usize| {
        let score = |i| (noise(settings.seed + 2 + set as u64, i) >> 40) as u32;
        (0..lens[set] as u64).into_par_iter().map(score).collect::<Vec<_>>()
    });
    let [left, right] = [Scored::new(&points[0], &scores[0])?, Scored::new(&points[1], &scores[1])?];
    let num = (lens[0] + lens[1]) as u64;
    let mut last: Option<Vec<ScoredPair>> = None;
    // The bytes that are uploaded: the scores alone, or coordinates and scores.
    let (of_scores, all) = (4 * num, 12 * num);
    let part = all / 2;
    let joins = [
        ("", Strategy::Auto, None, of_scores),
        (", cells", Strategy::Cells, None, all),
        (", cells in half the memory of the sets", Strategy::Cells, Some(part), all),
    ];
    for (name, strategy, room, bytes) in joins {
        let mut join = TopKDistanceJoin::new(EPSILON, K).strategy(strategy);
        if let Some(room) = room {
            join = join.device_bytes(room);
        }
        let mut found = None;
        let timing = settings.effort.wall(|| {
            found = Some(join.run(&device, left, right)?);
            Ok(())
        })?;
        let Some(found) = found else { continue };
        let check = last.as_ref().map(|last| {
            assert!(*last == found.pairs(), "parts and wholes disagree: {join:?}");
            "as by the other joins"
        });
        report.push(Row {
            work: format!("top {K} within {EPSILON} from host memory{name}"),
            input: INPUT.to_owned(),
            n: n as u64,
            items: Some(num),
            bytes: Some(bytes),
            temp_bytes: Some(found.stats().temp_bytes),
            timing: Some(timing),
            check,
            ..Row::default()
        });
        last = Some(found.into_pairs());
    }
    Ok(())
}
