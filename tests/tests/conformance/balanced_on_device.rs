//! Balanced trees over device buffers, against the trees over host memory.

use kauri::balanced::{BalancedKdTree, BalancedOptions};
use kauri::device::{Buffer, Gpu, Stream, Workspace};
use kauri::query::{DeviceIndex, DeviceQueries, Queries, QueryOptions};
use kauri::research::balanced::BuildAlgorithm;
use kauri::{Device, Error, Point, Result, SpatialIndex};
use kauri_tests::generate::Shape;
use kauri_tests::{devices_for, simulated};

type Tree = BalancedKdTree<[f32; 3]>;

/// Calls `check` with the GPU and a stream of each device that has device memory.
fn on_each_gpu(items: usize, check: impl Fn(&Gpu, &Stream) -> Result<()>) {
    for device in devices_for(items) {
        // A handle that counts its own allocations: other tests use the device too.
        let Some(gpu) = device.gpu().map(|gpu| gpu.with_memory_limit(u64::MAX)) else { continue };
        check(&gpu, &Stream::new(&gpu).unwrap()).unwrap_or_else(|error| panic!("{device}: {error}"));
    }
}

fn upload<P: Point>(stream: &Stream, points: &[P]) -> Result<Buffer<P::Coord>> {
    Buffer::from_slice(stream, &P::coordinates(points, "point")?, "points")
}

fn all_options() -> [BalancedOptions; 3] {
    let options = BalancedOptions::default();
    [options.clone(), options.clone().renumber(true), options.algorithm(BuildAlgorithm::Robinson)]
}

/// Compares the nodes, removed points and files of two trees, and checks the first one.
fn has_the_nodes_of<P: Point>(tree: &BalancedKdTree<P>, expected: &BalancedKdTree<P>) -> Result<()> {
    assert_eq!((tree.len(), tree.num_points()), (expected.len(), expected.num_points()));
    assert_eq!(tree.num_levels(), expected.num_levels());
    assert!(tree.medians()? == expected.medians()?);
    assert!(tree.nodes()? == expected.nodes()?);
    assert!(tree.removed()? == expected.removed()?);
    let saved = |tree: &BalancedKdTree<P>| {
        let mut file = Vec::new();
        tree.write_to(&mut file).map(|()| file)
    };
    assert!(saved(tree)? == saved(expected)?);
    tree.verify()
}

/// Compares the nodes in device memory, and queries for neighbors of all points and of the first ones.
fn same_on_device<P: Point>(
    stream: &Stream,
    tree: &BalancedKdTree<P>,
    expected: &BalancedKdTree<P>,
    points: &[P],
) -> Result<()> {
    let mut medians = Buffer::uninitialized(stream.gpu(), (1 << tree.num_levels()) - 1, "medians")?;
    tree.medians_on(stream, &mut medians)?;
    assert!(medians.to_vec(stream)? == expected.medians()?);
    let error =
        tree.medians_on(stream, &mut Buffer::uninitialized(stream.gpu(), medians.len() + 1, "medians")?);
    assert!(matches!(error, Err(Error::Shape { .. })), "{error:?}");

    let (k, mut workspace) = (3, Workspace::new(stream.gpu()));
    let prepared = tree.prepare(stream, &QueryOptions::default())?;
    let mut ids = Buffer::uninitialized(stream.gpu(), k * tree.num_points(), "ids")?;
    let mut dist2 = Buffer::uninitialized(stream.gpu(), k * tree.num_points(), "distances")?;
    let mut same = |on_device, on_host| -> Result<()> {
        tree.nearest_on(stream, &mut workspace, on_device, k, &prepared, &mut ids, &mut dist2)?;
        let near = expected.nearest_with(on_host, k, &QueryOptions::default())?;
        assert!(ids.to_vec(stream)? == near.ids() && dist2.to_vec(stream)? == near.dist2());
        Ok(())
    };
    for include_self in [false, true] {
        same(DeviceQueries::SelfQuery { include_self }, Queries::SelfQuery { include_self })?;
    }
    let stored = BalancedKdTree::<P>::to_stored(P::coordinates(points, "query")?)?;
    let queries = Buffer::from_slice(stream, &stored, "queries")?;
    same(DeviceQueries::Coordinates(&queries), Queries::Points(points))
}

/// Builds a tree over each set of points, then rebuilds it over the next one. All sets have one length.
fn equal_trees_over_host_memory<P: Point>(sets: &[Vec<P>]) {
    on_each_gpu(sets[0].len(), |gpu, stream| {
        let mut workspace = Workspace::new(gpu);
        let mut rebuilt: Option<BalancedKdTree<P>> = None;
        for (points, options) in sets.iter().flat_map(|points| all_options().map(|options| (points, options)))
        {
            let expected = BalancedKdTree::build(&Device::cpu(), points, &options)?;
            let coords = upload(stream, points)?;
            let tree = BalancedKdTree::<P>::build_on(stream, &mut workspace, &coords, &options)?;
            has_the_nodes_of(&tree, &expected)?;
            same_on_device(stream, &tree, &expected, points)?;
            let rebuilt = match &mut rebuilt {
                None => rebuilt.insert(tree),
                Some(rebuilt) => {
                    rebuilt.rebuild_on(stream, &mut workspace, &coords, &options)?;
                    rebuilt
                }
            };
            same_on_device(stream, rebuilt, &expected, points)?;
            has_the_nodes_of(rebuilt, &expected)?;
        }
        Ok(())
    });
}

#[test]
fn trees_equal_those_over_host_memory() {
    let shapes = [Shape::Uniform, Shape::AllEqual, Shape::Lattice, Shape::FewDistinct];
    for n in [1, 2, 3, 33, 200, 5000] {
        equal_trees_over_host_memory(&shapes.map(|shape| shape.points::<f32, 3>(n, 1)));
    }
    equal_trees_over_host_memory(&Shape::ALL.map(|shape| shape.points::<f64, 2>(33, 2)));
    equal_trees_over_host_memory::<[f32; 3]>(&[Vec::new(), Vec::new()]);
    equal_trees_over_host_memory(&[Shape::Uniform.points::<f32, 1>(33, 3)]);
    equal_trees_over_host_memory(&[Shape::Lattice.points::<f64, 6>(60, 4)]);
}

#[test]
fn integers_are_converted_on_the_device() {
    for n in [1, 33, 3000] {
        let scaled = |scale: f64| {
            let points = Shape::Uniform.points::<f64, 3>(n, 5);
            points.iter().map(|point| point.map(|x| ((x - 0.5) * scale) as i64)).collect::<Vec<_>>()
        };
        let sets = [scaled(4.0), scaled(9e15)];
        equal_trees_over_host_memory(&sets);
        let narrow = |points: &Vec<[i64; 3]>| points.iter().map(|point| point.map(|x| x as i32)).collect();
        equal_trees_over_host_memory::<[i32; 3]>(&sets.each_ref().map(narrow));
    }
}

/// A rebuild of a tree that was queried also rebuilds the buckets, in their memory.
#[test]
fn rebuilds_allocate_nothing() {
    let points = Shape::Uniform.points::<f32, 3>(300, 6);
    let others = Shape::Uniform.points::<f32, 3>(300, 7);
    let mut with_equal = others.clone();
    with_equal[9] = with_equal[4];
    let mut all_equal = points.clone();
    all_equal.fill([1.0; 3]);
    if std::env::var_os("KAURI_ALLOC").is_some() {
        return; // in this mode every call allocates
    }
    on_each_gpu(33, |gpu, stream| {
        for options in all_options() {
            let mut workspace = Workspace::new(gpu);
            let coords = upload(stream, &points)?;
            let mut tree = Tree::build_on(stream, &mut workspace, &coords, &options)?;
            let prepared = tree.prepare(stream, &QueryOptions::default())?;
            let mut ids = Buffer::uninitialized(gpu, 300, "ids")?;
            let mut dist2 = Buffer::uninitialized(gpu, 300, "distances")?;
            let mut query = |tree: &Tree, workspace: &mut Workspace, points: &[[f32; 3]]| -> Result<()> {
                let own = DeviceQueries::SelfQuery { include_self: false };
                tree.nearest_on(stream, workspace, own, 1, &prepared, &mut ids, &mut dist2)?;
                let expected = Tree::build(&Device::cpu(), points, &BalancedOptions::default())?;
                let own = Queries::SelfQuery { include_self: false };
                let near = expected.nearest_with(own, 1, &QueryOptions::default())?;
                assert!(ids.to_vec(stream)? == near.ids() && dist2.to_vec(stream)? == near.dist2());
                Ok(())
            };
            query(&tree, &mut workspace, &points)?;
            for (set, allocates) in [
                (&points, false),
                (&others, false),
                (&with_equal, true),
                (&with_equal, false),
                (&others, false),
                (&all_equal, true),
                (&points, true),
            ] {
                let coords = upload(stream, set)?;
                let before = gpu.memory_use().allocations;
                tree.rebuild_on(stream, &mut workspace, &coords, &options)?;
                if !allocates {
                    assert_eq!(gpu.memory_use().allocations, before, "{options:?}");
                }
                query(&tree, &mut workspace, set)?;
                tree.verify()?;
            }
        }
        Ok(())
    });
}

#[test]
fn wrong_arguments_are_refused() {
    let points = Shape::Lattice.points::<f32, 3>(33, 8);
    let expected = Tree::build(&Device::cpu(), &points, &BalancedOptions::default()).unwrap();
    on_each_gpu(33, |gpu, stream| {
        let (mut workspace, options) = (Workspace::new(gpu), BalancedOptions::default());
        let mut tree = Tree::build_on(stream, &mut workspace, &upload(stream, &points)?, &options)?;
        let few = upload(stream, &points[..4])?;
        let uneven = Buffer::from_slice(stream, &[0.0f32; 100], "uneven")?;
        for (wrong, shape) in [(&few, (99, 12)), (&uneven, (99, 100))] {
            let error = tree.rebuild_on(stream, &mut workspace, wrong, &options).unwrap_err();
            assert!(
                matches!(error, Error::Shape { expected, got, .. } if (expected, got) == shape),
                "{error}"
            );
            has_the_nodes_of(&tree, &expected)?;
        }
        let error = Tree::build_on(stream, &mut workspace, &uneven, &options).unwrap_err();
        assert!(matches!(error, Error::Shape { expected: 99, got: 100, .. }), "{error}");

        let Some(elsewhere) = simulated().last() else { return Ok(()) };
        let other_stream = Stream::new(elsewhere.gpu().unwrap())?;
        let (own, coords) = (upload(stream, &points)?, upload(&other_stream, &points)?);
        let mut medians = Buffer::uninitialized(gpu, 63, "medians")?;
        for result in [
            tree.rebuild_on(stream, &mut workspace, &coords, &options),
            tree.rebuild_on(&other_stream, &mut workspace, &coords, &options),
            tree.rebuild_on(stream, &mut Workspace::new(other_stream.gpu()), &own, &options),
            Tree::build_on(stream, &mut workspace, &coords, &options).map(drop),
            tree.medians_on(&other_stream, &mut medians),
            tree.prepare(&other_stream, &QueryOptions::default()).map(drop),
        ] {
            assert!(matches!(result, Err(Error::WrongDevice { .. })), "{result:?}");
        }
        has_the_nodes_of(&tree, &expected)?;
        same_on_device(stream, &tree, &expected, &points)?;

        let device = Device::from_gpu(gpu.clone());
        let coords = upload(stream, &points)?;
        for mut tree in
            [Tree::build(&Device::cpu(), &points, &options)?, Tree::build_over(&[device], &points, &options)?]
        {
            for result in [
                tree.rebuild_on(stream, &mut workspace, &coords, &options),
                tree.medians_on(stream, &mut medians),
                tree.prepare(stream, &QueryOptions::default()).map(drop),
            ] {
                assert!(matches!(result, Err(Error::NotOnGpu)), "{result:?}");
            }
        }
        Ok(())
    });
}

/// The host does not see the coordinates: the calls succeed, and other points are found.
#[test]
fn points_with_nan() {
    let mut points = Shape::Uniform.points::<f32, 3>(100, 9);
    points[7][1] = f32::NAN;
    points[9] = [f32::NAN; 3];
    on_each_gpu(33, |gpu, stream| {
        for options in all_options() {
            let mut workspace = Workspace::new(gpu);
            let coords = Buffer::from_slice(stream, points.as_flattened(), "points")?;
            let tree = Tree::build_on(stream, &mut workspace, &coords, &options)?;
            assert_eq!(tree.len(), 100);
            assert_eq!(tree.nearest(&points[..1], 1)?.ids(), [0]);
        }
        Ok(())
    });
}
