//! Errors as text, in the style of a compiler: the error, each thread's operation and location, help, and how to replay it.

use crate::error::{AccessInfo, Action, BadAddress, Event, Group, Kind, Mode, Report, ThreadId};
use cuda_std::atomic::Scope;
use cuda_std::simt::{AccessKind, Barrier, Space, WarpOp};
use std::fmt::{Display, Formatter, Result};

/// Number of calls of a chain that are shown.
const MAX_FRAMES: usize = 12;

pub(crate) fn write(f: &mut Formatter<'_>, report: &Report) -> Result {
    let Report { kind, kernel, replay } = report;
    write!(f, "error: {}", headline(kind))?;
    if !kernel.is_empty() {
        write!(f, "\n  in kernel `{kernel}`")?;
    }
    match kind {
        Kind::Race { earlier, later }
        | Kind::NarrowScope { earlier, later }
        | Kind::ReadOnlyWritten { earlier, later }
        | Kind::WarpMismatch { earlier, later } => {
            event(f, "first:  ", earlier)?;
            event(f, "then:   ", later)?;
        }
        Kind::BarrierMismatch { groups } | Kind::Deadlock { groups } | Kind::NoProgress { groups, .. } => {
            groups.iter().try_for_each(|g| group(f, g))?;
        }
        Kind::Panic { message, location, by } => {
            write!(f, "\n  {message}\n  at {location}")?;
            event(f, "", by)?;
        }
        _ => kind.events().into_iter().try_for_each(|e| event(f, "", e))?,
    }
    let help = help(kind);
    if !help.is_empty() {
        write!(f, "\n  help: {help}")?;
    }
    if !replay.is_empty() {
        write!(f, "\n  replay with {replay}")?;
    }
    Ok(())
}

fn headline(kind: &Kind) -> String {
    match kind {
        Kind::Race { later, .. } => {
            format!("data race: nothing orders two accesses to the same bytes in {}", space(later))
        }
        Kind::NarrowScope { later, .. } => {
            format!("the scope of an atomic operation in {} leaves out the other thread", space(later))
        }
        Kind::ReadOnlyWritten { .. } => "a read-only load of bytes that the same launch writes".into(),
        Kind::Uninitialized { by } => {
            format!("{} is read where nothing was written to it", space(by))
        }
        Kind::OutOfBounds { by } => match &by.action {
            Action::Part { begin, len, of } => {
                format!("part {begin}..{} is outside of a view of {of} elements", begin.wrapping_add(*len))
            }
            Action::Access(a) => format!("index {} is outside of a view of {} elements", a.index, a.len),
            _ => "out of bounds".into(),
        },
        Kind::BadAddress { why, .. } => match why {
            BadAddress::Unallocated => "an access outside of all allocations".into(),
            BadAddress::Freed => "an access to memory that was freed".into(),
            BadAddress::CrossesEnd => "an element ends behind the end of its allocation".into(),
            BadAddress::OtherSpace => {
                "an access through a view of the wrong address space, or to another block's shared memory"
                    .into()
            }
            BadAddress::Misaligned { align } => format!("an address that is no multiple of {align}"),
        },
        Kind::BarrierMismatch { .. } => "threads of a block wait at different barriers".into(),
        Kind::Deadlock { .. } => "threads of a block wait for each other at different operations".into(),
        Kind::WarpMismatch { .. } => "lanes wait for each other in warp operations that do not match".into(),
        Kind::ExitedLane { lane, .. } => format!("a warp operation waits for lane {lane}, which has ended"),
        Kind::NotInMask { .. } => "the caller of a warp operation is not in its mask".into(),
        Kind::BadSource { source, .. } => {
            format!("a shuffle reads from lane {source}, which does not take part")
        }
        Kind::NoProgress { blocks_not_started, .. } => {
            let blocks = match blocks_not_started {
                0 => String::new(),
                n => format!("; {n} blocks have not started, because no block on the device ends"),
            };
            format!("no progress: all threads that could run only spin, and nothing changes{blocks}")
        }
        Kind::StepBudget { steps, .. } => format!("the launch took more than its budget of {steps} steps"),
        Kind::Panic { .. } => "the kernel panicked".into(),
        Kind::Trap { .. } => "the kernel trapped".into(),
        Kind::SharedMemory { by, available } => match by.action {
            Action::Shared { bytes } => {
                format!("{bytes} bytes of shared memory asked for, and there are {available}")
            }
            _ => "not enough shared memory".into(),
        },
        Kind::BadArgument { what, .. } => what.clone(),
        Kind::RedZone { label, offset } => {
            format!("a write through a pointer beside `{label}`, at byte {offset} from its beginning")
        }
        Kind::BadLaunch { what } => format!("a launch that the device does not take: {what}"),
        Kind::OutOfMemory { requested, free, label } => {
            format!("out of device memory: {requested} bytes asked for `{label}`, {free} are free")
        }
        Kind::HostAddress { what } => what.clone(),
        Kind::HostRead { label, offset } => {
            format!("the host reads byte {offset} of `{label}`, which was never written")
        }
    }
}

fn space(event: &Event) -> &'static str {
    match &event.action {
        Action::Access(AccessInfo { space: Space::Shared, .. }) => "shared memory",
        _ => "global memory",
    }
}

fn help(kind: &Kind) -> String {
    match kind {
        Kind::Race { earlier, later } => race_help(earlier, later),
        Kind::NarrowScope { .. } => {
            "operations with Scope::Block are atomic among the threads of one block only; use Scope::Device".into()
        }
        Kind::ReadOnlyWritten { .. } => {
            "load_readonly may return any earlier value; use load, or write in another launch".into()
        }
        Kind::Uninitialized { .. } => {
            "fresh memory holds whatever was there before; in the simulator bytes of 0xA5".into()
        }
        Kind::OutOfBounds { by: Event { action: Action::Access(a), .. } } if a.index >> 31 != 0 => {
            "the index looks like a number below 0 that wrapped round".into()
        }
        Kind::BarrierMismatch { .. } | Kind::Deadlock { .. } => {
            "all threads of a block that have not ended must come to the same barrier; move it out of the branch".into()
        }
        Kind::WarpMismatch { .. } => {
            "all lanes of a mask call the same operation with this mask from the same source line".into()
        }
        Kind::ExitedLane { .. } => {
            "let all lanes stay until the last warp operation, and guard the loads and stores instead".into()
        }
        Kind::NotInMask { .. } | Kind::BadSource { .. } => {
            "name all lanes in the mask that take part, and read only from those".into()
        }
        Kind::NoProgress { blocks_not_started: 1.., .. } => {
            "blocks may start in any order: number them by an atomic ticket, and wait for earlier tickets only".into()
        }
        Kind::NoProgress { .. } => "look for a signal that nobody sends, or that is sent too early".into(),
        Kind::StepBudget { .. } => {
            "a loop may not end; if the case is just large, raise SIM_STEPS or make it smaller".into()
        }
        Kind::HostRead { .. } => "a kernel was to write it, or it is to be filled".into(),
        _ => String::new(),
    }
}

fn race_help(earlier: &Event, later: &Event) -> String {
    let atomic =
        |e: &Event| matches!(&e.action, Action::Access(AccessInfo { kind: AccessKind::Atomic(..), .. }));
    let same_block = earlier.thread.block == later.thread.block;
    let warp = |t: &ThreadId| t.thread[0] / 32;
    let flat = [earlier, later].iter().all(|e| e.thread.thread[1..] == [0, 0]);
    let order = if !same_block {
        "blocks hand data over by a release at device scope (store or fence) and an acquire of what was stored"
    } else if flat && warp(&earlier.thread) == warp(&later.thread) {
        "a warp::sync_warp or thread::sync_threads belongs between the two; shuffles and votes order no memory"
    } else {
        "a thread::sync_threads belongs between the two"
    };
    if atomic(earlier) != atomic(later) {
        return format!("one of the two is not atomic: make it so, or order them; {order}");
    }
    order.into()
}

fn event(f: &mut Formatter<'_>, label: &str, event: &Event) -> Result {
    write!(f, "\n  {label}{}: {}", event.thread, event.action)?;
    locations(f, event)
}

fn group(f: &mut Formatter<'_>, group: &Group) -> Result {
    let Group { example, threads } = group;
    let verb = if example.action == Action::Other("its next step") { "is before" } else { "waits for" };
    if threads.len() == 1 {
        write!(f, "\n  {} {verb} {}", example.thread, example.action)?;
    } else {
        let list = Ranges(threads);
        let block = Index(example.thread.block);
        write!(f, "\n  block {block}: {} threads ({list}), each {verb} {}", threads.len(), example.action)?;
    }
    locations(f, example)
}

/// Writes the location of an event and its call chain.
fn locations(f: &mut Formatter<'_>, event: &Event) -> Result {
    if let Some(site) = event.site {
        write!(f, "\n    at {site}")?;
    }
    // Files of a call chain are absolute paths, the file of the site is relative to the workspace.
    let root = event
        .site
        .and_then(|site| event.chain.0.iter().find_map(|frame| frame.file.strip_suffix(site.file())));
    for (i, frame) in event.chain.0.iter().enumerate().take(MAX_FRAMES) {
        let file = root.and_then(|root| frame.file.strip_prefix(root)).unwrap_or(&frame.file);
        let by = if i == 0 { "in" } else { "called by" };
        write!(f, "\n    {by} {} ({file}:{}:{})", frame.function, frame.line, frame.column)?;
    }
    if event.chain.0.len() > MAX_FRAMES {
        write!(f, "\n    and {} more calls", event.chain.0.len() - MAX_FRAMES)?;
    }
    Ok(())
}

/// An index of up to three dimensions.
struct Index([u32; 3]);

impl Display for Index {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let [x, y, z] = self.0;
        if y == 0 && z == 0 { write!(f, "{x}") } else { write!(f, "({x}, {y}, {z})") }
    }
}

impl Display for ThreadId {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "block {}, thread {}", Index(self.block), Index(self.thread))
    }
}

/// Threads of a block as ranges; the first six.
struct Ranges<'a>(&'a [ThreadId]);

impl Display for Ranges<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let mut ranges: Vec<(ThreadId, ThreadId)> = vec![];
        for &thread in self.0 {
            match ranges.last_mut() {
                Some((_, last))
                    if last.thread[1..] == thread.thread[1..] && last.thread[0] + 1 == thread.thread[0] =>
                {
                    *last = thread;
                }
                _ => ranges.push((thread, thread)),
            }
        }
        for (i, (first, last)) in ranges.iter().enumerate().take(6) {
            let comma = if i > 0 { ", " } else { "" };
            write!(f, "{comma}{}", Index(first.thread))?;
            if first != last {
                write!(f, "-{}", Index(last.thread))?;
            }
        }
        if ranges.len() > 6 { f.write_str(", …") } else { Ok(()) }
    }
}

impl Display for Action {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Access(access) => access.fmt(f),
            Self::Part { begin, len, of } => {
                write!(f, "the part of {len} elements from {begin} of a view of {of}")
            }
            Self::Barrier(Barrier::Sync) => f.write_str("sync_threads"),
            Self::Barrier(Barrier::Count) => f.write_str("sync_threads_count"),
            Self::Barrier(Barrier::And) => f.write_str("sync_threads_and"),
            Self::Barrier(Barrier::Or) => f.write_str("sync_threads_or"),
            Self::Warp(op, mask) => write!(f, "{} with mask {mask:#010x}", name_of(*op)),
            Self::Spin => f.write_str("another thread, in a spin loop"),
            Self::Shared { bytes } => write!(f, "{bytes} bytes of shared memory"),
            Self::Other(what) => f.write_str(what),
        }
    }
}

fn name_of(op: WarpOp) -> String {
    match op {
        WarpOp::Sync => "sync_warp".into(),
        WarpOp::Ballot => "ballot".into(),
        WarpOp::Any => "any".into(),
        WarpOp::All => "all".into(),
        WarpOp::ShuffleIdx { lane, .. } => format!("shuffle_idx from lane {lane}"),
        WarpOp::ShuffleUp { delta, .. } => format!("shuffle_up by {delta}"),
        WarpOp::ShuffleDown { delta, .. } => format!("shuffle_down by {delta}"),
        WarpOp::ShuffleXor { bits, .. } => format!("shuffle_xor by {bits}"),
        WarpOp::MatchAny => "match_any".into(),
        WarpOp::MatchAll => "match_all".into(),
        WarpOp::Reduce(op) => format!("reduce ({op:?})"),
    }
}

impl Display for AccessInfo {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Self { kind, mode, index, len, bytes, allocation, .. } = self;
        match kind {
            AccessKind::Plain => f.write_str("plain ")?,
            AccessKind::ReadOnly => f.write_str("read-only ")?,
            AccessKind::Atomic(order, scope) => {
                let scope = match scope {
                    Scope::Block => "block",
                    Scope::Device => "device",
                    Scope::System => "system",
                };
                write!(f, "atomic ({order:?}, {scope} scope) ")?;
            }
        }
        let what = match mode {
            Mode::Load => "load",
            Mode::Store => "store",
            Mode::Update => "update",
        };
        write!(f, "{what} of element {index} of {len} ({bytes} bytes")?;
        match allocation {
            Some((label, offset)) => write!(f, " at byte {offset} of {label})"),
            None => f.write_str(")"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_listed_as_ranges() {
        let threads: Vec<ThreadId> =
            [0, 1, 2, 5, 7, 8].map(|x| ThreadId { block: [0; 3], thread: [x, 0, 0] }).to_vec();
        assert_eq!(Ranges(&threads).to_string(), "0-2, 5, 7-8");
        assert_eq!(ThreadId { block: [1, 2, 0], thread: [3, 0, 0] }.to_string(), "block (1, 2, 0), thread 3");
    }
}
