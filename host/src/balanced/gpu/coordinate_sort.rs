//! Radix sorts of id arrays by the coordinates of their points.

use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::balanced::coordinate_sort::{balanced_keys_of_ids, balanced_settle_ties, flags};
use kauri_kernels::kdtree::tags::kdtree_coordinate_keys;
use kauri_kernels::thread::coord::Float;

use crate::balanced::gpu::plan::BuildContext;
use crate::device::{Layout, Region};
use crate::error::Result;
use crate::primitives::generate::iota_on;
use crate::primitives::pairs::{Pairs, Source};
use crate::primitives::permute::gather_on;
use crate::primitives::radix_sort::{RadixSort, Shape, SortBy};

/// Scratch memory of sorts of up to a planned number of ids. A sort uses two id buffers: the first receives the result.
pub(crate) struct CoordinateSort<C: Float> {
    sort: RadixSort,
    /// Keys, double-buffered. Between two sorts the caller may use this memory.
    pub(crate) keys: [Region<C::Key>; 2],
    /// Flags that the tie kernel sets.
    flags: Region<u32>,
    /// The lowest bit of the keys that the sort compares.
    begin_bit: u32,
}

/// The lowest bit to compare in the keys of integers of 32 bits as `f64`. The fraction of such a float ends in at least 22 zeros, so the bits
/// below are equal in all keys of one sign. The number of digits above is even.
const BEGIN_BIT_OF_INTEGERS: u32 = 16;

impl<C: Float> CoordinateSort<C> {
    pub(crate) fn plan(layout: &mut Layout, len: usize) -> Self {
        let [sort] = RadixSort::plan(layout, len, [Shape::of::<C::Key, u32>(len)]);
        let (keys, flags) = ([layout.reserve(len), layout.reserve(len)], layout.reserve(flags::WORDS));
        Self { sort, keys, flags, begin_bit: 0 }
    }

    /// Makes the sort one of integers of 32 bits as `f64`.
    pub(crate) fn of_integers(self) -> Self {
        Self { begin_bit: BEGIN_BIT_OF_INTEGERS, ..self }
    }

    /// Sorts an array by one coordinate, stably. Without an array it sorts all ids. The array may be the first buffer itself. Returns the
    /// sorted keys.
    pub(crate) fn by_coordinate<'a>(
        &self,
        context: BuildContext<'a, C>,
        axis: usize,
        from: Option<Slice<'a, u32>>,
        buffers: [SliceMut<'a, u32>; 2],
    ) -> Result<SliceMut<'a, C::Key>> {
        let BuildContext { temp, coords, dims, .. } = context;
        let (to, num_dims, axis) = (buffers[0], dims as u32, axis as u32);
        let [keys, _] = self.key_buffers(context, to.len());
        // SAFETY: the arrays of a plan do not overlap.
        unsafe {
            match from {
                None => {
                    let args = (coords, keys, to, num_dims, axis);
                    temp.stream.launch_items::<kdtree_coordinate_keys<C>>(to.len() as u64, args)?;
                }
                Some(ids) => {
                    let args = (coords, num_dims, axis, ids, keys);
                    temp.stream.launch_items::<balanced_keys_of_ids<C>>(to.len() as u64, args)?;
                }
            }
        }
        self.run(context, Source { keys: keys.read_only(), values: from.unwrap_or(to.read_only()) }, buffers)
    }

    /// Sorts an array, or all ids, by given keys of the points, stably.
    pub(crate) fn by_keys<'a>(
        &self,
        context: BuildContext<'a, C>,
        point_keys: Slice<'a, C::Key>,
        from: Option<Slice<'a, u32>>,
        buffers: [SliceMut<'a, u32>; 2],
    ) -> Result<()> {
        let (stream, to) = (&context.temp.stream, buffers[0]);
        let [keys, _] = self.key_buffers(context, to.len());
        // SAFETY: the arrays of a plan do not overlap, and there is one key per point.
        let source = unsafe {
            match from {
                None => {
                    iota_on(stream, 0, to)?;
                    Source { keys: point_keys, values: to.read_only() }
                }
                Some(ids) => {
                    gather_on(stream, point_keys, ids, keys)?;
                    Source { keys: keys.read_only(), values: ids }
                }
            }
        };
        self.run(context, source, buffers).map(|_| ())
    }

    fn key_buffers<'a>(&self, context: BuildContext<'a, C>, len: usize) -> [SliceMut<'a, C::Key>; 2] {
        // SAFETY: no array is longer than planned.
        self.keys.map(|keys| unsafe { context.temp.view(keys).part(0, len) })
    }

    /// Sorts ids with their keys. Both may be in the first buffers.
    fn run<'a>(
        &self,
        context: BuildContext<'a, C>,
        source: Source<'a, C::Key, u32>,
        [to, other]: [SliceMut<'a, u32>; 2],
    ) -> Result<SliceMut<'a, C::Key>> {
        let [keys, other_keys] = self.key_buffers(context, to.len());
        let buffers = [Pairs { keys: other_keys, values: other }, Pairs { keys, values: to }];
        let by = SortBy { begin_bit: self.begin_bit, ..SortBy::low_bits(8 * size_of::<C::Key>() as u32) };
        // SAFETY: the arrays of a plan do not overlap. The first pass reads the source before a later one overwrites it. The number of
        // passes is even, so the result is in `keys` and `to`.
        unsafe { self.sort.run(context.temp, by, source, buffers)? };
        Ok(keys)
    }

    /// Sorts all ids by the super key of the first axis. Returns the sorted keys, and whether points may be equal.
    pub(crate) fn by_super_key<'a>(
        &self,
        context: BuildContext<'a, C>,
        buffers: [SliceMut<'a, u32>; 2],
    ) -> Result<(SliceMut<'a, C::Key>, bool)> {
        let BuildContext { temp, coords, dims } = context;
        let keys = self.by_coordinate(context, 0, None, buffers)?;
        let words = temp.view(self.flags);
        temp.clear(self.flags)?;
        let args = (keys.read_only(), buffers[0], coords, dims as u32, words);
        // SAFETY: the arrays of a plan do not overlap.
        let words: Vec<u32> = unsafe {
            temp.stream.launch_items::<balanced_settle_ties<C>>(keys.len() as u64, args)?;
            temp.stream.read(words.read_only())?
        };
        if words[flags::MANY] == 0 {
            return Ok((keys, words[flags::EQUAL] != 0));
        }
        Ok((self.by_all_coordinates(context, buffers)?, true))
    }

    /// Sorts all ids by the super key of the first axis with one stable sort per coordinate, the last one first.
    fn by_all_coordinates<'a>(
        &self,
        context: BuildContext<'a, C>,
        buffers: [SliceMut<'a, u32>; 2],
    ) -> Result<SliceMut<'a, C::Key>> {
        let last = self.by_coordinate(context, context.dims - 1, None, buffers)?;
        (0..context.dims - 1).rev().try_fold(last, |_, axis| {
            self.by_coordinate(context, axis, Some(buffers[0].read_only()), buffers)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kauri_kernels::thread::coord::Coord;

    #[test]
    fn low_bits_of_integer_keys_follow_from_the_sign() {
        let ends = (0..32).flat_map(|bit| [1 << bit, i32::MAX >> bit, !(1 << bit), i32::MIN >> bit]);
        for integer in ends.chain(-1000..1000) {
            let low_bits = integer.widen().key() & ((1 << BEGIN_BIT_OF_INTEGERS) - 1);
            let expected = if integer < 0 { (1 << BEGIN_BIT_OF_INTEGERS) - 1 } else { 0 };
            assert_eq!(low_bits, expected, "{integer}");
        }
    }
}
