//! Adds a profile of the suite `join-thesis-once`, or of the rival with `ONCE=1`, to the figures: occupancy, cache hits and traffic of the
//! longest kernel of each join.

use super::{
    COMPARED_KS, DISTANCE, HITS, Join, K, OCCUPANCY, OCCUPANCY_OF_K, OVER_DISTANCE, OVER_K, TRAFFIC, line_of,
    profiled_joins,
};
use crate::figures::FigurePoint;
use crate::report::Report;
use kauri::join::Strategy;

/// The columns of `ncu --csv --page raw --print-units base` that are read: the kernel, the time, occupancy, hits of both caches, and bytes.
pub(super) const COLUMNS: [&str; 9] = [
    "Kernel Name",
    "gpu__time_duration.sum",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "l1tex__t_sector_hit_rate.pct",
    "lts__t_sector_hit_rate.pct",
    "l1tex__t_bytes_pipe_lsu_mem_global_op_ld.sum",
    "lts__t_bytes.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
];

/// The rival's name in its rows.
const RIVAL: &str = "Lovik in CUDA";

/// The kernels of each strategy, by the begin of their names. Other kernels are not part of the profile.
const KERNELS: [(&str, &str, Strategy); 8] = [
    ("join_rising", "", Strategy::Cells),
    ("join_in_registers", "", Strategy::RegisterHeap),
    ("join_in_shared", "", Strategy::SharedHeap),
    ("join_append", "", Strategy::AppendSort),
    ("join_filter", "", Strategy::Filter),
    ("filter_in_registers", RIVAL, Strategy::RegisterHeap),
    ("filter_in_shared", RIVAL, Strategy::SharedHeap),
    ("filter_append", RIVAL, Strategy::AppendSort),
];

/// A launch of a kernel.
struct Launch {
    kernel: String,
    system: &'static str,
    strategy: Strategy,
    /// The values of the columns after the first.
    values: [f64; COLUMNS.len() - 1],
}

/// Adds the points of a profile, given as the CSV of `ncu`, to the rows of the joins.
///
/// # Errors
/// A sentence, if the text is no such profile or is of other joins.
pub fn add_profile(report: &mut Report, csv: &str) -> Result<(), String> {
    let mut longest = longest_launches(csv)?.into_iter().peekable();
    for join in profiled_joins() {
        // A join that did not fit into memory, or is not of the system, has no launches.
        let Some(launch) = longest.next_if(|launch| launch.strategy == join.strategy) else { continue };
        // The name ends with the length of the heaps.
        let len = launch.kernel.rsplit(|c: char| !c.is_ascii_digit()).find_map(|number| number.parse().ok());
        if join.strategy == Strategy::RegisterHeap && len != Some(join.k) {
            return Err(format!("a profile of other joins: {} for {} pairs", launch.kernel, join.k));
        }
        let work = join.work();
        let is_it = |point: &FigurePoint| [OVER_DISTANCE.name, OVER_K.name].contains(&point.figure);
        let mut rows = report.rows.iter_mut().filter(|row| row.system == launch.system && row.work == work);
        if let Some(row) = rows.find(|row| row.figure_points.iter().any(is_it)) {
            row.figure_points.extend(points(&join, &launch));
        }
    }
    longest
        .next()
        .map_or(Ok(()), |launch| Err(format!("a profile of other joins: {} is left", launch.kernel)))
}

/// Returns the longest launch of each series of launches of one strategy.
fn longest_launches(csv: &str) -> Result<Vec<Launch>, String> {
    let mut lines = csv.lines().map(fields).skip_while(|fields| fields.len() < COLUMNS.len());
    let header = lines.next().unwrap_or_default();
    let column = |name: &&str| header.iter().position(|other| other == name);
    let columns: Vec<usize> = COLUMNS
        .iter()
        .map(|name| column(name).ok_or(format!("no column {name}")))
        .collect::<Result<_, _>>()?;
    let mut longest: Vec<Launch> = Vec::new();
    for fields in lines {
        let field = |column: usize| fields.get(columns[column]).map_or("", |field| field.as_str());
        let kernel = field(0).trim_start_matches("void ");
        let kernel = kernel.split('(').next().unwrap_or_default().to_owned();
        let Some(&(_, system, strategy)) = KERNELS.iter().find(|(begin, ..)| kernel.starts_with(begin))
        else {
            continue;
        };
        let values = std::array::from_fn(|i| field(1 + i).replace(',', "").parse().unwrap_or(0.0));
        let launch = Launch { kernel, system, strategy, values };
        match longest.last_mut().filter(|last| last.strategy == strategy) {
            Some(last) if last.values[0] < values[0] => *last = launch,
            Some(_) => {}
            None => longest.push(launch),
        }
    }
    Ok(longest)
}

/// Returns the fields of a line of CSV.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut is_quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            c => fields.last_mut().expect("there is a field").push(c),
        }
    }
    fields
}

/// Returns the points of a join in the figures.
fn points(join: &Join, launch: &Launch) -> Vec<FigurePoint> {
    let [_, active, l1_hits, l2_hits, l1_bytes, l2_bytes, read, written] = launch.values;
    let (epsilon, k) = (f64::from(join.epsilon), join.k as f64);
    let line = match launch.system {
        "" => line_of(join.name).to_owned(),
        system => format!("{system}, {}", line_of(join.name)),
    };
    let mut points = Vec::new();
    if join.k == K {
        points.push(FigurePoint::new(OCCUPANCY.name, "", &line, epsilon).value(active));
    }
    if join.epsilon == DISTANCE {
        points.push(FigurePoint::new(OCCUPANCY_OF_K.name, "", &line, k).value(active));
    }
    if COMPARED_KS.contains(&join.k) {
        let hits = [("L1 cache", l1_hits), ("L2 cache", l2_hits)];
        points.extend(hits.map(|(cache, hits)| FigurePoint::new(HITS.name, &line, cache, k).value(hits)));
        let bytes = [("loads of L1", l1_bytes), ("L2", l2_bytes), ("memory", read + written)];
        points.extend(
            bytes.map(|(from, bytes)| FigurePoint::new(TRAFFIC.name, &line, from, k).value(bytes / 1e6)),
        );
    }
    points
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns a profile of the joins with heaps in registers.
    pub(in super::super) fn of_registers(kernel: &str) -> String {
        let joins = profiled_joins().filter(|join| join.strategy == Strategy::RegisterHeap);
        let launch = |join: Join| {
            let other = format!("\"join_codes_f32_2\",{}\n", "9,".repeat(8));
            let short = format!("\"{}\",{}\n", kernel.replace('K', &join.k.to_string()), "1,".repeat(8));
            format!("{other}{short}{}{other}", short.replace("1,1,", "\"1,000\",40,"))
        };
        // A launch of another strategy ends a series.
        let end = format!("\"join_in_shared_f32_2\",{}\n", "2,".repeat(8));
        let end = if kernel.starts_with("join") {
            end
        } else {
            end.replace("join_in_shared_f32_2", "void filter_in_shared<8>")
        };
        let launches: Vec<_> = joins.map(launch).collect();
        format!("==PROF== done\n{}\n,ns,%\n{}{end}", COLUMNS.join(","), launches.join(&end))
    }

    /// The profile of the recorded results.
    const RECORDED: &str = include_str!("../../../../results/join-thesis-ncu-h200.csv");

    #[test]
    fn longest_launch_of_each_join() {
        let launches = longest_launches(RECORDED).unwrap();
        let of = |strategy| launches.iter().filter(move |launch| launch.strategy == strategy);
        // Seven distances, one of which has too many pairs for the filter, and seven other numbers of pairs.
        assert_eq!((of(Strategy::RegisterHeap).count(), of(Strategy::Filter).count()), (14, 13));
        let active: Vec<f64> = of(Strategy::RegisterHeap).map(|launch| launch.values[1].round()).collect();
        assert_eq!((active[2], active[13]), (23.0, 10.0));
    }

    #[test]
    fn profiles_of_other_joins_are_refused() {
        let mut report = Report::new("join-thesis", crate::hardware::Hardware::of(&kauri::Device::cpu()), 1);
        add_profile(&mut report, RECORDED).unwrap();
        let other = RECORDED.replace("join_in_registers_f32_2_128", "join_in_registers_f32_2_64");
        assert!(add_profile(&mut report, &other).unwrap_err().contains("of other joins"));
        assert!(add_profile(&mut report, "no profile").unwrap_err().contains("Kernel Name"));
        let profile = of_registers("join_in_registers_f32_2_K");
        add_profile(&mut report, &profile).unwrap();
        let twice = format!("{profile}{}", profile.lines().last().unwrap().replace("in_shared", "append"));
        let twice = format!("{twice}\n{}", profile.lines().last().unwrap());
        assert!(add_profile(&mut report, &twice).unwrap_err().contains("is left"));
    }
}
