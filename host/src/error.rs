//! The error type of the library.

use std::fmt;
use std::path::{Display, Path, PathBuf};

/// `Result` with kauri's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a call to kauri. Its message names the place of the error and what to do about it.
///
/// Every object stays usable after an error. The exception is an error that destroys a device's context: from then on
/// every call on that device returns [`Error::ContextPoisoned`].
///
/// ```
/// use kauri::{Device, Error, KdTree, KdTreeOptions};
///
/// let points = [[0.0, 1.0], [f32::NAN, 2.0]];
/// let error = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default()).unwrap_err();
/// assert!(matches!(error, Error::NonFinite { index: 1, axis: 0, .. }));
/// assert_eq!(error.to_string(), "point 1 has NaN on axis 0: coordinates must be finite");
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    // Input values.
    /// A coordinate is NaN or infinite.
    #[error("{what} {index} has {value} on axis {axis}: coordinates must be finite")]
    NonFinite {
        /// The invalid input: "point", "query" or "vertex".
        what: &'static str,
        /// Its index in the input.
        index: u64,
        /// The axis, from 0.
        axis: usize,
        /// The value found.
        value: f64,
    },
    /// A coordinate is so large that squared distances could overflow to infinity, or is an integer that `f64` does not
    /// represent exactly.
    #[error(
        "{what} {index} has {value:e} on axis {axis}: magnitudes above {limit:e} overflow when squared, or are not exact; \
         scale the coordinates or use a wider type"
    )]
    CoordinateTooLarge {
        /// The invalid input: "point", "query" or "vertex".
        what: &'static str,
        /// Its index in the input.
        index: u64,
        /// The axis, from 0.
        axis: usize,
        /// The value found; integers are rounded.
        value: f64,
        /// The largest magnitude accepted.
        limit: f64,
    },
    /// A lon/lat point is outside the range of its coordinates.
    #[error("{what} {index} has {axis} {value}: {axis} must be within ±{limit} degrees")]
    InvalidLonLat {
        /// The invalid input: "point" or "query".
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
    /// An Arrow array is not one of points.
    #[error(
        "arrays of {found} are not points: expected a list or a struct of {numbers} numbers {of}; cast them before"
    )]
    NotPoints {
        /// The type of the array, or the lengths of the arrays.
        found: String,
        /// The numbers of a point.
        numbers: usize,
        /// The type of a number.
        of: String,
    },
    /// A row of an Arrow array has no point.
    #[error("row {row} is null, has a null coordinate, or is an empty point: fill it, or skip such rows")]
    NullRow {
        /// The row.
        row: u64,
    },
    /// Bytes of an Arrow array are not a point in well-known binary.
    #[error("row {row}: {what}")]
    InvalidWkb {
        /// The row.
        row: u64,
        /// The reason.
        what: String,
    },
    /// A score, or a weight of scores, is NaN or infinite.
    #[error("score or weight {index} is {value}: scores must be finite")]
    NonFiniteScore {
        /// Its index.
        index: u64,
        /// Its value.
        value: f64,
    },
    /// The low corner of a box is above the high one.
    #[error("{what} {index} begins at {low} and ends at {high} on axis {axis}: give the low corner first")]
    InvertedBox {
        /// The name of the boxes, such as "box".
        what: &'static str,
        /// The index of the box in the input.
        index: u64,
        /// The axis, from 0.
        axis: usize,
        /// The coordinate of the low corner.
        low: f64,
        /// The coordinate of the high corner.
        high: f64,
    },
    /// A length is negative or not a number.
    #[error("{what} {value}: expected a number that is 0 or greater")]
    InvalidLength {
        /// The name of the length, such as "radius", "period" or "distance".
        what: &'static str,
        /// Its value.
        value: f64,
    },
    /// The resolution of a raster is not a length.
    #[error("resolution {value}: expected a length greater than 0")]
    InvalidResolution {
        /// Its value.
        value: f64,
    },
    /// The steps of a lattice along x and y differ.
    #[error(
        "the lattice of the points has steps of {x} along x and of {y} along y: move the points to a lattice with equal steps"
    )]
    UnequalSteps {
        /// The step along x.
        x: f64,
        /// The step along y.
        y: f64,
    },
    /// A number is out of range.
    #[error("{what} {value}: expected {least} to {most}")]
    OutOfRange {
        /// The name of the number.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The least value accepted.
        least: u64,
        /// The greatest value accepted.
        most: u64,
    },
    /// A query and a point are farther apart on a periodic axis than its period.
    #[error(
        "{what} {index} is {distance} from a point on axis {axis}, which has a period of {period}: move all points and queries \
         into one period"
    )]
    BeyondPeriod {
        /// The invalid input: "query", or "point" if the tree's own points are the queries.
        what: &'static str,
        /// Its index in the input.
        index: u64,
        /// The axis, from 0.
        axis: usize,
        /// The distance of the farthest point on that axis.
        distance: f64,
        /// The period of the axis.
        period: f64,
    },
    /// The bits of a sort are not within the key.
    #[error("bits {begin} to {end} of keys of {bits} bits: give a range within 0..{bits}")]
    InvalidBits {
        /// The first bit.
        begin: u32,
        /// The end of the range, exclusive.
        end: u32,
        /// The number of bits of a key.
        bits: u32,
    },
    /// An id does not belong to a point of the index.
    #[error(
        "id {id} does not belong to a point: the index has never given it, or the point has been removed"
    )]
    UnknownId {
        /// The least such id of the call.
        id: u32,
    },
    /// A call has one id twice.
    #[error("id {id} occurs twice: give each id once")]
    RepeatedId {
        /// The least such id of the call.
        id: u32,
    },
    /// A triangle of a mesh refers to a vertex that does not exist.
    #[error(
        "corner {corner} of triangle {triangle} is vertex {index}: there are {vertices} vertices, from 0"
    )]
    NoSuchVertex {
        /// The triangle, from 0.
        triangle: u64,
        /// Its corner, from 0 to 2.
        corner: usize,
        /// The index of the vertex.
        index: u32,
        /// The number of vertices.
        vertices: u64,
    },
    /// A position does not fit in the 32-bit integers of a LAS file, or is not a number.
    #[error(
        "{value} m on axis {axis} does not fit in the 32-bit integers of a LAS file: choose a nearer offset or a larger scale"
    )]
    LasOverflow {
        /// The axis, from 0.
        axis: usize,
        /// The position on it, in meters.
        value: f64,
    },

    // Sizes and memory.
    /// The sizes of two inputs do not match.
    #[error("shape mismatch: {what}: expected {expected}, got {got}")]
    Shape {
        /// The size that was checked.
        what: &'static str,
        /// The size expected.
        expected: u64,
        /// The size given.
        got: u64,
    },
    /// An input has more items than 32-bit ids can number.
    #[error("{count} {what}: at most {max} are supported, because ids are 32-bit; split the input")]
    TooManyItems {
        /// The kind of items.
        what: &'static str,
        /// The number of items given.
        count: u64,
        /// The largest number accepted.
        max: u64,
    },
    /// A result has more items than memory can hold.
    #[error(
        "the result does not fit in memory: it has {count} items, {bytes} bytes, and {free} bytes of {memory} memory are free; \
         take it in batches (nearest_batches, within_batches, in_boxes_batches, each_hit), or run fewer queries at a time"
    )]
    ResultTooLarge {
        /// The exact number of items: neighbors, points or hits. For hits of rays on a GPU, an item counts once for each
        /// leaf in which the ray meets it. `u64::MAX` means this number or more.
        count: u64,
        /// The bytes of all items.
        bytes: u64,
        /// The kind of memory: "device", "pinned host" or "host".
        memory: &'static str,
        /// The free bytes at the time of the error; 0 if the system does not report them.
        free: u64,
    },
    /// A row of a result is larger than a batch.
    #[error(
        "row {row} has {count} items, {bytes} bytes, but a batch holds at most {most} bytes: allow larger batches (Batches::bytes)"
    )]
    RowTooLarge {
        /// The first row that does not fit. All earlier rows have been delivered.
        row: u64,
        /// The exact number of its items.
        count: u64,
        /// The bytes of its items.
        bytes: u64,
        /// The largest number of bytes of a batch.
        most: u64,
    },
    /// Memory could not be allocated.
    #[error(
        "out of {memory} memory: {requested} bytes for {label}, {free} bytes free; use smaller batches or free buffers"
    )]
    OutOfMemory {
        /// The kind of memory: "device", "pinned host" or "host".
        memory: &'static str,
        /// The bytes requested.
        requested: u64,
        /// The free bytes at the time of the error; 0 if the system does not report them.
        free: u64,
        /// The purpose of the allocation.
        label: &'static str,
    },

    // Queries, joins and long calls.
    /// The strategy chosen for a join cannot keep `k` pairs.
    #[error(
        "strategy {strategy} keeps at most {most} pairs, but k is {k}: choose another strategy, or Strategy::Auto"
    )]
    StrategyLimit {
        /// The name of the strategy.
        strategy: &'static str,
        /// The number of pairs requested.
        k: u64,
        /// The most pairs that the strategy keeps.
        most: u64,
    },
    /// A radius query was prepared with options that have no radius.
    #[error("the options have no radius: set QueryOptions::radius before they are prepared")]
    NoRadius,
    /// A query in device memory was prepared for another tree.
    #[error("the query was prepared for another tree: prepare it with the tree that runs it (`prepare`)")]
    OtherTree,
    /// A call with device buffers was made on an index in host memory.
    #[error("the index is in host memory: use the call without buffers, or build the index on a GPU")]
    NotOnGpu,
    /// A call that visits points on the CPU was made on an index on a GPU.
    #[error(
        "the index is on a GPU: visit its points by a kernel of your own (`DeviceIndex::visit_on`), or build the index on the CPU"
    )]
    NotOnCpu,
    /// The progress callback stopped the call.
    #[error("stopped in phase '{phase}': {done}{} done", .total.map_or_else(String::new, |total| format!(" of {total}")))]
    Stopped {
        /// The phase.
        phase: &'static str,
        /// The rows or points done in this phase.
        done: u64,
        /// The rows or points of the whole phase, if their number is known.
        total: Option<u64>,
    },

    // Devices and drivers.
    /// The name of a device is unknown.
    #[error("unknown device '{name}': expected best, cpu, cuda, cuda:N or sim")]
    UnknownDevice {
        /// The name given.
        name: String,
    },
    /// The machine has no CUDA device with this number.
    #[error("there is no device cuda:{ordinal}: this machine has {available} CUDA devices, numbered from 0")]
    NoSuchDevice {
        /// The ordinal requested.
        ordinal: usize,
        /// The number of CUDA devices.
        available: usize,
    },
    /// A buffer or an event of one device was used with a stream of another.
    #[error(
        "a buffer or event of {buffer} was used with a stream of {stream}; copy its contents, or use a stream of its device"
    )]
    WrongDevice {
        /// The device of the buffer or event.
        buffer: String,
        /// The stream's device.
        stream: String,
    },
    /// Device memory of the caller is not aligned like an allocation.
    #[error(
        "device memory at {address:#x} is not aligned to {alignment} bytes; give the start of an allocation"
    )]
    Unaligned {
        /// The address.
        address: u64,
        /// The alignment that is needed, in bytes.
        alignment: usize,
    },
    /// A buffer that borrows its memory was to give the memory away.
    #[error("the buffer borrows its memory; take the memory from its owner")]
    NotOwned,
    /// A call that needs CUDA was made with a simulated device.
    #[error("{device} is not a CUDA device; open one with Device::cuda")]
    NotCuda {
        /// The device given.
        device: String,
    },
    /// The driver finds no device.
    #[error(
        "the CUDA driver finds no device; check nvidia-smi and CUDA_VISIBLE_DEVICES, or use the device cpu"
    )]
    NoDevice,
    /// The CUDA driver library is not installed.
    #[error("no CUDA driver: {reason} (searched {}); install NVIDIA's driver, or use the device cpu", searched.join(", "))]
    DriverMissing {
        /// The files that were tried.
        searched: Vec<String>,
        /// The message of the system.
        reason: String,
    },
    /// kauri was built without the feature `cuda`.
    #[error("this build of kauri has no CUDA support; enable the feature `cuda`, or use the cpu device")]
    CudaDisabled,
    /// kauri was built without the feature `sim`.
    #[error("this build of kauri has no simulator; enable the feature `sim`")]
    SimDisabled,
    /// An environment variable has an invalid value.
    #[error("environment variable {variable} is '{value}': expected {expected}")]
    Environment {
        /// The name of the variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// The valid values.
        expected: &'static str,
    },
    /// An environment variable of the simulator has an invalid value.
    #[error("the simulator's environment: {expected}")]
    SimEnvironment {
        /// The variable and its valid values.
        expected: String,
    },

    // Kernels and driver calls.
    /// This build has no kernels for the device.
    #[error("no PTX of family '{family}' for compute capability {}.{}: {advice}", capability.0, capability.1)]
    NoPtx {
        /// The kernel family.
        family: &'static str,
        /// The compute capability of the device.
        capability: (u32, u32),
        /// The recommended action.
        advice: String,
    },
    /// The driver rejected a module of kernels.
    #[error(
        "the driver rejected the kernels of family '{family}' ({code} {name}: {advice}){}",
        log_suffix(log)
    )]
    BadModule {
        /// The kernel family.
        family: &'static str,
        /// The driver's result code.
        code: i32,
        /// The code's name.
        name: &'static str,
        /// The recommended action.
        advice: &'static str,
        /// The log of the driver's compiler.
        log: String,
    },
    /// A kernel is missing in its module.
    #[error("kernel '{kernel}' is not in the PTX of family '{family}'; rebuild it with `cargo xtask ptx`")]
    MissingKernel {
        /// The kernel's entry name.
        kernel: String,
        /// The kernel family.
        family: &'static str,
    },
    /// A launch was rejected before it started.
    #[error("kernel '{kernel}' cannot be launched with grid {grid} and block {block}: {reason}")]
    InvalidLaunch {
        /// The kernel's entry name.
        kernel: String,
        /// The number of blocks.
        grid: u64,
        /// The number of threads of a block.
        block: u32,
        /// The reason.
        reason: String,
    },
    /// A call to the driver failed.
    #[error("{call} failed: {code} {name}, {meaning}; {advice}")]
    Driver {
        /// The driver function.
        call: &'static str,
        /// The driver's result code.
        code: i32,
        /// The code's name.
        name: &'static str,
        /// The meaning of the code.
        meaning: &'static str,
        /// The recommended action.
        advice: &'static str,
    },
    /// A kernel of a `checked` build accessed memory out of bounds and stopped.
    #[error(
        "a kernel accessed element {index} of a buffer of {len}, at {file}:{line}, block {block}, thread {thread}; \
         the device context is lost; restart the process"
    )]
    KernelFault {
        /// The source file of the access.
        file: String,
        /// The line of the access.
        line: u32,
        /// The block index of the thread.
        block: u32,
        /// The thread index in the block.
        thread: u32,
        /// The index used.
        index: u64,
        /// The length of the buffer.
        len: u64,
    },
    /// An earlier error destroyed the context of the device, which is unusable in this process from then on.
    #[error("the context of {device} was lost by an earlier error ({code} {name}); restart the process")]
    ContextPoisoned {
        /// The device.
        device: String,
        /// The driver's result code of the first error.
        code: i32,
        /// The code's name.
        name: &'static str,
    },
    /// The simulator found an error in a kernel or in its launch.
    #[cfg(feature = "sim")]
    #[error("{0}")]
    Simulator(cuda_sim::SimError),

    // Indexes and files.
    /// An index has an invalid structure.
    #[error("node {node} of the tree is wrong: {what}; build the index again")]
    Corrupt {
        /// The node.
        node: u64,
        /// The problem.
        what: String,
    },
    /// An index file is invalid: it is damaged, cut short, or has another format.
    #[error("{}, byte {offset}: {what}; save the index again", stream_or_file(path))]
    CorruptFile {
        /// The file; empty for a reader.
        path: PathBuf,
        /// The offset in bytes.
        offset: u64,
        /// The problem.
        what: String,
    },
    /// An index file has another index or point type than the one requested.
    #[error(
        "{}: the {what} is {found}, expected {expected}; load it with the type that saved it",
        stream_or_file(path)
    )]
    WrongFile {
        /// The file; empty for a reader.
        path: PathBuf,
        /// The property that differs: "version of the format", "kind of index" or "type of points".
        what: &'static str,
        /// The value expected.
        expected: String,
        /// The value in the file.
        found: String,
    },
    /// A file of a table or a mesh has invalid content: it is damaged, cut short, or has another format.
    #[error("{}{location}: {}{what}", path.display(), column_prefix(column))]
    InvalidFile {
        /// The file.
        path: PathBuf,
        /// The place in the file.
        location: FileLocation,
        /// The name of the column, if the error is in one.
        column: Option<String>,
        /// The problem, and the expected content.
        what: String,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", stream_or_file(path))]
    Io {
        /// The file; empty for a reader or a writer.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
}

/// The location of an error in the file of a table or a mesh.
///
/// ```
/// # #[cfg(feature = "io")] {
/// use kauri::{Error, FileLocation, io::Table};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("cities.csv");
/// std::fs::write(&path, "lon,lat\n18.07,north\n").unwrap();
/// let table = Table::read(&path).unwrap();
/// let error = table.numbers(1).unwrap_err();
/// assert!(matches!(error, Error::InvalidFile { location: FileLocation::Line(2), .. }));
/// assert!(error.to_string().ends_with("cities.csv:2: column 'lat': 'north' is not a number"));
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileLocation {
    /// A line of a text file, from 1.
    Line(u64),
    /// A row of a file without lines, from 0.
    Row(u64),
    /// An element of a binary file with elements of several kinds.
    Item {
        /// The kind: "vertex", "face", or "item" for elements that are skipped.
        what: &'static str,
        /// The index within the kind, from 0.
        index: u64,
    },
    /// The file as a whole.
    Whole,
}

impl fmt::Display for FileLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, ":{line}"),
            Self::Row(row) => write!(f, ": row {row}"),
            Self::Item { what, index } => write!(f, ": {what} {index}"),
            Self::Whole => Ok(()),
        }
    }
}

/// Returns the path, or "stream" for a reader or writer without one.
fn stream_or_file(path: &Path) -> Display<'_> {
    (if path.as_os_str().is_empty() { Path::new("stream") } else { path }).display()
}

impl Error {
    /// Returns the error of an invalid coordinate.
    pub(crate) fn invalid_coordinate(
        what: &'static str,
        index: u64,
        axis: usize,
        value: f64,
        limit: f64,
    ) -> Self {
        if value.is_finite() {
            Self::CoordinateTooLarge { what, index, axis, value, limit }
        } else {
            Self::NonFinite { what, index, axis, value }
        }
    }

    /// Returns the error of an invalid point with its index among all points, `before` of which precede those that were checked.
    pub(crate) fn behind(mut self, before: u64) -> Self {
        if let Self::NonFinite { index, .. }
        | Self::CoordinateTooLarge { index, .. }
        | Self::InvalidLonLat { index, .. } = &mut self
        {
            *index += before;
        }
        self
    }

    /// Returns the error of a node of an invalid index.
    pub(crate) fn corrupt(node: usize, what: impl Into<String>) -> Self {
        Self::Corrupt { node: node as u64, what: what.into() }
    }

    /// Converts [`Error::OutOfMemory`] from the allocation of a result of `count` items to [`Error::ResultTooLarge`]; other errors stay.
    pub(crate) fn of_result(self, count: u64, item_bytes: u64) -> Self {
        let bytes = count.saturating_mul(item_bytes);
        match self {
            Self::OutOfMemory { memory, free, .. } => Self::ResultTooLarge { count, bytes, memory, free },
            other => other,
        }
    }
}

/// Returns [`Error::Shape`] if a length is not the expected one.
pub(crate) fn check_len(what: &'static str, expected: usize, got: usize) -> Result<()> {
    let (expected, got) = (expected as u64, got as u64);
    if expected == got { Ok(()) } else { Err(Error::Shape { what, expected, got }) }
}

/// Returns [`Error::TooManyItems`] if there are more than `max` items.
pub(crate) fn check_count(what: &'static str, count: u64, max: u64) -> Result<()> {
    if count <= max { Ok(()) } else { Err(Error::TooManyItems { what, count, max }) }
}

/// Returns [`Error::OutOfRange`] if a number is not from `least` to `most`.
pub(crate) fn check_range(what: &'static str, value: impl Into<u64>, least: u64, most: u64) -> Result<()> {
    let value = value.into();
    if (least..=most).contains(&value) { Ok(()) } else { Err(Error::OutOfRange { what, value, least, most }) }
}

fn log_suffix(log: &str) -> String {
    if log.is_empty() { String::new() } else { format!("\n{log}") }
}

fn column_prefix(column: &Option<String>) -> String {
    column.as_ref().map(|name| format!("column '{name}': ")).unwrap_or_default()
}
