//! The suites as a dynamic library, for `cargo xtask compare`, which loads the libraries of several variants and lets their runs take turns.

use crate::hardware::Hardware;
use crate::interface::{Caller, Moment, Text, VERSION};
use crate::measure::Effort;
use crate::report::Report;
use crate::suites::{self, Settings};
use anyhow::{Context, Result};
use kauri::Device;
use kauri::device::Family;
use serde::Deserialize;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tracing::field::{Field, Visit};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber, span};

/// Settings of a run, as JSON.
#[derive(Deserialize)]
struct Request {
    suite: String,
    device: String,
    sizes: Vec<usize>,
    runs: usize,
    seconds: f64,
    seed: u64,
    models: Vec<PathBuf>,
}

/// Returns the version of the interface.
#[unsafe(no_mangle)]
pub extern "C" fn kauri_bench_version() -> u32 {
    VERSION
}

/// Opens a device by name, and finds its kernels in the folder that `KAURI_PTX_DIR` names at this moment. The folder is read once in a
/// process, so that each library can have its own.
///
/// # Safety
/// `device` is valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kauri_bench_open(device: Text, caller: Caller) -> bool {
    // SAFETY: passed on to the caller.
    let name = unsafe { device.to_owned() };
    guarded(caller, || {
        // Any family serves: the first search reads the folder.
        Device::from_name(&name)?.kernel_form(Family::Joins)?;
        Ok(())
    })
}

/// Runs a suite.
///
/// # Safety
/// `settings` is valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kauri_bench_run(settings: Text, caller: Caller) -> bool {
    // SAFETY: passed on to the caller.
    let settings = unsafe { settings.to_owned() };
    guarded(caller, || run(&settings, caller))
}

/// Runs a function, and passes its error or panic to the caller.
fn guarded(caller: Caller, function: impl FnOnce() -> Result<()>) -> bool {
    let result = catch_unwind(AssertUnwindSafe(function));
    let result = result.unwrap_or_else(|_| Err(anyhow::anyhow!("the suite panicked")));
    if let Err(error) = &result {
        caller.tell(Moment::Error, &format!("{error:#}"));
    }
    result.is_ok()
}

fn run(settings: &str, caller: Caller) -> Result<()> {
    let request: Request = serde_json::from_str(settings).context("the settings")?;
    let suite = suites::all().find(|(name, _)| *name == request.suite);
    let (name, suite) = suite.with_context(|| format!("there is no suite `{}`", request.suite))?;
    let limit = Duration::try_from_secs_f64(request.seconds).context("the seconds")?;
    let settings = Settings {
        device: Device::from_name(&request.device)?,
        sizes: request.sizes,
        effort: Effort { caller: Some(caller), ..Effort::new(request.runs, limit) },
        seed: request.seed,
        models: request.models,
    };
    *CALLER.lock().unwrap_or_else(PoisonError::into_inner) = Some(caller);
    // A second run of this library finds it set.
    let _ = tracing::subscriber::set_global_default(Launches);
    let mut report = Report::new(name, Hardware::of(&settings.device), settings.seed);
    report.caller = Some(caller);
    let result = suite(&settings, &mut report);
    caller.tell(Moment::Report, &serde_json::to_string(&report)?);
    Ok(result?)
}

/// The caller of the running suite.
static CALLER: Mutex<Option<Caller>> = Mutex::new(None);
/// True while launches are passed on.
static RECORDS: AtomicBool = AtomicBool::new(false);

/// Passes launches on to the caller, or ends that.
pub(crate) fn record_launches(yes: bool) {
    RECORDS.store(yes, Ordering::Relaxed);
}

/// Passes the launches, which kauri traces, on to the caller.
struct Launches;

/// The fields of a traced launch.
#[derive(Default)]
struct Launch {
    kernel: String,
    threads: u64,
    shared: u64,
}

impl Subscriber for Launches {
    /// Asks `enabled` at each launch, not once.
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        RECORDS.load(Ordering::Relaxed) && metadata.fields().field("kernel").is_some()
    }

    fn event(&self, event: &Event<'_>) {
        let mut launch = Launch::default();
        event.record(&mut launch);
        let caller = *CALLER.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(caller) = caller {
            caller.tell(Moment::Launch, &format!("{} {} {}", launch.kernel, launch.threads, launch.shared));
        }
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

impl Visit for Launch {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "kernel" {
            self.kernel = value.to_owned();
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "threads" => self.threads = value,
            "shared" => self.shared = value,
            _ => {}
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls of the library.
    type Told = Mutex<Vec<(Moment, u64, bool, String)>>;

    extern "C" fn tell(context: usize, moment: Moment, number: u64, wants: bool, text: Text) -> bool {
        // SAFETY: the context of the test below, which outlives the call.
        let told = unsafe { &*(context as *const Told) };
        // SAFETY: the library passes a valid text.
        told.lock().unwrap().push((moment, number, wants, unsafe { text.to_owned() }));
        // No warm-up, and two counted runs.
        moment == Moment::Run && number < 2
    }

    #[test]
    fn the_caller_decides_about_runs() {
        let told = Told::default();
        let caller = Caller { context: &raw const told as usize, tell };
        let settings = r#"{"suite":"join-cpu","device":"cpu","sizes":[200],"runs":9,"seconds":9.0,"seed":1,"models":[]}"#;
        // SAFETY: the text is valid during the call.
        assert!(unsafe { kauri_bench_run(Text::new(settings), caller) });
        let told = std::mem::take(&mut *told.lock().unwrap());
        let count = |moment| told.iter().filter(|(other, ..)| *other == moment).count();
        let report: serde_json::Value = serde_json::from_str(&told.last().unwrap().3).unwrap();
        let rows = report["rows"].as_array().unwrap();
        assert_eq!(rows.len(), count(Moment::Row));
        assert!(rows.iter().all(|row| row["timing"]["times_ms"].as_array().unwrap().len() == 2));
        // Two runs, and the refused third one, of each measurement.
        assert_eq!((count(Moment::Run), count(Moment::WarmUp)), (3 * count(Moment::End), count(Moment::End)));
    }

    #[test]
    fn errors_are_passed_on() {
        let told = Told::default();
        let caller = Caller { context: &raw const told as usize, tell };
        // SAFETY: the texts are valid during the calls.
        unsafe {
            assert!(!kauri_bench_run(Text::new("{}"), caller));
            assert!(!kauri_bench_open(Text::new("no device"), caller));
        }
        let told = std::mem::take(&mut *told.lock().unwrap());
        assert!(told.iter().all(|(moment, ..)| *moment == Moment::Error) && told.len() == 2, "{told:?}");
    }
}
