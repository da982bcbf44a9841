//! Points in blocks, in host memory or in a temporary file.
//!
//! Points arrive in any order. A run of them is sorted by block and appended. A block is a square of the lattice that is aligned to its side, a
//! power of two, so the blocks one after another have the points along the Hilbert curve. The points of a block are read from all runs
//! that have some.

use super::hull::hull;
use crate::error::{Error, Result};
use crate::memory::{self, file_part::FilePart};
use crate::parallel::{self, Ranges, TASK_ITEMS};
use crate::primitives::cpu::bounds::bounds;
use kauri_kernels::terrain::order::{code, z_code};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// Points of a run.
const RUN_POINTS: usize = 1 << 24;
/// Limits of the average number of points of a block in the first run. With small blocks, few points outside of a window's margin are read.
const BLOCK_POINTS: RangeInclusive<usize> = 64..=1 << 14;
/// Blocks of a window.
const BLOCKS_PER_WINDOW: usize = 256;
/// The label of memory for points.
const POINTS: &str = "points of a terrain";

/// A block that has points.
#[derive(Debug)]
pub(super) struct Block {
    /// The number of points in the blocks before.
    pub(super) begin: u32,
    pub(super) len: u32,
    /// The bounding box of the points.
    pub(super) corners: [[i32; 2]; 2],
    pieces: Vec<Piece>,
}

/// The points of a block in one run.
#[derive(Debug)]
struct Piece {
    run: u32,
    begin: u32,
    len: u32,
}

/// Where the points of a run are.
enum Run {
    Memory(Vec<[i32; 3]>),
    /// From this item of the file on.
    File(usize),
}

/// Points in blocks.
pub(in crate::terrain) struct PointStore {
    /// Memory for points; more are written to a file.
    host_bytes: u64,
    folder: PathBuf,
    file: Option<File>,
    runs: Vec<Run>,
    /// Bits of codes within a block; known from the first run on.
    shift: Option<u32>,
    /// The blocks by the bits above.
    blocks: BTreeMap<u64, Block>,
    num_points: usize,
    /// The points of the next run. If all points are here, `max_whole` at most.
    pending: Vec<[i32; 3]>,
    max_whole: usize,
    block_points: usize,
    hull: Vec<[i32; 3]>,
}

/// All points of a store.
pub(in crate::terrain) enum AllPoints {
    /// In the order of their arrival.
    Whole(Vec<[i32; 3]>),
    Blocks(StoredPoints),
}

impl PointStore {
    /// Creates an empty store that takes up to `host_bytes` bytes, and more in a temporary file in `folder`. Up to `max_whole` points are not
    /// put into blocks.
    pub(in crate::terrain) fn new(host_bytes: u64, max_whole: usize, folder: &Path) -> Self {
        Self {
            host_bytes,
            folder: folder.into(),
            file: None,
            runs: Vec::new(),
            shift: None,
            blocks: BTreeMap::new(),
            num_points: 0,
            pending: Vec::new(),
            max_whole,
            block_points: (max_whole / BLOCKS_PER_WINDOW).clamp(*BLOCK_POINTS.start(), *BLOCK_POINTS.end()),
            hull: Vec::new(),
        }
    }

    /// Adds points.
    pub(in crate::terrain) fn append(&mut self, points: &[[i32; 3]]) -> Result<()> {
        memory::reserve_more(&mut self.pending, points.len(), POINTS)?;
        self.pending.extend_from_slice(points);
        if self.is_whole() || self.pending.len() < RUN_POINTS {
            return Ok(());
        }
        let pending = std::mem::take(&mut self.pending);
        let (runs, rest) = pending.as_chunks::<RUN_POINTS>();
        runs.iter().try_for_each(|run| self.push_run(run))?;
        self.pending = memory::collect(rest.iter().copied(), POINTS)?;
        Ok(())
    }

    /// True if no points are in blocks yet, and those so far need not be.
    fn is_whole(&self) -> bool {
        self.runs.is_empty() && self.pending.len() <= self.max_whole
    }

    /// Sorts points into blocks, and appends them as a run.
    fn push_run(&mut self, points: &[[i32; 3]]) -> Result<()> {
        if points.is_empty() {
            return Ok(());
        }
        let mut coded = parallel::collect(points.len(), TASK_ITEMS, POINTS, |i| {
            let [x, y, _] = points[i];
            (z_code([x, y]), points[i])
        })?;
        // The order within a block does not matter once there are blocks.
        let known = self.shift.unwrap_or(0);
        coded.par_sort_unstable_by_key(|point| point.0 >> known);
        let codes = coded.iter().map(|point| point.0);
        let shift = *self.shift.get_or_insert_with(|| shift_of_blocks(codes, self.block_points));
        let (run, mut begin) = (self.runs.len() as u32, 0);
        let points: Vec<[i32; 3]> = parallel::collect(coded.len(), TASK_ITEMS, POINTS, |i| coded[i].1)?;
        for block in coded.chunk_by(|a, b| a.0 >> shift == b.0 >> shift) {
            let points = &points[begin as usize..][..block.len()];
            let len = points.len() as u32;
            let [low, high] = bounds(points).map(|[x, y, _]| [x, y]);
            let block = self.blocks.entry(code([low[0], low[1]]) >> shift).or_insert_with(|| Block {
                begin: 0,
                len: 0,
                corners: [low, high],
                pieces: Vec::new(),
            });
            block.len += len;
            let corners = [block.corners[0], block.corners[1], low, high];
            block.corners = bounds(&corners);
            block.pieces.push(Piece { run, begin, len });
            begin += len;
        }
        drop(coded);
        self.num_points += points.len();
        self.hull.extend(hull(&points));
        self.hull = hull(&self.hull);
        self.runs.push(Run::Memory(points));
        if size_of::<[i32; 3]>() as u64 * self.num_points as u64 > self.host_bytes {
            self.move_to_file()?;
        }
        Ok(())
    }

    /// Writes the runs in memory to the file.
    fn move_to_file(&mut self) -> Result<()> {
        let error = |source: std::io::Error| Error::Io { path: self.folder.clone(), source };
        if self.file.is_none() {
            self.file = Some(tempfile::tempfile_in(&self.folder).map_err(error)?);
        }
        let file = self.file.as_ref().expect("the file was created");
        let part = FilePart { file, path: &self.folder, begin: 0 };
        let mut first = 0;
        for run in &mut self.runs {
            match run {
                // All runs but the last are as long.
                Run::File(_) => first += RUN_POINTS,
                Run::Memory(points) => {
                    part.write(first, points)?;
                    let next = first + points.len();
                    *run = Run::File(first);
                    first = next;
                }
            }
        }
        Ok(())
    }

    /// Ends the input. Returns the points as they are, or the blocks in order.
    pub(in crate::terrain) fn finish(mut self) -> Result<AllPoints> {
        let (is_whole, pending) = (self.is_whole(), std::mem::take(&mut self.pending));
        if is_whole {
            return Ok(AllPoints::Whole(pending));
        }
        self.push_run(&pending)?;
        drop(pending);
        let Self { folder, file, runs, shift, blocks, num_points, hull, .. } = self;
        let mut begin = 0;
        let mut blocks: Vec<Block> = blocks.into_values().collect();
        for block in &mut blocks {
            block.begin = begin;
            begin += block.len;
        }
        let side = 1 << (shift.unwrap_or(0) / 2);
        Ok(AllPoints::Blocks(StoredPoints { folder, file, runs, blocks, num_points, hull, side }))
    }
}

/// Returns the least even number of low bits without which sorted codes are in runs of `block_points` codes on average.
fn shift_of_blocks(codes: impl ExactSizeIterator<Item = u64> + Clone, block_points: usize) -> u32 {
    let most = (codes.len() / block_points).max(1);
    // How many pairs of neighbors differ in a bit, and in none above.
    let mut differing = [0; u64::BITS as usize + 1];
    for (code, next) in codes.clone().zip(codes.skip(1)) {
        differing[(u64::BITS - (code ^ next).leading_zeros()) as usize] += 1;
    }
    let num_runs = |shift: u32| 1 + differing[shift as usize + 1..].iter().sum::<usize>();
    (0..u64::BITS).step_by(2).find(|&shift| num_runs(shift) <= most).unwrap_or(u64::BITS - 2)
}

/// Points in blocks, all of which are known.
pub(in crate::terrain) struct StoredPoints {
    folder: PathBuf,
    file: Option<File>,
    runs: Vec<Run>,
    /// The blocks along the Hilbert curve.
    pub(super) blocks: Vec<Block>,
    pub(super) num_points: usize,
    /// The corners of the convex hull.
    pub(super) hull: Vec<[i32; 3]>,
    /// The side of a block.
    pub(super) side: i64,
}

impl StoredPoints {
    /// Returns the numbers of the blocks that have points between two corners, and the number of their points.
    pub(super) fn blocks_between(&self, [low, high]: [[i64; 2]; 2]) -> (Vec<usize>, usize) {
        let touches = |block: &Block| {
            (0..2).all(|axis| {
                i64::from(block.corners[0][axis]) <= high[axis]
                    && low[axis] <= i64::from(block.corners[1][axis])
            })
        };
        let chosen: Vec<usize> = (0..self.blocks.len()).filter(|&i| touches(&self.blocks[i])).collect();
        let num_points = chosen.iter().map(|&i| self.blocks[i].len as usize).sum();
        (chosen, num_points)
    }

    /// Returns the points of blocks, block after block.
    pub(super) fn read(&self, blocks: &[usize]) -> Result<Vec<[i32; 3]>> {
        let parts = Ranges::new(blocks.len(), 1).map(|range| self.read_block(blocks[range.start]));
        parallel::joined(parts.into_iter().collect::<Result<_>>()?, POINTS)
    }

    /// Returns the points of a block.
    pub(super) fn read_block(&self, block: usize) -> Result<Vec<[i32; 3]>> {
        let block = &self.blocks[block];
        let mut points = memory::vec_with_capacity(block.len as usize, POINTS)?;
        for &Piece { run, begin, len } in &block.pieces {
            let (begin, len) = (begin as usize, len as usize);
            match (&self.runs[run as usize], &self.file) {
                (Run::Memory(run), _) => points.extend_from_slice(&run[begin..begin + len]),
                (&Run::File(first), Some(file)) => {
                    let end = points.len();
                    points.resize(end + len, [0; 3]);
                    let part = FilePart { file, path: &self.folder, begin: 0 };
                    part.read(first + begin, &mut points[end..])?;
                }
                (Run::File(_), None) => unreachable!("runs in a file have a file"),
            }
        }
        Ok(points)
    }
}
