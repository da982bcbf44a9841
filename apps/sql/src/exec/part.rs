//! A part of the right side in memory, and its index.

use super::side::{Shapes, Side};
use crate::error::from_kauri;
use datafusion::error::Result;
use kauri::{Device, KdTree, KdTreeOptions, LonLat, Point};
use std::sync::OnceLock;

/// A point of a join, whose index has `f64` coordinates.
pub(super) trait JoinPoint: Point<Coord = f64> {
    /// Returns the distance of a squared distance of the index.
    fn distance(dist2: f64) -> f64;
}

impl JoinPoint for [f64; 2] {
    fn distance(dist2: f64) -> f64 {
        dist2.sqrt()
    }
}

impl JoinPoint for LonLat {
    fn distance(dist2: f64) -> f64 {
        Self::chord2_to_meters(dist2)
    }
}

/// A tree over points.
#[derive(Debug)]
pub(super) enum Tree {
    Planar(KdTree<[f64; 2]>),
    LonLat(KdTree<LonLat>),
}

/// Rows of the right side, and their index once it is needed.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) side: Side,
    pub(super) device: Device,
    tree: OnceLock<Option<Tree>>,
}

impl Part {
    pub(super) fn new(side: Side, device: Device) -> Self {
        Self { side, device, tree: OnceLock::new() }
    }

    /// Returns the tree over the points, which the first call builds; `None` for boxes.
    pub(super) fn tree(&self) -> Result<Option<&Tree>> {
        if let Some(tree) = self.tree.get() {
            return Ok(tree.as_ref());
        }
        // Threads that come at the same time build it twice; one tree is kept.
        let options = KdTreeOptions::default();
        let tree = match &self.side.shapes {
            Shapes::Planar(points) => {
                KdTree::build(&self.device, points, &options).map(|tree| Some(Tree::Planar(tree)))
            }
            Shapes::LonLat(points) => {
                KdTree::build(&self.device, points, &options).map(|tree| Some(Tree::LonLat(tree)))
            }
            Shapes::Boxes(_) => Ok(None),
        };
        let tree = tree.map_err(from_kauri)?;
        Ok(self.tree.get_or_init(|| tree).as_ref())
    }

    /// Returns true if the tree has been built.
    pub(super) fn has_tree(&self) -> bool {
        self.tree.get().is_some()
    }
}

/// Returns the bytes of the index over this many geometries, and of the memory that its build takes.
pub(super) fn index_bytes(device: &Device, rows: usize, is_boxes: bool) -> usize {
    if is_boxes {
        return 64 * rows;
    }
    let plan = KdTree::<LonLat>::plan(device, rows, &KdTreeOptions::default());
    (plan.tree_bytes + plan.temp_bytes) as usize
}
