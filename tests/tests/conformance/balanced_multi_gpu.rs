//! Balanced trees on several GPUs, or in halves on one, against the tree of one device.

use kauri::balanced::{BalancedKdTree, BalancedOptions};
use kauri::research::balanced::BuildAlgorithm;
use kauri::{Device, Point};
use kauri_tests::generate::Shape;
use kauri_tests::{devices, devices_for, devices_for_shape};

/// Lists of one device: once, several times, and with a second one that has no peer access.
fn lists(device: &Device) -> Vec<Vec<Device>> {
    let Some(gpu) = device.gpu() else { return Vec::new() };
    let apart = Device::from_gpu(gpu.without_peer_copies());
    vec![
        vec![device.clone()],
        vec![device.clone(), apart],
        vec![device.clone(); 3],
        vec![device.clone(); 4],
        vec![device.clone(); 8],
    ]
}

/// Lists of different GPUs, or of one GPU that is opened twice if there is only one; with and without peer access.
fn separate() -> Vec<Vec<Device>> {
    let num_gpus = Device::list_cuda().map_or(0, |list| list.len());
    if num_gpus == 0 || devices().len() < 2 {
        return Vec::new();
    }
    let open = |i: usize| Device::cuda(i % num_gpus).unwrap();
    let apart = |device: &Device| Device::from_gpu(device.gpu().unwrap().without_peer_copies());
    let mut lists = Vec::new();
    for count in (2..=num_gpus.clamp(2, 8)).filter(|count| [2, 3, 4, num_gpus.min(8)].contains(count)) {
        let list: Vec<_> = (0..count).map(open).collect();
        lists.push(list.iter().map(apart).collect());
        lists.push(list);
    }
    lists
}

fn same_tree<P: Point>(points: &[P], lists: &[Vec<Device>]) {
    if lists.is_empty() {
        return;
    }
    let expected = BalancedKdTree::build(&Device::cpu(), points, &BalancedOptions::default()).unwrap();
    let (medians, removed) = (expected.medians().unwrap(), expected.removed().unwrap());
    for list in lists {
        for algorithm in [BuildAlgorithm::Paths, BuildAlgorithm::Robinson] {
            let what = format!("{} points over {list:?}, {algorithm:?}", points.len());
            let options = BalancedOptions::default().algorithm(algorithm);
            let tree = BalancedKdTree::build_over(list, points, &options)
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(tree.medians().unwrap() == medians, "{what}");
            assert!(tree.removed().unwrap() == removed, "{what}");
            tree.verify().unwrap_or_else(|error| panic!("{what}: {error}"));
        }
    }
}

#[test]
fn every_shape_on_every_device() {
    for (i, n) in [0, 1, 2, 5, 8, 33, 1000, 5003].into_iter().enumerate() {
        for shape in Shape::ALL {
            let points = shape.points::<f32, 3>(n, i as u64);
            let doubles = shape.points::<f64, 2>(n, i as u64);
            for device in devices_for_shape(shape, n) {
                same_tree(&points, &lists(&device));
                same_tree(&doubles, &lists(&device));
            }
        }
    }
}

#[test]
fn any_number_of_points() {
    for n in 1..=33 {
        let points = Shape::Lattice.points::<f32, 2>(n, 2);
        for device in devices_for(n) {
            // Only the first two lists, so that the simulator takes seconds.
            same_tree(&points, lists(&device).get(..2).unwrap_or_default());
        }
    }
}

#[test]
fn separate_gpus() {
    let lists = separate();
    for (i, n) in [0, 1, 3, 7, 100, 4999, 200_003].into_iter().enumerate() {
        for shape in Shape::ALL {
            same_tree(&shape.points::<f32, 4>(n, i as u64), &lists);
        }
    }
    same_tree(&Shape::Uniform.points::<f64, 3>(1 << 20, 5), &lists);
}

#[test]
fn a_million_points() {
    let lists: Vec<_> = devices().iter().flat_map(lists).collect();
    same_tree(&Shape::Uniform.points::<f32, 4>(1 << 20, 7), &lists);
    same_tree(&Shape::Lattice.points::<f32, 4>(1 << 20, 8), &lists);
}
