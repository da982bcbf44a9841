//! A `libcuda.so.1` with a handful of functions that write down what they are given.

use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

#[used]
#[unsafe(link_section = ".init_array")]
static INITIALIZER: extern "C" fn() = initialize;

/// Takes its time, so that threads have to wait for the library, and calls back into the program where the
/// program exports its trampolines.
extern "C" fn initialize() {
    std::thread::sleep(Duration::from_millis(200));
    // SAFETY: asks for a name in the whole process; if there is one, it is a trampoline, which takes no
    // arguments here.
    unsafe {
        let exported = dlsym(std::ptr::null_mut(), c"cuProfilerStop".as_ptr());
        if !exported.is_null() {
            let profiler_stop: extern "C" fn() -> i32 = std::mem::transmute(exported);
            assert_eq!(profiler_stop(), 100);
        }
    }
}

/// Returns what it is given.
#[unsafe(no_mangle)]
pub extern "C" fn cuInit(flags: u32) -> i32 {
    flags as i32
}

/// Writes how often it was called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDriverGetVersion(version: *mut i32) -> i32 {
    static CALLS: AtomicI32 = AtomicI32::new(0);
    // SAFETY: the test passes a pointer to such a value.
    unsafe { *version = CALLS.fetch_add(1, Ordering::Relaxed) + 1 };
    0
}

/// Six arguments in registers on x86-64, eight on AArch64, and the rest on the stack. Writes all through
/// `extra`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLaunchKernel(
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
    extra: *mut [u64; 10],
) -> i32 {
    let [gx, gy, gz] = [grid_x, grid_y, grid_z].map(u64::from);
    let [bx, by, bz, shared] = [block_x, block_y, block_z, shared_bytes].map(u64::from);
    // SAFETY: the test passes a pointer to such a value.
    unsafe { *extra = [function, gx, gy, gz, bx, by, bz, shared, stream, params] };
    719
}

/// Arguments in floating registers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuTexRefSetMipmapLevelClamp(texture: *mut [f32; 2], min: f32, max: f32) -> i32 {
    // SAFETY: the test passes a pointer to such a value.
    unsafe { *texture = [min, max] };
    -1
}

/// A large structure by value, as the driver's functions for handles between processes have it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuIpcOpenMemHandle_v2(sum: *mut u64, handle: [u8; 64], flags: u32) -> i32 {
    // SAFETY: the test passes a pointer to such a value.
    unsafe { *sum = handle.iter().map(|&byte| u64::from(byte)).sum() };
    flags as i32
}

/// Every register that can carry an argument at once, and some of the stack. The driver's function is another
/// one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuProfilerInitialize(
    out: *mut [f64; 19],
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
) -> i32 {
    let i = [i1, i2, i3, i4, i5, i6, i7, i8, i9].map(|value| value as f64);
    let d = [d0, d1, d2, d3, d4, d5, d6, d7, d8, d9];
    // SAFETY: the test passes a pointer to such a value.
    unsafe { (*out).iter_mut().zip(i.into_iter().chain(d)).for_each(|(to, value)| *to = value) };
    1
}
