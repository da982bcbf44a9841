//! Validation of the two sets of a join.

use crate::device::{Buffer, Device, Stream, gpu_of};
use crate::error::{self, Result};
use crate::host_coords::{HostCoords, unchecked_floats};
use crate::point::{DistanceOf, Point, checked_floats, dims};
use cuda_std::mem::Slice;
use kauri_kernels::join::cells::Pairing;
use kauri_kernels::thread::coord::Float;
use std::borrow::Cow;

/// Most points or boxes of a set: ids are 32-bit, and the last id stands for none.
const MAX_ITEMS: u64 = u32::MAX as u64;

/// Refuses a set that has more points or boxes than there are ids.
pub(super) fn check_count(len: usize) -> Result<()> {
    error::check_count("points or boxes", len as u64, MAX_ITEMS)
}

/// Validates a left and a right set and returns their coordinates.
pub(super) fn checked_sets<'a, P: Point>(
    left: &'a [P],
    right: &'a [P],
) -> Result<[Cow<'a, [DistanceOf<P>]>; 2]> {
    check_count(left.len())?;
    check_count(right.len())?;
    Ok([checked_floats(left, "left point")?, checked_floats(right, "right point")?])
}

/// The points or boxes of a join in host memory.
#[derive(Clone, Copy)]
pub(super) struct HostSets<'a, T> {
    pub(super) left: &'a [T],
    /// `None` if the left set is joined with itself.
    pub(super) right: Option<&'a [T]>,
    pub(super) pairing: Pairing,
}

impl<'a, T> HostSets<'a, T> {
    pub(super) fn two(left: &'a [T], right: &'a [T]) -> Self {
        Self { left, right: Some(right), pairing: Pairing::All }
    }

    pub(super) fn one(left: &'a [T], pairing: Pairing) -> Self {
        Self { left, right: None, pairing }
    }
}

impl<'a, P: Point> HostSets<'a, P> {
    /// Validates the points.
    pub(super) fn validate(self) -> Result<HostSides<'a, DistanceOf<P>>> {
        let Self { left, right, .. } = self;
        check_count(left.len())?;
        let probe = checked_floats(left, if right.is_some() { "left point" } else { "point" })?;
        let right = right.map(|right| {
            check_count(right.len())?;
            checked_floats(right, "right point")
        });
        Ok(HostSides { build: right.transpose()?, probe })
    }

    /// Calls `join` with the coordinates as [build, probe]. Those for a GPU that need no conversion are not yet checked. If it fails, the error
    /// of the first invalid point comes first.
    pub(super) fn join<T>(
        self,
        device: &Device,
        join: impl FnOnce([HostCoords<'_, DistanceOf<P>>; 2]) -> Result<T>,
    ) -> Result<T> {
        let unchecked = if gpu_of!(device).is_some() { self.unchecked()? } else { None };
        match unchecked {
            Some(sides) => join(sides).or_else(|error| self.validate().and(Err(error))),
            None => join(self.validate()?.slices().map(|coords| HostCoords::of_checked(coords, dims::<P>()))),
        }
    }

    fn unchecked(&self) -> Result<Option<[HostCoords<'a, DistanceOf<P>>; 2]>> {
        let (left, right) = (self.left, self.right.unwrap_or(self.left));
        check_count(left.len())?;
        check_count(right.len())?;
        Ok(unchecked_floats(right).zip(unchecked_floats(left)).map(|(build, probe)| [build, probe]))
    }
}

/// The validated coordinates of a join in host memory: the right set is the build side, the left set the probe side.
pub(super) struct HostSides<'a, C: Float> {
    /// `None` if a set is joined with itself.
    pub(super) build: Option<Cow<'a, [C]>>,
    pub(super) probe: Cow<'a, [C]>,
}

impl<C: Float> HostSides<'_, C> {
    /// Returns the coordinates as [build, probe].
    pub(super) fn slices(&self) -> [&[C]; 2] {
        [self.build.as_ref().unwrap_or(&self.probe), &self.probe]
    }

    /// Returns the corners of boxes as [build, probe].
    pub(super) fn boxes(&self, dims: usize) -> [HostCoords<'_, C>; 2] {
        self.slices().map(|corners| HostCoords::of_checked(corners, 2 * dims))
    }
}

/// The two sides of a join, uploaded to the device.
pub(super) struct UploadedSides<C> {
    /// `None` if a set is joined with itself.
    build: Option<Buffer<C>>,
    probe: Buffer<C>,
}

impl<C: Float> UploadedSides<C> {
    /// Uploads coordinates given as [build, probe]; the points of a self join only once.
    pub(super) fn new(
        stream: &Stream,
        [build, probe]: [HostCoords<'_, C>; 2],
        is_self_join: bool,
    ) -> Result<Self> {
        let upload = |coords: HostCoords<'_, C>| coords.to_buffer(stream, "points of a join");
        let build = if is_self_join { None } else { Some(upload(build)?) };
        Ok(Self { build, probe: upload(probe)? })
    }

    /// Returns the coordinates as [build, probe].
    pub(super) fn slices(&self) -> [Slice<'_, C>; 2] {
        [self.build.as_ref().unwrap_or(&self.probe).slice(), self.probe.slice()]
    }
}

/// Checks lengths and devices of a probe side, and of a build side unless a set is joined with itself. Returns [build, probe].
pub(super) fn sides_on_device<'a, C: Float>(
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
