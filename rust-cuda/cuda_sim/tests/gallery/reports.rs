//! Reports of errors: their text, their replay, and the state of the device after them.

use crate::all_cases;
use crate::harness::{Device, schedule};
use cuda_sim::{Checks, Kind, Machine, MachineInfo, Options, SimError};
use cuda_std::prelude::*;

/// The error of a wrong kernel of the gallery.
fn error_of(name: &str, device: &Device) -> SimError {
    let case = all_cases().into_iter().find(|c| c.name == name).unwrap();
    (case.wrong)(device).unwrap_err()
}

/// A report without the numbers of lines and columns, and with paths that begin at this package.
fn without_lines(error: &SimError) -> String {
    let mut text = String::new();
    for line in error.to_string().replace("rust-cuda/cuda_sim/", "").lines() {
        let places = line.split(".rs:").collect::<Vec<_>>();
        for (i, part) in places.iter().enumerate() {
            let rest =
                if i == 0 { part } else { part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':') };
            text += rest;
            text += if i + 1 < places.len() { ".rs" } else { "\n" };
        }
    }
    text
}

#[test]
fn a_race_shows_both_sides() {
    let report = without_lines(&error_of("exchange without barrier", &Device::new(schedule(0))));
    assert_eq!(
        report,
        "\
error: data race: nothing orders two accesses to the same bytes in shared memory
  in kernel `exchange_without_barrier`
  first:  block 0, thread 0: plain load of element 1 of 64 (4 bytes at byte 4 of launch-sized shared memory, field `items`)
    at tests/gallery/barriers.rs
    in exchange_without_barrier (tests/gallery/barriers.rs)
  then:   block 0, thread 1: plain store of element 1 of 64 (4 bytes at byte 4 of launch-sized shared memory, field `items`)
    at tests/gallery/barriers.rs
    in exchange_without_barrier (tests/gallery/barriers.rs)
  help: a warp::sync_warp or thread::sync_threads belongs between the two; shuffles and votes order no memory
  replay with SIM_SEED=1 SIM_ORDER=ascending,blocks=4,start=in-order
"
    );
}

#[test]
fn a_mismatch_of_barriers_shows_the_groups_and_their_callers() {
    let report = without_lines(&error_of("barrier through a helper", &Device::new(schedule(8))));
    let block = report.split("\n  block ").nth(1).and_then(|r| r.split(':').next()).unwrap().to_owned();
    assert_eq!(
        report.replace(&format!("block {block}:"), "block B:"),
        "\
error: threads of a block wait at different barriers
  in kernel `divergent_helper`
  block B: 40 threads (0-39), each waits for sync_threads
    at tests/gallery/barriers.rs
    in publish (tests/gallery/barriers.rs)
    called by divergent_helper (tests/gallery/barriers.rs)
  block B: 24 threads (40-63), each waits for sync_threads
    at tests/gallery/barriers.rs
    in publish (tests/gallery/barriers.rs)
    called by divergent_helper (tests/gallery/barriers.rs)
  help: all threads of a block that have not ended must come to the same barrier; move it out of the branch
  replay with SIM_SEED=9 SIM_ORDER=random,blocks=8,start=any,chains
"
    );
}

#[test]
fn what_a_report_says_replays_it() {
    for case in all_cases() {
        let found = (0..Options::ORDERS).find_map(|i| (case.wrong)(&Device::new(schedule(i))).err());
        let Some(error) = found.filter(|e| !e.replay().is_empty()) else { continue };
        let mut options = Options { step_budget: schedule(0).step_budget, ..Options::default() };
        for setting in error.replay().split(' ') {
            match setting.split_once('=').unwrap() {
                ("SIM_SEED", seed) => options.seed = seed.parse().unwrap(),
                ("SIM_ORDER", order) => options.set_order(order).unwrap(),
                other => panic!("{other:?}"),
            }
        }
        let again = (case.wrong)(&Device::new(options)).unwrap_err();
        assert_eq!(again.to_string(), error.to_string(), "{}", case.name);
    }
}

#[kernel(block = 64)]
unsafe fn writes_then_fails(out: SliceMut<u32>, fails: u32) {
    let i = thread::index_1d() as usize;
    out.store(i, 9);
    thread::sync_threads();
    out.store(i, 8);
    if i as u32 == fails {
        cuda_std::misc::trap();
    }
}

#[test]
fn an_error_leaves_memory_as_it_was() {
    for i in 0..Options::ORDERS {
        let device = Device::new(schedule(i));
        let (zeros, fresh) = (device.zeros(128), device.fresh::<u32>(128));
        for array in [zeros, fresh] {
            let error = device.launch::<writes_then_fails>(2, (array.slice_mut(), 70)).unwrap_err();
            assert!(matches!(error.kind(), Kind::Trap { .. }), "{error}");
        }
        assert_eq!(device.read::<u32>(zeros).unwrap(), [0; 128]);
        let error = device.read::<u32>(fresh).unwrap_err();
        assert!(matches!(error.kind(), Kind::HostRead { offset: 0, .. }), "{error}");
        // The device goes on.
        device.launch::<writes_then_fails>(2, (fresh.slice_mut(), 999)).unwrap();
        assert_eq!(device.read::<u32>(fresh).unwrap(), [8; 128]);
    }
}

#[test]
fn without_the_race_check_held_back_stores_give_stale_values() {
    let wrong = all_cases().into_iter().find(|c| c.name == "last block without order").unwrap();
    let mut stale = 0;
    for seed in 0..10 {
        let mut options = Options { seed, checks: Checks::none(), delay_stores: true, ..Options::default() };
        options.set_order("random").unwrap();
        // What was in memory before is added up, and may overflow.
        stale += u32::from((wrong.wrong)(&Device::new(options.clone())).ok() != Some((wrong.values)()));
        assert_eq!((wrong.right)(&Device::new(options)).unwrap(), (wrong.values)());
    }
    assert!(stale > 5, "{stale} of 10");
}

#[test]
fn host_operations_are_checked() {
    let info = MachineInfo { memory_bytes: 4096, ..MachineInfo::default() };
    let machine = Machine::new(info, Options::default());
    let error = machine.alloc(5000, "table").unwrap_err();
    assert_eq!(error.to_string(), "error: out of device memory: 5000 bytes asked for `table`, 4096 are free");
    let a = machine.alloc(1000, "a").unwrap();
    assert_eq!((machine.live_bytes(), a % 256), (1024, 0));
    machine.fill(a, 3, 500).unwrap();
    let mut bytes = [0; 8];
    machine.copy_to_host(&mut bytes, a + 492).unwrap();
    let error = machine.copy_to_host(&mut bytes, a + 496).unwrap_err();
    assert!(matches!(error.kind(), Kind::HostRead { offset: 500, .. }), "{error}");
    let error = machine.copy_to_host(&mut bytes, a + 996).unwrap_err();
    assert!(matches!(error.kind(), Kind::HostAddress { .. }), "{error}");

    // What was never written stays so in a copy.
    let b = machine.alloc(1000, "b").unwrap();
    machine.copy_on_device(b, a + 250, 500).unwrap();
    machine.copy_to_host(&mut bytes, b + 242).unwrap();
    let error = machine.copy_to_host(&mut bytes, b + 243).unwrap_err();
    assert!(matches!(error.kind(), Kind::HostRead { offset: 250, .. }), "{error}");

    machine.free(a).unwrap();
    let error = machine.free(a).unwrap_err();
    assert!(matches!(error.kind(), Kind::HostAddress { .. }), "{error}");
    let error = machine.fill(a, 0, 4).unwrap_err();
    assert!(error.to_string().contains("in `a`, which was freed"), "{error}");
    assert_eq!(machine.live_bytes(), 1024);
    machine.free(b).unwrap();
    assert_eq!((machine.live_bytes(), machine.num_allocations()), (0, 0));
}

#[test]
fn launches_that_the_device_does_not_take() {
    use cuda_sim::LaunchSpec;
    let machine = Machine::new(MachineInfo::default(), Options::default());
    let run = || ();
    for (blocks, threads, shared) in [(0, 32, 0), (1, 0, 0), (1, 1025, 0), (1, 32, 1 << 20)] {
        let error = machine.launch(&LaunchSpec::new("k", blocks, threads, shared, &run)).unwrap_err();
        assert!(matches!(error.kind(), Kind::BadLaunch { .. }), "{error}");
    }
    let stats = machine.launch(&LaunchSpec::new("k", 7, 32, 0, &run)).unwrap();
    assert_eq!(stats.threads, 7 * 32);
}
