//! A sort of pairs that a kernel writes to temporary memory.

use super::{RadixSort, Shape, SortBy};
use crate::device::{Layout, Region, Temp};
use crate::error::Result;
use crate::primitives::pairs::Pairs;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::thread::carried::Carried;
use kauri_kernels::thread::radix_key::RadixKey;

/// Temporary memory to sort pairs that are written there.
pub(crate) struct PairSort<K, V> {
    /// The sort moves the pairs from one array to the other and back.
    keys: [Region<K>; 2],
    values: [Region<V>; 2],
    sort: RadixSort,
}

impl<K: RadixKey, V: Carried> PairSort<K, V> {
    pub(crate) fn plan(layout: &mut Layout, len: usize) -> Self {
        let [sort] = RadixSort::plan(layout, len, [Shape::of::<K, V>(len)]);
        let (keys, values) = ([(); 2].map(|()| layout.reserve(len)), [(); 2].map(|()| layout.reserve(len)));
        Self { keys, values, sort }
    }

    /// Sorts the keys and values that `write` writes, by the lowest `bits` bits of the keys.
    ///
    /// # Safety
    /// Nothing else uses the memory of the plan until the stream has done the work.
    pub(crate) unsafe fn run<'a>(
        &self,
        temp: &Temp<'a>,
        bits: u32,
        write: impl FnOnce(SliceMut<'a, K>, SliceMut<'a, V>) -> Result<()>,
    ) -> Result<(Slice<'a, K>, Slice<'a, V>)> {
        let pairs =
            [0, 1].map(|i| Pairs { keys: temp.view(self.keys[i]), values: temp.view(self.values[i]) });
        write(pairs[1].keys, pairs[1].values)?;
        let by = SortBy::low_bits(bits);
        // SAFETY: passed on to the caller; a sort may read its input from the second of its output arrays.
        let [sorted, _] = unsafe { self.sort.run(temp, by, pairs[1].read_only(), pairs) }?;
        Ok((sorted.keys.read_only(), sorted.values.read_only()))
    }
}
