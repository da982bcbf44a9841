//! Removes temporary files when a signal ends the program.

#[cfg(unix)]
pub(super) use unix::remove_files_on_signals;

/// Other systems have no such signals.
#[cfg(not(unix))]
pub(super) fn remove_files_on_signals() {}

#[cfg(unix)]
mod unix {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;
    use std::ffi::c_int;
    use std::thread;

    use kauri::io::remove_temporary_files;

    /// Removes unfinished files when a terminating signal arrives, and then lets the signal end the program, so that a shell sees 128
    /// plus the signal\'s number as the exit code: 130 for SIGINT, 143 for SIGTERM, 129 for SIGHUP.
    pub(crate) fn remove_files_on_signals() {
        let ending = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|&signal| !is_ignored(signal));
        // Without a handler the signals end the program all the same.
        let Ok(mut signals) = Signals::new(ending) else { return };
        thread::spawn(move || {
            if let Some(signal) = signals.forever().next() {
                remove_temporary_files(|| {
                    // It ends the program; there is no such signal that it does not know.
                    let _ = emulate_default_handler(signal);
                });
            }
        });
    }

    /// True for a signal that the parent ignores on behalf of the program, as `nohup` does.
    fn is_ignored(signal: c_int) -> bool {
        // SAFETY: zeros are a value of this structure of integers and a nullable function.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: no action is set, and the old one is written to a structure that lives as long as the call.
        let result = unsafe { libc::sigaction(signal, std::ptr::null(), &mut action) };
        result == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}
