//! `kauri join`, `kauri knn` and `kauri self-join`: tables of points by distance, tables of boxes by a predicate.

mod all;
mod best;
mod condition;
mod knn;
mod options;
mod stream;
mod task;

pub(super) use knn::Knn;

use clap::{ArgGroup, Args};

use super::output::{Destination, Output};
use super::score::ScoreText;
use super::tables::{BoxNames, Crs, JoinTable, Left, Right, TableOptions, compare_systems, coordinates};
use super::{Result, Streams};
use all::AllPairs;
use best::Best;
use condition::{Condition, Near, NearPlanar};
use options::{Chosen, How, PairOptions};
use task::{Running, Task};

#[derive(Args)]
#[command(group = ArgGroup::new("right degrees").args(["right_lon", "right_lat"]).multiple(true).conflicts_with("predicate"))]
pub(super) struct Join {
    #[command(flatten)]
    left: Left,
    #[command(flatten)]
    right: Right,
    #[command(flatten)]
    pairs: PairOptions,
    /// Columns of the right boxes [default: as for --left-box]
    #[arg(
        long,
        value_name = "XMIN,YMIN,XMAX,YMAX",
        requires = "predicate",
        conflicts_with = "right_geometry"
    )]
    right_box: Option<BoxNames>,
    /// Find only the N pairs with the highest scores; needs --score [default: all pairs]
    #[arg(long, value_name = "N", requires = "score", conflicts_with = "count")]
    top: Option<usize>,
    /// Score of a pair, from a column of each table: left.COLUMN+right.COLUMN, left.COLUMN*right.COLUMN,
    /// min(left.COLUMN,right.COLUMN), max(left.COLUMN,right.COLUMN), or a weighted sum such as 2*left.COLUMN-0.5*right.COLUMN
    #[arg(long, value_name = "SCORE", requires = "top")]
    score: Option<ScoreText>,
    /// Left rows to write
    #[arg(long, value_name = "HOW", value_enum, default_value = "inner", conflicts_with_all = ["top", "count"])]
    how: How,
    #[command(flatten)]
    options: TableOptions,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output,
}

impl Join {
    pub(super) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        let chosen = self.pairs.chosen(self.options.crs)?;
        let destination = self.output.destination()?;
        let task = self.running.begin(streams)?;
        let (options, steps) = (&self.options, task.steps);
        let [left, right] = self.left.open_with(&self.right, steps, streams.err)?;
        let within = match chosen {
            Chosen::Points(within) => within,
            Chosen::Boxes(condition) => {
                let left = left.boxes(self.pairs.left_box.as_ref(), options, steps, streams.err)?;
                let right = right.boxes(self.right_box.as_ref(), options, steps, streams.err)?;
                compare_systems([&left, &right], streams.err);
                return self.join(condition, [&left, &right], task, &destination, streams);
            }
        };
        match coordinates(options.crs, &[&left, &right])? {
            Crs::Lonlat => {
                let near = Near(within.meters()?);
                let left = left.places(options, steps, streams.err)?;
                let right = right.places(options, steps, streams.err)?;
                self.join(near, [&left, &right], task, &destination, streams)
            }
            Crs::Planar => {
                let near = NearPlanar(within.planar()?);
                let left = left.points(options, steps, streams.err)?;
                let right = right.points(options, steps, streams.err)?;
                self.join(near, [&left, &right], task, &destination, streams)
            }
        }
    }

    fn join<C: Condition>(
        &self,
        condition: C,
        tables: [&JoinTable<C::Item>; 2],
        task: Task,
        destination: &Destination<'_>,
        streams: &mut Streams<'_>,
    ) -> Result<()> {
        if let (Some(k), Some(score)) = (self.top, &self.score) {
            let best = Best::new(tables, condition, k, score)?;
            return task.write(&best, destination, tables, streams);
        }
        let [left, right] = tables;
        let pairs = AllPairs::new(condition, left, Some(right), self.how);
        if self.pairs.count {
            return task.count(&pairs, |device| pairs.count(device), streams);
        }
        task.write(&pairs, destination, tables, streams)
    }
}

#[derive(Args)]
pub(super) struct SelfJoin {
    #[command(flatten)]
    left: Left,
    #[command(flatten)]
    pairs: PairOptions,
    #[command(flatten)]
    options: TableOptions,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output,
}

impl SelfJoin {
    pub(super) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        let chosen = self.pairs.chosen(self.options.crs)?;
        let destination = self.output.destination()?;
        let task = self.running.begin(streams)?;
        let (options, steps) = (&self.options, task.steps);
        let table = self.left.open(steps, streams.err)?;
        match (chosen, coordinates(options.crs, &[&table])?) {
            (Chosen::Boxes(condition), _) => {
                let table = table.boxes(self.pairs.left_box.as_ref(), options, steps, streams.err)?;
                self.join(condition, &table, task, &destination, streams)
            }
            (Chosen::Points(within), Crs::Lonlat) => {
                let near = Near(within.meters()?);
                self.join(near, &table.places(options, steps, streams.err)?, task, &destination, streams)
            }
            (Chosen::Points(within), Crs::Planar) => {
                let near = NearPlanar(within.planar()?);
                self.join(near, &table.points(options, steps, streams.err)?, task, &destination, streams)
            }
        }
    }

    fn join<C: Condition>(
        &self,
        condition: C,
        table: &JoinTable<C::Item>,
        task: Task,
        destination: &Destination<'_>,
        streams: &mut Streams<'_>,
    ) -> Result<()> {
        let pairs = AllPairs::new(condition, table, None, How::Inner);
        if self.pairs.count {
            return task.count(&pairs, |device| pairs.count(device), streams);
        }
        task.write(&pairs, destination, [table, table], streams)
    }
}
