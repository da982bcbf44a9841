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
    DistanceJoin, JoinPlan, JoinedRows, KnnJoin, PairScore, Score, ScoreFunction, Scored, ScoredPair,
    TopKDistanceJoin,
};
use crate::point::LonLat;

/// Where a join runs, and what it says.
#[derive(Args)]
struct Running {
    /// Where to run: best, cpu, cuda, cuda:N or sim
    #[arg(long, default_value = "best")]
    device: String,
    /// Say first, on standard error, what will run where and what memory it takes
    #[arg(long)]
    plan: bool,
    /// Show no progress, which otherwise is shown on a terminal
    #[arg(long, short)]
    quiet: bool,
}

impl Running {
    /// Checks what can be checked before any work.
    fn begin<'a, 'b>(&self, output: &Output, streams: &'a mut Streams<'b>) -> Result<Task<'a, 'b>> {
        output.check()?;
        let steps = Steps { are_shown: streams.shows_progress && !self.quiet };
        Ok(Task { device: Device::from_name(&self.device)?, steps, says_plan: self.plan, streams })
    }
}

/// A join that is about to run.
struct Task<'a, 'b> {
    device: Device,
    steps: Steps,
    says_plan: bool,
    streams: &'a mut Streams<'b>,
}

impl Task<'_, '_> {
    /// Says the plan if that is wanted, then runs the join of so many points.
    fn run<T>(
        &mut self,
        num_points: usize,
        plan: impl FnOnce(&Device) -> crate::Result<JoinPlan>,
        join: impl FnOnce(&Device) -> crate::Result<T>,
    ) -> Result<T> {
        let Self { device, steps, says_plan, streams } = self;
        if *says_plan {
            // Nothing can be done if it cannot be written.
            let _ = writeln!(streams.err, "{}", plan(device)?);
        }
        steps.step("join", "points", || Ok(join(device)?), |_| num_points)
    }
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
        let mut task = self.running.begin(&self.output, streams)?;
        let (left, right) = (self.left.read(task.steps)?, self.right.read(task.steps)?);
        let found = match (self.top, &self.score) {
            (Some(k), Some(score)) => best(&mut task, [&left, &right], self.within.0, k, score)?,
            _ => all(&mut task, [&left.points, &right.points], self.within.0)?,
        };
        self.output.write(task.streams.out, &left, &right, &found)
    }
}

/// The pairs with the best scores.
fn best(
    task: &mut Task<'_, '_>,
    sets: [&Places; 2],
    metres: f64,
    k: usize,
    score: &ScoreText,
) -> Result<Found> {
    let join = TopKDistanceJoin::new(metres, k).score(score.function);
    let is_weighted = score.function == ScoreFunction::Weighted;
    let join = if is_weighted { join.weighted(score.weights[0], score.weights[1]) } else { join };
    let numbers = |i: usize| match &score.columns[i] {
        Some(name) => sets[i].table.numbers(sets[i].table.column(name)?),
        None => Ok(Numbers::Integers(vec![0; sets[i].points.len()])),
    };
    let points = sets.map(|places| &places.points[..]);
    let (pairs, are_integers) = match [numbers(0)?, numbers(1)?] {
        [Numbers::Integers(a), Numbers::Integers(b)] => {
            (scored(task, &join, points, [&a, &b])?, !is_weighted)
        }
        both => {
            let [a, b] = both.map(Numbers::into_floats);
            (scored(task, &join, points, [&a, &b])?, false)
        }
    };
    let rows = pairs.iter().map(|pair| [pair.left, pair.right]).collect();
    let scores = Some(numbers_of(&pairs, are_integers));
    Ok(Found { scores, ..Found::of(rows, points[0], points[1]) })
}

fn scored<S: Score>(
    task: &mut Task<'_, '_>,
    join: &TopKDistanceJoin<f64>,
    points: [&[LonLat]; 2],
    scores: [&[S]; 2],
) -> Result<Vec<ScoredPair>> {
    let (left, right) = (Scored::new(points[0], scores[0])?, Scored::new(points[1], scores[1])?);
    let num_points = points[0].len() + points[1].len();
    let pairs = task.run(num_points, |on| join.plan(on, left, right), |on| join.run(on, left, right))?;
    Ok(pairs.into_pairs())
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
fn all(task: &mut Task<'_, '_>, [left, right]: [&[LonLat]; 2], metres: f64) -> Result<Found> {
    let join = DistanceJoin::new(metres);
    let num_points = left.len() + right.len();
    let rows =
        task.run(num_points, |on| join.plan(on, left, Some(right)), |on| join.rows(on, left, right))?;
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
    /// How many left places for each right one, the nearest first
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
        let mut task = self.running.begin(&self.output, streams)?;
        let (left, right) = (self.left.read(task.steps)?, self.right.read(task.steps)?);
        let mut join = KnnJoin::new(self.k);
        if let Some(Metres(metres)) = self.within {
            join = join.within(metres);
        }
        let (lefts, rights) = (&left.points, &right.points);
        let num_points = lefts.len() + rights.len();
        let near =
            task.run(num_points, |on| join.plan(on, lefts, rights), |on| join.run(on, lefts, rights))?;
        let mut found = Found::default();
        for right in 0..near.len() {
            let ids = near.row(right).0.iter().zip(near.metres(right));
            for (&id, metres) in ids.take_while(|(id, _)| **id != u32::MAX) {
                found.rows.push([id, right as u32]);
                found.metres.push(metres);
            }
        }
        self.output.write(task.streams.out, &left, &right, &found)
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
        let mut task = self.running.begin(&self.output, streams)?;
        let places = self.left.read(task.steps)?;
        let (points, join) = (&places.points, DistanceJoin::new(self.within.0));
        let plan = |on: &Device| join.plan(on, points, None);
        if self.count {
            let count = task.run(points.len(), plan, |on| join.self_count(on, points, true))?;
            writeln!(task.streams.out, "{count}")?;
            return Ok(());
        }
        let rows = task.run(points.len(), plan, |on| join.self_rows(on, points, true))?;
        let mut pairs = pairs_of(&rows);
        // A row has the places before it.
        pairs.iter_mut().for_each(|pair| pair.reverse());
        pairs.sort_unstable();
        let found = Found::of(pairs, points, points);
        self.output.write(task.streams.out, &places, &places, &found)
    }
}
