//! The CPU side of every call in this crate: one small trait, implemented by a simulator.
//!
//! On a CPU target a kernel is an ordinary function. Its calls into this crate go to the current [`Simt`] of the OS thread;
//! a simulator makes itself current with [`enter`] while it runs one GPU thread. Without a current [`Simt`] calls panic: a
//! kernel cannot run outside of a launch.

use crate::atomic::{Ordering, Scope};
pub use crate::sys::ReduceOp;
use core::panic::Location;
use std::cell::Cell;
use std::ptr::NonNull;

/// Source position of the call in the kernel.
pub type Site = &'static Location<'static>;

/// Coordinates of the current thread in its launch: x, y and z of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coordinates {
    /// Index of the thread in its block.
    pub thread_idx: [u32; 3],
    /// Index of the block in the grid.
    pub block_idx: [u32; 3],
    /// Threads of a block.
    pub block_dim: [u32; 3],
    /// Blocks of the grid.
    pub grid_dim: [u32; 3],
}

/// A barrier over all threads of the block, and what it computes from their predicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barrier {
    /// Nothing.
    Sync,
    /// The number of threads whose predicate holds.
    Count,
    /// 1 if all predicates hold.
    And,
    /// 1 if any predicate holds.
    Or,
}

/// An operation over the lanes of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarpOp {
    /// Execution and memory barrier.
    Sync,
    /// Bit mask of the lanes whose value is not 0.
    Ballot,
    /// Flag: any value is not 0.
    Any,
    /// Flag: all values are not 0.
    All,
    /// Value of the lane `lane` modulo `width` of the caller's segment of `width` lanes; the flag is true.
    ShuffleIdx {
        /// Source lane within the segment.
        lane: u32,
        /// Lanes of a segment, a power of two up to 32.
        width: u32,
    },
    /// Value of the lane `delta` below; the caller's value (flag false) if the segment has no such lane.
    ShuffleUp {
        /// Distance.
        delta: u32,
        /// Lanes of a segment.
        width: u32,
    },
    /// Value of the lane `delta` above; the caller's value (flag false) if the segment has no such lane.
    ShuffleDown {
        /// Distance.
        delta: u32,
        /// Lanes of a segment.
        width: u32,
    },
    /// Value of the lane whose index differs in the bits of `bits`.
    ShuffleXor {
        /// Bits to flip.
        bits: u32,
        /// Lanes of a segment.
        width: u32,
    },
    /// Mask of the lanes with the caller's value.
    MatchAny,
    /// The mask and flag true if all lanes have one value; 0 and false otherwise.
    MatchAll,
    /// Reduction over the lanes of the mask.
    Reduce(ReduceOp),
}

/// Result of a warp operation; the operation's description defines value and flag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WarpResult {
    /// The value.
    pub value: u64,
    /// The flag.
    pub flag: bool,
}

/// A memory's address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Device memory, seen by the whole grid.
    Global,
    /// The block's shared memory.
    Shared,
}

/// Kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// Ordinary, unordered.
    Plain,
    /// Through the read-only cache: the location must not be written while the kernel runs.
    ReadOnly,
    /// Atomic, with order and scope.
    Atomic(Ordering, Scope),
}

/// One access of one thread.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// Address space of the view used.
    pub space: Space,
    /// Kind.
    pub kind: AccessKind,
    /// First byte.
    pub address: usize,
    /// Number of bytes.
    pub bytes: usize,
    /// Alignment that the device needs: 16 for elements of 16 bytes, which one instruction moves, else the element type's.
    pub align: usize,
    /// Element index within the view.
    pub index: u64,
    /// Elements of the view.
    pub len: u64,
    /// Call site in the kernel.
    pub site: Site,
}

/// The operations of a GPU thread.
///
/// # Safety
/// `load` must fill `bytes` bytes, and `shared` must return memory of the requested size and alignment, valid for the
/// life of the block.
pub unsafe trait Simt {
    /// Returns the coordinates of the current thread.
    fn coordinates(&self) -> Coordinates;
    /// Waits for all threads of the block.
    fn barrier(&self, kind: Barrier, predicate: bool, site: Site) -> u32;
    /// Performs a warp operation with the lanes of `mask`; `value` is the caller's operand.
    fn warp(&self, op: WarpOp, mask: u32, value: u64, site: Site) -> WarpResult;
    /// Lanes of the warp that are executing now.
    fn active_mask(&self, site: Site) -> u32;
    /// Reads memory into `to`.
    ///
    /// # Safety
    /// `to` must be valid for writes of `access.bytes` bytes.
    unsafe fn load(&self, access: Access, to: *mut u8);
    /// Writes memory from `from`.
    ///
    /// # Safety
    /// `from` must be valid for reads of `access.bytes` bytes.
    unsafe fn store(&self, access: Access, from: *const u8);
    /// Atomic read-modify-write: calls `op` once with the location.
    ///
    /// # Safety
    /// `op` must touch no more than `access.bytes` bytes.
    unsafe fn update(&self, access: Access, op: &mut dyn FnMut(*mut u8));
    /// Orders memory accesses of the current thread.
    fn fence(&self, order: Ordering, scope: Scope, site: Site);
    /// Marks a spin loop: the thread waits for the progress of another one.
    fn spin(&self, site: Site);
    /// Returns shared memory of the block: the launch-sized region for `key` 0, a separate static array for any other key.
    fn shared(&self, key: usize, bytes: usize, align: usize, site: Site) -> *mut u8;
    /// Names a field of shared memory for reports.
    fn name_shared(&self, address: usize, bytes: usize, name: &'static str);
    /// Bytes of launch-sized shared memory.
    fn dynamic_shared_bytes(&self) -> u32;
    /// A clock that advances.
    fn clock(&self) -> u64;
    /// Prints a text.
    fn print(&self, text: &str, site: Site);
    /// Address space of an address.
    fn space_of(&self, address: usize) -> Option<Space>;
    /// Ends the launch with an error.
    fn trap(&self, site: Site) -> !;
    /// Ends the launch because the part `begin..begin + len` is outside of a view of `of` elements.
    fn outside(&self, begin: usize, len: usize, of: usize, site: Site) -> !;
}

thread_local! {
    static CURRENT: Cell<Option<NonNull<dyn Simt>>> = const { Cell::new(None) };
}

/// Makes `simt` current on this OS thread while `run` runs.
pub fn enter<R>(simt: &dyn Simt, run: impl FnOnce() -> R) -> R {
    struct Restore(Option<NonNull<dyn Simt>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.set(self.0);
        }
    }
    // SAFETY: only the lifetime is erased; Restore takes the pointer out again before `simt` can go away.
    let erased: &'static dyn Simt = unsafe { core::mem::transmute(simt) };
    let _restore = Restore(CURRENT.replace(Some(NonNull::from(erased))));
    run()
}

/// True if there is a current [`Simt`].
pub(crate) fn is_current() -> bool {
    CURRENT.get().is_some()
}

/// Calls `f` with the current [`Simt`].
///
/// # Panics
/// Outside of [`enter`].
#[track_caller]
pub(crate) fn current<R>(f: impl FnOnce(&dyn Simt) -> R) -> R {
    let simt = CURRENT.get().expect("a kernel function was called outside of a launch");
    // SAFETY: `enter` keeps the pointer in place only while the reference it came from lives.
    f(unsafe { simt.as_ref() })
}
