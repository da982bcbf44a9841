//! The best-scored pairs within a distance.

use super::task::Search;
use crate::device::Work;
use crate::places::Places;
use crate::score::ScoreText;
use crate::text::thousands;
use kauri::io::{Numbers, Pairs, TakePairs};
use kauri::join::{JoinPlan, PairScore, Score, ScoreFunction, Scored, ScoredPair, TopKDistanceJoin};
use kauri::{Device, LonLat, Result};

pub(super) struct Best<'p> {
    join: TopKDistanceJoin<f64>,
    meters: f64,
    k: usize,
    points: [&'p [LonLat]; 2],
    scores: Scores,
    has_integers: bool,
}

/// The scores of both sets, which have one type.
enum Scores {
    Integers([Vec<i64>; 2]),
    Floats([Vec<f64>; 2]),
}

impl<'p> Best<'p> {
    /// Reads the scores.
    pub(super) fn new(sets: [&'p Places; 2], meters: f64, k: usize, score: &ScoreText) -> Result<Self> {
        let join = TopKDistanceJoin::new(meters, k).score(score.function);
        let is_weighted = score.function == ScoreFunction::Weighted;
        let join = if is_weighted { join.weighted(score.weights[0], score.weights[1]) } else { join };
        let numbers = |i: usize| match &score.columns[i] {
            Some(name) => sets[i].table.numbers(sets[i].table.column(name)?),
            None => Ok(Numbers::Integers(vec![0; sets[i].points.len()])),
        };
        let (scores, are_integers) = match [numbers(0)?, numbers(1)?] {
            [Numbers::Integers(a), Numbers::Integers(b)] => (Scores::Integers([a, b]), true),
            both => (Scores::Floats(both.map(Numbers::into_floats)), false),
        };
        let points = sets.map(|places| &places.points[..]);
        Ok(Self { join, meters, k, points, scores, has_integers: are_integers && !is_weighted })
    }

    fn run<S: Score>(&self, on: &Device, scores: &[Vec<S>; 2]) -> Result<Vec<ScoredPair>> {
        let [left, right] = scored(self.points, scores)?;
        Ok(self.join.run(on, left, right)?.into_pairs())
    }
}

fn scored<'s, S: Score>(
    points: [&'s [LonLat]; 2],
    scores: &'s [Vec<S>; 2],
) -> Result<[Scored<'s, LonLat, S>; 2]> {
    Ok([Scored::new(points[0], &scores[0])?, Scored::new(points[1], &scores[1])?])
}

impl Search for Best<'_> {
    fn num_points(&self) -> usize {
        self.points[0].len() + self.points[1].len()
    }

    fn work(&self) -> Work {
        Work::of_join(self.points[0].len(), self.points[1].len(), self.meters)
    }

    fn plan(&self, on: &Device) -> Result<JoinPlan> {
        match &self.scores {
            Scores::Integers(scores) => {
                let [left, right] = scored(self.points, scores)?;
                self.join.plan(on, left, right)
            }
            Scores::Floats(scores) => {
                let [left, right] = scored(self.points, scores)?;
                self.join.plan(on, left, right)
            }
        }
    }

    fn expected_pairs(&self, _: &Device) -> Result<String> {
        Ok(format!("at most {}", thousands(self.k)))
    }

    fn find(&self, on: &Device, take: &mut TakePairs<'_>) -> Result<()> {
        let pairs = match &self.scores {
            Scores::Integers(scores) => self.run(on, scores)?,
            Scores::Floats(scores) => self.run(on, scores)?,
        };
        let rows: Vec<[u32; 2]> = pairs.iter().map(|pair| [pair.left, pair.right]).collect();
        let [left, right] = self.points;
        let meters = |&[l, r]: &[u32; 2]| left[l as usize].meters_to(&right[r as usize]);
        let meters: Vec<f64> = rows.iter().map(meters).collect();
        let scores = numbers_of(&pairs, self.has_integers);
        take(Pairs { rows: &rows, meters: &meters, scores: Some(&scores) })
    }
}

/// Returns the scores of pairs; an empty result has the type of the scores, too.
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
