//! A terrain in a quadtree: cells, points, and height queries.

use std::borrow::Cow;

use super::scan::{Return, Scan};
use crate::Result;
use kauri::Lattice;
use kauri::lidar::LidarClass;
use kauri::quadtree::{NO_NODE, Node, Quadtree};

/// Points of a window, on average.
const WINDOW_POINTS: usize = 3000;

pub(super) struct Land<'a> {
    pub(super) tree: &'a Quadtree<[i32; 2]>,
    /// Maximum number of points in a leaf.
    pub(super) leaf_points: u32,
    pub(super) nodes: Cow<'a, [Node]>,
    /// The cell of each node.
    pub(super) cells: Vec<Cell>,
    /// The points in the order of the tree, in meters.
    pub(super) points: Vec<[f64; 2]>,
    /// Laser returns of the points.
    pub(super) returns: Vec<Return>,
    /// Bounding box in meters.
    pub(super) bounds: [[f64; 2]; 2],
    /// The enlarged window.
    pub(super) window: [[f64; 2]; 2],
    /// Query at the window's center, if it is inside the tree.
    pub(super) place: Option<Place>,
    lattice: Lattice,
}

/// A square, in meters.
#[derive(Clone, Copy)]
pub(super) struct Cell {
    pub(super) low: [f64; 2],
    pub(super) side: f64,
}

/// A position, and the tree's data there.
pub(super) struct Place {
    pub(super) at: [f64; 2],
    pub(super) leaf: u32,
    pub(super) around: Vec<u32>,
    /// The height of the ground, in meters.
    pub(super) height: Option<f64>,
}

impl<'a> Land<'a> {
    pub(super) fn of(scan: &Scan, tree: &'a Quadtree<[i32; 2]>, leaf_points: u32) -> Result<Self> {
        let lattice = scan.lidar.lattice();
        let nodes = tree.nodes()?;
        let [low, high] = tree.bounds(0)?.map(|corner| lattice.position(corner));
        let cells = cells(&nodes, Cell { low, side: high[0] - low[0] });
        let points: Vec<_> =
            tree.coords()?.as_chunks().0.iter().map(|&point| lattice.position(point)).collect();
        let returns = tree.payloads_in_order(&scan.returns)?;
        let bounds = scan.lidar.bounds();
        let window = varied_window(bounds, &points, &returns);
        let mut land =
            Self { tree, leaf_points, nodes, cells, points, returns, bounds, window, place: None, lattice };
        land.place = land.place([0, 1].map(|axis| (window[0][axis] + window[1][axis]) / 2.0))?;
        Ok(land)
    }

    fn place(&self, at: [f64; 2]) -> Result<Option<Place>> {
        let leaf = self.leaves_at(&[at])?[0];
        if leaf == NO_NODE {
            return Ok(None);
        }
        let around = self.tree.adjacent_leaves(&[leaf])?.values().to_vec();
        let height = self.ground(at, &[&around, [leaf].as_slice()].concat());
        Ok(Some(Place { at, leaf, around, height }))
    }

    /// Returns the leaves that contain the positions; [`NO_NODE`] outside of all leaves.
    pub(super) fn leaves_at(&self, places: &[[f64; 2]]) -> Result<Vec<u32>> {
        let places: kauri::Result<Vec<_>> = places.iter().map(|&place| self.lattice.nearest(place)).collect();
        Ok(self.tree.leaf_of(&places?)?)
    }

    /// Returns the points of a leaf, in meters, and their laser returns.
    pub(super) fn points_of(&self, leaf: u32) -> impl Iterator<Item = ([f64; 2], Return)> + '_ {
        let node = &self.nodes[leaf as usize];
        let range = node.start as usize..node.end as usize;
        self.points[range.clone()].iter().copied().zip(self.returns[range].iter().copied())
    }

    /// Returns the leaves whose cells overlap a window.
    pub(super) fn leaves_in(&self, [low, high]: [[f64; 2]; 2]) -> impl Iterator<Item = u32> + '_ {
        let reaches = move |cell: &Cell| {
            (0..2).all(|axis| cell.low[axis] < high[axis] && cell.low[axis] + cell.side > low[axis])
        };
        let leaves = (0..).zip(&*self.nodes).zip(&self.cells);
        leaves.filter(move |((_, node), cell)| node.is_leaf() && reaches(cell)).map(|((leaf, _), _)| leaf)
    }

    /// Returns the points a square meter of each node, over the scanned part of its cell.
    pub(super) fn densities(&self) -> Vec<f64> {
        let [low, high] = self.bounds;
        let density = |(node, cell): (&Node, &Cell)| {
            let side =
                |axis: usize| (cell.low[axis] + cell.side).min(high[axis]) - cell.low[axis].max(low[axis]);
            // A minimum for cells smaller than the steps of the scan.
            f64::from(node.len()) / (side(0).max(1e-6) * side(1).max(1e-6))
        };
        self.nodes.iter().zip(&self.cells).map(density).collect()
    }

    /// Returns the ground height at a position, weighted by inverse squared distances of the points in some leaves.
    fn ground(&self, at: [f64; 2], leaves: &[u32]) -> Option<f64> {
        let points = leaves.iter().flat_map(|&leaf| self.points_of(leaf));
        let (mut sum, mut weights) = (0.0, 0.0);
        for (point, back) in points.filter(|(_, back)| back.class == LidarClass::Ground) {
            // A distance of at least a millimeter, so that no weight is infinite.
            let weight = 1.0 / distance2(point, at).max(1e-6);
            sum += weight * f64::from(back.height);
            weights += weight;
        }
        (weights > 0.0).then(|| sum / weights)
    }
}

/// Returns the squared distance of two positions.
pub(super) fn distance2(a: [f64; 2], b: [f64; 2]) -> f64 {
    (a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2)
}

/// Returns the cells of all nodes; `root` is the root's cell.
fn cells(nodes: &[Node], root: Cell) -> Vec<Cell> {
    let mut cells = vec![root];
    // Children are stored in the order of their parents.
    for (i, node) in nodes.iter().enumerate() {
        if !node.is_leaf() {
            let Cell { low: [x, y], side } = cells[i];
            let side = side / 2.0;
            let corners = [[x, y], [x, y + side], [x + side, y], [x + side, y + side]];
            cells.extend(corners.map(|low| Cell { low, side }));
        }
    }
    cells
}

/// Returns the most varied window: the one with the largest minimum over ground, trees, houses and water.
fn varied_window(bounds: [[f64; 2]; 2], points: &[[f64; 2]], returns: &[Return]) -> [[f64; 2]; 2] {
    let [low, high] = bounds;
    // Number of windows along x, and along y.
    let windows = (points.len() / WINDOW_POINTS).max(1).isqrt();
    let side = [0, 1].map(|axis| (high[axis] - low[axis]) / windows as f64);
    let mut counts = vec![[0_u32; 4]; windows * windows];
    for (point, back) in points.iter().zip(returns) {
        let [column, row] =
            [0, 1].map(|axis| (((point[axis] - low[axis]) / side[axis]) as usize).min(windows - 1));
        let kind = match back.class {
            LidarClass::HighVegetation => 1,
            LidarClass::Building => 2,
            LidarClass::Water => 3,
            _ => 0,
        };
        counts[row * windows + column][kind] += 1;
    }
    let least = |window: usize| {
        let mut counts = counts[window];
        counts.sort_unstable();
        counts
    };
    let best = (0..counts.len()).max_by_key(|&window| least(window)).unwrap_or(0);
    let corner =
        |column: usize, row: usize| [low[0] + column as f64 * side[0], low[1] + row as f64 * side[1]];
    let (column, row) = (best % windows, best / windows);
    [corner(column, row), corner(column + 1, row + 1)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Steps;
    use kauri::Device;
    use kauri::lidar::Lidar;
    use kauri::quadtree::QuadtreeOptions;

    #[test]
    fn cells_are_those_of_the_tree() {
        for num_points in [0, 1, 3000] {
            let lidar = Lidar::with_density(num_points, 0.05, 2);
            let scan = Scan::of(lidar, Steps { are_shown: false }).unwrap();
            let tree = Quadtree::build(&Device::cpu(), &scan.points, &QuadtreeOptions::default()).unwrap();
            let land = Land::of(&scan, &tree, 20).unwrap();
            assert_eq!(land.cells.len(), tree.num_nodes());
            for (node, cell) in (0..).zip(&land.cells) {
                let [low, high] = tree.bounds(node).unwrap().map(|corner| land.lattice.position(corner));
                for axis in 0..2 {
                    assert!((low[axis] - cell.low[axis]).abs() < 1e-6);
                    assert!((high[axis] - cell.low[axis] - cell.side).abs() < 1e-6);
                }
            }
            assert_eq!(land.place.is_some_and(|place| place.height.is_some()), num_points > 1);
        }
    }
}
