//! Bounds, initialization, alignment, and threads that write what others write.

use crate::harness::{Array, Case, Device, error, source};
use cuda_sim::{LaunchSpec, SimError};
use cuda_std::kernel::Kernel;
use cuda_std::prelude::*;

const N: usize = 64;
const BLOCKS: usize = 3;
const ITEMS: usize = BLOCKS * N;

/// Sum with the next item; the last thread has none.
#[kernel(block = N)]
unsafe fn one_too_high(input: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    if i < input.len() {
        out.store(i, input.load(i) + input.load(i + 1)); // ! index one too high
    }
}

#[kernel(block = N)]
unsafe fn guarded_high(input: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    if i < input.len() {
        let next = if i + 1 < input.len() { input.load(i + 1) } else { 0 };
        out.store(i, input.load(i) + next);
    }
}

/// Sum with the item before; the first thread has none.
#[kernel(block = N)]
unsafe fn one_too_low(input: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    let before = input.load(i.wrapping_sub(1)); // ! index one too low
    out.store(i, input.load(i) + before);
}

#[kernel(block = N)]
unsafe fn guarded_low(input: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    let before = if i > 0 { input.load(i - 1) } else { 0 };
    out.store(i, input.load(i) + before);
}

/// Each thread takes a row; the last one is cut short.
#[kernel(block = N)]
unsafe fn long_row(input: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    if 5 * i < input.len() {
        let row = input.part(5 * i, 5); // ! part beyond the end
        out.store(i, row.load(0));
    }
}

#[kernel(block = N)]
unsafe fn short_row(input: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    if 5 * i < input.len() {
        let row = input.part(5 * i, (input.len() - 5 * i).min(5));
        out.store(i, row.load(0));
    }
}

/// Every thread but those of the last block writes the work memory, every thread reads it.
#[kernel(block = N)]
unsafe fn reads_unwritten(input: Slice<u32>, work: SliceMut<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    if i + N < input.len() {
        work.store(i, input.load(i));
    }
    out.store(i, work.load(i)); // ! uninitialized global memory
}

#[kernel(block = N)]
unsafe fn reads_written(input: Slice<u32>, work: SliceMut<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    work.store(i, input.load(i));
    out.store(i, work.load(i));
}

#[repr(C)]
struct Padded {
    rows: [[u32; 17]; N / 16],
}

/// Rows of 16 in memory of 17: the sum takes the padding for an item.
#[kernel(block = N, shared = Padded)]
unsafe fn sums_padding(input: Slice<u32>, out: SliceMut<u32>) {
    let rows = shared_field!(shared_mem::<Padded>(), rows);
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    rows.store(t / 16 * 17 + t % 16, input.load(i));
    thread::sync_threads();
    let (mut sum, mut c) = (0u32, 0);
    while c <= 16 {
        sum = sum.wrapping_add(rows.load(t / 16 * 17 + c)); // ! uninitialized shared memory
        c += 1;
    }
    out.store(i, sum);
}

#[kernel(block = N, shared = Padded)]
unsafe fn sums_items(input: Slice<u32>, out: SliceMut<u32>) {
    let rows = shared_field!(shared_mem::<Padded>(), rows);
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    rows.store(t / 16 * 17 + t % 16, input.load(i));
    thread::sync_threads();
    let (mut sum, mut c) = (0u32, 0);
    while c < 16 {
        sum = sum.wrapping_add(rows.load(t / 16 * 17 + c));
        c += 1;
    }
    out.store(i, sum);
}

/// The read-only cache may still hold what was there before the kernel wrote.
#[kernel(block = N)]
unsafe fn reads_its_writes_readonly(input: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    out.store(i, input.load(i)); // ! read-only load of written data
    let item = out.read_only().load_readonly(i); // ! read-only load of written data
    out.store(i, item + 1); // ! read-only load of written data
}

#[kernel(block = N)]
unsafe fn reads_its_writes(input: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    out.store(i, input.load_readonly(i));
    let item = out.load(i);
    out.store(i, item + 1);
}

/// A row's first element in 32 bits: rows are short here, but far apart.
#[kernel(block = N)]
unsafe fn offset_in_32_bits(input: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d();
    let stride = 1u32 << 26;
    let offset = i * stride; // ! overflow of a u32 offset
    out.store(i as usize, input.load((offset / stride) as usize));
}

#[kernel(block = N)]
unsafe fn offset_in_64_bits(input: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d();
    let stride = 1u64 << 26;
    let offset = u64::from(i) * stride;
    out.store(i as usize, input.load((offset / stride) as usize));
}

/// Two threads write each element.
#[kernel(block = N)]
unsafe fn double_write(input: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    out.store(i / 2, input.load(i) / 2); // ! double write
}

#[kernel(block = N)]
unsafe fn single_write(input: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    if i.is_multiple_of(2) {
        out.store(i / 2, input.load(i) / 2);
    }
}

/// One thread a block says that there was something: all to one word, the same value even.
#[kernel(block = N)]
unsafe fn blocks_write_one_word(input: Slice<u32>, out: SliceMut<u32>) {
    if thread::thread_idx_x() == 0 && input.load(thread::index_1d() as usize) < 1000 {
        out.store(0, 1); // ! two blocks write one word
    }
}

#[kernel(block = N)]
unsafe fn blocks_join_in_one_word(input: Slice<u32>, out: SliceMut<u32>) {
    if thread::thread_idx_x() == 0 && input.load(thread::index_1d() as usize) < 1000 {
        out.atomic_or(0, 1, Ordering::Relaxed, Scope::Device);
    }
}

/// A counter without atomics.
#[kernel(block = N)]
unsafe fn plain_counter(input: Slice<u32>, out: SliceMut<u32>) {
    if input.load(thread::index_1d() as usize).is_multiple_of(3) {
        out.store(0, out.load(0) + 1); // ! plain counter
    }
}

#[kernel(block = N)]
unsafe fn atomic_counter(input: Slice<u32>, out: SliceMut<u32>) {
    if input.load(thread::index_1d() as usize).is_multiple_of(3) {
        out.atomic_add(0, 1, Ordering::Relaxed, Scope::Device);
    }
}

/// Four items at once, from the second one on.
#[kernel(block = N)]
unsafe fn unaligned_quads(input: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    if 4 * i + 5 <= input.len() {
        let quad = input.part(1, input.len() - 1).load_16::<4>(i); // ! misaligned vector load
        out.store(i, quad[0]);
    }
}

#[kernel(block = N)]
unsafe fn unaligned_items(input: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    if 4 * i + 5 <= input.len() {
        out.store(i, input.load(4 * i + 1));
    }
}

#[kernel(block = N)]
unsafe fn copies(input: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    out.store(i, input.load(i)); // ! use after free
}

#[repr(C)]
struct Smem {
    items: [u32; N],
}

#[kernel(block = N, shared = Smem)]
unsafe fn copies_through_shared(input: Slice<u32>, out: SliceMut<u32>) {
    let items = shared_field!(shared_mem::<Smem>(), items); // ! launch with too little shared memory
    let (t, i) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
    items.store(t, input.load(i));
    out.store(i, items.load(t));
}

/// Through a pointer: not seen where it happens, but seen.
#[kernel(block = N)]
unsafe fn pointer_beside(input: Slice<u32>, out: *mut u32) {
    let i = thread::index_1d() as usize;
    *out.add(i + 1) = input.load(i);
}

#[kernel(block = N)]
unsafe fn pointer_within(input: Slice<u32>, out: *mut u32) {
    let i = thread::index_1d() as usize;
    *out.add(i) = input.load(i);
}

fn with_work<K>(device: &Device) -> Result<Vec<u32>, SimError>
where
    K: for<'a> Kernel<Args<'a> = (Slice<'a, u32>, SliceMut<'a, u32>, SliceMut<'a, u32>)>,
{
    let input = device.array(&identity());
    let (work, out) = (device.fresh::<u32>(ITEMS), device.fresh::<u32>(ITEMS));
    device.launch::<K>(BLOCKS as u32, (input.slice(), work.slice_mut(), out.slice_mut()))?;
    device.read(out)
}

fn copied(device: &Device, free_before: bool) -> Result<Vec<u32>, SimError> {
    let (input, out) = (device.array(&identity()), device.fresh::<u32>(ITEMS));
    if free_before {
        device.machine.free(input.address)?;
    }
    device.launch::<copies>(BLOCKS as u32, (input.slice(), out.slice_mut()))?;
    if !free_before {
        device.machine.free(input.address)?;
    }
    device.read(out)
}

fn with_shared_bytes(device: &Device, bytes: usize) -> Result<Vec<u32>, SimError> {
    let (input, out) = (device.array(&identity()), device.fresh::<u32>(ITEMS));
    let args = (input.slice(), out.slice_mut());
    let run = || unsafe { copies_through_shared::call(&args) };
    device.machine.launch(&LaunchSpec::new("copies_through_shared", BLOCKS as u32, N as u32, bytes, &run))?;
    device.read(out)
}

fn by_pointer<K>(device: &Device) -> Result<Vec<u32>, SimError>
where
    K: for<'a> Kernel<Args<'a> = (Slice<'a, u32>, SliceMut<'a, u32>)>,
{
    let input = device.array(&identity());
    let out: Array = device.fresh::<u32>(ITEMS);
    device.launch::<K>(BLOCKS as u32, (input.slice(), out.slice_mut()))?;
    device.read(out)
}

fn identity() -> Vec<u32> {
    (0..ITEMS as u32).collect()
}

macro_rules! case {
    ($name:literal, $kind:ident, $wrong:expr, $right:expr, $values:expr) => {
        Case {
            name: $name,
            caught_as: error!($kind),
            always: true,
            wrong: $wrong,
            right: $right,
            values: $values,
            source: source!("memory.rs"),
        }
    };
}

/// The runner of a kernel with so many inputs and outputs.
macro_rules! in_out {
    ($kernel:ident, $inputs:expr, $outputs:expr) => {
        |d: &Device| d.in_out::<$kernel>(BLOCKS as u32, $inputs, $outputs)
    };
}

pub(crate) fn cases() -> Vec<Case> {
    const ROWS: usize = (ITEMS - 1).div_ceil(5);
    const QUADS: usize = (ITEMS - 1) / 4;
    vec![
        case!(
            "index one too high",
            OutOfBounds,
            in_out!(one_too_high, ITEMS, ITEMS),
            in_out!(guarded_high, ITEMS, ITEMS),
            || (0..ITEMS as u32).map(|i| if i as usize + 1 < ITEMS { 2 * i + 1 } else { i }).collect()
        ),
        case!(
            "index one too low",
            OutOfBounds,
            in_out!(one_too_low, ITEMS, ITEMS),
            in_out!(guarded_low, ITEMS, ITEMS),
            || (0..ITEMS as u32).map(|i| if i > 0 { 2 * i - 1 } else { 0 }).collect()
        ),
        case!(
            "part beyond the end",
            OutOfBounds,
            in_out!(long_row, ITEMS - 1, ROWS),
            in_out!(short_row, ITEMS - 1, ROWS),
            || (0..ROWS as u32).map(|i| 5 * i).collect()
        ),
        case!(
            "uninitialized global memory",
            Uninitialized,
            with_work::<reads_unwritten>,
            with_work::<reads_written>,
            identity
        ),
        case!(
            "uninitialized shared memory",
            Uninitialized,
            in_out!(sums_padding, ITEMS, ITEMS),
            in_out!(sums_items, ITEMS, ITEMS),
            || (0..ITEMS as u32).map(|i| (i / 16 * 16..i / 16 * 16 + 16).sum()).collect()
        ),
        case!(
            "read-only load of written data",
            ReadOnlyWritten,
            in_out!(reads_its_writes_readonly, ITEMS, ITEMS),
            in_out!(reads_its_writes, ITEMS, ITEMS),
            || (1..=ITEMS as u32).collect()
        ),
        case!(
            "overflow of a u32 offset",
            Panic,
            in_out!(offset_in_32_bits, ITEMS, ITEMS),
            in_out!(offset_in_64_bits, ITEMS, ITEMS),
            identity
        ),
        case!(
            "double write",
            Race,
            in_out!(double_write, ITEMS, ITEMS / 2),
            in_out!(single_write, ITEMS, ITEMS / 2),
            || (0..ITEMS as u32 / 2).collect()
        ),
        case!(
            "two blocks write one word",
            Race,
            in_out!(blocks_write_one_word, ITEMS, 1),
            in_out!(blocks_join_in_one_word, ITEMS, 1),
            || vec![1]
        ),
        case!(
            "plain counter",
            Race,
            in_out!(plain_counter, ITEMS, 1),
            in_out!(atomic_counter, ITEMS, 1),
            || vec![ITEMS as u32 / 3]
        ),
        case!(
            "misaligned vector load",
            BadAddress,
            in_out!(unaligned_quads, ITEMS, QUADS),
            in_out!(unaligned_items, ITEMS, QUADS),
            || (0..QUADS as u32).map(|i| 4 * i + 1).collect()
        ),
        case!("use after free", BadAddress, |d| copied(d, true), |d| copied(d, false), identity),
        case!(
            "launch with too little shared memory",
            SharedMemory,
            |d| with_shared_bytes(d, 4 * N - 4),
            |d| with_shared_bytes(d, 4 * N),
            identity
        ),
        case!(
            "pointer beside an allocation",
            RedZone,
            by_pointer::<pointer_beside>,
            by_pointer::<pointer_within>,
            identity
        ),
    ]
}
