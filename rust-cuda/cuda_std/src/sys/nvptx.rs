//! The NVPTX target: instructions.
//!
//! Every collective is an `llvm.nvvm` intrinsic: those are convergent, `asm!` is not, and the compiler duplicates or
//! sinks what is not. `asm!` is used for what needs no convergence: memory accesses, fences, special registers.

use super::{CacheHint, ReduceOp, SpaceOf};
use crate::io::Form;
use core::arch::asm;
use core::arch::nvptx;
use core::marker::PhantomData;
#[cfg(cuda_std_checked)]
use core::panic::Location;

unsafe extern "C" {
    #[link_name = "llvm.nvvm.vote.ballot.sync"]
    fn nvvm_ballot(mask: u32, predicate: bool) -> u32;
    #[link_name = "llvm.nvvm.vote.any.sync"]
    fn nvvm_any(mask: u32, predicate: bool) -> bool;
    #[link_name = "llvm.nvvm.vote.all.sync"]
    fn nvvm_all(mask: u32, predicate: bool) -> bool;
    #[link_name = "llvm.nvvm.match.any.sync.i32"]
    fn nvvm_match_any_32(mask: u32, value: u32) -> u32;
    #[link_name = "llvm.nvvm.match.any.sync.i64"]
    fn nvvm_match_any_64(mask: u32, value: u64) -> u32;
    #[link_name = "llvm.nvvm.activemask"]
    fn nvvm_activemask() -> u32;
    #[link_name = "llvm.nvvm.bar.warp.sync"]
    fn nvvm_bar_warp_sync(mask: u32);
    #[link_name = "llvm.nvvm.barrier.cta.sync.aligned.all"]
    fn nvvm_barrier(id: u32);
    #[link_name = "llvm.nvvm.barrier0.popc"]
    fn nvvm_barrier_popc(predicate: i32) -> i32;
    #[link_name = "llvm.nvvm.barrier0.and"]
    fn nvvm_barrier_and(predicate: i32) -> i32;
    #[link_name = "llvm.nvvm.barrier0.or"]
    fn nvvm_barrier_or(predicate: i32) -> i32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.laneid"]
    fn nvvm_laneid() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.clock64"]
    fn nvvm_clock64() -> u64;
    #[link_name = "llvm.nvvm.nanosleep"]
    fn nvvm_nanosleep(nanoseconds: u32);
}

unsafe extern "C" {
    #[link_name = "llvm.nvvm.fma.rn.f"]
    fn nvvm_fma(a: f32, b: f32, c: f32) -> f32;
    #[link_name = "llvm.nvvm.rcp.approx.ftz.f"]
    fn nvvm_inverse(x: f32) -> f32;
    #[link_name = "llvm.nvvm.sqrt.rn.f"]
    fn nvvm_sqrt(x: f32) -> f32;
    #[link_name = "llvm.nvvm.sqrt.rn.d"]
    fn nvvm_sqrt_f64(x: f64) -> f64;
}

#[inline(always)]
pub fn approximate_inverse(x: f32) -> f32 {
    unsafe { nvvm_inverse(x) }
}

#[inline(always)]
pub fn multiply_add(a: f32, b: f32, c: f32) -> f32 {
    unsafe { nvvm_fma(a, b, c) }
}

#[inline(always)]
pub fn sqrt(x: f32) -> f32 {
    unsafe { nvvm_sqrt(x) }
}

#[inline(always)]
pub fn sqrt_f64(x: f64) -> f64 {
    unsafe { nvvm_sqrt_f64(x) }
}

#[cfg(target_feature = "sm_80")]
unsafe extern "C" {
    #[link_name = "llvm.nvvm.redux.sync.add"]
    fn nvvm_redux_add(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.umin"]
    fn nvvm_redux_umin(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.umax"]
    fn nvvm_redux_umax(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.min"]
    fn nvvm_redux_min(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.max"]
    fn nvvm_redux_max(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.and"]
    fn nvvm_redux_and(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.or"]
    fn nvvm_redux_or(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.xor"]
    fn nvvm_redux_xor(value: u32, mask: u32) -> u32;
}

// Two results come back in a struct that only the unadjusted ABI passes as LLVM means it.
#[allow(improper_ctypes)] // tuples: here they are exactly LLVM's struct
unsafe extern "unadjusted" {
    #[link_name = "llvm.nvvm.shfl.sync.idx.i32p"]
    fn nvvm_shuffle_idx(mask: u32, value: u32, lane: u32, control: u32) -> (u32, bool);
    #[link_name = "llvm.nvvm.shfl.sync.up.i32p"]
    fn nvvm_shuffle_up(mask: u32, value: u32, delta: u32, control: u32) -> (u32, bool);
    #[link_name = "llvm.nvvm.shfl.sync.down.i32p"]
    fn nvvm_shuffle_down(mask: u32, value: u32, delta: u32, control: u32) -> (u32, bool);
    #[link_name = "llvm.nvvm.shfl.sync.bfly.i32p"]
    fn nvvm_shuffle_bfly(mask: u32, value: u32, bits: u32, control: u32) -> (u32, bool);
    #[link_name = "llvm.nvvm.match.all.sync.i32p"]
    fn nvvm_match_all_32(mask: u32, value: u32) -> (u32, bool);
    #[link_name = "llvm.nvvm.match.all.sync.i64p"]
    fn nvvm_match_all_64(mask: u32, value: u64) -> (u32, bool);
}

#[cfg(not(test))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    trap()
}

macro_rules! coordinates {
    ($($name:ident $x:ident $y:ident $z:ident;)*) => { $(
        #[inline(always)]
        pub fn $name(axis: usize) -> u32 {
            unsafe { match axis { 0 => nvptx::$x() as u32, 1 => nvptx::$y() as u32, _ => nvptx::$z() as u32 } }
        }
    )* };
}
coordinates! {
    thread_idx _thread_idx_x _thread_idx_y _thread_idx_z;
    block_idx _block_idx_x _block_idx_y _block_idx_z;
    block_dim _block_dim_x _block_dim_y _block_dim_z;
    grid_dim _grid_dim_x _grid_dim_y _grid_dim_z;
}

#[inline(always)]
pub fn lane_id() -> u32 {
    unsafe { nvvm_laneid() }
}

#[inline(always)]
pub fn barrier_sync() {
    unsafe { nvvm_barrier(0) }
}

#[inline(always)]
pub fn barrier_count(predicate: bool) -> u32 {
    unsafe { nvvm_barrier_popc(predicate.into()) as u32 }
}

#[inline(always)]
pub fn barrier_and(predicate: bool) -> bool {
    unsafe { nvvm_barrier_and(predicate.into()) != 0 }
}

#[inline(always)]
pub fn barrier_or(predicate: bool) -> bool {
    unsafe { nvvm_barrier_or(predicate.into()) != 0 }
}

#[inline(always)]
pub fn spin_hint() {
    // An opaque statement: the loop's loads are not merged. No pause: look-back waits are short.
    unsafe { asm!("", options(nostack)) }
}

#[inline(always)]
pub fn nanosleep(nanoseconds: u32) {
    unsafe { nvvm_nanosleep(nanoseconds) }
}

#[inline(always)]
pub fn clock() -> u64 {
    unsafe { nvvm_clock64() }
}

#[inline(always)]
pub fn trap() -> ! {
    unsafe { nvptx::trap() }
}

#[inline(always)]
pub fn print(format: &'static [u8], _text: &str, _forms: &[Form], words: [u64; 8]) {
    // The driver reads the arguments as a C compiler lays them out: these all have eight bytes.
    unsafe { nvptx::vprintf(format.as_ptr(), words.as_ptr().cast()) };
}

#[inline(always)]
pub fn computed(mut value: u32) -> u32 {
    // A statement that the compiler may not move and that might change the value.
    unsafe { asm!("/* {0} */", inout(reg32) value, options(nostack, nomem)) }
    value
}

#[inline(always)]
pub fn breakpoint() {
    unsafe { asm!("brkpt;", options(nostack)) }
}

macro_rules! is_in_space {
    ($($name:ident $space:literal;)*) => { $(
        #[inline(always)]
        pub fn $name(pointer: *const u8) -> bool {
            let yes: u32;
            unsafe {
                asm!(concat!("{{ .reg .pred p; isspacep.", $space, " p, {p}; selp.u32 {o}, 1, 0, p; }}"),
                    o = out(reg32) yes, p = in(reg64) pointer, options(pure, nomem, nostack));
            }
            yes != 0
        }
    )* };
}
is_in_space! { is_shared "shared"; is_global "global"; }

#[inline(always)]
pub fn dynamic_shared_bytes() -> u32 {
    let bytes: u32;
    unsafe { asm!("mov.u32 {}, %dynamic_smem_size;", out(reg32) bytes, options(pure, nomem, nostack)) };
    bytes
}

#[inline(always)]
pub fn shared_region(_key: usize, _bytes: usize, _align: usize) -> *mut u8 {
    // Aligned to 16, so that views of it can move 16 bytes at once.
    core::intrinsics::gpu::gpu_launch_sized_workgroup_mem::<u128>().cast()
}

#[inline(always)]
pub fn name_shared(_field: *mut u8, _bytes: usize, _name: &'static str) {}

#[inline(always)]
pub fn sync_warp(mask: u32) {
    unsafe { nvvm_bar_warp_sync(mask) }
}

#[inline(always)]
pub fn active_mask() -> u32 {
    unsafe { nvvm_activemask() }
}

#[inline(always)]
pub fn ballot(mask: u32, predicate: bool) -> u32 {
    unsafe { nvvm_ballot(mask, predicate) }
}

#[inline(always)]
pub fn any(mask: u32, predicate: bool) -> bool {
    unsafe { nvvm_any(mask, predicate) }
}

#[inline(always)]
pub fn all(mask: u32, predicate: bool) -> bool {
    unsafe { nvvm_all(mask, predicate) }
}

// The control word of shfl: segment mask in bits 8..13, clamp in bits 0..5 (0 for up: the segment's first lane).
macro_rules! shuffles {
    ($($name:ident $intrinsic:ident $clamp:literal;)*) => { $(
        #[inline(always)]
        pub fn $name(mask: u32, value: u32, by: u32, width: u32) -> (u32, bool) {
            unsafe { $intrinsic(mask, value, by, (32 - width) << 8 | $clamp) }
        }
    )* };
}
shuffles! {
    shuffle_idx nvvm_shuffle_idx 31;
    shuffle_up nvvm_shuffle_up 0;
    shuffle_down nvvm_shuffle_down 31;
    shuffle_xor nvvm_shuffle_bfly 31;
}

#[inline(always)]
pub fn match_any_32(mask: u32, value: u32) -> u32 {
    unsafe { nvvm_match_any_32(mask, value) }
}

#[inline(always)]
pub fn match_any_64(mask: u32, value: u64) -> u32 {
    unsafe { nvvm_match_any_64(mask, value) }
}

#[inline(always)]
pub fn match_all_32(mask: u32, value: u32) -> (u32, bool) {
    unsafe { nvvm_match_all_32(mask, value) }
}

#[inline(always)]
pub fn match_all_64(mask: u32, value: u64) -> (u32, bool) {
    unsafe { nvvm_match_all_64(mask, value) }
}

#[cfg(target_feature = "sm_80")]
#[inline(always)]
pub fn reduce(op: ReduceOp, mask: u32, value: u32) -> u32 {
    unsafe {
        match op {
            ReduceOp::AddU32 => nvvm_redux_add(value, mask),
            ReduceOp::MinU32 => nvvm_redux_umin(value, mask),
            ReduceOp::MaxU32 => nvvm_redux_umax(value, mask),
            ReduceOp::MinI32 => nvvm_redux_min(value, mask),
            ReduceOp::MaxI32 => nvvm_redux_max(value, mask),
            ReduceOp::And => nvvm_redux_and(value, mask),
            ReduceOp::Or => nvvm_redux_or(value, mask),
            ReduceOp::Xor => nvvm_redux_xor(value, mask),
        }
    }
}

/// Below sm_80: each lane in turn gives its value to all. Any mask works, and the order is fixed.
#[cfg(not(target_feature = "sm_80"))]
#[inline(always)]
pub fn reduce(op: ReduceOp, mask: u32, value: u32) -> u32 {
    let first = mask.trailing_zeros();
    let mut sum = shuffle_idx(mask, value, first, 32).0;
    let mut rest = mask & (mask - 1);
    while rest != 0 {
        let other = shuffle_idx(mask, value, rest.trailing_zeros(), 32).0;
        sum = match op {
            ReduceOp::AddU32 => sum.wrapping_add(other),
            ReduceOp::MinU32 => sum.min(other),
            ReduceOp::MaxU32 => sum.max(other),
            ReduceOp::MinI32 => (sum as i32).min(other as i32) as u32,
            ReduceOp::MaxI32 => (sum as i32).max(other as i32) as u32,
            ReduceOp::And => sum & other,
            ReduceOp::Or => sum | other,
            ReduceOp::Xor => sum ^ other,
        };
        rest &= rest - 1;
    }
    sum
}

/// A view's range check, in checked builds.
#[inline(always)]
#[track_caller]
pub fn check_range(begin: usize, len: usize, of: usize) {
    #[cfg(cuda_std_checked)]
    if begin > of || len > of - begin {
        fault(begin.wrapping_add(len), of, Location::caller());
    }
    #[cfg(not(cuda_std_checked))]
    let _ = (begin, len, of);
}

/// Where a fault is reported; the host sets it after loading the module.
#[cfg(cuda_std_checked)]
#[unsafe(no_mangle)]
pub static mut CUDA_STD_FAULT_RECORD: *mut super::FaultRecord = core::ptr::null_mut();

/// Writes the fault record and stops the kernel. The context is lost by the trap; the record is in host memory.
#[cfg(cuda_std_checked)]
#[cold]
#[inline(never)]
fn fault(index: usize, len: usize, site: &Location<'static>) -> ! {
    unsafe {
        let record = (&raw const CUDA_STD_FAULT_RECORD).read_volatile();
        if !record.is_null() {
            let claimed: u32;
            asm!("atom.relaxed.sys.cas.b32 {}, [{}], 0, {};", out(reg32) claimed, in(reg64) record,
                in(reg32) super::FAULT_CLAIMED, options(nostack));
            if claimed == 0 {
                (&raw mut (*record).line).write_volatile(site.line());
                (&raw mut (*record).block).write_volatile(block_idx(0));
                (&raw mut (*record).thread).write_volatile(thread_idx(0));
                (&raw mut (*record).index).write_volatile(index as u64);
                (&raw mut (*record).len).write_volatile(len as u64);
                let name = site.file().as_bytes();
                let file = (&raw mut (*record).file).cast::<u8>();
                let kept = if name.len() < 116 { name.len() } else { 116 };
                let mut i = 0;
                while i < kept {
                    file.add(i).write_volatile(*name.get_unchecked(name.len() - kept + i));
                    i += 1;
                }
                (&raw mut (*record).file_len).write_volatile(kept as u32);
                asm!("fence.acq_rel.sys;", options(nostack));
                (&raw mut (*record).state).write_volatile(super::FAULT_WRITTEN);
                asm!("fence.acq_rel.sys;", options(nostack));
            }
        }
    }
    trap()
}

/// 16 bytes that are moved as two words.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
struct Words64([u64; 2]);

/// One element of a view.
pub struct Element<T, S> {
    pub(super) pointer: *mut T,
    _space: PhantomData<S>,
}

impl<T, S: SpaceOf> Element<T, S> {
    #[inline(always)]
    #[track_caller]
    pub fn new(pointer: *mut T, index: usize, len: usize) -> Self {
        #[cfg(cuda_std_checked)]
        if index >= len {
            fault(index, len, Location::caller());
        }
        #[cfg(not(cuda_std_checked))]
        let _ = len;
        // Not wrapping_add: inbounds arithmetic is what lets LLVM fold the index into the address.
        Self { pointer: unsafe { pointer.add(index) }, _space: PhantomData }
    }
}

/// Reads the bits of a `$t`, of the size of `T`, by one instruction.
macro_rules! hinted_load {
    ($instruction:literal, $pointer:expr) => {{
        let pointer = $pointer;
        match size_of::<T>() {
            4 => {
                let bits: u32;
                asm!(concat!($instruction, ".b32 {}, [{}];"), out(reg32) bits, in(reg64) pointer,
                    options(pure, readonly, nostack));
                core::mem::transmute_copy(&bits)
            }
            8 => {
                let bits: u64;
                asm!(concat!($instruction, ".b64 {}, [{}];"), out(reg64) bits, in(reg64) pointer,
                    options(pure, readonly, nostack));
                core::mem::transmute_copy(&bits)
            }
            16 if align_of::<T>() == 16 => {
                let (low, high): (u64, u64);
                asm!(concat!($instruction, ".v2.b64 {{{}, {}}}, [{}];"), out(reg64) low, out(reg64) high,
                    in(reg64) pointer, options(pure, readonly, nostack));
                core::mem::transmute_copy(&[low, high])
            }
            _ => *pointer,
        }
    }};
}

impl<T: Copy, S: SpaceOf> Element<T, S> {
    #[inline(always)]
    pub unsafe fn load(self, hint: CacheHint) -> T {
        unsafe {
            match hint {
                CacheHint::None if size_of::<T>() == 16 && align_of::<T>() < 16 => self.load_16(),
                CacheHint::None => *self.pointer,
                CacheHint::ReadOnly => hinted_load!("ld.global.nc", self.pointer),
                CacheHint::Streaming => hinted_load!("ld.global.cs", self.pointer),
            }
        }
    }

    #[inline(always)]
    pub unsafe fn store(self, value: T, hint: CacheHint) {
        unsafe {
            if hint == CacheHint::Streaming {
                match size_of::<T>() {
                    4 => {
                        let bits: u32 = core::mem::transmute_copy(&value);
                        asm!("st.global.cs.b32 [{}], {};", in(reg64) self.pointer, in(reg32) bits, options(nostack));
                        return;
                    }
                    8 => {
                        let bits: u64 = core::mem::transmute_copy(&value);
                        asm!("st.global.cs.b64 [{}], {};", in(reg64) self.pointer, in(reg64) bits, options(nostack));
                        return;
                    }
                    _ => {}
                }
            }
            if size_of::<T>() == 16 && align_of::<T>() < 16 {
                self.store_16(value)
            } else {
                *self.pointer = value
            }
        }
    }

    // An array of four words moves as one 16-byte access when it is read and written as a u128. Of such an access that reads
    // words of 64 bits the compiler makes two.
    #[inline(always)]
    unsafe fn load_16(&self) -> T {
        unsafe {
            if align_of::<T>() == 8 {
                core::mem::transmute_copy(&*self.pointer.cast::<Words64>())
            } else {
                core::mem::transmute_copy(&*self.pointer.cast::<u128>())
            }
        }
    }

    #[inline(always)]
    unsafe fn store_16(&self, value: T) {
        unsafe { *self.pointer.cast::<u128>() = core::mem::transmute_copy(&value) }
    }
}
