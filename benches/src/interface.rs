//! The interface between the suites as a dynamic library and the program that loads it, `cargo xtask compare`. Both compile this file.

/// Version of the interface. A library of another version is refused.
pub const VERSION: u32 = 1;

/// The function that returns the version: [`Version`].
pub const VERSION_NAME: &str = "kauri_bench_version";
/// The function that opens a device and finds its kernels: [`Call`] with the device's name.
pub const OPEN_NAME: &str = "kauri_bench_open";
/// The function that runs a suite: [`Call`] with the settings as JSON.
pub const RUN_NAME: &str = "kauri_bench_run";

/// The suites that have rows without a GPU.
pub const CPU_SUITES: [&str; 6] =
    ["clouds", "join-cpu", "kdtree", "kdtree-robinson", "terrain-files", "terrain-windows"];

/// Returns the version of the interface.
pub type Version = extern "C" fn() -> u32;
/// A function of the library. It returns false after [`Moment::Error`]. The text is valid during the call.
pub type Call = unsafe extern "C" fn(Text, Caller) -> bool;

/// Parses a number of points on the command line of either program, such as 100000 or 1e5.
///
/// # Errors
/// A sentence, if it is no count.
pub fn size(text: &str) -> Result<usize, String> {
    match text.parse::<f64>() {
        Ok(number) if number >= 0.0 && number <= u32::MAX.into() && number.fract() == 0.0 => {
            Ok(number as usize)
        }
        _ => Err("not a count such as 100000 or 1e5".to_owned()),
    }
}

/// A text that is valid during a call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Text {
    start: *const u8,
    len: usize,
}

impl Text {
    /// Borrows a text.
    pub fn new(text: &str) -> Self {
        Self { start: text.as_ptr(), len: text.len() }
    }

    /// Copies the text.
    ///
    /// # Safety
    /// The text is of [`new`](Self::new) and still borrowed.
    pub unsafe fn to_owned(self) -> String {
        // SAFETY: passed on to the caller.
        let bytes = unsafe { std::slice::from_raw_parts(self.start, self.len) };
        String::from_utf8_lossy(bytes).into_owned()
    }
}

/// The reason for which the library calls its caller.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A warm-up run may begin; the number is its index. Index 0 begins a measurement.
    WarmUp,
    /// A counted run may begin; the number is its index.
    Run,
    /// The measurement has ended.
    End,
    /// A row was added; the text is its key.
    Row,
    /// A kernel was launched in the first run of a measurement: name, threads of a block and bytes of dynamic shared memory, separated
    /// by spaces.
    Launch,
    /// The suite has ended; the text is the report as JSON.
    Report,
    /// The call fails; the text is the reason.
    Error,
}

/// The caller of the library.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// Passed to `tell`.
    pub context: usize,
    /// Called with the context, the moment, its number, whether the library would run by its own settings, and a text. The result says
    /// whether the run takes place. May return late, so that another library has its turn.
    pub tell: extern "C" fn(usize, Moment, u64, bool, Text) -> bool,
}

impl Caller {
    /// Asks whether a run takes place.
    pub fn may_run(&self, moment: Moment, index: usize, wants: bool) -> bool {
        (self.tell)(self.context, moment, index as u64, wants, Text::new(""))
    }

    /// Passes a text.
    pub fn tell(&self, moment: Moment, text: &str) {
        (self.tell)(self.context, moment, 0, false, Text::new(text));
    }
}
