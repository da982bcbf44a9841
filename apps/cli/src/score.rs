//! Scores on the command line: `left.population+right.altitude_ft`.

use kauri::join::ScoreFunction;
use std::str::FromStr;

/// The score of a pair: function, columns, weights.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ScoreText {
    pub(super) function: ScoreFunction,
    /// Names of columns, left and right; a side without one has the score 0.
    pub(super) columns: [Option<String>; 2],
    /// Weights of [`ScoreFunction::Weighted`].
    pub(super) weights: [f64; 2],
}

const EXPECTED: &str = "expected left.COLUMN+right.COLUMN, with * in place of +, min(left.COLUMN,right.COLUMN), max(…), or weights as in \
                        2*left.COLUMN-0.5*right.COLUMN";

impl FromStr for ScoreText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let parsed = parse(text);
        parsed.ok_or_else(|| EXPECTED.to_owned())
    }
}

fn parse(text: &str) -> Option<ScoreText> {
    for (name, function) in [("min", ScoreFunction::Min), ("max", ScoreFunction::Max)] {
        if let Some(rest) = text.strip_prefix(name)
            && let Some(inside) = rest.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')'))
        {
            let (a, b) = inside.split_once(',')?;
            return of_two(function, [a, b]);
        }
    }
    if let Some((a, b)) = text.split_once('*')
        && let Some(score) = of_two(ScoreFunction::Product, [a, b])
    {
        return Some(score);
    }
    weighted(text)
}

/// Parses two columns, one of each side, in any order.
fn of_two(function: ScoreFunction, texts: [&str; 2]) -> Option<ScoreText> {
    let mut columns = [None, None];
    for text in texts {
        let (side, column) = column(text)?;
        if columns[side].replace(column).is_some() {
            return None;
        }
    }
    Some(ScoreText { function, columns, weights: [1.0, 1.0] })
}

/// Parses side and name of `left.population`.
fn column(text: &str) -> Option<(usize, String)> {
    let text = text.trim();
    let (side, name) = match (text.strip_prefix("left."), text.strip_prefix("right.")) {
        (Some(name), _) => (0, name),
        (_, Some(name)) => (1, name),
        _ => return None,
    };
    // A name that contains another column lacks an operator.
    let is_one = !name.is_empty() && ![" left.", " right."].iter().any(|next| name.contains(next));
    is_one.then(|| (side, name.to_owned()))
}

/// Parses a sum of terms with optional signs and weights.
fn weighted(text: &str) -> Option<ScoreText> {
    let (mut columns, mut weights) = ([None, None], [0.0, 0.0]);
    let mut rest = text;
    while !rest.is_empty() {
        let sign = if rest.starts_with('-') { -1.0 } else { 1.0 };
        if columns.iter().any(Option::is_some) && !rest.starts_with(['+', '-']) {
            return None;
        }
        let term = rest.strip_prefix(['+', '-']).unwrap_or(rest).trim_start();
        // The next sign is searched after `left.` or `right.`, because a weight can have a sign in its exponent.
        let begin = term.find("left.").into_iter().chain(term.find("right.")).min()?;
        let end = term[begin..].find(['+', '-']).map_or(term.len(), |at| begin + at);
        let weight = match term[..begin].trim() {
            "" => 1.0,
            number => {
                number.strip_suffix('*')?.trim().parse().ok().filter(|weight: &f64| weight.is_finite())?
            }
        };
        let (side, name) = column(&term[begin..end])?;
        if columns[side].replace(name).is_some() {
            return None;
        }
        weights[side] = sign * weight;
        rest = term[end..].trim_start();
    }
    let is_sum = columns.iter().all(Option::is_some) && weights == [1.0, 1.0];
    let function = if is_sum { ScoreFunction::Sum } else { ScoreFunction::Weighted };
    columns.iter().any(Option::is_some).then_some(ScoreText { function, columns, weights })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (ScoreFunction, [Option<String>; 2], [f64; 2]) {
        let ScoreText { function, columns, weights } = text.parse().unwrap();
        (function, columns, weights)
    }

    #[test]
    fn scores_are_read() {
        let both = [Some("population".to_owned()), Some("altitude_ft".to_owned())];
        let read_both = |text| {
            let (function, columns, weights) = read(text);
            assert_eq!(columns, both, "{text}");
            (function, weights)
        };
        assert_eq!(read_both("left.population+right.altitude_ft"), (ScoreFunction::Sum, [1.0, 1.0]));
        assert_eq!(read_both("right.altitude_ft + left.population"), (ScoreFunction::Sum, [1.0, 1.0]));
        assert_eq!(read_both("left.population * right.altitude_ft").0, ScoreFunction::Product);
        assert_eq!(read_both("min(left.population, right.altitude_ft)").0, ScoreFunction::Min);
        assert_eq!(read_both("max(right.altitude_ft,left.population)").0, ScoreFunction::Max);
        let weighted = (ScoreFunction::Weighted, [2.0, -0.5]);
        assert_eq!(read_both("2*left.population - 0.5*right.altitude_ft"), weighted);
        assert_eq!(read_both("-5e-1*right.altitude_ft+2*left.population"), weighted);
        let (function, columns, weights) = read("left.population");
        assert_eq!((function, weights), (ScoreFunction::Weighted, [1.0, 0.0]));
        assert_eq!(columns, [both[0].clone(), None]);
    }

    #[test]
    fn what_is_no_score() {
        for text in [
            "",
            "population",
            "left.a+left.b",
            "left.a right.b",
            "left.a+",
            "min(left.a)",
            "left.",
            "3",
            "x*left.a",
            "inf*left.a",
            "1e999*left.a",
        ] {
            assert!(text.parse::<ScoreText>().is_err(), "{text}");
        }
    }
}
