//! Calls through the trampolines, to the fake driver and to the real one.
//!
//! A process opens one driver and keeps it. A test that needs the fake driver, or an untouched table, therefore runs
//! in a separate process: this program, started for one test, by [`run_with_fake_driver`].

use crate::toolchain::{is_child, run_with_fake_driver};
use cuda_lazy::{Status, driver, status, symbol_available};
use cuda_trampolines::symbols;
use std::env;
use std::sync::Barrier;
use std::thread;

// Declarations of the fake driver's functions. Pointers that it only records are integers here.
unsafe extern "C" {
    safe fn cuInit(flags: u32) -> i32;
    safe fn cuDriverGetVersion(version: &mut i32) -> i32;
    safe fn cuLaunchKernel(
        function: u64,
        grid_x: u32,
        grid_y: u32,
        grid_z: u32,
        block_x: u32,
        block_y: u32,
        block_z: u32,
        shared_bytes: u32,
        stream: u64,
        params: u64,
        extra: &mut [u64; 10],
    ) -> i32;
    safe fn cuTexRefSetMipmapLevelClamp(texture: &mut [f32; 2], min: f32, max: f32) -> i32;
    safe fn cuIpcOpenMemHandle_v2(sum: &mut u64, handle: Handle, flags: u32) -> i32;
    #[rustfmt::skip]
    safe fn cuProfilerInitialize(
        out: &mut [f64; 19],
        i1: u64,
        i2: u64,
        i3: u64,
        i4: u64,
        i5: u64,
        i6: u64,
        i7: u64,
        i8: u64,
        i9: u64,
        d0: f64,
        d1: f64,
        d2: f64,
        d3: f64,
        d4: f64,
        d5: f64,
        d6: f64,
        d7: f64,
        d8: f64,
        d9: f64,
    ) -> i32;
    safe fn cuCtxSynchronize() -> i32;
    safe fn cuDeviceGetCount(count: &mut i32) -> i32;
}

#[repr(C)]
struct Handle([u8; 64]);

#[test]
fn all_kinds_of_arguments_arrive() {
    run_with_fake_driver("calls::child_passes_arguments");
}

#[test]
fn child_passes_arguments() {
    if !is_child() {
        return;
    }
    let Status::Loaded { library } = status() else { panic!("{:?}", status()) };
    assert_eq!(Some(library.into()), env::var_os("KAURI_LIBCUDA"));

    // Twice each: the first call goes through the resolver, the second through the filled slot.
    for round in 0..2 {
        assert_eq!(cuInit(round), round as i32);
        assert_eq!(cuInit(u32::MAX), -1);

        let mut seen = [0; 10];
        let big = u64::MAX - u64::from(round);
        assert_eq!(cuLaunchKernel(big, 2, 3, 4, 5, 6, 7, u32::MAX, 1 << 40, 10, &mut seen), 719);
        assert_eq!(seen, [big, 2, 3, 4, 5, 6, 7, u64::from(u32::MAX), 1 << 40, 10]);

        let mut clamp = [0.0; 2];
        assert_eq!(cuTexRefSetMipmapLevelClamp(&mut clamp, -0.5, 1e30), -1);
        assert_eq!(clamp, [-0.5, 1e30]);

        let mut sum = 0;
        assert_eq!(cuIpcOpenMemHandle_v2(&mut sum, Handle(std::array::from_fn(|i| i as u8)), 42), 42);
        assert_eq!(sum, (0..64).sum());

        let mut all = [0.0; 19];
        #[rustfmt::skip]
        let code = cuProfilerInitialize(
            &mut all,
            1, 2, 3, 4, 5, 6, 7, 8, 9,
            10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0, 19.0,
        );
        assert_eq!((code, all), (1, std::array::from_fn(|i| i as f64 + 1.0)));

        assert_eq!(cuCtxSynchronize(), 500, "a function that this driver does not have");
    }
    // The functions of `cuda_lazy` call the library that the trampolines call.
    let mut calls = 0;
    assert_eq!(cuDriverGetVersion(&mut calls), 0);
    assert_eq!(calls, 1);
    // SAFETY: writes one integer.
    assert_eq!(unsafe { driver::cuDriverGetVersion(&mut calls) }, 0);
    assert_eq!(calls, 2);

    assert!(symbol_available("cuInit"));
    assert!(!symbol_available("cuCtxSynchronize"));
    assert!(!symbol_available("cu\0Init"));
    assert!(!symbol_available(""));
}

#[test]
fn threads_may_make_the_first_calls_at_once() {
    run_with_fake_driver("calls::child_calls_from_threads");
}

#[test]
fn child_calls_from_threads() {
    const THREADS: u64 = 8;
    const ROUNDS: u64 = 1000;
    if !is_child() {
        return;
    }
    let start = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                for round in 0..ROUNDS {
                    let mut seen = [0; 10];
                    assert_eq!(cuLaunchKernel(thread, 1, 2, 3, 4, 5, 6, 7, 8, round, &mut seen), 719);
                    assert_eq!(seen, [thread, 1, 2, 3, 4, 5, 6, 7, 8, round]);
                    let mut clamp = [0.0; 2];
                    assert_eq!(cuTexRefSetMipmapLevelClamp(&mut clamp, thread as f32, 0.5), -1);
                    assert_eq!(clamp, [thread as f32, 0.5]);
                    assert_eq!(cuDriverGetVersion(&mut 0), 0);
                    assert_eq!(cuCtxSynchronize(), 500);
                }
            });
        }
    });
    let mut calls = 0;
    assert_eq!(cuDriverGetVersion(&mut calls), 0);
    assert_eq!(calls as u64, THREADS * ROUNDS + 1);
}

#[test]
fn the_machines_own_driver_or_its_absence_answers() {
    match status() {
        Status::Loaded { library } => {
            assert!(symbol_available("cuInit"), "{library}");
            let code = cuInit(0);
            if code != 0 {
                println!("{library} is there and cuInit returns {code}");
                return;
            }
            let (mut version, mut devices) = (0, -1);
            assert_eq!(cuDriverGetVersion(&mut version), 0);
            assert!(version >= 11_000, "{version}");
            assert_eq!(cuDeviceGetCount(&mut devices), 0);
            assert!(devices >= 0);
        }
        Status::DriverMissing { searched, reason } => {
            assert!(searched.iter().any(|name| name == "libcuda.so.1"), "{searched:?}");
            assert!(!reason.is_empty());
            assert_eq!(cuInit(0), 100);
            let mut untouched = -1;
            assert_eq!(cuDeviceGetCount(&mut untouched), 100);
            assert_eq!(untouched, -1);
            assert!(!symbol_available("cuInit"));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(status(), status());
}

#[test]
fn every_function_of_cuda_lazy_has_a_trampoline() {
    assert!(symbols().is_sorted());
    for name in driver::NAMES {
        assert!(symbols().binary_search(name).is_ok(), "{name}");
    }
}
