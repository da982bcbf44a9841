//! Collectives of a warp.
//!
//! `mask` names the participating lanes; each of them must call with this mask, from one source location. Only
//! [`sync_warp`] orders memory: to pass data through shared memory, use `sync_warp` or a barrier.

use crate::sys::{self, ReduceOp};

/// All lanes.
pub const FULL_MASK: u32 = u32::MAX;

/// Index of the thread in its warp.
#[inline(always)]
#[track_caller]
pub fn lane_id() -> u32 {
    sys::lane_id()
}

/// Bits of the lanes below the caller's.
#[inline(always)]
#[track_caller]
pub fn lane_mask_lt() -> u32 {
    (1u32 << lane_id()) - 1
}

/// Bits of the caller's lane and those below.
#[inline(always)]
#[track_caller]
pub fn lane_mask_le() -> u32 {
    lane_mask_lt() | lane_mask_eq()
}

/// The bit of the caller's lane.
#[inline(always)]
#[track_caller]
pub fn lane_mask_eq() -> u32 {
    1u32 << lane_id()
}

/// Bits of the lanes above the caller's.
#[inline(always)]
#[track_caller]
pub fn lane_mask_gt() -> u32 {
    !lane_mask_le()
}

/// Bits of the caller's lane and those above.
#[inline(always)]
#[track_caller]
pub fn lane_mask_ge() -> u32 {
    !lane_mask_lt()
}

/// Waits for the lanes of `mask` and orders their memory accesses before and after.
///
/// # Safety
/// See the [module](self): all lanes of `mask` call, with this mask. This holds for every function below.
#[inline(always)]
#[track_caller]
pub unsafe fn sync_warp(mask: u32) {
    sys::sync_warp(mask)
}

/// Returns the lanes that currently execute together. This may be any subset of the lanes in the branch; do not build
/// algorithms on it.
#[inline(always)]
#[track_caller]
pub fn activemask() -> u32 {
    sys::active_mask()
}

/// Bit mask of the lanes whose predicate holds.
///
/// # Safety
/// As [`sync_warp`].
#[inline(always)]
#[track_caller]
pub unsafe fn warp_vote_ballot(mask: u32, predicate: bool) -> u32 {
    sys::ballot(mask, predicate)
}

/// True if any predicate holds.
///
/// # Safety
/// As [`sync_warp`].
#[inline(always)]
#[track_caller]
pub unsafe fn warp_vote_any(mask: u32, predicate: bool) -> bool {
    sys::any(mask, predicate)
}

/// True if all predicates hold.
///
/// # Safety
/// As [`sync_warp`].
#[inline(always)]
#[track_caller]
pub unsafe fn warp_vote_all(mask: u32, predicate: bool) -> bool {
    sys::all(mask, predicate)
}

/// A value that lanes can exchange: integers of up to 128 bits and floats. It moves in words of 32 bits.
pub trait WarpShuffleValue: Copy {
    /// Number of words: 1, 2 or 4.
    #[doc(hidden)]
    const WORDS: usize;
    /// The words, low bits first.
    #[doc(hidden)]
    fn shuffle_words(self) -> [u32; 4];
    #[doc(hidden)]
    fn from_shuffle_words(words: [u32; 4]) -> Self;
}

macro_rules! shuffle_values {
    ($($t:ty: $words:literal, $to:expr, $from:expr;)*) => { $(
        impl WarpShuffleValue for $t {
            const WORDS: usize = $words;
            #[inline(always)]
            fn shuffle_words(self) -> [u32; 4] {
                let bits: u128 = $to(self);
                [bits as u32, (bits >> 32) as u32, (bits >> 64) as u32, (bits >> 96) as u32]
            }
            #[inline(always)]
            fn from_shuffle_words([a, b, c, d]: [u32; 4]) -> Self {
                $from(u128::from(d) << 96 | u128::from(c) << 64 | u128::from(b) << 32 | u128::from(a))
            }
        }
    )* };
}
shuffle_values! {
    bool: 1, u128::from, |x| x != 0;
    u8: 1, u128::from, |x| x as u8;
    i8: 1, |x| x as u128, |x| x as i8;
    u16: 1, u128::from, |x| x as u16;
    i16: 1, |x| x as u128, |x| x as i16;
    u32: 1, u128::from, |x| x as u32;
    i32: 1, |x| x as u128, |x| x as i32;
    f32: 1, |x: f32| x.to_bits().into(), |x| f32::from_bits(x as u32);
    u64: 2, u128::from, |x| x as u64;
    i64: 2, |x| x as u128, |x| x as i64;
    f64: 2, |x: f64| x.to_bits().into(), |x| f64::from_bits(x as u64);
    u128: 4, |x| x, |x| x;
    i128: 4, |x| x as u128, |x| x as i128;
}

macro_rules! shuffles {
    ($($long:ident $short:ident $raw:ident $by:ident $what:literal;)*) => { $(
        #[doc = $what]
        ///
        /// `width` (a power of two up to 32) splits the warp into segments that keep to themselves. The flag says whether
        /// the source lane was within the segment; if not, the caller's own value comes back.
        ///
        /// # Safety
        /// As [`sync_warp`]; the source lane must be in `mask`.
        #[inline(always)]
        #[track_caller]
        pub unsafe fn $long<T: WarpShuffleValue>(mask: u32, value: T, $by: u32, width: u32) -> (T, bool) {
            let [a, b, c, d] = value.shuffle_words();
            let (a, in_range) = sys::$raw(mask, a, $by, width);
            let b = if T::WORDS > 1 { sys::$raw(mask, b, $by, width).0 } else { 0 };
            let c = if T::WORDS > 2 { sys::$raw(mask, c, $by, width).0 } else { 0 };
            let d = if T::WORDS > 2 { sys::$raw(mask, d, $by, width).0 } else { 0 };
            (T::from_shuffle_words([a, b, c, d]), in_range)
        }

        #[doc = $what]
        /// Over the whole warp, without the flag.
        ///
        /// # Safety
        /// As [`sync_warp`]; the source lane must be in `mask`.
        #[inline(always)]
        #[track_caller]
        pub unsafe fn $short<T: WarpShuffleValue>(mask: u32, value: T, $by: u32) -> T {
            // SAFETY: passed on to the caller.
            unsafe { $long(mask, value, $by, 32).0 }
        }
    )* };
}
shuffles! {
    warp_shuffle_idx shuffle_idx shuffle_idx lane "The value of lane `lane`.";
    warp_shuffle_up shuffle_up shuffle_up delta "The value of the lane `delta` below.";
    warp_shuffle_down shuffle_down shuffle_down delta "The value of the lane `delta` above.";
    warp_shuffle_xor shuffle_xor shuffle_xor bits "The value of the lane whose index differs in `bits`.";
}

/// A value that lanes can compare: 32- and 64-bit integers and floats, by their bits.
pub trait WarpMatchValue: Copy {
    #[doc(hidden)]
    fn match_any(self, mask: u32) -> u32;
    #[doc(hidden)]
    fn match_all(self, mask: u32) -> (u32, bool);
}

macro_rules! match_values {
    ($($t:ty: $to:expr, $any:ident, $all:ident;)*) => { $(
        impl WarpMatchValue for $t {
            #[inline(always)]
            #[track_caller]
            fn match_any(self, mask: u32) -> u32 {
                sys::$any(mask, $to(self))
            }
            #[inline(always)]
            #[track_caller]
            fn match_all(self, mask: u32) -> (u32, bool) {
                sys::$all(mask, $to(self))
            }
        }
    )* };
}
match_values! {
    u32: |x| x, match_any_32, match_all_32;
    i32: |x| x as u32, match_any_32, match_all_32;
    f32: f32::to_bits, match_any_32, match_all_32;
    u64: |x| x, match_any_64, match_all_64;
    i64: |x| x as u64, match_any_64, match_all_64;
    f64: f64::to_bits, match_any_64, match_all_64;
}

/// Mask of the lanes that have the caller's value.
///
/// # Safety
/// As [`sync_warp`].
#[inline(always)]
#[track_caller]
pub unsafe fn warp_match_any<T: WarpMatchValue>(mask: u32, value: T) -> u32 {
    value.match_any(mask)
}

/// `Some(mask)` if all lanes have one value.
///
/// # Safety
/// As [`sync_warp`].
#[inline(always)]
#[track_caller]
pub unsafe fn warp_match_all<T: WarpMatchValue>(mask: u32, value: T) -> Option<u32> {
    let (lanes, all) = value.match_all(mask);
    if all { Some(lanes) } else { None }
}

/// Operation of [`warp_reduce`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum WarpReductionOp {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
}

/// A value that [`warp_reduce`] takes: `u32`, `i32`.
pub trait WarpReduceValue: Copy {
    #[doc(hidden)]
    fn reduce(self, mask: u32, op: WarpReductionOp) -> Self;
}

impl WarpReduceValue for u32 {
    #[inline(always)]
    #[track_caller]
    fn reduce(self, mask: u32, op: WarpReductionOp) -> Self {
        sys::reduce(op.instruction(ReduceOp::MinU32, ReduceOp::MaxU32), mask, self)
    }
}

impl WarpReduceValue for i32 {
    #[inline(always)]
    #[track_caller]
    fn reduce(self, mask: u32, op: WarpReductionOp) -> Self {
        sys::reduce(op.instruction(ReduceOp::MinI32, ReduceOp::MaxI32), mask, self as u32) as i32
    }
}

impl WarpReductionOp {
    /// Returns the instruction for a type, of which `min` and `max` are the only ones that depend on the sign.
    #[inline(always)]
    fn instruction(self, min: ReduceOp, max: ReduceOp) -> ReduceOp {
        match self {
            Self::Add => ReduceOp::AddU32,
            Self::Min => min,
            Self::Max => max,
            Self::And => ReduceOp::And,
            Self::Or => ReduceOp::Or,
            Self::Xor => ReduceOp::Xor,
        }
    }
}

/// Reduces over the lanes of `mask`; every lane gets the result. One instruction from sm_80 on, shuffles below.
///
/// # Safety
/// As [`sync_warp`].
#[inline(always)]
#[track_caller]
pub unsafe fn warp_reduce<T: WarpReduceValue>(mask: u32, value: T, op: WarpReductionOp) -> T {
    value.reduce(mask, op)
}
