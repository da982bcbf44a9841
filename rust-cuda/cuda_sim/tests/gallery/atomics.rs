//! Atomic operations: their results in the simulator, and their instructions.

use crate::harness::{Device, under_all};
use crate::kernels::atomics::{self as kernels, *};
use crate::ptx::ptx;
use cuda_sim::Kind;
use cuda_std::atomic::{AtomicOp, AtomicValue, Ordering};
use cuda_std::shared::SharedElement;
use std::fmt::Debug;
use std::ops::Add;

const THREADS: usize = 64;

/// Compares the cells with the operations applied one after another; the operands must be such that the order does not matter.
fn check_operations<T>(device: &Device, operands: &[T], start: [T; CELLS], subtract: fn(T, T) -> T)
where
    T: AtomicValue + SharedElement + Add<Output = T> + Default + Debug + 'static,
{
    let (input, first, global) = (device.array(operands), device.array(&start), device.array(&start));
    let shared = device.fresh::<T>(CELLS);
    let args = (input.slice(), first.slice(), global.slice_mut(), shared.slice_mut());
    device.run::<atomic_operations<T>>(1, args);
    let after = |cell: usize, op| operands.iter().fold(start[cell], |stored, &x| T::apply(op, stored, x));
    let expected = [
        after(0, AtomicOp::Add),
        operands.iter().copied().fold(start[1], subtract),
        after(2, AtomicOp::Min),
        after(3, AtomicOp::Max),
        after(4, AtomicOp::And),
        after(5, AtomicOp::Or),
        after(6, AtomicOp::Xor),
    ];
    for cells in [device.read::<T>(global).unwrap(), device.read::<T>(shared).unwrap()] {
        // As text: operations on the bits of floats may make a NaN.
        assert_eq!(format!("{:?}", &cells[..7]), format!("{expected:?}"));
        assert!(operands.contains(&cells[7]), "{cells:?}");
        assert_eq!(cells[8], after(8, AtomicOp::Add));
    }
}

#[test]
fn each_operation_on_each_type() {
    under_all(|d| {
        let x: Vec<u32> = (0..THREADS as u32).map(|i| (i + 1).wrapping_mul(2_654_435_761) >> 12).collect();
        check_operations(d, &x, [5, 5, u32::MAX, 0, u32::MAX, 0, 1, 0, 5], u32::wrapping_sub);
        let i: Vec<i32> = x.iter().map(|&x| x as i32 - (1 << 19)).collect();
        check_operations(d, &i, [-5, 5, i32::MAX, i32::MIN, -1, 0, 1, 0, 5], |a, b| a - b);
        let u: Vec<u64> = x.iter().map(|&x| u64::from(x) << 34 | 7).collect();
        check_operations(d, &u, [5, 5, u64::MAX, 0, u64::MAX, 0, 1, 0, 5], u64::wrapping_sub);
        let l: Vec<i64> = i.iter().map(|&x| i64::from(x) << 34 | 7).collect();
        check_operations(d, &l, [-5, 5, i64::MAX, i64::MIN, -1, 0, 1, 0, 5], |a, b| a - b);
        // Quarters of small magnitude: their sums are exact.
        let f: Vec<f32> = i.iter().map(|&x| (x % 1000) as f32 / 4.0).collect();
        check_operations(d, &f, [0.25, 0.5, 1e30, -1e30, 1.0, 0.0, 1.0, 0.0, 0.5], |a, b| a - b);
        let g: Vec<f64> = f.iter().map(|&x| f64::from(x) * 1e10).collect();
        check_operations(d, &g, [0.25, 0.5, 1e300, -1e300, 1.0, 0.0, 1.0, 0.0, 0.5], |a, b| a - b);
    });
}

#[test]
fn counters_go_around() {
    under_all(|d| {
        let (rings, before) = (d.array(&[9u32, 9]), d.fresh::<u32>(2 * THREADS));
        d.run::<atomic_counters>(1, (rings.slice_mut(), before.slice_mut(), 5));
        // A first value above the limit counts as the end of the ring.
        let before = d.read::<u32>(before).unwrap();
        let mut seen: [Vec<u32>; 2] =
            [0, 1].map(|ring| before.iter().skip(ring).step_by(2).copied().collect());
        seen.iter_mut().for_each(|values| values.sort_unstable());
        let (mut up, mut down): (Vec<u32>, Vec<u32>) = (vec![9], vec![9]);
        for i in 0..THREADS as u32 - 1 {
            up.push(i % 6);
            down.push(5 - i % 6);
        }
        [&mut up, &mut down].into_iter().for_each(|values| values.sort_unstable());
        assert_eq!(seen, [up, down]);
        assert_eq!(d.read::<u32>(rings).unwrap(), [63 % 6, 5 - 63 % 6]);
    });
}

#[test]
fn instructions_of_each_type() {
    let Some(ptx) = ptx() else { return };
    for (name, bits, add, min, max) in [
        ("u32", "b32", "add.u32", "min.u32", "max.u32"),
        ("i32", "b32", "add.s32", "min.s32", "max.s32"),
        ("u64", "b64", "add.u64", "min.u64", "max.u64"),
        ("i64", "b64", "add.u64", "min.s64", "max.s64"),
        // The sign of the operand selects the signed or the opposite unsigned operation.
        ("f32", "b32", "add.f32", "min.s32|max.u32", "max.s32|min.u32"),
        ("f64", "b64", "add.f64", "min.s64|max.u64", "max.s64|min.u64"),
    ] {
        let (and, or, xor) = (format!("and.{bits}"), format!("or.{bits}"), format!("xor.{bits}"));
        let exchange = format!("exch.{bits}");
        let operations = [add, add, min, max, &and, &or, &xor, &exchange];
        let opcodes = ptx.opcodes(&format!("atomic_operations_{name}"), &["atom", "ld"]);
        for (scope, space) in [("gpu", "global"), ("cta", "shared")] {
            let prefix = format!("atom.relaxed.{scope}.{space}.");
            let mut found: Vec<&str> = opcodes.iter().filter_map(|o| o.strip_prefix(&prefix)).collect();
            let mut expected: Vec<&str> = operations.iter().flat_map(|names| names.split('|')).collect();
            // The compiler may copy the loop around a compare-exchange.
            let compare = format!("cas.{bits}");
            assert!(found.contains(&compare.as_str()), "{name} in {space}: {opcodes:?}");
            found.retain(|operation| *operation != compare);
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected, "{name} in {space}: {opcodes:?}");
            assert!(opcodes.contains(&format!("ld.relaxed.{scope}.{space}.{bits}")), "{name}: {opcodes:?}");
        }
    }
    let counters = ptx.opcodes("atomic_counters", &["atom"]);
    assert_eq!(counters, ["atom.relaxed.gpu.global.inc.u32", "atom.relaxed.gpu.global.dec.u32"]);
}

#[test]
fn instructions_of_each_order_and_scope() {
    let Some(ptx) = ptx() else { return };
    for (scope_name, scope) in [("Block", "cta"), ("Device", "gpu"), ("System", "sys")] {
        // The fence before an operation, the operation's own order, and what the function `fence` is.
        for (order_name, before, order, fence) in [
            ("Relaxed", None, "relaxed", None),
            ("Acquire", None, "acquire", Some("acq_rel")),
            ("Release", Some("acq_rel"), "relaxed", Some("acq_rel")),
            ("AcqRel", Some("acq_rel"), "acquire", Some("acq_rel")),
            ("SeqCst", Some("sc"), "acquire", Some("sc")),
        ] {
            let fence_of = |kind: Option<&str>| kind.map(|kind| format!("fence.{kind}.{scope}"));
            let mut expected: Vec<String> = fence_of(fence).into_iter().collect();
            let mut operation =
                |opcode: String| expected.extend(fence_of(before).into_iter().chain([opcode]));
            operation(format!("atom.{order}.{scope}.global.add.u32"));
            operation(format!("atom.{order}.{scope}.global.cas.b32"));
            if ["Relaxed", "Acquire", "SeqCst"].contains(&order_name) {
                operation(format!("ld.{order}.{scope}.global.b32"));
            }
            if ["Relaxed", "Release", "SeqCst"].contains(&order_name) {
                // A store never acquires.
                operation(format!("st.relaxed.{scope}.global.b32"));
            }
            let kernel = format!("atomic_orders_{order_name}_{scope_name}");
            let mut opcodes = ptx.opcodes(&kernel, &["fence", "atom", "ld", "st", "membar"]);
            opcodes.retain(|opcode| !opcode.starts_with("ld.param"));
            assert_eq!(opcodes, expected, "{kernel}");
        }
    }
}

#[test]
fn operations_of_each_order_and_scope() {
    under_all(|d| {
        macro_rules! run {
            ($order:ident in $($scope:ident)*) => { $(
                let cells = d.zeros(4);
                d.run::<atomic_orders<$order, kernels::$scope>>(1, (cells.slice_mut(),));
                let stores = !matches!(<$order as Order>::ORDER, Ordering::Acquire | Ordering::AcqRel);
                assert_eq!(d.read::<u32>(cells).unwrap(), [32, 1, 0, stores.into()]);
            )* };
            ($($order:ident)*) => { $( run!($order in Block Device System); )* };
        }
        run!(Relaxed Acquire Release AcqRel SeqCst);
    });
}

/// Runs [`atomic_message`]; returns whether the simulator accepts it.
fn message<W: Order, R: Order, S: ScopeOf>(device: &Device) -> bool {
    let (data, flags, out) = (device.fresh::<u32>(1), device.zeros(2), device.fresh::<u32>(1));
    let args = (data.slice_mut(), flags.slice_mut(), out.slice_mut());
    match device.launch::<atomic_message<W, R, S>>(2, args) {
        Ok(()) => {
            assert_eq!(device.read::<u32>(out).unwrap(), [7]);
            true
        }
        Err(error) => {
            let is_expected = matches!(error.kind(), Kind::Race { .. } | Kind::NarrowScope { .. });
            assert!(is_expected, "{error}");
            false
        }
    }
}

#[test]
fn a_message_needs_release_acquire_and_a_scope_of_both_blocks() {
    under_all(|d| {
        macro_rules! messages {
            ($($store:ident $load:ident: $accepted:literal;)*) => { $(
                assert_eq!(message::<$store, $load, kernels::Device>(d), $accepted, "device: {} {}", stringify!($store), stringify!($load));
                assert_eq!(message::<$store, $load, System>(d), $accepted, "system: {} {}", stringify!($store), stringify!($load));
                assert!(!message::<$store, $load, Block>(d), "block: {} {}", stringify!($store), stringify!($load));
            )* };
        }
        messages! {
            Release Acquire: true;
            Release SeqCst: true;
            SeqCst Acquire: true;
            SeqCst SeqCst: true;
            Release Relaxed: false;
            SeqCst Relaxed: false;
            Relaxed Acquire: false;
            Relaxed SeqCst: false;
            Relaxed Relaxed: false;
        }
    });
}
