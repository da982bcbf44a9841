//! Motions of meshes, for trees that are rebuilt for every frame.

use libm::{sin, sincos};
use std::f64::consts::TAU;

use super::triangle_mesh::{Mesh, TASK_TRIANGLES};
use crate::error::{Result, check_len};
use crate::parallel;
use kauri_kernels::thread::coord::Float;

/// Amplitude of [`Motion::Waves`] relative to the longest side, and number of waves along it.
const WAVE_HEIGHT: f64 = 0.05;
const NUM_WAVES: f64 = 3.0;
/// Maximum rotation of each end by [`Motion::Twist`], in turns.
const TWIST: f64 = 0.25;

/// A periodic motion of a mesh, the same to the last bit on every machine.
///
/// It depends on the [`bounds`](Mesh::bounds) of the mesh at rest. Vertices move, triangles keep their vertex indices.
///
/// ```
/// use kauri::mesh::{Motion, shapes};
/// let terrain = shapes::terrain(16, 1)?;
/// let mut moved = terrain.clone();
/// Motion::Waves.apply(&terrain, 0.25, &mut moved)?;
/// assert_eq!(moved.triangles(), terrain.triangles());
/// assert_ne!(moved.vertices(), terrain.vertices());
/// # Ok::<(), kauri::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Motion {
    /// Three waves run along the longest axis. They displace vertices on the shortest axis by up to a twentieth of the
    /// longest side. Neighboring triangles stay neighbors, and their bounding boxes hardly grow.
    Waves,
    /// The ends of the longest axis rotate around it in opposite directions, by up to a quarter of a turn each, back and
    /// forth. Few triangles stay axis-aligned.
    Twist,
}

impl Motion {
    /// Writes the vertices of `mesh` at a time from 0 to 1 to `moved`, which must start as a clone of the mesh. A time outside
    /// that range counts as its fractional part, and a non-finite time as 0.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the meshes have different numbers of vertices.
    pub fn apply(self, mesh: &Mesh, time: f64, moved: &mut Mesh) -> Result<()> {
        check_len("vertices of a mesh and of its motion", mesh.vertices.len(), moved.vertices.len())?;
        let Some(frame) = Frame::of(mesh) else { return Ok(()) };
        let time = if time.is_finite() { time - time.floor() } else { 0.0 };
        parallel::for_chunks(&mut moved.vertices, TASK_TRIANGLES, |chunk, moved| {
            for (moved, &at) in moved.iter_mut().zip(&mesh.vertices[chunk * TASK_TRIANGLES..]) {
                *moved = self.displaced(&frame, time, at);
            }
        });
        Ok(())
    }

    /// Returns the position of a vertex at a time in [0, 1).
    fn displaced(self, frame: &Frame, time: f64, at: [f32; 3]) -> [f32; 3] {
        let mut moved = at.map(f64::from);
        let [shortest, middle, longest] = frame.axes;
        // From -1 to 1.
        let along =
            if frame.half > 0.0 { (moved[longest] - frame.center[longest]) / frame.half } else { 0.0 };
        match self {
            Self::Waves => {
                let phase = 0.5 * NUM_WAVES * along - time;
                moved[shortest] += WAVE_HEIGHT * 2.0 * frame.half * sin(TAU * phase);
            }
            Self::Twist => {
                let (sin, cos) = sincos(TAU * TWIST * along * sin(TAU * time));
                let [x, y] = [shortest, middle].map(|axis| moved[axis] - frame.center[axis]);
                moved[shortest] = frame.center[shortest] + cos * x - sin * y;
                moved[middle] = frame.center[middle] + sin * x + cos * y;
            }
        }
        // Clamped, so that a mesh with the largest coordinates stays valid.
        moved.map(|x| (x as f32).clamp(-f32::LIMIT, f32::LIMIT))
    }
}

/// The dimensions of a mesh at rest.
struct Frame {
    center: [f64; 3],
    /// The axes from the shortest side to the longest.
    axes: [usize; 3],
    /// Half the longest side.
    half: f64,
}

impl Frame {
    /// Returns `None` if there are no triangles.
    fn of(mesh: &Mesh) -> Option<Self> {
        let [low, high] = mesh.bounds()?.map(|corner| corner.map(f64::from));
        let side = |axis: usize| high[axis] - low[axis];
        let mut axes = [0, 1, 2];
        axes.sort_by(|&a, &b| side(a).total_cmp(&side(b)));
        let center = [0, 1, 2].map(|axis| 0.5 * (low[axis] + high[axis]));
        Some(Self { center, axes, half: 0.5 * side(axes[2]) })
    }
}

#[cfg(test)]
mod tests {
    use super::super::shapes;
    use super::*;
    use crate::error::Error;

    fn moved(motion: Motion, mesh: &Mesh, time: f64) -> Mesh {
        let mut moved = mesh.clone();
        motion.apply(mesh, time, &mut moved).unwrap();
        moved
    }

    /// Returns the largest coordinate difference of corresponding vertices.
    fn distance(one: &Mesh, other: &Mesh) -> f32 {
        let pairs = one.vertices().as_flattened().iter().zip(other.vertices().as_flattened());
        pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
    }

    #[test]
    fn motions_are_smooth_and_end_where_they_began() {
        let mesh = shapes::torus_knot([2, 3], 90, 8).unwrap();
        for motion in [Motion::Waves, Motion::Twist] {
            for step in 0..64 {
                let time = f64::from(step) / 64.0;
                let now = moved(motion, &mesh, time);
                assert_eq!(now, moved(motion, &mesh, time - 2.0));
                let soon = moved(motion, &mesh, time + 1.0 / 64.0);
                assert!(distance(&now, &soon) < 0.6, "{motion:?} {time}");
                assert!(now != soon && now.triangles() == mesh.triangles());
                // The result is a valid mesh.
                Mesh::new(now.vertices, now.triangles).unwrap();
            }
            assert_eq!(moved(motion, &mesh, f64::NAN), moved(motion, &mesh, 0.0));
        }
        assert!(distance(&moved(Motion::Twist, &mesh, 0.0), &mesh) < 1e-6);
        assert!(distance(&moved(Motion::Twist, &mesh, 0.25), &mesh) > 1.0);
    }

    #[test]
    fn waves_displace_only_the_shortest_axis() {
        let mesh = shapes::terrain(16, 1).unwrap();
        let waves = moved(Motion::Waves, &mesh, 0.3);
        let mut lifted = 0;
        for (a, b) in mesh.vertices().iter().zip(waves.vertices()) {
            assert!(a[..2] == b[..2] && (a[2] - b[2]).abs() <= 0.0501);
            lifted += usize::from((a[2] - b[2]).abs() > 0.04);
        }
        assert!(lifted > 17);
    }

    #[test]
    fn meshes_without_extent_stay_valid() {
        let mut frame = Mesh::default();
        for motion in [Motion::Waves, Motion::Twist] {
            motion.apply(&Mesh::default(), 0.3, &mut frame).unwrap();
            let point = Mesh::new(vec![[3.0; 3]], vec![[0; 3]]).unwrap();
            assert_eq!(moved(motion, &point, 0.3), point);
            let error = motion.apply(&point, 0.3, &mut frame).unwrap_err();
            assert!(matches!(error, Error::Shape { expected: 1, got: 0, .. }));
        }
    }

    #[test]
    fn the_largest_meshes_stay_valid() {
        let most = f32::LIMIT;
        let corners = vec![[most, most, most], [-most, most, -most], [most, -most, most], [0.0, 0.0, most]];
        let mesh = Mesh::new(corners, vec![[0, 1, 2], [1, 2, 3]]).unwrap();
        for step in 0..16 {
            for motion in [Motion::Waves, Motion::Twist] {
                let now = moved(motion, &mesh, f64::from(step) / 16.0);
                Mesh::new(now.vertices, now.triangles).unwrap();
            }
        }
    }
}
