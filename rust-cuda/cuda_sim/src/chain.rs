//! Call chains: the calls from the kernel down to a call into `cuda_std`.

use crate::fiber::run_one_thread;
use cuda_std::simt::Site;
use std::collections::HashMap;
use std::ffi::c_void;
use std::fmt;

/// One call of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Name of the function.
    pub function: String,
    /// Source file, as the compiler wrote it into the program.
    pub file: String,
    /// Line of the call.
    pub line: u32,
    /// Column of the call, 0 if unknown.
    pub column: u32,
}

/// The calls from the location of an operation (first) out to the kernel (last).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain(pub Vec<Frame>);

/// Return addresses of a stack, innermost first. Cheap to capture; resolved only for a report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct RawChain(Vec<usize>);

impl RawChain {
    /// Captures the calling stack. On the stack of a simulated thread it ends at the thread's entry.
    #[inline(never)]
    pub(crate) fn capture() -> Self {
        let mut addresses = Vec::with_capacity(32);
        backtrace::trace(|frame| {
            addresses.push(frame.ip() as usize);
            addresses.len() < 200 && frame.symbol_address() != run_one_thread as *mut c_void
        });
        Self(addresses)
    }

    /// Resolves the kernel's part of the stack.
    pub(crate) fn resolve(&self) -> Chain {
        self.resolve_known().0
    }

    /// Resolves the kernel's part of the stack. The flag is false if the location of a call is unknown, which happens
    /// where the compiler merged two calls.
    pub(crate) fn resolve_known(&self) -> (Chain, bool) {
        let (mut frames, mut in_kernel, mut known) = (Vec::new(), true, true);
        for &address in &self.0 {
            // A return address is behind its call.
            backtrace::resolve((address - 1) as *mut c_void, |symbol| {
                let function = symbol.name().map(|n| format!("{n:#}")).unwrap_or_default();
                // Debug information has no path of inlined functions: this is `Kernel::call`.
                in_kernel &= function != "call"
                    && !function.starts_with("call<")
                    && !function.contains("as cuda_std::kernel::Kernel>")
                    && !function.contains("<impl cuda_std::kernel::Kernel for");
                let file = symbol.filename().map(|f| f.display().to_string()).unwrap_or_default();
                if !in_kernel || is_machinery(&function, &file) {
                    return;
                }
                let (line, column) = (symbol.lineno().unwrap_or(0), symbol.colno().unwrap_or(0));
                known &= !file.is_empty() && line > 0;
                if !file.is_empty() {
                    frames.push(Frame { function, file, line, column });
                }
            });
        }
        known &= !frames.is_empty();
        (Chain(frames), known)
    }
}

/// True for frames outside the kernel: this crate, the device library, the standard library.
fn is_machinery(function: &str, file: &str) -> bool {
    const PLACES: [&str; 4] = ["/rustc/", "/library/core/", "/corosensei-", "/backtrace-"];
    let own_source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/");
    let path = function.trim_start_matches('<');
    function.is_empty()
        || file.starts_with(own_source)
        || PLACES.iter().any(|p| file.contains(p))
        || ["cuda_std::", "core::", "std::", "alloc::"].iter().any(|p| path.starts_with(p))
        || file.contains("/cuda_std/src/")
        || file.contains("kauri-cuda-std-")
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for frame in &self.0 {
            writeln!(f, "{} at {}:{}:{}", frame.function, frame.file, frame.line, frame.column)?;
        }
        Ok(())
    }
}

/// Numbers of call chains. Chains of equal source locations have equal numbers, also where the compiler copied a call
/// into two branches, which then have two return addresses. 0 is a chain with unknown locations.
#[derive(Default)]
pub(crate) struct ChainIds {
    by_addresses: HashMap<RawChain, u32>,
    by_frames: HashMap<Vec<Frame>, u32>,
}

/// True if two numbers may stand for one chain.
pub(crate) fn may_be_same(a: u32, b: u32) -> bool {
    a == b || a == 0 || b == 0
}

/// True if two sites are one source location; a location may have several addresses.
#[inline]
pub(crate) fn same_site(a: Site, b: Site) -> bool {
    std::ptr::eq(a, b) || a == b
}

impl ChainIds {
    pub(crate) fn get(&self, raw: &RawChain) -> Option<u32> {
        self.by_addresses.get(raw).copied()
    }

    pub(crate) fn add(&mut self, raw: RawChain, (resolved, known): (Chain, bool)) -> u32 {
        let next = self.by_frames.len() as u32 + 1;
        let number = if known { *self.by_frames.entry(resolved.0).or_insert(next) } else { 0 };
        self.by_addresses.insert(raw, number);
        number
    }
}
