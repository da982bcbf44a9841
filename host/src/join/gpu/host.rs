//! The best pairs of sets in host memory, of which as much is brought to the device at a time as there is room for.
//!
//! Where a threshold helps, nothing but the scores is brought there at first, and of the points only the best. If these say how good a
//! pair has to be, points without such a pair stay where they are. The others come as they are, if there is room for them, or else by
//! [slabs](super::slabs), each with the limit of those before it.

use super::best::Best;
use super::nested::{self, Found, Top};
use super::plan::{Needs, Planned};
use super::slabs::{Ids, Lists, Slabs};
use super::{Asked, DeviceScored, top_k, words};
use crate::device::{Buffer, Gpu, Layout, Staging, Stream, Workspace};
use crate::error::Result;
use crate::join::grid::reach;
use crate::join::scored::Score;
use crate::join::{Lookup, Near, Strategy};
use crate::memory::{self, vec_with_capacity};
use crate::primitives::top_k::Best as BestKeys;
use bytemuck::Pod;
use cust_core::DeviceCopy;
use kauri_kernels::join::score::Scoring;
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::words::Bits128;
use rayon::prelude::*;
use std::mem::MaybeUninit;
use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;

/// From so many bytes on arrays go by way of page-locked memory.
const STAGED: usize = 256 << 20;
/// There is room for so many points of each set in any case.
const LEAST: usize = 256;
/// Bytes that there are for the best pairs of right points in any case.
const LEAST_RESULT: u64 = 1 << 20;
/// Most parts of a set for which room is looked for.
const MOST_SLABS: u64 = 4096;

/// Sets in host memory.
struct OnHost<'a, C, S> {
    dims: usize,
    coords: [&'a [C]; 2],
    scores: [&'a [S]; 2],
    scoring: &'a Scoring,
    /// The ranks of the least and the greatest score, from when they are needed.
    extremes: [OnceLock<[u64; 2]>; 2],
}

/// The best pairs of sets in host memory, with at most so many bytes of the device's.
pub(in crate::join) fn top_k_of_host<C: Coord, S: Score>(
    mut asked: Asked<'_, C>,
    workspace: &mut Workspace,
    coords: [&[C]; 2],
    scores: [&[S]; 2],
    strategy: Strategy,
    bytes: Option<u64>,
) -> Result<Vec<Bits128>> {
    let gpu = asked.stream.gpu();
    let bytes = match bytes {
        Some(bytes) => bytes,
        // Allocations are rounded up.
        None => gpu.free_memory()? / 16 * 15,
    };
    asked.result_bytes = asked.result_bytes.min((bytes / 4).max(LEAST_RESULT));
    let lens = scores.map(<[S]>::len);
    let mut strategy = strategy.chosen(asked.scoring, S::TYPE, lens, asked.k)?;
    let mut bring = Bring { gpu, stream: asked.stream, staging: None };
    let (dims, scoring) = (asked.dims, asked.scoring);
    let sets = OnHost { dims, coords, scores, scoring, extremes: Default::default() };
    let mut ids = lens.map(Ids::First);
    if strategy == Strategy::Threshold {
        match sets.of_best(&asked, workspace, &mut bring, bytes)? {
            Found::All(pairs) => return Ok(pairs),
            Found::AtLeast(limit) => (strategy, asked.limit) = (Strategy::Cells, of_rank(limit.0)),
        }
        ids = sets.that_may_be_of(ids, asked.limit)?;
    }
    let need = Need::new::<C, S>(&asked, strategy);
    let bytes = bytes.max(need.of::<C>([LEAST; 2]));
    let parts = Parts::new(need, bytes, asked.near, coords, ids)?;
    let mut found = SoFar { k: asked.k, pairs: Vec::new(), limit: asked.limit };
    let mut join = |part: Brought<C, S>| {
        if part.ids.iter().all(|ids| ids.len() > 0) {
            let asked = Asked { limit: found.limit, ..asked };
            let pairs = top_k(asked, workspace, part.on(), strategy)?;
            found.add(pairs.iter().map(|&pair| part.global(pair)))?;
        }
        Ok(found.limit)
    };
    let slabs = match parts {
        Parts::Whole(ids) => {
            join(sets.bring(&mut bring, ids)?)?;
            return Ok(found.pairs);
        }
        Parts::Slabs(slabs) => slabs,
    };
    // One part is brought while another is joined.
    let rank = AtomicU64::new(asked.limit.0);
    thread::scope(|scope| {
        let (sender, receiver) = sync_channel(0);
        let (sets, rank) = (&sets, &rank);
        scope.spawn(move || {
            slabs.each::<C>(|ids| {
                let limit = of_rank(rank.load(Ordering::Relaxed));
                let part = sets.that_may_be_of(ids, limit).and_then(|ids| sets.bring(&mut bring, ids));
                let has_failed = part.is_err();
                if sender.send(part).is_err() || has_failed {
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            })
        });
        for part in receiver {
            rank.store(join(part?)?.0, Ordering::Relaxed);
        }
        Ok(())
    })?;
    Ok(found.pairs)
}

/// The best pairs of the parts so far.
struct SoFar {
    k: usize,
    pairs: Vec<Bits128>,
    limit: Bits128,
}

impl SoFar {
    fn add(&mut self, pairs: impl ExactSizeIterator<Item = Bits128>) -> Result<()> {
        memory::reserve(&mut self.pairs, pairs.len(), "best pairs")?;
        self.pairs.extend(pairs);
        self.pairs.sort_unstable_by_key(|pair| (pair.0, pair.1));
        self.pairs.truncate(self.k);
        if self.pairs.len() == self.k {
            self.limit = of_rank(self.pairs[self.k - 1].0);
        }
        Ok(())
    }
}

/// The last pair of a rank, whatever its ids.
fn of_rank(complement: u64) -> Bits128 {
    Bits128(complement, u64::MAX)
}

/// The ranks of the least and the greatest score.
fn extremes<S: Score>(scores: &[S]) -> [u64; 2] {
    let ranks = scores.par_iter().map(|score| [score.score_rank(); 2]);
    ranks.reduce(|| [u64::MAX, 0], |a, b| [a[0].min(b[0]), a[1].max(b[1])])
}

impl<C: Coord, S: Score> OnHost<'_, C, S> {
    /// The best pairs of the points with the best scores, of which only those are brought to the device.
    fn of_best(
        &self,
        asked: &Asked<'_, C>,
        workspace: &mut Workspace,
        bring: &mut Bring<'_>,
        bytes: u64,
    ) -> Result<Found> {
        let (stream, lens) = (asked.stream, self.scores.map(<[S]>::len));
        let (_, most) = nested::some_points(asked.k, asked.best_points, lens);
        let mut best_ids = |set| self.best_ids(asked, workspace, bring, set, most, bytes);
        let best_ids = [best_ids(0)?, best_ids(1)?];
        nested::of_best(asked, lens, |points, limit| {
            let first = [0, 1].map(|set: usize| &best_ids[set][..points.min(lens[set])]);
            // In the order of ids: what is the first of equals among few points is so among all.
            let sorted = first.map(|ids| {
                let mut sorted = ids.to_vec();
                sorted.sort_unstable();
                sorted
            });
            let places = [0, 1].map(|set: usize| {
                let place = |id| sorted[set].partition_point(|other| other < id) as u32;
                first[set].iter().map(place).collect::<Vec<_>>()
            });
            let few = self.bring(bring, sorted.map(Ids::Some))?;
            let mut layout = Layout::new();
            let ids = [0, 1].map(|set: usize| layout.reserve::<u32>(places[set].len()));
            let best = Best::plan(&mut layout, asked.k);
            let temp = workspace.carve(stream, &layout, "top-k distance join")?;
            let ids = ids.map(|ids| temp.view(ids));
            for set in 0..2 {
                temp.upload(stream, ids[set], &places[set])?;
            }
            let are_all = [0, 1].map(|set: usize| places[set].len() == lens[set]);
            let (on, ids) = (few.on().map(|set| set.on()), ids.map(|ids| ids.read_only()));
            // SAFETY: buffers wait for the device before they are freed, and the memory is the plan's own.
            let found =
                unsafe { nested::of_chosen(asked, &temp, &best, on, ids, are_all, of_rank(limit.0)) }?;
            Ok(match found {
                Found::All(pairs) => Found::All(pairs.into_iter().map(|pair| few.global(pair)).collect()),
                found => found,
            })
        })
    }

    /// The points of a set with the best scores, the best first.
    fn best_ids(
        &self,
        asked: &Asked<'_, C>,
        workspace: &mut Workspace,
        bring: &mut Bring<'_>,
        set: usize,
        most: usize,
        bytes: u64,
    ) -> Result<Vec<u32>> {
        let (scores, stream, order) = (self.scores[set], asked.stream, nested::best_keys(asked, set));
        let plan = |len: usize| {
            let mut layout = Layout::new();
            let top = Top::plan(&mut layout, S::TYPE, len, most.min(len));
            (top, layout)
        };
        let mut len = scores.len();
        while len > most && plan(len).1.bytes() + size_of_val(&scores[..len]) as u64 > bytes {
            len /= 2;
        }
        let mut ids = Vec::new();
        for (i, scores) in scores.chunks(len).enumerate() {
            let on = bring.items(scores, 1, &Ids::First(scores.len()), "scores of a join")?;
            let (top, layout) = plan(scores.len());
            let temp = workspace.carve(stream, &layout, "best scores of a join")?;
            // SAFETY: buffers wait for the device before they are freed, and the memory is the plan's own.
            let places = unsafe {
                let places = top.run(stream, &temp, words(&on), S::TYPE, order)?;
                stream.read(places)?
            };
            ids.extend(places.into_iter().map(|place| (i * len) as u32 + place));
        }
        if len < scores.len() {
            let key = |id: u32| {
                let rank = scores[id as usize].score_rank();
                (if order == BestKeys::Largest { !rank } else { rank }, id)
            };
            ids.sort_unstable_by_key(|&id| key(id));
            ids.truncate(most);
        }
        Ok(ids)
    }

    /// Those of the points that may be of a pair that is not behind a limit.
    fn that_may_be_of(&self, ids: [Ids; 2], limit: Bits128) -> Result<[Ids; 2]> {
        if limit.0 == u64::MAX {
            return Ok(ids);
        }
        let num = ids[0].len() + ids[1].len();
        memory::check((num * size_of::<u32>()) as u64, "points of a join that are looked at")?;
        let extremes = [0, 1].map(|set| match self.extremes[set].get() {
            Some(extremes) => *extremes,
            None => {
                // Not while others wait for it: threads of a pool take up other work in between, which may come to here.
                let extremes = extremes(self.scores[set]);
                *self.extremes[set].get_or_init(|| extremes)
            }
        });
        // With either the least or the greatest score of the others a point makes the best pair, by every function.
        let may_be_of = |set: usize, id: usize| {
            let own = self.scores[set][id].score_rank();
            extremes[1 - set].iter().any(|&other| {
                let (left, right) = if set == 0 { (own, other) } else { (other, own) };
                self.scoring.rank(left, right) >= !limit.0
            })
        };
        Ok([0, 1].map(|set| ids[set].filter(|id| may_be_of(set, id))))
    }

    fn bring(&self, bring: &mut Bring<'_>, ids: [Ids; 2]) -> Result<Brought<C, S>> {
        let mut coords = |set: usize| bring.items(self.coords[set], self.dims, &ids[set], "points of a join");
        let coords = [coords(0)?, coords(1)?];
        let mut scores = |set: usize| bring.items(self.scores[set], 1, &ids[set], "scores of a join");
        let scores = [scores(0)?, scores(1)?];
        Ok(Brought { ids, coords, scores })
    }
}

/// Some points of both sets on the device.
struct Brought<C, S> {
    ids: [Ids; 2],
    coords: [Buffer<C>; 2],
    scores: [Buffer<S>; 2],
}

impl<C: Coord, S: Score> Brought<C, S> {
    fn on(&self) -> [DeviceScored<'_, C, S>; 2] {
        [0, 1].map(|set| DeviceScored { coords: &self.coords[set], scores: &self.scores[set] })
    }

    /// A pair of them by its ids in the whole sets.
    fn global(&self, pair: Bits128) -> Bits128 {
        let id = |set: usize, id: u64| self.ids[set].get(id as usize) as u64;
        Bits128(pair.0, id(0, pair.1 >> 32) << 32 | id(1, pair.1 & u64::from(u32::MAX)))
    }
}

/// How arrays come to the device.
struct Bring<'a> {
    gpu: &'a Gpu,
    stream: &'a Stream,
    staging: Option<Staging>,
}

impl Bring<'_> {
    /// `width` items of each of some points.
    fn items<T: DeviceCopy + Pod + Send + Sync>(
        &mut self,
        from: &[T],
        width: usize,
        ids: &Ids,
        label: &'static str,
    ) -> Result<Buffer<T>> {
        let len = ids.len() * width;
        let make = |first: usize, to: &mut [MaybeUninit<T>]| match ids {
            Ids::First(_) => {
                to.write_copy_of_slice(&from[first * width..][..to.len()]);
            }
            Ids::Some(ids) => {
                for (to, &id) in to.chunks_exact_mut(width).zip(&ids[first..]) {
                    to.write_copy_of_slice(&from[id as usize * width..][..width]);
                }
            }
        };
        if len * size_of::<T>() >= STAGED {
            let staging = match &mut self.staging {
                Some(staging) => staging,
                none => none.insert(Staging::new(self.gpu)?),
            };
            return staging.upload(ids.len(), width, label, make);
        }
        if let Ids::First(_) = ids {
            return Buffer::from_slice(self.stream, &from[..len], label);
        }
        let mut items: Vec<T> = vec_with_capacity(len, label)?;
        make(0, &mut items.spare_capacity_mut()[..len]);
        // SAFETY: they have been written.
        unsafe { items.set_len(len) };
        Buffer::from_slice(self.stream, &items, label)
    }
}

/// What a join takes of the device's memory.
struct Need<'a> {
    dims: usize,
    lookup: Lookup,
    planned: Planned<'a>,
    point_bytes: usize,
}

impl<'a> Need<'a> {
    fn new<C: Coord, S: Score>(asked: &Asked<'a, C>, strategy: Strategy) -> Self {
        let &Asked { dims, near, k, result_bytes, best_points, scoring, .. } = asked;
        let planned = Planned { k, strategy, result_bytes, best_points, scoring, of: S::TYPE };
        Self { dims, lookup: near.lookup, planned, point_bytes: dims * size_of::<C>() + size_of::<S>() }
    }

    /// Bytes for sets of so many points, of which there are two generations: one is joined while the next is brought.
    fn of<C: Coord>(&self, lens: [usize; 2]) -> u64 {
        let needs = Needs::most(self.dims, lens, self.lookup);
        // Of a strategy that is too much to ask for it has been said before.
        let (strategy, bytes) = needs.of_best::<C>(&self.planned).unwrap_or((Strategy::Auto, 0));
        // How many pairs there are to filter nobody knows.
        let bytes = if strategy == Strategy::Filter { bytes.saturating_mul(2) } else { bytes };
        let points = (lens[0] as u64 + lens[1] as u64).saturating_mul(2 * self.point_bytes as u64);
        bytes.saturating_add(points)
    }
}

/// How two sets are joined.
enum Parts<'a> {
    /// All of them at once.
    Whole([Ids; 2]),
    Slabs(InSlabs<'a>),
}

/// Two sets in slabs.
struct InSlabs<'a> {
    need: Need<'a>,
    bytes: u64,
    num: usize,
    lists: [Lists; 2],
}

impl<'a> Parts<'a> {
    fn new<C: Coord>(
        need: Need<'a>,
        bytes: u64,
        near: &Near<C>,
        coords: [&[C]; 2],
        ids: [Ids; 2],
    ) -> Result<Self> {
        let (dims, lens) = (need.dims, [ids[0].len(), ids[1].len()]);
        let (all, none) = (need.of::<C>(lens), need.of::<C>([0, 0]));
        if all <= bytes {
            return Ok(Self::Whole(ids));
        }
        // A quarter more slabs than there is room for, since there are left points in several of them.
        let num = (all - none).saturating_mul(5) / 4 / bytes.saturating_sub(none).max(1) + 2;
        let reach = reach(near);
        let slabs = Slabs::new(num.min(MOST_SLABS) as usize, dims, coords, [&ids[0], &ids[1]], reach);
        let sort = |set: usize| slabs.sort(dims, coords[set], &ids[set], set == 0);
        let lists = [sort(0)?, sort(1)?];
        Ok(Self::Slabs(InSlabs { need, bytes, num: slabs.len(), lists }))
    }
}

impl InSlabs<'_> {
    /// Calls `take` with the points of each part: a pair of points that are near each other is in one of them.
    fn each<C: Coord>(&self, mut take: impl FnMut([Ids; 2]) -> ControlFlow<()>) {
        for slab in 0..self.num {
            let sets = [self.lists[0].ids(slab), self.lists[1].ids(slab)];
            if self.of_slab::<C>(sets, &mut take).is_break() {
                return;
            }
        }
    }

    /// The same for a slab: as it is, or each part of one set with each part of the other if too many points are near each other.
    fn of_slab<C: Coord>(
        &self,
        sets: [Ids; 2],
        mut take: impl FnMut([Ids; 2]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let lens = [sets[0].len(), sets[1].len()];
        let mut part = lens.map(|len| len.max(1));
        if self.need.of::<C>(part) <= self.bytes {
            return take(sets);
        }
        while self.need.of::<C>(part) > self.bytes && part != [1, 1] {
            let larger = usize::from(part[1] > part[0]);
            part[larger] = part[larger].div_ceil(2);
        }
        for left in (0..lens[0]).step_by(part[0]) {
            for right in (0..lens[1]).step_by(part[1]) {
                let len = |set: usize, begin: usize| part[set].min(lens[set] - begin);
                take([sets[0].part(left, len(0, left)), sets[1].part(right, len(1, right))])?;
            }
        }
        ControlFlow::Continue(())
    }
}
