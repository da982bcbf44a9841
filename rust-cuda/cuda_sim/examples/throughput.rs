//! Prints how many simple threads a second one core simulates, with checks off and on.

use cuda_sim::{Checks, LaunchSpec, Machine, MachineInfo, Options, Order};
use cuda_std::kernel::Kernel;
use cuda_std::prelude::*;
use std::time::Instant;

const THREADS: u32 = 1 << 19;

#[kernel(block = 128)]
unsafe fn saxpy(a: f32, x: Slice<f32>, y: SliceMut<f32>) {
    let i = thread::index_1d() as usize;
    // SAFETY: there is an element for each thread.
    unsafe { y.store(i, a * x.load(i) + y.load(i)) };
}

#[kernel(block = 128)]
unsafe fn three_barriers(input: Slice<u32>, out: SliceMut<u32>) {
    let i = thread::index_1d() as usize;
    // SAFETY: there is an input and there are three results for each thread.
    unsafe {
        let predicate = input.load(i);
        out.store(3 * i, thread::sync_threads_count(predicate));
        out.store(3 * i + 1, thread::sync_threads_and(predicate));
        out.store(3 * i + 2, thread::sync_threads_or(predicate));
    }
}

fn main() {
    println!("{:<34}{:>16}{:>16}{:>16}", "million threads a second", "checks off", "standard", "all");
    for order in [Order::Ascending, Order::Random, Order::WarpShuffled, Order::FewPreemptions { changes: 3 }]
    {
        let rates = |measure: fn(Options) -> f64| {
            [Checks::none(), Checks::standard(), Checks::all()]
                .map(|checks| measure(Options { order, checks, ..Options::default() }))
        };
        let print = |name: &str, [a, b, c]: [f64; 3]| {
            println!("{:<34}{a:>16.2}{b:>16.2}{c:>16.2}", format!("{name}, {order}"));
        };
        print("saxpy", rates(time_saxpy));
        print("three barriers", rates(time_barriers));
    }
}

fn time_saxpy(options: Options) -> f64 {
    let machine = Machine::new(MachineInfo::default(), options);
    let [x, y] = [1.0f32, 2.0].map(|value| upload(&machine, &vec![value; THREADS as usize]));
    // SAFETY: these are arrays in the machine's memory.
    let args = unsafe { (3.0, view(x, THREADS), view_mut(y, THREADS)) };
    time(&machine, 128, || {
        // SAFETY: a simulator is current when the machine calls this.
        unsafe { saxpy::call(&args) }
    })
}

fn time_barriers(options: Options) -> f64 {
    let machine = Machine::new(MachineInfo::default(), options);
    let input = upload(&machine, &vec![1u32; THREADS as usize]);
    let out = upload(&machine, &vec![0u32; 3 * THREADS as usize]);
    // SAFETY: these are arrays in the machine's memory.
    let args = unsafe { (view(input, THREADS), view_mut(out, 3 * THREADS)) };
    time(&machine, 128, || {
        // SAFETY: a simulator is current when the machine calls this.
        unsafe { three_barriers::call(&args) }
    })
}

fn upload<T: Copy>(machine: &Machine, items: &[T]) -> u64 {
    let address = machine.alloc(size_of_val(items) as u64, "items").unwrap();
    // SAFETY: plain numbers.
    let bytes = unsafe { std::slice::from_raw_parts(items.as_ptr().cast(), size_of_val(items)) };
    machine.copy_to_device(address, bytes).unwrap();
    address
}

unsafe fn view<'a, T>(address: u64, len: u32) -> Slice<'a, T> {
    // SAFETY: passed on to the caller.
    unsafe { Slice::from_raw_parts(address as *const T, len as usize) }
}

unsafe fn view_mut<'a, T>(address: u64, len: u32) -> SliceMut<'a, T> {
    // SAFETY: passed on to the caller.
    unsafe { SliceMut::from_raw_parts(address as *mut T, len as usize) }
}

/// Million threads a second of the second launch, when stacks are there.
fn time(machine: &Machine, threads: u32, run: impl Fn()) -> f64 {
    let mut rate = 0.0;
    for _ in 0..2 {
        let start = Instant::now();
        machine.launch(&LaunchSpec::new("kernel", THREADS / threads, threads, 0, &run)).unwrap();
        rate = f64::from(THREADS) / start.elapsed().as_secs_f64() / 1e6;
    }
    rate
}
