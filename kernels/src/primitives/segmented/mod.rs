//! Segmented scan and reduce in one pass over the items, whose time does not depend on the lengths of the segments.

pub mod reduce;
pub mod scan;

use crate::block::scan::exclusive_over_warps;
use crate::block::tile::WARPS;
use crate::thread::operator::*;
use crate::thread::words::{MAX_WORDS, Words};
use crate::warp::look_back::{Decoupled, FixedOrder, LookBack};
use core::marker::PhantomData;
use cuda_std::prelude::*;
use cuda_std::shared::SharedElement;

/// Operators whose segmented forms have kernels.
#[diagnostic::on_unimplemented(message = "there is no segmented kernel for the operator `{Self}` over `{T}`")]
pub trait SegmentedOperator<T: Words>: Operator<T> {
    /// The look-back whose results have the same bits on every run.
    type LookBack: LookBack;
}

macro_rules! segmented_operators {
    ($($o:ty: $l:ty, $($t:ty),*;)*) => { $($( impl SegmentedOperator<$t> for $o { type LookBack = $l; } )*)* };
}
segmented_operators! {
    Sum: Decoupled, u32, u64;
    Sum: FixedOrder, f32, f64;
    Min: Decoupled, u32, u64, f32, f64;
    Max: Decoupled, u32, u64, f32, f64;
}

/// The sum of items since the last head among them, and whether there is a head.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SinceHead<T> {
    /// The sum.
    pub sum: T,
    /// 1 or 0, in the value's type, so that there is no padding.
    has_head: T,
}

impl<T: Words> SinceHead<T> {
    /// Creates a sum; `has_head` says whether it begins at a head.
    #[inline(always)]
    pub fn new(sum: T, has_head: bool) -> Self {
        Self { sum, has_head: T::from_words([has_head.into(), 0, 0, 0]) }
    }

    /// Returns true if there is a head.
    #[inline(always)]
    pub fn has_head(self) -> bool {
        self.has_head.to_words()[0] != 0
    }
}

// SAFETY: two plain values of the same type, without padding.
unsafe impl<T: Words> cust_core::DeviceCopy for SinceHead<T> {}
// SAFETY: as above.
unsafe impl<T: Words> bytemuck::Zeroable for SinceHead<T> {}
// SAFETY: as above.
unsafe impl<T: Words> bytemuck::Pod for SinceHead<T> {}
impl<T: Words> SharedElement for SinceHead<T> {}
/// Only for values of up to two words: the flag takes one more.
// SAFETY: the words of a value and a flag. (In memory it is padded to two values, and never read 16 bytes at a time.)
unsafe impl<T: Words> Words for SinceHead<T> {
    const WORDS: usize = {
        assert!(T::WORDS < MAX_WORDS, "segmented operators take values of one or two words");
        T::WORDS + 1
    };
    const ZEROS: Self = Self { sum: T::ZEROS, has_head: T::ZEROS };

    #[inline(always)]
    fn to_words(self) -> [u32; MAX_WORDS] {
        let mut words = self.sum.to_words();
        words[T::WORDS] = self.has_head().into();
        words
    }
    #[inline(always)]
    fn from_words(words: [u32; MAX_WORDS]) -> Self {
        let mut own = words;
        own[T::WORDS] = 0;
        Self::new(T::from_words(own), words[T::WORDS] != 0)
    }
}

/// The operator `O`, restarted at heads.
#[derive(Clone, Copy, Debug)]
pub struct Restarting<O>(PhantomData<O>);

impl<T: Words, O: Operator<T>> Operator<SinceHead<T>> for Restarting<O> {
    const IDENTITY: SinceHead<T> = SinceHead { sum: O::IDENTITY, has_head: T::ZEROS };
    const COMMUTATIVE: bool = false;
    const EXACT: bool = O::EXACT;

    #[inline(always)]
    fn combine(a: SinceHead<T>, b: SinceHead<T>) -> SinceHead<T> {
        let sum = if b.has_head() { b.sum } else { O::combine(a.sum, b.sum) };
        SinceHead::new(sum, a.has_head() || b.has_head())
    }
}

/// Shared memory of the sums that pass from warp to warp and from block to block.
#[repr(C)]
pub struct CarrySmem<T> {
    warp_sums: [SinceHead<T>; WARPS],
    before: [SinceHead<T>; 1],
    ticket: [u64; 1],
}

/// Publishes the sum of the block, and returns the sum of the items between the last head before the warp and the warp. `warp_sum` is the
/// sum of the warp's items. Executes two barriers.
///
/// # Safety
/// All threads of the block call, with the number of the block by a [`Ticket`](crate::warp::look_back::Ticket). `words` are
/// [`LookBack::num_words`] zeros at the start of the kernel.
#[inline(always)]
unsafe fn carry_before<T: Words, O: Operator<T>, L: LookBack>(
    smem: *mut CarrySmem<T>,
    words: SliceMut<'_, u64>,
    block: usize,
    warp_sum: SinceHead<T>,
) -> T {
    let before = shared_field!(smem, before);
    let (warps_before, sum) =
        exclusive_over_warps::<_, Restarting<O>>(warp_sum, shared_field!(smem, warp_sums));
    if thread::thread_idx_x() < 32 {
        let num_blocks = thread::grid_dim_x() as usize;
        if warp::lane_id() == 0 {
            L::publish(words, num_blocks, block, sum);
        }
        let blocks_before = L::exclusive_prefix::<_, Restarting<O>>(words, num_blocks, block, sum);
        if warp::lane_id() == 0 {
            before.store(0, blocks_before);
        }
    }
    thread::sync_threads();
    Restarting::<O>::combine(before.load(0), warps_before).sum
}
