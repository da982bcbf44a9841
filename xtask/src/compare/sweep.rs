//! Sweeps: the combinations of values of the policy, the best of them, and its text in the policy.

use super::policy::{self, Setting};
use super::rows::{self, Matched, Rows, letter};
use super::statistics::ALPHA;
use anyhow::{Result, bail};

/// Maximum number of variants of a sweep: each is built, and all are in memory at once.
const MAX_VARIANTS: usize = 64;

/// Returns the combinations of the values of sweeps, the present values first.
pub(super) fn variants(text: &str, sweeps: &[String]) -> Result<Vec<Vec<Setting>>> {
    let mut variants: Vec<Vec<Setting>> = vec![Vec::new()];
    for sweep in sweeps {
        let (path, others) = policy::sweep(sweep)?;
        if variants[0].iter().any(|set| set.path == path) {
            bail!("{path} is swept twice: give its values to one --sweep");
        }
        let present = policy::value(text, &path)?.to_owned();
        let mut values = vec![present.clone()];
        for value in others {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        if values.len() == 1 {
            bail!("{path} has the present value {present} alone: add another value");
        }
        if variants.len() * values.len() > MAX_VARIANTS {
            bail!("the sweep has more than {MAX_VARIANTS} combinations");
        }
        let with = |value: &String| Setting { path: path.clone(), value: value.clone() };
        variants = variants
            .iter()
            .flat_map(|settings| {
                values.iter().map(move |value| [settings.clone(), vec![with(value)]].concat())
            })
            .collect();
    }
    Ok(variants)
}

/// The result of a sweep.
pub(super) struct Verdict {
    /// The best variant and its strongest row; `None` if no value is better.
    best: Option<(usize, String)>,
    level: f64,
}

/// Finds the variant that is faster in a row and slower in none, with the least product of ratios. The intervals hold for all
/// comparisons together, so that chance makes one of them miss with the usual probability at most. Rows of rivals do not count.
pub(super) fn verdict(variants: &[Rows], row: &str) -> Verdict {
    let is_ours = |row: &Matched| row.rows.iter().all(|row| !row.is_rival);
    let num_rows = rows::matched(variants, row, ALPHA).0.into_iter().filter(is_ours).count();
    let level = ALPHA / (num_rows * variants.len().saturating_sub(1)).max(1) as f64;
    let (mut matched, _) = rows::matched(variants, row, level);
    matched.retain(is_ours);
    let of_variant =
        |i: usize| matched.iter().filter_map(move |row: &Matched| Some((row, row.ratios[i - 1]?)));
    let is_better = |i: &usize| {
        of_variant(*i).any(|(_, ratio)| ratio.is_faster())
            && !of_variant(*i).any(|(_, ratio)| ratio.is_slower())
    };
    let product = |i: usize| of_variant(i).map(|(_, ratio)| ratio.median.ln()).sum::<f64>();
    let best = (1..variants.len()).filter(is_better).min_by(|a, b| product(*a).total_cmp(&product(*b)));
    let best = best.and_then(|i| {
        let faster = of_variant(i).filter(|(_, ratio)| ratio.is_faster());
        let strongest = faster.min_by(|a, b| a.1.median.total_cmp(&b.1.median))?;
        Some((i, strongest.0.key.clone()))
    });
    Verdict { best, level }
}

impl Verdict {
    /// Returns a sentence about the best variant.
    pub(super) fn describe(&self, variants: &[Rows]) -> String {
        let percent = (1.0 - self.level) * 100.0;
        match &self.best {
            Some((i, row)) => format!(
                "best: {}, `{}`; most in the row {row} (each interval at {percent:.2} %, for all rows and values together)",
                letter(*i),
                variants[*i].label
            ),
            None => format!(
                "no value is better: none is faster in a row and slower in no row (each interval at {percent:.2} %, for all rows and values \
                 together)"
            ),
        }
    }
}

/// Returns the text of the policy with the best values and their measurement; `None` if no value is better. `settings` has an
/// entry for each variant.
pub(super) fn written(
    text: &str,
    variants: &[Rows],
    settings: &[Vec<Setting>],
    verdict: &Verdict,
) -> Result<Option<String>> {
    let Some((best, key)) = &verdict.best else { return Ok(None) };
    for Setting { path, value } in &settings[0] {
        let present = policy::value(text, path)?;
        if present != value {
            bail!("{path} is {present} now, and was {value} when the sweep ran");
        }
    }
    let mut text = policy::with(text, &settings[*best])?;
    let changed =
        settings[*best].iter().zip(&settings[0]).filter(|(new, old)| new != old).map(|(new, _)| new);
    let (matched, _) = rows::matched(variants, key, verdict.level);
    let row = matched.iter().find(|row| row.key == *key);
    for Setting { path, .. } in changed {
        // The values of this path beside the best ones of the others.
        let times = settings.iter().enumerate().filter_map(|(i, variant)| {
            let others_are_best =
                variant.iter().zip(&settings[*best]).all(|(a, b)| a.path == *path || a == b);
            let value = &variant.iter().find(|set| set.path == *path)?.value;
            Some(format!("{value}: {} ms", rows::ms(row?.rows[i].median_ms))).filter(|_| others_are_best)
        });
        let times: Vec<String> = times.collect();
        let name = if path.contains(['.', '[']) { format!("{path}, ") } else { String::new() };
        let device = variants[0].device.as_str();
        let gpu = device.starts_with("cuda").then(|| device.split(['(', ',']).nth(1)).flatten();
        let device = gpu.unwrap_or("CPU").trim();
        let key = key.split("  ").collect::<Vec<_>>().join(", ");
        text = policy::document(&text, path, &format!("{name}{} ({key}, {device}).", times.join(", ")))?;
    }
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const TEXT: &str = "/// The threads. Untuned.\npub const THREADS: usize = 128;\n\n/// Items.\npub const ITEMS: usize = 4;\n";

    /// Reports with a row of these times for each variant.
    fn rows(variants: &[(&str, &[f64])]) -> Vec<Rows> {
        let report = |times: &[f64]| -> Value {
            let row = |(i, ms): (usize, &f64)| {
                let times: Vec<f64> = (0..20).map(|run| ms * (1.0 + 0.001 * f64::from(run % 3))).collect();
                json!({ "work": format!("join {i}"), "input": "u32", "n": 9, "timing": { "median_ms": ms, "times_ms": times } })
            };
            let rows: Vec<Value> = times.iter().enumerate().map(row).collect();
            json!({ "hardware": { "device": "cuda:0 (NVIDIA H200, compute capability 9.0)" }, "rows": rows })
        };
        variants.iter().map(|(label, times)| Rows::of(label, &report(times), true)).collect()
    }

    fn sweep(texts: &[&str]) -> Result<Vec<Vec<Setting>>> {
        variants(TEXT, &texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn combinations_begin_with_the_present_values() {
        let all = sweep(&["THREADS=64,128,256", "ITEMS=8"]).unwrap();
        let shown: Vec<String> = all.iter().map(|settings| policy::shown(settings)).collect();
        assert_eq!(
            shown,
            [
                "THREADS=128,ITEMS=4",
                "THREADS=128,ITEMS=8",
                "THREADS=64,ITEMS=4",
                "THREADS=64,ITEMS=8",
                "THREADS=256,ITEMS=4",
                "THREADS=256,ITEMS=8"
            ]
        );
        let many = (1..=64).map(|i| i.to_string()).collect::<Vec<_>>().join(",");
        for (texts, part) in [
            (vec!["THREADS=128"], "the present value 128 alone"),
            (vec!["THREADS=64", "THREADS=32"], "swept twice"),
            (vec![&*format!("THREADS={many}")], "more than 64"),
            (vec!["NONE=1"], "no constant `NONE`"),
        ] {
            let error = sweep(&texts).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn the_best_value_is_written_with_its_row() {
        let settings = sweep(&["THREADS=64,256"]).unwrap();
        let rows = rows(&[("128", &[2.0, 1.0]), ("64", &[1.8, 1.2]), ("256", &[1.9, 1.0])]);
        let verdict = verdict(&rows, "");
        // 64 is faster in one row and slower in the other.
        assert!(verdict.describe(&rows).starts_with("best: C, `256`; most in the row join 0"));
        let text = written(TEXT, &rows, &settings, &verdict).unwrap().unwrap();
        let expected = "/// The threads. 128: 2.000 ms, 64: 1.800 ms, 256: 1.900 ms (join 0, u32, n=9, NVIDIA H200).\npub const THREADS: usize = 256;\n";
        assert!(text.starts_with(expected), "{text}");
        let changed = TEXT.replace("128", "512");
        assert!(
            written(&changed, &rows, &settings, &verdict).unwrap_err().to_string().contains("is 512 now")
        );
    }

    #[test]
    fn nothing_is_written_if_no_value_is_better() {
        let settings = sweep(&["THREADS=64"]).unwrap();
        for times in [[2.0, 1.0], [1.8, 1.2], [2.2, 1.0]] {
            let rows = rows(&[("128", &[2.0, 1.0]), ("64", &times)]);
            let verdict = verdict(&rows, "");
            assert!(verdict.describe(&rows).starts_with("no value is better"));
            assert_eq!(written(TEXT, &rows, &settings, &verdict).unwrap(), None);
        }
    }

    #[test]
    fn combinations_are_documented_beside_the_best() {
        let settings = sweep(&["THREADS=64", "ITEMS=8"]).unwrap();
        let rows = rows(&[("a", &[2.0]), ("b", &[1.9]), ("c", &[1.8]), ("d", &[1.0])]);
        let text = written(TEXT, &rows, &settings, &verdict(&rows, "")).unwrap().unwrap();
        assert!(text.contains("/// The threads. 128: 1.900 ms, 64: 1.000 ms (join"), "{text}");
        assert!(text.contains("/// Items. 4: 1.800 ms, 8: 1.000 ms (join"), "{text}");
    }
}
