//! The CPU target: every call goes to the current [`Simt`](crate::simt::Simt).

use super::ReduceOp;
use super::{CacheHint, SpaceOf};
use crate::atomic::{AtomicOp, AtomicValue, Ordering, Scope};
use crate::io::{self, Form, Piece};
use crate::simt::{Access, AccessKind, Barrier, Coordinates, Space, WarpOp, WarpResult, current, is_current};
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::panic::Location;

/// Bound of [`AtomicValue`]; nothing on this target.
pub trait RawAtomic {}
impl RawAtomic for u32 {}
impl RawAtomic for i32 {}
impl RawAtomic for u64 {}
impl RawAtomic for i64 {}
impl RawAtomic for f32 {}
impl RawAtomic for f64 {}

macro_rules! coordinates {
    ($($name:ident = $field:ident;)*) => { $(
        #[track_caller]
        pub fn $name(axis: usize) -> u32 {
            current(|s| s.coordinates().$field[axis])
        }
    )* };
}
coordinates! {
    thread_idx = thread_idx;
    block_idx = block_idx;
    block_dim = block_dim;
    grid_dim = grid_dim;
}

#[track_caller]
pub fn lane_id() -> u32 {
    current(|s| {
        let Coordinates { thread_idx: [x, y, z], block_dim: [w, h, _], .. } = s.coordinates();
        (x + w * (y + h * z)) % 32
    })
}

#[track_caller]
pub fn barrier_sync() {
    let site = Location::caller();
    current(|s| s.barrier(Barrier::Sync, false, site));
}

#[track_caller]
pub fn barrier_count(predicate: bool) -> u32 {
    let site = Location::caller();
    current(|s| s.barrier(Barrier::Count, predicate, site))
}

#[track_caller]
pub fn barrier_and(predicate: bool) -> bool {
    let site = Location::caller();
    current(|s| s.barrier(Barrier::And, predicate, site)) != 0
}

#[track_caller]
pub fn barrier_or(predicate: bool) -> bool {
    let site = Location::caller();
    current(|s| s.barrier(Barrier::Or, predicate, site)) != 0
}

#[track_caller]
pub fn fence(order: Ordering, scope: Scope) {
    let site = Location::caller();
    current(|s| s.fence(order, scope, site));
}

#[track_caller]
pub fn spin_hint() {
    let site = Location::caller();
    current(|s| s.spin(site));
}

#[track_caller]
pub fn nanosleep(_nanoseconds: u32) {
    spin_hint()
}

#[track_caller]
pub fn clock() -> u64 {
    current(|s| s.clock())
}

#[track_caller]
pub fn trap() -> ! {
    let site = Location::caller();
    current(|s| s.trap(site))
}

#[track_caller]
pub fn print(_format: &'static [u8], text: &str, forms: &[Form], words: [u64; 8]) {
    let mut printed = Vec::new();
    let mut arguments = forms.iter().zip(words);
    let mut at = 0;
    while at < text.len() {
        let (piece, next) = io::piece(text.as_bytes(), at);
        at = next;
        match piece {
            Piece::Byte(byte) => printed.push(byte),
            Piece::Argument(hexadecimal) => {
                let (form, word) = arguments.next().expect("the text was checked when it was compiled");
                let argument = match form {
                    Form::Unsigned if hexadecimal => format!("{word:x}"),
                    Form::Unsigned => word.to_string(),
                    Form::Signed => (word as i64).to_string(),
                    Form::Float32 => (f64::from_bits(word) as f32).to_string(),
                    Form::Float64 => f64::from_bits(word).to_string(),
                };
                printed.extend(argument.into_bytes());
            }
        }
    }
    let site = Location::caller();
    current(|s| s.print(&String::from_utf8_lossy(&printed), site));
}

pub fn computed(value: u32) -> u32 {
    value
}

pub fn breakpoint() {}

pub fn is_shared(pointer: *const u8) -> bool {
    current(|s| s.space_of(pointer as usize)) == Some(Space::Shared)
}

pub fn is_global(pointer: *const u8) -> bool {
    current(|s| s.space_of(pointer as usize)) == Some(Space::Global)
}

pub fn dynamic_shared_bytes() -> u32 {
    current(|s| s.dynamic_shared_bytes())
}

#[track_caller]
pub fn shared_region(key: usize, bytes: usize, align: usize) -> *mut u8 {
    let site = Location::caller();
    current(|s| s.shared(key, bytes, align, site))
}

pub fn name_shared(field: *mut u8, bytes: usize, name: &'static str) {
    current(|s| s.name_shared(field.addr(), bytes, name));
}

#[track_caller]
fn warp(op: WarpOp, mask: u32, value: u64) -> WarpResult {
    let site = Location::caller();
    current(|s| s.warp(op, mask, value, site))
}

#[track_caller]
pub fn sync_warp(mask: u32) {
    warp(WarpOp::Sync, mask, 0);
}

#[track_caller]
pub fn active_mask() -> u32 {
    let site = Location::caller();
    current(|s| s.active_mask(site))
}

#[track_caller]
pub fn ballot(mask: u32, predicate: bool) -> u32 {
    warp(WarpOp::Ballot, mask, predicate.into()).value as u32
}

#[track_caller]
pub fn any(mask: u32, predicate: bool) -> bool {
    warp(WarpOp::Any, mask, predicate.into()).flag
}

#[track_caller]
pub fn all(mask: u32, predicate: bool) -> bool {
    warp(WarpOp::All, mask, predicate.into()).flag
}

macro_rules! shuffles {
    ($($name:ident, $op:ident { $field:ident };)*) => { $(
        #[track_caller]
        pub fn $name(mask: u32, value: u32, $field: u32, width: u32) -> (u32, bool) {
            let r = warp(WarpOp::$op { $field, width }, mask, value.into());
            (r.value as u32, r.flag)
        }
    )* };
}
shuffles! {
    shuffle_idx, ShuffleIdx { lane };
    shuffle_up, ShuffleUp { delta };
    shuffle_down, ShuffleDown { delta };
    shuffle_xor, ShuffleXor { bits };
}

#[track_caller]
pub fn match_any_32(mask: u32, value: u32) -> u32 {
    warp(WarpOp::MatchAny, mask, value.into()).value as u32
}

#[track_caller]
pub fn match_any_64(mask: u32, value: u64) -> u32 {
    warp(WarpOp::MatchAny, mask, value).value as u32
}

#[track_caller]
pub fn match_all_32(mask: u32, value: u32) -> (u32, bool) {
    match_all_64(mask, value.into())
}

#[track_caller]
pub fn match_all_64(mask: u32, value: u64) -> (u32, bool) {
    let r = warp(WarpOp::MatchAll, mask, value);
    (r.value as u32, r.flag)
}

#[track_caller]
pub fn reduce(op: ReduceOp, mask: u32, value: u32) -> u32 {
    warp(WarpOp::Reduce(op), mask, value.into()).value as u32
}

/// A view's range check: the simulator checks the accesses themselves.
#[track_caller]
pub fn check_range(begin: usize, len: usize, of: usize) {
    if begin > of || len > of - begin {
        let site = Location::caller();
        if is_current() {
            current(|s| s.outside(begin, len, of, site));
        }
        panic!("part {begin}..{} is outside of a view of {of} elements", begin.wrapping_add(len));
    }
}

/// One element of a view.
pub struct Element<T, S> {
    pointer: *mut T,
    index: usize,
    len: usize,
    _space: PhantomData<S>,
}

impl<T, S: SpaceOf> Element<T, S> {
    pub fn new(pointer: *mut T, index: usize, len: usize) -> Self {
        Self { pointer, index, len, _space: PhantomData }
    }

    #[track_caller]
    fn access(&self, kind: AccessKind) -> Access {
        Access {
            space: if S::IS_SHARED { Space::Shared } else { Space::Global },
            kind,
            address: (self.pointer as usize).wrapping_add(self.index.wrapping_mul(size_of::<T>())),
            bytes: size_of::<T>(),
            align: if size_of::<T>() == 16 { 16 } else { align_of::<T>() },
            index: self.index as u64,
            len: self.len as u64,
            site: Location::caller(),
        }
    }
}

impl<T: Copy, S: SpaceOf> Element<T, S> {
    #[track_caller]
    fn read(&self, kind: AccessKind) -> T {
        let access = self.access(kind);
        let mut value = MaybeUninit::<T>::uninit();
        current(|s| {
            // SAFETY: `value` has the size of the access, and the simulator fills it.
            unsafe { s.load(access, value.as_mut_ptr().cast()) };
        });
        // SAFETY: as above.
        unsafe { value.assume_init() }
    }

    #[track_caller]
    fn write(&self, value: T, kind: AccessKind) {
        let access = self.access(kind);
        // SAFETY: `value` has the size of the access.
        current(|s| unsafe { s.store(access, (&raw const value).cast()) });
    }

    #[track_caller]
    pub unsafe fn load(self, hint: CacheHint) -> T {
        self.read(if hint == CacheHint::ReadOnly { AccessKind::ReadOnly } else { AccessKind::Plain })
    }

    #[track_caller]
    pub unsafe fn store(self, value: T, _hint: CacheHint) {
        self.write(value, AccessKind::Plain)
    }
}

impl<T: AtomicValue, S: SpaceOf> Element<T, S> {
    #[track_caller]
    fn update(&self, order: Ordering, scope: Scope, op: impl Fn(T) -> T) -> T {
        let access = self.access(AccessKind::Atomic(order, scope));
        let mut before = None;
        let mut apply = |place: *mut u8| {
            let place = place.cast::<T>();
            // SAFETY: the simulator passes the element's location, aligned as the access is.
            unsafe {
                let stored = place.read_unaligned();
                before = Some(stored);
                place.write_unaligned(op(stored));
            }
        };
        // SAFETY: `apply` touches one T.
        current(|s| unsafe { s.update(access, &mut apply) });
        before.expect("the simulator performs each atomic operation")
    }

    #[track_caller]
    pub unsafe fn rmw(self, op: AtomicOp, value: T, order: Ordering, scope: Scope) -> T {
        self.update(order, scope, |stored| T::apply(op, stored, value))
    }

    #[track_caller]
    pub unsafe fn compare_exchange(self, expected: T, new: T, order: Ordering, scope: Scope) -> T {
        self.update(order, scope, |stored| if same_bits(stored, expected) { new } else { stored })
    }

    #[track_caller]
    pub unsafe fn load_atomic(self, order: Ordering, scope: Scope) -> T {
        self.read(AccessKind::Atomic(order, scope))
    }

    #[track_caller]
    pub unsafe fn store_atomic(self, value: T, order: Ordering, scope: Scope) {
        self.write(value, AccessKind::Atomic(order, scope))
    }
}

impl<S: SpaceOf> Element<u32, S> {
    #[track_caller]
    pub unsafe fn increment(self, limit: u32, order: Ordering, scope: Scope) -> u32 {
        self.update(order, scope, |stored| if stored >= limit { 0 } else { stored + 1 })
    }

    #[track_caller]
    pub unsafe fn decrement(self, limit: u32, order: Ordering, scope: Scope) -> u32 {
        self.update(order, scope, |stored| if stored == 0 || stored > limit { limit } else { stored - 1 })
    }
}

/// The hardware compares bits: a NaN equals itself, -0.0 is not 0.0.
fn same_bits<T: Copy>(a: T, b: T) -> bool {
    // SAFETY: atomic values are plain numbers without padding.
    let bytes = |x: *const T| unsafe { core::slice::from_raw_parts(x.cast::<u8>(), size_of::<T>()) };
    bytes(&raw const a) == bytes(&raw const b)
}

pub fn approximate_inverse(x: f32) -> f32 {
    1.0 / x
}

pub fn multiply_add(a: f32, b: f32, c: f32) -> f32 {
    a * b + c
}

pub fn sqrt(x: f32) -> f32 {
    x.sqrt()
}

pub fn sqrt_f64(x: f64) -> f64 {
    x.sqrt()
}
