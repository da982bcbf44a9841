//! Balanced trees as walks see them: nodes in level order, of which some on the last level have no point.

use super::{Corners, CpuTree, points};
use crate::error::Result;
use crate::memory::{self, Items};
use crate::once::Once;
use kauri_kernels::kdtree::balanced::NONE;
use kauri_kernels::thread::coord::Coord;
use rayon::prelude::*;
use std::sync::Arc;

impl<C: Coord> CpuTree<C> {
    /// A tree of one point that has an id.
    pub(in crate::kdtree) fn of_point(coords: &[C], id: u32) -> Self {
        let (dims, coords, ids) = (coords.len(), coords.to_vec().into(), vec![id].into());
        Self {
            dims,
            coords,
            ids,
            axes: Vec::new().into(),
            given: None,
            corners: Corners::new(),
            boxes: Once::new(),
        }
    }

    /// What answers queries to a balanced tree, whose medians are in level order already, over points in the order of their ids.
    pub(in crate::kdtree) fn of_balanced(
        given: &Arc<Items<C>>,
        dims: usize,
        medians: &[u32],
    ) -> Result<Self> {
        with_dims!(dims, D => {
            let given_points = points::<C, D>(given);
            let mut nodes = memory::vec_with_capacity(medians.len(), "nodes in order of levels")?;
            // Only the last level has nodes without a point: these have their parent's, which is no farther than others.
            let point = |node: usize| match medians[node] {
                NONE => medians[(node - 1) / 2],
                id => id,
            };
            (0..medians.len()).into_par_iter().map(|node| given_points[point(node) as usize]).collect_into_vec(&mut nodes);
            let mut ids = memory::vec_with_capacity(medians.len(), "ids of the nodes")?;
            ids.extend_from_slice(medians);
            let (coords, axes, given) = (nodes.into_flattened().into(), Vec::new().into(), Some(given.clone()));
            let (ids, corners) = (ids.into(), Corners::new());
            Ok(Self { dims, coords, ids, axes, given, corners, boxes: Once::new() })
        })
    }
}
