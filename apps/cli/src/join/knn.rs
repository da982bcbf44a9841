//! `kauri knn`: the nearest right places of each left place.

use clap::Args;

use super::stream::{PAIRS, PairStream, batches};
use super::task::{Running, Search};
use crate::device::Work;
use crate::length::Meters;
use crate::output::Output;
use crate::tables::{Left, Right};
use crate::text::thousands;
use crate::{Result, Streams};
use kauri::io::TakePairs;
use kauri::join::{JoinPlan, KnnIndex, KnnJoin};
use kauri::kdtree::{KdTree, KdTreeOptions};
use kauri::query::QueryOptions;
use kauri::{Device, LonLat, SpatialIndex};

#[derive(Args)]
pub(crate) struct Knn {
    #[command(flatten)]
    left: Left,
    #[command(flatten)]
    right: Right,
    /// Number of right places to find for each left place
    #[arg(long, value_name = "N", default_value_t = 1)]
    k: usize,
    /// Largest distance of a right place, with its unit: 50km, 800m, 3mi, 10nmi (nautical miles) or 500ft [default: any distance]
    #[arg(long, value_name = "DISTANCE")]
    within: Option<Meters>,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output,
}

impl Knn {
    pub(crate) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        let destination = self.output.destination()?;
        let task = self.running.begin(streams)?;
        let left = self.left.places(task.steps, streams.err)?;
        let right = self.right.places(task.steps, streams.err)?;
        let nearest = Nearest {
            left: &left.items,
            right: &right.items,
            k: self.k.min(right.items.len()),
            within: self.within.map(|Meters(meters)| meters),
        };
        task.write(&nearest, &destination, [&left, &right], streams)
    }
}

/// The `k` nearest right places of each left place. `k` is at most the number of right places.
struct Nearest<'p> {
    left: &'p [LonLat],
    right: &'p [LonLat],
    k: usize,
    within: Option<f64>,
}

impl Search for Nearest<'_> {
    type Item = LonLat;

    fn num_items(&self) -> usize {
        self.left.len() + self.right.len()
    }

    fn work(&self) -> Work {
        Work::of_nearest(self.right.len(), self.left.len(), self.k)
    }

    fn plan(&self, on: &Device) -> kauri::Result<JoinPlan> {
        // The library's join finds left points for each right point and keeps all right points in memory: pass one batch.
        let in_batch = self.left.len().min(PAIRS / self.k.max(1));
        let join = KnnJoin::new(self.k).index(KnnIndex::Tree);
        let mut plan = join.plan(on, self.right, &self.left[..in_batch])?;
        plan.num_points = [self.left.len(), self.right.len()];
        Ok(plan)
    }

    fn expected_pairs(&self, _: &Device) -> kauri::Result<String> {
        let most = thousands(self.left.len().saturating_mul(self.k));
        Ok(if self.within.is_some() { format!("at most {most}") } else { most })
    }

    fn find(&self, on: &Device, take: &mut TakePairs<'_>) -> kauri::Result<()> {
        let tree = KdTree::build(on, self.right, &KdTreeOptions::default())?;
        let mut options = QueryOptions::default();
        options.radius = self.within;
        let mut stream = PairStream::new([self.left, self.right], true, take);
        let mut batches = batches(self.k, (size_of::<u32>() + size_of::<f64>()) as u64);
        let joined = tree.nearest_batches(self.left, self.k, &options, &mut batches, |batch| {
            for row in batch.rows() {
                let found = batch.row(row).ids().iter();
                stream.rows.extend(found.map(|&id| [row as u32, id]));
            }
            stream.flush()
        });
        stream.end(joined)
    }
}
