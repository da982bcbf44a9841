//! The points of the sets of a join in the order of their cells, on a GPU.

#[cfg(feature = "research")]
use super::cell_list::CellListPlan;
use super::grid::{GridView, PackedGrid};
use super::scored::ScoredView;
use crate::device::{Layout, Region, Stream, Temp};
use crate::error::Result;
use crate::join::params::JoinParams;
#[cfg(feature = "research")]
use crate::join::params::Lookup;
use crate::point::with_kernel_dims;
use crate::primitives::generate::iota_on;
use crate::primitives::pairs::empty_view;
use crate::primitives::permute::{Direction, permute_parts};
use crate::primitives::radix_sort::PairSort;
use cuda_std::mem::Slice;
use kauri_kernels::join::cells::{join_codes, join_directory, join_ranks};
use kauri_kernels::join::curve::MAX_DIMS;
use kauri_kernels::join::neighbor_cells::{BuildSide, GROUP, JoinSides};
use kauri_kernels::join::score::{PairRanks, Scoring};
use kauri_kernels::policy::{JOIN, PER_ITEM_THREADS};
use kauri_kernels::thread::coord::Float;

/// Average number of points of a directory entry.
const POINTS_PER_ENTRY: usize = 4;

/// A side of a join.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The side that is searched.
    Build,
    /// The side that searches, a thread per point.
    Probe,
    /// A probe side in the order of the input, which saves the sort.
    UnsortedProbe,
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
    pub(super) fn of<C: Float>(params: &JoinParams<C>) -> Self {
        if params.pairing.is_self_join() { Self::One } else { Self::Two }
    }
}

/// Scratch memory to sort items by the codes of their cells: codes and ids.
pub(in crate::join) type CodeOrderPlan = PairSort<u64, u32>;

/// Plans the directory of `len` codes of `code_bits` bits.
pub(in crate::join) fn plan_directory(layout: &mut Layout, len: usize, code_bits: u32) -> Region<u32> {
    layout.reserve((1 << (len / POINTS_PER_ENTRY).max(1).ilog2().min(code_bits)) + 1)
}

/// Scratch memory of a set.
pub(super) struct SortedPointsPlan<C> {
    /// `None` if the points are not sorted.
    order: Option<CodeOrderPlan>,
    /// The ids of points that are not sorted.
    ids: Region<u32>,
    lookup: LookupPlan,
    directory: Region<u32>,
    coords: Region<C>,
    ranks: RanksPlan,
}

/// Scratch memory of the ranks of the scores of a set, in the order of its cells.
pub(in crate::join) struct RanksPlan {
    /// Ranks of the scores, and the least and the greatest rank; empty without scores.
    ranks: Region<u64>,
    extremes: Region<u64>,
}

/// Scratch memory of the lookup of cells.
enum LookupPlan {
    Points,
    #[cfg(feature = "research")]
    Cells(CellListPlan),
}

/// A set in the order of its cells.
#[derive(Clone, Copy)]
pub(super) struct SortedPoints<'a, C> {
    /// The points, as a kernel searches them. An unsorted probe side has only coordinates and ids.
    pub(super) points: BuildSide<'a, C>,
    /// Ranks of the scores, and the least and the greatest rank; empty without scores.
    pub(super) ranks: Slice<'a, u64>,
    pub(super) extremes: Slice<'a, u64>,
}

impl<C: Float> SortedPointsPlan<C> {
    /// Plans the scratch memory of `len` points, and of their ranks if they have scores.
    pub(super) fn plan(
        layout: &mut Layout,
        grid: &PackedGrid,
        len: usize,
        side: Side,
        has_scores: bool,
    ) -> Self {
        let is_sorted = side != Side::UnsortedProbe;
        Self {
            order: is_sorted.then(|| CodeOrderPlan::plan(layout, len)),
            ids: layout.reserve(if is_sorted { 0 } else { len }),
            lookup: match grid.lookup {
                #[cfg(feature = "research")]
                Lookup::Cells if side == Side::Build => LookupPlan::Cells(CellListPlan::plan(layout, len)),
                _ => LookupPlan::Points,
            },
            directory: match side {
                Side::Build => plan_directory(layout, len, grid.cell_bits),
                _ => layout.reserve(0),
            },
            coords: layout.reserve(if is_sorted { len + GROUP } else { 0 } * grid.dims),
            ranks: RanksPlan::plan(layout, len, has_scores),
        }
    }

    /// Sorts the points, and ranks their scores if they have any.
    ///
    /// # Safety
    /// Number and dimensions of the points are as planned. Nothing else uses them and the memory of the plan until the stream has done
    /// the work.
    pub(super) unsafe fn run<'a>(
        &self,
        temp: &Temp<'a>,
        grid: GridView<'_>,
        coords: Slice<'a, C>,
        scores: Option<ScoredView<'_, C>>,
    ) -> Result<SortedPoints<'a, C>> {
        let Some(order) = &self.order else {
            // SAFETY: passed on to the caller.
            return unsafe { self.run_unsorted(temp, coords, scores) };
        };
        let dims = grid.dims;
        let padded = temp.view(self.coords);
        let len = padded.len() / dims - GROUP;
        // SAFETY: the array is planned for the points and the padding of a group after them.
        let (sorted, padding) =
            unsafe { (padded.part(0, len * dims), padded.part(len * dims, GROUP * dims)) };
        // SAFETY: passed on to the caller.
        unsafe {
            let (codes, ids) = order.run(temp, grid.code_bits, |codes, ids| {
                let args = (coords, dims as u32, grid.words, grid.shape, codes, ids, padding);
                let num_threads = len.max(padding.len()) as u64;
                with_kernel_dims!(dims, D in [2, 3] or MAX_DIMS => {
                    temp.stream.launch_items::<join_codes<C, D>>(num_threads, args)
                })
            })?;
            permute_parts(&temp.stream, Direction::Gather, dims, coords, ids, sorted)?;
            let (codes, begins) = match &self.lookup {
                LookupPlan::Points => (codes, empty_view().read_only()),
                #[cfg(feature = "research")]
                LookupPlan::Cells(list) => list.run(temp, codes)?,
            };
            let directory = temp.view(self.directory);
            temp.stream
                .launch_items::<join_directory>(directory.len() as u64, (codes, grid.cell_bits, directory))?;
            let [ranks, extremes] = self.ranks.run(temp, ids, scores)?;
            let (directory, coords) = (directory.read_only(), padded.read_only());
            Ok(SortedPoints { points: BuildSide { codes, begins, directory, coords, ids }, ranks, extremes })
        }
    }

    /// Ranks the scores of points that stay in the order of the input.
    ///
    /// # Safety
    /// The requirements of [`run`](Self::run).
    unsafe fn run_unsorted<'a>(
        &self,
        temp: &Temp<'a>,
        coords: Slice<'a, C>,
        scores: Option<ScoredView<'_, C>>,
    ) -> Result<SortedPoints<'a, C>> {
        let ids = temp.view(self.ids);
        // SAFETY: passed on to the caller.
        let [ranks, extremes] = unsafe {
            iota_on(&temp.stream, 0, ids)?;
            self.ranks.run(temp, ids.read_only(), scores)?
        };
        let (codes, begins) = (empty_view().read_only(), empty_view().read_only());
        let points = BuildSide { codes, begins, directory: begins, coords, ids: ids.read_only() };
        Ok(SortedPoints { points, ranks, extremes })
    }
}

impl RanksPlan {
    /// Plans the ranks of `len` scores, and of padding for a group.
    pub(in crate::join) fn plan(layout: &mut Layout, len: usize, has_scores: bool) -> Self {
        let if_scored = |len| if has_scores { len } else { 0 };
        Self { ranks: layout.reserve(if_scored(len + GROUP)), extremes: layout.reserve(if_scored(2)) }
    }

    /// Returns the ranks of the scores in the order of `ids`, and the least and the greatest rank; empty without scores.
    ///
    /// # Safety
    /// The number of ids is as planned. Nothing else uses ids, scores and the memory of the plan until the stream has done the work.
    pub(in crate::join) unsafe fn run<'a, C>(
        &self,
        temp: &Temp<'a>,
        ids: Slice<'_, u32>,
        scores: Option<ScoredView<'_, C>>,
    ) -> Result<[Slice<'a, u64>; 2]> {
        let (ranks, extremes) = (temp.view(self.ranks), temp.view(self.extremes));
        let views = [ranks.read_only(), extremes.read_only()];
        let Some(scored) = scores else { return Ok(views) };
        let args = (scored.scores, scored.score_type as u32, ids, ranks, extremes);
        let num_blocks = (ranks.len().div_ceil(PER_ITEM_THREADS) as u64).min(JOIN.ranks_max_blocks);
        // SAFETY: passed on to the caller.
        unsafe {
            temp.stream.fill_bytes(extremes.part(0, 1), 0xFF)?;
            temp.stream.fill_bytes(extremes.part(1, 1), 0)?;
            temp.stream.launch::<join_ranks>(num_blocks, args)?;
        }
        Ok(views)
    }
}

/// The two sides of a join by a grid, in the order of cells.
#[derive(Clone, Copy)]
pub(super) struct SortedSides<'a, C> {
    pub(super) grid: GridView<'a>,
    pub(super) build: SortedPoints<'a, C>,
    pub(super) probe: SortedPoints<'a, C>,
    pub(super) bound: f64,
}

impl<'a, C: Float> SortedSides<'a, C> {
    /// Returns the sides as arguments of a kernel.
    pub(super) fn args(&self) -> JoinSides<'a, C> {
        JoinSides {
            build: self.build.points,
            probe_coords: self.probe.points.coords,
            probe_ids: self.probe.points.ids,
            dims: self.grid.dims as u32,
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
    grid: Region<f64>,
    build: SortedPointsPlan<C>,
    /// `None` if a set is joined with itself.
    probe: Option<SortedPointsPlan<C>>,
}

impl<C: Float> SidesPlan<C> {
    /// Plans sides of `lens` points, given as [build, probe].
    pub(super) fn plan(
        layout: &mut Layout,
        grid: &PackedGrid,
        lens: [usize; 2],
        sets: Sets,
        probe_side: Side,
    ) -> Self {
        let words = grid.plan(layout);
        let mut plan = |len, side| SortedPointsPlan::plan(layout, grid, len, side, sets == Sets::TwoScored);
        let build = plan(lens[0], Side::Build);
        let probe = (sets != Sets::One).then(|| plan(lens[1], probe_side));
        Self { grid: words, build, probe }
    }

    /// Sorts both sides, given as [build, probe].
    ///
    /// # Safety
    /// The requirements of [`SortedPointsPlan::run`].
    pub(super) unsafe fn run<'a>(
        &self,
        temp: &Temp<'a>,
        grid: &PackedGrid,
        params: &JoinParams<C>,
        coords: [Slice<'a, C>; 2],
        scores: Option<[ScoredView<'_, C>; 2]>,
    ) -> Result<SortedSides<'a, C>> {
        let grid = grid.upload(temp, self.grid, params)?;
        let scores = |i: usize| scores.map(|scores| scores[i]);
        // SAFETY: passed on to the caller.
        unsafe {
            let [build, probe] = match &self.probe {
                Some(probe) => {
                    let lens = coords.map(|coords| coords.len() / grid.dims);
                    for_both(&temp.stream, lens, |i, stream| {
                        let plan = if i == 0 { &self.build } else { probe };
                        plan.run(&temp.on(stream), grid, coords[i], scores(i))
                    })?
                }
                None => [self.build.run(temp, grid, coords[0], scores(0))?; 2],
            };
            Ok(SortedSides { grid, build, probe, bound: params.bound.to_f64() })
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
