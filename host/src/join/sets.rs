//! Validation of the two sets of a join.

use crate::device::{Buffer, Stream};
use crate::error::{Error, Result};
use crate::point::{Point, checked_coordinates};
use cuda_std::mem::Slice;
use kauri_kernels::thread::coord::Coord;
use std::borrow::Cow;

/// Most points of a set: ids are 32-bit, and the last id stands for none.
const MAX_POINTS: u64 = u32::MAX as u64;

/// Refuses a set that has more points than there are ids.
pub(super) fn check_count(len: usize) -> Result<()> {
    let (count, max) = (len as u64, MAX_POINTS);
    if count > max { Err(Error::TooManyItems { what: "points", count, max }) } else { Ok(()) }
}

/// Validates a left and a right set and returns their coordinates.
pub(super) fn checked_sets<'a, P: Point>(left: &'a [P], right: &'a [P]) -> Result<[Cow<'a, [P::Coord]>; 2]> {
    check_count(left.len())?;
    check_count(right.len())?;
    Ok([checked_coordinates(left, "left point")?, checked_coordinates(right, "right point")?])
}

/// Validates a left and a right set, or the left one alone for a self join, and calls `run` with the coordinates of the build side, the
/// right set, and of the probe side, the left set.
pub(super) fn with_sides<P: Point, R>(
    left: &[P],
    right: Option<&[P]>,
    run: impl FnOnce([&[P::Coord]; 2]) -> Result<R>,
) -> Result<R> {
    check_count(left.len())?;
    let probe = checked_coordinates(left, if right.is_some() { "left point" } else { "point" })?;
    match right {
        None => run([&probe, &probe]),
        Some(right) => {
            check_count(right.len())?;
            run([&checked_coordinates(right, "right point")?, &probe])
        }
    }
}

/// Checks lengths and devices of a probe side, and of a build side unless a set is joined with itself. Returns [build, probe].
pub(super) fn sides_on_device<'a, C: Coord>(
    stream: &Stream,
    dims: usize,
    probe: &'a Buffer<C>,
    build: Option<&'a Buffer<C>>,
) -> Result<[Slice<'a, C>; 2]> {
    let build = build.unwrap_or(probe);
    for set in [probe, build] {
        check_count(set.len() / dims)?;
        set.check(stream, "coordinates of the points", set.len() / dims * dims)?;
    }
    Ok([build.slice(), probe.slice()])
}
