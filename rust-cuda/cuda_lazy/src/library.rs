//! Finds and opens the driver's library, once.

use crate::{NO_DEVICE, NOT_FOUND, Status};
use libloading::{Error, Library};
use std::cell::Cell;
use std::env;
use std::ffi::{OsString, c_ulong, c_void};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::OnceLock;

/// Environment variable with the first candidate.
const OVERRIDE: &str = "KAURI_LIBCUDA";

/// File name for the loader's search path. The file without `.1` belongs to toolkits and may be a stub.
const LIBRARY: &str = "libcuda.so.1";

/// Folders of drivers that are not in the loader's search path.
const WELL_KNOWN: &[&str] = &[
    #[cfg(target_arch = "x86_64")]
    "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
    #[cfg(target_arch = "aarch64")]
    "/usr/lib/aarch64-linux-gnu/libcuda.so.1",
    #[cfg(target_arch = "aarch64")]
    "/usr/lib/aarch64-linux-gnu/tegra/libcuda.so.1",
    #[cfg(target_arch = "aarch64")]
    "/usr/lib/aarch64-linux-gnu/nvidia/libcuda.so.1",
    "/usr/lib64/libcuda.so.1",
    "/usr/lib/wsl/lib/libcuda.so.1",
    "/usr/local/nvidia/lib64/libcuda.so.1",
    "/run/opengl-driver/lib/libcuda.so.1",
];

/// The driver's library, open for the life of the process.
struct Driver {
    library: Library,
    /// The name or path that was opened.
    name: String,
}

impl Driver {
    /// Returns the address of a function, if this driver has it.
    fn symbol(&self, name: &str) -> Option<NonNull<c_void>> {
        // SAFETY: the symbol is only read as an address; who calls it goes by the declaration of the name's
        // function.
        let symbol = unsafe { self.library.get::<*mut c_void>(name) }.ok()?;
        NonNull::new(*symbol)
    }
}

/// Reason for which there is no library.
struct Missing {
    /// The candidates, in order.
    searched: Vec<String>,
    /// The loader's message.
    reason: String,
}

pub(crate) fn status() -> Status {
    match driver() {
        Some(Ok(driver)) => Status::Loaded { library: driver.name.clone() },
        Some(Err(missing)) => {
            Status::DriverMissing { searched: missing.searched.clone(), reason: missing.reason.clone() }
        }
        None => Status::DriverMissing {
            searched: Vec::new(),
            reason: "asked by the driver's library while it is being opened".into(),
        },
    }
}

pub(crate) fn address(name: &str) -> Result<NonNull<c_void>, i32> {
    match driver() {
        Some(Ok(driver)) => driver.symbol(name).ok_or(NOT_FOUND),
        Some(Err(_)) | None => Err(NO_DEVICE),
    }
}

thread_local! {
    static OPENING: Cell<bool> = const { Cell::new(false) };
}

/// Returns the driver's library. The first call opens it; the result is final, also if the library is missing.
///
/// `None` while this thread is opening it: initializers of the library may call the driver through this program, and
/// waiting for the library would be a deadlock.
fn driver() -> Option<&'static Result<Driver, Missing>> {
    static DRIVER: OnceLock<Result<Driver, Missing>> = OnceLock::new();
    if OPENING.get() {
        return None;
    }
    Some(DRIVER.get_or_init(|| {
        OPENING.set(true);
        let requested = env::var_os(OVERRIDE).filter(|path| !path.is_empty() && !runs_with_raised_rights());
        let found = open_first(
            requested.into_iter().chain([LIBRARY.into()]).chain(WELL_KNOWN.iter().map(Into::into)),
        );
        OPENING.set(false);
        found
    }))
}

fn open_first(candidates: impl Iterator<Item = OsString>) -> Result<Driver, Missing> {
    let mut searched = Vec::new();
    let mut not_there = None;
    let mut unusable = None;
    for candidate in candidates {
        let name = candidate.to_string_lossy().into_owned();
        // SAFETY: opening the driver's library runs its initializers, which every program that links to it
        // runs too. It is never closed.
        match unsafe { Library::new(&candidate) } {
            Ok(library) => return Ok(Driver { library, name }),
            // A file that is there and does not open says more than one that is not there.
            Err(error) if Path::new(&candidate).is_file() => unusable = unusable.or(Some(message(&error))),
            Err(error) => not_there = not_there.or(Some(message(&error))),
        }
        searched.push(name);
    }
    let reason = unusable.or(not_there).unwrap_or_default();
    Err(Missing { searched, reason })
}

/// Returns an error's text with the loader's message, which libloading's `Display` omits.
fn message(error: &Error) -> String {
    match error {
        Error::DlOpen { source } => source.to_string(),
        other => other.to_string(),
    }
}

/// True if the program has more rights than its user (set-user-ID, file capabilities). The environment must then not
/// choose the code that runs; the loader ignores `LD_LIBRARY_PATH` for this reason.
fn runs_with_raised_rights() -> bool {
    /// From `<elf.h>`, equal on every architecture.
    const AT_SECURE: c_ulong = 23;
    unsafe extern "C" {
        safe fn getauxval(kind: c_ulong) -> c_ulong;
    }
    getauxval(AT_SECURE) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(candidates: &[&str]) -> Result<Driver, Missing> {
        open_first(candidates.iter().map(Into::into))
    }

    #[test]
    fn missing_lists_what_was_searched_and_the_first_reason() {
        let missing = open(&["libkauri_first.so.9", "/nowhere/libkauri_second.so"]).err().unwrap();
        assert_eq!(missing.searched, ["libkauri_first.so.9", "/nowhere/libkauri_second.so"]);
        assert!(missing.reason.contains("libkauri_first.so.9"), "{}", missing.reason);
    }

    #[test]
    fn a_file_that_does_not_open_is_the_reason() {
        let program = env::current_exe().unwrap();
        let not_a_library = program.with_extension("not-a-library");
        std::fs::write(&not_a_library, "text").unwrap();
        let path = not_a_library.to_str().unwrap();
        let missing = open(&["libkauri_first.so.9", path]).err().unwrap();
        std::fs::remove_file(&not_a_library).unwrap();
        assert!(missing.reason.contains("not-a-library"), "{}", missing.reason);
    }

    #[test]
    fn the_first_that_opens_is_taken() {
        let driver = open(&["libkauri_first.so.9", "libc.so.6", "libm.so.6"]).ok().unwrap();
        assert_eq!(driver.name, "libc.so.6");
        assert!(driver.symbol("getpid").is_some());
        assert!(driver.symbol("cuInit").is_none());
        assert!(driver.symbol("").is_none());
        assert!(driver.symbol("get\0pid").is_none());
    }

    #[test]
    fn no_candidate_at_all_is_missing() {
        assert!(open(&[]).err().unwrap().searched.is_empty());
    }

    #[test]
    fn a_library_being_opened_by_this_thread_is_not_waited_for() {
        OPENING.set(true);
        assert!(driver().is_none());
        OPENING.set(false);
        assert!(driver().is_some());
    }
}
