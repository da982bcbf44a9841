//! All pairs of boxes by a grid with a layer for each partition of the left boxes.

use super::grid::sample_device_sets;
use super::nested::box_sets;
use super::phases::PhaseClock;
use crate::device::{Buffer, Layout, Region, Stream, Temp, Workspace};
use crate::error::Result;
use crate::join::boxes::flat_grid::{flat_grid_of, max_cells};
use crate::join::boxes::options::{GridBuild, Streams as StreamForm};
use crate::join::boxes::params::BoxParams;
use crate::join::gpu::cells::CodeOrderPlan;
use crate::point::with_kernel_dims;
use crate::primitives::expand::Offsets;
use crate::primitives::pairs::empty_view;
use crate::primitives::permute::{Direction, permute_parts};
use cuda_std::mem::{Slice, SliceMut};
use kauri_kernels::join::boxes::multi_layer::{
    Streams, WORD_PARTITIONS, join_boxes_combine, join_boxes_mark, join_boxes_multi_layer, join_boxes_probe,
    join_boxes_streams, join_boxes_z_codes,
};
use kauri_kernels::join::boxes::nested::BoxSets;
use kauri_kernels::join::boxes::output::PairOutput;
use kauri_kernels::join::curve::MAX_DIMS;
use kauri_kernels::policy::JOIN_THREADS;
use kauri_kernels::thread::coord::Float;

/// Blocks of a join share a stream if there are fewer blocks than this. Untuned.
const MIN_BLOCKS: usize = 1 << 14;

/// A grid in the form that kernels load.
struct PackedFlatGrid {
    words: Vec<f64>,
    bits: u32,
    num_cells: usize,
}

/// Scratch memory of the grid, the bit strings and the streams.
pub(super) struct MultiLayerPlan<C> {
    grid: PackedFlatGrid,
    grid_words: Region<f64>,
    /// Present if the left boxes are sorted first.
    order: Option<(CodeOrderPlan, Region<C>)>,
    layers: Region<u32>,
    words: Region<u64>,
    bits: Region<u64>,
    lens: Region<u32>,
    begins: Region<u64>,
    offsets: Offsets,
    /// Streams of fixed lengths.
    ids: Region<u32>,
}

/// Returns the bytes of a cell.
fn cell_bytes<C: Float>(params: &BoxParams<C>) -> u64 {
    let partitions = params.options.partitions;
    let layers = if params.options.build == GridBuild::Layers { 4 * u64::from(partitions) } else { 0 };
    layers + 8 * u64::from(partitions.div_ceil(WORD_PARTITIONS))
}

impl<C: Float> MultiLayerPlan<C> {
    /// Plans a join of two sets, given as [right, left], or returns `None` if no pair is possible. Waits for the bounding boxes and a
    /// sample.
    pub(super) fn new(
        stream: &Stream,
        workspace: &mut Workspace,
        layout: &mut Layout,
        sets: [Slice<'_, C>; 2],
        params: &BoxParams<C>,
    ) -> Result<Option<Self>> {
        let lens = sets.map(|set| set.len() / params.width());
        let cell_bytes = cell_bytes(params);
        let most = max_cells(params, lens, cell_bytes).min(stream.gpu().free_memory()? / 2 / cell_bytes);
        let grid = with_exact_dims!(params.test.dims, D => {
            let (bounds, samples) = &sample_device_sets::<C, D>(stream, workspace, sets, params)?;
            let samples = samples.each_ref().map(|sample| &sample[..]);
            flat_grid_of(*bounds, samples, params, most.max(1)).and_then(|grid| {
                let (words, bits) = (grid.to_words().collect(), grid.levels.bits);
                Some(PackedFlatGrid { words, bits, num_cells: grid.num_cells()? })
            })
        });
        Ok(grid.map(|grid| Self::plan(layout, grid, lens, params)))
    }

    fn plan(
        layout: &mut Layout,
        grid: PackedFlatGrid,
        [num_right, num_left]: [usize; 2],
        params: &BoxParams<C>,
    ) -> Self {
        let options = &params.options;
        let num_partitions = options.partitions as usize;
        let num_words = options.partitions.div_ceil(WORD_PARTITIONS) as usize;
        let num_layers = if options.build == GridBuild::Layers { num_partitions } else { 0 };
        let num_ids = if options.streams == StreamForm::Fixed { num_partitions * num_right } else { 0 };
        let order = |layout: &mut _| {
            (CodeOrderPlan::plan(layout, num_left), layout.reserve(num_left * params.width()))
        };
        Self {
            grid_words: layout.reserve(grid.words.len()),
            order: options.z_order.then(|| order(layout)),
            layers: layout.reserve(grid.num_cells * num_layers),
            words: layout.reserve(grid.num_cells * num_words),
            bits: layout.reserve(num_right * num_words),
            lens: layout.reserve(num_partitions),
            begins: layout.reserve(num_partitions + 1),
            offsets: Offsets::plan(layout, num_partitions),
            ids: layout.reserve(num_ids),
            grid,
        }
    }

    /// Plans as much scratch memory as a join of sets of `lens` boxes, given as [right, left], can take.
    pub(super) fn plan_largest(layout: &mut Layout, lens: [usize; 2], params: &BoxParams<C>) {
        let num_cells = max_cells(params, lens, cell_bytes(params)) as usize;
        let grid = PackedFlatGrid { words: vec![0.0; 2 + 3 * params.test.dims], bits: 31, num_cells };
        Self::plan(layout, grid, lens, params);
        if params.options.streams == StreamForm::Exact {
            layout.reserve::<u32>(params.options.partitions as usize * lens[0]);
        }
    }

    /// Builds the grid, and finds the right boxes of each partition.
    ///
    /// # Safety
    /// The sets are as planned. Nothing else uses them and the memory of the plan until the stream has done the work.
    pub(super) unsafe fn run<'a>(
        &self,
        temp: &Temp<'a>,
        [right, left]: [Slice<'a, C>; 2],
        params: &BoxParams<C>,
        clock: &mut PhaseClock,
    ) -> Result<MultiLayer<'a, C>> {
        let stream = &temp.stream;
        let grid = temp.view(self.grid_words);
        temp.upload(grid, &self.grid.words)?;
        let (dims, grid, shape) = (params.test.dims, grid.read_only(), params.shape(self.grid.bits));
        let num_partitions = params.options.partitions;
        let (num_right, num_cells) = (right.len() / params.width(), self.grid.num_cells);
        let (layers, words, bits) = (temp.view(self.layers), temp.view(self.words), temp.view(self.bits));
        let (mut left, mut left_ids) = (left, empty_view().read_only());
        // SAFETY: the arrays are planned for the sets and the grid; the rest is passed on to the caller.
        unsafe {
            if let Some((order, corners)) = &self.order {
                let code_bits = self.grid.bits * dims as u32 + 1;
                let (_, ids) = order.run(temp, code_bits, |codes, ids| {
                    let args = (left, dims as u32, grid, shape, codes, ids);
                    with_kernel_dims!(dims, D in [2, 3] or MAX_DIMS => {
                        stream.launch_items::<join_boxes_z_codes<C, D>>(ids.len() as u64, args)
                    })
                })?;
                let sorted = temp.view(*corners);
                permute_parts(stream, Direction::Gather, params.width(), left, ids, sorted)?;
                (left, left_ids) = (sorted.read_only(), ids);
                clock.end(stream, "order", bytes_of(sorted) + 24 * ids.len() as u64)?;
            }
            if layers.is_empty() {
                temp.clear(self.words)?;
            } else {
                temp.clear(self.layers)?;
            }
            let num_left = (left.len() / params.width()) as u64;
            let args = (left, dims as u32, grid, shape, num_partitions, num_cells as u32, layers, words);
            with_kernel_dims!(dims, D in [2, 3] or MAX_DIMS => {
                stream.launch_items::<join_boxes_mark<C, D>>(num_left, args)
            })?;
            let build = if layers.is_empty() { bytes_of(words) } else { bytes_of(layers) };
            clock.end(stream, "build", build)?;
            if !layers.is_empty() {
                let args = (layers.read_only(), num_partitions, num_cells as u32, words);
                stream.launch_items::<join_boxes_combine>(words.len() as u64, args)?;
                clock.end(stream, "combine", bytes_of(words))?;
            }
            for word in 0..num_partitions.div_ceil(WORD_PARTITIONS) {
                let remaining = num_partitions - word * WORD_PARTITIONS;
                let full = u64::MAX >> (WORD_PARTITIONS - remaining.min(WORD_PARTITIONS));
                let words = words.read_only().part(word as usize * num_cells, num_cells);
                let own_bits = bits.part(word as usize * num_right, num_right);
                let args = (right, dims as u32, grid, shape, full, words, own_bits);
                with_kernel_dims!(dims, D in [2, 3] or MAX_DIMS => {
                    stream.launch_items::<join_boxes_probe<C, D>>(num_right as u64, args)
                })?;
            }
            clock.end(stream, "probe", bytes_of(bits))?;
            let (begins, lens) = (temp.view(self.begins), temp.view(self.lens));
            let (ids, exact_ids) = self.write_streams(temp, params, num_right)?;
            clock.end(stream, "streams", bytes_of(begins) + bytes_of(lens) + 4 * ids.len() as u64)?;
            let (bits, begins, lens) = (bits.read_only(), begins.read_only(), lens.read_only());
            let streams = Streams { num_partitions, left_ids, bits, begins, lens, ids };
            let sets = box_sets([right, left], params);
            Ok(MultiLayer { sets, streams, _exact_ids: exact_ids })
        }
    }

    /// Writes the streams and returns them, with their buffer if they have exact lengths.
    ///
    /// # Safety
    /// The bit strings are written. Otherwise the requirements of [`run`](Self::run).
    unsafe fn write_streams<'a>(
        &self,
        temp: &Temp<'a>,
        params: &BoxParams<C>,
        num_right: usize,
    ) -> Result<(Slice<'a, u32>, Option<Buffer<u32>>)> {
        let stream = &temp.stream;
        let (bits, lens) = (temp.view(self.bits).read_only(), temp.view(self.lens));
        let begins = temp.view(self.begins);
        let write = |ids: SliceMut<'_, u32>| {
            temp.clear(self.lens)?;
            let args = (bits, num_right as u32, lens, begins.read_only(), ids);
            // SAFETY: passed on to the caller.
            unsafe { stream.launch_items::<join_boxes_streams>(num_right as u64, args) }
        };
        match params.options.streams {
            StreamForm::BitStrings => Ok((empty_view().read_only(), None)),
            StreamForm::Fixed => {
                let all: Vec<u64> = (0..begins.len()).map(|stream| (stream * num_right) as u64).collect();
                temp.upload(begins, &all)?;
                write(temp.view(self.ids))?;
                Ok((temp.view(self.ids).read_only(), None))
            }
            StreamForm::Exact => {
                write(empty_view())?;
                // SAFETY: the plan has an offset more than streams.
                let total = unsafe {
                    self.offsets.run(temp, lens.read_only(), begins)?;
                    stream.read(begins.read_only().part(lens.len(), 1))?[0]
                };
                // An empty list would mean that there are no streams.
                let mut buffer = Buffer::uninitialized(stream.gpu(), total.max(1) as usize, "streams")?;
                let ids: SliceMut<'_, u32> = buffer.slice_mut();
                write(ids)?;
                // SAFETY: the caller keeps the buffer as long as the view.
                let ids = unsafe { Slice::from_raw_parts(ids.as_ptr(), ids.len()) };
                Ok((ids, Some(buffer)))
            }
        }
    }
}

/// Returns the bytes of an array.
fn bytes_of<T>(array: SliceMut<'_, T>) -> u64 {
    (array.len() * size_of::<T>()) as u64
}

/// The partitions of the left boxes with their streams.
pub(super) struct MultiLayer<'a, C> {
    sets: BoxSets<'a, C>,
    streams: Streams<'a>,
    /// The memory of the streams if they have exact lengths.
    _exact_ids: Option<Buffer<u32>>,
}

impl<C: Float> MultiLayer<'_, C> {
    /// Counts or writes the pairs.
    ///
    /// # Safety
    /// The requirements of [`nested::launch`](super::nested::launch).
    pub(super) unsafe fn launch(&self, stream: &Stream, output: PairOutput<'_>) -> Result<()> {
        let (dims, num_partitions) = (self.sets.dims as usize, self.streams.num_partitions as usize);
        let [num_left, num_right] =
            [self.sets.left, self.sets.right].map(|corners| corners.len() / (2 * dims));
        let num_tiles = num_left.div_ceil(num_partitions).div_ceil(JOIN_THREADS);
        let num_parts =
            (MIN_BLOCKS / (num_partitions * num_tiles)).clamp(1, num_right.div_ceil(JOIN_THREADS));
        let args = (self.sets, self.streams, num_tiles as u32, num_parts as u32, output);
        let num_blocks = (num_partitions * num_tiles * num_parts) as u64;
        // SAFETY: passed on to the caller.
        unsafe {
            with_kernel_dims!(dims, D in [2, 3] or MAX_DIMS => {
                stream.launch::<join_boxes_multi_layer<C, D>>(num_blocks, args)
            })
        }
    }
}
