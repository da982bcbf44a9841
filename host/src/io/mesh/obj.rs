//! OBJ files, of which the vertices and the faces are read.

use std::io::{self, BufRead, Read};
use std::str::SplitWhitespace;
use tobj::{LoadError, LoadOptions};

use super::Refused;
use crate::error::{Error, TablePlace};
use crate::mesh::Mesh;

pub(super) fn read(bytes: &[u8]) -> Result<Mesh, Refused> {
    let options =
        LoadOptions { triangulate: true, ignore_points: true, ignore_lines: true, ..Default::default() };
    let mut lines = Lines { statements: statements(bytes), number: 0, left: &[] };
    let loaded = tobj::load_obj_buf(&mut lines, &options, |_| Err(LoadError::GenericFailure));
    let (models, _) = loaded.map_err(|error| refused(bytes, error, lines.number))?;
    // Without lines that begin objects there is one.
    let Some(model) = models.into_iter().next().filter(|model| !model.mesh.indices.is_empty()) else {
        return Err(Refused::whole("no faces; expected an OBJ file with lines 'f', or a PLY file"));
    };
    let (vertices, triangles) = (model.mesh.positions.as_chunks().0, model.mesh.indices.as_chunks().0);
    Mesh::new(vertices.to_vec(), triangles.to_vec()).map_err(|error| match error {
        Error::NonFinite { .. } | Error::CoordinateTooLarge { .. } => {
            let is_wrong =
                |word: &str| word.parse().is_ok_and(|x: f32| Mesh::new(vec![[x; 3]], vec![]).is_err());
            let place = find(bytes, |kind, words| kind == "v" && words.take(3).any(is_wrong));
            Refused::at(place, "a coordinate is not finite, or so large that areas overflow")
        }
        other => Refused::Other(other),
    })
}

/// The lines that begin with `v` or `f`, and their numbers, from 1. No other is shown to the loader: it would give each object vertices of
/// its own, follow names of materials, and calculate with indices of textures and normals that it does not check.
fn statements(bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let is_read = |line: &[u8]| {
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        matches!(words.next(), Some(b"v" | b"f"))
    };
    (1..).zip(bytes.split_inclusive(|&byte| byte == b'\n')).filter(move |(_, line)| is_read(line))
}

/// The loader's view of a file; where it stops, the number is that of the line that it did not understand.
struct Lines<'a, S> {
    statements: S,
    number: u64,
    left: &'a [u8],
}

impl<'a, S: Iterator<Item = (u64, &'a [u8])>> BufRead for Lines<'a, S> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.left.is_empty()
            && let Some(next) = self.statements.next()
        {
            (self.number, self.left) = next;
        }
        Ok(self.left)
    }

    fn consume(&mut self, len: usize) {
        self.left = &self.left[len..];
    }
}

impl<'a, S: Iterator<Item = (u64, &'a [u8])>> Read for Lines<'a, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.fill_buf()?.read(buffer)?;
        self.consume(len);
        Ok(len)
    }
}

fn refused(bytes: &[u8], error: LoadError, line: u64) -> Refused {
    let here = TablePlace::Line(line);
    match error {
        LoadError::ReadError => {
            Refused::at(here, "it is no UTF-8; expected an OBJ file, which is text, or a PLY file")
        }
        LoadError::PositionParseError | LoadError::ColorParseError => {
            Refused::at(here, "expected three coordinates of a vertex, and at most a weight or a color")
        }
        LoadError::ScalingByZeroError => Refused::at(here, "the weight of a vertex is 0"),
        LoadError::FaceParseError => Refused::at(here, "expected the vertices of a face by their numbers"),
        // What follows is found when all lines are read.
        LoadError::FaceVertexOutOfBounds => {
            let (place, count) = missing_vertex(bytes);
            Refused::at(
                place,
                format!("a face has a vertex that is not there: they are numbered from 1 to {count}"),
            )
        }
        LoadError::InvalidPolygon => {
            let place = find(bytes, |kind, mut words| kind == "f" && words.next().is_none());
            Refused::at(place, "a face without vertices")
        }
        LoadError::FaceColorOutOfBounds => Refused::whole("some vertices have a color and some have none"),
        other => Refused::whole(other.to_string()),
    }
}

/// The first line that is wrong by its first word and those behind it.
fn find(bytes: &[u8], mut is_wrong: impl FnMut(&str, SplitWhitespace<'_>) -> bool) -> TablePlace {
    let mut is_wrong = |line: &[u8]| {
        let line = String::from_utf8_lossy(line);
        let mut words = line.split_whitespace();
        words.next().is_some_and(|kind| is_wrong(kind, words))
    };
    let first = statements(bytes).find(|(_, line)| is_wrong(line));
    first.map_or(TablePlace::Whole, |(number, _)| TablePlace::Line(number))
}

/// The first line of a face with a vertex that is not there, and the number of vertices.
fn missing_vertex(bytes: &[u8]) -> (TablePlace, i64) {
    let mut count = 0;
    find(bytes, |kind, _| {
        count += i64::from(kind == "v");
        false
    });
    let mut before = 0;
    let place = find(bytes, |kind, mut words| {
        before += i64::from(kind == "v");
        let is_missing = |corner: &str| {
            let number = corner.split('/').next().and_then(|number| number.parse::<i64>().ok());
            number.is_some_and(|number| number == 0 || number > count || number < -before)
        };
        kind == "f" && words.any(is_missing)
    });
    (place, count)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{message, never_panics};
    use super::*;

    const SQUARE: &str =
        "# a square\r\nmtllib none.mtl\no one\n v 0 0 0\nv 1 0 0\n\nvt 0 0\nv 2 2 0 2\nv 0 1 0\nv 9 9 9\n";

    fn read_text(text: &str) -> Mesh {
        super::super::of_bytes("t.obj".as_ref(), text.as_bytes()).unwrap()
    }

    #[test]
    fn faces_of_all_kinds() {
        let mesh = read_text(&format!(
            "{SQUARE}g a b\nusemtl c\nf 4/1 3//9 2/1/1 1\ns off\no two\nf -5 -4 -3\nf 1 2\nl 1 2\n"
        ));
        let vertices = [[0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]];
        assert_eq!(mesh.vertices(), vertices);
        assert_eq!(mesh.triangles(), [[0, 1, 2], [0, 2, 3], [3, 2, 1]]);
        // Numbers may be of vertices that come later, and vertices may have colors.
        assert_eq!(read_text("f 1 2 3\nv 0 0 0 1 1 1\nv 1 0 0 1 0 .5\nv 0 1 0 0 0 0").len(), 1);
    }

    #[test]
    fn what_is_refused_is_named() {
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
        let missing = "a face has a vertex that is not there: they are numbered from 1 to 2";
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
            "t.obj:2: it is no UTF-8; expected an OBJ file, which is text, or a PLY file"
        );
    }

    #[test]
    fn no_bytes_do_harm() {
        never_panics(format!("{SQUARE}f 4/1/1 3//9 2/1/-9\nf -1/-7/-7 -2 -3\nf 1 2\n").as_bytes());
    }
}
