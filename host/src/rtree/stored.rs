//! Files of R-trees: the points in the order of the tree, with the grid that the order follows. Boxes are computed anew.

use crate::device::{Device, gpu_of};
use crate::error::Result;
use crate::kdtree::stored::check_coords;
use crate::memory;
use crate::parallel::{self, Ranges, TASK_ITEMS};
use crate::point::{Dispatch, MAX_POINTS, NoValue, Point, Typed, dims, with_coordinate, with_dims};
use crate::query::cpu::points;
use crate::query::ids;
use crate::rtree::backend::{FilePoints, Sections};
use crate::rtree::gpu::GpuTree;
use crate::rtree::{RTree, Storage, Storages, cpu};
use crate::stats::Stats;
use crate::stored::{Contents, IndexFile, Section, Stored, files_of_index};
use kauri_kernels::query::grid::{Grid, code_bits};
use kauri_kernels::thread::coord::Coord;
use rayon::prelude::*;

// `docs/file-format.md` has these numbers. With others, the files of earlier versions would be out of order.
const _: () = assert!(code_bits(1) == 32 && code_bits(2) == 48 && code_bits(3) == 48 && code_bits(5) == 45);

impl<C: Coord> FilePoints<C> {
    /// Reads the points of a file, and checks that coordinates are within their limits, that ids have been given and occur once, and that the
    /// points are in the order of the grid.
    fn of_file(mut file: IndexFile, dims: usize) -> Result<Self> {
        let num_points = file.num_points()?;
        file.num_nodes(0..=0)?;
        let coords = file.section("coords", &[num_points * dims])?;
        let point_ids = file.section("ids", &[num_points])?;
        let corners = file.section("corners", &[2 * dims])?;
        let num_ids = file.section("num_ids", &[1])?;
        file.end()?;
        check_coords(&coords, dims)?;
        let num_ids = check_num_ids(&num_ids, num_points)?;
        let own_ids = check_ids(&point_ids, num_ids)?;
        check_corners(&corners, dims, num_points)?;
        with_dims!(dims, D => check_order::<C, D>(&coords, &point_ids.items, &corners.items))?;
        let (coords, ids, corners) = (coords.items, point_ids.items, corners.items);
        Ok(Self { dims, coords, ids, corners, num_ids, own_ids })
    }
}

/// Checks the number of ids that have been given, and returns it.
fn check_num_ids(num_ids: &Section<u32>, num_points: usize) -> Result<usize> {
    let num = num_ids.items[0] as usize;
    if (num_points..=MAX_POINTS as usize).contains(&num) {
        return Ok(num);
    }
    Err(num_ids.corrupt(0, format!("{num} ids have been given: expected {num_points} to {MAX_POINTS}")))
}

/// Checks that each id has been given, and that no id occurs twice. Returns the ids in ascending order if not all ids have points, otherwise
/// none.
fn check_ids(ids: &Section<u32>, num_ids: usize) -> Result<Vec<u32>> {
    if ids.items.len() == num_ids {
        return match ids::first_invalid(&ids.items)? {
            Some((slot, what)) => Err(ids.corrupt(slot, what)),
            None => Ok(Vec::new()),
        };
    }
    // A bit for each id that has been given could take more memory than the file has.
    let mut own_ids = memory::copy(&ids.items, "ids of the points")?;
    own_ids.par_sort_unstable();
    if own_ids.last().is_some_and(|&greatest| greatest as usize >= num_ids)
        && let Some(slot) = ids.items.iter().position(|&id| id as usize >= num_ids)
    {
        let what = format!("id {}, but {num_ids} ids have been given", ids.items[slot]);
        return Err(ids.corrupt(slot, what));
    }
    if let Some(pair) = own_ids.windows(2).find(|pair| pair[0] == pair[1])
        && let Some(slot) = ids.items.iter().rposition(|&id| id == pair[0])
    {
        return Err(ids.corrupt(slot, format!("id {} is also the id of another point", pair[0])));
    }
    Ok(own_ids)
}

/// Checks that the corners of the grid are within the limits of coordinates, and the low one is not above the high one on any axis. Without
/// points there is no grid, and its corners are zeros, so that the tree has one file.
fn check_corners<C: Coord>(corners: &Section<C>, dims: usize, num_points: usize) -> Result<()> {
    if num_points == 0 {
        let is_zero = |x: &C| bytemuck::bytes_of(x) == bytemuck::bytes_of(&C::ZERO);
        return match corners.items.iter().position(|x| !is_zero(x)) {
            Some(i) => Err(corners.corrupt(i, "a corner of a grid without points is not 0".to_owned())),
            None => Ok(()),
        };
    }
    check_coords(corners, dims)?;
    let (low, high) = corners.items.split_at(dims);
    match (0..dims).find(|&axis| low[axis] > high[axis]) {
        Some(axis) => {
            let what = format!("the low corner of the grid is above the high one on axis {axis}");
            Err(corners.corrupt(axis, what))
        }
        None => Ok(()),
    }
}

/// Checks that the points are in the order of their codes, and that points with one code are in the order of their ids. Inserts and queries
/// search for codes.
fn check_order<C: Coord, const D: usize>(coords: &Section<C>, ids: &[u32], corners: &[C]) -> Result<()> {
    let (points, corners) = (points::<C, D>(&coords.items), points::<C, D>(corners));
    let grid = Grid::new(corners[0], corners[1], D);
    let key = |slot: usize| (grid.code(points[slot]), ids[slot]);
    let ranges = Ranges::new(ids.len(), TASK_ITEMS);
    let first_in = |task: usize| {
        let mut range = ranges.get(task);
        let mut last = range.start.checked_sub(1).map(key);
        range.find(|&slot| {
            let next = Some(key(slot));
            std::mem::replace(&mut last, next) >= next
        })
    };
    match parallel::find_first(ranges.num(), &first_in) {
        Some(slot) => {
            let what = format!("point {} comes before point {} in the order", ids[slot], ids[slot - 1]);
            Err(coords.corrupt(slot * D, what))
        }
        None => Ok(()),
    }
}

impl<P: Point> Stored for RTree<P> {
    const KIND: &'static str = "rtree";
    type Point = P;
    type Coord = P::Coord;

    fn contents(&self, write: &mut dyn FnMut(&Contents<'_>) -> Result<()>) -> Result<()> {
        let no_grid = vec![P::Coord::ZERO; 2 * P::DIMS];
        self.backend().sections(&mut |Sections { coords, ids, corners, num_ids }| {
            let corners = if ids.is_empty() { &no_grid } else { corners };
            write(&Contents {
                num_points: ids.len(),
                num_nodes: 0,
                sections: &[
                    ("coords", bytemuck::cast_slice(coords)),
                    ("ids", bytemuck::cast_slice(ids)),
                    ("corners", bytemuck::cast_slice(corners)),
                    ("num_ids", bytemuck::bytes_of(&(num_ids as u32))),
                ],
            })
        })
    }

    fn from_file(device: &Device, file: IndexFile, mut stats: Stats) -> Result<Self> {
        let storage = load(P::Coord::TYPE, device, file, dims::<P>(), &mut stats)?;
        Ok(Self::from_parts(device.clone(), stats, P::Coord::unwrap(storage)))
    }
}

/// Loads the tree of a file to a device.
fn load(
    coordinate: Typed<NoValue>,
    device: &Device,
    file: IndexFile,
    dims: usize,
    stats: &mut Stats,
) -> Result<Typed<Storages>> {
    Ok(with_coordinate!(coordinate, C, () => {
        let points = stats.phase("check", || FilePoints::<C>::of_file(file, dims))?;
        match gpu_of!(device) {
            None => Storage::Cpu(Box::new(stats.phase("boxes", || cpu::of_file(points))?)),
            Some(gpu) => Storage::Gpu(Box::new(GpuTree::of_file(gpu, &points, stats)?)),
        }
    }))
}

files_of_index! {
    RTree<P: Point>;
    checks: "and that the points are in the order of the curve, so nothing is left to check.";
    memory: "1 bit a point, or 4 bytes a point for a sort of the ids if points have been removed. On the CPU an R-tree orders the points of each bucket anew: it takes the memory of the file again, and does not keep the file. If points have been removed, a GPU takes a bit of its memory for each id that has been given, however small the file is.";
    example: "
```
use kauri::{Device, RTree};
let device = Device::cpu();
let mut tree = RTree::build(&device, &[[0.0f32, 0.0], [3.0, 4.0], [1.0, 0.0]])?;
tree.remove(&[2])?;
# let folder = tempfile::tempdir().map_err(|source| kauri::Error::Io { path: Default::default(), source })?;
# let path = folder.path().join(\"points.kauri\");
tree.save(&path)?;
let mut loaded = RTree::<[f32; 2]>::load(&device, &path)?;
assert_eq!(loaded.insert(&[[2.0, 2.0]])?, 3..4);
assert_eq!(loaded.ids()?, [0, 1, 3]);
# Ok::<(), kauri::Error>(())
```";
}
