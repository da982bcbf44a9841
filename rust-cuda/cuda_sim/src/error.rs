//! Errors of simulated launches and host operations.

use crate::chain::Chain;
use cuda_std::simt::{AccessKind, Barrier, Site, Space, WarpOp};
use std::fmt;

/// An error of a launch or host operation: its kind, its locations, and how to replay it. `Display` prints a report of
/// several lines.
#[derive(Clone)]
pub struct SimError(Box<Report>);

#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) kind: Kind,
    pub(crate) kernel: String,
    pub(crate) replay: String,
}

/// A thread of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId {
    /// Index of the block in the grid: x, y, z.
    pub block: [u32; 3],
    /// Index of the thread in the block: x, y, z.
    pub thread: [u32; 3],
}

/// An operation that a thread performed or waits for, and its location.
#[derive(Clone, Debug)]
pub struct Event {
    /// The thread.
    pub thread: ThreadId,
    /// The operation.
    pub action: Action,
    /// The call into `cuda_std`; `None` if its location is unknown.
    pub site: Option<Site>,
    /// The call chain to `site`; empty if unknown.
    pub chain: Chain,
}

/// Threads of one block that wait at the same location.
#[derive(Clone, Debug)]
pub struct Group {
    /// One of them.
    pub example: Event,
    /// All of them, ascending.
    pub threads: Vec<ThreadId>,
}

/// An operation of a thread.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A load, store or read-modify-write.
    Access(AccessInfo),
    /// Takes a part of a view.
    Part {
        /// First element.
        begin: u64,
        /// Number of elements.
        len: u64,
        /// Elements of the view.
        of: u64,
    },
    /// A barrier.
    Barrier(Barrier),
    /// A warp operation with these lanes.
    Warp(WarpOp, u32),
    /// A spin hint.
    Spin,
    /// A request for shared memory.
    Shared {
        /// Requested bytes.
        bytes: usize,
    },
    /// Anything else.
    Other(&'static str),
}

/// Description of an access.
#[derive(Clone, Debug, PartialEq)]
pub struct AccessInfo {
    /// Address space.
    pub space: Space,
    /// Plain, read-only or atomic.
    pub kind: AccessKind,
    /// Load, store or both.
    pub mode: Mode,
    /// Element index within the view.
    pub index: u64,
    /// Elements of the view.
    pub len: u64,
    /// Bytes of the element.
    pub bytes: usize,
    /// The label of the allocation that contains the address, and the byte offset in it.
    pub allocation: Option<(String, usize)>,
}

/// Direction of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Atomic read-modify-write.
    Update,
}

/// Reason for which an address is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadAddress {
    /// Outside of all allocations.
    Unallocated,
    /// Inside an allocation that was freed.
    Freed,
    /// The element begins inside an allocation and ends beyond it.
    CrossesEnd,
    /// Inside the other address space.
    OtherSpace,
    /// Not a multiple of the access's alignment.
    Misaligned {
        /// The alignment.
        align: usize,
    },
}

/// The kinds of errors.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// Two threads access the same bytes, one of them writes, and nothing orders them.
    Race {
        /// The access that came first in this run.
        earlier: Event,
        /// The access that revealed the race.
        later: Event,
    },
    /// Two atomic operations on the same bytes, by threads of different blocks, and one has block scope.
    NarrowScope {
        /// The operation that came first in this run.
        earlier: Event,
        /// The other one.
        later: Event,
    },
    /// A read-only load of bytes that the same launch writes.
    ReadOnlyWritten {
        /// The access that came first in this run.
        earlier: Event,
        /// The other one.
        later: Event,
    },
    /// A read of bytes that were never written.
    Uninitialized {
        /// The read.
        by: Event,
    },
    /// An element or part beyond the end of its view.
    OutOfBounds {
        /// The access, or the operation that takes the part.
        by: Event,
    },
    /// An address that may not be accessed.
    BadAddress {
        /// The access.
        by: Event,
        /// The reason.
        why: BadAddress,
    },
    /// All live threads of a block wait at barriers, but not at the same one.
    BarrierMismatch {
        /// Who waits where.
        groups: Vec<Group>,
    },
    /// Threads of a block wait at barriers and warp operations that cannot complete.
    Deadlock {
        /// Who waits where.
        groups: Vec<Group>,
    },
    /// Lanes of one warp name each other in different warp operations, or in one with different masks.
    WarpMismatch {
        /// The lane that waits.
        earlier: Event,
        /// The lane that arrived at another operation.
        later: Event,
    },
    /// A lane in the mask of a warp operation has ended.
    ExitedLane {
        /// A lane that waits.
        by: Event,
        /// The lane that ended.
        lane: u32,
    },
    /// The caller of a warp operation is not in its mask.
    NotInMask {
        /// The caller.
        by: Event,
    },
    /// A shuffle reads from a lane that is not in the mask or does not exist.
    BadSource {
        /// The reading lane.
        by: Event,
        /// The lane that is read.
        source: u32,
    },
    /// All threads that could run spin, and memory does not change any more.
    NoProgress {
        /// Who waits where, in all blocks on the device.
        groups: Vec<Group>,
        /// Blocks that have not started, because none on the device ends.
        blocks_not_started: u64,
    },
    /// The launch took more steps than its budget.
    StepBudget {
        /// The budget.
        steps: u64,
        /// The thread that ran last.
        by: Event,
    },
    /// The kernel function panicked: an index out of bounds, an overflow, a failed assertion.
    Panic {
        /// The message.
        message: String,
        /// The thread.
        by: Event,
        /// Location of the panic.
        location: String,
    },
    /// The kernel trapped.
    Trap {
        /// The thread.
        by: Event,
    },
    /// A request for more shared memory than the block has.
    SharedMemory {
        /// The request.
        by: Event,
        /// Available bytes.
        available: usize,
    },
    /// An invalid argument of an operation.
    BadArgument {
        /// The operation.
        by: Event,
        /// Why the argument is invalid.
        what: String,
    },
    /// Bytes next to an allocation were changed through a raw pointer (views are checked).
    RedZone {
        /// The allocation.
        label: String,
        /// Offset of the first changed byte from its beginning.
        offset: i64,
    },
    /// A launch configuration that the device does not support.
    BadLaunch {
        /// The reason.
        what: String,
    },
    /// Not enough device memory.
    OutOfMemory {
        /// Requested bytes.
        requested: u64,
        /// Free bytes.
        free: u64,
        /// Label of the requested allocation.
        label: String,
    },
    /// A host operation on memory that is not allocated.
    HostAddress {
        /// The host operation and its range.
        what: String,
    },
    /// A host read of bytes that were never written.
    HostRead {
        /// The allocation.
        label: String,
        /// Offset of the first such byte.
        offset: usize,
    },
}

impl SimError {
    pub(crate) fn new(kind: Kind, kernel: &str, replay: String) -> Self {
        Self(Box::new(Report { kind, kernel: kernel.to_owned(), replay }))
    }

    /// Creates the error of a host operation.
    pub(crate) fn host(kind: Kind) -> Self {
        Self::new(kind, "", String::new())
    }

    /// Returns the kind of error.
    pub fn kind(&self) -> &Kind {
        &self.0.kind
    }

    /// Returns the kernel's name; empty for host operations.
    pub fn kernel(&self) -> &str {
        &self.0.kernel
    }

    /// Returns the environment variables that replay the launch's schedule; empty for host operations.
    pub fn replay(&self) -> &str {
        &self.0.replay
    }

    /// Returns all operations involved; the one that revealed the error comes first.
    pub fn events(&self) -> Vec<&Event> {
        self.0.kind.events()
    }

    /// Returns the source locations of [`events`](Self::events) and of their call chains as `file:line:column`.
    pub fn locations(&self) -> Vec<String> {
        let events = self.events();
        let sites = events.iter().filter_map(|e| e.site).map(|s| s.to_string());
        let frames = events.iter().flat_map(|e| &e.chain.0);
        let panic = match &self.0.kind {
            Kind::Panic { location, .. } => Some(location.clone()),
            _ => None,
        };
        sites.chain(panic).chain(frames.map(|f| format!("{}:{}:{}", f.file, f.line, f.column))).collect()
    }
}

macro_rules! events {
    ($name:ident, $self:ty, $event:ty, $iter:ident, $example:expr) => {
        /// Returns all operations involved; the one that revealed the error comes first.
        pub(crate) fn $name(self: $self) -> Vec<$event> {
            match self {
                Self::Race { earlier, later }
                | Self::NarrowScope { earlier, later }
                | Self::ReadOnlyWritten { earlier, later }
                | Self::WarpMismatch { earlier, later } => vec![later, earlier],
                Self::Uninitialized { by }
                | Self::OutOfBounds { by }
                | Self::BadAddress { by, .. }
                | Self::ExitedLane { by, .. }
                | Self::NotInMask { by }
                | Self::BadSource { by, .. }
                | Self::StepBudget { by, .. }
                | Self::Panic { by, .. }
                | Self::Trap { by }
                | Self::SharedMemory { by, .. }
                | Self::BadArgument { by, .. } => vec![by],
                Self::BarrierMismatch { groups }
                | Self::Deadlock { groups }
                | Self::NoProgress { groups, .. } => groups.$iter().map($example).collect(),
                Self::RedZone { .. }
                | Self::BadLaunch { .. }
                | Self::OutOfMemory { .. }
                | Self::HostAddress { .. }
                | Self::HostRead { .. } => vec![],
            }
        }
    };
}

impl Kind {
    events!(events, &Self, &Event, iter, |g| &g.example);
    events!(events_mut, &mut Self, &mut Event, iter_mut, |g| &mut g.example);

    /// Fills in the earlier access of a conflict.
    pub(crate) fn set_earlier(&mut self, event: Option<Event>) {
        if let (
            Self::Race { earlier, .. }
            | Self::NarrowScope { earlier, .. }
            | Self::ReadOnlyWritten { earlier, .. },
            Some(event),
        ) = (self, event)
        {
            *earlier = event;
        }
    }
}

impl std::error::Error for SimError {}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::report::write(f, &self.0)
    }
}

/// Prints the report, too, because `unwrap` prints `Debug`.
impl fmt::Debug for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{}\n", self.to_string().trim_end())
    }
}
