//! Reads files of triangle meshes.

mod obj;
mod ply;

use std::path::Path;

use crate::error::{Error, FileLocation, Result};
use crate::mesh::Mesh;

/// Reads a triangle mesh from a PLY or OBJ file. Needs the feature `mesh`.
///
/// | format | contents read |
/// |---|---|
/// | PLY (begins with `ply`), as text or binary of either byte order | `x`, `y` and `z` of the element `vertex`, of any number type; the list `vertex_indices` or `vertex_index` of the element `face`, of any integer type. All vertices, in file order |
/// | OBJ (Wavefront; any other file) | lines `v`, optionally with a weight or a color, and `f`, including indices that count back from the last vertex; objects, groups, materials, normals and textures are ignored. The vertices that faces use, in the order of their first use |
///
/// Polygons become fans of triangles around their first corner, which is right for convex polygons; faces with fewer
/// than three corners are skipped. Coordinates are rounded to `f32`. While it is read, the file is held in memory, an OBJ
/// file twice. Sizes in the file are trusted only as far as the file has bytes.
///
/// # Errors
/// [`Error::Io`] if the file cannot be read; [`Error::InvalidFile`], with the line or element if known, if it is empty,
/// has no faces, is cut short, or has a vertex that is not finite or too large, or a face with a vertex that does not
/// exist; [`Error::TooManyItems`] and [`Error::OutOfMemory`].
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("square.obj");
/// std::fs::write(&path, "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1 2 3 4\n")?;
/// let mesh = kauri::io::read_mesh(&path)?;
/// assert_eq!(mesh.triangles(), [[0, 1, 2], [0, 2, 3]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_mesh(path: impl AsRef<Path>) -> Result<Mesh> {
    let path = path.as_ref();
    let bytes = std::fs::read(path).map_err(|source| Error::Io { path: path.into(), source })?;
    read_bytes(path, &bytes)
}

/// Reads the points of a PLY file: the `x`, `y` and `z` of its element `vertex`, of any number type, exact as `f64`. Faces are ignored. Needs
/// the feature `mesh`.
///
/// Takes the bytes of the file while it is read, and 24 bytes a point.
///
/// # Errors
/// [`Error::Io`] if the file cannot be read; [`Error::InvalidFile`], with the line or the vertex if known, for a file that is no PLY file, is cut
/// short, or has a coordinate that is not finite; [`Error::OutOfMemory`].
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("scan.ply");
/// let header = "ply\nformat ascii 1.0\nelement vertex 2\nproperty double x\nproperty double y\nproperty float z\nend_header\n";
/// std::fs::write(&path, format!("{header}500000.25 0 1\n500001.5 0 2\n"))?;
/// assert_eq!(kauri::io::read_ply_points(&path)?, [[500_000.25, 0.0, 1.0], [500_001.5, 0.0, 2.0]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_ply_points(path: impl AsRef<Path>) -> Result<Vec<[f64; 3]>> {
    let path = path.as_ref();
    let bytes = std::fs::read(path).map_err(|source| Error::Io { path: path.into(), source })?;
    ply::read_points(MeshFile { path, bytes: &bytes })
}

fn read_bytes(path: &Path, bytes: &[u8]) -> Result<Mesh> {
    let file = MeshFile { path, bytes };
    if bytes.is_empty() {
        Err(file.invalid(FileLocation::Whole, "the file is empty; expected a mesh, PLY or OBJ"))
    } else if bytes.starts_with(b"ply") {
        ply::read(file)
    } else {
        obj::read(file)
    }
}

/// The file of a mesh.
#[derive(Clone, Copy)]
struct MeshFile<'a> {
    path: &'a Path,
    bytes: &'a [u8],
}

impl MeshFile<'_> {
    /// Returns the error of invalid content.
    fn invalid(self, location: FileLocation, what: impl Into<String>) -> Error {
        Error::InvalidFile { path: self.path.into(), location, column: None, what: what.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Returns the error message of a file with these bytes.
    pub(super) fn message(name: &str, bytes: &[u8]) -> String {
        let error = read_bytes(name.as_ref(), bytes).unwrap_err();
        assert!(matches!(error, Error::InvalidFile { .. }), "{error:?}");
        error.to_string()
    }

    /// Reads every prefix of a file, and the file with some bytes changed.
    pub(super) fn never_panics(bytes: &[u8]) {
        let read = |bytes: &[u8]| {
            if let Err(error) = read_bytes("t".as_ref(), bytes) {
                assert!(matches!(error, Error::InvalidFile { .. }), "{error:?}");
            }
        };
        assert!(read_bytes("t".as_ref(), bytes).is_ok());
        (0..bytes.len()).for_each(|len| read(&bytes[..len]));
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut other = bytes.to_vec();
                other[at] ^= 1 << bit;
                read(&other);
            }
        }
        for round in 0..2000 {
            let mut random = Random::of(round, 0);
            let mut other = bytes.to_vec();
            for _ in 0..=random.below(4) {
                let at = random.below(bytes.len() as u64) as usize;
                other[at] = if random.below(2) == 0 {
                    random.below(256) as u8
                } else {
                    b"0123456789-. \n/vf"[random.below(17) as usize]
                };
            }
            other.truncate(bytes.len() - random.below(bytes.len() as u64 / 2) as usize);
            read(&other);
        }
    }

    #[test]
    fn the_first_bytes_select_the_format() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mesh");
        std::fs::write(&path, "v 0 0 0\nf 1 1 1\n").unwrap();
        assert_eq!(read_mesh(&path).unwrap().len(), 1);
        let error = read_mesh(folder.path().join("none")).unwrap_err();
        assert!(matches!(error, Error::Io { .. }));
    }
}
