//! How trees are built, and how rays go through them.

use crate::error::{Error, Result};

/// How a tree is built.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SahOptions {
    /// How much time a build may take for a better tree.
    pub quality: Quality,
    /// What a step through a node costs, in tests of a triangle: Zhou's C_ts. Not negative; 1 by default.
    pub step_cost: f32,
    /// Empty space at a side of a large node is cut off if it is longer than this fraction of the node: 0.25 by default; none is from 1 on.
    pub empty_space: f32,
    /// Whether a triangle that a plane cuts has on each side the box of its part there, so that fewer leaves have it: the tree is better, and takes
    /// longer. False by default.
    pub clip: bool,
    /// How a GPU does it, to compare.
    #[doc(hidden)]
    pub stages: StagesOptions,
}

/// Ways through the stages of a GPU's build, to compare; the tree is the same.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StagesOptions {
    /// Triangles find their places by segmented scans of what chunks count, not by atomics.
    pub sort_by_scans: bool,
    /// Boxes of nodes are made by segmented reductions of those of chunks, not by atomics.
    pub boxes_by_reductions: bool,
    /// Blocks put values together in shared memory, not from lane to lane.
    pub by_shared_memory: bool,
    /// Small nodes split level by level with masks in device memory, as in the paper, not a root at a time in shared memory.
    pub small_by_levels: bool,
    /// There candidates are records of 20 bytes, not an array of planes and one of masks.
    pub records: bool,
    /// Most bytes of these candidates at a time.
    pub candidate_bytes: usize,
}

impl Default for StagesOptions {
    fn default() -> Self {
        Self {
            sort_by_scans: false,
            boxes_by_reductions: false,
            by_shared_memory: false,
            small_by_levels: false,
            records: false,
            candidate_bytes: 1 << 29,
        }
    }
}

/// How good a tree is, and how long it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Quality {
    /// Large nodes split in the middle, small ones where it costs least: for trees that are built anew for every frame.
    #[default]
    Fast,
    /// Every node splits where it costs least. Built by the CPU, for a GPU too.
    Exact,
}

impl Default for SahOptions {
    fn default() -> Self {
        Self {
            quality: Quality::default(),
            step_cost: 1.0,
            empty_space: 0.25,
            clip: false,
            stages: StagesOptions::default(),
        }
    }
}

impl SahOptions {
    /// With this quality.
    pub fn quality(mut self, quality: Quality) -> Self {
        self.quality = quality;
        self
    }

    /// With a step that costs so much.
    pub fn step_cost(mut self, step_cost: f32) -> Self {
        self.step_cost = step_cost;
        self
    }

    /// With empty space cut off from this fraction on.
    pub fn empty_space(mut self, empty_space: f32) -> Self {
        self.empty_space = empty_space;
        self
    }

    /// With boxes of parts of triangles.
    pub fn clip(mut self, clip: bool) -> Self {
        self.clip = clip;
        self
    }

    pub(super) fn check(&self) -> Result<()> {
        let lengths = [("cost of a step", self.step_cost), ("fraction of empty space", self.empty_space)];
        match lengths.into_iter().find(|(_, value)| !(*value >= 0.0 && value.is_finite())) {
            Some((what, value)) => Err(Error::InvalidLength { what, value: value.into() }),
            None => Ok(()),
        }
    }
}

/// How rays go through a tree: hits are the same.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RayOptions {
    /// Whether a GPU takes them in the order of where they begin and where they go, which it finds out first. That is faster for rays that lie in no order
    /// and go deep into a tree, as from anywhere to anywhere, and for shadows; rays of a picture, and short ones from places that follow each
    /// other, are in a good order as they are. False by default; a CPU takes rays as they come.
    pub sorted: bool,
    /// Entries of the short stack of a ray: 0, or 4 by default. On overflow, traversal restarts from the root. The CPU has 32 entries in place of 4.
    pub stack: u32,
}

impl Default for RayOptions {
    fn default() -> Self {
        Self { sorted: false, stack: 4 }
    }
}

impl RayOptions {
    /// With rays in another order, or not.
    pub fn sorted(mut self, sorted: bool) -> Self {
        self.sorted = sorted;
        self
    }

    /// With a short stack of this many entries.
    pub fn stack(mut self, entries: u32) -> Self {
        self.stack = entries;
        self
    }

    pub(super) fn check(&self) -> Result<()> {
        if ![0, 4].contains(&self.stack) {
            let what = "entries of the short stack of a ray (0 or 4)";
            return Err(Error::OutOfRange { what, value: self.stack.into(), least: 0, most: 4 });
        }
        Ok(())
    }
}
