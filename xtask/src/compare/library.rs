//! The libraries of variants: loads them, runs a suite in all of them by turns, and collects what they report.

use super::interface::{self, Call, Caller, Moment, Text, Version};
use super::turns::{Phase, Position, Turns};
use super::variant::{LIBRARY, Variant};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{env, fs, thread};

/// Stack of a suite's thread, as of a program's first one.
const STACK_BYTES: usize = 8 << 20;

/// The suites of a variant: a library, or functions of a test.
pub(super) struct Suites {
    open: Call,
    run: Call,
}

/// A kernel as it was launched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Launch {
    pub(super) kernel: String,
    pub(super) threads: u32,
    /// Bytes of dynamic shared memory.
    pub(super) shared: u32,
}

/// A suite's run in one variant.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// The report as `kauri-bench` writes it; null if the suite failed before its first row.
    pub(super) report: Value,
    /// The measurements of each row, by number.
    pub(super) measurements: Vec<BTreeSet<u64>>,
    /// The launches of the first run of each measurement.
    pub(super) launches: BTreeMap<u64, BTreeSet<Launch>>,
    /// The reason for which the suite ended early.
    pub(super) error: Option<String>,
}

/// Measurements that are run once without warm-up, because none of their rows is compared.
#[derive(Clone, Copy)]
pub(super) enum Selected<'a> {
    All,
    Only(&'a BTreeSet<u64>),
}

impl Suites {
    /// Loads the library of a variant, and lets it find its kernels for a device in a folder.
    ///
    /// Sets an environment variable: no other thread may run.
    fn load(path: &Path, folder: &Path, device: &str) -> Result<Suites> {
        // SAFETY: the library has no initializers of its own.
        let library = unsafe { libloading::Library::new(path) };
        let library = library.with_context(|| format!("cannot load {}", path.display()))?;
        let too_old = || format!("{} was built by another version of this task", path.display());
        // SAFETY: these are the types of the functions in every version.
        let (version, suites) = unsafe {
            let version = *library.get::<Version>(interface::VERSION_NAME).with_context(too_old)?;
            let open = *library.get::<Call>(interface::OPEN_NAME).with_context(too_old)?;
            let run = *library.get::<Call>(interface::RUN_NAME).with_context(too_old)?;
            (version, Suites { open, run })
        };
        if version() != interface::VERSION {
            bail!("{}", too_old());
        }
        // Threads of the library's pool live as long as the process.
        std::mem::forget(library);
        // SAFETY: the caller runs no other thread, and the driver's threads do not read this variable.
        unsafe { env::set_var("KAURI_PTX_DIR", folder) };
        let listener = Listener::new(0, None, Selected::All, None);
        // SAFETY: the text and the listener live during the call.
        unsafe { (suites.open)(Text::new(device), listener.caller()) };
        match listener.into_outcome().error {
            Some(error) => bail!("{error}"),
            None => Ok(suites),
        }
    }

    #[cfg(test)]
    fn of_test(run: Call) -> Suites {
        Suites { open: run, run }
    }
}

/// Runs a suite in each variant, by turns. `settings` are JSON, as the library reads them. `profiler` is called before and after
/// the counted runs of selected measurements.
pub(super) fn run(
    variants: &[Suites],
    settings: &Value,
    selected: Selected<'_>,
    profiler: Option<&(dyn Fn(bool) + Sync)>,
) -> Result<Vec<Outcome>> {
    let (turns, settings) = (Turns::new(variants.len()), settings.to_string());
    thread::scope(|scope| {
        let start = |(index, suites): (usize, &Suites)| {
            let listener = Listener::new(index, Some(&turns), selected, profiler);
            let (turns, settings, run) = (&turns, &settings, suites.run);
            let body = move || {
                turns.wait(index, Position::BEGIN, false);
                // SAFETY: the text and the listener live during the call.
                unsafe { run(Text::new(settings), listener.caller()) };
                turns.end(index);
                listener.into_outcome()
            };
            thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, body)
        };
        let threads = variants.iter().enumerate().map(start).collect::<Result<Vec<_>, _>>()?;
        let outcomes = threads.into_iter().map(|thread| thread.join());
        outcomes.map(|outcome| outcome.ok().context("a suite's thread panicked")).collect()
    })
}

/// The caller of a variant's library.
struct Listener<'a> {
    variant: usize,
    turns: Option<&'a Turns>,
    selected: Selected<'a>,
    profiler: Option<&'a (dyn Fn(bool) + Sync)>,
    heard: Mutex<Heard>,
}

#[derive(Default)]
struct Heard {
    outcome: Outcome,
    /// The number of measurements that have begun.
    begun: u64,
    /// Measurements since the last row.
    since_row: BTreeSet<u64>,
}

impl<'a> Listener<'a> {
    fn new(
        variant: usize,
        turns: Option<&'a Turns>,
        selected: Selected<'a>,
        profiler: Option<&'a (dyn Fn(bool) + Sync)>,
    ) -> Self {
        Self { variant, turns, selected, profiler, heard: Mutex::default() }
    }

    /// Returns the caller for the library. It must not outlive `self`.
    fn caller(&self) -> Caller {
        Caller { context: std::ptr::from_ref(self) as usize, tell }
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn into_outcome(self) -> Outcome {
        self.heard.into_inner().unwrap_or_else(PoisonError::into_inner).outcome
    }

    fn selects_any(&self, measurements: &BTreeSet<u64>) -> bool {
        match self.selected {
            Selected::All => true,
            Selected::Only(selected) => !selected.is_disjoint(measurements),
        }
    }

    fn hear(&self, moment: Moment, number: u64, wants: bool, text: String) -> bool {
        let phase = match moment {
            Moment::WarmUp => Phase::WarmUp,
            Moment::Run => Phase::Run,
            Moment::End => Phase::End,
            _ => {
                let is_shown =
                    |measurements: &BTreeSet<u64>| self.variant == 0 && self.selects_any(measurements);
                self.heard().note(moment, text, is_shown);
                return false;
            }
        };
        let measurement = {
            let mut heard = self.heard();
            if phase == Phase::WarmUp && number == 0 {
                heard.begun += 1;
            }
            let measurement = heard.begun.saturating_sub(1);
            heard.since_row.insert(measurement);
            measurement
        };
        let is_selected = self.selects_any(&BTreeSet::from([measurement]));
        let profiler = self.profiler.filter(|_| is_selected && phase != Phase::WarmUp);
        profiler.inspect(|profiler| profiler(false));
        let position = Position { measurement, phase, run: number };
        let runs = match self.turns {
            Some(turns) => turns.wait(self.variant, position, wants && is_selected),
            None => wants,
        };
        if phase == Phase::Run && runs {
            profiler.inspect(|profiler| profiler(true));
        }
        runs
    }
}

impl Heard {
    fn note(&mut self, moment: Moment, text: String, is_shown: impl Fn(&BTreeSet<u64>) -> bool) {
        match moment {
            Moment::Row => {
                // A row without measurements of its own is another summary of the last ones.
                let own = std::mem::take(&mut self.since_row);
                let last = self.outcome.measurements.last().cloned().unwrap_or_default();
                let own = if own.is_empty() { last } else { own };
                if is_shown(&own) {
                    eprintln!("{text}");
                }
                self.outcome.measurements.push(own);
            }
            Moment::Launch => {
                if let Some(launch) = Launch::parse(&text) {
                    let measurement = self.begun.saturating_sub(1);
                    self.outcome.launches.entry(measurement).or_default().insert(launch);
                }
            }
            Moment::Report => self.outcome.report = serde_json::from_str(&text).unwrap_or_default(),
            _ => self.outcome.error = Some(text),
        }
    }
}

impl Launch {
    fn parse(text: &str) -> Option<Launch> {
        let mut words = text.split(' ');
        let kernel = words.next()?.to_owned();
        Some(Launch { kernel, threads: words.next()?.parse().ok()?, shared: words.next()?.parse().ok()? })
    }
}

extern "C" fn tell(context: usize, moment: Moment, number: u64, wants: bool, text: Text) -> bool {
    // SAFETY: the context of `Listener::caller`, and a text that is valid during the call.
    let (listener, text) = unsafe { (&*(context as *const Listener<'_>), text.to_owned()) };
    listener.hear(moment, number, wants, text)
}

impl Outcome {
    /// Returns the keys of the rows in their order.
    pub(super) fn keys(&self) -> Vec<String> {
        super::rows::read(&self.report).into_iter().map(|row| row.key).collect()
    }

    /// Returns the measurements of the rows whose keys contain a text.
    pub(super) fn measurements_of(&self, text: &str) -> BTreeSet<u64> {
        let keys = self.keys();
        let rows = self.measurements.iter().zip(keys).filter(|(_, key)| key.contains(text));
        rows.flat_map(|(measurements, _)| measurements.iter().copied()).collect()
    }

    /// Returns the launches of the rows whose keys contain a text.
    pub(super) fn launches_of(&self, text: &str) -> BTreeSet<Launch> {
        let measurements = self.measurements_of(text);
        let launches = self.launches.iter().filter(|(measurement, _)| measurements.contains(measurement));
        launches.flat_map(|(_, launches)| launches.iter().cloned()).collect()
    }
}

/// Loads the libraries of variants that run here.
pub(super) fn load(variants: &[Variant], device: &str) -> Result<Vec<Suites>> {
    map_large_blocks();
    let load = |(index, variant): (usize, &Variant)| {
        let library = variant.folder.join(LIBRARY);
        // The loader gives a file that is open already again, with its statics.
        let is_loaded = variants[..index].iter().any(|other| other.folder == variant.folder);
        let copy = env::temp_dir().join(format!("kauri-{}-{index}.so", std::process::id()));
        if is_loaded {
            fs::copy(&library, &copy).with_context(|| format!("cannot write {}", copy.display()))?;
        }
        let suites = Suites::load(if is_loaded { &copy } else { &library }, &variant.folder, device);
        if is_loaded {
            let _ = fs::remove_file(&copy);
        }
        suites.with_context(|| format!("variant {}", variant.label))
    };
    variants.iter().enumerate().map(load).collect()
}

/// Makes the allocator take every large block from the system and give it back. By default it decides anew for each thread, after what
/// this thread freed before, so that equal variants with large results on the host would differ.
fn map_large_blocks() {
    #[cfg(target_env = "gnu")]
    {
        unsafe extern "C" {
            fn mallopt(parameter: i32, value: i32) -> i32;
        }
        /// `M_MMAP_THRESHOLD`.
        const THRESHOLD: i32 = -3;
        // SAFETY: glibc's function of this name; a refused value changes nothing.
        unsafe { mallopt(THRESHOLD, 128 << 10) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A suite with two rows of three runs each. The second row has a kernel.
    unsafe extern "C" fn suite(_: Text, caller: Caller) -> bool {
        for row in ["first", "second"] {
            let mut runs = 0;
            while caller.may_run(Moment::WarmUp, runs, runs < 1) {
                if row == "second" {
                    caller.tell(Moment::Launch, "scan_up 128 64");
                }
                runs += 1;
            }
            let mut runs = 0;
            while caller.may_run(Moment::Run, runs, runs < 3) || runs == 0 {
                RUNS.fetch_add(1, Ordering::Relaxed);
                runs += 1;
            }
            caller.may_run(Moment::End, 0, false);
            caller.tell(Moment::Row, row);
        }
        let row = |work: &str| serde_json::json!({ "work": work, "input": "u32", "n": 5 });
        let report = serde_json::json!({ "rows": [row("first"), row("second")] });
        caller.tell(Moment::Report, &report.to_string());
        true
    }

    static RUNS: AtomicU32 = AtomicU32::new(0);

    unsafe extern "C" fn failing(_: Text, caller: Caller) -> bool {
        caller.tell(Moment::Error, "no device");
        false
    }

    #[test]
    fn two_suites_in_one_process() {
        let suites = [Suites::of_test(suite), Suites::of_test(suite)];
        let outcomes = run(&suites, &Value::Null, Selected::All, None).unwrap();
        assert_eq!(RUNS.swap(0, Ordering::Relaxed), 2 * 2 * 3);
        for outcome in &outcomes {
            assert_eq!(outcome.measurements, [BTreeSet::from([0]), BTreeSet::from([1])]);
            let launch = Launch { kernel: "scan_up".to_owned(), threads: 128, shared: 64 };
            assert_eq!(outcome.launches_of("second"), BTreeSet::from([launch]));
            assert!(outcome.launches_of("first").is_empty());
        }

        // Only the runs of one row.
        let selected = outcomes[0].measurements_of("second");
        let marks = Mutex::new(Vec::new());
        let profiler = |on| marks.lock().unwrap().push(on);
        run(&suites[..1], &Value::Null, Selected::Only(&selected), Some(&profiler)).unwrap();
        assert_eq!(RUNS.swap(0, Ordering::Relaxed), 1 + 3);
        assert_eq!(marks.into_inner().unwrap().iter().filter(|on| **on).count(), 3);
    }

    #[test]
    fn a_suite_that_fails() {
        let suites = [Suites::of_test(failing), Suites::of_test(failing)];
        let outcomes = run(&suites, &Value::Null, Selected::All, None).unwrap();
        assert!(outcomes.iter().all(|outcome| outcome.error.as_deref() == Some("no device")));
    }
}
