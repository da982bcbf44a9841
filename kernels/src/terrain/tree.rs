//! Searches in a bucket index over positions.
//!
//! On a GPU the searches of a warp go through the tree together: a node is entered if any lane wants to, and each lane looks at every point of a
//! bucket. The searches of a warp are near each other, so most of these points matter to most lanes, and no lane waits for another
//! (packet traversal: Wald, Slusallek, Benthin, Wagner 2001). On the CPU a search is alone.
//!
//! A search starts at the root, or at the bucket of a point and climbs from there: the siblings on the path are pending from the beginning.
//! A bit of the level marks a pending sibling. Its box is compared with the bounds when its turn comes, because bounds shrink meanwhile.

use super::known::Known;
use crate::block::tile::load_16;
use crate::query::buckets::{BucketLayout, Index};
use crate::warp::shuffle::shuffle_idx;
use cuda_std::prelude::*;

/// The least and the greatest corner of a box, borders included.
pub type Corners = [[i32; 2]; 2];

/// The searches that go through a tree together.
pub trait Lanes {
    /// True if the condition holds for any of the searches.
    ///
    /// # Safety
    /// All searches call it.
    unsafe fn any(condition: bool) -> bool;
    /// True if the first condition holds for more searches than the second one.
    ///
    /// # Safety
    /// All searches call it.
    unsafe fn more(first: bool, second: bool) -> bool;
    /// Returns the number of the first search that has one.
    ///
    /// # Safety
    /// All searches call it.
    unsafe fn first(number: Option<u32>) -> Option<u32>;
}

/// The searches of the lanes of a warp.
pub struct Warp;

impl Lanes for Warp {
    #[inline(always)]
    unsafe fn any(condition: bool) -> bool {
        warp::warp_vote_any(warp::FULL_MASK, condition)
    }

    #[inline(always)]
    unsafe fn more(first: bool, second: bool) -> bool {
        let [first, second] =
            [first, second].map(|condition| warp::warp_vote_ballot(warp::FULL_MASK, condition).count_ones());
        first > second
    }

    #[inline(always)]
    unsafe fn first(number: Option<u32>) -> Option<u32> {
        let lanes = warp::warp_vote_ballot(warp::FULL_MASK, number.is_some());
        let first = shuffle_idx(number.unwrap_or(0), lanes.trailing_zeros() & 31);
        (lanes != 0).then_some(first)
    }
}

/// One search.
pub struct Alone;

impl Lanes for Alone {
    unsafe fn any(condition: bool) -> bool {
        condition
    }

    unsafe fn more(first: bool, second: bool) -> bool {
        first && !second
    }

    unsafe fn first(number: Option<u32>) -> Option<u32> {
        number
    }
}

/// The points of a cloud, or some of them, with heights.
pub trait Points: Copy {
    /// The searches that go together.
    type Lanes: Lanes;

    /// Returns the position of a slot.
    ///
    /// # Safety
    /// There is such a slot.
    unsafe fn position(&self, slot: u32) -> [i32; 2];
    /// Returns the height of a slot.
    ///
    /// # Safety
    /// There is such a slot.
    unsafe fn height(&self, slot: u32) -> i32;
    /// Visits every point that may be within the search's bound. Slot `start` is a hint where the first ones are.
    ///
    /// # Safety
    /// There is a slot `start`; all lanes call it.
    unsafe fn search<S: Search>(&self, start: Option<u32>, search: &mut S);
    /// Returns where these are all points of the cloud.
    fn known(&self) -> &Known;

    /// Returns [`Missing::Unresolved`] unless these are all points of the cloud in a disk.
    #[inline(always)]
    fn check_disk(&self, center: [f64; 2], radius: f64) -> Result<(), Missing> {
        // More than the rounding errors.
        let radius = radius * (1.0 + SLACK) + 1.0;
        if self.known().covers_disk(center, radius) { Ok(()) } else { Err(Missing::Unresolved) }
    }
}

/// Rounding errors are less than this part of the magnitudes of the terms.
pub(super) const SLACK: f64 = 1.0 / (1_u64 << 48) as f64;

/// Why there is no height.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The method defines none.
    NoValue,
    /// It depends on points of the cloud that are not among these.
    Unresolved,
}

/// Positions in buckets, and the boxes above them, in the memory of some device.
pub trait PointTree {
    /// Returns the runs of the nodes.
    fn layout(&self) -> BucketLayout;
    /// Loads a position.
    ///
    /// # Safety
    /// There is such a position.
    unsafe fn position(&self, slot: u32) -> [i32; 2];
    /// Loads the box of the left or the right child of a node above the buckets.
    ///
    /// # Safety
    /// There is such a node.
    unsafe fn child(&self, node: u32, is_right: bool) -> Corners;
}

/// All points of a cloud, or those of a part of it, in device memory.
#[derive(Clone, Copy, KernelArgs)]
pub struct DevicePoints<'a> {
    /// The positions in their order.
    pub index: crate::query::buckets::Index<'a, i32>,
    /// The height of each position.
    pub heights: Slice<'a, i32>,
    /// Where these are all points of the cloud.
    pub known: crate::terrain::known::Known,
}

impl Points for DevicePoints<'_> {
    type Lanes = Warp;

    #[inline(always)]
    unsafe fn position(&self, slot: u32) -> [i32; 2] {
        self.index.position(slot)
    }

    #[inline(always)]
    unsafe fn height(&self, slot: u32) -> i32 {
        self.heights.load(slot as usize)
    }

    #[inline(always)]
    unsafe fn search<S: Search>(&self, start: Option<u32>, search: &mut S) {
        search_tree::<Warp, _, _>(&self.index, start, search);
    }

    #[inline(always)]
    fn known(&self) -> &Known {
        &self.known
    }
}

impl PointTree for Index<'_, i32> {
    #[inline(always)]
    fn layout(&self) -> BucketLayout {
        BucketLayout::left_balanced(self.ids.len() as u32)
    }

    #[inline(always)]
    unsafe fn position(&self, slot: u32) -> [i32; 2] {
        let pairs = Slice::<u64>::from_raw_parts(self.coords.as_ptr().cast(), self.coords.len() / 2);
        let pair = pairs.load(slot as usize);
        [pair as u32 as i32, (pair >> 32) as u32 as i32]
    }

    #[inline(always)]
    unsafe fn child(&self, node: u32, is_right: bool) -> Corners {
        let [low_x, low_y, high_x, high_y] =
            load_16(self.boxes, 8 * node as usize + if is_right { 4 } else { 0 });
        [[low_x, low_y], [high_x, high_y]]
    }
}

/// A search: the bound within which it looks, and what it has found.
pub trait Search {
    /// The order of boxes and the bound, such as a squared distance.
    type Key: Copy + PartialOrd;

    /// Returns the bound: boxes with greater keys are skipped.
    fn bound(&self) -> Self::Key;
    /// Returns the key of a box; NaN to skip it.
    fn key(&self, corners: Corners) -> Self::Key;
    /// Takes a point.
    fn visit(&mut self, slot: u32, position: [i32; 2]);
}

/// Visits every point of a tree that may be within the search's bound, from the bucket of slot `start`, or from the root if that is `None`.
///
/// # Safety
/// The tree has a slot `start`; all lanes call it.
#[inline(always)]
pub unsafe fn search_tree<L: Lanes, T: PointTree, S: Search>(tree: &T, start: Option<u32>, search: &mut S) {
    let layout = tree.layout();
    // The path code of a node is 1 for the root; below the leading bit, one bit for each level, 1 for right.
    let (mut code, mut level, mut pending) = (1_u32, 0_u32, 0_u32);
    if let Some(slot) = L::first(start) {
        level = layout.levels;
        code = 1 << level | layout.bucket_of(slot);
        pending = (1 << level) - 1;
    }
    loop {
        let mut is_entered = false;
        if level == layout.levels {
            let first = code - (1 << level);
            let (begin, end) = (layout.begin(first, level), layout.begin(first + 1, level));
            let mut slot = begin;
            while slot < end {
                search.visit(slot, tree.position(slot));
                slot += 1;
            }
        } else {
            let [left, right] = [false, true].map(|is_right| search.key(tree.child(code - 1, is_right)));
            let (wants_left, wants_right) = (left <= search.bound(), right <= search.bound());
            let (enters_left, enters_right) = (L::any(wants_left), L::any(wants_right));
            is_entered = enters_left | enters_right;
            if is_entered {
                let prefers_right = wants_right && (!wants_left || right < left);
                let right_first = L::more(prefers_right, wants_left && !prefers_right);
                if enters_left & enters_right {
                    pending |= 1 << level;
                }
                let is_right = enters_right && (!enters_left || right_first);
                code = 2 * code + u32::from(is_right);
                level += 1;
            }
        }
        while !is_entered {
            if pending == 0 {
                return;
            }
            let above = 31 - pending.leading_zeros();
            pending ^= 1 << above;
            code = (code >> (level - above - 1)) ^ 1;
            level = above + 1;
            let key = search.key(tree.child(code / 2 - 1, code % 2 == 1));
            is_entered = L::any(key <= search.bound());
        }
    }
}

/// The nearest point to a position; of equally near points the one with the least slot.
#[derive(Clone, Copy, Debug)]
pub struct Nearest {
    position: [i32; 2],
    /// A slot that does not count.
    excluded: u32,
    /// The nearest slot so far, or [`NO_SLOT`].
    pub slot: u32,
    /// Its squared distance.
    pub distance2: i64,
}

/// A squared distance that no point is within.
pub const NOWHERE2: i64 = -1;

/// Stands for no point.
pub const NO_SLOT: u32 = u32::MAX;

impl Nearest {
    /// Starts a search for the point nearest to `position` and within `distance2`, other than that of slot `excluded`. Without a position
    /// none is found.
    #[inline(always)]
    pub fn new(position: Option<[i32; 2]>, excluded: u32, distance2: i64) -> Self {
        let distance2 = if position.is_some() { distance2 } else { NOWHERE2 };
        Self { position: position.unwrap_or_default(), excluded, slot: NO_SLOT, distance2 }
    }
}

impl Search for Nearest {
    type Key = i64;

    #[inline(always)]
    fn bound(&self) -> i64 {
        self.distance2
    }

    #[inline(always)]
    fn key(&self, corners: Corners) -> i64 {
        distance2_to_box(self.position, corners)
    }

    #[inline(always)]
    fn visit(&mut self, slot: u32, position: [i32; 2]) {
        let distance2 = distance2(self.position, position);
        let is_better = distance2 < self.distance2 || (distance2 == self.distance2 && slot < self.slot);
        if is_better && slot != self.excluded {
            (self.slot, self.distance2) = (slot, distance2);
        }
    }
}

/// Returns the squared distance of two positions.
#[inline(always)]
pub fn distance2(a: [i32; 2], b: [i32; 2]) -> i64 {
    let [x, y] = [0, 1].map(|axis| (b[axis] - a[axis]) as i64);
    x * x + y * y
}

/// Returns the squared distance of a position to the nearest place of a box.
#[inline(always)]
pub fn distance2_to_box(position: [i32; 2], [low, high]: Corners) -> i64 {
    let [x, y] = [0, 1].map(|axis| {
        let (below, above) = (low[axis] - position[axis], position[axis] - high[axis]);
        (if below > above { below } else { above }).max(0) as i64
    });
    x * x + y * y
}
