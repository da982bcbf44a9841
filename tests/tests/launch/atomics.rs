//! Atomics against their definition, in global and shared memory.

use crate::{noise, on_each_gpu, zeros};
use bytemuck::{Pod, bytes_of};
use cuda_std::atomic::{AtomicOp, AtomicValue};
use cuda_std::shared::SharedElement;
use cust_core::DeviceCopy;
use kauri::device::{Buffer, Stream};
use kauri_test_kernels::atomics::*;
use std::fmt::Debug;

const OPS: [AtomicOp; 6] =
    [AtomicOp::Add, AtomicOp::Min, AtomicOp::Max, AtomicOp::And, AtomicOp::Or, AtomicOp::Xor];
const BLOCK: usize = 256;
const BLOCKS: usize = 4;

fn check<T>(stream: &Stream, operands: &[T], start: [T; 7])
where
    T: AtomicValue + SharedElement + DeviceCopy + Pod + Debug + Default + 'static,
{
    let buffer = Buffer::from_slice(stream, operands, "operands").unwrap();
    let start_buffer = Buffer::from_slice(stream, &start, "start").unwrap();
    let mut global = Buffer::from_slice(stream, &start, "cells").unwrap();
    let mut shared = zeros::<T>(stream, 7 * BLOCKS);
    let args = (buffer.slice(), start_buffer.slice(), global.slice_mut(), shared.slice_mut());
    // SAFETY: one operand for each thread, seven cells for each block.
    unsafe { stream.launch::<test_atomics<T>>(BLOCKS as u64, args) }.unwrap();
    let (global, shared) = (global.to_vec(stream).unwrap(), shared.to_vec(stream).unwrap());
    let expect = |cells: &[T], operands: &[T], what: &str| {
        for (cell, op) in OPS.into_iter().enumerate() {
            let expected = operands.iter().fold(start[cell], |stored, &x| T::apply(op, stored, x));
            // By bits: and, or and xor make NaNs of floats.
            assert_eq!(bytes_of(&cells[cell]), bytes_of(&expected), "{op:?} in {what}");
        }
        // Whoever came last.
        assert!(operands.contains(&cells[6]), "exchange in {what}");
    };
    expect(&global, operands, "global memory");
    for block in 0..BLOCKS {
        expect(
            &shared[7 * block..7 * block + 7],
            &operands[BLOCK * block..BLOCK * (block + 1)],
            "shared memory",
        );
    }
}

#[test]
fn read_modify_writes_of_every_type() {
    on_each_gpu(|_, stream| {
        let words = noise(BLOCK * BLOCKS, 37);
        check::<u32>(stream, &words, [5, u32::MAX, 0, u32::MAX, 0, 1, 0]);
        let signed: Vec<i32> = words.iter().map(|&x| x as i32).collect();
        check::<i32>(stream, &signed, [-5, i32::MAX, i32::MIN, -1, 0, 1, 0]);
        let wide: Vec<u64> = words.iter().map(|&x| u64::from(x) << 31 | 7).collect();
        check::<u64>(stream, &wide, [5, u64::MAX, 0, u64::MAX, 0, 1, 0]);
        let wide: Vec<i64> = signed.iter().map(|&x| i64::from(x) << 25 | 7).collect();
        check::<i64>(stream, &wide, [-5, i64::MAX, i64::MIN, -1, 0, 1, 0]);
        // Multiples of a quarter of small magnitude: any order of the additions gives the same sum.
        let floats: Vec<f32> = words.iter().map(|&x| ((x % 4001) as f32 - 2000.0) / 4.0).collect();
        check::<f32>(stream, &floats, [0.25, 1e30, -1e30, 1.0, 0.0, 1.0, 0.0]);
        let doubles: Vec<f64> = floats.iter().map(|&x| f64::from(x) * 1e9).collect();
        check::<f64>(stream, &doubles, [0.25, 1e300, -1e300, 1.0, 0.0, 1.0, 0.0]);
        let negative: Vec<f32> = floats.iter().map(|x| -x.abs() - 1.0).collect();
        check::<f32>(stream, &negative, [0.0, 1.0, -1e30, 1.0, 0.0, 1.0, 0.0]);
    });
}

#[test]
fn counters_go_around_and_subtract() {
    on_each_gpu(|_, stream| {
        let mut cells = Buffer::from_slice(stream, &[9, 9, 5], "cells").unwrap();
        // SAFETY: three cells.
        unsafe { stream.launch::<test_counters>(2, (cells.slice_mut(), 5)) }.unwrap();
        // The first of 128 steps takes a value above the limit to the end of the ring.
        assert_eq!(cells.to_vec(stream).unwrap(), [127 % 6, 5 - 127 % 6, 5u32.wrapping_sub(3 * 128)]);
    });
}

#[test]
fn compare_exchange_hands_out_each_ticket_once() {
    on_each_gpu(|_, stream| {
        let threads = 64 * 50;
        let mut next = zeros::<u32>(stream, 1);
        let mut taken = zeros::<u32>(stream, threads);
        // SAFETY: one ticket for each thread.
        unsafe { stream.launch::<test_tickets>(50, (next.slice_mut(), taken.slice_mut())) }.unwrap();
        assert_eq!(next.to_vec(stream).unwrap(), [threads as u32]);
        assert_eq!(taken.to_vec(stream).unwrap(), vec![1; threads]);
    });
}
