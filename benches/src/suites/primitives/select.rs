//! Select, partition and unique.

use super::scan::offsets;
use super::{Bench, expect};
use kauri::Result;
use kauri::device::Buffer;
use kauri::primitives::predicate::{Below, EqualBits};
use kauri::primitives::{cpu, partition, select, unique};
use kauri::research::primitives::{flagged_two_pass, plan_two_pass};

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    let noise = bench.noise();
    let items = bench.make(bench.n, |i| noise(i) as u32)?;
    let mut kept = bench.uninitialized(bench.n)?;
    let mut others = bench.uninitialized(bench.n)?;
    let mut count = bench.uninitialized::<u64>(1)?;
    let temp = select::plan::<u32>(bench.n);

    for percent in [10, 50, 90] {
        let bound = (u64::from(u32::MAX) * percent / 100) as u32;
        let share = bench.n * percent as usize / 100;
        let input = format!("u32, {percent} %");
        bench.time("select below", &input, 4 * (bench.n + share), temp, |stream, workspace| {
            select::matching::<u32, Below>(stream, workspace, &items, bound, &mut kept, &mut count)
        })?;
        check(
            bench,
            "select below",
            &kept,
            &count,
            |items| cpu::select::matching::<u32, Below>(items, bound),
            &items,
        )?;
        let flags = bench.make(bench.n, |i| u8::from((noise(i) as u32) < bound))?;
        bench.time("select flagged", &input, 5 * bench.n + 4 * share, temp, |stream, workspace| {
            select::flagged(stream, workspace, &items, &flags, &mut kept, &mut count)
        })?;
        check(
            bench,
            "select flagged",
            &kept,
            &count,
            |items| cpu::select::matching::<u32, Below>(items, bound),
            &items,
        )?;
        let two_pass = plan_two_pass::<u32>(bench.n);
        bench.time(
            "select flagged, two passes",
            &input,
            5 * bench.n + 12 * share,
            two_pass,
            |stream, workspace| flagged_two_pass(stream, workspace, &items, &flags, &mut kept, &mut count),
        )?;
        check(
            bench,
            "two passes",
            &kept,
            &count,
            |items| cpu::select::matching::<u32, Below>(items, bound),
            &items,
        )?;
        bench.time("partition below", &input, 8 * bench.n, temp, |stream, workspace| {
            select::partition::<u32, Below>(
                stream,
                workspace,
                &items,
                bound,
                &mut kept,
                &mut others,
                &mut count,
            )
        })?;
    }
    by_class(bench, &items)?;
    drop((items, others));

    for (run, name) in [(2, "u32, runs of 2"), (100, "u32, runs of 100")] {
        let items = bench.make(bench.n, |i| noise(i / run) as u32)?;
        let num_runs = bench.n / run as usize;
        bench.time(
            "unique",
            name,
            4 * (bench.n + num_runs),
            unique::plan::<u32>(bench.n),
            |stream, workspace| {
                unique::unique::<u32, EqualBits>(stream, workspace, &items, &mut kept, &mut count)
            },
        )?;
        check(bench, "unique", &kept, &count, cpu::unique::unique::<u32, EqualBits>, &items)?;
    }
    Ok(())
}

/// Compares the kept items with those of the CPU.
fn check(
    bench: &Bench<'_>,
    work: &str,
    kept: &Buffer<u32>,
    count: &Buffer<u64>,
    on_cpu: impl Fn(&[u32]) -> Vec<u32>,
    items: &Buffer<u32>,
) -> Result<()> {
    if bench.is_checked() {
        let count = count.to_vec(&bench.stream)?[0] as usize;
        expect(work, &kept.front_to_vec(&bench.stream, count)?, &on_cpu(&items.to_vec(&bench.stream)?));
    }
    Ok(())
}

fn by_class(bench: &mut Bench<'_>, items: &Buffer<u32>) -> Result<()> {
    let noise = bench.noise();
    let mut out = bench.uninitialized(bench.n)?;
    for (num_classes, classes_name) in [(2, "two classes"), (3, "three classes")] {
        let classes = bench.make(bench.n, |i| (noise(i) % num_classes) as u8)?;
        for (segment_items, name) in
            [(u64::MAX, "one segment"), (1000, "segments of 1000"), (8, "segments of 8")]
        {
            let offsets = offsets(bench, segment_items)?;
            let mut counts = bench.uninitialized(2 * (offsets.len() - 1))?;
            let input = format!("u32, {classes_name}, {name}");
            let temp = partition::plan(bench.n);
            bench.time("partition by class", &input, 9 * bench.n, temp, |stream, workspace| {
                partition::by_class(stream, workspace, items, &classes, &offsets, &mut out, &mut counts)
            })?;
            if bench.is_checked() {
                let stream = &bench.stream;
                let (items, classes) = (items.to_vec(stream)?, classes.to_vec(stream)?);
                let (expected, _) = cpu::partition::by_class(&items, &classes, &offsets.to_vec(stream)?);
                expect("partition by class", &out.to_vec(stream)?, &expected);
            }
        }
    }
    Ok(())
}
