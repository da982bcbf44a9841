//! Times `example_op` by device events, beside a copy on the device and rivals: `cargo bench`, or `cargo bench -- sim` for a dry run.

use example_op_project::example_op::{example_op, example_op_on_cpu};
use kauri::device::{Buffer, Event, Stream, Workspace};
use kauri::{Device, Result};
use std::time::{Duration, Instant};

const RUNS: usize = 21;

/// A rival: its name and a call, timed by the wall clock.
type Rival = (&'static str, fn(&[u32]) -> Result<u64>);

/// Programs and libraries to compare with. Add a function for each.
const RIVALS: [Rival; 1] = [("CPU, one thread", example_op_on_cpu)];

fn main() -> Result<()> {
    let on_sim = std::env::args().any(|argument| argument == "sim");
    let device = Device::from_name(if on_sim { "sim" } else { "cuda" })?;
    let gpu = device.gpu().expect("both devices are GPUs");
    example_op_project::load(gpu)?;
    let stream = Stream::new(gpu)?;
    let mut workspace = Workspace::new(gpu);
    println!("{device}\n{:>12}  {:<20} {:>10} {:>10}", "items", "", "ms", "GB/s");
    for n in if on_sim { vec![10_000] } else { vec![1_000_000, 10_000_000, 100_000_000] } {
        let items: Vec<u32> = (0..n as u32).map(|i| i.wrapping_mul(0x9E37_79B9)).collect();
        let input = Buffer::from_slice(&stream, &items, "items")?;
        let mut key = Buffer::uninitialized(gpu, 1, "key")?;
        let mut copy = Buffer::uninitialized(gpu, n, "copy")?;

        let time = events(&stream, || example_op(&stream, &mut workspace, &input, &mut key))?;
        print_row(n, "example_op", time, 4 * n);
        let expected = example_op_on_cpu(&items)?;
        assert_eq!(key.to_vec(&stream)?, [expected], "the device and the CPU disagree");
        print_row(n, "device copy", events(&stream, || copy.copy_from(&stream, &input))?, 8 * n);
        for (name, rival) in RIVALS {
            let mut result = 0;
            let wall = || {
                let begin = Instant::now();
                result = rival(&items)?;
                Ok(begin.elapsed())
            };
            print_row(n, name, median(wall)?, 4 * n);
            assert_eq!(result, expected, "{name} gives another result");
        }
    }
    Ok(())
}

/// Returns the median of the device's times.
fn events(stream: &Stream, mut work: impl FnMut() -> Result<()>) -> Result<Duration> {
    let (start, end) = (Event::new(stream.gpu())?, Event::new(stream.gpu())?);
    // The first call loads the kernels and allocates.
    work()?;
    median(|| {
        stream.record(&start)?;
        work()?;
        stream.record(&end)?;
        end.synchronize()?;
        end.elapsed_since(&start)
    })
}

fn median(run: impl FnMut() -> Result<Duration>) -> Result<Duration> {
    let mut times = std::iter::repeat_with(run).take(RUNS).collect::<Result<Vec<_>>>()?;
    times.sort();
    Ok(times[RUNS / 2])
}

fn print_row(n: usize, what: &str, time: Duration, bytes: usize) {
    let seconds = time.as_secs_f64();
    println!("{n:>12}  {what:<20} {:>10.4} {:>10.1}", seconds * 1e3, bytes as f64 / seconds / 1e9);
}
