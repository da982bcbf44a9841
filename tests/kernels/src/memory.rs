//! Kinds of loads and stores.

use bytemuck::{AnyBitPattern, NoUninit};
use cuda_std::prelude::*;
use cuda_std::ptr::{AddressSpace, is_in_address_space};
use cust_derive::DeviceCopyCore;

/// Copies items of 4, 8 or 16 bytes by each kind of load and store: four consecutive copies.
#[kernel(family = "test", block = 64)]
#[instances(T = [u32, u64, u128])]
pub unsafe fn test_copies<T: Copy + 'static>(input: Slice<T>, out: SliceMut<T>) {
    let i = thread::index_1d() as usize;
    let n = input.len();
    if i < n {
        out.store(i, input.load(i));
        out.store(n + i, input.load_readonly(i));
        out.store_streaming(2 * n + i, input.load_streaming(i));
        out.store(3 * n + i, out.load_streaming(i));
    }
}

/// Copies four items at once.
#[kernel(family = "test", block = 64)]
pub unsafe fn test_copy_16(input: Slice<f32>, out: SliceMut<f32>) {
    let i = thread::index_1d() as usize;
    if i < input.len() / 4 {
        let [a, b, c, d] = input.load_16::<4>(i);
        out.store_16(i, [d, c, b, a]);
    }
}

/// Writes the address spaces of pointers, and whether the clock advances.
#[kernel(family = "test", block = 32)]
pub unsafe fn test_pointers(out: SliceMut<u32>) {
    let shared = shared_array![u32; 32];
    let t = thread::thread_idx_x() as usize;
    shared.store(t, t as u32);
    let start = cuda_std::misc::clock();
    thread::nanosleep(100);
    if t == 0 {
        out.store(0, is_in_address_space(out.as_ptr(), AddressSpace::Global).into());
        out.store(1, is_in_address_space(out.as_ptr(), AddressSpace::Shared).into());
        out.store(2, is_in_address_space(shared.as_raw_ptr(), AddressSpace::Global).into());
        out.store(3, is_in_address_space(shared.as_raw_ptr(), AddressSpace::Shared).into());
        out.store(4, (cuda_std::misc::clock() > start).into());
        out.store(5, cuda_std::mem::dynamic_smem_size());
    }
}

/// A type that host and device share.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, NoUninit, AnyBitPattern, DeviceCopyCore)]
pub struct Particle {
    /// Position.
    pub position: [f32; 3],
    /// Velocity.
    pub velocity: [f32; 3],
    /// Identity.
    pub id: u64,
}

/// Moves particles for a time.
#[kernel(family = "test", block = 64)]
pub unsafe fn test_structs(particles: SliceMut<Particle>, time: f32) {
    let i = thread::index_1d() as usize;
    if i < particles.len() {
        let mut p = particles.load(i);
        let mut axis = 0;
        while axis < 3 {
            p.position[axis] += time * p.velocity[axis];
            axis += 1;
        }
        particles.store(i, p);
    }
}
