//! `example_op` on device buffers, beside a copy on the device and its CPU twin. A rival is a program in `benches/rivals` that prints
//! rows of this work and input.

use super::{Settings, Suite, copy};
use crate::points::noise;
use crate::report::{Report, Row};
use kauri::device::{Buffer, Stream, Workspace};
use kauri::example_op::{example_op, example_op_on_cpu, plan};
use kauri::{Error, Result};

/// The suite.
pub const SUITES: [(&str, Suite); 1] = [("example_op", run)];

fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let Some(gpu) = settings.device.gpu() else { return Err(Error::NoDevice) };
    report.push(copy(gpu, settings.effort)?);
    let stream = Stream::new(gpu)?;
    let mut workspace = Workspace::new(gpu);
    for &n in &settings.sizes {
        let items: Vec<u32> = (0..n as u64).map(|i| noise(settings.seed, i) as u32).collect();
        let input = Buffer::from_slice(&stream, &items, "items")?;
        let mut key = Buffer::uninitialized(gpu, 1, "key")?;
        let row = Row {
            work: "example_op".to_owned(),
            input: "u32".to_owned(),
            n: n as u64,
            items: Some(n as u64),
            bytes: Some(4 * n as u64),
            check: Some("as on the CPU"),
            ..Row::default()
        };
        let work = || example_op(&stream, &mut workspace, &input, &mut key);
        let timing = Some(settings.effort.events(&stream, work)?);
        let expected = example_op_on_cpu(&items)?;
        assert_eq!(key.to_vec(&stream)?, [expected], "example_op: the device and the CPU disagree");
        report.push(Row { timing, temp_bytes: Some(plan(n)), ..row.clone() });
        let timing = Some(settings.effort.wall(|| example_op_on_cpu(&items))?);
        report.push(Row { system: "CPU, one thread".to_owned(), timing, ..row });
    }
    Ok(())
}
