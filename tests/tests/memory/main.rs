//! Memory on the CPU: builds and joins take at most a tenth more than their plans say.

use kauri::balanced::{BalancedKdTree, BalancedOptions};
use kauri::join::{DistanceJoin, JoinPlan, KnnJoin, Scored, SelfPairs, TopKDistanceJoin};
use kauri::kdtree::SplitRule;
use kauri::quadtree::{CartesianPoint, CellTree, QuadtreeOptions};
use kauri::research::quadtree::BuildAlgorithm;
use kauri::{Device, KdTree, KdTreeOptions, LonLat, MemoryPlan, Point, RTree, SpatialIndex};
use kauri_tests::generate::{Random, Shape};
use kauri_tests::oracle::DistanceOf;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

/// Points of the tests that always run.
const FEW: usize = 1 << 18;
/// Points of the tests that take gigabytes and minutes.
const MANY: usize = 50_000_000;

/// The system's allocator, which counts the allocated bytes and their peak.
struct Counting {
    now: AtomicUsize,
    most: AtomicUsize,
}

#[global_allocator]
static ALLOCATED: Counting = Counting { now: AtomicUsize::new(0), most: AtomicUsize::new(0) };

impl Counting {
    fn add(&self, bytes: usize) {
        self.most.fetch_max(self.now.fetch_add(bytes, Relaxed) + bytes, Relaxed);
    }

    fn sub(&self, bytes: usize) {
        self.now.fetch_sub(bytes, Relaxed);
    }
}

// SAFETY: every call goes unchanged to the system's allocator; counting neither allocates nor touches allocated memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.add(layout.size());
        // SAFETY: the caller keeps the same promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        self.sub(layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.add(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.add(size);
        self.sub(layout.size());
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// Runs `work`. Returns its result and the peak of the bytes that it allocated.
fn peak_of<R>(work: impl FnOnce() -> kauri::Result<R>) -> (R, u64) {
    let before = ALLOCATED.now.load(Relaxed);
    ALLOCATED.most.store(before, Relaxed);
    let made = work().unwrap();
    (made, (ALLOCATED.most.load(Relaxed) - before) as u64)
}

/// Tests of this file run one after the other.
static ALONE: Mutex<()> = Mutex::new(());

/// Asserts that the peak is at most a tenth above the plan. Returns their ratio.
fn compare(what: &str, planned: u64, peak: u64) -> f64 {
    let ratio = peak as f64 / planned as f64;
    println!("{what}: planned {planned}, peak {peak} bytes, {ratio:.3}");
    assert!(ratio <= 1.1, "{what}: {peak} bytes, but {planned} were planned");
    ratio
}

/// Asserts that the peak of a build is also at least half of the plan, because builds take the same memory for any points.
fn compare_build(what: &str, planned: u64, peak: u64) {
    assert!(compare(what, planned, peak) >= 0.5, "{what}: only {peak} bytes, but {planned} were planned");
}

/// Allocates the memory that does not grow with points, such as that of threads.
fn warm_up() {
    let points = Shape::Uniform.points::<f32, 2>(10_000, 1);
    let device = Device::cpu();
    KdTree::build(&device, &points, &KdTreeOptions::default()).unwrap();
    BalancedKdTree::build(&device, &points, &BalancedOptions::default()).unwrap();
    RTree::build(&device, &points).unwrap();
    CellTree::build(&device, &points, &QuadtreeOptions::default()).unwrap();
    DistanceJoin::new(1e-3).count(&device, &points, &points).unwrap();
}

fn sum(plan: MemoryPlan) -> u64 {
    plan.tree_bytes + plan.temp_bytes
}

fn trees_of<P: Point>(what: &str, points: &[P]) {
    let device = Device::cpu();
    for split in [SplitRule::RoundRobin, SplitRule::Widest] {
        let options = KdTreeOptions::default().split(split);
        let plan = KdTree::<P>::plan(&device, points.len(), &options);
        let (tree, peak) = peak_of(|| KdTree::build(&device, points, &options));
        compare_build(&format!("KdTree of {what}, {split:?}"), sum(plan), peak);
        assert_eq!(tree.len(), points.len());
    }
    let options = BalancedOptions::default();
    let plan = BalancedKdTree::<P>::plan(&device, points.len(), &options);
    let (tree, peak) = peak_of(|| BalancedKdTree::build(&device, points, &options));
    compare_build(&format!("BalancedKdTree of {what}"), sum(plan), peak);
    assert_eq!(tree.num_points(), points.len());
    let plan = RTree::<P>::plan(&device, points.len());
    let (tree, peak) = peak_of(|| RTree::build(&device, points));
    compare_build(&format!("RTree of {what}"), sum(plan), peak);
    assert_eq!(tree.len(), points.len());
}

/// Compares builds of quadtrees or octrees with their plans.
fn cell_trees_of<P: CartesianPoint<D>, const D: usize>(what: &str, points: &[P]) {
    let device = Device::cpu();
    for algorithm in [BuildAlgorithm::Codes, BuildAlgorithm::LEVELS] {
        let options = QuadtreeOptions::default().algorithm(algorithm);
        let plan = CellTree::<P, D>::plan(&device, points.len(), &options);
        let (tree, peak) = peak_of(|| CellTree::<P, D>::build(&device, points, &options));
        compare_build(&format!("CellTree of {what}, {algorithm:?}"), sum(plan), peak);
        assert_eq!(tree.len(), points.len());
    }
}

/// Generates places that are spread evenly.
fn places(num: usize, seed: u64) -> Vec<LonLat> {
    let mut random = Random::new(seed);
    let mut place =
        || LonLat::new(360.0 * random.unit() - 180.0, (2.0 * random.unit() - 1.0).asin().to_degrees());
    (0..num).map(|_| place()).collect()
}

fn trees(num: usize) {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    warm_up();
    let points = Shape::Uniform.points::<f32, 3>(num, 1);
    trees_of("3 x f32", &points);
    cell_trees_of("3 x f32", &points);
    drop(points);
    let points = Shape::Uniform.points::<f64, 2>(num, 1);
    trees_of("2 x f64", &points);
    cell_trees_of("2 x f64", &points);
    drop(points);
    trees_of("places", &places(num, 1));
    let integers = Shape::Uniform.points::<f64, 2>(num, 2);
    let integers: Vec<_> = integers.iter().map(|point| point.map(|x| (x * 1e9) as i32)).collect();
    trees_of("2 x i32", &integers);
    cell_trees_of("2 x i32", &integers);
}

fn joins_of<P: Point>(what: &str, [left, right]: [&[P]; 2], epsilon: DistanceOf<P>) {
    let device = Device::cpu();
    let sum =
        |plan: JoinPlan, pairs: usize| plan.input_bytes + plan.temp_bytes + plan.pair_bytes * pairs as u64;

    let join = DistanceJoin::new(epsilon);
    let (found, peak) = peak_of(|| join.rows(&device, left, right));
    let plan = join.plan(&device, left, Some(right)).unwrap();
    compare(
        &format!("DistanceJoin of {what}, {} pairs", found.ids().len()),
        sum(plan, found.ids().len()),
        peak,
    );
    let (found, peak) = peak_of(|| join.self_rows(&device, left, SelfPairs::Once));
    let plan = join.plan(&device, left, None).unwrap();
    compare(&format!("DistanceJoin of one set of {what}"), sum(plan, found.ids().len()), peak);

    let scores: Vec<u32> = (0..left.len() as u32).map(|id| id.wrapping_mul(0x9e37_79b9)).collect();
    let sets = [Scored::new(left, &scores).unwrap(), Scored::new(right, &scores[..right.len()]).unwrap()];
    let join = TopKDistanceJoin::new(epsilon, 1000);
    let plan = join.plan(&device, sets[0], sets[1]).unwrap();
    let (found, peak) = peak_of(|| join.run(&device, sets[0], sets[1]));
    compare(&format!("TopKDistanceJoin of {what}"), sum(plan, found.pairs().len()), peak);

    let join = KnnJoin::new(4).within(epsilon);
    let plan = join.plan(&device, left, right).unwrap();
    let (found, peak) = peak_of(|| join.run(&device, left, right));
    compare(&format!("KnnJoin of {what}"), sum(plan, found.len()), peak);
}

fn joins(num: usize) {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    warm_up();
    let sets = [1, 2].map(|seed| Shape::Uniform.points::<f32, 3>(num, seed));
    // About two pairs per point.
    joins_of("3 x f32", [&sets[0], &sets[1]], (0.5 / num as f32).cbrt());
    drop(sets);
    let sets = [1, 2].map(|seed| places(num, seed));
    joins_of("places", [&sets[0], &sets[1][..num / 2]], 2.0 * 6_371_000.0 / (num as f64).sqrt());
}

#[test]
fn queries_for_one_point_allocate_at_most_the_result() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let points: Vec<[f32; 3]> = Shape::Uniform.points(5000, 1);
    let tree = KdTree::build(&Device::cpu(), &points, &KdTreeOptions::default()).unwrap();
    // The first query computes the boxes of the tree.
    tree.nearest_one(&points[0]).unwrap();
    // The test harness may allocate at any time: the least of many calls is what a call takes.
    let least_peak =
        |query: &dyn Fn() -> kauri::Result<()>| (0..100).map(|_| peak_of(query).1).min().unwrap();
    assert_eq!(least_peak(&|| tree.nearest_one(&points[7]).map(drop)), 0);
    for k in [1, 64] {
        assert_eq!(least_peak(&|| tree.nearest_k(&points[7], k).map(drop)), 8 * k as u64);
    }
}

#[test]
fn trees_take_what_their_plans_say() {
    trees(FEW);
}

#[test]
fn joins_take_what_their_plans_say() {
    joins(FEW);
}

#[test]
#[ignore = "takes 8 GB of memory and minutes"]
fn trees_of_50_million_points_take_what_their_plans_say() {
    trees(MANY);
}

#[test]
#[ignore = "takes 16 GB of memory and minutes"]
fn joins_of_50_million_points_take_what_their_plans_say() {
    joins(MANY);
}
