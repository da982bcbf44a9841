//! Reads the vertices and faces of PLY files (Turk 1994), text and binary.

mod items;
mod payload;

use ply_rs_bw::parser::{Parser, Reader};
use ply_rs_bw::ply::{ElementDef, Header, PropertyType, ScalarType};

use self::items::{Face, Skipped, Vertex};
use self::payload::{Payload, after, short};
use super::MeshFile;
use crate::error::{Error, FileLocation, Result};
use crate::memory;
use crate::mesh::Mesh;

/// Names of elements and properties. Both names of the corner list are common.
const VERTEX: &str = "vertex";
const FACE: &str = "face";
const AXES: [&str; 3] = ["x", "y", "z"];
const CORNERS: [&str; 2] = ["vertex_indices", "vertex_index"];

/// Reads the header of a file.
fn header(file: MeshFile<'_>) -> Result<(Header, Payload<'_>)> {
    let mut reader = Reader::new(file.bytes);
    let header = Parser::<Skipped>::new().read_header(&mut reader);
    let line = reader.line() as u64;
    let header = header.map_err(|error| file.invalid(FileLocation::Line(line), short(&error)))?;
    let payload = Payload { file, encoding: header.encoding, bytes: reader.into_inner(), line };
    Ok((header, payload))
}

/// Reads the positions of the vertices; what follows them is not read.
pub(super) fn read_points(file: MeshFile<'_>) -> Result<Vec<[f64; 3]>> {
    let (header, mut payload) = header(file)?;
    check_vertices(&header, file)?;
    let mut points = Vec::new();
    for element in header.elements.values() {
        payload.check_size(element)?;
        if element.name != VERTEX {
            payload.each(element, "item", |_, Skipped| Ok(()))?;
            continue;
        }
        memory::reserve(&mut points, element.count, "points of a file")?;
        payload.each(element, VERTEX, |location, Vertex(position)| {
            if let Some(axis) = position.iter().position(|at| !at.is_finite()) {
                let what = format!("{} on axis {axis}: coordinates must be finite", position[axis]);
                return Err(file.invalid(location, what));
            }
            points.push(position);
            Ok(())
        })?;
        break;
    }
    Ok(points)
}

pub(super) fn read(file: MeshFile<'_>) -> Result<Mesh> {
    let (header, mut payload) = header(file)?;
    let num_vertices = check_header(&header, file)?;

    let (mut vertices, mut triangles) = (Vec::new(), Vec::new());
    let mut first_vertex = FileLocation::Whole;
    for element in header.elements.values() {
        payload.check_size(element)?;
        match element.name.as_str() {
            VERTEX => {
                first_vertex = payload.location(VERTEX, 0);
                memory::reserve(&mut vertices, element.count, "vertices of a mesh")?;
                payload.each(element, VERTEX, |_, Vertex(position)| {
                    vertices.push(position.map(|at| at as f32));
                    Ok(())
                })?;
            }
            FACE => {
                memory::reserve(&mut triangles, element.count, "triangles of a mesh")?;
                payload.each(element, FACE, |location, face: Face| {
                    let corners = face.corners(num_vertices).map_err(|what| file.invalid(location, what))?;
                    memory::reserve_more(&mut triangles, corners.len(), "triangles of a mesh")?;
                    let [first, others @ ..] = &corners[..] else { return Ok(()) };
                    triangles.extend(others.windows(2).map(|pair| [*first, pair[0], pair[1]]));
                    Ok(())
                })?;
            }
            _ => payload.each(element, "item", |_, Skipped| Ok(()))?,
        }
    }
    Mesh::new(vertices, triangles).map_err(|error| match error {
        Error::NonFinite { index, axis, value, .. } => file.invalid(
            after(first_vertex, index),
            format!("{value} on axis {axis}: coordinates must be finite"),
        ),
        Error::CoordinateTooLarge { index, axis, value, .. } => file
            .invalid(after(first_vertex, index), format!("{value:e} on axis {axis}: areas would overflow")),
        other => other,
    })
}

/// Checks that the header has vertices with three coordinates, and returns their element.
fn check_vertices<'a>(header: &'a Header, file: MeshFile<'_>) -> Result<&'a ElementDef> {
    let vertex = element(header, VERTEX, file)?;
    for axis in AXES {
        let property = vertex.properties.get(axis).map(|property| &property.data_type);
        if !matches!(property, Some(PropertyType::Scalar(_))) {
            let what = format!("no number '{axis}' in the element '{VERTEX}' of the header");
            return Err(file.invalid(FileLocation::Whole, what));
        }
    }
    Ok(vertex)
}

fn element<'a>(header: &'a Header, name: &str, file: MeshFile<'_>) -> Result<&'a ElementDef> {
    let missing = || file.invalid(FileLocation::Whole, format!("no element '{name}' in the header"));
    header.elements.get(name).ok_or_else(missing)
}

/// Checks that the header has the elements and properties of a mesh. Returns the number of vertices.
fn check_header(header: &Header, file: MeshFile<'_>) -> Result<usize> {
    let invalid = |what: String| file.invalid(FileLocation::Whole, what);
    let (vertex, face) = (check_vertices(header, file)?, element(header, FACE, file)?);
    let is_list = |property: &PropertyType| match property {
        PropertyType::List(_, item) => !matches!(item, ScalarType::Float | ScalarType::Double),
        PropertyType::Scalar(_) => false,
    };
    let corners = CORNERS.iter().find_map(|name| face.properties.get(*name));
    if !corners.is_some_and(|corners| is_list(&corners.data_type)) {
        let name = CORNERS[0];
        return Err(invalid(format!("no list of integers '{name}' in the element '{FACE}' of the header")));
    }
    Ok(vertex.count)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{message, never_panics};

    /// A square as a polygon and a triangle, with additional elements and properties.
    const HEADER: &str = "comment square\nelement vertex 4\nproperty double x\nproperty float y\nproperty uchar red\n\
        property short z\nelement edge 1\nproperty int a\nproperty list uchar float b\nelement face 3\n\
        property float q\nproperty list uchar int vertex_indices\nend_header\n";
    const VERTICES: [(f64, f32, u8, i16); 4] =
        [(0.0, 0.0, 7, 5), (1.5, 0.0, 7, 5), (1.5, 2.0, 7, 5), (0.0, 2.0, 7, -5)];
    const FACES: [&[i32]; 3] = [&[0, 1, 2, 3], &[3, 1], &[3, 1, 0]];

    fn text() -> String {
        let mut text = format!("ply\nformat ascii 1.0\n{HEADER}");
        VERTICES.iter().for_each(|(x, y, red, z)| text += &format!("{x} {y} {red} {z}\n"));
        text += "9 2 0.5 1e-3\n";
        for face in FACES {
            let corners: Vec<_> = face.iter().map(i32::to_string).collect();
            text += &format!("1.5 {} {}\n", face.len(), corners.join(" "));
        }
        text
    }

    /// Encodes numbers in the byte order that `order` produces.
    fn binary(format: &str, order: fn(&mut [u8])) -> Vec<u8> {
        fn put<const N: usize>(to: &mut Vec<u8>, mut little: [u8; N], order: fn(&mut [u8])) {
            order(&mut little);
            to.extend(little);
        }
        let mut bytes = format!("ply\nformat {format} 1.0\n{HEADER}").into_bytes();
        for (x, y, red, z) in VERTICES {
            put(&mut bytes, x.to_le_bytes(), order);
            put(&mut bytes, y.to_le_bytes(), order);
            bytes.push(red);
            put(&mut bytes, z.to_le_bytes(), order);
        }
        put(&mut bytes, 9_i32.to_le_bytes(), order);
        bytes.push(2);
        [0.5_f32, 1e-3].iter().for_each(|x| put(&mut bytes, x.to_le_bytes(), order));
        for face in FACES {
            put(&mut bytes, 1.5_f32.to_le_bytes(), order);
            bytes.push(face.len() as u8);
            face.iter().for_each(|corner| put(&mut bytes, corner.to_le_bytes(), order));
        }
        bytes
    }

    fn little() -> Vec<u8> {
        binary("binary_little_endian", |_| ())
    }

    fn big() -> Vec<u8> {
        binary("binary_big_endian", <[u8]>::reverse)
    }

    #[test]
    fn text_and_both_binaries_are_one_mesh() {
        for bytes in [text().into_bytes(), little(), big(), text().replace('\n', "\r\n").into_bytes()] {
            let mesh = super::super::read_bytes("t.ply".as_ref(), &bytes).unwrap();
            assert_eq!(mesh.vertices(), VERTICES.map(|(x, y, _, z)| [x as f32, y, z.into()]));
            assert_eq!(mesh.triangles(), [[0, 1, 2], [0, 2, 3], [3, 1, 0]]);
        }
        let none = text().replace("face 3", "face 0").replace("vertex_indices", "vertex_index");
        assert!(super::super::read_bytes("t.ply".as_ref(), none.as_bytes()).unwrap().is_empty());
    }

    #[test]
    fn points_are_read_without_faces() {
        let read = |bytes: &[u8]| super::read_points(super::MeshFile { path: "t.ply".as_ref(), bytes });
        let points = VERTICES.map(|(x, y, _, z)| [x, y.into(), z.into()]);
        let without_faces = &text()[..text().find("9 2 0.5").unwrap()];
        for bytes in [text().into_bytes(), little(), big(), without_faces.as_bytes().to_vec()] {
            assert_eq!(read(&bytes).unwrap(), points);
            (0..bytes.len() - 40).for_each(|len| {
                let _ = read(&bytes[..len]);
            });
        }
        let refused =
            |from: &str, to: &str| read(text().replacen(from, to, 1).as_bytes()).unwrap_err().to_string();
        assert_eq!(refused("1.5 2 7", "1.5 1e99 7"), "t.ply:18: inf on axis 1: coordinates must be finite");
        assert_eq!(refused("element vertex", "element point"), "t.ply: no element 'vertex' in the header");
        assert_eq!(
            refused("short z", "short w"),
            "t.ply: no number 'z' in the element 'vertex' of the header"
        );
    }

    #[test]
    fn invalid_headers() {
        let with = |from: &str, to: &str| {
            assert!(text().contains(from), "{from}");
            message("t.ply", text().replace(from, to).as_bytes())
        };
        let faces_line = "element face 3\n";
        assert_eq!(with("element vertex", "element point"), "t.ply: no element 'vertex' in the header");
        assert_eq!(with("element face", "element tristrips"), "t.ply: no element 'face' in the header");
        let no_number = "t.ply: no number 'z' in the element 'vertex' of the header";
        assert_eq!(with("short z", "short w"), no_number);
        assert_eq!(with("short z", "list uchar short z"), no_number);
        let no_list = "t.ply: no list of integers 'vertex_indices' in the element 'face' of the header";
        for (from, to) in
            [("vertex_indices", "corners"), ("list uchar int v", "int v"), ("uchar int", "uchar float")]
        {
            assert_eq!(with(from, to), no_list);
        }
        for count in ["4000000000", "18446744073709551615"] {
            let promised = with(faces_line, &format!("element face {count}\n"));
            assert_eq!(
                promised,
                format!(
                    "t.ply: cut short: the header promises {count} of the element 'face', and 36 bytes are left for them"
                )
            );
            assert!(with("vertex 4", &format!("vertex {count}")).contains("promises"));
        }
        assert!(with("vertex 4", "vertex -4").starts_with("t.ply:4: Couldn't parse line."));
        assert!(with("ascii", "morse").starts_with("t.ply:2: "));
        assert!(with("face 3", "face 99999999999999999999").starts_with("t.ply:12: Invalid element"));
        assert!(message("t.ply", b"ply").starts_with("t.ply:2: Unexpected end of file while reading header"));
        assert!(message("t.ply", b"plywood\n").starts_with("t.ply:1: Expected magic number"));
        let long = format!("ply\ncomments {}", "x".repeat(100_000));
        assert!(message("t.ply", long.as_bytes()).len() < 200);
    }

    #[test]
    fn invalid_items() {
        let with = |from: &str, to: &str| {
            assert!(text().contains(from), "{from}");
            message("t.ply", text().replacen(from, to, 1).as_bytes())
        };
        assert!(with("1.5 0 7 5", "1.5 nan 7 5").starts_with("t.ply:17: Couldn't parse element line."));
        assert!(with("1.5 0 7 5", "1.5 0 7").starts_with("t.ply:17: Expected element of type"));
        assert!(with("1.5 0 7 5", "1.5 0 256 5").starts_with("t.ply:17: Parse error."));
        let infinite = "t.ply:17: inf on axis 0: coordinates must be finite";
        assert_eq!(with("1.5 0 7 5", "1e39 0 7 5"), infinite);
        assert!(with("1.5 0 7 5", "1e30 0 7 5").starts_with("t.ply:17: 1.0000000150474662e30 on axis 0"));
        let there = "there are 4 vertices, from 0";
        assert_eq!(with("4 0 1 2 3", "4 0 1 4 3"), format!("t.ply:21: corner 2 is vertex 4: {there}"));
        assert_eq!(with("2 3 1", "2 3 -1"), format!("t.ply:22: a corner is a negative vertex: {there}"));
        assert_eq!(with("2 3 1", "3 3 1"), "t.ply:22: Expected 3 list elements, but found only 2.");
        assert!(with("2 3 1", "4000000000 3 1").starts_with("t.ply:22: Expected 4000000000 list elements"));
        assert!(with("2 3 1", "-2 3 1").starts_with("t.ply:22: "));
        let text = text();
        let short = &text[..text.len() - "1.5 3 3 1 0\n".len()];
        assert_eq!(message("t.ply", short.as_bytes()), "t.ply:23: cut short: the file ends here");
    }

    #[test]
    fn invalid_binary_items() {
        let bytes = little();
        let faces = bytes.len() - (4 + 1 + 16) - (4 + 1 + 8) - (4 + 1 + 12);
        let with = |at: usize, value: &[u8]| {
            let mut bytes = little();
            bytes[at..at + value.len()].copy_from_slice(value);
            message("t.ply", &bytes)
        };
        let there = "there are 4 vertices, from 0";
        assert_eq!(with(faces + 9, &[4]), format!("t.ply: face 0: corner 1 is vertex 4: {there}"));
        assert_eq!(
            with(faces + 9, &[255; 4]),
            format!("t.ply: face 0: a corner is a negative vertex: {there}")
        );
        assert_eq!(with(bytes.len() - 13, &[200]), "t.ply: face 2: cut short: the file ends here");
        let vertices = faces - (4 + 1 + 8) - 4 * 15;
        let nan = "t.ply: vertex 1: NaN on axis 1: coordinates must be finite";
        assert_eq!(with(vertices + 15 + 8, &f32::NAN.to_le_bytes()), nan);
        assert_eq!(
            message("t.ply", &bytes[..bytes.len() - 1]),
            "t.ply: face 2: cut short: the file ends here"
        );
        let promised = message("t.ply", &bytes[..faces - 30]);
        assert!(
            promised.starts_with("t.ply: cut short: the header promises 4 of the element 'vertex'"),
            "{promised}"
        );
    }

    #[test]
    fn large_counts_of_empty_elements_are_rejected() {
        let header = |format: &str| {
            format!(
                "ply\nformat {format} 1.0\nelement nothing 18446744073709551615\nelement vertex 0\nproperty float x\n\
             property float y\nproperty float z\nelement face 0\nproperty list uint uint vertex_index\nend_header\n"
            )
        };
        let read = |bytes: &[u8]| super::super::read_bytes("t.ply".as_ref(), bytes);
        assert!(read(header("binary_little_endian").as_bytes()).unwrap().is_empty());
        assert!(message("t.ply", header("ascii").as_bytes()).contains("promises 18446744073709551615"));
        // A list of 4 billion entries.
        let mut long = header("binary_little_endian").replace("face 0", "face 1").into_bytes();
        long.extend([255; 8]);
        assert_eq!(message("t.ply", &long), "t.ply: face 0: cut short: the file ends here");
    }

    #[test]
    fn changed_bytes_never_panic() {
        for bytes in [text().into_bytes(), little(), big()] {
            never_panics(&bytes);
        }
    }
}
