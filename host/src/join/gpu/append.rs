//! The best pairs by a radix sort of all pairs, which an atomic counter has appended to a list (Løvik 2020).

use super::cells::{Sets, Side, SidesPlan, SortedSides};
use super::grid::PackedGrid;
use super::pairs::count_all;
use super::scored::ScoredView;
use crate::device::{Layout, Region, Stream, Temp, Workspace};
use crate::error::Result;
use crate::join::params::{JoinParams, TopKParams};
use crate::point::with_kernel_dims;
use crate::primitives::pairs::Pairs;
use crate::primitives::radix_sort::{RadixSort, Shape, SortBy};
use cuda_std::mem::Slice;
use kauri_kernels::join::append::{PairList, join_append};
use kauri_kernels::join::curve::MAX_DIMS;
use kauri_kernels::join::score::Scoring;
use kauri_kernels::thread::coord::Float;
use kauri_kernels::thread::words::Bits128;

/// Bytes of a pair in the list: key and ids, and a second copy for the sort.
const PAIR_BYTES: u64 = 2 * size_of::<Bits128>() as u64;
/// Keys that are read at a time to find the pairs with the score of the last one.
const TIES: usize = 1 << 14;

/// Returns the best pairs of two sets. If the list of the first run overflows, a second run has a list for exactly all pairs.
pub(super) fn best_pairs<C: Float>(
    stream: &Stream,
    workspace: &mut Workspace,
    params: &TopKParams<JoinParams<C>>,
    sets: [ScoredView<'_, C>; 2],
    grid: &PackedGrid,
) -> Result<Vec<Bits128>> {
    let lens = sets.map(|set| set.len);
    let mut layout = Layout::new();
    let plan = AppendPlan::first(&mut layout, grid, lens, params.heap_bytes);
    let temp = workspace.carve(stream, &layout, "top-k distance join")?;
    // SAFETY: the sets are borrowed, and nothing else uses the memory of the plan.
    let num_pairs = unsafe {
        let sides = plan.append(&temp, params, sets, grid)?;
        let count = stream.read(temp.view(plan.count).read_only())?[0];
        if count <= plan.capacity as u64 {
            return plan.best(&temp, &sides, &params.scoring, (count as usize, params.k));
        }
        count_all(&temp, &sides, plan.count)?
    };
    let capacity = usize::try_from(num_pairs).unwrap_or(usize::MAX);
    let mut layout = Layout::new();
    let plan = AppendPlan::new(&mut layout, grid, lens, capacity);
    let temp = workspace
        .carve(stream, &layout, "pairs of a join")
        .map_err(|error| error.of_result(num_pairs, PAIR_BYTES))?;
    // SAFETY: as above.
    unsafe {
        let sides = plan.append(&temp, params, sets, grid)?;
        plan.best(&temp, &sides, &params.scoring, (capacity, params.k))
    }
}

/// Scratch memory of the join and its list of pairs.
pub(super) struct AppendPlan<C> {
    sides: SidesPlan<C>,
    capacity: usize,
    count: Region<u64>,
    sort: RadixSort,
    /// Keys and ids: the list, and the second copy for the sort.
    lists: [[Region<u64>; 2]; 2],
}

impl<C: Float> AppendPlan<C> {
    /// Plans the first run. The list has the capacity for all pairs of the neighbor cells, if points are uniform, within `bytes` bytes.
    pub(super) fn first(layout: &mut Layout, grid: &PackedGrid, lens: [usize; 2], bytes: u64) -> Self {
        let expected = (grid.density(lens[0]) * lens[1] as f64) as u64;
        Self::new(layout, grid, lens, expected.clamp(1, (bytes / PAIR_BYTES).max(1)) as usize)
    }

    fn new(layout: &mut Layout, grid: &PackedGrid, lens: [usize; 2], capacity: usize) -> Self {
        let sides = SidesPlan::plan(layout, grid, lens, Sets::TwoScored, Side::Probe);
        let [sort] = RadixSort::plan(layout, capacity, [Shape::of::<u64, u64>(capacity)]);
        let count = layout.reserve(1);
        let lists = [(); 2].map(|()| [(); 2].map(|()| layout.reserve(capacity)));
        Self { sides, capacity, count, sort, lists }
    }

    /// Appends all pairs to the first list, up to its capacity.
    ///
    /// # Safety
    /// Nothing else uses the sets and the memory of the plan until the stream has done the work.
    unsafe fn append<'a>(
        &self,
        temp: &Temp<'a>,
        params: &TopKParams<JoinParams<C>>,
        sets: [ScoredView<'a, C>; 2],
        grid: &PackedGrid,
    ) -> Result<SortedSides<'a, C>> {
        temp.clear(self.count)?;
        let [keys, ids] = self.lists[0].map(|region| temp.view(region));
        // SAFETY: passed on to the caller.
        unsafe {
            let coords = sets.map(|set| set.coords);
            let sides = self.sides.run(temp, grid, &params.join, coords, Some(sets))?;
            let list = PairList { keys, ids, count: temp.view(self.count) };
            let args = (sides.args(), sides.ranks(&params.scoring), list);
            let n = sets[1].len as u64;
            with_kernel_dims!(grid.dims, D in [2, 3] or MAX_DIMS => temp.stream.launch_items::<join_append<C, D>>(n, args))?;
            Ok(sides)
        }
    }

    /// Returns the best `k` of the `len` pairs in the first list in order.
    ///
    /// # Safety
    /// The requirements of [`append`](Self::append), which has written the pairs.
    unsafe fn best(
        &self,
        temp: &Temp<'_>,
        sides: &SortedSides<'_, C>,
        scoring: &Scoring,
        (mut len, k): (usize, usize),
    ) -> Result<Vec<Bits128>> {
        let (stream, k) = (&temp.stream, k.min(len));
        if k == 0 {
            return Ok(Vec::new());
        }
        let mut lists = self.lists.map(|list| {
            let [keys, values] = list.map(|region| temp.view(region));
            Pairs { keys, values }
        });
        // SAFETY: the lists have the capacity for all pairs; the rest is passed on to the caller.
        unsafe {
            let extremes = [stream.read(sides.build.extremes)?, stream.read(sides.probe.extremes)?];
            let by_score = by_score(scoring, extremes.each_ref().map(|extremes| &extremes[..]));
            if k < len {
                lists = self.sorted(temp, by_score, first(lists, len))?;
                len = end_of_ties(stream, lists[0].keys.read_only(), k)?;
            }
            // Pairs of equal scores were appended in any order. The sort is stable, so sorts by the right id, the left id and the score
            // order the pairs that may be among the best.
            let sides = [&sides.build, &sides.probe].map(|side| side.points.ids.len());
            let [left, right] = sides.map(SortBy::numbers_below);
            let left = SortBy { begin_bit: u32::BITS, end_bit: u32::BITS + left.end_bit, ..left };
            let by_id = self.sorted(temp, right, swapped(first(lists, len)))?;
            let by_ids = self.sorted(temp, left, by_id)?;
            let [sorted, _] = self.sorted(temp, by_score, swapped(by_ids))?;
            let Pairs { keys, values: ids } = first([sorted; 2], k)[0];
            let (keys, ids) = (stream.read(keys.read_only())?, stream.read(ids.read_only())?);
            Ok(keys.into_iter().zip(ids).map(|(key, ids)| Bits128(key, ids)).collect())
        }
    }

    /// Sorts the first of two lists. Returns the sorted list and the other one.
    ///
    /// # Safety
    /// The requirements of [`append`](Self::append); the lists are no longer than planned.
    unsafe fn sorted<'a>(&self, temp: &Temp<'_>, by: SortBy, [from, to]: Lists<'a>) -> Result<Lists<'a>> {
        if by.num_passes() == 0 {
            return Ok([from, to]);
        }
        // SAFETY: passed on to the caller.
        unsafe { self.sort.run(temp, by, from.read_only(), [to, from]) }
    }
}

/// A list of pairs as keys and values, and the memory for a second copy.
type Lists<'a> = [Pairs<'a, u64, u64>; 2];

/// Returns the first `len` pairs of both lists.
///
/// # Safety
/// The lists are at least as long.
unsafe fn first(lists: Lists<'_>, len: usize) -> Lists<'_> {
    // SAFETY: passed on to the caller.
    lists.map(|Pairs { keys, values }| unsafe {
        Pairs { keys: keys.part(0, len), values: values.part(0, len) }
    })
}

/// Makes the values keys, and the keys values.
fn swapped(lists: Lists<'_>) -> Lists<'_> {
    lists.map(|Pairs { keys, values }| Pairs { keys: values, values: keys })
}

/// Returns the bits in which the keys of pairs may differ. Every score function is monotone in the score of each point, so the least and
/// the greatest score of a pair are made by extremes of both sides.
fn by_score(scoring: &Scoring, [left, right]: [&[u64]; 2]) -> SortBy {
    let ranks = left.iter().flat_map(|&left| right.iter().map(move |&right| scoring.rank(left, right)));
    let (least, greatest) =
        ranks.fold((u64::MAX, 0), |(least, greatest), rank| (least.min(rank), greatest.max(rank)));
    SortBy::low_bits(u64::BITS - (least ^ greatest).leading_zeros())
}

/// Returns the end of the sorted keys that are at most key number `k`, counted from 1.
///
/// # Safety
/// The keys are in device memory.
unsafe fn end_of_ties(stream: &Stream, keys: Slice<'_, u64>, k: usize) -> Result<usize> {
    let mut last = None;
    for begin in (k - 1..keys.len()).step_by(TIES) {
        // SAFETY: passed on to the caller.
        let part = unsafe { stream.read(keys.part(begin, TIES.min(keys.len() - begin))) }?;
        let last = *last.get_or_insert(part[0]);
        let equal = part.iter().take_while(|&&key| key == last).count();
        if equal < part.len() {
            return Ok(begin + equal);
        }
    }
    Ok(keys.len())
}
