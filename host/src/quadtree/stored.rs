//! Quadtrees in files.

use kauri_kernels::quadtree::frame::Frame;
use kauri_kernels::quadtree::node::Node;
use std::borrow::Cow;

use crate::device::Device;
use crate::error::Result;
use crate::kdtree::stored::check_coords;
use crate::once::Once;
use crate::point::{Cartesian, Dispatch, NoValue, Typed, with_coordinate};
use crate::primitives::cpu::bounds::bounds;
use crate::quadtree::backend::Backend;
use crate::quadtree::host::{HostTree, NodeWords, Unchecked};
use crate::quadtree::{
    GpuTree, MAX_DEPTH, Quadtree, QuadtreeOptions, Trees, frame_over, with_plane_or_space,
};
use crate::query::cpu::Corners;
use crate::query::ids;
use crate::stats::Stats;
use crate::stored::{Contents, IndexFile, Section, Stored, files_of_index};
use kauri_kernels::thread::coord::Coord;

/// What a file holds of a tree. Cells and levels follow from which nodes split.
pub(crate) struct Sections<'a, C: Coord> {
    /// In the order of the tree, as ids are.
    pub(crate) coords: Cow<'a, [C]>,
    pub(crate) ids: Cow<'a, [u32]>,
    pub(crate) nodes: Cow<'a, [Node]>,
    pub(crate) frame: &'a [u64],
    pub(crate) options: &'a QuadtreeOptions,
}

impl<C: Coord> HostTree<C> {
    pub(crate) fn stored(&self) -> Sections<'_, C> {
        Sections {
            coords: Cow::Borrowed(&self.coords),
            ids: Cow::Borrowed(&self.ids),
            nodes: Cow::Borrowed(self.nodes()),
            frame: &self.frame,
            options: &self.options,
        }
    }

    /// Reads a tree, which is to be the one over its points, to the last node.
    fn of_file<const D: usize>(mut file: IndexFile) -> Result<Self> {
        let num_points = file.num_points()?;
        let num_nodes = file.num_nodes(1..=u32::MAX as usize)?;
        let coords: Section<C> = file.section("coords", &[num_points * D])?;
        let point_ids = file.section("ids", &[num_points])?;
        let nodes: Section<NodeWords> = file.section("nodes", &[num_nodes])?;
        let frame = file.section("frame", &[Frame::<D>::WORDS])?;
        let options = file.section("options", &[2])?;
        file.end()?;
        check_coords(&coords, D)?;
        if let Some((place, what)) = ids::first_wrong(&point_ids.items)? {
            return Err(point_ids.corrupt(place, what));
        }
        let (points, options) = (coords.items.as_chunks().0, checked_options(&options)?);
        let tree = Unchecked::<C, D> {
            frame: checked_frame(&frame, points, &options)?,
            options: &options,
            nodes: NodeWords::nodes(&nodes.items),
            points,
            ids: &point_ids.items,
        };
        let cells = tree.check(|node, what| nodes.corrupt(node, format!("node {node}: {what}")))?;
        Ok(Self {
            frame: frame.items.to_vec(),
            dims: D,
            options,
            nodes: nodes.items,
            cells: cells.corners,
            level_begins: cells.level_begins,
            coords: coords.items,
            ids: point_ids.items,
            corners: Corners::new(),
            deep_leaves: Once::new(),
        })
    }
}

/// Most points of a leaf, and most levels.
fn checked_options(section: &Section<u32>) -> Result<QuadtreeOptions> {
    let [leaf_points, max_depth] = [section.items[0], section.items[1]];
    if leaf_points == 0 {
        return Err(section.corrupt(0, "leaves have at most 0 points, and are to have at least 1".into()));
    }
    if max_depth > MAX_DEPTH {
        return Err(section.corrupt(1, format!("{max_depth} levels, where there are at most {MAX_DEPTH}")));
    }
    Ok(QuadtreeOptions::default().leaf_points(leaf_points).max_depth(max_depth))
}

/// The frame, which is to be the one that the points have.
fn checked_frame<C: Coord, const D: usize>(
    section: &Section<u64>,
    points: &[[C; D]],
    options: &QuadtreeOptions,
) -> Result<Frame<D>> {
    let frame = frame_over(bounds(points), points.is_empty(), options.max_depth)?;
    match frame.to_words().zip(section.items.iter()).position(|(expected, &found)| expected != found) {
        None => Ok(frame),
        Some(i) => Err(section.corrupt(i, format!("the points have another frame: {frame:?}"))),
    }
}

/// The tree of a file on a device.
fn load(
    coordinate: Typed<NoValue>,
    device: &Device,
    file: IndexFile,
    dims: usize,
    stats: &mut Stats,
) -> Result<Typed<Trees>> {
    Ok(with_coordinate!(coordinate, C, () => {
        let of_file = || with_plane_or_space!(dims, D => HostTree::<C>::of_file::<D>(file));
        let tree = stats.phase("check", of_file)?;
        match device.gpu() {
            None => Box::new(tree) as Box<dyn Backend<C>>,
            Some(gpu) => Box::new(stats.phase("upload", || GpuTree::loaded(gpu, &tree))?),
        }
    }))
}

impl<P: Cartesian> Stored for Quadtree<P> {
    const KIND: &'static str = "quadtree";
    type Point = P;

    fn contents(&self, write: &mut dyn FnMut(&Contents<'_>) -> Result<()>) -> Result<()> {
        let Sections { coords, ids, nodes, frame, options } = self.tree.stored()?;
        write(&Contents {
            num_points: ids.len(),
            num_nodes: nodes.len(),
            sections: &[
                ("coords", bytemuck::cast_slice(&coords)),
                ("ids", bytemuck::cast_slice(&ids)),
                ("nodes", NodeWords::bytes(&nodes)),
                ("frame", bytemuck::cast_slice(frame)),
                ("options", bytemuck::cast_slice(&[options.leaf_points, options.max_depth])),
            ],
        })
    }

    fn from_file(device: &Device, file: IndexFile, mut stats: Stats) -> Result<Self> {
        const { assert!(P::DIMS == 2 || P::DIMS == 3, "quadtrees have points of 2 coordinates, octrees of 3") };
        let tree = P::Coord::unwrap(load(P::Coord::TYPE, device, file, P::DIMS, &mut stats)?);
        Ok(Self { device: device.clone(), stats, tree })
    }
}

files_of_index! {
    Quadtree<P: Cartesian>;
    checks: "and that the tree is the one over its points, so that [`verify`](Self::verify) has nothing more to find.";
    memory: "1 bit a point, and 8 bytes a node, of an octree 12, which the tree keeps.";
    example: "
```
use kauri::quadtree::{Quadtree, QuadtreeOptions};
use kauri::Device;
let points = [[0.0f32, 0.0], [7.0, 7.0], [1.0, 1.0], [6.0, 1.0]];
let device = Device::cpu();
let tree = Quadtree::build(&device, &points, &QuadtreeOptions::default().leaf_points(2))?;
# let folder = tempfile::tempdir().map_err(|source| kauri::Error::Io { path: Default::default(), source })?;
# let path = folder.path().join(\"cities.kauri\");
tree.save(&path)?;
let loaded = Quadtree::<[f32; 2]>::load(&device, &path)?;
assert_eq!(loaded.nodes()?, tree.nodes()?);
# Ok::<(), kauri::Error>(())
```";
}
