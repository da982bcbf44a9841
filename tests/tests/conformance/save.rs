//! Saved and loaded trees: equal results on every device, and a typed error for every invalid file.

mod damaged;
mod files;
mod forged;
mod quadtrees;
mod rtrees;

use kauri::balanced::{BalancedKdTree, BalancedOptions};
use kauri::kdtree::{BuildAlgorithm, SplitRule};
use kauri::quadtree::{CartesianPoint, CellTree, Quadtree, QuadtreeOptions};
use kauri::query::{Queries, QueryOptions};
use kauri::{Device, KdTree, KdTreeOptions, LonLat, Point, RTree, Result, SpatialIndex};
use kauri_tests::generate::{Scalar, Shape};
use kauri_tests::{devices, devices_for, for_each_dims, simulated};
use std::path::Path;

/// The operations of a tree that the tests use.
trait Saved: Sized {
    type Points: Point;
    fn build(device: &Device, points: &[Self::Points]) -> Self;
    fn write(&self) -> Vec<u8>;
    fn save(&self, path: &Path) -> Result<()>;
    fn read(device: &Device, bytes: &[u8]) -> Result<Self>;
    fn load(device: &Device, path: &Path) -> Result<Self>;
    fn map(device: &Device, path: &Path) -> Result<Self>;
    /// Checks the tree; a load checks an R-tree completely.
    fn verify(&self) -> Result<()> {
        Ok(())
    }
    /// Returns the results of several queries. Equal trees have equal results.
    fn answers(&self) -> Vec<u64>;
}

macro_rules! files {
    () => {
        fn write(&self) -> Vec<u8> {
            let mut bytes = Vec::new();
            self.write_to(&mut bytes).unwrap();
            bytes
        }

        fn save(&self, path: &Path) -> Result<()> {
            self.save(path)
        }

        fn read(device: &Device, bytes: &[u8]) -> Result<Self> {
            Self::read_from(device, bytes)
        }

        fn load(device: &Device, path: &Path) -> Result<Self> {
            Self::load(device, path)
        }

        fn map(device: &Device, path: &Path) -> Result<Self> {
            // SAFETY: while a tree is mapped, the tests change its file only through `save`, which replaces it.
            unsafe { Self::map(device, path) }
        }
    };
}

macro_rules! verified {
    () => {
        fn verify(&self) -> Result<()> {
            self.verify()
        }
    };
}

/// The operations of the tree inside a struct.
macro_rules! files_of_inner {
    () => {
        fn write(&self) -> Vec<u8> {
            Saved::write(&self.0)
        }

        fn save(&self, path: &Path) -> Result<()> {
            self.0.save(path)
        }

        fn read(device: &Device, bytes: &[u8]) -> Result<Self> {
            Saved::read(device, bytes).map(Self)
        }

        fn load(device: &Device, path: &Path) -> Result<Self> {
            Saved::load(device, path).map(Self)
        }

        fn map(device: &Device, path: &Path) -> Result<Self> {
            Saved::map(device, path).map(Self)
        }

        fn verify(&self) -> Result<()> {
            Saved::verify(&self.0)
        }

        fn answers(&self) -> Vec<u64> {
            self.0.answers()
        }
    };
}

/// A k-d tree with the split rule `Widest`.
struct Widest<P: Point>(KdTree<P>);

/// An R-tree after an insert and a removal: it has given more ids than it has points.
struct Changed<P: Point>(RTree<P>);

/// Returns the results of queries for the points of an index.
fn own_neighbors<P: Point>(index: &impl SpatialIndex<Point = P>) -> Vec<u64> {
    let options = QueryOptions::default();
    let near = index.nearest_with(Queries::SelfQuery { include_self: true }, 3, &options).unwrap();
    let mut answers: Vec<u64> = near.ids().iter().map(|&id| u64::from(id)).collect();
    answers.extend(near.dist2().iter().map(|&distance| bits(distance)));
    let middle = near.dist2().get(near.dist2().len() / 2).copied();
    // A radius within which some of the points are.
    if let Some(radius) = middle.filter(|&middle| bits(middle) < f64::INFINITY.to_bits()) {
        let options = options.sorted();
        let within = index.within(Queries::SelfQuery { include_self: false }, radius, &options).unwrap();
        answers.extend(within.offsets());
        answers.extend(within.ids().iter().map(|&id| u64::from(id)));
    }
    answers
}

impl<P: Point> Saved for KdTree<P> {
    type Points = P;
    files!();
    verified!();

    fn build(device: &Device, points: &[P]) -> Self {
        KdTree::build(device, points, &KdTreeOptions::default()).unwrap()
    }

    fn answers(&self) -> Vec<u64> {
        let mut answers: Vec<u64> = self.node_ids().unwrap().into_iter().map(u64::from).collect();
        answers.extend(own_neighbors(self));
        answers
    }
}

impl<P: Point> Saved for Widest<P> {
    type Points = P;
    files_of_inner!();

    fn build(device: &Device, points: &[P]) -> Self {
        Self(KdTree::build(device, points, &KdTreeOptions::default().split(SplitRule::Widest)).unwrap())
    }
}

impl<P: Point> Saved for RTree<P> {
    type Points = P;
    files!();

    fn build(device: &Device, points: &[P]) -> Self {
        Self::build(device, points).unwrap()
    }

    fn answers(&self) -> Vec<u64> {
        let mut answers = vec![self.num_ids() as u64];
        answers.extend(self.ids().unwrap().into_iter().map(u64::from));
        answers.extend(own_neighbors(self));
        answers
    }
}

impl<P: Point> Saved for Changed<P> {
    type Points = P;
    files_of_inner!();

    fn build(device: &Device, points: &[P]) -> Self {
        let (first, second) = points.split_at(points.len() / 2);
        let mut tree = RTree::build(device, first).unwrap();
        tree.insert(second).unwrap();
        // The last id, too: the ids do not tell the next one.
        let removed: Vec<u32> = (0..points.len() as u32).rev().step_by(3).collect();
        tree.remove(&removed).unwrap();
        Self(tree)
    }
}

impl<P: Point> Saved for BalancedKdTree<P> {
    type Points = P;
    files!();
    verified!();

    fn build(device: &Device, points: &[P]) -> Self {
        Self::build(device, points, &BalancedOptions::default()).unwrap()
    }

    fn answers(&self) -> Vec<u64> {
        let mut answers = vec![self.len() as u64, self.num_points() as u64];
        answers.extend(self.medians().unwrap().into_iter().map(u64::from));
        let some = |id: Option<u32>| id.map_or(u64::MAX, u64::from);
        let nodes = self.nodes().unwrap();
        answers
            .extend(nodes.iter().flat_map(|node| [u64::from(node.id), some(node.less), some(node.greater)]));
        let removed = self.removed().unwrap();
        answers.extend(removed.iter().flat_map(|pair| [u64::from(pair.id), u64::from(pair.kept)]));
        let own = Queries::SelfQuery { include_self: false };
        let near = self.nearest_with(own, 2, &QueryOptions::default()).unwrap();
        answers.extend(near.ids().iter().map(|&id| u64::from(id)));
        answers
    }
}

impl<P: CartesianPoint<D>, const D: usize> Saved for CellTree<P, D> {
    type Points = P;
    files!();
    verified!();

    fn build(device: &Device, points: &[P]) -> Self {
        Self::build(device, points, &QuadtreeOptions::default().leaf_points(3)).unwrap()
    }

    fn answers(&self) -> Vec<u64> {
        let nodes = self.nodes().unwrap();
        let words = nodes.iter().flat_map(|node| [node.start, node.end, node.first_child, node.level]);
        let mut answers: Vec<u64> = words.map(u64::from).collect();
        answers.extend(self.level_begins().iter().map(|&begin| u64::from(begin)));
        answers.extend(self.ids().unwrap().iter().map(|&id| u64::from(id)));
        answers.extend(self.coords().unwrap().iter().map(|&x| bits(x)));
        let some: Vec<u32> = (0..nodes.len() as u32).step_by(1 + nodes.len() / 50).collect();
        let around = self.adjacent_leaves(&some).unwrap();
        answers.extend(around.offsets());
        answers.extend(around.values().iter().map(|&leaf| u64::from(leaf)));
        answers.extend(self.level_of_detail(self.depth() / 2).unwrap().into_iter().map(u64::from));
        answers
    }
}

fn bits(x: impl kauri_kernels::thread::coord::Coord) -> u64 {
    x.to_f64().to_bits()
}

/// Saves trees over `points` on every device and loads them on every device, in all ways.
fn goes_round<T: Saved>(points: &[T::Points], what: &str) {
    let devices = devices_for(points.len());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tree.kauri");
    let expected = T::build(&Device::cpu(), points);
    let (bytes, answers) = (expected.write(), expected.answers());
    for device in &devices {
        let built = T::build(device, points);
        assert!(built.write() == bytes, "{what}: a different file from {device}");
        built.save(&path).unwrap();
        assert!(std::fs::read(&path).unwrap() == bytes, "{what}: a different file from {device}");
        for target in &devices {
            let what = format!("{what} from {device} to {target}");
            let check = |tree: Result<T>| {
                let tree = tree.unwrap_or_else(|error| panic!("{what}: {error}"));
                tree.verify().unwrap_or_else(|error| panic!("{what}: {error}"));
                assert!(tree.answers() == answers, "{what}: different results");
                assert!(tree.write() == bytes, "{what}: a different file when saved again");
            };
            check(T::load(target, &path));
            check(T::map(target, &path));
            check(T::read(target, &bytes));
        }
    }
}

const SHAPES: [Shape; 5] =
    [Shape::Uniform, Shape::FewDistinct, Shape::AllEqual, Shape::SignedZeros, Shape::Largest];

fn all_dims<S: Scalar, const D: usize>()
where
    [S; D]: Point,
{
    for (i, n) in [0, 1, 2, 7, 33, 1000].into_iter().enumerate() {
        // Small inputs also run in the simulator, which is slow.
        let shapes = if n <= 33 { &SHAPES[D % SHAPES.len()..][..1] } else { &SHAPES };
        for &shape in shapes {
            let points = shape.points::<S, D>(n, i as u64);
            let what = format!("{n} {shape:?} points of {D} x {}", <S as kauri::Scalar>::TYPE_NAME);
            goes_round::<KdTree<[S; D]>>(&points, &what);
            goes_round::<Widest<[S; D]>>(&points, &what);
            goes_round::<BalancedKdTree<[S; D]>>(&points, &what);
        }
    }
}

#[test]
fn round_trips_of_f32() {
    for_each_dims!(all D => all_dims::<f32, D>());
}

#[test]
fn round_trips_of_f64() {
    for_each_dims!(all D => all_dims::<f64, D>());
}

#[test]
fn round_trips_of_integers_and_places() {
    for n in [0, 1, 2, 33, 1000] {
        let uniform = Shape::Uniform.points::<f64, 3>(n, 9);
        let integers: Vec<[i32; 3]> = uniform.iter().map(|p| p.map(|x| (x * 50.0) as i32 - 20)).collect();
        let long: Vec<[i64; 3]> = integers.iter().map(|p| p.map(|x| i64::from(x) << 40)).collect();
        let places: Vec<LonLat> = uniform
            .iter()
            .map(|p| LonLat::new(360.0 * p[0] - 180.0, (180.0 * p[1]).round() - 90.0))
            .collect();
        goes_round::<KdTree<[i32; 3]>>(&integers, "i32");
        goes_round::<Widest<[i64; 3]>>(&long, "i64");
        goes_round::<KdTree<LonLat>>(&places, "places");
        goes_round::<BalancedKdTree<[i32; 3]>>(&integers, "i32");
        goes_round::<BalancedKdTree<[i64; 3]>>(&long, "i64");
        goes_round::<BalancedKdTree<LonLat>>(&places, "places");
    }
}

/// Large enough for several pieces of a checksum, an upload and a check.
#[test]
fn round_trips_of_large_trees() {
    let points = Shape::Uniform.points::<f64, 3>(300_001, 4);
    goes_round::<KdTree<[f64; 3]>>(&points, "300 001 points");
    goes_round::<BalancedKdTree<[f64; 3]>>(&points, "300 001 points");
}

/// The algorithms copy coordinates in different ways. All of them keep the signs of zeros.
#[test]
fn every_algorithm_gives_the_same_file() {
    fn check<S: Scalar>()
    where
        [S; 2]: Point,
    {
        let points = Shape::SignedZeros.points::<S, 2>(33, 8);
        for rule in [SplitRule::RoundRobin, SplitRule::Widest] {
            let bytes = crate::build_by(&Device::cpu(), &points, rule).write();
            for device in devices_for(points.len()) {
                let algorithms = [
                    BuildAlgorithm::Selection,
                    BuildAlgorithm::SelectionInPlace,
                    BuildAlgorithm::Tags,
                    BuildAlgorithm::TagsInPlace,
                ];
                for algorithm in algorithms {
                    let options = KdTreeOptions::default().split(rule).algorithm(algorithm);
                    let tree = KdTree::build(&device, &points, &options).unwrap();
                    assert!(tree.write() == bytes, "{algorithm:?}, {rule:?} on {device}");
                }
            }
        }
    }
    check::<f32>();
    check::<f64>();
}

/// Enough buckets for several levels of boxes above them, also in the simulator.
#[test]
fn many_buckets() {
    fn check<T: Saved>(points: &[T::Points], device: &Device) {
        let expected = T::build(&Device::cpu(), points);
        let loaded = T::read(device, &expected.write()).unwrap();
        loaded.verify().unwrap();
        assert!(loaded.answers() == expected.answers() && loaded.write() == expected.write(), "{device}");
    }
    let points = Shape::Clustered.points::<f32, 3>(333, 7);
    for device in devices().into_iter().chain(simulated().take(1)) {
        check::<KdTree<[f32; 3]>>(&points, &device);
        check::<Widest<[f32; 3]>>(&points, &device);
        check::<BalancedKdTree<[f32; 3]>>(&points, &device);
        check::<Changed<[f32; 3]>>(&points, &device);
    }
}

/// A tree that was rebuilt from device buffers is saved in its current state.
#[test]
fn trees_of_device_buffers() {
    use kauri::device::{Buffer, Stream, Workspace};
    let points = Shape::Uniform.points::<f32, 2>(33, 5);
    for device in devices_for(points.len()) {
        let Some(gpu) = device.gpu() else { continue };
        let (stream, mut workspace) = (Stream::new(gpu).unwrap(), Workspace::new(gpu));
        let mut coords = points.as_flattened().to_vec();
        let buffer = |coords: &[f32]| Buffer::from_slice(&stream, coords, "coordinates").unwrap();
        let options = KdTreeOptions::default();
        let first = buffer(&vec![1.0; coords.len()]);
        let mut tree = KdTree::<[f32; 2]>::build_on(&stream, &mut workspace, &first, &options).unwrap();
        let second = buffer(&coords);
        tree.rebuild_on(&stream, &mut workspace, &second, &options).unwrap();
        assert!(Saved::write(&tree) == Saved::write(&crate::build(&Device::cpu(), &points)), "{device}");

        // A loaded tree can be rebuilt, too.
        let mut loaded = <KdTree<[f32; 2]>>::read_from(&device, &Saved::write(&tree)[..]).unwrap();
        loaded.rebuild_on(&stream, &mut workspace, &first, &options).unwrap();
        loaded.verify().unwrap();

        // Saving is the first time that the host sees these coordinates.
        coords[7] = f32::NAN;
        tree.rebuild_on(&stream, &mut workspace, &buffer(&coords), &options).unwrap();
        let error = tree.write_to(std::io::sink()).unwrap_err();
        assert!(matches!(error, kauri::Error::NonFinite { index: 3, axis: 1, .. }), "{error}");
    }
}

/// Each driver call fails once while a tree is saved and loaded.
#[test]
fn faults_of_the_device() {
    use kauri::Error;
    use kauri::device::{FaultCall, FaultPlan};
    fn survives<T: Saved>(device: &Device, points: &[T::Points]) {
        let bytes = T::build(&Device::cpu(), points).write();
        let gpu = device.gpu().unwrap();
        // A quadtree that the device has no memory for is loaded all the same, so a success may follow from a fault.
        let (mut failed, mut successes) = (0, 0);
        for nth in 1.. {
            let faulty = gpu.with_faults(FaultPlan { call: FaultCall::Any, nth, repeat: false });
            let read = T::read(&Device::from_gpu(faulty.clone()), &bytes);
            match read.map(drop) {
                Ok(_) if successes == 2 => break,
                Ok(_) => successes += 1,
                Err(Error::OutOfMemory { .. } | Error::Driver { name: "INJECTED", .. }) => {
                    (failed, successes) = (failed + 1, 0);
                }
                Err(error) => panic!("call {nth}: {error}"),
            }
            assert_eq!(faulty.memory_use().live_bytes, 0, "call {nth}");
        }
        assert!(failed > 5, "{failed} calls");
    }
    let points = Shape::Uniform.points::<f32, 2>(33, 6);
    for device in devices_for(points.len()).iter().filter(|device| !device.is_cpu()) {
        survives::<Widest<[f32; 2]>>(device, &points);
        survives::<BalancedKdTree<[f32; 2]>>(device, &points);
        survives::<Changed<[f32; 2]>>(device, &points);
        survives::<Quadtree<[f32; 2]>>(device, &points);
    }
}
