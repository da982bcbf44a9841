//! The bounding box of points.
//!
//! Lanes, then warps reduce their points, and a block does one pair of atomics per axis on keys that have the order of
//! the coordinates. Minimum and maximum do not depend on the order, so the result has the same bits on every run.

use crate::policy::TILE_THREADS as THREADS;
use crate::thread::coord::Coord;
use crate::thread::items::strided;
use crate::thread::measure::MAX_DIMS;
use crate::thread::operator::Operator;
use crate::thread::radix_key::RadixKey;
use crate::warp::scan::reduce;
use cuda_std::prelude::*;

const WARPS: usize = THREADS / 32;

/// Reduces points of `dims` coordinates, at most `D`, into `keys`: per axis the least key, initialized to all ones, then
/// per axis the greatest key, initialized to 0. -0.0 counts as 0.0; NaN is ignored.
#[kernel(family = "primitives-moves", block = THREADS, shared = BoundsSmem<C, D>)]
#[instances(C = [f32, f64, i32], D = [2, 3, 8])]
pub unsafe fn primitives_bounds<C: Coord, const D: usize>(
    coords: Slice<C>,
    dims: u32,
    keys: SliceMut<<C as Coord>::Key>,
) {
    // The kernel of most dimensions serves all points that have no kernel of their own.
    let dims = if D == MAX_DIMS { dims as usize } else { D };
    Bounds::<C, D> { coords, dims }.run(keys)
}

/// Converts keys to coordinates; keys that no coordinate was reduced into become [`Coord::EMPTY`]. A thread per key.
#[kernel(family = "primitives-moves", block = 32)]
#[instances(C = [f32, f64, i32])]
pub unsafe fn primitives_bounds_finish<C: Coord>(keys: Slice<<C as Coord>::Key>, corners: SliceMut<C>) {
    let i = thread::thread_idx_x() as usize;
    if i < corners.len() {
        let is_least = i < corners.len() / 2;
        let nothing = if is_least { <C::Key>::MAX } else { <C::Key>::ZERO };
        let empty = if is_least { C::EMPTY[0] } else { C::EMPTY[1] };
        let key = keys.load(i);
        corners.store(i, if key == nothing { empty } else { C::from_key(key) });
    }
}

/// Shared memory: the minima and maxima of each warp and axis.
#[repr(C)]
pub struct BoundsSmem<C, const D: usize> {
    least: [[C; D]; WARPS],
    greatest: [[C; D]; WARPS],
}

/// One block's part of the reduction.
struct Bounds<'a, C, const D: usize> {
    coords: Slice<'a, C>,
    /// Coordinates of a point, at most `D`.
    dims: usize,
}

impl<C: Coord, const D: usize> Bounds<'_, C, D> {
    #[inline(always)]
    unsafe fn run(self, keys: SliceMut<'_, C::Key>) {
        let smem = shared_mem::<BoundsSmem<C, D>>();
        let (least, greatest) = (shared_field!(smem, least), shared_field!(smem, greatest));
        let thread = thread::thread_idx_x() as usize;
        let (own_least, own_greatest) = self.reduce_points();
        for axis in 0..D {
            let (low, high) = (reduce::<C, C::Min>(own_least[axis]), reduce::<C, C::Max>(own_greatest[axis]));
            if warp::lane_id() == 0 {
                least.store(thread / 32 * D + axis, low);
                greatest.store(thread / 32 * D + axis, high);
            }
        }
        thread::sync_threads();
        if thread < self.dims {
            let (mut low, mut high) = (<C::Min>::IDENTITY, <C::Max>::IDENTITY);
            for warp in 0..WARPS {
                low = <C::Min>::combine(low, least.load(warp * D + thread));
                high = <C::Max>::combine(high, greatest.load(warp * D + thread));
            }
            keys.atomic_min(thread, low.key(), Ordering::Relaxed, Scope::Device);
            keys.atomic_max(self.dims + thread, high.key(), Ordering::Relaxed, Scope::Device);
        }
    }

    /// Returns the bounding box of the thread's points, or the identities if it has none.
    #[inline(always)]
    unsafe fn reduce_points(&self) -> ([C; D], [C; D]) {
        let (mut least, mut greatest) = ([<C::Min>::IDENTITY; D], [<C::Max>::IDENTITY; D]);
        let num_points = self.coords.len() / self.dims;
        let stride = thread::grid_dim_x() as usize * THREADS;
        for point in strided(thread::index_1d_u64() as usize, num_points, stride) {
            let mut axis = 0;
            // A constant number of rounds keeps the box in registers.
            while axis < D {
                if axis < self.dims {
                    let x = self.coords.load(point * self.dims + axis).without_negative_zero();
                    if !x.is_nan() {
                        least[axis] = <C::Min>::combine(least[axis], x);
                        greatest[axis] = <C::Max>::combine(greatest[axis], x);
                    }
                }
                axis += 1;
            }
        }
        (least, greatest)
    }
}
