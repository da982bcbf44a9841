//! `kauri knn`: the nearest right places or points of each left one.

use clap::Args;

use super::options::{How, Within};
use super::stream::{PAIRS, PairStream, batches};
use super::task::{Running, Search, Task};
use crate::device::Work;
use crate::items::Item;
use crate::output::{Destination, Output};
use crate::tables::{Crs, JoinTable, Left, Right, TableOptions, coordinates};
use crate::text::thousands;
use crate::{Result, Streams};
use kauri::io::{NO_ROW, TakePairs};
use kauri::join::{JoinPlan, KnnIndex, KnnJoin};
use kauri::kdtree::{KdTree, KdTreeOptions};
use kauri::query::QueryOptions;
use kauri::{Device, Point, SpatialIndex};

#[derive(Args)]
pub(crate) struct Knn {
    #[command(flatten)]
    left: Left,
    #[command(flatten)]
    right: Right,
    /// Number of right places to find for each left place
    #[arg(long, value_name = "N", default_value_t = 1)]
    k: usize,
    /// Largest distance of a right place, with its unit: 50km, 800m, 3mi, 10nmi (nautical miles) or 500ft; with planar coordinates a number in
    /// their units [default: any distance]
    #[arg(long, value_name = "DISTANCE")]
    within: Option<String>,
    /// Left rows to write
    #[arg(long, value_name = "HOW", value_enum, default_value = "inner")]
    how: How,
    #[command(flatten)]
    options: TableOptions,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output,
}

impl Knn {
    pub(crate) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        let within = self.within.as_deref().map(|text| Within::new(text, self.options.crs)).transpose()?;
        let destination = self.output.destination()?;
        let task = self.running.begin(streams)?;
        let (options, steps) = (&self.options, task.steps);
        let [left, right] = self.left.open_with(&self.right, steps, streams.err)?;
        match coordinates(options.crs, &[&left, &right])? {
            Crs::Lonlat => {
                let within = within.map(Within::meters).transpose()?;
                let left = left.places(options, steps, streams.err)?;
                let right = right.places(options, steps, streams.err)?;
                self.join([&left, &right], within, task, &destination, streams)
            }
            Crs::Planar => {
                let within = within.map(Within::planar).transpose()?;
                let left = left.points(options, steps, streams.err)?;
                let right = right.points(options, steps, streams.err)?;
                self.join([&left, &right], within, task, &destination, streams)
            }
        }
    }

    fn join<P: Item + Point<Coord = f64>>(
        &self,
        tables: [&JoinTable<P>; 2],
        within: Option<f64>,
        task: Task,
        destination: &Destination<'_>,
        streams: &mut Streams<'_>,
    ) -> Result<()> {
        let k = self.k.min(tables[1].items.len());
        task.write(&Nearest { tables, k, within, how: self.how }, destination, tables, streams)
    }
}

/// The `k` nearest right points of each left point. `k` is at most the number of right points.
struct Nearest<'p, P> {
    tables: [&'p JoinTable<P>; 2],
    k: usize,
    within: Option<f64>,
    how: How,
}

impl<'p, P> Nearest<'p, P> {
    fn sets(&self) -> [&'p [P]; 2] {
        self.tables.map(|table| &table.items[..])
    }
}

impl<P: Item + Point<Coord = f64>> Search for Nearest<'_, P> {
    type Item = P;

    fn num_items(&self) -> usize {
        self.sets().map(<[_]>::len).iter().sum()
    }

    fn work(&self) -> Work {
        let [left, right] = self.sets();
        Work::of_nearest(right.len(), left.len(), self.k)
    }

    fn plan(&self, on: &Device) -> kauri::Result<JoinPlan> {
        // The library's join finds left points for each right point and keeps all right points in memory: pass one batch.
        let [left, right] = self.sets();
        let in_batch = left.len().min(PAIRS / self.k.max(1));
        let join = KnnJoin::new(self.k).index(KnnIndex::Tree);
        let mut plan = join.plan(on, right, &left[..in_batch])?;
        plan.num_points = [left.len(), right.len()];
        Ok(plan)
    }

    fn expected_pairs(&self, _: &Device) -> kauri::Result<String> {
        let most = thousands(self.sets()[0].len().saturating_mul(self.k));
        Ok(if self.within.is_some() { format!("at most {most}") } else { most })
    }

    fn find(&self, on: &Device, take: &mut TakePairs<'_>) -> kauri::Result<()> {
        let [left, right] = self.sets();
        let tree = KdTree::build(on, right, &KdTreeOptions::default())?;
        let mut options = QueryOptions::default();
        options.radius = self.within;
        let mut stream = PairStream::new(self.tables, true, take);
        let mut batches = batches(self.k, (size_of::<u32>() + size_of::<f64>()) as u64);
        let joined = tree.nearest_batches(left, self.k, &options, &mut batches, |batch| {
            for row in batch.rows() {
                let (row_of, found) = (row as u32, batch.row(row).ids());
                stream.items.extend(found.iter().map(|&id| [row_of, id]));
                if self.how == How::Left && found.is_empty() {
                    stream.items.push([row_of, NO_ROW]);
                }
            }
            stream.flush()
        });
        stream.end(joined)
    }
}
