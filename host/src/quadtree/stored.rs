//! Quadtrees in files.

use crate::device::{Device, gpu_of};
use crate::error::{Error, Result};
use crate::point::{Dispatch, NoValue, Typed, check_each_coordinate, with_coordinate};
use crate::quadtree::backend::Backend;
use crate::quadtree::build::Trees;
use crate::quadtree::dims::{CartesianPoint, with_2_or_3};
use crate::quadtree::frame::file_words;
use crate::quadtree::gpu::GpuTree;
use crate::quadtree::gpu::out_of_core::OutOfCoreTree;
use crate::quadtree::host::HostTree;
use crate::quadtree::options::QuadtreeOptions;
use crate::quadtree::tree::CellTree;
use crate::stats::Stats;
use crate::stored::{Contents, IndexFile, Stored, files_of_index};
use kauri_kernels::quadtree::node::Node;

/// Reads the tree of a file, and brings it to the device. A tree that a GPU has no memory for stays in host memory.
fn load(
    coordinate: Typed<NoValue>,
    device: &Device,
    file: IndexFile,
    dims: usize,
    stats: &mut Stats,
) -> Result<Typed<Trees>> {
    Ok(with_coordinate!(coordinate, C, () => {
        let of_file = || with_2_or_3!(dims, D => HostTree::<C>::of_file::<D>(file));
        let tree = stats.phase("check", of_file)?;
        match gpu_of!(device) {
            None => Box::new(tree) as Box<dyn Backend<C>>,
            Some(gpu) => match stats.phase("upload", || GpuTree::of_host(gpu, &tree)) {
                Ok(tree) => Box::new(tree) as Box<dyn Backend<C>>,
                Err(Error::OutOfMemory { memory: "device", .. }) => Box::new(OutOfCoreTree::new(gpu, tree)),
                Err(error) => return Err(error),
            },
        }
    }))
}

/// The tags of the sections of points, which are the first two.
pub(super) const COORDS: &str = "coords";
pub(super) const IDS: &str = "ids";

/// The number of sections of a file.
pub(super) const NUM_SECTIONS: usize = 5;

/// Returns the sections that follow the coordinates and the ids.
pub(super) fn sections_of_nodes<'a>(
    nodes: &'a [Node],
    frame: &'a [u64],
    options: &'a [u32; 2],
) -> [(&'static str, &'a [u8]); 3] {
    [
        ("nodes", bytemuck::cast_slice(nodes)),
        ("frame", bytemuck::cast_slice(frame)),
        ("options", bytemuck::cast_slice(options)),
    ]
}

/// Returns the options that a file keeps.
pub(super) fn options_in_file(options: &QuadtreeOptions) -> [u32; 2] {
    [options.leaf_points, options.max_depth]
}

impl<P: CartesianPoint<D>, const D: usize> Stored for CellTree<P, D> {
    const KIND: &'static str = "quadtree";
    type Point = P;
    type Coord = P::Coord;

    fn contents(&self, write: &mut dyn FnMut(&Contents<'_>) -> Result<()>) -> Result<()> {
        let (coords, ids, nodes) = (self.coords()?, self.ids()?, self.nodes()?);
        // The coordinates of a buffer were not checked by the build.
        check_each_coordinate(&coords, D, "point", |place| ids[place].into())?;
        let outline = self.outline();
        let frame = file_words(&outline.frame::<D>(), outline.options.root);
        let options = options_in_file(&outline.options);
        let [nodes_section, frame, options] = sections_of_nodes(&nodes, &frame, &options);
        let (coords, num_points) = (bytemuck::cast_slice(&coords), ids.len());
        let ids = bytemuck::cast_slice(&ids);
        let sections: &[_; NUM_SECTIONS] = &[(COORDS, coords), (IDS, ids), nodes_section, frame, options];
        write(&Contents { num_points, num_nodes: nodes.len(), sections })
    }

    fn from_file(device: &Device, file: IndexFile, mut stats: Stats) -> Result<Self> {
        let tree = load(P::Coord::TYPE, device, file, Self::DIMS, &mut stats)?;
        Ok(Self::new(device.clone(), stats, P::Coord::unwrap(tree)))
    }
}

files_of_index! {
    CellTree<P: CartesianPoint<D>, const D: usize>;
    checks: "and that the tree is the one that a build makes of its points, so [`verify`](Self::verify) has nothing left to check.";
    memory: "1 bit per point, and 8 bytes per node (12 for an octree), which the tree keeps.";
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
