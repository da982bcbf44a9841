//! Wrong use is a typed error, and every object remains usable.

use crate::{on_cuda, on_each_gpu, zeros};
use kauri::Error;
use kauri::device::{Buffer, Device};
use kauri_test_kernels::launch::*;

#[test]
fn unknown_devices_are_named() {
    for name in ["", "gpu", "cuda:", "cuda:x", "cuda:-1", "CUDA", "cpu:0"] {
        let error = Device::from_name(name).unwrap_err();
        assert!(matches!(&error, Error::UnknownDevice { name: n } if n == name), "{name}: {error}");
    }
    match Device::from_name("cuda:4096").unwrap_err() {
        Error::NoSuchDevice { ordinal: 4096, available } => assert!(available > 0),
        Error::NoDevice | Error::DriverMissing { .. } | Error::CudaDisabled => {}
        other => panic!("{other}"),
    }
}

#[test]
fn the_best_device_says_why() {
    let device = Device::best().unwrap();
    assert!(!device.reason().is_empty());
    assert_eq!(device.is_cpu(), device.gpu().is_none());
    assert_eq!(Device::from_name("cuda").is_ok(), !device.is_cpu());
}

#[test]
fn impossible_launches_are_refused() {
    on_each_gpu(|_, stream| {
        let mut out = zeros::<u32>(stream, 64);
        let refused = |result: kauri::Result<()>| {
            let error = result.unwrap_err();
            assert!(matches!(error, Error::InvalidLaunch { .. }), "{error}");
        };
        // SAFETY: refused before anything runs.
        unsafe {
            refused(stream.launch::<test_coordinates>(1, (out.slice_mut(),)));
            refused(stream.launch_sized::<test_coordinates>(1, 1025, (out.slice_mut(),)));
            refused(stream.launch_sized::<test_coordinates>(1 << 31, 32, (out.slice_mut(),)));
            refused(stream.launch_sized::<test_add_const<u32, 1>>(1, 128, (out.slice_mut(),)));
            // An empty launch is not an error.
            stream.launch::<test_add_const<u32, 1>>(0, (out.slice_mut(),)).unwrap();
        }
        assert_eq!(out.to_vec(stream).unwrap(), [0; 64]);
    });
}

#[test]
fn instances_that_were_not_built_are_named() {
    on_each_gpu(|_, stream| {
        let mut out = zeros::<u32>(stream, 64);
        // SAFETY: there is no such entry.
        let error =
            unsafe { stream.launch_items::<test_add_const<u32, 99>>(64, (out.slice_mut(),)) }.unwrap_err();
        assert!(
            matches!(&error, Error::MissingKernel { kernel, family: "test" } if kernel == "test_add_const_u32_99"),
            "{error}"
        );
        assert_eq!(out.to_vec(stream).unwrap(), [0; 64]);
    });
}

#[test]
fn broken_modules_come_with_the_compilers_log() {
    on_cuda(|gpu, stream| {
        let text = ".version 7.0\n.target sm_70\n.address_size 64\nfoo bar;\n";
        // SAFETY: the family is none of kauri's.
        let error = unsafe { gpu.load_module("nonsense", text) }.unwrap_err();
        match &error {
            Error::BadModule { family: "nonsense", code, log, .. } => {
                assert!(*code != 0 && !log.is_empty(), "{error}");
            }
            other => panic!("{other}"),
        }
        assert_eq!(zeros::<u32>(stream, 3).to_vec(stream).unwrap(), [0; 3]);
    });
}

#[test]
fn too_much_memory_is_an_error_with_the_size() {
    on_each_gpu(|gpu, stream| {
        let bytes = gpu.info().memory_bytes as usize * 2;
        match Buffer::<u8>::uninitialized(gpu, bytes, "far too much").unwrap_err() {
            Error::OutOfMemory { memory: "device", requested, free, label: "far too much" } => {
                assert!(requested == bytes as u64 && free > 0);
            }
            other => panic!("{other}"),
        }
        assert!(Buffer::<u64>::uninitialized(gpu, usize::MAX, "absurd").is_err());
        assert_eq!(zeros::<u32>(stream, 3).to_vec(stream).unwrap(), [0; 3]);
    });
}

/// Runs alone in its process, with checked kernels, because the fault destroys the context.
#[test]
#[ignore = "destroys the context; the bundle runs it alone with checked kernels"]
fn a_checked_kernel_names_the_wrong_access() {
    on_cuda(|_, stream| {
        let x = Buffer::from_slice(stream, &[1u32; 40], "x").unwrap();
        let mut out = zeros::<u32>(stream, 40);
        // SAFETY: a checked build catches the read beyond the end.
        unsafe { stream.launch_items::<test_out_of_bounds>(40, (x.slice(), out.slice_mut())) }.unwrap();
        match stream.synchronize().unwrap_err() {
            Error::KernelFault { file, line, block: 1, thread: 7, index: 40, len: 40 } => {
                assert!(file.ends_with("launch.rs") && line > 0, "{file}:{line}");
            }
            other => panic!("{other}"),
        }
        let error = stream.synchronize().unwrap_err();
        assert!(matches!(error, Error::ContextPoisoned { .. }), "{error}");
        let error = out.to_vec(stream).unwrap_err();
        assert!(matches!(error, Error::ContextPoisoned { .. }), "{error}");
    });
}
