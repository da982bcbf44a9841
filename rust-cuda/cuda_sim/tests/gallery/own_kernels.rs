//! The project's test kernels, which are right, under the standard schedules.

use crate::harness::{Array, Device, schedule};
use cuda_sim::{LaunchSpec, Options};
use cuda_std::kernel::Kernel;
use kauri_test_kernels::{atomics, block, launch, memory, ordering, warp};

/// Runs a check under the standard schedules.
fn under_all(check: impl Fn(&Device)) {
    (0..Options::ORDERS).for_each(|i| check(&Device::new(schedule(i))));
}

fn noise(n: usize) -> Vec<u32> {
    (0..n as u32).map(|i| i.wrapping_mul(2_654_435_761) ^ 0x5bd1_e995).collect()
}

/// Launches, and shows a report as it is meant to be read.
fn run<K: Kernel>(d: &Device, blocks: u32, args: K::Args<'_>) {
    d.launch::<K>(blocks, args).unwrap_or_else(|error| panic!("{error}"));
}

fn read(d: &Device, array: Array) -> Vec<u32> {
    d.read(array).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn atomics_of_each_kind() {
    under_all(|d| {
        let operands: Vec<u32> = noise(512).iter().map(|x| x >> 8).collect();
        let start = [0, u32::MAX, 0, u32::MAX, 0, 0, 0];
        let (input, first) = (d.array(&operands), d.array(&start));
        let (global, shared) = (d.array(&start), d.fresh::<u32>(14));
        run::<atomics::test_atomics<u32>>(
            d,
            2,
            (input.slice(), first.slice(), global.slice_mut(), shared.slice_mut()),
        );
        let got = read(d, global);
        let of = |f: fn(u32, u32) -> u32| operands.iter().copied().reduce(f).unwrap();
        assert_eq!(got[0], of(u32::wrapping_add));
        assert_eq!((got[1], got[2]), (of(u32::min), of(u32::max)));
        assert_eq!((got[3], got[4], got[5]), (of(|a, b| a & b), of(|a, b| a | b), of(|a, b| a ^ b)));
        assert!(operands.contains(&got[6]));
        let shared = read(d, shared);
        assert_eq!(shared[0].wrapping_add(shared[7]), got[0]);

        let (next, taken) = (d.zeros(1), d.zeros(256));
        run::<atomics::test_tickets>(d, 4, (next.slice_mut(), taken.slice_mut()));
        assert_eq!(read(d, taken), [1; 256]);
    });
}

#[test]
fn messages_between_blocks() {
    under_all(|d| {
        let items = noise(20 * 64);
        let input = d.array(&items);
        let (partial, done, out) = (d.fresh::<u32>(20), d.zeros(1), d.fresh::<u32>(1));
        let args = (input.slice(), partial.slice_mut(), done.slice_mut(), out.slice_mut());
        run::<ordering::test_last_block>(d, 20, args);
        assert_eq!(read(d, out), [items.iter().fold(0u32, |s, &x| s.wrapping_add(x))]);

        let (ticket, values, flags) = (d.zeros(1), d.fresh::<u32>(20), d.zeros(20));
        let args = (input.slice(), ticket.slice_mut(), values.slice_mut(), flags.slice_mut());
        run::<ordering::test_chain>(d, 20, args);
        let sums = items[..20].iter().scan(0u32, |s, &x| {
            *s = s.wrapping_add(x);
            Some(*s)
        });
        assert_eq!(read(d, values), sums.collect::<Vec<_>>());
    });
}

#[test]
fn barriers_and_shared_memory() {
    under_all(|d| {
        let items: Vec<u32> = noise(384).iter().map(|x| x % 1000).collect();
        let input = d.array(&items);
        let out = d.fresh::<u32>(3 * 384);
        run::<block::test_barriers>(d, 3, (input.slice(), out.slice_mut()));
        for (i, words) in read(d, out).chunks(3).enumerate() {
            let set = items[i / 128 * 128..][..128].iter().filter(|&&x| x != 0).count();
            assert_eq!(words, [set as u32, u32::from(set == 128), u32::from(set > 0)]);
        }
        let out = d.fresh::<u32>(384);
        run::<block::test_shared>(d, 3, (input.slice(), out.slice_mut()));
        let mirrored = |i: usize| items[i / 128 * 128 + 127 - i % 128];
        assert_eq!(read(d, out), (0..384).map(|i| 3 * mirrored(i) + 1000).collect::<Vec<_>>());

        let out = d.fresh::<u32>(384);
        run::<block::test_divergent_then_barrier>(d, 3, (input.slice(), out.slice_mut(), 500));
        let value = |i: usize| if items[i] < 500 { items[i] * 2 } else { 1 };
        let expected = |i: usize| {
            if items[i] < 500 { value(i / 128 * 128 + (i % 128 + 1) % 128) } else { 0 }
        };
        assert_eq!(read(d, out), (0..384).map(expected).collect::<Vec<_>>());
    });
}

#[test]
fn collectives_of_a_warp() {
    under_all(|d| {
        let items = noise(64);
        let input = d.array(&items);
        let (out, flags) = (d.fresh::<u32>(256), d.fresh::<u32>(256));
        run::<warp::test_shuffles<u32>>(d, 1, (input.slice(), out.slice_mut(), flags.slice_mut(), 3, 8));
        let (out, flags) = (read(d, out), read(d, flags));
        for i in 0..64 {
            let own = items[i];
            let up = if i % 8 >= 3 { items[i - 3] } else { own };
            let down = if i % 8 < 5 { items[i + 3] } else { own };
            assert_eq!(out[4 * i..][..4], [items[i / 8 * 8 + 3], up, down, items[i ^ 3]]);
            let in_range = [true, i % 8 >= 3, i % 8 < 5, true].map(u32::from);
            assert_eq!(flags[4 * i..][..4], in_range);
        }
        let out = d.fresh::<u32>(8 * 64);
        run::<warp::test_votes>(d, 1, (input.slice(), out.slice_mut(), u32::MAX));
        assert_eq!(read(d, out)[..3], [u32::MAX, 1, 1]);
        let out = d.fresh::<u32>(2 * 64);
        run::<warp::test_matches<u32>>(d, 1, (input.slice(), out.slice_mut()));
        assert_eq!(read(d, out)[2 * 5..][..2], [1 << 5, 0]);
        let out = d.fresh::<u32>(6 * 64);
        run::<warp::test_reductions<u32>>(d, 1, (input.slice(), out.slice_mut(), u32::MAX));
        let warp = &items[..32];
        assert_eq!(
            read(d, out)[..3],
            [
                warp.iter().fold(0u32, |s, &x| s.wrapping_add(x)),
                *warp.iter().min().unwrap(),
                *warp.iter().max().unwrap()
            ]
        );
    });
}

#[test]
fn kinds_of_parameters_loads_and_stores() {
    under_all(|d| {
        let items: Vec<u32> = noise(256).iter().map(|x| x / 2).collect();
        let input = d.array(&items);
        let out = d.fresh::<u32>(4 * 256);
        run::<memory::test_copies<u32>>(d, 4, (input.slice(), out.slice_mut()));
        assert_eq!(read(d, out), items.repeat(4));
        let out = d.fresh::<u32>(256);
        run::<memory::test_copy_16>(d, 4, (input.slice(), out.slice_mut()));
        let reversed: Vec<u32> = items.chunks(4).flat_map(|c| c.iter().rev().copied()).collect();
        assert_eq!(read(d, out), reversed);
        // Raw pointers: their writes are noticed when the host reads.
        let out = d.fresh::<u32>(256);
        run::<launch::test_plain_parameters>(d, 4, (input.slice(), input.slice(), out.slice_mut()));
        assert_eq!(read(d, out), items.iter().map(|x| 2 * x).collect::<Vec<_>>());
        let out = d.fresh::<u32>(6);
        run::<memory::test_pointers>(d, 1, (out.slice_mut(),));
        assert_eq!(read(d, out), [1, 0, 0, 1, 1, 0]);

        let out = d.fresh::<u32>(4 * 6);
        let args = (out.slice_mut(),);
        let call = || unsafe { launch::test_coordinates::call(&args) };
        d.machine.launch(&LaunchSpec::new("test_coordinates", 2, 3, 0, &call)).unwrap();
        assert_eq!(read(d, out)[16..20], [1, 1, 3, 2]);
    });
}
