//! Triangle meshes, the input of [`SahTree`](crate::SahTree).
//!
//! | source of a mesh | cost |
//! |---|---|
//! | `kauri::io::read_mesh`, with the feature `mesh` | reads and validates a file |
//! | [`Mesh::new`] | validates vertices and indices in memory |
//! | [`shapes`] | generates any number of triangles, the same on every machine, for tests, benchmarks and demonstrations |
//! | [`Motion::apply`] | moves the vertices of a mesh, without allocation |
//!
//! ```
//! use kauri::mesh::{Mesh, Motion, shapes};
//! let square = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0]];
//! let mesh = Mesh::new(square.to_vec(), vec![[0, 1, 2], [0, 2, 3]])?;
//! assert_eq!(mesh.corners(1)[2], [0.0, 1.0, 0.0]);
//!
//! let knot = shapes::torus_knot([2, 3], 200, 16)?;
//! assert_eq!(knot.len(), 2 * 200 * 16);
//! let mut frame = knot.clone();
//! for step in 0..4 {
//!     Motion::Twist.apply(&knot, f64::from(step) / 4.0, &mut frame)?;
//!     assert_eq!(frame.triangles(), knot.triangles());
//! }
//! # Ok::<(), kauri::Error>(())
//! ```

mod device_mesh;
mod lattice;
mod mesh_input;
mod motion;
pub mod shapes;
mod triangle_mesh;

pub use device_mesh::DeviceMesh;
pub(crate) use device_mesh::check_count;
pub(crate) use mesh_input::MeshInput;
pub use motion::Motion;
pub use triangle_mesh::Mesh;
pub(crate) use triangle_mesh::around;
