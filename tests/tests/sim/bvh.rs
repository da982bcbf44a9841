//! Bounding volume hierarchies in the simulator: they equal the CPU's, and rays hit the right triangles.
//! Rays and meshes have kernels of their own, in the files `corners`, `order` and `all_hits`.

use crate::on_each_schedule_in_turn;
use kauri::Device;
use kauri_tests::rays::{Scene, check_bvh};
use kauri_tests::searches::{check_inside, check_searches};

#[test]
fn small_meshes() {
    on_each_schedule_in_turn(13, |gpu, _, turn| {
        for len in [[1, 17], [3, 40], [4, 36]][turn % 3] {
            check_bvh(&Device::from_gpu(gpu.clone()), Scene::ALL[turn], len, 36);
        }
    });
}

#[test]
fn meshes_of_several_blocks() {
    on_each_schedule_in_turn(7, |gpu, _, turn| {
        check_bvh(&Device::from_gpu(gpu.clone()), Scene::ALL[2 * turn], 200 + 60 * turn, 150);
    });
}

/// Items near points and in boxes, and the inside of meshes.
#[test]
fn searches() {
    on_each_schedule_in_turn(13, |gpu, _, turn| {
        let device = Device::from_gpu(gpu.clone());
        check_searches(&device, Scene::ALL[turn], [1, 3, 40, 150][turn % 4], 17);
    });
}

/// Queries of several blocks.
#[test]
fn insides() {
    on_each_schedule_in_turn(2, |gpu, _, turn| check_inside(&Device::from_gpu(gpu.clone()), turn, 200));
}
