//! The GPU half: sets in the order of their cells, and what is done with the pairs.

mod batches;
mod best;
mod cells;
mod heaps;
mod nearest;
mod nested;
mod pairs;
mod plan;
mod rising;

use super::Near;
use super::grid::grid_of;
use super::scored::Score;
use crate::device::{Buffer, Layout, Stream, Workspace};
use crate::error::{Error, Result};
use crate::primitives::bounds::Bounds;
use crate::primitives::cpu;
pub(super) use batches::deliver;
use cells::GridOn;
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::join::heaps::{MOST_REGISTERS, MOST_SHARED};
use kauri_kernels::join::score::{ScoreFunction, ScoreType, Scoring};
use kauri_kernels::policy::JOIN;
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::ranked::Ranked;
use kauri_kernels::thread::words::Bits128;
pub(super) use nearest::nearest;
pub(super) use pairs::{count, rows};
pub(super) use plan::{Needs, Planned};
pub(super) use rising::best_by;

/// Runs `$body` with the constant `$D`, the dimensions of the kernels for `$dims`.
macro_rules! with_kernel_dims {
    ($dims:expr, $D:ident => $body:expr) => {
        match $dims {
            2 => {
                const $D: usize = 2;
                $body
            }
            3 => {
                const $D: usize = 3;
                $body
            }
            _ => {
                const $D: usize = kauri_kernels::join::curve::MAX_DIMS;
                $body
            }
        }
    };
}
use with_kernel_dims;

/// How a GPU finds the best pairs. All give the same result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Strategy {
    /// [`NestedLoop`](Self::NestedLoop) of few points, [`Threshold`](Self::Threshold) if greater scores never make a lesser one,
    /// [`Cells`](Self::Cells) otherwise, and [`Filter`](Self::Filter) for more than a million pairs.
    #[default]
    Auto,
    /// All pairs, without a grid.
    NestedLoop,
    /// The points with the best scores first: no pair with another one can be better than what these give, or else they say how good the
    /// pairs have to be that [`Cells`](Self::Cells) looks for.
    Threshold,
    /// All points around each right point whose score suffices for a limit, which rises from part to part of the right points.
    Cells,
    /// The best pairs of each right point in registers (Løvik 2020); up to 64.
    RegisterHeap,
    /// The same in shared memory; up to 64.
    SharedHeap,
    /// All pairs, then the best of them (Løvik's baseline, with a selection in place of the sort).
    Filter,
}

/// Points in device memory, as the coordinates of one after the other, each with a score.
#[derive(Debug)]
pub struct DeviceScored<'a, C, S> {
    /// The coordinates.
    pub coords: &'a Buffer<C>,
    /// The scores.
    pub scores: &'a Buffer<S>,
}

impl<C, S> Clone for DeviceScored<'_, C, S> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<C, S> Copy for DeviceScored<'_, C, S> {}

impl<'a, C: Coord, S: Score> DeviceScored<'a, C, S> {
    /// Checks lengths and devices.
    pub(super) fn check(&self, stream: &Stream, dims: usize) -> Result<()> {
        self.coords.check(
            stream,
            "coordinates of points with scores",
            self.scores.len().saturating_mul(dims),
        )?;
        self.scores.check_device(stream)
    }

    fn on(&self) -> ScoredOn<'a, C> {
        let scores = self.scores.slice();
        let words = size_of::<S>() / size_of::<u32>() * scores.len();
        // SAFETY: the same memory as words.
        let scores = unsafe { Slice::from_raw_parts(scores.as_ptr().cast(), words) };
        ScoredOn { coords: self.coords.slice(), scores, of: S::TYPE, len: self.scores.len() }
    }
}

/// The same as views.
#[derive(Clone, Copy)]
struct ScoredOn<'a, C> {
    coords: Slice<'a, C>,
    /// Scores as words.
    scores: Slice<'a, u32>,
    of: ScoreType,
    len: usize,
}

/// What is asked for.
pub(super) struct Asked<'a, C> {
    pub(super) stream: &'a Stream,
    pub(super) dims: usize,
    pub(super) near: &'a Near<C>,
    pub(super) scoring: &'a Scoring,
    pub(super) k: usize,
    /// For the best pairs of each right point.
    pub(super) result_bytes: u64,
    /// Points of each set that are joined first for a threshold, if that is asked for.
    pub(super) best_points: Option<usize>,
}

/// The best pairs of two sets, the best first.
pub(super) fn top_k<C: Coord, S: Score>(
    mut asked: Asked<'_, C>,
    workspace: &mut Workspace,
    sets: [DeviceScored<'_, C, S>; 2],
    strategy: Strategy,
) -> Result<Vec<Bits128>> {
    let sets = sets.map(|set| set.on());
    let all_pairs = sets[0].len as u128 * sets[1].len as u128;
    let k = usize::try_from(all_pairs).map_or(asked.k, |all| asked.k.min(all));
    let refuse =
        |strategy, most: usize| Err(Error::StrategyLimit { strategy, k: k as u64, most: most as u64 });
    match strategy {
        Strategy::RegisterHeap if k > MOST_REGISTERS => return refuse("RegisterHeap", MOST_REGISTERS),
        Strategy::SharedHeap if k > MOST_SHARED => return refuse("SharedHeap", MOST_SHARED),
        _ if k == 0 => return Ok(Vec::new()),
        _ => {}
    }
    asked.k = k;
    let asked = &asked;
    match chosen(strategy, sets.map(|set| set.len), k, asked.scoring, S::TYPE) {
        Strategy::NestedLoop => nested::all(asked, workspace, sets),
        Strategy::Threshold => match nested::of_best(asked, workspace, sets)? {
            nested::Found::All(pairs) => Ok(pairs),
            nested::Found::AtLeast(limit) => cells_of(asked, workspace, sets, |asked, workspace, grid| {
                rising::best(asked, workspace, sets, grid, limit)
            }),
        },
        Strategy::RegisterHeap | Strategy::SharedHeap => {
            let in_registers = strategy == Strategy::RegisterHeap;
            cells_of(asked, workspace, sets, |asked, workspace, grid| {
                heaps::best(asked, workspace, sets, grid, in_registers)
            })
        }
        Strategy::Filter => cells_of(asked, workspace, sets, |asked, workspace, grid| {
            pairs::filtered(asked, workspace, sets, grid)
        }),
        _ => cells_of(asked, workspace, sets, |asked, workspace, grid| {
            rising::best(asked, workspace, sets, grid, Bits128::LAST)
        }),
    }
}

/// The strategy that is taken for sets of so many points.
fn chosen(strategy: Strategy, lens: [usize; 2], k: usize, scoring: &Scoring, of: ScoreType) -> Strategy {
    match strategy {
        Strategy::Auto if lens[0] as u128 * lens[1] as u128 <= JOIN.nested_pairs => Strategy::NestedLoop,
        Strategy::Auto if k > JOIN.most_kept => Strategy::Filter,
        Strategy::Auto if is_monotone(scoring, of) && are_many(lens, k) => Strategy::Threshold,
        Strategy::Auto => Strategy::Cells,
        // Nothing is known of pairs that were left out.
        Strategy::Threshold if !is_monotone(scoring, of) => Strategy::Cells,
        strategy => strategy,
    }
}

/// True if sets have so many points that the best of them are few.
fn are_many(lens: [usize; 2], k: usize) -> bool {
    lens.iter().all(|len| len / JOIN.threshold_from >= JOIN.best_points(k))
}

/// True if a greater score of a point never makes a lesser one of a pair, or always does.
fn is_monotone(scoring: &Scoring, of: ScoreType) -> bool {
    scoring.function != ScoreFunction::Product || of == ScoreType::U32
}

/// Puts the work for each of two sets on a stream: of small sets side by side, since neither fills the device.
fn for_both<T>(
    stream: &Stream,
    lens: [usize; 2],
    mut work: impl FnMut(usize, &Stream) -> Result<T>,
) -> Result<[T; 2]> {
    if lens[0].saturating_add(lens[1]) > JOIN.side_by_side_to {
        return Ok([work(0, stream)?, work(1, stream)?]);
    }
    let side = Stream::new(stream.gpu())?;
    side.wait_for(stream)?;
    let second = work(1, &side);
    let first = work(0, stream);
    // In any case: what comes next on the stream may use the same memory.
    stream.wait_for(&side).or_else(|_| side.synchronize())?;
    Ok([first?, second?])
}

/// What `run` makes of the sets with their grid; nothing if there is none.
fn cells_of<C: Coord>(
    asked: &Asked<'_, C>,
    workspace: &mut Workspace,
    sets: [ScoredOn<'_, C>; 2],
    run: impl FnOnce(&Asked<'_, C>, &mut Workspace, GridOn) -> Result<Vec<Bits128>>,
) -> Result<Vec<Bits128>> {
    let coords = sets.map(|set| set.coords);
    match grid_on(asked.stream, workspace, asked.dims, coords, asked.near)? {
        Some(grid) => run(asked, workspace, grid),
        None => Ok(Vec::new()),
    }
}

/// The grid of two sets; nothing if no two points can be near each other. Waits for their boxes.
fn grid_on<C: Coord>(
    stream: &Stream,
    workspace: &mut Workspace,
    dims: usize,
    coords: [Slice<'_, C>; 2],
    near: &Near<C>,
) -> Result<Option<GridOn>> {
    if coords.iter().any(|coords| coords.is_empty()) {
        return Ok(None);
    }
    with_exact_dims!(dims, D => of_dims::<C, D>(stream, workspace, coords, near))
}

/// The same of sets in host memory.
fn grid_of_host<C: Coord>(dims: usize, coords: [&[C]; 2], near: &Near<C>) -> Option<GridOn> {
    if coords.iter().any(|coords| coords.is_empty()) {
        return None;
    }
    with_exact_dims!(dims, D => {
        let [left, right] = coords.map(|coords| cpu::bounds::bounds(coords.as_chunks::<D>().0));
        grid_of(D, left, right, near).map(|of| GridOn::new(&of))
    })
}

fn of_dims<C: Coord, const D: usize>(
    stream: &Stream,
    workspace: &mut Workspace,
    coords: [Slice<'_, C>; 2],
    near: &Near<C>,
) -> Result<Option<GridOn>> {
    let mut layout = Layout::new();
    let bounds = Bounds::<C>::plan(&mut layout, D);
    let corners = layout.reserve::<C>(4 * D);
    let temp = workspace.carve(stream, &layout, "boxes of points")?;
    let corners: SliceMut<'_, C> = temp.view(corners);
    // SAFETY: twice the dimensions each, and coordinates of whole points; nothing else uses the plan's memory.
    let corners = unsafe {
        bounds.run::<D>(stream, &temp, coords[0], corners.part(0, 2 * D))?;
        bounds.run::<D>(stream, &temp, coords[1], corners.part(2 * D, 2 * D))?;
        stream.read(corners.read_only())?
    };
    let corners = corners.as_chunks::<D>().0;
    let grid = grid_of(D, [corners[0], corners[1]], [corners[2], corners[3]], near);
    Ok(grid.map(|of| GridOn::new(&of)))
}
