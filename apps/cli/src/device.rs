//! Chooses the device of a command: the one that `--device` names, or else the one that is likely to finish first.
//!
//! Opening a GPU takes longer than many tasks. Without `--device` the time of one CPU thread is therefore estimated from the
//! input sizes, before the driver is opened. The CPU is taken if all its threads need less than [`OPENING`]; otherwise the
//! best device, as with `--device best`. Results do not depend on the device.
//!
//! The times of the table are rough estimates; the time to open a GPU was measured.
//!
//! | work | time of a thread |
//! |---|---|
//! | sorting a point, a box or a triangle into an index | 1 µs |
//! | a candidate pair | 10 ns |
//! | a query of a k-d tree | 2 µs, and 50 ns for each neighbor |
//! | a ray | 2 µs |
//! | a cell of a raster | 5 µs |
//!
//! Real places are clustered: a join is assumed to have 32 times the candidate pairs of uniformly distributed places.

use clap::Args;
use std::f64::consts::PI;
use std::io::Write;

use super::Result;
use kauri::{Device, EARTH_RADIUS_M};

/// Seconds to open a GPU: the driver, a context and the kernels. Measured on an H200.
const OPENING: f64 = 0.35;

const POINT: f64 = 1e-6;
const PAIR: f64 = 1e-8;
const QUERY: f64 = 2e-6;
const NEIGHBOR: f64 = 5e-8;
const RAY: f64 = 2e-6;
#[cfg(feature = "terrain")]
const CELL: f64 = 5e-6;
/// Candidate pairs of real places, relative to places distributed uniformly over the Earth.
const CROWDING: f64 = 32.0;

/// The device named on the command line.
#[derive(Args, Clone)]
pub(super) struct DeviceOption {
    /// Device to run on: cpu, cuda (the first GPU), cuda:N, sim (the simulator), or best (a GPU if there is one, else the CPU)
    /// [default: cpu for a task that takes less time than opening a GPU, otherwise best]
    #[arg(long)]
    device: Option<String>,
}

/// A device that is open, or that is chosen when the work is known.
pub(super) struct DeviceChoice(Option<Device>);

impl DeviceOption {
    /// Opens the named device, so that a wrong name is an error before any work.
    pub(super) fn choice(&self) -> Result<DeviceChoice> {
        Ok(DeviceChoice(self.device.as_deref().map(Device::from_name).transpose()?))
    }
}

impl DeviceChoice {
    /// Returns the device for the work. If the command line names none, prints the choice and its reason to `err`.
    pub(super) fn for_work(self, work: Work, err: &mut dyn Write) -> Result<Device> {
        if let Some(device) = self.0 {
            return Ok(device);
        }
        let seconds = work.0 / rayon::current_num_threads() as f64;
        let device = if seconds < OPENING {
            let reason = format!("this takes it about {seconds:.2} s, and opening a GPU takes {OPENING} s");
            Device::cpu().with_reason(reason)
        } else {
            Device::best()?
        };
        // A failure to write to standard error cannot be reported.
        let _ = writeln!(err, "device: {device}; {}", device.reason());
        Ok(device)
    }
}

/// An estimate of the seconds that one thread of the CPU takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Work(f64);

impl Work {
    /// A join of two sets of places within a distance.
    pub(super) fn of_join(left: usize, right: usize, meters: f64) -> Self {
        let angle = (meters / EARTH_RADIUS_M).min(PI);
        // The part of a sphere that a cap covers.
        Self::of_box_join(left, right, (1.0 - libm::cos(angle)) / 2.0)
    }

    /// A join of two sets that has the part `covered` of all pairs if items are distributed uniformly.
    pub(super) fn of_box_join(left: usize, right: usize, covered: f64) -> Self {
        let (left, right) = (left as f64, right as f64);
        Self((left + right) * POINT + left * right * (covered * CROWDING).min(1.0) * PAIR)
    }

    /// The `k` nearest points of each query.
    pub(super) fn of_nearest(points: usize, queries: usize, k: usize) -> Self {
        Self(points as f64 * POINT + queries as f64 * (QUERY + k as f64 * NEIGHBOR))
    }

    /// A tree over points.
    pub(super) fn of_tree(points: usize) -> Self {
        Self(points as f64 * POINT)
    }

    /// A raster of the heights of points.
    #[cfg(feature = "terrain")]
    pub(super) fn of_raster(points: usize, cells: usize) -> Self {
        Self(points as f64 * POINT + cells as f64 * CELL)
    }

    /// Rays through a mesh, as often as there are pictures.
    pub(super) fn of_rays(triangles: usize, rays: f64, pictures: u32) -> Self {
        Self((triangles as f64 * POINT + rays * RAY) * f64::from(pictures))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_takes_little_work() {
        let chosen = |work: Work| {
            let mut err = Vec::new();
            let device = DeviceChoice(None).for_work(work, &mut err).unwrap();
            (device, String::from_utf8(err).unwrap())
        };
        // Cities and airports, as in the demo.
        let (device, said) = chosen(Work::of_join(135_233, 7184, 50e3));
        assert!(
            device.is_cpu() && said.starts_with("device: cpu (") && said.contains("opening a GPU"),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1);
        let (device, said) = chosen(Work(1e6));
        assert_eq!(said, format!("device: {device}; {}\n", Device::best().unwrap().reason()));
        let named = DeviceChoice(Some(Device::cpu()));
        let mut err = Vec::new();
        assert!(named.for_work(Work(1e6), &mut err).unwrap().is_cpu() && err.is_empty());
    }

    #[test]
    fn work_grows_with_the_input() {
        let seconds = |Work(seconds)| seconds;
        assert_eq!(seconds(Work::of_join(0, 0, 1.0)), 0.0);
        // All pairs, however far; more than that there are not.
        assert_eq!(seconds(Work::of_join(1000, 1000, 2e7)), seconds(Work::of_join(1000, 1000, f64::MAX)));
        assert!((seconds(Work::of_join(1000, 1000, 2e7)) - (2e-3 + 1e-2)).abs() < 1e-9);
        assert!(seconds(Work::of_nearest(1000, 10, 2)) < seconds(Work::of_nearest(1000, 10, 3)));
        assert_eq!(seconds(Work::of_rays(10, 1e6, 2)), 2.0 * seconds(Work::of_rays(10, 1e6, 1)));
        assert!(seconds(Work::of_tree(usize::MAX)).is_finite());
    }
}
