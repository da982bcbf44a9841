//! Degenerate input takes at most 20 times as long as uniform points of the same number: on the CPU, for every index.

use kauri::balanced::{BalancedKdTree, BalancedOptions};
use kauri::kdtree::SplitRule;
use kauri::mesh::Mesh;
use kauri::quadtree::{CartesianPoint, CellTree, QuadtreeOptions};
use kauri::query::{Queries, QueryOptions};
use kauri::rays::{Ray, RayIndex};
use kauri::research::quadtree::BuildAlgorithm;
use kauri::sah::{Quality, SahOptions, SahTree};
use kauri::{Cartesian, Device, KdTree, KdTreeOptions, SpatialIndex};
use kauri_tests::generate::{Random, Scalar};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Enough points for a scan of all of them by each query to exceed the bound.
const POINTS: usize = 50_000;
const QUERIES: usize = 300;
/// Maximum ratio of the times on degenerate and on ordinary input.
const FACTOR: u32 = 20;
/// Times below this one count as this one, since they are not measured well.
const LEAST: Duration = Duration::from_micros(300);
/// Number of runs. The shortest counts, since other programs may run at the same time.
const RUNS: usize = 15;

/// Measured steps with their names.
type Steps<'a> = Vec<(&'static str, Box<dyn Fn() + 'a>)>;

fn time(step: &dyn Fn()) -> Duration {
    let start = Instant::now();
    step();
    start.elapsed()
}

/// Checks that each step takes at most [`FACTOR`] times as long on degenerate input as on ordinary input.
fn compare(what: &str, ordinary: &Steps<'_>, degenerate: &Steps<'_>) {
    for ((name, ordinary), (_, degenerate)) in ordinary.iter().zip(degenerate) {
        let within = |run: &usize| {
            let most = time(ordinary).max(LEAST) * FACTOR;
            let taken = time(degenerate);
            if *run + 1 == RUNS {
                assert!(taken <= most, "{what}, {name}: {taken:?}, and at most {most:?} are allowed");
            }
            taken <= most
        };
        assert!((0..RUNS).any(|run| within(&run)));
    }
}

/// Sets of points with their names: uniform points first, then degenerate ones.
fn shapes<C: Scalar, const D: usize>() -> Vec<(&'static str, Vec<[C; D]>)> {
    let mut random = Random::new(3);
    let mut of = |point: &mut dyn FnMut(usize, &mut Random) -> [f64; D]| {
        (0..POINTS).map(|i| point(i, &mut random).map(C::from_f64)).collect::<Vec<_>>()
    };
    let far = if size_of::<C>() == 4 { 1e18 } else { 1e150 };
    let uniform = |random: &mut Random| std::array::from_fn(|_| random.unit());
    let mut places = [[0.0; D]; POINTS / 16];
    let mut seeds = Random::new(5);
    places.iter_mut().for_each(|place| *place = uniform(&mut seeds));
    let centers: Vec<[f64; D]> = (0..20).map(|_| uniform(&mut seeds)).collect();
    vec![
        ("uniform", of(&mut |_, random| uniform(random))),
        ("all equal", of(&mut |_, _| [0.5; D])),
        ("three places", of(&mut |i, _| [[0.2; D], [0.5; D], [0.9; D]][i % 3])),
        ("16 at each place", of(&mut |i, _| places[i % (POINTS / 16)])),
        (
            "a line along an axis",
            of(&mut |_, random| {
                let mut point = [0.5; D];
                point[D - 1] = random.unit();
                point
            }),
        ),
        ("a diagonal", of(&mut |_, random| [random.unit(); D])),
        (
            "clusters",
            of(&mut |i, random| {
                let center = centers[i % centers.len()];
                std::array::from_fn(|axis| center[axis] + 1e-5 * (random.unit() - 0.5))
            }),
        ),
        (
            "uniform, and one far away",
            of(&mut |i, random| {
                if i == 12_345 { [far; D] } else { uniform(random) }
            }),
        ),
        ("equal, and one far away", of(&mut |i, _| if i == 12_345 { [far; D] } else { [0.5; D] })),
    ]
}

/// Generates queries: some of the points, and locations beside other points. Locations far away from a line or a surface are left out,
/// since many points are almost equally near to them, whatever the index.
fn queries<C: Scalar, const D: usize>(points: &[[C; D]]) -> Vec<[C; D]> {
    let mut random = Random::new(6);
    let mut beside = |point: [C; D]| point.map(|x| x + C::from_f64(0.01 * (random.unit() - 0.5)));
    (0..QUERIES)
        .map(|i| {
            let point = points[i * (POINTS / QUERIES)];
            if i % 2 == 0 { point } else { beside(point) }
        })
        .collect()
}

/// The queries of an index.
fn query_steps<'a, C: Scalar, const D: usize>(
    index: &'a impl SpatialIndex<Point = [C; D]>,
    queries: &'a [[C; D]],
    radius: f64,
) -> Steps<'a>
where
    [C; D]: Cartesian<Coord = C>,
{
    let radius = C::from_f64(radius);
    let boxes: Vec<_> = queries.iter().map(|query| [*query, query.map(|x| x + radius + radius)]).collect();
    let around = Queries::Points(queries);
    let options = QueryOptions::default();
    let nearest = |k| move || drop(black_box(index.nearest(queries, k).unwrap()));
    // The first query builds the boxes that all queries use.
    nearest(1)();
    vec![
        ("nearest", Box::new(nearest(1))),
        ("8 nearest", Box::new(nearest(8))),
        ("100 nearest", Box::new(nearest(100))),
        (
            "count within",
            Box::new(move || {
                black_box(index.count_within(around, radius, &options).unwrap());
            }),
        ),
        (
            "count in boxes",
            Box::new(move || {
                black_box(index.count_in_boxes(&boxes, None).unwrap());
            }),
        ),
    ]
}

/// A build with its first query.
fn build_steps<'a, P: Cartesian, I: SpatialIndex<Point = P>>(
    build: &'a impl Fn(&[P]) -> I,
    points: &'a [P],
) -> Steps<'a> {
    let with_query = || drop(black_box(build(points).nearest(&points[..1], 1).unwrap()));
    vec![("build", Box::new(with_query))]
}

/// Checks every shape.
fn check<C: Scalar, const D: usize, I: SpatialIndex<Point = [C; D]>>(
    what: &str,
    build: impl Fn(&[[C; D]]) -> I,
) where
    [C; D]: Cartesian<Coord = C>,
{
    let mut shapes = shapes::<C, D>().into_iter();
    let (_, uniform) = shapes.next().unwrap();
    let (tree, around) = (build(&uniform), queries(&uniform));
    for (name, points) in shapes {
        let what = format!("{what} of {D}-D {}, {name}", C::NAME);
        compare(&what, &build_steps(&build, &uniform), &build_steps(&build, &points));
        let degenerate = build(&points);
        let degenerate_queries = queries(&points);
        // A ball around a point of a line contains about as many points as a ball around a uniform point.
        let is_line = ["a line along an axis", "a diagonal"].contains(&name);
        let radius = if is_line { 0.01_f64.powi(D as i32) } else { 0.01 };
        let of_uniform = query_steps(&tree, &around, 0.01);
        compare(&what, &of_uniform, &query_steps(&degenerate, &degenerate_queries, radius));
    }
}

fn check_kdtrees<C: Scalar, const D: usize>()
where
    [C; D]: Cartesian<Coord = C>,
{
    let device = Device::cpu();
    for rule in [SplitRule::RoundRobin, SplitRule::Widest] {
        let options = KdTreeOptions::default().split(rule);
        let build = |points: &[[C; D]]| KdTree::build(&device, points, &options).unwrap();
        check(&format!("{rule:?}"), build);
    }
    let options = BalancedOptions::default();
    check("balanced", |points: &[[C; D]]| BalancedKdTree::build(&device, points, &options).unwrap());
}

fn check_quadtrees<C: Scalar, const D: usize>()
where
    [C; D]: CartesianPoint<D, Coord = C>,
{
    let device = Device::cpu();
    for algorithm in [BuildAlgorithm::Codes, BuildAlgorithm::LEVELS] {
        let options = QuadtreeOptions::default().algorithm(algorithm);
        let what = format!("quadtree by {algorithm:?}");
        check(&what, |points: &[[C; D]]| CellTree::build(&device, points, &options).unwrap());
    }
}

#[test]
fn kdtrees_of_degenerate_points_in_a_plane() {
    check_kdtrees::<f32, 2>();
}

#[test]
fn kdtrees_of_degenerate_points_in_space() {
    check_kdtrees::<f64, 3>();
}

#[test]
fn quadtrees_of_degenerate_points() {
    check_quadtrees::<f64, 2>();
}

#[test]
fn octrees_of_degenerate_points() {
    check_quadtrees::<f32, 3>();
}

/// Makes a mesh of `len` triangles.
fn mesh(len: usize, triangle: impl FnMut(usize) -> [[f32; 3]; 3]) -> Mesh {
    let vertices = (0..len).flat_map(triangle).collect();
    Mesh::new(vertices, (0..len as u32).map(|i| [3 * i, 3 * i + 1, 3 * i + 2]).collect()).unwrap()
}

#[test]
fn sah_trees_of_degenerate_triangles() {
    const TRIANGLES: usize = 4000;
    let device = Device::cpu();
    let mut random = Random::new(8);
    let mut place = |size: f32| -> [f32; 3] { std::array::from_fn(|_| size * random.unit() as f32) };
    let mut small = || {
        let at = place(1.0);
        [place(0.02), place(0.02), place(0.02)]
            .map(|corner| std::array::from_fn(|axis| at[axis] + corner[axis]))
    };
    let ordinary = mesh(TRIANGLES, |_| small());
    let (one, far) = (small(), 1e9);
    let meshes = [
        ("equal triangles", mesh(TRIANGLES, |_| one)),
        (
            "long thin triangles",
            mesh(TRIANGLES, |_| {
                let [a, _, c] = small();
                [a, [a[0] + 1.0, a[1], a[2]], [c[0], a[1] + 1e-4, a[2]]]
            }),
        ),
        ("triangles without area", mesh(TRIANGLES, |_| [small()[0]; 3])),
        (
            "one far away",
            mesh(TRIANGLES, |i| small().map(|at| at.map(|x| if i == 1234 { x + far } else { x }))),
        ),
    ];
    let mut random = Random::new(11);
    let mut place = || -> [f32; 3] { std::array::from_fn(|_| 3.0 * random.unit() as f32 - 1.0) };
    let rays: Vec<Ray> = (0..1000).map(|_| Ray::new(place(), place())).collect();
    for quality in [Quality::Fast, Quality::Exact] {
        let options = SahOptions::default().quality(quality);
        let build = |mesh: &Mesh| SahTree::build(&device, mesh, &options).unwrap();
        let (tree_of, rays) = (build(&ordinary), &rays);
        fn steps<'a>(tree: &'a SahTree, rays: &'a [Ray], build: impl Fn() + 'a) -> Steps<'a> {
            vec![
                ("build", Box::new(build)),
                ("closest hits", Box::new(|| drop(black_box(tree.closest_hits(rays).unwrap())))),
                ("any hits", Box::new(|| drop(black_box(tree.any_hits(rays).unwrap())))),
            ]
        }
        for (name, mesh) in &meshes {
            let tree = build(mesh);
            let of_ordinary = steps(&tree_of, rays, || drop(black_box(build(&ordinary))));
            let of_degenerate = steps(&tree, rays, || drop(black_box(build(mesh))));
            compare(&format!("{quality:?}, {name}"), &of_ordinary, &of_degenerate);
        }
    }
}
