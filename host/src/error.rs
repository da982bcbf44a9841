//! The one error type of the library.

use std::fmt;
use std::path::{Display, Path, PathBuf};

/// `Result` with kauri's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong in a call to kauri. Every message says what to do; after any error every object stays
/// usable, except after [`Error::ContextPoisoned`], which every later call on that device then returns.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A coordinate is NaN or infinite.
    #[error("{what} {index} has {value} on axis {axis}: coordinates must be finite")]
    NonFinite {
        /// What was refused: "point", "query" or "vertex".
        what: &'static str,
        /// Its index in the input.
        index: u64,
        /// The axis, from 0.
        axis: usize,
        /// The value found.
        value: f64,
    },
    /// A coordinate is so large that squared distances could overflow to infinity, or an integer that is not a `f64`.
    #[error(
        "{what} {index} has {value:e} on axis {axis}: magnitudes above {limit:e} overflow when squared, or are not exact; \
         scale the coordinates or use a wider type"
    )]
    CoordinateTooLarge {
        /// What was refused: "point", "query" or "vertex".
        what: &'static str,
        /// Its index in the input.
        index: u64,
        /// The axis, from 0.
        axis: usize,
        /// The value found, for an integer rounded.
        value: f64,
        /// The largest magnitude accepted.
        limit: f64,
    },
    /// A position is farther from the offset of a LAS file than integers of 32 bits reach.
    #[error(
        "{value} on axis {axis} is beyond integers of 32 bits: take an offset that is nearer, or a larger scale"
    )]
    BeyondIntegers {
        /// The axis, from 0.
        axis: usize,
        /// The position on it, in meters.
        value: f64,
    },
    /// A lon/lat point is outside the range of its coordinates.
    #[error("{what} {index} has {axis} {value}: {axis} must be within ±{limit} degrees")]
    InvalidLonLat {
        /// What was refused: "point" or "query".
        what: &'static str,
        /// Its index in the input.
        index: u64,
        /// "longitude" or "latitude".
        axis: &'static str,
        /// The value found, in degrees.
        value: f64,
        /// The largest magnitude accepted, in degrees.
        limit: f64,
    },
    /// More points than 32-bit ids can name.
    #[error("{count} points: point ids are 32-bit, at most {max} points fit in one index; split the input")]
    TooManyPoints {
        /// Points given.
        count: u64,
        /// Points accepted.
        max: u64,
    },
    /// More items than a call accepts, because it numbers them in 32 bits.
    #[error("{count} {what}: at most {max}; split the input")]
    TooManyItems {
        /// What they are.
        what: &'static str,
        /// Items given.
        count: u64,
        /// Items accepted.
        max: u64,
    },
    /// A result has more items than memory can hold.
    #[error(
        "the result does not fit in memory: it is {count} items, {bytes} bytes, and {free} bytes of {memory} memory are free; \
         take it in batches (nearest_batches, within_batches, in_boxes_batches, each_hit), or ask fewer queries at a time"
    )]
    ResultTooLarge {
        /// Exactly how many there are: neighbors, points found, or hits of rays; of these on a GPU as often as leaves have them on the way. `u64::MAX`
        /// stands for that many and more.
        count: u64,
        /// Bytes of all of them.
        bytes: u64,
        /// Which memory: "device", "pinned host" or "host".
        memory: &'static str,
        /// Bytes free at that moment, as far as the system tells.
        free: u64,
    },
    /// A row of a result is larger than a batch may be.
    #[error(
        "row {row} has {count} items, {bytes} bytes, and a batch takes {most}: ask for larger batches (Batches::bytes)"
    )]
    RowTooLarge {
        /// The row: the first that does not fit. Those before it have been delivered.
        row: u64,
        /// Exactly how many items it has.
        count: u64,
        /// Bytes of them.
        bytes: u64,
        /// Bytes of items that a batch takes.
        most: u64,
    },
    /// Two inputs do not belong together.
    #[error("shape mismatch: {what}: expected {expected}, got {got}")]
    Shape {
        /// What was compared.
        what: &'static str,
        /// The size expected.
        expected: u64,
        /// The size given.
        got: u64,
    },
    /// A number is not in the range that it must be in.
    #[error("{what} {value}: expected {least} to {most}")]
    OutOfRange {
        /// What it is.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The least that is accepted.
        least: u64,
        /// The greatest.
        most: u64,
    },
    /// A length is negative or not a number.
    #[error("{what} {value}: expected a number that is not negative")]
    InvalidLength {
        /// What it was for: "radius", "period" or "distance".
        what: &'static str,
        /// Its value.
        value: f64,
    },
    /// A score, or a weight of scores, is NaN or infinite.
    #[error("score or weight {index} is {value}: scores must be finite")]
    NonFiniteScore {
        /// Its index.
        index: u64,
        /// Its value.
        value: f64,
    },
    /// A strategy of a join that was asked for does not keep so many pairs.
    #[error(
        "the strategy {strategy} keeps at most {most} pairs, and k is {k}: take another one, or Strategy::Auto"
    )]
    StrategyLimit {
        /// Its name.
        strategy: &'static str,
        /// The pairs that were asked for.
        k: u64,
        /// Most pairs that it keeps.
        most: u64,
    },
    /// Points within a distance were asked for with options that have no radius.
    #[error("the options have no radius: set QueryOptions::radius before they are prepared")]
    NoRadius,
    /// A query in device memory was prepared for another tree.
    #[error(
        "the query was prepared for another tree: prepare it for the one that is asked (KdTree::prepare)"
    )]
    OtherTree,
    /// A query and a point lie farther apart on an axis than it takes to repeat.
    #[error(
        "{what} {index} is {distance} from a point on axis {axis}, which repeats after {period}: bring all points and queries \
         into one period"
    )]
    BeyondPeriod {
        /// What was refused: "query", or "point" if the tree's own points are the queries.
        what: &'static str,
        /// Its index in the input.
        index: u64,
        /// The axis, from 0.
        axis: usize,
        /// How far the farthest point is on that axis.
        distance: f64,
        /// The axis' period.
        period: f64,
    },
    /// Keys were to be sorted by bits that they do not have.
    #[error("bits {begin} to {end} of keys of {bits} bits: give a range within 0..{bits}")]
    InvalidBits {
        /// The first bit.
        begin: u32,
        /// The bit behind the last.
        end: u32,
        /// Bits of a key.
        bits: u32,
    },
    /// Memory could not be allocated.
    #[error(
        "out of {memory} memory: {requested} bytes for {label}, {free} bytes free; use smaller batches or free buffers"
    )]
    OutOfMemory {
        /// Which memory: "device", "pinned host" or "host".
        memory: &'static str,
        /// Bytes asked for.
        requested: u64,
        /// Bytes free at that moment, as far as the system tells.
        free: u64,
        /// What the allocation was for.
        label: &'static str,
    },
    /// Who was told of the progress stopped the call.
    #[error("stopped in phase '{phase}': {done} of {total} done")]
    Stopped {
        /// The phase.
        phase: &'static str,
        /// How much of it was done.
        done: u64,
        /// How much there was to do.
        total: u64,
    },
    /// A device name that cannot be understood.
    #[error("unknown device '{name}': expected best, cpu, cuda, cuda:N or sim")]
    UnknownDevice {
        /// The name given.
        name: String,
    },
    /// A device that this machine does not have.
    #[error("there is no device cuda:{ordinal}: this machine has {available} CUDA devices")]
    NoSuchDevice {
        /// The ordinal asked for.
        ordinal: usize,
        /// Number of devices there are.
        available: usize,
    },
    /// A buffer or an event of one device was used with a stream of another.
    #[error(
        "a buffer or event of {buffer} was used with a stream of {stream}; copy what it holds, or use a stream of its device"
    )]
    WrongDevice {
        /// The device of the buffer or event.
        buffer: String,
        /// The stream's device.
        stream: String,
    },
    /// An environment variable has a value that cannot be understood.
    #[error("environment variable {variable} is '{value}': expected {expected}")]
    Environment {
        /// Its name.
        variable: &'static str,
        /// Its value.
        value: String,
        /// What it may be.
        expected: &'static str,
    },
    /// The simulator cannot understand its environment variables.
    #[error("the simulator's environment: {expected}")]
    SimEnvironment {
        /// Which variable, and what it may be.
        expected: String,
    },
    /// The CUDA driver library is not installed.
    #[error("no CUDA driver: {reason} (searched {}); install NVIDIA's driver, or use --device cpu", searched.join(", "))]
    DriverMissing {
        /// Files that were tried.
        searched: Vec<String>,
        /// What the system said.
        reason: String,
    },
    /// The driver is there and finds no device.
    #[error(
        "the CUDA driver finds no device; check nvidia-smi and CUDA_VISIBLE_DEVICES, or use --device cpu"
    )]
    NoDevice,
    /// A call for device memory was made to an index that is not on a GPU.
    #[error("the index is in host memory: use the call without buffers, or build the index on a GPU")]
    NotOnGpu,
    /// kauri was built without the feature `cuda`.
    #[error("this build of kauri has no CUDA support; enable the feature `cuda`, or use the cpu device")]
    CudaDisabled,
    /// kauri was built without the feature `sim`.
    #[error("this build of kauri has no simulator; enable the feature `sim`")]
    SimDisabled,
    /// No kernels for this device are part of this build.
    #[error("no PTX of family '{family}' for compute capability {}.{}: {advice}", capability.0, capability.1)]
    NoPtx {
        /// The kernel family.
        family: &'static str,
        /// Compute capability of the device.
        capability: (u32, u32),
        /// What to do.
        advice: String,
    },
    /// The driver refused a module of kernels.
    #[error(
        "the driver refused the kernels of family '{family}' ({code} {name}: {advice}){}",
        log_suffix(log)
    )]
    BadModule {
        /// The kernel family.
        family: &'static str,
        /// The driver's result code.
        code: i32,
        /// The code's name.
        name: &'static str,
        /// What to do.
        advice: &'static str,
        /// The log of the driver's compiler.
        log: String,
    },
    /// A kernel that the module should hold is not in it.
    #[error("kernel '{kernel}' is not in the PTX of family '{family}'; rebuild it with `cargo xtask ptx`")]
    MissingKernel {
        /// The kernel's entry name.
        kernel: String,
        /// The kernel family.
        family: &'static str,
    },
    /// A launch was refused before it started.
    #[error("kernel '{kernel}' cannot be launched with grid {grid} and block {block}: {reason}")]
    InvalidLaunch {
        /// The kernel's entry name.
        kernel: String,
        /// Blocks of the grid.
        grid: u64,
        /// Threads of a block.
        block: u32,
        /// Why.
        reason: String,
    },
    /// A call to the driver failed.
    #[error("{call} failed: {code} {name}, {meaning}; {advice}")]
    Driver {
        /// The call.
        call: &'static str,
        /// The driver's result code.
        code: i32,
        /// The code's name.
        name: &'static str,
        /// What it means.
        meaning: &'static str,
        /// What to do.
        advice: &'static str,
    },
    /// A kernel of a `checked` build made a wrong access and stopped.
    #[error(
        "a kernel accessed element {index} of a buffer of {len}, at {file}:{line}, block {block}, thread {thread}; \
         the device context is lost"
    )]
    KernelFault {
        /// Source file of the access.
        file: String,
        /// Line of the access.
        line: u32,
        /// Block index of the thread.
        block: u32,
        /// Thread index in the block.
        thread: u32,
        /// The index used.
        index: u64,
        /// The length of the buffer.
        len: u64,
    },
    /// An earlier error destroyed the device's context; nothing works on it any more in this process.
    #[error("the context of {device} was lost by an earlier error ({code} {name}); restart the process")]
    ContextPoisoned {
        /// The device.
        device: String,
        /// The driver's result code of the first error.
        code: i32,
        /// The code's name.
        name: &'static str,
    },
    /// The simulator found a mistake in a kernel or in its launch.
    #[cfg(feature = "sim")]
    #[error("{0}")]
    Simulator(cuda_sim::SimError),
    /// An index does not have the structure it should have.
    #[error("node {node} of the tree is wrong: {what}")]
    Corrupt {
        /// The node.
        node: u64,
        /// What is wrong with it.
        what: String,
    },
    /// A file of an index does not hold what it should: it was damaged, cut short, or never was one.
    #[error("{}, byte {offset}: {what}; save the index anew", place(path))]
    CorruptFile {
        /// The file; empty for a reader.
        path: PathBuf,
        /// Where in it.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// A file of an index holds another one than was asked for.
    #[error("{}: the {what} is {found}, and was to be {expected}; load it as what was saved", place(path))]
    WrongFile {
        /// The file; empty for a reader.
        path: PathBuf,
        /// What differs: "version of the format", "kind of index" or "type of points".
        what: &'static str,
        /// What was asked for.
        expected: String,
        /// What is in the file.
        found: String,
    },
    /// A triangle of a mesh names a vertex that is not there.
    #[error(
        "corner {corner} of triangle {triangle} is vertex {index}: there are {vertices} vertices, from 0"
    )]
    NoSuchVertex {
        /// The triangle, from 0.
        triangle: u64,
        /// Its corner, from 0 to 2.
        corner: usize,
        /// The vertex that it names.
        index: u32,
        /// How many vertices there are.
        vertices: u64,
    },
    /// A file of a mesh does not hold what it should: it was damaged, cut short, or never was one.
    #[error("{}{place}: {what}", path.display())]
    MeshFile {
        /// The file.
        path: PathBuf,
        /// Where in it.
        place: TablePlace,
        /// What is wrong and what was expected.
        what: String,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", place(path))]
    Io {
        /// The file; empty for a reader or a writer.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A table does not hold what it should.
    #[error("{}{place}: {}{what}", path.display(), column_prefix(column))]
    Table {
        /// The file.
        path: PathBuf,
        /// Where in it.
        place: TablePlace,
        /// The column's name, if one is to blame.
        column: Option<String>,
        /// What is wrong and what was expected.
        what: String,
    },
}

/// Where in a table, or in a file of a mesh, something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TablePlace {
    /// A line of a text file, from 1.
    Line(u64),
    /// A row of a file without lines, from 0.
    Row(u64),
    /// An item of a file that has items of several kinds and no lines.
    Item {
        /// What it is: "vertex", "face", or "item" for what is passed over.
        what: &'static str,
        /// Its number among those, from 0.
        index: u64,
    },
    /// Nowhere in particular.
    Whole,
}

impl fmt::Display for TablePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, ":{line}"),
            Self::Row(row) => write!(f, ": row {row}"),
            Self::Item { what, index } => write!(f, ": {what} {index}"),
            Self::Whole => Ok(()),
        }
    }
}

fn place(path: &Path) -> Display<'_> {
    (if path.as_os_str().is_empty() { Path::new("stream") } else { path }).display()
}

impl Error {
    /// Of a coordinate that may not be.
    pub(crate) fn of_coordinate(what: &'static str, index: u64, axis: usize, value: f64, limit: f64) -> Self {
        if value.is_finite() {
            Self::CoordinateTooLarge { what, index, axis, value, limit }
        } else {
            Self::NonFinite { what, index, axis, value }
        }
    }

    /// What becomes of an error that comes up where room for a result is made.
    pub(crate) fn of_result(self, count: u64, bytes: u64) -> Self {
        match self {
            Self::OutOfMemory { memory, free, .. } => Self::ResultTooLarge { count, bytes, memory, free },
            other => other,
        }
    }
}

fn log_suffix(log: &str) -> String {
    if log.is_empty() { String::new() } else { format!("\n{log}") }
}

fn column_prefix(column: &Option<String>) -> String {
    column.as_ref().map(|name| format!("column '{name}': ")).unwrap_or_default()
}
