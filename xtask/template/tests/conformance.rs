//! `example_op` on the CPU and, if there is one, on the GPU equals an oracle: a loop in the simplest form.

use example_op_project::example_op::{best, example_op, example_op_on_cpu, plan};
use kauri::Error;
use kauri::device::{Buffer, Workspace};
use kauri_test::{noise_u32, on_cuda, on_each_schedule, uninitialized, upload};

/// The definition: the greatest item, and the first index where it is.
fn oracle(items: &[u32]) -> Option<(u32, u32)> {
    let mut found = None;
    for (i, &item) in items.iter().enumerate() {
        if found.is_none_or(|(greatest, _)| item > greatest) {
            found = Some((item, i as u32));
        }
    }
    found
}

fn inputs() -> Vec<Vec<u32>> {
    let mut inputs: Vec<_> = [0, 1, 1000, 1025, 100_000, 3_000_000].map(|n| noise_u32(n, 1)).into();
    // Ties, and items that are all 0.
    inputs.push(noise_u32(5000, 2).into_iter().map(|item| item % 7).collect());
    inputs.push(vec![0; 2000]);
    inputs
}

#[test]
fn the_cpu_twin_equals_the_oracle() {
    for items in inputs() {
        assert_eq!(best(example_op_on_cpu(&items).unwrap()), oracle(&items), "{} items", items.len());
    }
}

#[test]
fn the_gpu_equals_the_oracle() {
    on_cuda(|gpu, stream| {
        example_op_project::load(gpu).unwrap(); // project
        let mut workspace = Workspace::new(gpu);
        for items in inputs() {
            let (input, mut key) = (upload(stream, &items), uninitialized(stream, 1));
            example_op(stream, &mut workspace, &input, &mut key).unwrap();
            assert!(workspace.bytes() >= plan(items.len()));
            assert_eq!(best(key.to_vec(stream).unwrap()[0]), oracle(&items), "{} items", items.len());
        }
    });
}

#[test]
fn an_output_of_another_length_is_refused() {
    on_each_schedule(|gpu, stream| {
        let items = upload(stream, &[1, 2, 3]);
        let mut keys: Buffer<u64> = uninitialized(stream, 2);
        let error = example_op(stream, &mut Workspace::new(gpu), &items, &mut keys).unwrap_err();
        assert!(matches!(error, Error::Shape { expected: 1, got: 2, .. }), "{error}");
    });
}
