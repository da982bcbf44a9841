//! Elements of a PLY file.

use ply_rs_bw::ply::{Property, PropertyAccess, PropertyAccessResult};

use super::{AXES, CORNERS};

/// An element that is skipped.
pub(super) struct Skipped;

impl PropertyAccess for Skipped {
    fn new() -> Self {
        Self
    }
}

/// The position of a vertex. All number types of PLY are exact as `f64`.
pub(super) struct Vertex(pub(super) [f64; 3]);

impl PropertyAccess for Vertex {
    fn new() -> Self {
        Self([0.0; 3])
    }

    fn set_property(&mut self, name: &str, property: Property) -> PropertyAccessResult {
        let Some(axis) = AXES.iter().position(|axis| *axis == name) else {
            return PropertyAccessResult::Ignored;
        };
        self.0[axis] = match property {
            Property::Char(value) => value.into(),
            Property::UChar(value) => value.into(),
            Property::Short(value) => value.into(),
            Property::UShort(value) => value.into(),
            Property::Int(value) => value.into(),
            Property::UInt(value) => value.into(),
            Property::Float(value) => value.into(),
            Property::Double(value) => value,
            _ => return PropertyAccessResult::UnsupportedType,
        };
        PropertyAccessResult::Set
    }
}

/// The corners of a polygon; `None` if one of them is negative.
pub(super) struct Face(Option<Vec<u32>>);

impl PropertyAccess for Face {
    fn new() -> Self {
        Self(None)
    }

    fn set_property(&mut self, name: &str, property: Property) -> PropertyAccessResult {
        if !CORNERS.contains(&name) {
            return PropertyAccessResult::Ignored;
        }
        self.0 = property.to_u32_list();
        PropertyAccessResult::Set
    }
}

impl Face {
    /// Returns the corners, or an error if one of them is not a vertex.
    pub(super) fn corners(self, num_vertices: usize) -> Result<Vec<u32>, String> {
        let there = format_args!("there are {num_vertices} vertices, from 0").to_string();
        let corners = self.0.ok_or_else(|| format!("a corner is a negative vertex: {there}"))?;
        match corners.iter().position(|&index| index as usize >= num_vertices) {
            Some(corner) => Err(format!("corner {corner} is vertex {}: {there}", corners[corner])),
            None => Ok(corners),
        }
    }
}
