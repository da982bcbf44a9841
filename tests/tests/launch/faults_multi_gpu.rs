//! Every driver call of one of two devices fails once while they build a tree together. The error is typed, no memory leaks on either
//! device, and both remain usable.

use crate::noise;
use kauri::balanced::{BalancedKdTree, BalancedOptions};
use kauri::device::{Device, FaultCall, FaultPlan, Gpu, SimOptions};
use kauri::{Error, Result};

type Tree = BalancedKdTree<[f32; 2]>;

/// Builds, checks and reads a tree on two devices, one of which has faults. Returns true if no call failed.
fn survives(gpus: &[Gpu; 2], faulty: usize, points: &[[f32; 2]], expected: &[u32], plan: FaultPlan) -> bool {
    let mut gpus = gpus.clone().map(|gpu| gpu.with_memory_limit(u64::MAX));
    gpus[faulty] = gpus[faulty].with_faults(plan);
    let devices = gpus.clone().map(Device::from_gpu);
    let found = (|| -> Result<Vec<u32>> {
        let tree = Tree::build_over(&devices, points, &BalancedOptions::default())?;
        tree.verify()?;
        tree.medians()
    })();
    for gpu in &gpus {
        assert_eq!(gpu.memory_use().live_bytes, 0, "{plan:?}");
    }
    match found {
        Ok(medians) => {
            assert_eq!(medians, expected, "{plan:?}");
            true
        }
        Err(Error::OutOfMemory { .. } | Error::Driver { name: "INJECTED", .. }) => false,
        Err(error) => panic!("{plan:?}: {error}"),
    }
}

/// Each fault is the index of the faulty device, and whether all calls fail after the first failure.
fn every_call_may_fail(gpus: &[Gpu; 2], faults: &[(usize, bool)]) {
    let points: Vec<[f32; 2]> =
        noise(18, 53).chunks(2).map(|c| [(c[0] % 4) as f32, (c[1] % 3) as f32]).collect();
    let options = BalancedOptions::default();
    let expected = Tree::build(&Device::cpu(), &points, &options).unwrap().medians().unwrap();
    for &(faulty, repeat) in faults {
        let mut nth = 1;
        let plan = |nth| FaultPlan { call: FaultCall::Any, nth, repeat };
        while !survives(gpus, faulty, &points, &expected, plan(nth)) {
            nth += 1;
            assert!(nth < 2000, "a call never stops failing");
        }
        assert!(nth > 50, "{nth} calls");
    }
    // The devices remain usable.
    let devices = gpus.clone().map(Device::from_gpu);
    assert_eq!(Tree::build_over(&devices, &points, &options).unwrap().medians().unwrap(), expected);
}

#[test]
fn every_call_of_two_devices_may_fail() {
    let gpus = [0, 1].map(|_| Device::sim(SimOptions::default()).unwrap().gpu().unwrap().clone());
    every_call_may_fail(&gpus, &[(0, false), (1, true)]);
    every_call_may_fail(&gpus.map(|gpu| gpu.without_peer_copies()), &[(1, false)]);
}

#[test]
fn every_call_of_two_gpus_may_fail() {
    // The first two GPUs, or the first one twice.
    let Ok(first) = Device::cuda(0) else { return };
    let second = Device::cuda(1).or_else(|_| Device::cuda(0)).unwrap();
    let gpus = [first, second].map(|device| device.gpu().unwrap().clone());
    let all = [(0, false), (0, true), (1, false), (1, true)];
    every_call_may_fail(&gpus, &all);
    every_call_may_fail(&gpus.map(|gpu| gpu.without_peer_copies()), &all);
}

#[test]
fn too_little_memory_is_an_error() {
    let gpus = [0, 1].map(|_| Device::sim(SimOptions::default()).unwrap().gpu().unwrap().clone());
    let points = vec![[1.0f32, 2.0]; 100];
    for short in [0, 1] {
        let mut gpus = gpus.clone();
        gpus[short] = gpus[short].with_memory_limit(1000);
        let devices = gpus.clone().map(Device::from_gpu);
        let error = Tree::build_over(&devices, &points, &BalancedOptions::default()).unwrap_err();
        assert!(matches!(error, Error::OutOfMemory { memory: "device", .. }), "{error}");
        assert!(gpus.iter().all(|gpu| gpu.memory_use().live_bytes == 0));
    }
}
