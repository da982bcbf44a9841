//! Files of meshes of triangles.

mod obj;
mod ply;

use std::path::Path;

use crate::error::{Error, Result, TablePlace};
use crate::mesh::Mesh;

/// Reads the triangles of a file, whichever of two forms it has. Needs the feature `mesh`.
///
/// | file | what is read |
/// |---|---|
/// | PLY (begins with `ply`), as text or binary of either byte order | `x`, `y` and `z` of the element `vertex`, as any type of number; the list `vertex_indices` or `vertex_index` of the element `face`, as any type of integer. All vertices, in their order |
/// | OBJ (Wavefront; any other) | lines `v`, with the weight or the color that they may have, and `f`, also with numbers that count back from the last vertex; objects, groups, materials, normals and textures are passed over. The vertices that are in faces, in the order in which these name them |
///
/// Polygons become fans of triangles around their first corner, which is right for those that are convex; a face with fewer than three
/// corners gives none. Coordinates are rounded to `f32`. The file is held in memory while it is read, and what it says of its own size is
/// believed only as far as it has bytes.
///
/// # Errors
/// [`Error::Io`] if the file cannot be read; [`Error::MeshFile`] if it is empty, has no faces to read, is cut short, or has a vertex that is not
/// finite or too large, or a face with a vertex that is not there, with its line or item as far as that is known;
/// [`Error::TooManyItems`] and [`Error::OutOfMemory`].
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
    of_bytes(path, &bytes)
}

fn of_bytes(path: &Path, bytes: &[u8]) -> Result<Mesh> {
    let read = if bytes.is_empty() {
        Err(Refused::whole("the file is empty; expected a mesh, PLY or OBJ"))
    } else if bytes.starts_with(b"ply") {
        ply::read(bytes)
    } else {
        obj::read(bytes)
    };
    read.map_err(|refused| refused.of(path))
}

/// Why a mesh could not be read.
enum Refused {
    /// The file is to blame.
    File { place: TablePlace, what: String },
    /// It is not.
    Other(Error),
}

impl Refused {
    fn at(place: TablePlace, what: impl Into<String>) -> Self {
        Self::File { place, what: what.into() }
    }

    fn whole(what: impl Into<String>) -> Self {
        Self::at(TablePlace::Whole, what)
    }

    fn of(self, path: &Path) -> Error {
        match self {
            Self::File { place, what } => Error::MeshFile { path: path.into(), place, what },
            Self::Other(error) => error,
        }
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// The error of a file of these bytes.
    pub(super) fn message(name: &str, bytes: &[u8]) -> String {
        let error = of_bytes(name.as_ref(), bytes).unwrap_err();
        assert!(matches!(error, Error::MeshFile { .. }), "{error:?}");
        error.to_string()
    }

    /// Reads every beginning of a file, and the file with some of its bytes changed.
    pub(super) fn never_panics(bytes: &[u8]) {
        let read = |bytes: &[u8]| {
            if let Err(error) = of_bytes("t".as_ref(), bytes) {
                assert!(matches!(error, Error::MeshFile { .. }), "{error:?}");
            }
        };
        assert!(of_bytes("t".as_ref(), bytes).is_ok());
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
    fn files_are_found_by_what_they_begin_with() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mesh");
        std::fs::write(&path, "v 0 0 0\nf 1 1 1\n").unwrap();
        assert_eq!(read_mesh(&path).unwrap().len(), 1);
        let error = read_mesh(folder.path().join("none")).unwrap_err();
        assert!(matches!(error, Error::Io { .. }));
    }
}
