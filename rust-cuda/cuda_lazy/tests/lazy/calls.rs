//! Calls through the slots.
//!
//! A process opens one driver and keeps it. A test that needs the fake driver, or untouched slots, therefore runs
//! in a separate process: this program, started for one test, by [`run_with_fake_driver`].

use crate::toolchain::{is_child, run_with_fake_driver};
use cuda_lazy::driver::{
    cuDeviceGetCount, cuDriverGetVersion, cuInit, cuLaunchKernel, cuStreamCreate, cuStreamSynchronize,
};
use cuda_lazy::{NO_DEVICE, NOT_FOUND, Status, address, status, symbol_available};
use std::env;
use std::ffi::c_void;
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::Barrier;
use std::thread;

/// Calls the fake driver's `cuLaunchKernel`, and checks that all its arguments arrive.
fn check_launch(function: u64, stream: u64) {
    let mut seen = [0u64; 10];
    let handle = |value: u64| without_provenance_mut::<c_void>(value as usize);
    // SAFETY: the fake driver writes its arguments to `seen`.
    let code = unsafe {
        cuLaunchKernel(
            handle(function),
            2,
            3,
            4,
            5,
            6,
            7,
            u32::MAX,
            handle(stream),
            without_provenance_mut(10),
            (&raw mut seen).cast(),
        )
    };
    assert_eq!(code, 719);
    assert_eq!(seen, [function, 2, 3, 4, 5, 6, 7, u64::from(u32::MAX), stream, 10]);
}

/// Returns the number of calls that the fake driver has counted, including this one.
fn count_calls() -> i32 {
    let mut calls = 0;
    // SAFETY: writes one integer.
    assert_eq!(unsafe { cuDriverGetVersion(&mut calls) }, 0);
    calls
}

#[test]
fn arguments_arrive() {
    run_with_fake_driver("calls::child_passes_arguments");
}

#[test]
fn child_passes_arguments() {
    if !is_child() {
        return;
    }
    let Status::Loaded { library } = status() else { panic!("{:?}", status()) };
    assert_eq!(Some(library.into()), env::var_os("KAURI_LIBCUDA"));

    // Twice each: the first call finds the function, the second takes the filled slot.
    for round in 0..2 {
        // SAFETY: the fake driver returns the argument, and has no function of streams.
        unsafe {
            assert_eq!(cuInit(round), round as i32);
            assert_eq!(cuInit(u32::MAX), -1);
            let mut untouched = without_provenance_mut(1);
            assert_eq!(cuStreamCreate(&mut untouched, 0), NOT_FOUND);
            assert_eq!(untouched, without_provenance_mut(1));
        }
        check_launch(u64::MAX - u64::from(round), 1 << 40);
    }
    assert_eq!(count_calls(), 1);

    assert!(symbol_available("cuInit"));
    assert!(!symbol_available("cuStreamCreate"));
    assert!(!symbol_available("cu\0Init"));
    assert!(!symbol_available(""));
    assert_eq!(address("cuStreamCreate"), Err(NOT_FOUND));
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
                    check_launch(thread, round);
                    count_calls();
                    // SAFETY: the fake driver has no such function.
                    assert_eq!(unsafe { cuStreamSynchronize(null_mut()) }, NOT_FOUND);
                }
            });
        }
    });
    assert_eq!(count_calls() as u64, THREADS * ROUNDS + 1);
}

#[test]
fn the_machines_own_driver_or_its_absence_answers() {
    let (mut version, mut devices) = (-1, -1);
    // SAFETY: the calls take no pointer, or write one integer.
    let mut codes =
        || unsafe { [cuInit(0), cuDriverGetVersion(&mut version), cuDeviceGetCount(&mut devices)] };
    match status() {
        Status::Loaded { library } => {
            assert!(symbol_available("cuInit"), "{library}");
            match codes() {
                [0, getting_version, counting] => {
                    assert_eq!((getting_version, counting), (0, 0));
                    assert!(version >= 11_000 && devices >= 0, "{version}, {devices}");
                }
                [code, ..] => println!("{library} is there and cuInit returns {code}"),
            }
        }
        Status::DriverMissing { searched, reason } => {
            assert!(searched.iter().any(|name| name == "libcuda.so.1"), "{searched:?}");
            assert!(!reason.is_empty());
            assert_eq!(codes(), [NO_DEVICE; 3]);
            assert_eq!((version, devices), (-1, -1));
            assert_eq!(address("cuInit"), Err(NO_DEVICE));
            assert!(!symbol_available("cuInit"));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(status(), status());
}
