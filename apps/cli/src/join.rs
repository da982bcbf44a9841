//! `kauri join`, `kauri knn` and `kauri self-join`: tables of places by distance, tables of boxes by a predicate.

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
use super::tables::{BoxNames, JoinTable, Left, Right, compare_systems};
use super::{Result, Streams};
use all::AllPairs;
use best::Best;
use condition::Condition;
use options::{Chosen, PairOptions};
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
    #[arg(long, value_name = "XMIN,YMIN,XMAX,YMAX", requires = "predicate")]
    right_box: Option<BoxNames>,
    /// Find only the N pairs with the highest scores; needs --score [default: all pairs]
    #[arg(long, value_name = "N", requires = "score", conflicts_with = "count")]
    top: Option<usize>,
    /// Score of a pair, from a column of each table: left.COLUMN+right.COLUMN, left.COLUMN*right.COLUMN,
    /// min(left.COLUMN,right.COLUMN), max(left.COLUMN,right.COLUMN), or a weighted sum such as 2*left.COLUMN-0.5*right.COLUMN
    #[arg(long, value_name = "SCORE", requires = "top")]
    score: Option<ScoreText>,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output,
}

impl Join {
    pub(super) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        let chosen = self.pairs.chosen()?;
        let destination = self.output.destination()?;
        let task = self.running.begin(streams)?;
        let (steps, names) = (task.steps, [self.pairs.left_box.as_ref(), self.right_box.as_ref()]);
        match chosen {
            Chosen::Places(near) => {
                let left = self.left.places(steps, streams.err)?;
                let right = self.right.places(steps, streams.err)?;
                self.join(near, [&left, &right], task, &destination, streams)
            }
            Chosen::Boxes(condition) => {
                let left = self.left.boxes(names[0], steps, streams.err)?;
                let right = self.right.boxes(names[1], steps, streams.err)?;
                compare_systems([&left, &right], streams.err);
                self.join(condition, [&left, &right], task, &destination, streams)
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
        let [left, right] = tables.map(|table| &table.items[..]);
        let pairs = AllPairs::new(condition, left, Some(right));
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
    running: Running,
    #[command(flatten)]
    output: Output,
}

impl SelfJoin {
    pub(super) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        let chosen = self.pairs.chosen()?;
        let destination = self.output.destination()?;
        let task = self.running.begin(streams)?;
        match chosen {
            Chosen::Places(near) => {
                let table = self.left.places(task.steps, streams.err)?;
                self.join(near, &table, task, &destination, streams)
            }
            Chosen::Boxes(condition) => {
                let table = self.left.boxes(self.pairs.left_box.as_ref(), task.steps, streams.err)?;
                self.join(condition, &table, task, &destination, streams)
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
        let pairs = AllPairs::new(condition, &table.items, None);
        if self.pairs.count {
            return task.count(&pairs, |device| pairs.count(device), streams);
        }
        task.write(&pairs, destination, [table, table], streams)
    }
}
