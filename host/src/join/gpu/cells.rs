//! The points of the sets of a join in the order of their cells, on a GPU.

use super::grid::{GridPlan, GridView, PackedGrid};
use super::prepared::ScoredView;
use crate::device::{Layout, Region, Stream, Temp};
use crate::error::Result;
use crate::join::params::{JoinParams, Lookup};
use crate::primitives::generate::iota_on;
use crate::primitives::pairs::{Pairs, empty_view};
use crate::primitives::permute::{Direction, permute_parts};
use crate::primitives::radix_sort::{RadixSort, Shape as SortShape, SortBy};
use crate::primitives::select::Select;
use cuda_std::mem::Slice;
use kauri_kernels::join::cells::{join_cells, join_codes, join_directory, join_ranks};
use kauri_kernels::join::neighbor_cells::{BuildSide, GROUP, JoinSides};
use kauri_kernels::join::score::{PairRanks, Scoring};
use kauri_kernels::policy::{JOIN, PER_ITEM_THREADS};
use kauri_kernels::primitives::unique::primitives_unique;
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::predicate::EqualBits;

/// Average number of points of a directory entry.
const POINTS_PER_ENTRY: usize = 4;

/// The side of a join.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The side that is searched.
    Build,
    /// The side that searches, a thread per point.
    Probe,
}

/// The order of the points of a probe side.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PointOrder {
    ByCell,
    /// The order of the input, which saves the sort.
    ById,
}

/// Whether the points of a set have scores.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scores {
    None,
    Ranked,
}

/// The sets of a join.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sets {
    /// One set, which is joined with itself.
    One,
    /// Two sets without scores.
    Two,
    /// Two sets with scores.
    TwoScored,
}

impl Sets {
    /// Returns the sets of a join without scores.
    pub(super) fn of<C: Coord>(params: &JoinParams<C>) -> Self {
        if params.is_self_join() { Self::One } else { Self::Two }
    }
}

/// Scratch memory of a set.
pub(super) struct SortedPointsPlan<C> {
    /// Codes and ids; the sort needs two arrays of each.
    codes: [Region<u64>; 2],
    ids: [Region<u32>; 2],
    /// `None` if the points are not sorted.
    sort: Option<RadixSort>,
    list: Option<CellListPlan>,
    directory: Region<u32>,
    coords: Region<C>,
    /// Ranks of the scores, and the least and the greatest rank; empty without scores.
    ranks: Region<u64>,
    extremes: Region<u64>,
}

/// A set in the order of its cells. The fields are described at [`BuildSide`](kauri_kernels::join::neighbor_cells::BuildSide).
#[derive(Clone, Copy)]
pub(super) struct SortedPoints<'a, C> {
    pub(super) codes: Slice<'a, u64>,
    pub(super) begins: Slice<'a, u32>,
    pub(super) directory: Slice<'a, u32>,
    pub(super) coords: Slice<'a, C>,
    pub(super) ids: Slice<'a, u32>,
    /// Ranks of the scores, and the least and the greatest rank; empty without scores.
    pub(super) ranks: Slice<'a, u64>,
    pub(super) extremes: Slice<'a, u64>,
}

impl<C: Coord> SortedPointsPlan<C> {
    pub(super) fn plan(
        layout: &mut Layout,
        len: usize,
        dims: usize,
        grid: &PackedGrid,
        side: Side,
        order: PointOrder,
        scores: Scores,
    ) -> Self {
        let directory_bits = (len / POINTS_PER_ENTRY).max(1).ilog2().min(grid.cell_bits);
        let has_list = side == Side::Build && grid.lookup == Lookup::Cells;
        let sort = (order == PointOrder::ByCell).then(|| {
            let [sort] = RadixSort::plan(layout, len, [SortShape::of::<u64, u32>(len)]);
            sort
        });
        let if_scored = |len| if scores == Scores::Ranked { len } else { 0 };
        let if_sorted = |len| if order == PointOrder::ByCell { len } else { 0 };
        Self {
            codes: [layout.reserve(if_sorted(len)), layout.reserve(if_sorted(len))],
            ids: [layout.reserve(len), layout.reserve(if_sorted(len))],
            sort,
            list: has_list.then(|| CellListPlan::plan(layout, len)),
            directory: layout.reserve(if side == Side::Build { (1 << directory_bits) + 1 } else { 0 }),
            coords: layout.reserve(if_sorted(len + GROUP) * dims),
            ranks: layout.reserve(if_scored(len + GROUP)),
            extremes: layout.reserve(if_scored(2)),
        }
    }

    /// Sorts the points, and ranks their scores if they have any.
    ///
    /// # Safety
    /// Number and dimensions of the points are as planned. Nothing else uses them and the memory of the plan until the stream has done
    /// the work.
    pub(super) unsafe fn run<'a>(
        &self,
        stream: &Stream,
        temp: &Temp<'a>,
        dims: usize,
        grid: GridView<'_>,
        coords: Slice<'a, C>,
        scores: Option<ScoredView<'_, C>>,
    ) -> Result<SortedPoints<'a, C>> {
        let Some(sort) = &self.sort else {
            // SAFETY: passed on to the caller.
            return unsafe { self.run_unsorted(stream, temp, coords, scores) };
        };
        let pairs = [0, 1].map(|i| Pairs { keys: temp.view(self.codes[i]), values: temp.view(self.ids[i]) });
        let padded = temp.view(self.coords);
        let len = pairs[1].keys.len();
        // SAFETY: the array is planned for the points and the padding of a group after them.
        let (sorted, padding) =
            unsafe { (padded.part(0, len * dims), padded.part(len * dims, GROUP * dims)) };
        let args = (coords, dims as u32, grid.words, grid.shape, pairs[1].keys, pairs[1].values, padding);
        let num_threads = len.max(padding.len()) as u64;
        // SAFETY: passed on to the caller; a sort may read its input from the second of its output arrays.
        unsafe {
            with_kernel_dims!(dims, D => stream.launch_items::<join_codes<C, D>>(num_threads, args))?;
            let by = SortBy::low_bits(grid.code_bits);
            let [Pairs { keys: codes, values: ids }, _] =
                sort.run(stream, temp, by, pairs[1].read_only(), pairs)?;
            let (codes, ids) = (codes.read_only(), ids.read_only());
            permute_parts(stream, Direction::Gather, dims, coords, ids, sorted)?;
            let (codes, begins) = match &self.list {
                None => (codes, empty_view().read_only()),
                Some(list) => list.run(stream, temp, codes)?,
            };
            let directory = temp.view(self.directory);
            stream
                .launch_items::<join_directory>(directory.len() as u64, (codes, grid.cell_bits, directory))?;
            self.rank(stream, temp, ids, scores)?;
            let (ranks, extremes) = (temp.view(self.ranks).read_only(), temp.view(self.extremes).read_only());
            let (directory, coords) = (directory.read_only(), padded.read_only());
            Ok(SortedPoints { codes, begins, directory, coords, ids, ranks, extremes })
        }
    }

    /// Ranks the scores of points that stay in the order of the input.
    ///
    /// # Safety
    /// The requirements of [`run`](Self::run).
    unsafe fn run_unsorted<'a>(
        &self,
        stream: &Stream,
        temp: &Temp<'a>,
        coords: Slice<'a, C>,
        scores: Option<ScoredView<'_, C>>,
    ) -> Result<SortedPoints<'a, C>> {
        let ids = temp.view(self.ids[0]);
        // SAFETY: passed on to the caller.
        unsafe {
            iota_on(stream, 0, ids)?;
            self.rank(stream, temp, ids.read_only(), scores)?;
        }
        let (ranks, extremes) = (temp.view(self.ranks).read_only(), temp.view(self.extremes).read_only());
        let (codes, begins, directory) =
            (empty_view().read_only(), empty_view().read_only(), empty_view().read_only());
        Ok(SortedPoints { codes, begins, directory, coords, ids: ids.read_only(), ranks, extremes })
    }

    /// Writes the ranks of the scores in the order of `ids`, and the least and the greatest rank, if there are scores.
    ///
    /// # Safety
    /// The requirements of [`run`](Self::run).
    unsafe fn rank(
        &self,
        stream: &Stream,
        temp: &Temp<'_>,
        ids: Slice<'_, u32>,
        scores: Option<ScoredView<'_, C>>,
    ) -> Result<()> {
        let Some(scored) = scores else { return Ok(()) };
        let (ranks, extremes) = (temp.view(self.ranks), temp.view(self.extremes));
        let args = (scored.scores, scored.score_type as u32, ids, ranks, extremes);
        let num_blocks = (ranks.len().div_ceil(PER_ITEM_THREADS) as u64).min(JOIN.ranks_max_blocks);
        // SAFETY: passed on to the caller.
        unsafe {
            stream.fill_bytes(extremes.part(0, 1), 0xFF)?;
            stream.fill_bytes(extremes.part(1, 1), 0)?;
            stream.launch::<join_ranks>(num_blocks, args)
        }
    }
}

/// Scratch memory of a list of the cells that are not empty.
struct CellListPlan {
    cells: Region<u64>,
    begins: Region<u32>,
    count: Region<u64>,
    select: Select,
}

impl CellListPlan {
    fn plan(layout: &mut Layout, len: usize) -> Self {
        let select = Select::plan::<u64>(layout, len);
        Self { cells: layout.reserve(len), begins: layout.reserve(len + 1), count: layout.reserve(1), select }
    }

    /// Returns the cells of sorted codes, and where the points of each cell begin.
    ///
    /// # Safety
    /// The number of codes is as planned; nothing else uses the memory of the plan until the stream has done the work.
    unsafe fn run<'a>(
        &self,
        stream: &Stream,
        temp: &Temp<'a>,
        codes: Slice<'_, u64>,
    ) -> Result<(Slice<'a, u64>, Slice<'a, u32>)> {
        let (cells, begins) = (temp.view(self.cells), temp.view(self.begins));
        let num_tiles = self.select.prepare::<u64>(stream, temp, codes.len())?;
        // SAFETY: passed on to the caller; the arrays have an element for each point.
        unsafe {
            stream.fill_bytes(cells, 0xFF)?;
            let args = (codes, cells, empty_view(), temp.view(self.count), self.select.words(temp));
            stream.launch::<primitives_unique<u64, EqualBits>>(num_tiles, args)?;
            let args = (codes, cells.read_only(), begins);
            stream.launch_items::<join_cells>(begins.len() as u64, args)?;
        }
        Ok((cells.read_only(), begins.read_only()))
    }
}

/// The two sides of a join by a grid, in the order of cells.
#[derive(Clone, Copy)]
pub(super) struct SortedSides<'a, C> {
    pub(super) dims: usize,
    pub(super) grid: GridView<'a>,
    pub(super) build: SortedPoints<'a, C>,
    pub(super) probe: SortedPoints<'a, C>,
    pub(super) bound: f64,
}

impl<'a, C: Coord> SortedSides<'a, C> {
    /// Returns the sides as arguments of a kernel.
    pub(super) fn args(&self) -> JoinSides<'a, C> {
        let SortedPoints { codes, begins, directory, coords, ids, .. } = self.build;
        JoinSides {
            build: BuildSide { codes, begins, directory, coords, ids },
            probe_coords: self.probe.coords,
            probe_ids: self.probe.ids,
            dims: self.dims as u32,
            grid: self.grid.words,
            shape: self.grid.shape,
            bound: self.bound,
        }
    }

    /// Returns the ranks of the scores of both sides as arguments of a kernel.
    pub(super) fn ranks(&self, scoring: &Scoring) -> PairRanks<'a> {
        PairRanks { build: self.build.ranks, probe: self.probe.ranks, scoring: scoring.args() }
    }
}

/// Scratch memory of two sides.
pub(super) struct SidesPlan<C> {
    grid: GridPlan,
    build: SortedPointsPlan<C>,
    /// `None` if a set is joined with itself.
    probe: Option<SortedPointsPlan<C>>,
}

impl<C: Coord> SidesPlan<C> {
    pub(super) fn plan(
        layout: &mut Layout,
        dims: usize,
        grid: &PackedGrid,
        lens: [usize; 2],
        sets: Sets,
        probe_order: PointOrder,
    ) -> Self {
        let grid_plan = GridPlan::plan(layout, grid);
        let scores = if sets == Sets::TwoScored { Scores::Ranked } else { Scores::None };
        let mut plan =
            |len, side, order| SortedPointsPlan::plan(layout, len, dims, grid, side, order, scores);
        let build = plan(lens[0], Side::Build, PointOrder::ByCell);
        let probe = (sets != Sets::One).then(|| plan(lens[1], Side::Probe, probe_order));
        Self { grid: grid_plan, build, probe }
    }

    /// Sorts both sides, given as [build, probe].
    ///
    /// # Safety
    /// The requirements of [`SortedPointsPlan::run`].
    #[allow(clippy::too_many_arguments)]
    pub(super) unsafe fn run<'a>(
        &self,
        stream: &Stream,
        temp: &Temp<'a>,
        dims: usize,
        grid: &PackedGrid,
        params: &JoinParams<C>,
        coords: [Slice<'a, C>; 2],
        scores: Option<[ScoredView<'_, C>; 2]>,
    ) -> Result<SortedSides<'a, C>> {
        let grid = self.grid.run(stream, temp, grid, params)?;
        let scores = |i: usize| scores.map(|scores| scores[i]);
        // SAFETY: passed on to the caller.
        unsafe {
            let [build, probe] = match &self.probe {
                Some(probe) => {
                    let lens = coords.map(|coords| coords.len() / dims);
                    for_both(stream, lens, |i, stream| {
                        let plan = if i == 0 { &self.build } else { probe };
                        plan.run(stream, temp, dims, grid, coords[i], scores(i))
                    })?
                }
                None => [self.build.run(stream, temp, dims, grid, coords[0], scores(0))?; 2],
            };
            Ok(SortedSides { dims, grid, build, probe, bound: params.bound.to_f64() })
        }
    }
}

/// Enqueues the work for each of two sets. Small sets are processed concurrently, because neither fills the device.
pub(super) fn for_both<T>(
    stream: &Stream,
    lens: [usize; 2],
    work: impl Fn(usize, &Stream) -> Result<T>,
) -> Result<[T; 2]> {
    if lens[0].saturating_add(lens[1]) > JOIN.side_by_side_to {
        return Ok([work(0, stream)?, work(1, stream)?]);
    }
    let (first, second) = stream.fork(|here| work(0, here), |side| work(1, side))?;
    Ok([first, second])
}
