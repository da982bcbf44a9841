//! Bounding volume hierarchies in the simulator: they equal the CPU's, and rays hit the right triangles.
//! Rays and meshes have kernels of their own, in the files `corners`, `order` and `all_hits`.

use crate::on_each_schedule_in_turn;
use kauri::Device;
use kauri_tests::rays::{Scene, check_bvh};

#[test]
fn small_meshes() {
    on_each_schedule_in_turn(13, |gpu, _, turn| {
        for len in [1, 3, 4, 17, 40] {
            check_bvh(&Device::from_gpu(gpu.clone()), Scene::ALL[turn], len, 36);
        }
    });
}

#[test]
fn meshes_of_several_blocks() {
    on_each_schedule_in_turn(13, |gpu, _, turn| {
        check_bvh(&Device::from_gpu(gpu.clone()), Scene::ALL[turn], 200 + 31 * turn, 150);
    });
}
