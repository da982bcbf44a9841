//! The best pairs of rows with scores.

use super::output::{Output, Pairs};
use super::scored::ScoredRows;
use super::side::{Shapes, Side};
use crate::error::from_kauri;
use crate::functions::point_distance;
use crate::geometry::Measure;
use datafusion::common::internal_err;
use datafusion::error::Result;
use kauri::join::{Scored, ScoredPair, TopPairs};
use kauri::{Device, TopKDistanceJoin};

/// The least number of the best rows of a side that are joined first.
const BEST_ROWS: usize = 1 << 16;

/// Joins the best rows, and then all rows that may be in pairs as good as those.
pub(super) fn send_pairs(
    [left, right]: [&ScoredRows; 2],
    device: &Device,
    k: usize,
    radius: f64,
    measure: Measure,
    output: &Output,
) -> Result<()> {
    let join = TopKDistanceJoin::new(radius, k);
    let most = left.len().max(right.len());
    let mut len = BEST_ROWS.max(k.saturating_mul(4));
    loop {
        len = if len > most / 2 { most } else { len };
        let sides = both(|| left.read(&left.best(len)), || right.read(&right.best(len)))?;
        let found = best_pairs(&join, device, &sides)?;
        if len == most {
            send_best(&sides, found.pairs(), measure, output);
            return Ok(());
        }
        if let Some(last) = found.pairs().get(k - 1) {
            let threshold = last.score.to_f64();
            // Addition is monotone, also with rounding.
            let reaches = |side: &ScoredRows, best: f64| side.with_score(|score| score + best >= threshold);
            let sides = both(
                || left.read(&reaches(left, right.best_score())),
                || right.read(&reaches(right, left.best_score())),
            )?;
            send_best(&sides, best_pairs(&join, device, &sides)?.pairs(), measure, output);
            return Ok(());
        }
        len = len.saturating_mul(16);
    }
}

/// Reads both sides at the same time.
fn both(
    left: impl FnOnce() -> Result<Side> + Send,
    right: impl FnOnce() -> Result<Side> + Send,
) -> Result<[Side; 2]> {
    let (left, right) = rayon::join(left, right);
    Ok([left?, right?])
}

/// Finds the best pairs of sides with scores.
fn best_pairs(join: &TopKDistanceJoin<f64>, device: &Device, sides: &[Side; 2]) -> Result<TopPairs> {
    let [left, right] = sides;
    match (&left.shapes, &right.shapes) {
        (Shapes::Planar(a), Shapes::Planar(b)) => {
            Scored::new(a, &left.scores).and_then(|a| join.run(device, a, Scored::new(b, &right.scores)?))
        }
        (Shapes::LonLat(a), Shapes::LonLat(b)) => {
            Scored::new(a, &left.scores).and_then(|a| join.run(device, a, Scored::new(b, &right.scores)?))
        }
        _ => return internal_err!("the sides of a join have different geometries"),
    }
    .map_err(from_kauri)
}

fn send_best(sides: &[Side; 2], found: &[ScoredPair], measure: Measure, output: &Output) {
    let [left, right] = sides;
    let distance = |pair: &ScoredPair| {
        point_distance(measure, left.points()[pair.left as usize], right.points()[pair.right as usize])
    };
    let pairs = Pairs {
        left: found.iter().map(|pair| pair.left).collect(),
        right: found.iter().map(|pair| pair.right).collect(),
        distances: found.iter().map(distance).collect(),
        scores: found.iter().map(|pair| pair.score.to_f64()).collect(),
    };
    // A receiver that is gone needs no pairs.
    let _ = output.send(left, right, pairs);
}
