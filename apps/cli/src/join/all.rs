//! All pairs within a distance, of two tables or of one table with itself.

use clap::Args;

use super::stream::{PairStream, batches};
use super::task::{Running, Search};
use crate::device::Work;
use crate::length::Meters;
use crate::output::Output;
use crate::places::Left;
use crate::text::thousands;
use crate::{Result, Streams};
use kauri::io::TakePairs;
use kauri::join::{DistanceJoin, JoinPlan, SelfPairs};
use kauri::{Device, LonLat};

/// Number of left places whose pairs are counted to estimate the number of all pairs.
const SAMPLE: usize = 1000;

#[derive(Args)]
pub(super) struct Within {
    /// Largest distance of a pair, with its unit: 50km, 800m, 3mi, 10nmi (nautical miles) or 500ft
    #[arg(long, value_name = "DISTANCE")]
    within: Meters,
    /// Print the number of pairs instead of the pairs
    #[arg(long, conflicts_with_all = ["json", "out"])]
    pub(super) count: bool,
}

impl Within {
    pub(super) fn meters(&self) -> f64 {
        self.within.0
    }
}

#[derive(Args)]
pub(crate) struct SelfJoin {
    #[command(flatten)]
    left: Left,
    #[command(flatten)]
    within: Within,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output,
}

impl SelfJoin {
    pub(crate) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        let destination = self.output.destination()?;
        let task = self.running.begin(streams)?;
        let places = self.left.read(task.steps, streams.err)?;
        let pairs = AllPairs::new(self.within.meters(), &places.points, None);
        if self.within.count {
            return task.count(&pairs, |device| pairs.count(device), streams);
        }
        task.write(&pairs, &destination, [&places, &places], streams)
    }
}

/// A join that finds all pairs of a left and a right place, or of two left places; each pair once.
pub(super) struct AllPairs<'p> {
    join: DistanceJoin<f64>,
    meters: f64,
    left: &'p [LonLat],
    right: Option<&'p [LonLat]>,
}

impl<'p> AllPairs<'p> {
    pub(super) fn new(meters: f64, left: &'p [LonLat], right: Option<&'p [LonLat]>) -> Self {
        Self { join: DistanceJoin::new(meters), meters, left, right }
    }

    pub(super) fn count(&self, on: &Device) -> kauri::Result<u64> {
        match self.right {
            Some(right) => self.join.count(on, self.left, right),
            None => self.join.self_count(on, self.left, SelfPairs::Once),
        }
    }

    fn sets(&self) -> [&'p [LonLat]; 2] {
        [self.left, self.right.unwrap_or(self.left)]
    }
}

impl Search for AllPairs<'_> {
    fn num_points(&self) -> usize {
        self.left.len() + self.right.map_or(0, <[_]>::len)
    }

    fn work(&self) -> Work {
        let [left, right] = self.sets().map(<[_]>::len);
        Work::of_join(left, right, self.meters)
    }

    fn plan(&self, on: &Device) -> kauri::Result<JoinPlan> {
        // Only one batch of pairs is in memory at a time.
        let mut plan = self.join.plan(on, self.left, self.right)?;
        plan.pair_bytes = 0;
        Ok(plan)
    }

    fn expected_pairs(&self, on: &Device) -> kauri::Result<String> {
        let count = match self.right {
            Some(right) => self.join.estimate(on, self.left, right, SAMPLE)?,
            None => self.join.self_estimate(on, self.left, SelfPairs::Once, SAMPLE)?,
        };
        Ok(format!("about {}", thousands(usize::try_from(count).unwrap_or(usize::MAX))))
    }

    /// Finds the pairs in the order of left, then right rows; in a self-join the smaller row is the left one.
    fn find(&self, on: &Device, take: &mut TakePairs<'_>) -> kauri::Result<()> {
        let sets = self.sets();
        let mut stream = PairStream::new(sets, take);
        let mut batches = batches(sets[1].len(), size_of::<u32>() as u64);
        let is_one = self.right.is_none();
        let on_batch = |batch: kauri::RowsBatch<'_>| {
            for row in batch.rows() {
                let begin = stream.rows.len();
                let row_of = row as u32;
                let ids = batch.row(row).iter().filter(|&&id| !is_one || id > row_of);
                stream.rows.extend(ids.map(|&id| [row_of, id]));
                stream.rows[begin..].sort_unstable();
            }
            stream.flush()
        };
        let joined = match self.right {
            Some(right) => self.join.rows_batches(on, self.left, right, &mut batches, on_batch),
            // Both directions, so that pairs are in the order of their smaller row.
            None => self.join.self_rows_batches(on, self.left, SelfPairs::Both, &mut batches, on_batch),
        };
        stream.end(joined)
    }
}
