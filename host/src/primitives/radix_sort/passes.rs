//! The sort on views: planned scratch memory, the histogram, and a pass per digit.

use crate::device::{Layout, Region, Stream, Temp};
use crate::error::{Error, Result};
use crate::primitives::pairs::{Pairs, Source};
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::block::look_back::LookBackWord;
use kauri_kernels::policy::{self, HISTOGRAM_MAX_BLOCKS, RADIX_SORT_NARROW_ITEMS, RadixSortPolicy};
use kauri_kernels::primitives::radix_sort::histogram::primitives_radix_sort_histogram;
use kauri_kernels::primitives::radix_sort::onesweep::{Pass as OnesweepPass, primitives_radix_sort_onesweep};
use kauri_kernels::thread::carried::{Carried, NoValue};
use kauri_kernels::thread::radix_key::{KeyOrder, RADIX, RADIX_BITS, RadixKey, SortBy};

/// The most digits of a key.
const MAX_DIGITS: usize = 8;

/// The 32-bit words before those of the look-back: a row of digit begins per digit, and the tickets.
const BEGIN_WORDS: usize = 2 * MAX_DIGITS * RADIX;
const TICKETS: usize = 1 + MAX_DIGITS;
const HEAD: usize = BEGIN_WORDS + TICKETS.next_multiple_of(2);

/// The tile shape, and whether items are counted in 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) policy: RadixSortPolicy,
    pub(crate) wide: bool,
}

impl Shape {
    /// Returns the best known shape.
    pub(crate) fn of<K, V>(len: usize) -> Self {
        let wide = len > RADIX_SORT_NARROW_ITEMS;
        Self { policy: policy::radix_sort(size_of::<K>(), size_of::<V>(), len), wide }
    }

    /// Returns the number of 32-bit words that the look-back of a pass takes.
    fn words(self, len: usize) -> usize {
        len.div_ceil(self.policy.tile_items()) * RADIX * if self.wide { 2 } else { 1 }
    }
}

/// The scratch memory of sorts of up to a number of items, in one shape.
#[derive(Clone, Copy)]
pub(crate) struct RadixSort {
    shape: Shape,
    /// Digit begins and tickets, then two sets of look-back words: while a pass uses one set it clears the other.
    scratch: Region<u32>,
}

impl RadixSort {
    /// Plans sorts of up to `len` items in several shapes. Only one of them may run at a time: they share their memory.
    pub(crate) fn plan<const N: usize>(layout: &mut Layout, len: usize, shapes: [Shape; N]) -> [Self; N] {
        let words = shapes.iter().map(|shape| shape.words(len)).max().unwrap_or(0);
        let scratch = layout.reserve(HEAD + 2 * words);
        shapes.map(|shape| Self { shape, scratch })
    }

    /// Sorts stably. Pass `i` writes to `to[i % 2]`; the first pass reads `from`, which may be identical to `to[1]`.
    /// Returns the pair with the sorted items, then the other one.
    ///
    /// # Safety
    /// All arrays have the same length, at most the planned one, and do not overlap, with the exception above. Nothing
    /// else uses them until the stream has done the work. There is at least one bit to sort by.
    pub(crate) unsafe fn run<'a, K: RadixKey, V: Carried>(
        &self,
        temp: &Temp<'_>,
        by: SortBy,
        from: Source<'a, K, V>,
        to: [Pairs<'a, K, V>; 2],
    ) -> Result<[Pairs<'a, K, V>; 2]> {
        let (shape, len, num_passes) = (self.shape, from.keys.len(), by.num_passes());
        let [mut target, mut other] = to;
        if len > 0 {
            let scratch = Scratch::new(temp.view(self.scratch), shape.words(len));
            // SAFETY: only this plan uses the scratch memory; the rest is passed on to the caller.
            unsafe { scratch.count_digits(&temp.stream, by, from.keys, num_passes)? };
            let mut source = from;
            for pass in 0..num_passes {
                let pass = Pass { stream: &temp.stream, scratch: &scratch, shape, by, pass, source, target };
                // SAFETY: as above.
                unsafe { launch(&pass)? };
                source = target.read_only();
                std::mem::swap(&mut target, &mut other);
            }
        } else if num_passes % 2 == 1 {
            std::mem::swap(&mut target, &mut other);
        }
        Ok([other, target])
    }
}

/// The parts of the scratch memory.
struct Scratch<'a> {
    /// The memory that is cleared before the histogram: digit begins, tickets, the first set of words.
    cleared: SliceMut<'a, u32>,
    tickets: SliceMut<'a, u32>,
    words: [SliceMut<'a, u32>; 2],
}

impl<'a> Scratch<'a> {
    fn new(all: SliceMut<'a, u32>, words: usize) -> Self {
        // SAFETY: the plan has at least this many words.
        unsafe {
            Self {
                cleared: all.part(0, HEAD + words),
                tickets: all.part(BEGIN_WORDS, TICKETS),
                words: [all.part(HEAD, words), all.part(HEAD + words, words)],
            }
        }
    }

    /// Returns the begins of each digit's items: a row per pass.
    fn digit_begins(&self, first: usize, num_passes: usize) -> SliceMut<'a, u64> {
        // SAFETY: the digit begins come first, in memory that is aligned for any type.
        unsafe {
            SliceMut::<u64>::from_raw_parts(self.cleared.as_ptr().cast(), BEGIN_WORDS / 2)
                .part(first * RADIX, num_passes * RADIX)
        }
    }

    /// Returns the look-back words of a pass as type `N`.
    fn words<N>(&self, pass: usize) -> SliceMut<'a, N> {
        let words = self.words[pass % 2];
        // SAFETY: wide shapes have twice as many 32-bit words, and each set begins at an even word.
        unsafe { SliceMut::from_raw_parts(words.as_ptr().cast(), words.len() * 4 / size_of::<N>()) }
    }

    /// Computes the begins of each digit's items, and clears everything else.
    ///
    /// # Safety
    /// Like [`RadixSort::run`].
    unsafe fn count_digits<K: RadixKey>(
        &self,
        stream: &Stream,
        by: SortBy,
        keys: Slice<'_, K>,
        num_passes: usize,
    ) -> Result<()> {
        let tiles = keys.len().div_ceil(policy::histogram_tile(size_of::<K>())) as u64;
        let blocks = tiles.min(HISTOGRAM_MAX_BLOCKS);
        let digit_begins = self.digit_begins(0, num_passes);
        // SAFETY: passed on to the caller; the histogram uses the first ticket.
        unsafe {
            stream.fill_bytes(self.cleared, 0)?;
            let args = (keys, digit_begins, self.tickets.part(0, 1), by.with(KeyOrder::FOLD));
            if by.order == KeyOrder::UNSIGNED {
                stream.launch::<primitives_radix_sort_histogram<K, false>>(blocks, args)
            } else {
                stream.launch::<primitives_radix_sort_histogram<K, true>>(blocks, args)
            }
        }
    }
}

/// One pass.
struct Pass<'p, 'a, K, V> {
    stream: &'p Stream,
    scratch: &'p Scratch<'p>,
    shape: Shape,
    by: SortBy,
    pass: usize,
    source: Source<'a, K, V>,
    target: Pairs<'a, K, V>,
}

impl<'p, 'a, K: RadixKey, V: Carried> Pass<'p, 'a, K, V> {
    /// Returns the same pass with types of known sizes.
    ///
    /// # Safety
    /// `L` and `W` are `K` and `V`.
    unsafe fn of_types<L, W>(&self) -> Pass<'p, 'a, L, W> {
        let &Self { stream, scratch, shape, by, pass, source, target } = self;
        // SAFETY: the same views, of types that are equal by the caller's promise.
        unsafe {
            let (keys, values) = (source.keys, source.values);
            let keys = Slice::from_raw_parts(keys.as_ptr().cast(), keys.len());
            let source = Source { keys, values: Slice::from_raw_parts(values.as_ptr().cast(), values.len()) };
            let (keys, values) = (target.keys, target.values);
            let keys = SliceMut::from_raw_parts(keys.as_ptr().cast(), keys.len());
            let target =
                Pairs { keys, values: SliceMut::from_raw_parts(values.as_ptr().cast(), values.len()) };
            Pass { stream, scratch, shape, by, pass, source, target }
        }
    }

    fn is_first(&self) -> bool {
        self.pass == 0
    }

    fn is_last(&self) -> bool {
        self.pass + 1 == self.by.num_passes()
    }

    /// Returns whether the pass has to convert keys. The first and the last pass convert from and to the caller's form;
    /// equal zeros are converted in all passes.
    fn is_folded(&self) -> bool {
        let ends = self.is_first() || self.is_last();
        self.by.order.has(KeyOrder::EQUAL_ZEROS) || (ends && self.by.order != KeyOrder::UNSIGNED)
    }

    fn order(&self) -> KeyOrder {
        let fold = if self.is_first() { KeyOrder::FOLD } else { KeyOrder::UNSIGNED };
        let unfold = if self.is_last() { KeyOrder::UNFOLD } else { KeyOrder::UNSIGNED };
        self.by.order.with(fold).with(unfold)
    }

    /// Launches the kernel of the pass.
    ///
    /// # Safety
    /// Like [`RadixSort::run`]. Digits have been counted, and the earlier passes are enqueued.
    unsafe fn launch<N: LookBackWord, const FOLDED: bool, const WARPS: usize, const ITEMS: usize>(
        &self,
    ) -> Result<()> {
        let &Self { stream, scratch, shape, by, pass, source, target } = self;
        let tiles = source.keys.len().div_ceil(shape.policy.tile_items()) as u64;
        let shift = by.begin_bit + pass as u32 * RADIX_BITS;
        let next_words = scratch.words::<N>(pass + 1);
        // SAFETY: passed on to the caller; there is a ticket and a row of digit begins per pass.
        unsafe {
            let next_words = if self.is_last() { next_words.part(0, 0) } else { next_words };
            let pass = OnesweepPass {
                source,
                target,
                digit_begins: scratch.digit_begins(pass, 1).read_only(),
                words: scratch.words::<N>(pass),
                next_words,
                ticket: scratch.tickets.part(1 + pass, 1),
                shift,
                digit_bits: by.end_bit - shift,
                order: self.order(),
            };
            stream.launch::<primitives_radix_sort_onesweep<K, V, N, FOLDED, WARPS, ITEMS>>(tiles, (pass,))
        }
    }

    /// Returns the error for a shape without a kernel.
    fn missing(&self) -> Error {
        let RadixSortPolicy { warps, items } = self.shape.policy;
        Error::InvalidLaunch {
            kernel: "primitives_radix_sort_onesweep".into(),
            grid: self.source.keys.len() as u64,
            block: 32 * warps as u32,
            reason: format!("there is no kernel with tiles of {warps} warps and {items} items per thread"),
        }
    }
}

/// Generates the dispatch to the kernels. Each row has the types of key and value with their sizes, the shapes (warps x
/// items) that have unfolded and folded kernels, and, behind the semicolon, the wide shapes, which are always folded.
/// (Match arms need the shapes as literals, both as patterns and as const generic arguments.)
macro_rules! kernels {
    ($($key:ty, $value:ty, $kb:literal, $vb:literal: $($w:literal x $i:literal)*; $($ww:literal x $wi:literal)*;)*) => {
        /// Launches the kernel of the pass.
        ///
        /// # Safety
        /// Like [`RadixSort::run`].
        unsafe fn launch<K: RadixKey, V: Carried>(pass: &Pass<'_, '_, K, V>) -> Result<()> {
            let RadixSortPolicy { warps, items } = pass.shape.policy;
            let kind = (pass.shape.wide, pass.is_folded(), warps, items);
            // SAFETY: the types are those of the sizes; the rest is passed on to the caller.
            unsafe {
                match (size_of::<K>(), size_of::<V>()) {
                    $( ($kb, $vb) => {
                        let pass = pass.of_types::<$key, $value>();
                        match kind {
                            $( (false, false, $w, $i) => pass.launch::<u32, false, $w, $i>(), )*
                            $( (false, true, $w, $i) => pass.launch::<u32, true, $w, $i>(), )*
                            $( (true, _, $ww, $wi) => pass.launch::<u64, true, $ww, $wi>(), )*
                            _ => Err(pass.missing()),
                        }
                    } )*
                    _ => Err(pass.missing()),
                }
            }
        }
    };
}
kernels! {
    u32, NoValue, 4, 0: 12 x 28 12 x 16 8 x 4; 12 x 20;
    u32, u32, 4, 4: 12 x 28 12 x 16 8 x 4; 12 x 20;
    u32, u64, 4, 8: 12 x 12; 12 x 10;
    u32, u128, 4, 16: 8 x 8; 8 x 8;
    u64, NoValue, 8, 0: 12 x 18 8 x 4; 12 x 14;
    u64, u32, 8, 4: 12 x 18 8 x 4; 12 x 14;
    u64, u64, 8, 8: 12 x 12; 12 x 12;
    u64, u128, 8, 16: 8 x 8; 8 x 8;
}
