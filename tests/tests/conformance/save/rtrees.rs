//! Files of R-trees: trees that have changed and that change later, and forged files.

use super::forged::{Forged, corrupt, largest_allocation, put, refused, section};
use super::{Changed, Saved, goes_round};
use kauri::device::{Buffer, Stream, Workspace};
use kauri::{Device, Error, KdTree, LonLat, MAX_POINTS, Point, RTree, SpatialIndex};
use kauri_tests::generate::{Scalar, Shape};
use kauri_tests::{devices_for, for_each_dims};

type Tree = RTree<[f32; 2]>;

fn all_shapes<S: Scalar, const D: usize>()
where
    [S; D]: Point,
{
    for (i, n) in [0, 1, 2, 33, 1000].into_iter().enumerate() {
        // Small inputs also run in the simulator, which is slow.
        let shapes = if n <= 33 { &Shape::ALL[(D + i) % Shape::ALL.len()..][..1] } else { &Shape::ALL };
        for &shape in shapes {
            let points = shape.points::<S, D>(n, i as u64);
            let what = format!("{n} {shape:?} points of {D} x {}", <S as kauri::Scalar>::TYPE_NAME);
            goes_round::<RTree<[S; D]>>(&points, &what);
            goes_round::<Changed<[S; D]>>(&points, &format!("{what}, changed"));
        }
    }
}

#[test]
fn round_trips_of_rtrees() {
    for_each_dims!(D => all_shapes::<f32, D>());
    all_shapes::<f64, 2>();
    all_shapes::<f64, 3>();
}

#[test]
fn round_trips_of_rtrees_of_integers_and_places() {
    for n in [0, 1, 33, 1000] {
        let uniform = Shape::Uniform.points::<f64, 3>(n, 9);
        let integers: Vec<[i32; 3]> = uniform.iter().map(|p| p.map(|x| (x * 50.0) as i32 - 20)).collect();
        let long: Vec<[i64; 3]> = integers.iter().map(|p| p.map(|x| i64::from(x) << 40)).collect();
        let places: Vec<LonLat> =
            uniform.iter().map(|p| LonLat::new(360.0 * p[0] - 180.0, 180.0 * p[1] - 90.0)).collect();
        goes_round::<RTree<[i32; 3]>>(&integers, "i32");
        goes_round::<Changed<[i32; 3]>>(&integers, "i32, changed");
        goes_round::<Changed<[i64; 3]>>(&long, "i64, changed");
        goes_round::<Changed<LonLat>>(&places, "places, changed");
    }
}

/// Large enough for several pieces of a checksum and tasks of a check.
#[test]
fn round_trips_of_large_rtrees() {
    let points = Shape::Uniform.points::<f64, 3>(300_001, 4);
    goes_round::<RTree<[f64; 3]>>(&points, "300 001 points");
    goes_round::<Changed<[f64; 3]>>(&points, "300 001 points, changed");
}

/// Changes of a loaded tree have the results of the same changes of the saved tree, and of a tree on the CPU.
#[test]
fn loaded_trees_change_as_saved_ones_do() {
    let points = Shape::Lattice.points::<f32, 2>(40, 3);
    let even: Vec<u32> = (0..32).step_by(2).collect();
    let all: Vec<u32> = (0..33).collect();
    let cases: [(usize, &[u32]); 6] =
        [(0, &[]), (33, &[]), (33, &[32, 5]), (32, &even), (33, &all), (1, &[0])];
    for (device, (num_first, removed)) in
        devices_for(33).into_iter().flat_map(|device| cases.map(|case| (device.clone(), case)))
    {
        let what = format!("{removed:?} of {num_first} removed, on {device}");
        let changed = |device: &Device| {
            let mut tree = Tree::build(device, &points[..num_first]).unwrap();
            tree.remove(removed).unwrap();
            tree
        };
        let (mut tree, mut on_cpu) = (changed(&device), changed(&Device::cpu()));
        let mut loaded = <Tree as Saved>::read(&device, &tree.write()).unwrap();
        assert_eq!((loaded.len(), loaded.num_ids()), (tree.len(), tree.num_ids()), "{what}");
        for &id in removed {
            assert!(!loaded.contains(id).unwrap(), "{what}: {id}");
            let error = loaded.remove(&[id]).unwrap_err();
            assert!(matches!(error, Error::UnknownId { id: unknown } if unknown == id), "{what}: {error}");
        }
        for round in 0..2 {
            let next = tree.num_ids() as u32;
            for tree in [&mut tree, &mut loaded, &mut on_cpu] {
                assert_eq!(tree.insert(&points[33..]).unwrap(), next..next + 7, "{what}");
                tree.remove(&[next + 3, next]).unwrap();
            }
            assert!(loaded.write() == tree.write(), "{what}, round {round}: other files");
            assert!(loaded.write() == on_cpu.write(), "{what}, round {round}: other files on the CPU");
            assert!(loaded.answers() == on_cpu.answers(), "{what}, round {round}: other results");
            for id in 0..loaded.num_ids() as u32 + 2 {
                assert_eq!(loaded.contains(id).unwrap(), on_cpu.contains(id).unwrap(), "{what}: {id}");
            }
        }
    }
}

/// Few of many ids have points: their bits are uploaded in pieces, some of which are left out.
#[test]
fn few_of_many_ids_have_points() {
    let points = Shape::Uniform.points::<f32, 2>(5000, 4);
    let mut expected = Tree::build(&Device::cpu(), &points).unwrap();
    // The ids with points are 20, 282, … and 4998.
    let removed: Vec<u32> = (0..5000).filter(|id| id % 262 != 20).collect();
    expected.remove(&removed).unwrap();
    assert_eq!(expected.len(), 20);
    let bytes = expected.write();
    for device in devices_for(expected.len()) {
        let mut tree = <Tree as Saved>::read(&device, &bytes).unwrap();
        assert!(tree.write() == bytes && tree.answers() == expected.answers(), "{device}");
        for id in (0..40).chain(270..300).chain(4980..5010) {
            assert_eq!(tree.contains(id).unwrap(), expected.contains(id).unwrap(), "{id} on {device}");
        }
        let mut changed = <Tree as Saved>::read(&Device::cpu(), &bytes).unwrap();
        for tree in [&mut tree, &mut changed] {
            assert_eq!(tree.insert(&points[..30]).unwrap(), 5000..5030);
            tree.remove(&[5007, 4998, 20]).unwrap();
        }
        assert!(tree.write() == changed.write() && tree.answers() == changed.answers(), "{device}");
    }
}

/// Coordinates in device memory are checked when the tree is saved. A removed point may have left its place to the grid.
#[test]
fn rtrees_of_device_buffers() {
    let points = Shape::Uniform.points::<f32, 2>(33, 5);
    for device in devices_for(points.len()) {
        let Some(gpu) = device.gpu() else { continue };
        let (stream, mut workspace) = (Stream::new(gpu).unwrap(), Workspace::new(gpu));
        let mut build_on = |coords: &[f32]| {
            let buffer = Buffer::from_slice(&stream, coords, "coordinates").unwrap();
            Tree::build_on(&stream, &mut workspace, &buffer).unwrap()
        };
        let mut coords = points.as_flattened().to_vec();
        assert!(
            build_on(&coords).write() == <Tree as Saved>::build(&Device::cpu(), &points).write(),
            "{device}"
        );
        coords[7] = f32::NAN;
        let mut tree = build_on(&coords);
        let error = tree.write_to(std::io::sink()).unwrap_err();
        assert!(matches!(error, Error::NonFinite { what: "point", index: 3, axis: 1, .. }), "{error}");
        tree.remove(&[3]).unwrap();
        let loaded = <Tree as Saved>::read(&device, &tree.write()).unwrap();
        assert!(loaded.answers() == tree.answers(), "{device}");

        coords[7] = 1e30;
        let mut tree = build_on(&coords);
        tree.remove(&[3]).unwrap();
        let error = tree.write_to(std::io::sink()).unwrap_err();
        let is_corner =
            matches!(error, Error::CoordinateTooLarge { what: "corner of the grid", index: 1, axis: 1, .. });
        assert!(is_corner, "{error}");
    }
}

const COORDS: usize = 0;
const IDS: usize = 1;
const CORNERS: usize = 2;
const NUM_IDS: usize = 3;

/// Returns the file of six points, of which two are equal and one is outside of the grid. Id 0 has been given, too.
fn six_points() -> Forged {
    let coords: [[f32; 2]; 6] = [[1.0, 1.0], [1.0, 1.0], [0.0, 6.0], [8.0, 8.0], [7.0, 0.0], [20.0, -5.0]];
    Forged {
        kind: "rtree",
        points: "f32",
        coord: "f32",
        dims: 2,
        num_points: 6,
        num_nodes: 0,
        sections: vec![
            ("coords", bytemuck::cast_slice(&coords).to_vec()),
            ("ids", bytemuck::cast_slice(&[2u32, 4, 6, 1, 3, 5]).to_vec()),
            ("corners", bytemuck::cast_slice(&[0.0f32, 0.0, 8.0, 8.0]).to_vec()),
            ("num_ids", bytemuck::cast_slice(&[7u32]).to_vec()),
        ],
    }
}

/// Changes 32-bit words (section, word, value) of the file of [`six_points`]. Returns a function of a section and a word: the bytes of the
/// file, and the offset of the word.
fn changed(words: &[(usize, usize, u32)]) -> impl Fn(usize, usize) -> (Vec<u8>, u64) {
    let mut forged = six_points();
    words.iter().for_each(|&(i, word, value)| put(&mut forged.sections[i].1, 4 * word, &value.to_le_bytes()));
    let bytes = forged.bytes();
    move |i, word| (bytes.clone(), section(&bytes, i) + 4 * word as u64)
}

#[test]
fn the_format_of_rtrees_is_the_documented_one() {
    for device in devices_for(4) {
        let mut tree = Tree::build(&device, &[[0.0, 0.0], [8.0, 8.0], [1.0, 1.0], [7.0, 0.0]]).unwrap();
        tree.insert(&[[1.0, 1.0], [20.0, -5.0], [0.0, 6.0]]).unwrap();
        tree.remove(&[0]).unwrap();
        assert!(tree.write() == six_points().bytes(), "{device}");
    }
}

#[test]
fn wrong_words_of_rtrees() {
    // Changes words of sections. `at` are the section and the word that the error names, `words` are part of its message.
    let wrong = |all: &[(usize, usize, u32)], at: (usize, usize), words: &str| {
        let (bytes, offset) = changed(all)(at.0, at.1);
        corrupt::<Tree>(&bytes, offset, words);
    };
    let itself =
        |i: usize, word: usize, value: u32, words: &str| wrong(&[(i, word, value)], (i, word), words);
    for (value, words) in [(f32::NAN, "NaN"), (f32::NEG_INFINITY, "-inf"), (1e30, "e30")] {
        itself(COORDS, 3, value.to_bits(), words);
        itself(CORNERS, 2, value.to_bits(), words);
    }
    // Ids, if some have no points and if all have points.
    itself(IDS, 2, 7, "id 7, but 7 ids have been given");
    itself(IDS, 0, u32::MAX, "but 7 ids have been given");
    itself(IDS, 3, 4, "id 4 is also");
    wrong(&[(IDS, 0, 1)], (IDS, 3), "id 1 is also");
    wrong(&[(NUM_IDS, 0, 6)], (IDS, 2), "id 6, but there are 6 points");
    let ids = |ids: [u32; 6]| {
        let with_ids = ids.into_iter().enumerate().map(|(slot, id)| (IDS, slot, id));
        with_ids.chain([(NUM_IDS, 0, 6)]).collect::<Vec<_>>()
    };
    wrong(&ids([1, 4, 6, 0, 3, 5]), (IDS, 2), "id 6, but there are 6 points");
    wrong(&ids([1, 4, 2, 1, 3, 5]), (IDS, 3), "id 1 is also");
    itself(NUM_IDS, 0, 5, "5 ids have been given: expected 6 to 4294967294");
    itself(NUM_IDS, 0, 0, "0 ids have been given");
    itself(NUM_IDS, 0, u32::MAX, "4294967295 ids have been given");

    itself(CORNERS, 0, 9f32.to_bits(), "above the high one on axis 0");
    wrong(&[(CORNERS, 3, (-1f32).to_bits())], (CORNERS, 1), "above the high one on axis 1");

    // Points in other cells, other cells, and equal points in the wrong order.
    wrong(&[(COORDS, 5, 0)], (COORDS, 4), "point 6 comes before point 4 in the order");
    let one = 1f32.to_bits();
    wrong(&[(CORNERS, 2, one), (CORNERS, 3, one)], (COORDS, 4), "point 6 comes before point 4");
    wrong(&[(IDS, 0, 4), (IDS, 1, 2)], (COORDS, 2), "point 2 comes before point 4");
}

#[test]
fn numbers_and_sections_of_rtrees() {
    let entry = |i: u64| 128 + 32 * i;
    corrupt::<Tree>(&Forged { num_nodes: 6, ..six_points() }.bytes(), 72, "6 nodes");
    corrupt::<Tree>(
        &Forged { num_points: 5, ..six_points() }.bytes(),
        entry(0) + 16,
        "'coords' has 48 bytes",
    );
    corrupt::<Tree>(&Forged { num_points: 1 << 32, ..six_points() }.bytes(), 64, "4294967296 points");
    for (i, tag) in ["coords", "ids", "corners", "num_ids"].into_iter().enumerate() {
        let (mut short, mut none) = (six_points(), six_points());
        short.sections[i].1.pop();
        corrupt::<Tree>(&short.bytes(), entry(i as u64) + 16, &format!("the section '{tag}' has"));
        none.sections.remove(i);
        corrupt::<Tree>(&none.bytes(), entry(i as u64), &format!("section {i} should be '{tag}'"));
    }
    let mut more = six_points();
    more.sections.push(("more", vec![1]));
    corrupt::<Tree>(&more.bytes(), entry(4), "the section 'more'");
}

/// A tree without points has one file, whatever its grid was.
#[test]
fn rtrees_without_points() {
    let forged = |corners: [f32; 4]| {
        let mut forged = Forged { num_points: 0, ..six_points() };
        forged.sections[COORDS].1.clear();
        forged.sections[IDS].1.clear();
        forged.sections[CORNERS].1 = bytemuck::cast_slice(&corners).to_vec();
        forged.bytes()
    };
    let good = forged([0.0; 4]);
    for device in devices_for(0) {
        let mut tree = Tree::build(&device, &[[3.0, 4.0]; 7]).unwrap();
        tree.remove(&[6, 5, 4, 3, 2, 1, 0]).unwrap();
        assert!(tree.write() == good, "{device}");
        let mut loaded = <Tree as Saved>::read(&device, &good).unwrap();
        assert!(loaded.is_empty() && loaded.write() == good, "{device}");
        assert_eq!(loaded.insert(&[[5.0, 6.0]]).unwrap(), 7..8);
        assert_eq!(loaded.nearest(&[[0.0, 0.0]], 1).unwrap().ids(), [7]);
    }
    corrupt::<Tree>(&forged([0.0, -0.0, 0.0, 0.0]), section(&good, CORNERS) + 4, "without points is not 0");
    corrupt::<Tree>(&forged([0.0, 0.0, 1.0, 1.0]), section(&good, CORNERS) + 8, "without points is not 0");
}

#[test]
fn files_of_another_index_than_an_rtree() {
    let (bytes, points) = (six_points().bytes(), "type of points");
    refused::<KdTree<[f32; 2]>>(&bytes, "kind of index", "kdtree", "rtree");
    let kdtree = crate::build(&Device::cpu(), &[[1.0f32, 2.0]]).write();
    refused::<Tree>(&kdtree, "kind of index", "rtree", "kdtree");
    refused::<RTree<[f32; 3]>>(&bytes, points, "f32 as 3 x f32", "f32 as 2 x f32");
    refused::<RTree<[i32; 2]>>(&bytes, points, "i32 as 2 x i32", "f32 as 2 x f32");
}

/// No allocation on the CPU exceeds the size of the file, however many ids have been given.
#[test]
fn memory_of_files_of_rtrees() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tree.kauri");
    let points = Shape::Uniform.points::<f32, 2>(200_000, 1);
    let check = |bytes: &[u8], least: usize| {
        std::fs::write(&path, bytes).unwrap();
        for load in [<Tree as Saved>::load, <Tree as Saved>::map] {
            let (tree, largest) = largest_allocation(&|| load(&Device::cpu(), &path));
            // The bytes of a file are aligned to 64.
            let most = least.max(bytes.len() + 64);
            assert!(tree.is_ok() && largest <= most, "{largest} of {} bytes", bytes.len());
        }
    };
    check(&<Tree as Saved>::build(&Device::cpu(), &points).write(), 0);
    check(&Changed::build(&Device::cpu(), &points).write(), 0);
    let most_ids = changed(&[(NUM_IDS, 0, MAX_POINTS as u32)])(0, 0).0;
    check(&most_ids, 16 << 10);
    let mut tree = <Tree as Saved>::read(&Device::cpu(), &most_ids).unwrap();
    assert_eq!(tree.num_ids(), MAX_POINTS as usize);
    assert!(matches!(tree.insert(&[[0.0; 2]]), Err(Error::TooManyItems { .. })));
    tree.remove(&[4]).unwrap();
    assert_eq!(tree.ids().unwrap(), [1, 2, 3, 5, 6]);
}
