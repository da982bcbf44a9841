//! Balanced trees over several GPUs, or in halves on one (Robinson, after Tanasic et al.).
//!
//! Every part of the points is sorted on the first axis where it is, and cleared of points that are equal. Parts then exchange what it
//! takes for each to have a range of the whole order, so that equal points meet, and of those the first stays. From there on a group of
//! parts has the points of one subtree: its median becomes a node, the points before it go to the first half of the parts and those
//! behind it to the others, until a part has a subtree for itself. That is built where it is, by the builders of one device: its
//! coordinates lie in columns of which the first is the axis of the subtree's level.
//!
//! A step takes a thread a part, and ends when all are done; so an error in one waits for the others, whose devices stay usable.

mod exchange;
mod part;
mod points;
mod ranks;
mod tree;

use kauri_kernels::balanced::Run;
use kauri_kernels::thread::coord::Coord;
use rayon::prelude::*;
use std::cmp::Ordering;
use std::ops::Range;

use crate::balanced::BalancedOptions;
use crate::balanced::gpu::GpuTree;
use crate::device::{Buffer, Gpu};
use crate::error::Result;
use crate::memory;
use crate::stats::Stats;
use crate::threads::{both, each};
use exchange::{Piece, even, exchange, moves};
use part::{Part, Renamed};
use ranks::{cuts, whole};
pub(crate) use tree::MultiGpuTree;
use tree::Parts;

/// A node above the parts.
pub(crate) struct Top<C> {
    level: u32,
    address: u32,
    id: u32,
    coords: Vec<C>,
}

/// A subtree that is a tree of its own, on a device.
pub(crate) struct Subtree<C> {
    level: u32,
    address: u32,
    /// Its ids are positions in the names.
    tree: GpuTree<C>,
    names: Buffer<u32>,
}

/// What became of a group of parts.
struct Grown<C> {
    tops: Vec<Top<C>>,
    subtrees: Vec<Subtree<C>>,
    stats: Stats,
}

/// Where a group of parts is in the tree.
#[derive(Clone, Copy)]
struct Place {
    level: u32,
    address: u32,
}

/// Most points of one of so many parts, if all are distinct: those of a whole subtree.
pub(crate) fn most_points(num_points: usize, num_gpus: usize) -> usize {
    num_points.div_ceil(1 << num_gpus.max(2).ilog2())
}

/// Temporary bytes of a part with so many points.
pub(crate) fn temp_bytes<C: Coord>(num_points: usize, dims: usize, options: &BalancedOptions) -> u64 {
    part::temp_bytes::<C>(num_points, dims, options)
}

/// Compares points by the super key that begins with a column.
fn compare<C: Coord>(a: &[C], b: &[C], column: usize) -> Ordering {
    let columns = (column..a.len()).chain(0..column);
    let by_column = |column: usize| a[column].key().cmp(&b[column].key());
    columns.map(by_column).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

impl<C: Coord> MultiGpuTree<C> {
    /// Builds the tree over points on one GPU, in halves, or on several, a part on each.
    pub(crate) fn build(
        gpus: &[Gpu],
        coords: &[C],
        dims: usize,
        options: &BalancedOptions,
        stats: &mut Stats,
    ) -> Result<Self> {
        let gpus = if let [gpu] = gpus { &[gpu.clone(), gpu.clone()] } else { gpus };
        let num_points = coords.len() / dims;
        let chunks = even(num_points, gpus.len());
        let places = places(Place { level: 0, address: 0 }, gpus.len());
        let mut parts = stats.phase("init", || {
            each(gpus.iter().zip(chunks).zip(places), |((gpu, chunk), Place { level, address })| {
                let of_chunk = &coords[chunk.start * dims..chunk.end * dims];
                // As many as there will be if all are distinct.
                let in_subtree = Run::len_of(address, level, num_points as u32) as usize;
                Part::upload(gpu, of_chunk, chunk.start as u32, dims, in_subtree, options)
            })
        })?;
        let mut stays = Stays { num_points, ids: Vec::new() };
        stats.phase("sort", || {
            each(&mut parts, Part::sort_distinct)?;
            parts.iter_mut().try_for_each(|part| stays.rename(&part.take_renamed()))
        })?;
        let pieces = stats.phase("exchange", || {
            let pieces = ranges(&mut parts)?;
            exchange(&mut parts, &pieces, |_, part, len| part.room(len))?;
            Ok(pieces)
        })?;
        stats.phase("dedupe", || {
            each(parts.iter_mut().zip(&pieces), |(part, pieces)| {
                part.merge_distinct(pieces.iter().map(|piece| piece.range.len()))
            })?;
            parts.iter_mut().try_for_each(|part| stays.rename(&part.take_renamed()))?;
            stays.settle()
        })?;
        let num_nodes = parts.iter().map(Part::len).sum();
        let root = Place { level: 0, address: 0 };
        let grown = grow(&mut parts, root, options)?;
        stats.phases.extend(grown.stats.phases);
        stats.temp_bytes = parts.iter().map(Part::temp_bytes).max().unwrap_or(0);
        let Grown { tops, subtrees, .. } = grown;
        Ok(Parts { dims, num_points, num_nodes, tops, subtrees, stays: stays.ids }.into())
    }
}

/// The subtrees that so many parts below a place have at last.
fn places(place: Place, num_parts: usize) -> Vec<Place> {
    if num_parts == 1 {
        return vec![place];
    }
    let num_less = num_parts.div_ceil(2);
    let child = |side, num_parts| {
        places(Place { level: place.level + 1, address: 2 * place.address + side }, num_parts)
    };
    [child(0, num_less), child(1, num_parts - num_less)].concat()
}

/// Which points stay for which, while that is found out.
struct Stays {
    num_points: usize,
    /// Of each point; empty while all stay.
    ids: Vec<u32>,
}

impl Stays {
    /// Others stay for some points that have stayed so far.
    fn rename(&mut self, renamed: &[Renamed]) -> Result<()> {
        if !renamed.is_empty() && self.ids.is_empty() {
            self.ids = memory::vec_with_capacity(self.num_points, "points that stay")?;
            self.ids.extend(0..self.num_points as u32);
        }
        for &Renamed { id, stays } in renamed {
            self.ids[id as usize] = stays;
        }
        Ok(())
    }

    /// What stayed for points and has gone itself since has one that stays for both.
    fn settle(&mut self) -> Result<()> {
        let mut settled = memory::vec_with_capacity(self.ids.len(), "points that stay")?;
        self.ids.par_iter().map(|&stays| self.ids[stays as usize]).collect_into_vec(&mut settled);
        self.ids = settled;
        Ok(())
    }
}

/// Ranges of all points, nearly equal ones, a part each, as they lie in the parts: equal points are in one.
fn ranges<C: Coord>(parts: &mut [Part<C>]) -> Result<Vec<Vec<Piece>>> {
    let lens: Vec<_> = parts.iter().map(Part::len).collect();
    let ranks: Vec<_> = even(lens.iter().sum(), parts.len()).skip(1).map(|range| range.start).collect();
    let compare = |a: &[C], b: &[C]| compare(a, b, 0);
    let mut cuts = cuts(&lens, &ranks, &compare, |part, places| parts[part].look(places))?;
    for cut in &mut cuts {
        whole(&lens, cut, &compare, |part, places| parts[part].look(places))?;
    }
    let begins = std::iter::once(vec![0; lens.len()]).chain(cuts.iter().cloned());
    let ends = cuts.iter().cloned().chain([lens.clone()]);
    let pieces = |(begins, ends): (Vec<usize>, Vec<usize>)| {
        let ranges = begins.into_iter().zip(ends).map(|(begin, end)| begin..end);
        ranges.enumerate().map(|(source, range)| Piece { source, range }).collect()
    };
    Ok(begins.zip(ends).map(pieces).collect())
}

/// Makes the nodes of a group of parts, which have the points of a subtree in the columns of its level; those of the root are sorted
/// already, and in the columns of level 1.
fn grow<C: Coord>(parts: &mut [Part<C>], place: Place, options: &BalancedOptions) -> Result<Grown<C>> {
    let Place { level, address } = place;
    let mut stats = Stats::default();
    if let [part] = parts {
        let (tree, names) = part.build(options, &mut stats)?;
        return Ok(Grown {
            tops: Vec::new(),
            subtrees: vec![Subtree { level, address, tree, names }],
            stats,
        });
    }
    if level > 0 {
        stats.phase("sort", || each(&mut *parts, Part::sort))?;
    }
    let num_less = parts.len().div_ceil(2);
    let top = stats.phase("exchange", || {
        let split = split(parts)?;
        let (less, greater) = (split.less(), split.greater(parts));
        let all = [moves(&less, 0..num_less), moves(&greater, num_less..parts.len())].concat();
        // A part that has a subtree for itself keeps the room.
        let is_last = |i: usize| if i < num_less { num_less == 1 } else { all.len() - num_less == 1 };
        exchange(parts, &all, |i, part, len| if is_last(i) { part.own_room(len) } else { part.room(len) })?;
        Ok(split.median)
    })?;
    let (less, greater) = parts.split_at_mut(num_less);
    let child = |side| Place { level: level + 1, address: 2 * address + side };
    let (less, greater) = both(|| grow(less, child(0), options), || grow(greater, child(1), options))?;
    // Of what is done side by side the longer counts.
    let longer = if less.stats.total() > greater.stats.total() { less.stats } else { greater.stats };
    stats.phases.extend(longer.phases);
    let top = top.map(|(id, mut coords)| {
        // They are in the columns of the next level.
        let dims = coords.len();
        coords.rotate_right((level as usize + 1) % dims);
        Top { level, address, id, coords }
    });
    let tops = top.into_iter().chain(less.tops).chain(greater.tops).collect();
    let subtrees = less.subtrees.into_iter().chain(greater.subtrees).collect();
    Ok(Grown { tops, subtrees, stats })
}

/// Where the median cuts the parts of a group, which are sorted.
struct Split<C> {
    /// Of each part how many points come before the median.
    num_less: Vec<usize>,
    /// The part that has it.
    holder: usize,
    /// Its id and its coordinates, unless there are no points.
    median: Option<(u32, Vec<C>)>,
}

impl<C: Coord> Split<C> {
    /// What comes before the median, a range a part.
    fn less(&self) -> Vec<Range<usize>> {
        self.num_less.iter().map(|&end| 0..end).collect()
    }

    /// What comes behind it.
    fn greater(&self, parts: &[Part<C>]) -> Vec<Range<usize>> {
        let begin =
            |part: usize| self.num_less[part] + usize::from(self.median.is_some() && part == self.holder);
        parts.iter().enumerate().map(|(i, part)| begin(i)..part.len()).collect()
    }
}

/// Finds the median of a group of parts, which are sorted and in the columns of the next level.
fn split<C: Coord>(parts: &mut [Part<C>]) -> Result<Split<C>> {
    let lens: Vec<_> = parts.iter().map(Part::len).collect();
    let len = lens.iter().sum::<usize>();
    let rank = Run { begin: 0, len: len as u32 }.num_less() as usize;
    let compare = |a: &[C], b: &[C]| compare(a, b, a.len() - 1);
    let cut = cuts(&lens, &[rank], &compare, |part, places| parts[part].look(places))?;
    let num_less = cut.into_iter().next().unwrap_or_default();
    let mut median: Option<(usize, Vec<C>)> = None;
    for (part, &place) in num_less.iter().enumerate().filter(|&(part, &place)| place < lens[part]) {
        let point = parts[part].look(&[place as u32])?;
        if median.as_ref().is_none_or(|(_, least)| compare(&point, least).is_lt()) {
            median = Some((part, point));
        }
    }
    Ok(match median {
        None => Split { num_less, holder: 0, median: None },
        Some((holder, coords)) => {
            let id = parts[holder].name(num_less[holder])?;
            Split { num_less, holder, median: Some((id, coords)) }
        }
    })
}
