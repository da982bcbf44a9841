//! Sorts of arrays of ids by the coordinates of their points, by radix sorts.

use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::balanced::ties::{balanced_keys_of_ids, balanced_settle_ties, told};
use kauri_kernels::kdtree::tags::kdtree_coordinate_keys;
use kauri_kernels::thread::coord::Coord;

use crate::balanced::gpu::Build;
use crate::device::{Layout, Region};
use crate::error::Result;
use crate::primitives::generate::iota_on;
use crate::primitives::pairs::{Pairs, Source};
use crate::primitives::permute::gather_on;
use crate::primitives::radix_sort::{RadixSort, Shape, SortBy};

/// Temporary memory of sorts of up to a number of ids.
pub(crate) struct CoordinateSort<C: Coord> {
    sort: RadixSort,
    /// Keys, twice since sorting moves them to and fro; in between they are free for others.
    pub(crate) keys: [Region<C::Key>; 2],
    /// What is told of ties.
    told: Region<u32>,
}

impl<C: Coord> CoordinateSort<C> {
    pub(crate) fn plan(layout: &mut Layout, len: usize) -> Self {
        let [sort] = RadixSort::plan(layout, len, [Shape::of::<C::Key, u32>(len)]);
        Self { sort, keys: [layout.reserve(len), layout.reserve(len)], told: layout.reserve(told::WORDS) }
    }

    /// Sorts an array by one coordinate, to the first of two rooms, of which it may be that one itself; or, where there is none, all ids.
    /// Ids of points that agree on the coordinate stay in order. Returns the keys.
    pub(crate) fn by_coordinate<'a>(
        &self,
        build: Build<'a, C>,
        axis: usize,
        from: Option<Slice<'a, u32>>,
        rooms: [SliceMut<'a, u32>; 2],
    ) -> Result<SliceMut<'a, C::Key>> {
        let Build { stream, coords, dims, .. } = build;
        let (to, num_dims, axis) = (rooms[0], dims as u32, axis as u32);
        let [keys, _] = self.key_rooms(build, to.len());
        // SAFETY: arrays of the plan, of which none overlaps another.
        unsafe {
            match from {
                None => {
                    let args = (coords, keys, to, num_dims, axis);
                    stream.launch_items::<kdtree_coordinate_keys<C>>(to.len() as u64, args)?;
                }
                Some(ids) => {
                    let args = (coords, num_dims, axis, ids, keys);
                    stream.launch_items::<balanced_keys_of_ids<C>>(to.len() as u64, args)?;
                }
            }
        }
        self.run(build, Source { keys: keys.read_only(), values: from.unwrap_or(to.read_only()) }, rooms)
    }

    /// The same by keys of points.
    pub(crate) fn by_keys<'a>(
        &self,
        build: Build<'a, C>,
        keys_of_points: Slice<'a, C::Key>,
        from: Option<Slice<'a, u32>>,
        rooms: [SliceMut<'a, u32>; 2],
    ) -> Result<()> {
        let (stream, to) = (build.stream, rooms[0]);
        let [keys, _] = self.key_rooms(build, to.len());
        // SAFETY: arrays of the plan, of which none overlaps another; there is a key a point.
        let source = unsafe {
            match from {
                None => {
                    iota_on(stream, 0, to)?;
                    Source { keys: keys_of_points, values: to.read_only() }
                }
                Some(ids) => {
                    gather_on(stream, keys_of_points, ids, keys)?;
                    Source { keys: keys.read_only(), values: ids }
                }
            }
        };
        self.run(build, source, rooms).map(|_| ())
    }

    fn key_rooms<'a>(&self, build: Build<'a, C>, len: usize) -> [SliceMut<'a, C::Key>; 2] {
        // SAFETY: no array is longer than planned.
        self.keys.map(|keys| unsafe { build.temp.view(keys).part(0, len) })
    }

    /// Sorts ids with their keys, which may lie in the first of the rooms.
    fn run<'a>(
        &self,
        build: Build<'a, C>,
        source: Source<'a, C::Key, u32>,
        [to, room]: [SliceMut<'a, u32>; 2],
    ) -> Result<SliceMut<'a, C::Key>> {
        let [keys, key_room] = self.key_rooms(build, to.len());
        let rooms = [Pairs { keys: key_room, values: room }, Pairs { keys, values: to }];
        let by = SortBy::low_bits(8 * size_of::<C::Key>() as u32);
        // SAFETY: arrays of the plan, of which none overlaps another; what is sorted is read before its room is written. The number of passes is even.
        unsafe { self.sort.run(build.stream, build.temp, by, source, rooms)? };
        Ok(keys)
    }

    /// Sorts all ids by the super key of the first axis, to the first of two rooms. Returns the keys, and whether points may be equal.
    pub(crate) fn by_super_key<'a>(
        &self,
        build: Build<'a, C>,
        rooms: [SliceMut<'a, u32>; 2],
    ) -> Result<(SliceMut<'a, C::Key>, bool)> {
        let Build { stream, temp, coords, dims } = build;
        let keys = self.by_coordinate(build, 0, None, rooms)?;
        let words = temp.view(self.told);
        temp.clear(stream, self.told)?;
        let args = (keys.read_only(), rooms[0], coords, dims as u32, words);
        // SAFETY: arrays of the plan, of which none overlaps another.
        let words: Vec<u32> = unsafe {
            stream.launch_items::<balanced_settle_ties<C>>(keys.len() as u64, args)?;
            stream.read(words.read_only())?
        };
        if words[told::MANY] == 0 {
            return Ok((keys, words[told::EQUAL] != 0));
        }
        Ok((self.by_all(build, rooms)?, true))
    }

    /// By one coordinate after the other, the last one first.
    fn by_all<'a>(&self, build: Build<'a, C>, rooms: [SliceMut<'a, u32>; 2]) -> Result<SliceMut<'a, C::Key>> {
        let last = self.by_coordinate(build, build.dims - 1, None, rooms)?;
        (0..build.dims - 1)
            .rev()
            .try_fold(last, |_, axis| self.by_coordinate(build, axis, Some(rooms[0].read_only()), rooms))
    }
}
