//! Finds the pairs of nearby people with the most common interests by a custom kernel: on the first GPU, or in the simulator with
//! `cargo run -- sim`. On a GPU the join also needs kauri's own kernels: run `cargo xtask ptx` in the clone first.

use kauri::device::{Buffer, Stream, Workspace};
use kauri::{Device, Result, TopKDistanceJoin};
use own_kernels::own_shared_interests;

const PTX: &str = include_str!(concat!(env!("OUT_DIR"), "/own.ptx"));

/// Returns pseudorandom bits for index `i`.
fn noise(i: u64) -> u64 {
    let x = (i.wrapping_add(1)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x ^ (x >> 27)
}

/// Prints the reason and the usage, and ends the program.
fn usage(reason: &str) -> ! {
    eprintln!("error: {reason}\nusage: own-kernel [cuda | cuda:N | sim]");
    std::process::exit(2)
}

fn main() -> Result<()> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let name = match &names[..] {
        [] => "cuda",
        [name] => name,
        _ => usage("one argument is expected"),
    };
    let device = Device::from_name(name).unwrap_or_else(|error| usage(&error.to_string()));
    let gpu = device.gpu().unwrap_or_else(|| usage("own kernels need a GPU or the simulator"));
    // SAFETY: the family is none of kauri's.
    unsafe { gpu.load_module("own", PTX) }?;
    let stream = Stream::new(gpu)?;

    // People in a square, each with some of 64 interests.
    let num = if name == "sim" { 300 } else { 1_000_000 };
    let coords: Vec<f32> = (0..2 * num).map(|i| (noise(i) >> 40) as f32 / (1 << 24) as f32).collect();
    let interests: Vec<u64> = (0..num).map(|i| noise(i + 1 << 32) & noise(i + 1 << 33)).collect();
    let epsilon = (3.0 / num as f32).sqrt();
    let coords_on = Buffer::from_slice(&stream, &coords, "places of people")?;
    let interests_on = Buffer::from_slice(&stream, &interests, "interests of people")?;

    let join = TopKDistanceJoin::new(epsilon, 10);
    let sets = [&coords_on, &coords_on];
    let best = join.run_custom_on::<[f32; 2]>(&stream, &mut Workspace::new(gpu), sets, |num_blocks, own| {
        let args = (own, interests_on.slice(), interests_on.slice());
        // SAFETY: there are as many words as people.
        unsafe { stream.launch::<own_shared_interests>(num_blocks, args) }
    })?;
    for pair in &best {
        println!("{} and {} share {} interests", pair.left, pair.right, pair.rank);
    }
    // The score of the kernel as a closure, on the CPU.
    let shared = |left: u32, right: u32| {
        let both = interests[left as usize] & interests[right as usize];
        if left == right { 0 } else { u64::from(both.count_ones()) }
    };
    let people = coords.as_chunks::<2>().0;
    assert_eq!(best, join.run_custom(people, people, shared)?);
    Ok(())
}
