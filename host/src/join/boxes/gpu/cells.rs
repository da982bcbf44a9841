//! The boxes of the sets of a join in the order of their levels and cells, on a GPU.

use crate::device::{Layout, Region, Temp};
use crate::error::Result;
use crate::join::boxes::grid::PackedGrid;
use crate::join::boxes::params::BoxParams;
use crate::join::gpu::cells::{CodeOrderPlan, plan_directory};
use crate::point::with_kernel_dims;
use crate::primitives::permute::{Direction, permute_parts};
use cuda_std::mem::Slice;
use kauri_kernels::join::boxes::cells::join_boxes_keys;
use kauri_kernels::join::boxes::search::{BoxSides, GROUP, Pass, SortedBoxes};
use kauri_kernels::join::cells::join_directory;
use kauri_kernels::join::curve::MAX_DIMS;
use kauri_kernels::policy::BOXES;
use kauri_kernels::thread::coord::Float;

/// Scratch memory of a set.
pub(super) struct SortedBoxesPlan<C> {
    order: CodeOrderPlan,
    directory: Region<u32>,
    corners: Region<C>,
    levels: Region<u32>,
}

impl<C: Float> SortedBoxesPlan<C> {
    /// Plans the scratch memory of `len` boxes of `width` coordinates.
    pub(super) fn plan(layout: &mut Layout, grid: &PackedGrid, len: usize, width: usize) -> Self {
        Self {
            order: CodeOrderPlan::plan(layout, len),
            directory: plan_directory(layout, len, grid.key_bits),
            corners: layout.reserve((len + GROUP) * width),
            levels: layout.reserve(1),
        }
    }

    /// Sorts the boxes.
    ///
    /// # Safety
    /// Number and dimensions of the boxes are as planned. Nothing else uses them and the memory of the plan until the stream has done
    /// the work.
    pub(super) unsafe fn run<'a>(
        &self,
        temp: &Temp<'a>,
        grid: GridView<'_>,
        params: &BoxParams<C>,
        corners: Slice<'a, C>,
    ) -> Result<SortedBoxes<'a, C>> {
        let (dims, width) = (params.test.dims, params.width());
        let (padded, levels) = (temp.view(self.corners), temp.view(self.levels));
        let len = corners.len() / width;
        temp.clear(self.levels)?;
        // SAFETY: the array is planned for the boxes and the padding of a group after them; the rest is passed on to the caller.
        unsafe {
            let (sorted, padding) = (padded.part(0, len * width), padded.part(len * width, GROUP * width));
            // One more bit for the boxes without pairs.
            let (keys, ids) = self.order.run(temp, grid.key_bits + 1, |keys, ids| {
                let args = (corners, dims as u32, grid.words, grid.shape, keys, ids, levels, padding);
                let num_threads = len.max(padding.len()) as u64;
                with_kernel_dims!(dims, D in [2, 3] or MAX_DIMS => {
                    temp.stream.launch_items::<join_boxes_keys<C, D>>(num_threads, args)
                })
            })?;
            permute_parts(&temp.stream, Direction::Gather, width, corners, ids, sorted)?;
            let directory = temp.view(self.directory);
            let args = (keys, grid.key_bits, directory);
            temp.stream.launch_items::<join_directory>(directory.len() as u64, args)?;
            let (directory, corners) = (directory.read_only(), padded.read_only());
            Ok(SortedBoxes { keys, directory, corners, ids, levels: levels.read_only() })
        }
    }
}

/// The grid on the device.
#[derive(Clone, Copy)]
pub(super) struct GridView<'a> {
    words: Slice<'a, f64>,
    shape: u32,
    key_bits: u32,
}

/// Uploads a grid to planned memory.
pub(super) fn upload_grid<'a, C: Float>(
    temp: &Temp<'a>,
    words: Region<f64>,
    grid: &PackedGrid,
    params: &BoxParams<C>,
) -> Result<GridView<'a>> {
    let words = temp.view(words);
    temp.upload(words, &grid.words)?;
    Ok(GridView { words: words.read_only(), shape: params.shape(grid.bits), key_bits: grid.key_bits })
}

/// Scratch memory of two sets.
pub(super) struct SidesPlan<C> {
    grid: Region<f64>,
    right: SortedBoxesPlan<C>,
    /// `None` if a set is joined with itself.
    left: Option<SortedBoxesPlan<C>>,
}

impl<C: Float> SidesPlan<C> {
    /// Plans sets of `lens` boxes, given as [right, left].
    pub(super) fn plan(
        layout: &mut Layout,
        grid: &PackedGrid,
        lens: [usize; 2],
        params: &BoxParams<C>,
    ) -> Self {
        let words = layout.reserve(grid.words.len());
        let mut plan = |len| SortedBoxesPlan::plan(layout, grid, len, params.width());
        Self {
            grid: words,
            right: plan(lens[0]),
            left: (!params.pairing.is_self_join()).then(|| plan(lens[1])),
        }
    }

    /// Sorts both sets, given as [right, left].
    ///
    /// # Safety
    /// The requirements of [`SortedBoxesPlan::run`].
    pub(super) unsafe fn run<'a>(
        &self,
        temp: &Temp<'a>,
        grid: &PackedGrid,
        params: &BoxParams<C>,
        sets: [Slice<'a, C>; 2],
    ) -> Result<SortedSets<'a, C>> {
        let grid = upload_grid(temp, self.grid, grid, params)?;
        // SAFETY: passed on to the caller.
        unsafe {
            let right = self.right.run(temp, grid, params, sets[0])?;
            let left = match &self.left {
                Some(left) => left.run(temp, grid, params, sets[1])?,
                None => right,
            };
            Ok(SortedSets {
                grid,
                right,
                left,
                dims: params.test.dims,
                bound: params.test.bound.to_f64(),
                num_before: 0,
            })
        }
    }
}

/// Two sets in the order of their cells.
#[derive(Clone, Copy)]
pub(super) struct SortedSets<'a, C> {
    pub(super) grid: GridView<'a>,
    pub(super) right: SortedBoxes<'a, C>,
    pub(super) left: SortedBoxes<'a, C>,
    pub(super) dims: usize,
    pub(super) bound: f64,
    /// Number of left boxes of the whole set that come before these.
    pub(super) num_before: u32,
}

impl<'a, C: Float> SortedSets<'a, C> {
    /// Returns the sets as arguments of a kernel.
    pub(super) fn args(&self) -> BoxSides<'a, C> {
        let &Self { grid, right, left, dims, bound, num_before } = self;
        BoxSides { left, right, dims: dims as u32, grid: grid.words, shape: grid.shape, bound, num_before }
    }

    /// Returns both passes with the number of boxes that search. The first one probes the left boxes.
    pub(super) fn passes(&self) -> [(Pass, usize); 2] {
        let [left, right] = [self.left, self.right].map(|set| set.ids.len());
        // The pairs of one level are found by the larger set, because a thread searches for one box.
        let right_finds_equal = right / BOXES.larger_set >= left;
        [
            (Pass { probes_left: true, finds_equal: !right_finds_equal }, left),
            (Pass { probes_left: false, finds_equal: right_finds_equal }, right),
        ]
    }
}

/// Launches a kernel for both passes, a thread per probe box.
macro_rules! launch_passes {
    ($stream:expr, $sets:expr, $C:ident, $kernel:ident($($arg:expr),*)) => {
        $sets.passes().into_iter().try_for_each(|(pass, num_probes)| {
            with_kernel_dims!($sets.dims, D in [2, 3] or MAX_DIMS => {
                let args = ($sets.args(), pass.to_word(), $($arg),*);
                $stream.launch_items::<$kernel<$C, D>>(num_probes as u64, args)
            })
        })
    };
}
pub(super) use launch_passes;
