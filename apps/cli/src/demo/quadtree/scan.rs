//! The points of a scan in memory.

use crate::Result;
use crate::memory::vec_with_capacity;
use crate::progress::Steps;
use kauri::lidar::{Lidar, LidarClass};

/// Points that are generated at a time.
const PART: usize = 1 << 18;

/// The points of a scan, and the attributes that the demo uses.
pub(super) struct Scan {
    pub(super) lidar: Lidar,
    /// x and y as LAS files have them.
    pub(super) points: Vec<[i32; 2]>,
    pub(super) returns: Vec<Return>,
}

/// A laser return.
#[derive(Clone, Copy)]
pub(super) struct Return {
    /// Meters.
    pub(super) height: f32,
    pub(super) class: LidarClass,
}

impl Scan {
    /// Generates the points, part by part.
    pub(super) fn of(lidar: Lidar, steps: Steps) -> Result<Self> {
        let (len, lattice) = (lidar.len() as usize, lidar.lattice());
        let mut points = vec_with_capacity(len, "points of a scan")?;
        let mut returns = vec_with_capacity(len, "returns of a scan")?;
        steps.parts("scan", "points", len, PART, |part| {
            for point in lidar.points(part.start as u64..part.end as u64)? {
                let [x, y, height] = point.position;
                points.push(lattice.nearest([x, y])?);
                returns.push(Return { height: height as f32, class: point.class });
            }
            Ok(())
        })?;
        Ok(Self { lidar, points, returns })
    }
}
