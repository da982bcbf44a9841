//! Loading kernels before the first call.

use kauri::device::Family;
use kauri::{KdTree, KdTreeOptions, SpatialIndex};
use kauri_tests::generate::{Shape, queries};

#[test]
fn calls_find_prepared_kernels() {
    let points = Shape::Uniform.points::<f32, 3>(2000, 1);
    let queries = queries(&points, 100, 2);
    let nearest = |device: &kauri::Device| {
        KdTree::build(device, &points, &KdTreeOptions::default()).unwrap().nearest(&queries, 3).unwrap()
    };
    let expected = nearest(&kauri::Device::cpu());
    for device in kauri_tests::devices() {
        let is_cuda = device.gpu().is_some();
        for family in Family::ALL {
            assert_eq!(device.kernel_form(family).unwrap().is_some(), is_cuda, "{family:?}");
        }
        device.prepare(&[]).unwrap();
        // Twice: the second call has nothing to load.
        device.prepare(&[Family::KdTree]).unwrap();
        device.prepare(&[Family::KdTree, Family::KdTree]).unwrap();
        assert_eq!(nearest(&device).ids(), expected.ids());
    }
    let sim = kauri::Device::sim(kauri::device::SimOptions::default()).unwrap();
    sim.prepare(&Family::ALL).unwrap();
    assert_eq!(sim.kernel_form(Family::KdTree).unwrap(), None);
}
