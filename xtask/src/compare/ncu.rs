//! Nsight Compute: runs rows of a variant under `ncu`, and says for each kernel what bounds it.

use super::variant::Variant;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fmt::Write;
use std::fs;
use std::process::{Command, Stdio};

/// Sections of metrics. Their names have been constant since the first versions of `ncu`.
const SECTIONS: [&str; 4] = ["SpeedOfLight", "Occupancy", "WarpStateStats", "LaunchStats"];

/// Share of the peak from which on a unit bounds a kernel, in percent: Nsight Compute's own threshold for high utilization.
const BUSY: f64 = 60.0;

const DURATION: &str = "gpu__time_duration.sum";
const DRAM: [&str; 2] = [
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed",
];
const L2: [&str; 1] = ["lts__throughput.avg.pct_of_peak_sustained_elapsed"];
const COMPUTE: [&str; 1] = ["sm__throughput.avg.pct_of_peak_sustained_elapsed"];
const OCCUPANCY: [&str; 1] = ["sm__warps_active.avg.pct_of_peak_sustained_active"];
const WAVES: [&str; 2] = ["launch__waves_per_multiprocessor", "launch__waves_per_multiprocessor.avg"];

/// Metrics of a kernel, as averages of its launches weighted by their durations; NaN where a version of `ncu` has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Profile {
    launches: u32,
    /// Microseconds of all launches.
    duration: f64,
    dram: f64,
    l2: f64,
    compute: f64,
    occupancy: f64,
    waves: f64,
    /// The average number of stalled warps per issued instruction, by reason.
    stalls: BTreeMap<String, f64>,
}

impl Profile {
    /// Returns the reason with the most stalls.
    fn stall(&self) -> &str {
        let most = self.stalls.iter().max_by(|a, b| a.1.total_cmp(b.1));
        most.map_or("-", |(reason, _)| reason)
    }

    /// Names the resource that bounds the kernel.
    fn bound(&self) -> &'static str {
        let units = [("DRAM", self.dram), ("L2", self.l2), ("compute", self.compute)];
        let busiest =
            units.into_iter().filter(|(_, share)| *share >= BUSY).max_by(|a, b| a.1.total_cmp(&b.1));
        match busiest {
            Some((unit, _)) => unit,
            None if self.waves < 1.0 => "size",
            None => "latency",
        }
    }
}

/// Profiles measurements of a variant's suite, each once, in a process of its own under `ncu`.
pub(super) fn profile(
    variant: &Variant,
    settings: &Value,
    measurements: &BTreeSet<u64>,
) -> Result<BTreeMap<String, Profile>> {
    let log = env::temp_dir().join(format!("kauri-ncu-{}.csv", std::process::id()));
    let program = env::current_exe().context("cannot find this program's own path")?;
    let request = serde_json::json!({ "settings": settings, "measurements": measurements });
    let mut command = Command::new("ncu");
    command.args(["--csv", "--page", "raw", "--profile-from-start", "off", "--target-processes", "all"]);
    command.args(SECTIONS.iter().flat_map(|section| ["--section", section]));
    command.arg("--force-overwrite").arg("--log-file").arg(&log).arg(program);
    command.args(["compare", "--profile"]).arg(&variant.folder).arg("--request").arg(request.to_string());
    let output = command.stdin(Stdio::null()).output().context("cannot run ncu")?;
    let csv = fs::read_to_string(&log).unwrap_or_default();
    let _ = fs::remove_file(&log);
    let said = format!(
        "{csv}{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    if said.contains("ERR_NVGPUCTRPERM") {
        bail!(
            "ncu may not read the GPU's performance counters: run it as administrator, or load the kernel module `nvidia` with the \
             option NVreg_RestrictProfilingToAdminUsers=0"
        );
    }
    let profiles = parse(&csv);
    if profiles.is_empty() {
        let last: Vec<&str> = said.lines().rev().take(5).collect();
        bail!(
            "ncu profiled no kernel of {}: {}",
            variant.label,
            last.into_iter().rev().collect::<Vec<_>>().join("; ")
        );
    }
    Ok(profiles)
}

/// Parses the raw page of `ncu --csv`: a header, a line of units, and a line for each launch. Lines before the header are messages.
pub(super) fn parse(csv: &str) -> BTreeMap<String, Profile> {
    let mut lines = csv.lines().skip_while(|line| !line.starts_with("\"ID\""));
    let header = lines.next().map(fields).unwrap_or_default();
    let units = lines.next().map(fields).unwrap_or_default();
    let mut profiles = BTreeMap::<String, Profile>::new();
    for line in lines {
        let values = fields(line);
        let column = |names: &[&str]| {
            let at = names.iter().find_map(|name| header.iter().position(|column| column == name))?;
            Some((number(values.get(at)?)?, units.get(at).map_or("", String::as_str)))
        };
        let value = |names: &[&str]| column(names).map_or(f64::NAN, |(value, _)| value);
        let name = header.iter().position(|column| column == "Kernel Name");
        let Some(name) = name.and_then(|at| values.get(at)) else { continue };
        let Some(duration) = column(&[DURATION]).map(|(value, unit)| value * microseconds(unit)) else {
            continue;
        };
        let profile = profiles.entry(name.clone()).or_default();
        let share = duration / (profile.duration + duration);
        let mix = |old: &mut f64, new: f64| *old += (new - *old) * share;
        profile.launches += 1;
        profile.duration += duration;
        mix(&mut profile.dram, value(&DRAM));
        mix(&mut profile.l2, value(&L2));
        mix(&mut profile.compute, value(&COMPUTE));
        mix(&mut profile.occupancy, value(&OCCUPANCY));
        mix(&mut profile.waves, value(&WAVES));
        for (column, text) in header.iter().zip(&values) {
            if let Some((reason, stall)) = stall(column).zip(number(text)) {
                mix(profile.stalls.entry(reason.to_owned()).or_default(), stall);
            }
        }
    }
    profiles
}

/// Returns the reason of a metric of stalls, such as `smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio`.
fn stall(column: &str) -> Option<&str> {
    let (_, rest) = column.split_once("issue_stalled_")?;
    let reason = rest.strip_suffix("_per_issue_active.ratio")?;
    (!reason.ends_with("_not_issued") && reason != "selected").then_some(reason)
}

fn microseconds(unit: &str) -> f64 {
    match unit {
        "ns" | "nsecond" => 1e-3,
        "ms" | "msecond" => 1e3,
        "s" | "second" => 1e6,
        _ => 1.0,
    }
}

/// Parses a number such as `15,008.5`.
fn number(text: &str) -> Option<f64> {
    text.replace(',', "").parse().ok()
}

/// Splits a line of CSV whose fields may be quoted.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut is_quoted) = (vec![String::new()], false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let last = fields.len() - 1;
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => fields[last].extend(chars.next()),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            c => fields[last].push(c),
        }
    }
    fields
}

/// Returns the profile of a variant as Markdown, kernels that take the most time first.
pub(super) fn table(label: &str, profiles: &BTreeMap<String, Profile>) -> String {
    let mut text = format!("\nBy Nsight Compute, {label}:\n\n");
    text += "| kernel | launches | us | DRAM % | L2 % | compute % | occupancy % | most stalls | bound |\n";
    text += "|---|--:|--:|--:|--:|--:|--:|---|---|\n";
    let mut profiles: Vec<_> = profiles.iter().collect();
    profiles.sort_by(|a, b| b.1.duration.total_cmp(&a.1.duration));
    let percent = |share: f64| if share.is_nan() { "-".to_owned() } else { format!("{share:.0}") };
    for (name, profile) in profiles {
        writeln!(
            text,
            "| {name} | {} | {:.1} | {} | {} | {} | {} | {} | {} |",
            profile.launches,
            profile.duration,
            percent(profile.dram),
            percent(profile.l2),
            percent(profile.compute),
            percent(profile.occupancy),
            profile.stall(),
            profile.bound(),
        )
        .expect("writing to a string");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: &str = "\
==PROF== Connected to process 7
\"ID\",\"Kernel Name\",\"Block Size\",\"gpu__time_duration.sum\",\"dram__throughput.avg.pct_of_peak_sustained_elapsed\",\"lts__throughput.avg.pct_of_peak_sustained_elapsed\",\"sm__throughput.avg.pct_of_peak_sustained_elapsed\",\"sm__warps_active.avg.pct_of_peak_sustained_active\",\"launch__waves_per_multiprocessor\",\"smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio\",\"smsp__average_warps_issue_stalled_wait_per_issue_active.ratio\",\"smsp__average_warps_issue_stalled_selected_per_issue_active.ratio\"
\"\",\"\",\"\",\"ns\",\"%\",\"%\",\"%\",\"%\",\"\",\"inst\",\"inst\",\"inst\"
\"0\",\"scan_up\",\"(128, 1, 1)\",\"1,000.0\",\"80\",\"50\",\"20\",\"90\",\"4\",\"3\",\"1\",\"9\"
\"1\",\"scan_up\",\"(128, 1, 1)\",\"3,000.0\",\"60\",\"50\",\"20\",\"70\",\"4\",\"7\",\"1\",\"9\"
\"2\",\"small\",\"(32, 1, 1)\",\"2,500\",\"1\",\"2\",\"3\",\"5\",\"0.1\",\"1\",\"2\",\"9\"
";

    #[test]
    fn launches_of_a_kernel_are_averaged() {
        let profiles = parse(CSV);
        let scan = &profiles["scan_up"];
        assert_eq!((scan.launches, scan.duration, scan.dram, scan.occupancy), (2, 4.0, 65.0, 75.0));
        assert_eq!(
            (scan.stall(), scan.stalls["long_scoreboard"], scan.bound()),
            ("long_scoreboard", 6.0, "DRAM")
        );
        assert_eq!((profiles["small"].stall(), profiles["small"].bound()), ("wait", "size"));
        let text = table("A", &profiles);
        let first = text.lines().position(|line| {
            line.starts_with("| scan_up | 2 | 4.0 | 65 | 50 | 20 | 75 | long_scoreboard | DRAM |")
        });
        assert!(
            first < text.lines().position(|line| line.starts_with("| small |")) && first.is_some(),
            "{text}"
        );
    }

    #[test]
    fn versions_may_lack_metrics_and_have_other_units() {
        let csv = "\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\",\"sm__throughput.avg.pct_of_peak_sustained_elapsed\"\n\"\",\"\",\"msecond\",\"%\"\n\"0\",\"a,\"\"b\",\"2.5\",\"61\"\n\"1\",\"c\",\"1\",\"n/a\"\n";
        let profiles = parse(csv);
        let profile = &profiles["a,\"b"];
        assert_eq!((profile.duration, profile.bound(), profile.stall()), (2500.0, "compute", "-"));
        assert!(
            profile.dram.is_nan()
                && table("A", &profiles).contains("| 2500.0 | - | - | 61 | - | - | compute |")
        );
        assert_eq!(profiles["c"].bound(), "latency");
        assert!(parse("==ERROR== no device").is_empty());
    }
}
