//! `kauri join`, `kauri knn` and `kauri self-join`: tables of places by distance.

use clap::Args;

use super::length::Metres;
use super::output::{Found, Output};
use super::places::{Left, Places, Right};
use super::progress::Steps;
use super::score::ScoreText;
use super::{Result, Streams};
use crate::device::Device;
use crate::io::Numbers;
use crate::join::{
    DistanceJoin, JoinedRows, KnnJoin, PairScore, ScoreFunction, Scored, ScoredPair, TopKDistanceJoin,
};
use crate::point::LonLat;

/// Where a join runs, and what it says.
#[derive(Args)]
struct Running {
    /// Where to run: best, cpu, cuda, cuda:N or sim
    #[arg(long, default_value = "best")]
    device: String,
    /// Show no progress, which otherwise is shown on a terminal
    #[arg(long, short)]
    quiet: bool,
}

impl Running {
    /// The device, and what shows how far it is.
    fn begin(&self, output: &Output, streams: &Streams<'_>) -> Result<(Device, Steps)> {
        output.check()?;
        let steps = Steps { are_shown: streams.shows_progress && !self.quiet };
        Ok((Device::from_name(&self.device)?, steps))
    }
}

/// Runs a join of so many points.
fn joined<T>(steps: Steps, num_points: usize, join: impl FnOnce() -> Result<T>) -> Result<T> {
    steps.step("join", "points", join, |_| num_points)
}

#[derive(Args)]
pub(super) struct Join {
    #[command(flatten)]
    left: Left,
    #[command(flatten)]
    right: Right,
    /// Pairs up to this distance: 50km, 800m, 3mi, 10nmi, 500ft
    #[arg(long, value_name = "DISTANCE")]
    within: Metres,
    /// Only the N pairs with the best scores [default: all pairs]
    #[arg(long, value_name = "N", requires = "score")]
    top: Option<usize>,
    /// What is best: left.COLUMN+right.COLUMN, also with *, min(…,…), max(…,…), or weights as in 2*left.COLUMN-right.COLUMN
    #[arg(long, value_name = "SCORE", requires = "top")]
    score: Option<ScoreText>,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output,
}

impl Join {
    pub(super) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        let (device, steps) = self.running.begin(&self.output, streams)?;
        let (left, right) = (self.left.read(steps)?, self.right.read(steps)?);
        let num_points = left.points.len() + right.points.len();
        let found = match (self.top, &self.score) {
            (Some(k), Some(score)) => {
                let scores = Scores::read(score, &left, &right)?;
                joined(steps, num_points, || best(&device, &left, &right, self.within.0, k, score, scores))?
            }
            _ => joined(steps, num_points, || all(&device, &left.points, &right.points, self.within.0))?,
        };
        self.output.write(streams.out, &left, &right, &found)
    }
}

/// The scores of both sets, of one type.
enum Scores {
    Integers([Vec<i64>; 2]),
    Floats([Vec<f64>; 2]),
}

impl Scores {
    fn read(score: &ScoreText, left: &Places, right: &Places) -> Result<Self> {
        let numbers = |places: &Places, column: &Option<String>| match column {
            Some(name) => places.table.numbers(places.table.column(name)?),
            None => Ok(Numbers::Integers(vec![0; places.points.len()])),
        };
        Ok(match [numbers(left, &score.columns[0])?, numbers(right, &score.columns[1])?] {
            [Numbers::Integers(a), Numbers::Integers(b)] => Self::Integers([a, b]),
            both => Self::Floats(both.map(Numbers::into_floats)),
        })
    }
}

/// The pairs with the best scores.
fn best(
    device: &Device,
    left: &Places,
    right: &Places,
    metres: f64,
    k: usize,
    score: &ScoreText,
    scores: Scores,
) -> Result<Found> {
    let join = TopKDistanceJoin::new(metres, k).score(score.function);
    let join = match score.function {
        ScoreFunction::Weighted => join.weighted(score.weights[0], score.weights[1]),
        _ => join,
    };
    let (pairs, are_integers) = match &scores {
        Scores::Integers([a, b]) => {
            let sets = [Scored::new(&left.points, a)?, Scored::new(&right.points, b)?];
            (join.run(device, sets[0], sets[1])?, score.function != ScoreFunction::Weighted)
        }
        Scores::Floats([a, b]) => {
            let sets = [Scored::new(&left.points, a)?, Scored::new(&right.points, b)?];
            (join.run(device, sets[0], sets[1])?, false)
        }
    };
    let pairs = pairs.into_pairs();
    let rows = pairs.iter().map(|pair| [pair.left, pair.right]).collect();
    let scores = Some(numbers_of(&pairs, are_integers));
    Ok(Found { scores, ..Found::of(rows, &left.points, &right.points) })
}

/// The scores of pairs; of no pairs, too, they have a type.
fn numbers_of(pairs: &[ScoredPair], are_integers: bool) -> Numbers {
    let integer = |pair: &ScoredPair| match pair.score {
        PairScore::Integer(score) => Some(score),
        PairScore::Float(_) => None,
    };
    match pairs.iter().map(integer).collect() {
        Some(integers) if are_integers => Numbers::Integers(integers),
        _ => Numbers::Floats(pairs.iter().map(|pair| pair.score.to_f64()).collect()),
    }
}

/// All pairs, by left and then by right row.
fn all(device: &Device, left: &[LonLat], right: &[LonLat], metres: f64) -> Result<Found> {
    let rows = DistanceJoin::new(metres).rows(device, left, right)?;
    Ok(Found::of(pairs_of(&rows), left, right))
}

fn pairs_of(rows: &JoinedRows) -> Vec<[u32; 2]> {
    let mut pairs = Vec::with_capacity(rows.ids().len());
    for row in 0..rows.len() {
        let mut ids = rows.row(row).to_vec();
        ids.sort_unstable();
        pairs.extend(ids.into_iter().map(|id| [row as u32, id]));
    }
    pairs
}

#[derive(Args)]
pub(super) struct Knn {
    #[command(flatten)]
    left: Left,
    #[command(flatten)]
    right: Right,
    /// So many left places for each right one, the nearest first
    #[arg(long, value_name = "N", default_value_t = 1)]
    k: usize,
    /// Only those up to this distance: 50km, 800m, 3mi, 10nmi, 500ft
    #[arg(long, value_name = "DISTANCE")]
    within: Option<Metres>,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output,
}

impl Knn {
    pub(super) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        let (device, steps) = self.running.begin(&self.output, streams)?;
        let (left, right) = (self.left.read(steps)?, self.right.read(steps)?);
        let mut join = KnnJoin::new(self.k);
        if let Some(Metres(metres)) = self.within {
            join = join.within(metres);
        }
        let num_points = left.points.len() + right.points.len();
        let near = joined(steps, num_points, || Ok(join.run(&device, &left.points, &right.points)?))?;
        let mut found = Found::default();
        for right in 0..near.len() {
            let ids = near.row(right).0.iter().zip(near.metres(right));
            for (&id, metres) in ids.take_while(|(id, _)| **id != u32::MAX) {
                found.rows.push([id, right as u32]);
                found.metres.push(metres);
            }
        }
        self.output.write(streams.out, &left, &right, &found)
    }
}

#[derive(Args)]
pub(super) struct SelfJoin {
    #[command(flatten)]
    left: Left,
    /// Pairs up to this distance: 50km, 800m, 3mi, 10nmi, 500ft
    #[arg(long, value_name = "DISTANCE")]
    within: Metres,
    /// Only say how many pairs there are
    #[arg(long, conflicts_with_all = ["json", "out"])]
    count: bool,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output,
}

impl SelfJoin {
    pub(super) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        let (device, steps) = self.running.begin(&self.output, streams)?;
        let places = self.left.read(steps)?;
        let (points, join) = (&places.points, DistanceJoin::new(self.within.0));
        if self.count {
            let count = joined(steps, points.len(), || Ok(join.self_count(&device, points, true)?))?;
            writeln!(streams.out, "{count}")?;
            return Ok(());
        }
        let rows = joined(steps, points.len(), || Ok(join.self_rows(&device, points, true)?))?;
        let mut pairs = pairs_of(&rows);
        // A row has the places before it.
        pairs.iter_mut().for_each(|pair| pair.reverse());
        pairs.sort_unstable();
        let found = Found::of(pairs, points, points);
        self.output.write(streams.out, &places, &places, &found)
    }
}
