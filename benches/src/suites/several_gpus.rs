//! Joins and quadtrees from host memory on one, two, four and eight GPUs, as far as there are that many. Each device works on parts of the
//! input. (Trees on several GPUs are the suite `kdtree-multi-gpu`.)

use crate::points::{self, noise};
use crate::report::{Report, Row};
use crate::suites::{Settings, Suite, copy, unless_too_large};
use kauri::join::{Scored, Strategy, TopKDistanceJoin};
use kauri::{Device, DistanceJoin, Error, Quadtree, QuadtreeOptions, Result};

pub(super) const SUITES: [(&str, Suite); 1] = [("several-gpus", run)];

const INPUT: &str = "f32 x 2, uniform, host memory";
/// Number of best pairs.
const K: usize = 1000;
/// Mean number of right points within the distance of a left point.
const NEAR: f64 = 8.0;

fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let Some(gpu) = settings.device.gpu() else { return Err(Error::NoDevice) };
    report.push(copy(gpu, settings.effort)?);
    let num_gpus = Device::list_cuda().map_or(1, |list| list.len());
    for &n in &settings.sizes {
        let sets = [0, 1].map(|set: u64| points::uniform::<f32, 2>(n, settings.seed + set));
        let scores = [2, 3].map(|set: u64| {
            (0..n as u64).map(|i| (noise(settings.seed + set, i) >> 40) as u32).collect::<Vec<_>>()
        });
        let distance = (NEAR / std::f64::consts::PI / n as f64).sqrt() as f32;
        let pairs = DistanceJoin::new(distance);
        let best_pairs = TopKDistanceJoin::new(distance, K).strategy(Strategy::Cells);
        let scored = || Ok([Scored::new(&sets[0], &scores[0])?, Scored::new(&sets[1], &scores[1])?]);
        let tree = QuadtreeOptions::default();
        for count in [1, 2, 4, 8].into_iter().filter(|&count| count <= num_gpus.max(1)) {
            let devices = if count == 1 {
                vec![settings.device.clone()]
            } else {
                (0..count).map(Device::cuda).collect::<Result<_>>()?
            };
            let mut push = |work: &str, timing| {
                let (work, input) = (format!("{work}, GPUs: {count}"), INPUT.to_owned());
                report.push(Row {
                    work,
                    input,
                    n: n as u64,
                    items: Some(n as u64),
                    timing: Some(timing),
                    check: Some("equal to a call on one GPU"),
                    ..Row::default()
                });
            };
            unless_too_large((|| {
                let first = &settings.device;
                let count = || pairs.count_over(&devices, &sets[0], &sets[1]);
                assert!(count()? == pairs.count(first, &sets[0], &sets[1])?, "other pairs");
                push("pairs, counted", settings.effort.wall(count)?);
                let [left, right] = scored()?;
                let best = || best_pairs.run_over(&devices, left, right);
                assert!(best()?.pairs() == best_pairs.run(first, left, right)?.pairs(), "other best pairs");
                push("best pairs, cells", settings.effort.wall(best)?);
                let build = || Quadtree::build_over(&devices, &sets[0], &tree);
                let (found, expected) = (build()?, Quadtree::build(first, &sets[0], &tree)?);
                assert!(found.nodes()? == expected.nodes()?, "other nodes");
                assert!(found.ids()? == expected.ids()?, "another order of the points");
                drop((found, expected));
                push("quadtree, out of core", settings.effort.wall(build)?);
                Ok(())
            })())?;
        }
    }
    Ok(())
}
