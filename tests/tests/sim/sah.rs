//! SAH k-d trees in the simulator: trees equal the CPU's, and rays hit the right triangles.
//! Rays and meshes have kernels of their own, in the files `corners`, `order` and `all_hits`.

use crate::on_each_schedule_in_turn;
use kauri::Device;
use kauri::research::sah::{CandidateLayout, StagesOptions};
use kauri::sah::{Quality, SahOptions};
use kauri_tests::rays::{Scene, check, check_moved};

const LAYOUTS: [CandidateLayout; 3] =
    [CandidateLayout::Arrays, CandidateLayout::ReadOnlyMasks, CandidateLayout::Records];

#[test]
fn trees_by_every_variant() {
    on_each_schedule_in_turn(16, |gpu, _, turn| {
        let [sort_by_scans, boxes_by_reductions, by_shared_memory] =
            [0, 1, 2].map(|bit| turn >> bit & 1 == 1);
        let stages = StagesOptions {
            sort_by_scans,
            boxes_by_reductions,
            by_shared_memory,
            small_by_levels: turn % 3 != 1,
            candidates: LAYOUTS[turn / 3 % 3],
            time_steps: turn % 4 == 0,
            candidate_bytes: if turn % 2 == 0 { 50_000 } else { 1 << 29 },
        };
        let options = SahOptions::default().clip(turn % 3 == 0).stages(stages);
        let scene = Scene::ALL[turn % Scene::ALL.len()];
        check(&Device::from_gpu(gpu.clone()), scene, 400 + 31 * turn, 48, &options);
    });
}

#[test]
fn the_best_trees() {
    on_each_schedule_in_turn(12, |gpu, _, turn| {
        let options = SahOptions::default().quality(Quality::Exact).clip(turn % 2 == 1);
        // Chunks of several nodes, one node of several chunks, and one triangle more than a small root.
        for len in [65, 400 + 31 * turn] {
            check(&Device::from_gpu(gpu.clone()), Scene::ALL[turn], len, 36, &options);
        }
    });
}

#[test]
fn small_trees() {
    on_each_schedule_in_turn(12, |gpu, _, turn| {
        let options = SahOptions::default().step_cost([1.0, 0.0, 3.0][turn % 3]).empty_space(0.1);
        for len in [1, 2, 64, 65] {
            check(&Device::from_gpu(gpu.clone()), Scene::ALL[turn], len, 36, &options);
        }
    });
}

#[test]
fn trees_of_moving_meshes() {
    on_each_schedule_in_turn(12, |gpu, _, turn| {
        let options = SahOptions::default().clip(turn % 2 == 0);
        check_moved(&Device::from_gpu(gpu.clone()), Scene::ALL[turn], 90 + turn, 24, &options);
    });
}
