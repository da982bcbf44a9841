//! Trees by the CPU, and rays through them.

mod exact;
mod rays;
mod refit;
mod stages;

use super::host::{HostTree, Subtree};
use super::{Quality, SahOptions};
use crate::error::Result;
use kauri_kernels::sah::aabb::Aabb;
use kauri_kernels::sah::clip::clipped;
use kauri_kernels::sah::extent::Extent;
use kauri_kernels::sah::model::{is_above, is_below};
use kauri_kernels::sah::triangle::Corners;
use rayon::prelude::*;
pub(super) use rays::{all_hits, any_hits, closest_hits};
pub(super) use refit::refit;

/// A triangle of a node: the box of it, or of its part in the node.
#[derive(Clone, Copy)]
struct Item {
    triangle: u32,
    bounds: Aabb,
}

/// The triangles that a build is about.
struct Input<'a> {
    corners: &'a [Corners],
    options: &'a SahOptions,
}

impl Input<'_> {
    /// The triangles on each side of a plane, with the boxes of their parts there.
    fn halves(&self, items: &[Item], axis: u32, plane: f32) -> [Vec<Item>; 2] {
        let half = |side: usize| {
            let part = |item: &Item| self.part(item, axis, plane, side == 1);
            if items.len() > MANY {
                items.par_iter().filter_map(part).collect()
            } else {
                items.iter().filter_map(part).collect()
            }
        };
        [half(0), half(1)]
    }

    /// A triangle on one side of a plane, if it is there.
    fn part(&self, item: &Item, axis: u32, plane: f32, wants_above: bool) -> Option<Item> {
        let (low, high) = (item.bounds.low[axis as usize], item.bounds.high[axis as usize]);
        let (below, above) = (is_below(low, high, plane), is_above(high, plane));
        if !(if wants_above { above } else { below }) {
            return None;
        }
        if !(self.options.clip && below && above) {
            return Some(*item);
        }
        let bounds =
            clipped(self.corners[item.triangle as usize].places(), item.bounds, axis, plane, wants_above);
        (!bounds.is_empty()).then_some(Item { bounds, ..*item })
    }
}

/// From so many triangles on a node is worth several threads.
const MANY: usize = 4096;

/// All triangles.
fn items(corners: &[Corners]) -> Vec<Item> {
    let item = |(i, corners): (usize, &Corners)| Item {
        triangle: i as u32,
        bounds: Aabb::of_corners(corners.places()),
    };
    corners.par_iter().enumerate().map(item).collect()
}

/// The box around all.
fn around(items: &[Item]) -> Aabb {
    if items.len() > MANY {
        items.par_iter().map(|item| item.bounds).reduce(|| Aabb::EMPTY, Aabb::around)
    } else {
        items.iter().fold(Aabb::EMPTY, |all, item| all.around(item.bounds))
    }
}

/// The extent of unclipped triangles.
fn extent(items: &[Item]) -> Extent {
    items.par_iter().map(|item| Extent::of(item.bounds)).reduce(|| Extent::EMPTY, Extent::around)
}

/// Builds a tree over triangles with finite corners.
pub(super) fn build(corners: Vec<Corners>, options: &SahOptions) -> Result<HostTree> {
    let items = items(&corners);
    let extent = extent(&items);
    let input = Input { corners: &corners, options };
    let root = if items.is_empty() {
        Subtree::empty()
    } else {
        match options.quality {
            Quality::Exact => exact::subtree(&input, items, extent.bounds, 0),
            Quality::Fast => stages::build(&input, items, extent.bounds),
        }
    };
    HostTree::new(&root, if corners.is_empty() { Extent::ZERO } else { extent }, corners)
}
