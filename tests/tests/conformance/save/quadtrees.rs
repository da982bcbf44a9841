//! Files of quadtrees and octrees: files of every device and algorithm, and forged files.

use super::forged::{Forged, corrupt, largest_allocation, put, refused, section};
use super::{Saved, goes_round};
use kauri::quadtree::{CartesianPoint, CellTree, Octree, Quadtree, QuadtreeOptions, RootCell};
use kauri::research::quadtree::BuildAlgorithm;
use kauri::{Device, Error, KdTree, Point};
use kauri_tests::devices_for;
use kauri_tests::generate::{Scalar, Shape};

fn all_shapes<S: Scalar, const D: usize>()
where
    [S; D]: CartesianPoint<D>,
{
    for (i, n) in [0, 1, 2, 7, 33, 1000].into_iter().enumerate() {
        let shapes = if n <= 33 { &Shape::ALL[i % Shape::ALL.len()..][..1] } else { &Shape::ALL };
        for &shape in shapes {
            let points = shape.points::<S, D>(n, i as u64);
            goes_round::<CellTree<[S; D], D>>(&points, &format!("{n} {shape:?} points of {D} x {}", S::NAME));
        }
    }
}

#[test]
fn round_and_round() {
    all_shapes::<f32, 2>();
    all_shapes::<f32, 3>();
    all_shapes::<f64, 2>();
    all_shapes::<f64, 3>();
}

#[test]
fn round_and_round_integers() {
    for n in [0, 1, 33, 1000] {
        let points: Vec<[i32; 2]> = (0..n).map(|i| [i % 23 - 11, i32::MAX - i / 23]).collect();
        goes_round::<Quadtree<[i32; 2]>>(&points, "i32");
        let long: Vec<[i64; 3]> =
            points.iter().map(|p| [p[0].into(), p[1].into(), i64::from(p[0]) << 40]).collect();
        goes_round::<Octree<[i64; 3]>>(&long, "i64");
    }
}

/// The sections are larger than one piece of a checksum.
#[test]
fn larger_than_a_piece() {
    let points = Shape::Clustered.points::<f64, 2>(200_001, 4);
    goes_round::<Quadtree<[f64; 2]>>(&points, "200 001 points");
}

/// Trees of one leaf, trees of the greatest depth, and leaves of all sizes: every device and algorithm writes the same file, and a loaded
/// tree has the options of the build.
#[test]
fn devices_and_algorithms_write_the_same_file() {
    let shapes = [Shape::Uniform, Shape::AllEqual, Shape::FewDistinct, Shape::SignedZeros, Shape::Scales];
    let both = [BuildAlgorithm::Codes, BuildAlgorithm::LEVELS];
    let (square, fitted) = (RootCell::Square, RootCell::BoundingBox);
    let cases =
        [(1, 0, square), (1, 1, square), (2, 32, square), (50, 9, square), (2, 32, fitted), (1, 1, fitted)];
    for (shape, (leaf_points, max_depth, root)) in
        shapes.into_iter().flat_map(|shape| cases.map(|case| (shape, case)))
    {
        let points = shape.points::<f32, 2>(30, 3);
        let options = QuadtreeOptions::default().leaf_points(leaf_points).max_depth(max_depth).root(root);
        let expected = Quadtree::build(&Device::cpu(), &points, &options).unwrap();
        let bytes = expected.write();
        for device in devices_for(points.len()) {
            for algorithm in both {
                let tree = Quadtree::build(&device, &points, &options.clone().algorithm(algorithm)).unwrap();
                assert!(tree.write() == bytes, "{shape:?}, {options:?} by {algorithm:?} on {device}");
            }
            let tree = <Quadtree<[f32; 2]> as Saved>::read(&device, &bytes).unwrap();
            tree.verify().unwrap();
            assert!(tree.write() == bytes && tree.answers() == expected.answers(), "{shape:?}, {options:?}");
            assert_eq!(tree.bounds(0).unwrap(), expected.bounds(0).unwrap());
            assert_eq!(tree.leaf_of(&points).unwrap(), expected.leaf_of(&points).unwrap());
            assert_eq!((tree.len(), tree.depth(), tree.options().root), (30, expected.depth(), root));
            assert!(max_depth > 0 || tree.num_nodes() == 1);
        }
    }
}

/// Coordinates in device memory are checked when the tree is saved.
#[test]
fn trees_of_device_buffers() {
    use kauri::device::{Buffer, Stream, Workspace};
    let points = Shape::Uniform.points::<f32, 2>(33, 5);
    for device in devices_for(points.len()) {
        let Some(gpu) = device.gpu() else { continue };
        let (stream, mut workspace) = (Stream::new(gpu).unwrap(), Workspace::new(gpu));
        let mut coords = points.as_flattened().to_vec();
        let mut tree = |coords: &[f32]| {
            let buffer = Buffer::from_slice(&stream, coords, "coordinates").unwrap();
            let options = QuadtreeOptions::default().leaf_points(3);
            Quadtree::<[f32; 2]>::build_on(&stream, &mut workspace, &buffer, &options).unwrap()
        };
        let expected = <Quadtree<[f32; 2]> as Saved>::build(&Device::cpu(), &points);
        assert!(tree(&coords).write() == expected.write(), "{device}");
        coords[7] = f32::NAN;
        let error = tree(&coords).write_to(std::io::sink()).unwrap_err();
        assert!(matches!(error, Error::NonFinite { index: 3, axis: 1, .. }), "{error}");
    }
}

type Tree = Quadtree<[f32; 2]>;
const COORDS: usize = 0;
const IDS: usize = 1;
const NODES: usize = 2;
const FRAME: usize = 3;
const OPTIONS: usize = 4;

/// Returns the file of four points: the first leaf has two of them, the second leaf has none.
fn four_points() -> Forged {
    let nodes: [[u32; 4]; 5] = [[0, 4, 1, 0], [0, 2, 0, 1], [2, 2, 0, 1], [2, 3, 0, 1], [3, 4, 0, 1]];
    let frame = [2f64.powi(29).to_bits(), 32, 0, 0];
    Forged {
        kind: "quadtree",
        points: "f32",
        coord: "f32",
        dims: 2,
        num_points: 4,
        num_nodes: 5,
        sections: vec![
            ("coords", bytemuck::cast_slice(&[[0.0f32, 0.0], [1.0, 1.0], [6.0, 1.0], [7.0, 7.0]]).to_vec()),
            ("ids", bytemuck::cast_slice(&[0u32, 2, 3, 1]).to_vec()),
            ("nodes", bytemuck::cast_slice(&nodes).to_vec()),
            ("frame", bytemuck::cast_slice(&frame).to_vec()),
            ("options", bytemuck::cast_slice(&[2u32, 32]).to_vec()),
        ],
    }
}

/// Changes 32-bit words (section, word, value) of the file of [`four_points`]. Returns a function of a section and a word: the bytes of the
/// file, and the offset of the word.
fn changed(words: &[(usize, usize, u32)]) -> impl Fn(usize, usize) -> (Vec<u8>, u64) {
    let mut forged = four_points();
    words.iter().for_each(|&(i, word, value)| put(&mut forged.sections[i].1, 4 * word, &value.to_le_bytes()));
    let bytes = forged.bytes();
    move |i, word| (bytes.clone(), section(&bytes, i) + 4 * word as u64)
}

#[test]
fn the_format_is_the_documented_one() {
    let points = [[0.0f32, 0.0], [7.0, 7.0], [1.0, 1.0], [6.0, 1.0]];
    let options = QuadtreeOptions::default().leaf_points(2);
    let tree = Quadtree::build(&Device::cpu(), &points, &options).unwrap();
    assert!(tree.write() == four_points().bytes());
}

#[test]
fn wrong_words() {
    // Changes a word of a section. `at` are the section and the word that the error names, `words` are part of its message.
    let wrong = |i: usize, word: usize, value: u32, at: (usize, usize), words: &str| {
        let (bytes, offset) = changed(&[(i, word, value)])(at.0, at.1);
        corrupt::<Tree>(&bytes, offset, words);
    };
    let itself = |i: usize, word: usize, value: u32, words: &str| wrong(i, word, value, (i, word), words);
    let node = |node: usize, field: usize, value: u32, named: usize, words: &str| {
        wrong(NODES, 4 * node + field, value, (NODES, 4 * named), words);
    };
    for (value, words) in [(f32::NAN, "NaN"), (f32::NEG_INFINITY, "-inf"), (1e30, "e30")] {
        itself(COORDS, 3, value.to_bits(), words);
    }
    itself(IDS, 2, 2, "id 2 is also");
    itself(IDS, 0, 4, "id 4, but there are 4 points");
    itself(IDS, 3, u32::MAX, "but there are 4 points");
    itself(OPTIONS, 0, 0, "at least 1");
    itself(OPTIONS, 1, 33, "33 levels");
    itself(OPTIONS, 1, u32::MAX, "levels, where there are at most 32");

    // A frame that is not the frame of the points, or no frame at all.
    for (word, value) in [(1, u32::MAX), (1, 1 << 20), (0, 1), (2, 31), (2, 33), (3, 1)] {
        wrong(FRAME, word, value, (FRAME, word / 2 * 2), "another frame");
    }
    for (word, value) in [(4, 1), (5, 1 << 31), (7, 1)] {
        wrong(FRAME, word, value, (FRAME, word / 2 * 2), "another frame");
    }
    wrong(OPTIONS, 1, 0, (FRAME, 0), "another frame");
    wrong(COORDS, 6, 9f32.to_bits(), (FRAME, 0), "another frame");

    // Points in other cells.
    wrong(COORDS, 2, 5f32.to_bits(), (NODES, 4), "point 2 is not in its cell");
    wrong(COORDS, 5, 4f32.to_bits(), (NODES, 12), "point 3 is not in its cell");

    node(0, 0, 1, 0, "node 0: the root is");
    node(0, 1, 3, 0, "the root is");
    node(0, 1, u32::MAX, 0, "the root is");
    node(0, 3, 1, 0, "the root is");
    node(0, 2, 0, 0, "it is a leaf with 4 points");
    node(0, 2, 2, 0, "the first child is 2, not 1");
    node(0, 2, u32::MAX, 0, "the first child is");
    node(1, 0, 1, 1, "a child of");
    node(1, 1, u32::MAX, 2, "node 2: it is Node");
    node(1, 1, 0, 2, "a child of");
    node(2, 1, 1, 2, "a child of");
    node(3, 0, u32::MAX, 3, "a child of");
    node(4, 1, 3, 4, "a child of");
    node(4, 1, 5, 4, "a child of");
    node(3, 3, 2, 3, "a child of");
    node(3, 3, u32::MAX, 3, "a child of");
    node(2, 2, 5, 2, "it is split with 0 points");
    node(1, 2, 1, 1, "it is split with 2 points");
    wrong(OPTIONS, 0, 4, (NODES, 0), "it is split with 4 points");
    wrong(OPTIONS, 0, 1, (NODES, 4), "it is a leaf with 2 points");
    wrong(OPTIONS, 0, u32::MAX, (NODES, 0), "it is split with 4 points");
}

#[test]
fn several_wrong_words() {
    let wrong = |all: &[(usize, usize, u32)], at: (usize, usize), words: &str| {
        let (bytes, offset) = changed(all)(at.0, at.1);
        corrupt::<Tree>(&bytes, offset, words);
    };
    // Two equal points in the wrong order.
    let zeros = [(COORDS, 0, 0), (COORDS, 1, 0), (COORDS, 2, 0), (COORDS, 3, 0)];
    let turned = [&zeros[..], &[(IDS, 0, 2), (IDS, 1, 0)]].concat();
    wrong(&turned, (NODES, 4), "not in the order of the input");
    // A node that is its own child, a node with the children of its parent, and a node whose children begin after the last node.
    for child in [1, 2, 4] {
        let what = format!("the first child is {child}, not 5");
        wrong(&[(OPTIONS, 0, 1), (NODES, 6, child)], (NODES, 4), &what);
    }
    wrong(&[(OPTIONS, 0, 1), (NODES, 6, 5)], (NODES, 4), "its children begin at 5 of 5 nodes");
    // A tree without levels, and the frame of such a tree.
    let [low, high] = [0.25f64.to_bits() as u32, (0.25f64.to_bits() >> 32) as u32];
    let no_levels = [(OPTIONS, 1, 0), (FRAME, 0, low), (FRAME, 1, high), (FRAME, 2, 1)];
    wrong(&no_levels, (NODES, 0), "it is split with 4 points on level 0");
    // The root without children, the root without some of its children, and a node without a parent.
    for num in [1, 2, 4] {
        let mut forged = Forged { num_nodes: num, ..four_points() };
        forged.sections[NODES].1.truncate(16 * num as usize);
        let bytes = forged.bytes();
        corrupt::<Tree>(&bytes, section(&bytes, NODES), &format!("begin at 1 of {num} nodes"));
    }
    let mut forged = Forged { num_nodes: 6, ..four_points() };
    forged.sections[NODES].1.extend([0; 16]);
    let bytes = forged.bytes();
    corrupt::<Tree>(&bytes, section(&bytes, NODES) + 80, "it is the child of no node");
    // Numbers of points and nodes that do not agree with the lengths of the sections.
    let entry = |i: u64| 128 + 32 * i;
    corrupt::<Tree>(&Forged { num_nodes: 0, ..four_points() }.bytes(), 72, "0 nodes");
    corrupt::<Tree>(&Forged { num_nodes: 1 << 32, ..four_points() }.bytes(), 72, "4294967296 nodes");
    corrupt::<Tree>(&Forged { num_nodes: 9, ..four_points() }.bytes(), entry(2) + 16, "'nodes' has 80 bytes");
    corrupt::<Tree>(
        &Forged { num_points: 3, ..four_points() }.bytes(),
        entry(0) + 16,
        "'coords' has 32 bytes",
    );
    for (i, tag) in ["coords", "ids", "nodes", "frame", "options"].into_iter().enumerate() {
        let (mut short, mut none) = (four_points(), four_points());
        short.sections[i].1.pop();
        corrupt::<Tree>(&short.bytes(), entry(i as u64) + 16, &format!("the section '{tag}' has"));
        none.sections.remove(i);
        corrupt::<Tree>(&none.bytes(), entry(i as u64), &format!("section {i} should be '{tag}'"));
    }
}

#[test]
fn files_of_another_type_are_refused() {
    fn kdtree<P: Point>(points: &[P]) -> Vec<u8> {
        crate::build(&Device::cpu(), points).write()
    }
    let (bytes, points) = (four_points().bytes(), "type of points");
    refused::<KdTree<[f32; 2]>>(&bytes, "kind of index", "kdtree", "quadtree");
    refused::<Tree>(&kdtree(&[[1.0f32, 2.0]]), "kind of index", "quadtree", "kdtree");
    refused::<Octree<[f32; 3]>>(&bytes, points, "f32 as 3 x f32", "f32 as 2 x f32");
    refused::<Quadtree<[f64; 2]>>(&bytes, points, "f64 as 2 x f64", "f32 as 2 x f32");
    refused::<Quadtree<[i32; 2]>>(&bytes, points, "i32 as 2 x i32", "f32 as 2 x f32");
    refused::<Tree>(&Forged { dims: 4, ..four_points() }.bytes(), points, "f32 as 2 x f32", "f32 as 4 x f32");
}

/// Mapping a file allocates the cells alone: nodes and points stay in the file.
#[test]
fn memory_of_a_mapped_file() {
    let points = Shape::Uniform.points::<f32, 2>(200_000, 1);
    let tree = Quadtree::build(&Device::cpu(), &points, &QuadtreeOptions::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tree.kauri");
    tree.save(&path).unwrap();
    let (mapped, largest) = largest_allocation(&|| <Tree as Saved>::map(&Device::cpu(), &path));
    assert!(mapped.is_ok() && largest <= (8 * tree.num_nodes()).max(points.len() / 8), "{largest} bytes");
}
