//! `example_op` in the simulator under every schedule, at sizes around a warp, a block and a tile.

use example_op_kernels::example_op::{THREADS, TILE};
use example_op_project::example_op::{example_op, example_op_on_cpu, plan};
use kauri::device::Workspace;
use kauri_test::{noise_u32, on_each_schedule, uninitialized, upload};

#[test]
fn every_schedule_gives_the_key_of_the_cpu() {
    on_each_schedule(|gpu, stream| {
        let mut workspace = Workspace::new(gpu);
        for n in [0, 1, 31, 33, THREADS, TILE - 1, TILE, TILE + 1, 3 * TILE + 5] {
            let items = noise_u32(n, 1);
            let (input, mut key) = (upload(stream, &items), uninitialized(stream, 1));
            example_op(stream, &mut workspace, &input, &mut key).unwrap();
            assert_eq!(key.to_vec(stream).unwrap(), [example_op_on_cpu(&items).unwrap()], "{n} items");
        }
        assert_eq!(workspace.bytes(), plan(3 * TILE + 5));
    });
}
