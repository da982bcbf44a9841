//! `kauri join`, `kauri knn` and `kauri self-join`: tables of places by distance.

mod all;
mod best;
mod knn;
mod stream;
mod task;

pub(super) use all::SelfJoin;
pub(super) use knn::Knn;

use clap::Args;

use super::output::Output;
use super::places::{Left, Right};
use super::score::ScoreText;
use super::{Result, Streams};
use all::{AllPairs, Within};
use best::Best;
use task::Running;

#[derive(Args)]
pub(super) struct Join {
    #[command(flatten)]
    left: Left,
    #[command(flatten)]
    right: Right,
    #[command(flatten)]
    within: Within,
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
        let destination = self.output.destination()?;
        let task = self.running.begin(streams)?;
        let left = self.left.read(task.steps, streams.err)?;
        let right = self.right.read(task.steps, streams.err)?;
        let meters = self.within.meters();
        if let (Some(k), Some(score)) = (self.top, &self.score) {
            let best = Best::new([&left, &right], meters, k, score)?;
            return task.write(&best, &destination, [&left, &right], streams);
        }
        let pairs = AllPairs::new(meters, &left.points, Some(&right.points));
        if self.within.count {
            return task.count(&pairs, |device| pairs.count(device), streams);
        }
        task.write(&pairs, &destination, [&left, &right], streams)
    }
}
