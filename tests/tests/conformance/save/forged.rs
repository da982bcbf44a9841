//! Forged files, written by the documentation of the format: their checksums are right, and their contents are invalid.

use super::{Saved, Widest};
use kauri::balanced::{BalancedKdTree, BalancedOptions};
use kauri::{Device, Error, KdTree, KdTreeOptions, LonLat, Point, SpatialIndex};
use kauri_tests::generate::Shape;
use kauri_tests::load_any::reseal;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The format of `docs/file-format.md`, written independently of the library.
const MAGIC: &[u8; 8] = b"\x89KAURI\r\n";
const FRONT: usize = 128;

pub(super) struct Forged {
    pub(super) kind: &'static str,
    pub(super) points: &'static str,
    pub(super) coord: &'static str,
    pub(super) dims: u32,
    pub(super) num_points: u64,
    pub(super) num_nodes: u64,
    pub(super) sections: Vec<(&'static str, Vec<u8>)>,
}

impl Forged {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; FRONT + 32 * self.sections.len()];
        bytes[..8].copy_from_slice(MAGIC);
        put(&mut bytes, 8, &1u32.to_le_bytes());
        put(&mut bytes, 12, &(self.sections.len() as u32).to_le_bytes());
        put(&mut bytes, 16, self.kind.as_bytes());
        put(&mut bytes, 32, self.points.as_bytes());
        put(&mut bytes, 48, self.coord.as_bytes());
        put(&mut bytes, 56, &self.dims.to_le_bytes());
        put(&mut bytes, 64, &self.num_points.to_le_bytes());
        put(&mut bytes, 72, &self.num_nodes.to_le_bytes());
        for (i, (tag, section)) in self.sections.iter().enumerate() {
            bytes.resize(bytes.len().next_multiple_of(64), 0);
            let (entry, offset) = (FRONT + 32 * i, bytes.len() as u64);
            put(&mut bytes, entry, tag.as_bytes());
            put(&mut bytes, entry + 8, &offset.to_le_bytes());
            put(&mut bytes, entry + 16, &(section.len() as u64).to_le_bytes());
            bytes.extend(section);
        }
        let len = bytes.len() as u64;
        put(&mut bytes, 80, &len.to_le_bytes());
        reseal(&mut bytes);
        bytes
    }
}

pub(super) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn kdtree<const D: usize>(points: &[[f32; D]], ids: &[u32], axes: &[u8]) -> Forged {
    Forged {
        kind: "kdtree",
        points: "f32",
        coord: "f32",
        dims: D as u32,
        num_points: ids.len() as u64,
        num_nodes: ids.len() as u64,
        sections: vec![
            ("coords", bytemuck::cast_slice(points.as_flattened()).to_vec()),
            ("ids", bytemuck::cast_slice(ids).to_vec()),
            ("axes", axes.to_vec()),
        ],
    }
}

fn balanced(points: &[[f32; 2]], num_nodes: u64, medians: &[u32], stays: &[u32]) -> Forged {
    Forged {
        kind: "balanced",
        points: "f32",
        coord: "f32",
        dims: 2,
        num_points: points.len() as u64,
        num_nodes,
        sections: vec![
            ("coords", bytemuck::cast_slice(points.as_flattened()).to_vec()),
            ("medians", bytemuck::cast_slice(medians).to_vec()),
            ("stays", bytemuck::cast_slice(stays).to_vec()),
        ],
    }
}

const POINTS: [[f32; 2]; 4] = [[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [0.5, 0.0]];

/// The valid files that the tests below change equal the library's files byte for byte.
#[test]
fn files_have_the_documented_format() {
    let cpu = Device::cpu();
    let tree = crate::build(&cpu, &[[0.5f32, 0.0], [2.0, 0.0], [1.0, 0.0], [0.0, 1.0]]);
    let forged = kdtree(&[[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [0.5, 0.0]], &[2, 3, 1, 0], &[]);
    assert!(tree.write() == forged.bytes());

    let tree =
        crate::build_by(&cpu, &[[1.0f32, 0.0], [3.0, 5.0], [2.0, 9.0]], kauri::kdtree::SplitRule::Widest);
    let forged = kdtree(&[[3.0, 5.0], [1.0, 0.0], [2.0, 9.0]], &[1, 0, 2], &[1]);
    assert!(tree.write() == forged.bytes());

    let tree = BalancedKdTree::build(
        &cpu,
        &[[3.0f32, 1.0], [1.0, 1.0], [2.0, 1.0], [1.0, 1.0]],
        &BalancedOptions::default(),
    );
    assert!(tree.unwrap().write() == some_balanced().bytes());

    let places = [LonLat::new(90.0, 0.0)];
    let forged = Forged {
        kind: "kdtree",
        points: "LonLat",
        coord: "f64",
        dims: 3,
        num_points: 1,
        num_nodes: 1,
        sections: vec![
            ("coords", bytemuck::cast_slice(&[0.0f64, 1.0, 0.0]).to_vec()),
            ("ids", vec![0; 4]),
            ("axes", vec![]),
        ],
    };
    assert!(crate::build(&cpu, &places).write() == forged.bytes());
}

/// A tree with three nodes over four points.
fn some_balanced() -> Forged {
    balanced(&[[3.0, 1.0], [1.0, 1.0], [2.0, 1.0], [1.0, 1.0]], 3, &[2, 1, 0], &[0, 1, 2, 1])
}

#[track_caller]
pub(super) fn corrupt<T: Saved>(bytes: &[u8], offset: u64, words: &str) {
    for device in kauri_tests::devices_for(4) {
        match T::read(&device, bytes) {
            Err(Error::CorruptFile { offset: at, what, .. }) => {
                assert!(at == offset && what.contains(words), "byte {at}: {what}");
            }
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("the file was accepted: {words}"),
        }
    }
}

/// Returns the offset of section `i`.
pub(super) fn section(bytes: &[u8], i: usize) -> u64 {
    number(bytes, FRONT + 32 * i + 8)
}

#[test]
fn wrong_nodes_of_a_kd_tree() {
    type Tree = KdTree<[f32; 2]>;
    let ids = |ids: [u32; 4]| kdtree(&POINTS, &ids, &[]).bytes();
    let good = ids([0, 1, 2, 3]);
    assert!(<Tree as Saved>::read(&Device::cpu(), &good).unwrap().verify().is_ok());
    let begin = section(&good, 1);
    corrupt::<Tree>(&ids([0, 1, 2, 4]), begin + 12, "id 4, but there are 4 points");
    corrupt::<Tree>(&ids([0, u32::MAX, 2, 3]), begin + 4, "but there are 4 points");
    corrupt::<Tree>(&ids([0, 1, 0, 3]), begin + 8, "id 0 is also");

    let begin = section(&good, 0);
    for (bad, words) in [
        (f32::NAN, "NaN"),
        (f32::INFINITY, "inf"),
        (-f32::INFINITY, "-inf"),
        (1e30, "e30"),
        (-f32::MAX, "-3.4"),
    ] {
        let mut points = POINTS;
        points[2][1] = bad;
        corrupt::<Tree>(&kdtree(&points, &[0, 1, 2, 3], &[]).bytes(), begin + 20, words);
    }

    let axes = |axes: &[u8]| kdtree(&POINTS, &[0, 1, 2, 3], axes).bytes();
    corrupt::<Tree>(&axes(&[0, 2]), section(&good, 2) + 1, "axis 2, but there are 2");
    corrupt::<Tree>(&axes(&[255, 0]), section(&good, 2), "axis 255");
    corrupt::<Tree>(&axes(&[0]), FRONT as u64 + 80, "has 1 bytes, but should have 2");
    corrupt::<Tree>(&axes(&[0, 1, 1, 1]), FRONT as u64 + 80, "has 4 bytes");

    // Loading does not check the order of the nodes: queries work, and `verify` reports the error.
    let reversed = ids([3, 2, 1, 0]);
    let tree = <Tree as Saved>::read(&Device::cpu(), &reversed).unwrap();
    assert!(tree.nearest(&[[0.0; 2]], 4).is_ok());
    let mut moved = POINTS;
    moved.reverse();
    let tree = <Tree as Saved>::read(&Device::cpu(), &kdtree(&moved, &[0, 1, 2, 3], &[]).bytes()).unwrap();
    assert!(matches!(tree.verify(), Err(Error::Corrupt { .. })));
    let wrong_axes = <Tree as Saved>::read(&Device::cpu(), &axes(&[1, 1])).unwrap();
    assert!(matches!(wrong_axes.verify(), Err(Error::Corrupt { .. })));
}

#[test]
fn wrong_nodes_of_a_balanced_tree() {
    type Tree = BalancedKdTree<[f32; 2]>;
    const NONE: u32 = u32::MAX;
    let good = some_balanced().bytes();
    assert!(<Tree as Saved>::read(&Device::cpu(), &good).unwrap().verify().is_ok());
    let changed = |i: usize, item: usize, value: u32| {
        let mut forged = some_balanced();
        put(&mut forged.sections[i].1, 4 * item, &value.to_le_bytes());
        (forged.bytes(), section(&good, i) + 4 * item as u64)
    };
    let wrong = |i: usize, item: usize, value: u32, words: &str| {
        let (bytes, offset) = changed(i, item, value);
        corrupt::<Tree>(&bytes, offset, words);
    };
    wrong(0, 3, f32::NAN.to_bits(), "NaN");
    wrong(1, 0, 4, "id 4, but there are 4 points");
    wrong(1, 0, NONE, "but the subtree has");
    wrong(1, 2, 2, "id 2 is also");
    wrong(1, 1, 3, "id 3, but that point was removed");
    wrong(2, 3, 4, "but comes later");
    wrong(2, 3, NONE, "but comes later");
    wrong(2, 1, 3, "but comes later");
    wrong(2, 3, 2, "but differs from it");
    // The number of kept points must be the number of nodes.
    let (bytes, _) = changed(2, 3, 3);
    corrupt::<Tree>(&bytes, section(&good, 2), "4 points were kept, but there are 3 nodes");
    // Loading accepts nodes on the wrong side; `verify` reports them.
    let mut forged = some_balanced();
    put(&mut forged.sections[0].1, 0, &0.0f32.to_le_bytes());
    assert!(<Tree as Saved>::read(&Device::cpu(), &forged.bytes()).unwrap().verify().is_err());
}

#[test]
fn numbers_that_do_not_agree() {
    type Tree = KdTree<[f32; 2]>;
    let good = || kdtree(&POINTS, &[0, 1, 2, 3], &[]);
    let entry = |i: u64| FRONT as u64 + 32 * i;
    corrupt::<Tree>(&Forged { num_points: 3, num_nodes: 3, ..good() }.bytes(), entry(0) + 16, "32 bytes");
    corrupt::<Tree>(&Forged { num_points: 5, num_nodes: 5, ..good() }.bytes(), entry(0) + 16, "32 bytes");
    corrupt::<Tree>(&Forged { num_nodes: 3, ..good() }.bytes(), 72, "3 nodes");
    for num_points in [u64::from(u32::MAX), 1 << 32, u64::MAX, 1 << 61] {
        let forged = Forged { num_points, num_nodes: num_points, ..good() };
        corrupt::<Tree>(&forged.bytes(), 64, &format!("{num_points} points"));
    }
    let mut fewer = good();
    fewer.sections.pop();
    corrupt::<Tree>(&fewer.bytes(), entry(2), "section 2 should be 'axes'");
    let mut more = good();
    more.sections.push(("more", vec![1, 2, 3]));
    corrupt::<Tree>(&more.bytes(), entry(3), "the section 'more'");
    let mut swapped = good();
    swapped.sections.swap(0, 1);
    corrupt::<Tree>(&swapped.bytes(), entry(0), "section 0 should be 'coords'");

    type Balanced = BalancedKdTree<[f32; 2]>;
    corrupt::<Balanced>(&Forged { num_nodes: 0, ..some_balanced() }.bytes(), 72, "0 nodes");
    corrupt::<Balanced>(&Forged { num_nodes: 5, ..some_balanced() }.bytes(), 72, "5 nodes");
    // Fewer nodes, but the number of levels is unchanged.
    let bytes = Forged { num_nodes: 2, ..some_balanced() }.bytes();
    corrupt::<Balanced>(&bytes, section(&bytes, 2), "3 points were kept, but there are 2 nodes");
    corrupt::<Balanced>(
        &Forged { num_nodes: 4, ..some_balanced() }.bytes(),
        entry(1) + 16,
        "'medians' has 12",
    );
}

/// Headers with false numbers and a right checksum: nothing is allocated for these numbers.
#[test]
fn false_headers_allocate_nothing() {
    type Tree = KdTree<[f32; 2]>;
    let good = kdtree(&POINTS, &[0, 1, 2, 3], &[]).bytes();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tree.kauri");
    let mut forgeries: Vec<(String, Vec<u8>)> = Vec::new();
    for value in
        [0, 1, 32, 33, 63, 64, 128, 1 << 20, 1 << 32, 1 << 40, 1 << 62, 1 << 63, u64::MAX - 63, u64::MAX]
    {
        // Numbers of points and nodes, bytes of the file; offset and bytes of each section.
        for at in
            [64, 72, 80].into_iter().chain((0..3).flat_map(|i| [FRONT + 32 * i + 8, FRONT + 32 * i + 16]))
        {
            let mut bytes = good.clone();
            put(&mut bytes, at, &value.to_le_bytes());
            reseal(&mut bytes);
            if bytes != good {
                forgeries.push((format!("{value} at {at}"), bytes));
            }
        }
        let mut bytes = good.clone();
        put(&mut bytes, 12, &(value as u32).to_le_bytes());
        reseal(&mut bytes);
        forgeries.push((format!("{value} sections"), bytes));
        // All numbers agree with each other but not with the file.
        if let Some(coords_bytes) = value.checked_mul(8).filter(|&bytes| bytes > 0) {
            let mut bytes = good.clone();
            put(&mut bytes, 64, &value.to_le_bytes());
            put(&mut bytes, 72, &value.to_le_bytes());
            let mut end = (FRONT + 96) as u64;
            for (i, len) in [coords_bytes, value.saturating_mul(4), 0].into_iter().enumerate() {
                let offset = end.next_multiple_of(64);
                put(&mut bytes, FRONT + 32 * i + 8, &offset.to_le_bytes());
                put(&mut bytes, FRONT + 32 * i + 16, &len.to_le_bytes());
                end = offset.saturating_add(len).min(u64::MAX - 64);
            }
            put(&mut bytes, 80, &end.to_le_bytes());
            reseal(&mut bytes);
            forgeries.push((format!("{value} points everywhere"), bytes));
        }
    }
    for (what, bytes) in &forgeries {
        std::fs::write(&path, bytes).unwrap();
        let loads: [(&str, &dyn Fn() -> kauri::Result<Tree>); 3] = [
            ("read", &|| Tree::read_from(&Device::cpu(), &bytes[..])),
            ("load", &|| Tree::load(&Device::cpu(), &path)),
            ("map", &|| <Tree as Saved>::map(&Device::cpu(), &path)),
        ];
        for (how, load) in loads {
            let (result, largest) = largest_allocation(load);
            assert!(matches!(result, Err(Error::CorruptFile { .. })), "{what}, {how}: {result:?}");
            // The length of a stream is unknown, so its first piece is allocated.
            let most = if how == "read" { (1 << 20) + 64 } else { 16 << 10 };
            assert!(largest <= most, "{what}, {how}: {largest} bytes allocated");
        }
    }
    assert!(forgeries.len() > 100);
}

/// Loading allocates the size of the file once, and mapping allocates nearly nothing.
#[test]
fn memory_of_valid_files() {
    let points = Shape::Uniform.points::<f32, 2>(200_000, 1);
    let tree = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tree.kauri");
    tree.save(&path).unwrap();
    let file_bytes = std::fs::metadata(&path).unwrap().len() as usize;
    let (loaded, largest) = largest_allocation(&|| KdTree::<[f32; 2]>::load(&Device::cpu(), &path));
    assert!(loaded.is_ok() && (file_bytes..file_bytes + 64).contains(&largest), "{largest} of {file_bytes}");
    let (mapped, largest) = largest_allocation(&|| <KdTree<[f32; 2]> as Saved>::map(&Device::cpu(), &path));
    // The tree orders the points of the file anew; the coordinates are two thirds of it.
    assert!(mapped.is_ok() && largest < file_bytes / 10 * 7, "{largest} of {file_bytes}");
}

/// Checks that the bytes are refused, because they are of another index.
pub(super) fn refused<T: Saved>(bytes: &[u8], what: &str, expected: &str, found: &str) {
    match T::read(&Device::cpu(), bytes).err() {
        Some(Error::WrongFile { what: w, expected: e, found: f, .. }) => {
            assert_eq!((w, &*e, &*f), (what, expected, found));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn files_of_another_index() {
    fn bytes<P: Point>(points: &[P]) -> Vec<u8> {
        crate::build(&Device::cpu(), points).write()
    }
    let points = "type of points";
    let f32_3 = bytes(&[[1.0f32; 3], [2.0; 3]]);
    refused::<KdTree<[f64; 2]>>(&f32_3, points, "f64 as 2 x f64", "f32 as 3 x f32");
    refused::<KdTree<[f32; 2]>>(&f32_3, points, "f32 as 2 x f32", "f32 as 3 x f32");
    refused::<KdTree<[f64; 3]>>(&f32_3, points, "f64 as 3 x f64", "f32 as 3 x f32");
    refused::<KdTree<LonLat>>(&f32_3, points, "LonLat as 3 x f64", "f32 as 3 x f32");
    refused::<BalancedKdTree<[f32; 3]>>(&f32_3, "kind of index", "balanced", "kdtree");
    let lonlat = bytes(&[LonLat::default()]);
    refused::<KdTree<[f64; 3]>>(&lonlat, points, "f64 as 3 x f64", "LonLat as 3 x f64");
    let integers = bytes(&[[1i32, 2]]);
    refused::<KdTree<[i64; 2]>>(&integers, points, "i64 as 2 x f64", "i32 as 2 x i32");
    refused::<KdTree<[f64; 2]>>(&integers, points, "f64 as 2 x f64", "i32 as 2 x i32");
    refused::<KdTree<[f32; 3]>>(&some_balanced().bytes(), "kind of index", "kdtree", "balanced");
    refused::<Widest<[f32; 3]>>(&some_balanced().bytes(), "kind of index", "kdtree", "balanced");
    for version in [0, 2, u32::MAX] {
        let mut later = f32_3.clone();
        put(&mut later, 8, &version.to_le_bytes());
        refused::<KdTree<[f32; 3]>>(&later, "version of the format", "1", &version.to_string());
        reseal(&mut later);
        refused::<KdTree<[f32; 3]>>(&later, "version of the format", "1", &version.to_string());
    }
    // Names with control characters are refused, because an error message would print them.
    let mut strange = f32_3;
    put(&mut strange, 16, b"\x1b[2J");
    reseal(&mut strange);
    corrupt::<KdTree<[f32; 3]>>(&strange, 16, "ASCII");
}

/// The error names the file, the offset and the problem.
#[test]
fn errors_name_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tree.kauri");
    std::fs::write(&path, kdtree(&POINTS, &[0, 1, 2, 9], &[]).bytes()).unwrap();
    let error = KdTree::<[f32; 2]>::load(&Device::cpu(), &path).unwrap_err().to_string();
    let shown = path.display().to_string();
    assert!(error.starts_with(&shown) && error.contains("id 9, but there are 4 points"), "{error}");
    let error = KdTree::<LonLat>::load(&Device::cpu(), &path).unwrap_err().to_string();
    assert!(error.starts_with(&shown) && error.contains("f32 as 2 x f32"), "{error}");
}

/// An allocator that records the largest allocation of each thread.
struct Watch;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

fn note(bytes: usize) {
    // A thread that ends may allocate after its thread-local values are gone.
    let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(bytes)));
}

// SAFETY: all calls are passed on to the system's allocator.
unsafe impl GlobalAlloc for Watch {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: passed on to the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: passed on to the caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        note(new_size);
        // SAFETY: passed on to the caller.
        unsafe { System.realloc(pointer, layout, new_size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: passed on to the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static WATCH: Watch = Watch;

/// Returns the result of a call, and its largest allocation on this thread in bytes.
pub(super) fn largest_allocation<R>(call: &dyn Fn() -> R) -> (R, usize) {
    LARGEST.with(|largest| largest.set(0));
    let result = call();
    (result, LARGEST.with(Cell::get))
}
