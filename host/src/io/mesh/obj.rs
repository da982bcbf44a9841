//! Reads the vertices and faces of OBJ files (Wavefront).

use std::str::SplitWhitespace;
use tobj::{LoadError, LoadOptions};

use super::MeshFile;
use crate::error::{Error, FileLocation, Result};
use crate::memory;
use crate::mesh::Mesh;

pub(super) fn read(file: MeshFile<'_>) -> Result<Mesh> {
    let bytes = file.bytes;
    let options =
        LoadOptions { triangulate: true, ignore_points: true, ignore_lines: true, ..Default::default() };
    let mut text = memory::vec_with_capacity(bytes.len(), "text of a mesh")?;
    statements(bytes).for_each(|(_, line)| text.extend_from_slice(line));
    let mut unread = &text[..];
    let loaded = tobj::load_obj_buf(&mut unread, &options, |_| Err(LoadError::GenericFailure));
    let (models, _) = loaded.map_err(|error| {
        // After an error in a line, this is the last line that the loader has read.
        let num_read = text[..text.len() - unread.len()].split_inclusive(|&byte| byte == b'\n').count();
        let line = statements(bytes).nth(num_read.saturating_sub(1)).map_or(1, |(number, _)| number);
        read_error(file, error, line)
    })?;
    // Without object statements there is one model.
    let Some(model) = models.into_iter().next().filter(|model| !model.mesh.indices.is_empty()) else {
        let what = "no faces; expected an OBJ file with lines 'f', or a PLY file";
        return Err(file.invalid(FileLocation::Whole, what));
    };
    let (vertices, triangles) = (model.mesh.positions.as_chunks().0, model.mesh.indices.as_chunks().0);
    Mesh::new(vertices.to_vec(), triangles.to_vec()).map_err(|error| match error {
        Error::NonFinite { .. } | Error::CoordinateTooLarge { .. } => {
            let is_wrong =
                |word: &str| word.parse().is_ok_and(|x: f32| Mesh::new(vec![[x; 3]], vec![]).is_err());
            let location = find(bytes, |kind, words| kind == "v" && words.take(3).any(is_wrong));
            file.invalid(location, "a coordinate is not finite, or so large that areas overflow")
        }
        other => other,
    })
}

/// Returns the lines that begin with `v` or `f`, with their numbers from 1. The loader sees only these lines. With the
/// others it would give each object separate vertices, load material files, and use unchecked indices of textures and
/// normals.
fn statements(bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let is_read = |line: &[u8]| {
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        matches!(words.next(), Some(b"v" | b"f"))
    };
    (1..).zip(bytes.split_inclusive(|&byte| byte == b'\n')).filter(move |(_, line)| is_read(line))
}

/// Converts an error of the loader; `line` is the last line that it has read.
fn read_error(file: MeshFile<'_>, error: LoadError, line: u64) -> Error {
    let here = FileLocation::Line(line);
    let (location, what) = match error {
        LoadError::ReadError => {
            (here, "it is not UTF-8; expected an OBJ file, which is text, or a PLY file".to_owned())
        }
        LoadError::PositionParseError | LoadError::ColorParseError => {
            (here, "expected three coordinates of a vertex, and at most a weight or a color".to_owned())
        }
        LoadError::ScalingByZeroError => (here, "the weight of a vertex is 0".to_owned()),
        LoadError::FaceParseError => (here, "expected the vertices of a face by their numbers".to_owned()),
        // The loader finds the following errors after the last line.
        LoadError::FaceVertexOutOfBounds => {
            let (location, count) = missing_vertex(file.bytes);
            let what =
                format!("a face has a vertex that does not exist: they are numbered from 1 to {count}");
            (location, what)
        }
        LoadError::InvalidPolygon => {
            let location = find(file.bytes, |kind, mut words| kind == "f" && words.next().is_none());
            (location, "a face without vertices".to_owned())
        }
        LoadError::FaceColorOutOfBounds => {
            (FileLocation::Whole, "some vertices have a color and some have none".to_owned())
        }
        other => (FileLocation::Whole, other.to_string()),
    };
    file.invalid(location, what)
}

/// Returns the location of the first line for which `is_wrong` is true, given its first word and the others.
fn find(bytes: &[u8], mut is_wrong: impl FnMut(&str, SplitWhitespace<'_>) -> bool) -> FileLocation {
    let mut is_wrong = |line: &[u8]| {
        let line = String::from_utf8_lossy(line);
        let mut words = line.split_whitespace();
        words.next().is_some_and(|kind| is_wrong(kind, words))
    };
    let first = statements(bytes).find(|(_, line)| is_wrong(line));
    first.map_or(FileLocation::Whole, |(number, _)| FileLocation::Line(number))
}

/// Returns the location of the first face with a vertex that does not exist, and the number of vertices.
fn missing_vertex(bytes: &[u8]) -> (FileLocation, i64) {
    let mut count = 0;
    find(bytes, |kind, _| {
        count += i64::from(kind == "v");
        false
    });
    let mut before = 0;
    let location = find(bytes, |kind, mut words| {
        before += i64::from(kind == "v");
        let is_missing = |corner: &str| {
            let number = corner.split('/').next().and_then(|number| number.parse::<i64>().ok());
            number.is_some_and(|number| number == 0 || number > count || number < -before)
        };
        kind == "f" && words.any(is_missing)
    });
    (location, count)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{message, never_panics};
    use super::*;

    const SQUARE: &str =
        "# a square\r\nmtllib none.mtl\no one\n v 0 0 0\nv 1 0 0\n\nvt 0 0\nv 2 2 0 2\nv 0 1 0\nv 9 9 9\n";

    fn read_text(text: &str) -> Mesh {
        super::super::read_bytes("t.obj".as_ref(), text.as_bytes()).unwrap()
    }

    #[test]
    fn faces_of_all_kinds() {
        let mesh = read_text(&format!(
            "{SQUARE}g a b\nusemtl c\nf 4/1 3//9 2/1/1 1\ns off\no two\nf -5 -4 -3\nf 1 2\nl 1 2\n"
        ));
        let vertices = [[0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]];
        assert_eq!(mesh.vertices(), vertices);
        assert_eq!(mesh.triangles(), [[0, 1, 2], [0, 2, 3], [3, 2, 1]]);
        // Faces may precede their vertices, and vertices may have colors.
        assert_eq!(read_text("f 1 2 3\nv 0 0 0 1 1 1\nv 1 0 0 1 0 .5\nv 0 1 0 0 0 0").len(), 1);
    }

    #[test]
    fn errors_name_their_line() {
        let refused = |text: &str| message("t.obj", text.as_bytes());
        assert_eq!(refused(""), "t.obj: the file is empty; expected a mesh, PLY or OBJ");
        let no_faces = "t.obj: no faces; expected an OBJ file with lines 'f', or a PLY file";
        for text in ["\n", "v 0 0 0\n", "\u{1F}\u{0}gzip", "v 0 0 0\nf 1\n"] {
            assert_eq!(refused(text), no_faces);
        }
        let coordinates = "expected three coordinates of a vertex, and at most a weight or a color";
        for vertex in ["v", "v 1 2", "v 1 x 3", "v 1 2 3 4 5", "v 1 2 3 4 5 6 7"] {
            assert_eq!(
                refused(&format!("#\r\nv 0 0 0\n\n{vertex}\nf 1 1 1\n")),
                format!("t.obj:4: {coordinates}")
            );
        }
        assert_eq!(refused("v 1 2 3 0\n"), "t.obj:1: the weight of a vertex is 0");
        let missing = "a face has a vertex that does not exist: they are numbered from 1 to 2";
        for face in ["1 2 3", "1 0 1", "-1 -2 -3", "1 2 99999999999", "2/3/4 1 -9223372036854775808"] {
            let text = format!("v 0 0 0\nv 1 1 1\nf 1 2 1\n\nf {face}\n");
            assert_eq!(refused(&text), format!("t.obj:5: {missing}"));
        }
        let numbers = "t.obj:2: expected the vertices of a face by their numbers";
        for face in ["1 two 1", "1 1 1.5", "1/1/1/1 1 1", "1 1 99999999999999999999"] {
            assert_eq!(refused(&format!("v 0 0 0\nf {face}\n")), numbers);
        }
        assert_eq!(refused("v 0 0 0\nf 1 1 1\nf\n"), "t.obj:3: a face without vertices");
        let not_finite = "a coordinate is not finite, or so large that areas overflow";
        for coordinate in ["nan", "-inf", "1e39", "1e20"] {
            let text = format!("v 0 0 0\nv 0 {coordinate} 0\nf 1 1 2\n");
            assert_eq!(refused(&text), format!("t.obj:2: {not_finite}"));
        }
        assert_eq!(
            refused("v 0 0 0 1 1 1\nv 0 0 0\nf 1 2 1"),
            "t.obj: some vertices have a color and some have none"
        );
        assert_eq!(
            message("t.obj", b"v 0 0 0\nv 0 0 \xFF\n"),
            "t.obj:2: it is not UTF-8; expected an OBJ file, which is text, or a PLY file"
        );
    }

    #[test]
    fn changed_bytes_never_panic() {
        never_panics(format!("{SQUARE}f 4/1/1 3//9 2/1/-9\nf -1/-7/-7 -2 -3\nf 1 2\n").as_bytes());
    }
}
