//! The best-scored pairs.

use super::condition::Condition;
use super::stream::{distances, rows};
use super::task::Search;
use crate::device::Work;
use crate::score::ScoreText;
use crate::tables::JoinTable;
use crate::text::thousands;
use kauri::io::{Numbers, Pairs, TakePairs};
use kauri::join::{JoinPlan, PairScore, Score, ScoreFunction, Scored, ScoredPair};
use kauri::{Device, Result};

pub(super) struct Best<'p, C: Condition> {
    condition: C,
    k: usize,
    score: &'p ScoreText,
    tables: [&'p JoinTable<C::Item>; 2],
    scores: Scores,
    has_integers: bool,
}

/// The scores of both sets, which have one type.
enum Scores {
    Integers([Vec<i64>; 2]),
    Floats([Vec<f64>; 2]),
}

impl<'p, C: Condition> Best<'p, C> {
    /// Reads the scores.
    pub(super) fn new(
        tables: [&'p JoinTable<C::Item>; 2],
        condition: C,
        k: usize,
        score: &'p ScoreText,
    ) -> Result<Self> {
        let numbers = |i: usize| match &score.columns[i] {
            Some(name) => tables[i].numbers(name),
            None => Ok(Numbers::Integers(vec![0; tables[i].items.len()])),
        };
        let (scores, are_integers) = match [numbers(0)?, numbers(1)?] {
            [Numbers::Integers(a), Numbers::Integers(b)] => (Scores::Integers([a, b]), true),
            both => (Scores::Floats(both.map(Numbers::into_floats)), false),
        };
        let has_integers = are_integers && score.function != ScoreFunction::Weighted;
        Ok(Self { condition, k, score, tables, scores, has_integers })
    }

    fn sets(&self) -> [&'p [C::Item]; 2] {
        self.tables.map(|table| &table.items[..])
    }

    fn scored<'s, S: Score>(&'s self, scores: &'s [Vec<S>; 2]) -> Result<[Scored<'s, C::Item, S>; 2]> {
        let [left, right] = self.sets();
        Ok([Scored::new(left, &scores[0])?, Scored::new(right, &scores[1])?])
    }
}

impl<C: Condition> Search for Best<'_, C> {
    type Item = C::Item;

    fn num_items(&self) -> usize {
        self.sets().map(<[_]>::len).iter().sum()
    }

    fn work(&self) -> Work {
        self.condition.work(self.sets())
    }

    fn plan(&self, on: &Device) -> Result<JoinPlan> {
        match &self.scores {
            Scores::Integers(scores) => {
                self.condition.plan_best(on, self.scored(scores)?, self.k, self.score)
            }
            Scores::Floats(scores) => self.condition.plan_best(on, self.scored(scores)?, self.k, self.score),
        }
    }

    fn expected_pairs(&self, _: &Device) -> Result<String> {
        Ok(format!("at most {}", thousands(self.k)))
    }

    fn find(&self, on: &Device, take: &mut TakePairs<'_>) -> Result<()> {
        let pairs = match &self.scores {
            Scores::Integers(scores) => self.condition.best(on, self.scored(scores)?, self.k, self.score)?,
            Scores::Floats(scores) => self.condition.best(on, self.scored(scores)?, self.k, self.score)?,
        };
        let items: Vec<[u32; 2]> = pairs.iter().map(|pair| [pair.left, pair.right]).collect();
        let distances = self.condition.has_distances().then(|| distances(self.tables, &items));
        let rows = rows(self.tables, &items);
        let scores = numbers_of(&pairs, self.has_integers);
        take(Pairs { rows: &rows, distances: distances.as_deref(), scores: Some(&scores) })
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
