//! The best pairs of sets of points or boxes in host memory, which may exceed device memory.
//!
//! If the strategy begins with the best-scored points, only the scores and these points are uploaded first. Their join gives a threshold,
//! and points that cannot be in a pair above it are not uploaded. The other points are uploaded at once if they fit. Otherwise they are
//! uploaded [slab by slab](super::slabs), each with the threshold of the slabs before it. Several devices join parts of the left set
//! with the whole right set, or [take](super::deal) slabs in turn.

use super::best::BestPairs;
use super::deal::{COORDS, SCORES, deal, upload_items, upload_items_to_all};
use super::nested::{self, BestPointsJoin, TopScores};
use super::scored::{DeviceScored, ScoredJoin, score_words};
use super::slabs::{Ids, ItemSizes, SlabLists, Slabs};
use super::top_k::top_k;
use crate::device::{Buffer, Gpu, Layout, Stream, Workspace};
use crate::error::Result;
use crate::join::params::TopKParams;
use crate::join::scored::Score;
use crate::join::strategy::Strategy;
use crate::memory;
use crate::once::Once;
use crate::primitives::planned::{bytes_of, carve};
use crate::primitives::top_k::Best as BestKeys;
use crate::threads::{each, even, lock};
use kauri_kernels::thread::coord::Float;
use kauri_kernels::thread::words::Bits128;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The memory limit is raised to what this many items of each set need.
const MIN_ITEMS: usize = 256;
/// Most slabs of a set.
const MAX_SLABS: u64 = 4096;

/// Sets in host memory.
struct ScoredSets<'a, J: ScoredJoin, S> {
    params: TopKParams<J>,
    coords: [&'a [J::Coord]; 2],
    scores: [&'a [S]; 2],
    /// The ranks of the least and the greatest score, computed when they are first needed.
    extremes: [Once<[u64; 2]>; 2],
}

/// Returns the best pairs of sets in host memory, and the most scratch memory of a device. The devices join different parts, each with at
/// most `bytes` bytes of device memory; all free memory if `None`.
pub(in crate::join) fn top_k_from_host<J: ScoredJoin, S: Score>(
    gpus: &[Gpu],
    mut params: TopKParams<J>,
    coords: [&[J::Coord]; 2],
    scores: [&[S]; 2],
    bytes: Option<u64>,
) -> Result<(Vec<Bits128>, u64)> {
    let bytes = match bytes {
        Some(bytes) => bytes,
        None => {
            let free = gpus.iter().map(Gpu::free_memory).collect::<Result<Vec<_>>>()?;
            // A part is left over, because allocations are rounded up.
            free.into_iter().min().unwrap_or(0) / 16 * 15
        }
    };
    #[cfg(feature = "research")]
    {
        params.heap_bytes = params.heap_bytes.min(super::heaps::max_bytes(bytes));
    }
    let (stream, mut workspace) = (Stream::new(&gpus[0])?, Workspace::new(&gpus[0]));
    let lens = scores.map(<[S]>::len);
    let sets = ScoredSets { params, coords, scores, extremes: [Once::new(), Once::new()] };
    let mut ids = lens.map(|len| Ids::Range(0..len));
    if params.strategy == Strategy::Threshold {
        match sets.join_best_points(&stream, &mut workspace, bytes)? {
            BestPointsJoin::Complete(pairs) => return Ok((pairs, workspace.bytes())),
            BestPointsJoin::Threshold(threshold) => {
                (params.strategy, params.threshold) = (Strategy::Cells, last_of_rank(threshold.0))
            }
        }
        ids = sets.filter_by_threshold(ids, params.threshold)?;
    }
    let mut partition = Partition {
        params,
        item_bytes: params.join.width() * size_of::<J::Coord>() + size_of::<S>(),
        max_bytes: bytes,
    };
    partition.max_bytes = bytes.max(partition.bytes([MIN_ITEMS; 2]));
    let merged = MergedPairs { k: params.k, pairs: Vec::new(), threshold: params.threshold };
    let merged = Mutex::new(merged);
    let join = |stream: &Stream, workspace: &mut Workspace, part: UploadedPart<J::Coord, S>| {
        if part.ids.iter().all(|ids| ids.len() > 0) {
            let params = TopKParams { threshold: lock(&merged).threshold, ..params };
            let pairs = top_k(stream, workspace, params, part.view())?;
            lock(&merged).add(pairs.iter().map(|&pair| part.with_global_ids(pair)))?;
        }
        Ok(())
    };
    let temp_bytes = workspace.bytes();
    drop(workspace);
    let lens = [ids[0].len(), ids[1].len()];
    let joined = if partition.bytes([lens[0].div_ceil(gpus.len()), lens[1]]) <= partition.max_bytes {
        // Each device joins a part of the left set with the whole right set.
        let (coords, scores) = sets.upload_to_all(gpus, 1, &ids[1])?;
        let right = coords.into_iter().zip(scores).zip(even(lens[0], gpus.len()));
        let used = each(gpus.iter().zip(right), |(gpu, ((coords, scores), part))| {
            let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
            let left = ids[0].part(part);
            let (left_coords, left_scores) = sets.upload_set(&stream, 0, &left)?;
            let part = UploadedPart {
                ids: [left, ids[1].clone()],
                coords: [left_coords, coords],
                scores: [left_scores, scores],
            };
            join(&stream, &mut workspace, part)?;
            Ok(workspace.bytes())
        })?;
        used.into_iter().max().unwrap_or(0)
    } else {
        let slabs = partition.slabs(gpus.len(), coords, [&ids[0], &ids[1]])?;
        let parts = partition.parts(&slabs);
        let upload = |stream: &Stream, part: usize| {
            let threshold = lock(&merged).threshold;
            let ids = sets.filter_by_threshold(parts[part].ids(&slabs), threshold)?;
            sets.upload(stream, ids)
        };
        deal(gpus, parts.len(), upload, join)?
    };
    let merged = merged.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((merged.pairs, temp_bytes.max(joined)))
}

/// The best pairs of all parts so far.
struct MergedPairs {
    k: usize,
    pairs: Vec<Bits128>,
    threshold: Bits128,
}

impl MergedPairs {
    fn add(&mut self, pairs: impl ExactSizeIterator<Item = Bits128>) -> Result<()> {
        memory::reserve(&mut self.pairs, pairs.len(), "best pairs")?;
        self.pairs.extend(pairs);
        self.pairs.sort_unstable_by_key(|pair| (pair.0, pair.1));
        self.pairs.truncate(self.k);
        if self.pairs.len() == self.k {
            self.threshold = last_of_rank(self.pairs[self.k - 1].0);
        }
        Ok(())
    }
}

/// Returns the last pair of a rank: pairs of this rank with any ids are not after it. The rank is given as its complement.
fn last_of_rank(complement: u64) -> Bits128 {
    Bits128(complement, u64::MAX)
}

/// Returns the ranks of the least and the greatest score.
fn extremes<S: Score>(scores: &[S]) -> [u64; 2] {
    let ranks = scores.par_iter().map(|score| [score.score_rank(); 2]);
    ranks.reduce(|| [u64::MAX, 0], |a, b| [a[0].min(b[0]), a[1].max(b[1])])
}

impl<J: ScoredJoin, S: Score> ScoredSets<'_, J, S> {
    /// Joins the best-scored points, and uploads no other points.
    fn join_best_points(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        bytes: u64,
    ) -> Result<BestPointsJoin> {
        let (params, lens) = (&self.params, self.scores.map(<[S]>::len));
        let (_, max_points) = nested::num_best_points(params, params.k, lens);
        let mut best_ids = |set| self.best_ids(stream, workspace, set, max_points, bytes);
        let best_ids = [best_ids(0)?, best_ids(1)?];
        nested::join_best_points(params, lens, |points, threshold| {
            let first = [0, 1].map(|set: usize| &best_ids[set][..points.min(lens[set])]);
            // Sorted by id, so that ties among the uploaded points are decided as among all points.
            let sorted = first.map(|ids| {
                let mut sorted = ids.to_vec();
                sorted.sort_unstable();
                sorted
            });
            let local_ids = [0, 1].map(|set: usize| {
                let local_id = |id| sorted[set].partition_point(|other| other < id) as u32;
                first[set].iter().map(local_id).collect::<Vec<_>>()
            });
            let few = self.upload(stream, sorted.map(Ids::List))?;
            let mut layout = Layout::new();
            let ids = [0, 1].map(|set: usize| layout.reserve::<u32>(local_ids[set].len()));
            let best = BestPairs::plan(&mut layout, params.k);
            let temp = workspace.carve(stream, &layout, "top-k distance join")?;
            let ids = ids.map(|ids| temp.view(ids));
            for set in 0..2 {
                temp.upload(ids[set], &local_ids[set])?;
            }
            let are_all = [0, 1].map(|set: usize| local_ids[set].len() == lens[set]);
            let running = best.begin(&temp, last_of_rank(threshold.0))?;
            let (views, ids) = (few.view().map(|set| set.view()), ids.map(|ids| ids.read_only()));
            // SAFETY: buffers wait for the device before they are freed, and nothing else uses the memory of the plan.
            let found = unsafe { nested::join_chosen_points(stream, params, running, views, ids, are_all) }?;
            Ok(match found {
                BestPointsJoin::Complete(pairs) => BestPointsJoin::Complete(
                    pairs.into_iter().map(|pair| few.with_global_ids(pair)).collect(),
                ),
                found => found,
            })
        })
    }

    /// Returns the ids of the best-scored points of a set, the best first.
    fn best_ids(
        &self,
        stream: &Stream,
        workspace: &mut Workspace,
        set: usize,
        max_points: usize,
        bytes: u64,
    ) -> Result<Vec<u32>> {
        let scores = self.scores[set];
        let order = nested::best_keys(&self.params.scoring, set);
        let plan = |layout: &mut _, len: usize| TopScores::plan(layout, S::TYPE, len, max_points.min(len));
        let bytes_needed =
            |len: usize| bytes_of(|layout| plan(layout, len)) + size_of_val(&scores[..len]) as u64;
        let mut len = scores.len();
        while len > max_points && bytes_needed(len) > bytes {
            len /= 2;
        }
        let mut ids = Vec::new();
        for (i, scores) in scores.chunks(len).enumerate() {
            let uploaded = upload_items(stream, scores, 1, &Ids::Range(0..scores.len()), SCORES)?;
            let plan = |layout: &mut _| plan(layout, scores.len());
            let (top, temp) = carve(stream, workspace, "best scores of a join", plan)?;
            // SAFETY: buffers wait for the device before they are freed, and nothing else uses the memory of the plan.
            let local_ids = unsafe {
                let local_ids = top.run(&temp, score_words(&uploaded), S::TYPE, order)?;
                stream.read(local_ids)?
            };
            ids.extend(local_ids.into_iter().map(|id| (i * len) as u32 + id));
        }
        if len < scores.len() {
            let key = |id: u32| {
                let rank = scores[id as usize].score_rank();
                (if order == BestKeys::Largest { !rank } else { rank }, id)
            };
            ids.sort_unstable_by_key(|&id| key(id));
            ids.truncate(max_points);
        }
        Ok(ids)
    }

    /// Returns the points that may be in a pair that is not after the threshold.
    fn filter_by_threshold(&self, ids: [Ids; 2], threshold: Bits128) -> Result<[Ids; 2]> {
        if threshold.0 == u64::MAX {
            return Ok(ids);
        }
        let num = ids[0].len() + ids[1].len();
        memory::check((num * size_of::<u32>()) as u64, "points of a join that are looked at")?;
        let extremes = [0, 1].map(|set| *self.extremes[set].get_or_init(|| extremes(self.scores[set])));
        // Every score function is monotone, so the best partner of a point has the least or the greatest score.
        let may_reach = |set: usize, id: usize| {
            let own = self.scores[set][id].score_rank();
            extremes[1 - set].iter().any(|&other| {
                let (left, right) = if set == 0 { (own, other) } else { (other, own) };
                self.params.scoring.rank(left, right) >= !threshold.0
            })
        };
        Ok([0, 1].map(|set| ids[set].filter(|id| may_reach(set, id))))
    }

    /// Uploads some points of both sets.
    fn upload(&self, stream: &Stream, ids: [Ids; 2]) -> Result<UploadedPart<J::Coord, S>> {
        let (left, right) = (self.upload_set(stream, 0, &ids[0])?, self.upload_set(stream, 1, &ids[1])?);
        Ok(UploadedPart { ids, coords: [left.0, right.0], scores: [left.1, right.1] })
    }

    /// Uploads the coordinates and the scores of some points of a set.
    fn upload_set(&self, stream: &Stream, set: usize, ids: &Ids) -> Result<(Buffer<J::Coord>, Buffer<S>)> {
        let width = self.params.join.width();
        let coords = upload_items(stream, self.coords[set], width, ids, COORDS)?;
        Ok((coords, upload_items(stream, self.scores[set], 1, ids, SCORES)?))
    }

    /// Like [`upload_set`](Self::upload_set), to each of some devices.
    fn upload_to_all(&self, gpus: &[Gpu], set: usize, ids: &Ids) -> Result<UploadedToAll<J::Coord, S>> {
        let width = self.params.join.width();
        let coords = upload_items_to_all(gpus, self.coords[set], width, ids, COORDS)?;
        Ok((coords, upload_items_to_all(gpus, self.scores[set], 1, ids, SCORES)?))
    }
}

/// Coordinates and scores of some points, on each of some devices.
type UploadedToAll<C, S> = (Vec<Buffer<C>>, Vec<Buffer<S>>);

/// Some points of both sets on the device.
struct UploadedPart<C, S> {
    ids: [Ids; 2],
    coords: [Buffer<C>; 2],
    scores: [Buffer<S>; 2],
}

impl<C: Float, S: Score> UploadedPart<C, S> {
    fn view(&self) -> [DeviceScored<'_, C, S>; 2] {
        [0, 1].map(|set| DeviceScored { coords: &self.coords[set], scores: &self.scores[set] })
    }

    /// Replaces the local ids of a pair by the ids in the whole sets.
    fn with_global_ids(&self, pair: Bits128) -> Bits128 {
        let id = |set: usize, id: u64| self.ids[set].get(id as usize) as u64;
        Bits128(pair.0, id(0, pair.1 >> 32) << 32 | id(1, pair.1 & u64::from(u32::MAX)))
    }
}

/// Splits two sets into parts that are joined one after another, because they exceed device memory.
struct Partition<J> {
    params: TopKParams<J>,
    /// Bytes of an item and its score.
    item_bytes: usize,
    max_bytes: u64,
}

impl<J: ScoredJoin> Partition<J> {
    /// Estimates the device memory for parts of `lens` items. Two parts are on the device: one is joined while the next is uploaded.
    fn bytes(&self, lens: [usize; 2]) -> u64 {
        let bytes = J::scratch_bytes(&self.params, lens);
        // The number of pairs to filter is not known in advance.
        let bytes = if self.params.strategy.has_all_pairs() { bytes.saturating_mul(2) } else { bytes };
        let items = (lens[0] as u64 + lens[1] as u64).saturating_mul(2 * self.item_bytes as u64);
        bytes.saturating_add(items)
    }

    /// Distributes the items of both sets to slabs, at least two for each of several devices.
    fn slabs(&self, num_gpus: usize, coords: [&[J::Coord]; 2], ids: [&Ids; 2]) -> Result<[SlabLists; 2]> {
        let (params, none) = (&self.params.join, self.bytes([0, 0]));
        let all = self.bytes(ids.map(Ids::len)) - none;
        // A quarter more slabs than needed, because some left items are in several slabs.
        let num = all.saturating_mul(5) / 4 / self.max_bytes.saturating_sub(none).max(1) + 2;
        let num = num.min(MAX_SLABS).max(2 * num_gpus as u64) as usize;
        let sizes = ItemSizes { dims: params.dims(), width: params.width() };
        Slabs::new(num, sizes, coords, ids, params.reach()).distribute_both(coords, ids)
    }

    /// Returns the parts to join. Each pair is in one part.
    fn parts(&self, slabs: &[SlabLists; 2]) -> Vec<SlabPart> {
        (0..slabs[0].num_slabs().min(slabs[1].num_slabs()))
            .flat_map(|slab| self.parts_of_slab(slabs, slab))
            .collect()
    }

    /// Returns a slab, or each combination of parts of both sets if the slab needs too much memory.
    fn parts_of_slab(&self, slabs: &[SlabLists; 2], slab: usize) -> Vec<SlabPart> {
        let lens = [slabs[0].len(slab), slabs[1].len(slab)];
        let mut part = lens.map(|len| len.max(1));
        while self.bytes(part) > self.max_bytes && part != [1, 1] {
            let larger = usize::from(part[1] > part[0]);
            part[larger] = part[larger].div_ceil(2);
        }
        let ranges = |set: usize| {
            let range = move |begin: usize| begin..(begin + part[set]).min(lens[set]);
            (0..lens[set]).step_by(part[set]).map(range)
        };
        ranges(0)
            .flat_map(|left| ranges(1).map(move |right| SlabPart { slab, ranges: [left.clone(), right] }))
            .collect()
    }
}

/// Some items of both sets in a slab.
struct SlabPart {
    slab: usize,
    ranges: [Range<usize>; 2],
}

impl SlabPart {
    /// Returns the items.
    fn ids(&self, slabs: &[SlabLists; 2]) -> [Ids; 2] {
        [0, 1].map(|set: usize| {
            let (ids, range) = (slabs[set].ids(self.slab), self.ranges[set].clone());
            if range.len() == ids.len() { ids } else { ids.part(range) }
        })
    }
}
