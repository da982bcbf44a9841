//! Sets in the order of their cells.

use super::{ScoredOn, for_both, with_kernel_dims};
use crate::device::{Layout, Region, Stream, Temp};
use crate::error::Result;
use crate::join::grid::GridOf;
use crate::join::{Lookup, Near};
use crate::primitives::generate::iota_on;
use crate::primitives::pairs::{Pairs, empty_view};
use crate::primitives::permute::{Direction, permute_parts};
use crate::primitives::radix_sort::{RadixSort, Shape as SortShape, SortBy};
use crate::primitives::select::Select;
use cuda_std::mem::Slice;
use kauri_kernels::join::around::{CellSets, GROUP, Lefts};
use kauri_kernels::join::cells::{Shape, join_cells, join_codes, join_directory, join_ranks};
use kauri_kernels::join::score::{PairRanks, Scoring};
use kauri_kernels::policy::{JOIN, PER_ITEM_THREADS};
use kauri_kernels::primitives::unique::primitives_unique;
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::predicate::EqualBits;

/// Points of a part of the directory, on average.
const POINTS_OF_PART: usize = 4;

/// A grid, as kernels are told of it.
pub(super) struct GridOn {
    words: Vec<f64>,
    bits: u32,
    /// Bits of the codes of cells, and of all codes.
    cell_bits: u32,
    pub(super) code_bits: u32,
    lookup: Lookup,
}

impl GridOn {
    pub(super) fn new<const D: usize>(of: &GridOf<D>, lookup: Lookup) -> Self {
        let grid = &of.grid;
        // One bit more for points that are in no cell.
        let (bits, cell_bits) = (grid.bits, grid.code_bits());
        let code_bits = (cell_bits + u32::from(!of.has_all)).min(u64::BITS);
        Self { words: grid.to_words().collect(), bits, cell_bits, code_bits, lookup }
    }

    /// One that takes as much memory as any of points of so many dimensions.
    pub(super) fn largest(dims: usize, lookup: Lookup) -> Self {
        let bits = u64::BITS;
        Self { words: vec![0.0; 1 + 2 * dims], bits, cell_bits: bits, code_bits: bits, lookup }
    }

    /// How many cells there are, of which many may be empty.
    pub(super) fn num_cells(&self) -> f64 {
        let (per_unit, corners) = (self.words[0], &self.words[1..]);
        let (low, high) = corners.split_at(corners.len() / 2);
        low.iter().zip(high).map(|(low, high)| ((high - low) * per_unit).floor() + 1.0).product()
    }

    /// The part of all cells that are around one.
    pub(super) fn part_around(&self) -> f64 {
        let (per_unit, corners) = (self.words[0], &self.words[1..]);
        let (low, high) = corners.split_at(corners.len() / 2);
        low.iter().zip(high).map(|(low, high)| 3.0 / ((high - low) * per_unit).max(3.0)).product()
    }
}

/// Temporary memory of the grid.
pub(super) struct GridPlan {
    words: Region<f64>,
}

/// The grid on the device.
#[derive(Clone, Copy)]
pub(super) struct GridView<'a> {
    pub(super) words: Slice<'a, f64>,
    pub(super) shape: u32,
    cell_bits: u32,
    code_bits: u32,
}

impl GridPlan {
    pub(super) fn plan(layout: &mut Layout, grid: &GridOn) -> Self {
        Self { words: layout.reserve(grid.words.len()) }
    }

    pub(super) fn run<'a, C>(
        &self,
        stream: &Stream,
        temp: &Temp<'a>,
        grid: &GridOn,
        near: &Near<C>,
    ) -> Result<GridView<'a>> {
        let words = temp.view(self.words);
        temp.upload(stream, words, &grid.words)?;
        let &Near { norm, curve, pairing, .. } = near;
        let shape = Shape { bits: grid.bits, curve, norm, pairing }.to_word();
        let &GridOn { cell_bits, code_bits, .. } = grid;
        Ok(GridView { words: words.read_only(), shape, cell_bits, code_bits })
    }
}

/// What a set is for.
#[derive(Clone, Copy)]
pub(super) struct Role {
    /// Points are looked for in it, as among those of the left set.
    pub(super) is_left: bool,
    /// It stays in its order.
    pub(super) lies: bool,
    pub(super) has_scores: bool,
}

/// Temporary memory of a set.
pub(super) struct Cells<C> {
    /// Codes and ids, and where the sort moves them to.
    codes: [Region<u64>; 2],
    ids: [Region<u32>; 2],
    /// Nothing if it stays in its order.
    sort: Option<RadixSort>,
    list: Option<List>,
    directory: Region<u32>,
    coords: Region<C>,
    /// If points have scores.
    ranks: Region<u64>,
    extremes: Region<u64>,
}

/// A set in the order of its cells.
#[derive(Clone, Copy)]
pub(super) struct CellsOn<'a, C> {
    pub(super) codes: Slice<'a, u64>,
    pub(super) begins: Slice<'a, u32>,
    pub(super) directory: Slice<'a, u32>,
    pub(super) coords: Slice<'a, C>,
    pub(super) ids: Slice<'a, u32>,
    /// Of their scores; and the least and the greatest. Nothing if there are no scores.
    pub(super) ranks: Slice<'a, u64>,
    pub(super) extremes: Slice<'a, u64>,
}

impl<C: Coord> Cells<C> {
    pub(super) fn plan(
        layout: &mut Layout,
        len: usize,
        dims: usize,
        grid: &GridOn,
        Role { is_left, lies, has_scores }: Role,
    ) -> Self {
        let parts = (len / POINTS_OF_PART).max(1).ilog2().min(grid.cell_bits);
        let has_list = is_left && grid.lookup == Lookup::Cells;
        let sort = (!lies).then(|| {
            let [sort] = RadixSort::plan(layout, len, [SortShape::of::<u64, u32>(len)]);
            sort
        });
        let of_scores = |len| if has_scores { len } else { 0 };
        let of_order = |len| if lies { 0 } else { len };
        Self {
            codes: [layout.reserve(of_order(len)), layout.reserve(of_order(len))],
            ids: [layout.reserve(len), layout.reserve(of_order(len))],
            sort,
            list: has_list.then(|| List::plan(layout, len)),
            directory: layout.reserve(if is_left { (1 << parts) + 1 } else { 0 }),
            coords: layout.reserve(of_order(len + GROUP) * dims),
            ranks: layout.reserve(of_scores(len + GROUP)),
            extremes: layout.reserve(of_scores(2)),
        }
    }

    /// Puts points in order, and the ranks of their scores.
    ///
    /// # Safety
    /// As many as planned, of that many dimensions; nothing else uses them and the plan's memory until the stream has done the work.
    pub(super) unsafe fn run<'a>(
        &self,
        stream: &Stream,
        temp: &Temp<'a>,
        dims: usize,
        grid: GridView<'_>,
        coords: Slice<'a, C>,
        scores: Option<ScoredOn<'_, C>>,
    ) -> Result<CellsOn<'a, C>> {
        let Some(sort) = &self.sort else {
            // SAFETY: passed on to the caller.
            return unsafe { self.run_as_it_lies(stream, temp, coords, scores) };
        };
        let pairs = [0, 1].map(|i| Pairs { keys: temp.view(self.codes[i]), values: temp.view(self.ids[i]) });
        let room = temp.view(self.coords);
        let len = pairs[1].keys.len();
        // SAFETY: the array is planned for the points and a group behind them.
        let (sorted, behind) = unsafe { (room.part(0, len * dims), room.part(len * dims, GROUP * dims)) };
        let args = (coords, dims as u32, grid.words, grid.shape, pairs[1].keys, pairs[1].values, behind);
        let num_threads = len.max(behind.len()) as u64;
        // SAFETY: passed on to the caller; what a sort reads may be the second of what it writes.
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
            let (directory, coords) = (directory.read_only(), room.read_only());
            Ok(CellsOn { codes, begins, directory, coords, ids, ranks, extremes })
        }
    }

    /// The same of points that stay in their order.
    ///
    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn run_as_it_lies<'a>(
        &self,
        stream: &Stream,
        temp: &Temp<'a>,
        coords: Slice<'a, C>,
        scores: Option<ScoredOn<'_, C>>,
    ) -> Result<CellsOn<'a, C>> {
        let ids = temp.view(self.ids[0]);
        // SAFETY: passed on to the caller.
        unsafe {
            iota_on(stream, 0, ids)?;
            self.rank(stream, temp, ids.read_only(), scores)?;
        }
        let (ranks, extremes) = (temp.view(self.ranks).read_only(), temp.view(self.extremes).read_only());
        let (codes, begins, directory) =
            (empty_view().read_only(), empty_view().read_only(), empty_view().read_only());
        Ok(CellsOn { codes, begins, directory, coords, ids: ids.read_only(), ranks, extremes })
    }

    /// Writes the ranks of scores in the order of these ids, and the extremes, if there are scores.
    ///
    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn rank(
        &self,
        stream: &Stream,
        temp: &Temp<'_>,
        ids: Slice<'_, u32>,
        scores: Option<ScoredOn<'_, C>>,
    ) -> Result<()> {
        let Some(scored) = scores else { return Ok(()) };
        let (ranks, extremes) = (temp.view(self.ranks), temp.view(self.extremes));
        let args = (scored.scores, scored.of as u32, ids, ranks, extremes);
        let num_blocks = (ranks.len().div_ceil(PER_ITEM_THREADS) as u64).min(JOIN.ranks_max_blocks);
        // SAFETY: passed on to the caller.
        unsafe {
            stream.fill_bytes(extremes.part(0, 1), 0xFF)?;
            stream.fill_bytes(extremes.part(1, 1), 0)?;
            stream.launch::<join_ranks>(num_blocks, args)
        }
    }
}

/// Temporary memory of the cells that are not empty.
struct List {
    cells: Region<u64>,
    begins: Region<u32>,
    count: Region<u64>,
    select: Select,
}

impl List {
    fn plan(layout: &mut Layout, len: usize) -> Self {
        let select = Select::plan::<u64>(layout, len);
        Self { cells: layout.reserve(len), begins: layout.reserve(len + 1), count: layout.reserve(1), select }
    }

    /// The cells of sorted codes, and where the points of each begin.
    ///
    /// # Safety
    /// As many codes as planned; nothing else uses the plan's memory until the stream has done the work.
    unsafe fn run<'a>(
        &self,
        stream: &Stream,
        temp: &Temp<'a>,
        codes: Slice<'_, u64>,
    ) -> Result<(Slice<'a, u64>, Slice<'a, u32>)> {
        let (cells, begins) = (temp.view(self.cells), temp.view(self.begins));
        let num_tiles = self.select.prepare::<u64>(stream, temp, codes.len())?;
        // SAFETY: passed on to the caller; there is room for as many cells as points.
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

/// Two sets in the order of their cells, and what is near: what all joins by cells begin their arguments with.
#[derive(Clone, Copy)]
pub(super) struct Joined<'a, C> {
    pub(super) dims: usize,
    pub(super) grid: GridView<'a>,
    pub(super) left: CellsOn<'a, C>,
    pub(super) right: CellsOn<'a, C>,
    pub(super) bound: f64,
}

impl<'a, C: Coord> Joined<'a, C> {
    /// The sets as kernels take them.
    pub(super) fn sets(&self) -> CellSets<'a, C> {
        let CellsOn { codes, begins, directory, coords, ids, .. } = self.left;
        CellSets {
            left: Lefts { codes, begins, directory, coords, ids },
            right_coords: self.right.coords,
            right_ids: self.right.ids,
            dims: self.dims as u32,
            grid: self.grid.words,
            shape: self.grid.shape,
            bound: self.bound,
        }
    }

    /// The ranks of the scores of both sets as kernels take them.
    pub(super) fn ranks(&self, scoring: &Scoring) -> PairRanks<'a> {
        PairRanks { left: self.left.ranks, right: self.right.ranks, scoring: scoring.args() }
    }
}

/// Temporary memory of two sets.
pub(super) struct TwoSets<C> {
    grid: GridPlan,
    left: Cells<C>,
    /// Nothing if it is the same set.
    right: Option<Cells<C>>,
}

impl<C: Coord> TwoSets<C> {
    pub(super) fn plan(
        layout: &mut Layout,
        dims: usize,
        grid: &GridOn,
        lens: [usize; 2],
        is_one: bool,
        has_scores: bool,
        lies: bool,
    ) -> Self {
        let role = |is_left, lies| Role { is_left, lies, has_scores };
        Self {
            grid: GridPlan::plan(layout, grid),
            left: Cells::plan(layout, lens[0], dims, grid, role(true, false)),
            right: (!is_one).then(|| Cells::plan(layout, lens[1], dims, grid, role(false, lies))),
        }
    }

    /// Puts both sets in order.
    ///
    /// # Safety
    /// As [`Cells::run`].
    #[allow(clippy::too_many_arguments)]
    pub(super) unsafe fn run<'a>(
        &self,
        stream: &Stream,
        temp: &Temp<'a>,
        dims: usize,
        grid: &GridOn,
        near: &Near<C>,
        coords: [Slice<'a, C>; 2],
        scores: Option<[ScoredOn<'_, C>; 2]>,
    ) -> Result<Joined<'a, C>> {
        let grid = self.grid.run(stream, temp, grid, near)?;
        let of = |i: usize| scores.map(|scores| scores[i]);
        // SAFETY: passed on to the caller.
        unsafe {
            let [left, right] = match &self.right {
                Some(right) => {
                    let lens = coords.map(|coords| coords.len() / dims);
                    for_both(stream, lens, |i, stream| {
                        let set = if i == 0 { &self.left } else { right };
                        set.run(stream, temp, dims, grid, coords[i], of(i))
                    })?
                }
                None => [self.left.run(stream, temp, dims, grid, coords[0], of(0))?; 2],
            };
            Ok(Joined { dims, grid, left, right, bound: near.bound.to_f64() })
        }
    }
}
