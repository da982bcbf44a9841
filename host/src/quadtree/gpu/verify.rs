//! The check of a tree in device memory.

use crate::device::{Buffer, Workspace};
use crate::error::{Error, Result};
use crate::primitives::planned::carve;
use crate::primitives::reduce::Reduce;
use crate::quadtree::check;
use crate::quadtree::gpu::GpuTree;
use kauri_kernels::quadtree::verify::{CheckedTree, quadtree_verify};
use kauri_kernels::thread::coord::Coord;
use kauri_kernels::thread::operator::Sum;

impl<C: Coord> GpuTree<C> {
    /// Checks the tree on the device. If something is wrong, the check of the host names it.
    pub(super) fn verify<const D: usize>(&self) -> Result<()> {
        let Some(node) = self.find_fault::<D>()? else { return Ok(()) };
        check::verify::<C, D>(self)?;
        Err(Error::corrupt(
            node as usize,
            "the check on the device found a fault that the host does not find",
        ))
    }

    /// Returns a wrong node, if there is one.
    fn find_fault<const D: usize>(&self) -> Result<Option<u32>> {
        let (begins, num_nodes, num_points) = (&self.outline.level_begins, self.nodes.len(), self.ids.len());
        let num_groups = (num_nodes - 1) >> D;
        let covers_nodes = begins.first() == Some(&0) && begins.last() == Some(&(num_nodes as u32));
        if !covers_nodes || !begins.is_sorted_by(|a, b| a < b) || num_nodes != 1 + (num_groups << D) {
            return Ok(Some(0));
        }
        let (gpu, stream) = (self.gpu(), self.stream()?);
        let level_begins = Buffer::from_slice(&stream, begins, "levels of a quadtree")?;
        let mut claimed = Buffer::of_bytes(&stream, num_groups, 0, "claimed siblings")?;
        let mut seen = Buffer::of_bytes(&stream, num_points, 0, "seen ids")?;
        let mut finding = Buffer::from_slice(&stream, &[u32::MAX], "finding")?;
        let mut num_claimed = Buffer::<u32>::uninitialized(gpu, 1, "number of claimed siblings")?;
        let mut workspace = Workspace::new(gpu);
        let (sum, temp) =
            carve(&stream, &mut workspace, "sum", |layout| Reduce::<u32>::plan(layout, num_groups))?;
        let tree = CheckedTree {
            frame: self.frame.slice(),
            nodes: self.nodes.bits(),
            cells: self.cells.slice(),
            level_begins: level_begins.slice(),
            coords: self.coords.slice(),
            ids: self.ids.slice(),
            leaf_points: self.outline.options.leaf_points,
            depth: self.outline.options.depth(&self.outline.frame::<D>()),
        };
        // SAFETY: the buffers live until the results have been copied.
        unsafe {
            let args = (tree, claimed.slice_mut(), seen.slice_mut(), finding.slice_mut());
            stream.launch_items::<quadtree_verify<C, D>>(num_nodes.max(num_points) as u64, args)?;
            sum.run::<Sum>(&temp, claimed.slice(), num_claimed.slice_mut())?;
        }
        let (finding, num_claimed) = (finding.to_vec(&stream)?[0], num_claimed.to_vec(&stream)?[0]);
        // A group of siblings that no node claims belongs to no node.
        Ok(match finding {
            u32::MAX if num_claimed as usize == num_groups => None,
            u32::MAX => Some(0),
            node => Some(node),
        })
    }
}

#[cfg(all(test, feature = "sim", feature = "io"))]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::device::SimOptions;
    use crate::quadtree::backend::Backend;
    use crate::quadtree::cpu;
    use crate::quadtree::host::HostTree;
    use crate::quadtree::options::QuadtreeOptions;
    use crate::stats::Stats;
    use kauri_kernels::quadtree::node::Node;

    /// The name of a change, and the change.
    type Change<'a> = (&'a str, &'a dyn Fn(&mut HostTree<f32>));

    /// Points on a grid; the first leaf with points has two, 0 and 1.
    fn tree() -> HostTree<f32> {
        let mut points: Vec<[f32; 2]> = (0..60).map(|i| [(i / 8) as f32, (i % 8) as f32]).collect();
        points[1] = [0.25, 0.0];
        let options = QuadtreeOptions::default().leaf_points(3).max_depth(3);
        cpu::build(&points, &options, &mut Stats::default()).unwrap()
    }

    /// Returns the nodes to change.
    fn nodes(tree: &mut HostTree<f32>) -> Vec<Node> {
        tree.nodes.to_vec()
    }

    #[test]
    fn device_and_host_find_the_same_faults() {
        let device = Device::sim(SimOptions::default()).unwrap();
        let first_leaf = |tree: &HostTree<f32>| {
            tree.nodes.iter().position(|node| node.is_leaf() && node.len() > 1).expect("a leaf with points")
        };
        let changes: [Change<'_>; 18] = [
            ("nothing", &|_| ()),
            ("an id twice", &|tree| tree.ids = [&[tree.ids[1]], &tree.ids[1..]].concat().into()),
            ("an id that is too large", &|tree| tree.ids = [&tree.ids[..59], &[60]].concat().into()),
            ("points out of order", &|tree| {
                let (mut ids, mut coords) = (tree.ids.to_vec(), tree.coords.to_vec());
                let start = tree.nodes[first_leaf(tree)].start as usize;
                ids.swap(start, start + 1);
                coords[2 * start..2 * start + 4].rotate_left(2);
                (tree.ids, tree.coords) = (ids.into(), coords.into());
            }),
            ("a point outside of its cell", &|tree| {
                let mut coords = tree.coords.to_vec();
                coords[0] = 7.0;
                tree.coords = coords.into();
            }),
            ("a point that is not a number", &|tree| {
                let mut coords = tree.coords.to_vec();
                coords[17] = f32::NAN;
                tree.coords = coords.into();
            }),
            ("a root without the last point", &|tree| {
                let mut nodes = nodes(tree);
                nodes[0].end -= 1;
                tree.nodes = nodes.into();
            }),
            ("a leaf with too many points", &|tree| {
                let mut nodes = nodes(tree);
                nodes[1].first_child = 0;
                tree.nodes = nodes.into();
            }),
            ("a leaf that splits", &|tree| {
                let mut nodes = nodes(tree);
                nodes[first_leaf(tree)].first_child = 5;
                tree.nodes = nodes.into();
            }),
            ("children of another node", &|tree| {
                let mut nodes = nodes(tree);
                nodes[2].first_child = nodes[1].first_child;
                tree.nodes = nodes.into();
            }),
            ("children in another order", &|tree| {
                let mut nodes = nodes(tree);
                (nodes[1].first_child, nodes[2].first_child) = (nodes[2].first_child, nodes[1].first_child);
                tree.nodes = nodes.into();
            }),
            ("children that are not siblings", &|tree| {
                let mut nodes = nodes(tree);
                nodes[1].first_child += 1;
                tree.nodes = nodes.into();
            }),
            ("children beyond the last node", &|tree| {
                let mut nodes = nodes(tree);
                nodes[0].first_child = 4 * nodes.len() as u32 + 1;
                tree.nodes = nodes.into();
            }),
            ("children of the root are the root", &|tree| {
                let mut nodes = nodes(tree);
                nodes[0].first_child = u32::MAX;
                tree.nodes = nodes.into();
            }),
            ("a gap between children", &|tree| {
                let mut nodes = nodes(tree);
                nodes[2].start += 1;
                tree.nodes = nodes.into();
            }),
            ("a node on another level", &|tree| {
                let mut nodes = nodes(tree);
                nodes[3].level = 40;
                tree.nodes = nodes.into();
            }),
            ("a cell at another corner", &|tree| tree.cells[7] ^= 1),
            ("levels that begin at other nodes", &|tree| tree.outline.level_begins[2] -= 1),
        ];
        for (what, change) in changes {
            let mut host = tree();
            change(&mut host);
            let on_device = GpuTree::of_host(device.gpu().unwrap(), &host).unwrap();
            let [found, expected] = [Backend::verify(&on_device), Backend::verify(&host)]
                .map(|result| result.err().map(|error| error.to_string()));
            assert_eq!(found, expected, "{what}");
            assert_eq!(expected.is_some(), what != "nothing", "{what}");
            assert_eq!(on_device.find_fault::<2>().unwrap().is_some(), what != "nothing", "{what}");
        }
    }
}
