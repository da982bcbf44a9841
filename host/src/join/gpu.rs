//! The GPU half: sets in the order of their cells, and what is done with the pairs.

mod batches;
mod best;
mod cells;
mod heaps;
mod host;
mod nearest;
mod nested;
mod pairs;
mod plan;
mod rising;
mod slabs;

use super::Near;
use super::grid::grid_of;
use super::scored::Score;
use super::strategy::Strategy;
use crate::device::{Buffer, Layout, Stream, Workspace};
use crate::error::Result;
use crate::primitives::bounds::Bounds;
use crate::primitives::cpu;
pub(super) use batches::deliver;
use cells::GridOn;
use cuda_std::mem::{Slice, SliceMut};
pub(super) use host::top_k_of_host;
use kauri_kernels::join::score::{ScoreType, Scoring};
use kauri_kernels::policy::JOIN;
use kauri_kernels::thread::coord::Coord;
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
        ScoredOn {
            coords: self.coords.slice(),
            scores: words(self.scores),
            of: S::TYPE,
            len: self.scores.len(),
        }
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

/// Scores as words.
fn words<S: Score>(scores: &Buffer<S>) -> Slice<'_, u32> {
    let words = size_of::<S>() / size_of::<u32>() * scores.len();
    // SAFETY: the same memory as words, which scores are made of; the view keeps the buffer borrowed.
    unsafe { Slice::from_raw_parts(scores.slice().as_ptr().cast(), words) }
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
    /// Pairs behind this one are not wanted.
    pub(super) limit: Bits128,
}

/// The best pairs of two sets, the best first; at least one is asked for.
pub(super) fn top_k<C: Coord, S: Score>(
    mut asked: Asked<'_, C>,
    workspace: &mut Workspace,
    sets: [DeviceScored<'_, C, S>; 2],
    strategy: Strategy,
) -> Result<Vec<Bits128>> {
    let sets = sets.map(|set| set.on());
    match strategy {
        Strategy::NestedLoop => return nested::all(&asked, workspace, sets),
        Strategy::Threshold => match nested::of_best_on(&asked, workspace, sets)? {
            nested::Found::All(pairs) => return Ok(pairs),
            nested::Found::AtLeast(limit) => asked.limit = limit,
        },
        _ => {}
    }
    let coords = sets.map(|set| set.coords);
    let grid = grid_on(asked.stream, workspace, asked.dims, coords, asked.near)?;
    let (asked, Some(grid)) = (&asked, grid) else { return Ok(Vec::new()) };
    match strategy {
        Strategy::RegisterHeap => heaps::best(asked, workspace, sets, grid, true),
        Strategy::SharedHeap => heaps::best(asked, workspace, sets, grid, false),
        Strategy::Filter => pairs::filtered(asked, workspace, sets, grid),
        _ => rising::best(asked, workspace, sets, grid),
    }
}

/// Puts the work for each of two sets on a stream: of small sets side by side, since neither fills the device.
fn for_both<T>(
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
        grid_of(D, left, right, near).map(|of| GridOn::new(&of, near.lookup))
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
    Ok(grid.map(|of| GridOn::new(&of, near.lookup)))
}
