//! The records of points: fields at fixed places, by point format (LAS 1.4, ASPRS 2019, section 2.6).

use crate::error::Result;
use crate::memory;
use crate::parallel::joined;
use std::mem::take;

/// The layout of the records of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// The point format, from 0 to 10.
    pub(super) format: u8,
    /// Bytes of a record.
    pub(super) len: usize,
}

impl Layout {
    /// True for the formats of LAS 1.4.
    fn is_extended(self) -> bool {
        self.format >= 6
    }

    /// Returns the number of layers of compressed points of LAS 1.4 (Isenburg 2019, *LAZ specification* 1.4): coordinates and attributes, a
    /// layer each for color, infrared, waveform and each byte after the fields.
    pub(super) fn num_layers(self) -> usize {
        let (num_layers, fields) = match self.format {
            7 => (10, 36),
            8 => (11, 38),
            9 => (10, 59),
            10 => (12, 67),
            _ => (9, 30),
        };
        num_layers + self.len.saturating_sub(fields)
    }

    fn gps_time(self) -> Option<usize> {
        match self.format {
            0 | 2 => None,
            1 | 3..=5 => Some(20),
            _ => Some(22),
        }
    }

    fn color(self) -> Option<usize> {
        match self.format {
            2 => Some(20),
            3 | 5 => Some(28),
            7 | 8 | 10 => Some(30),
            _ => None,
        }
    }

    fn infrared(self) -> Option<usize> {
        matches!(self.format, 8 | 10).then_some(36)
    }
}

/// A record of a point.
#[derive(Clone, Copy)]
pub(super) struct Record<'a> {
    layout: Layout,
    bytes: &'a [u8],
}

impl<'a> Record<'a> {
    /// Returns the records of some bytes.
    pub(super) fn of(layout: Layout, bytes: &'a [u8]) -> impl Iterator<Item = Self> {
        bytes.chunks_exact(layout.len).map(move |bytes| Self { layout, bytes })
    }

    fn bytes<const N: usize>(self, at: usize) -> [u8; N] {
        std::array::from_fn(|i| self.bytes[at + i])
    }

    fn u16(self, at: usize) -> u16 {
        u16::from_le_bytes(self.bytes(at))
    }

    /// Returns the coordinates on the lattice of the file.
    pub(super) fn point(self) -> [i32; 3] {
        [0, 4, 8].map(|at| i32::from_le_bytes(self.bytes(at)))
    }

    fn intensity(self) -> u16 {
        self.u16(12)
    }

    pub(super) fn return_number(self) -> u8 {
        self.bytes[14] & if self.layout.is_extended() { 0xF } else { 0x7 }
    }

    pub(super) fn number_of_returns(self) -> u8 {
        if self.layout.is_extended() { self.bytes[14] >> 4 } else { self.bytes[14] >> 3 & 0x7 }
    }

    pub(super) fn class(self) -> u8 {
        if self.layout.is_extended() { self.bytes[16] } else { self.bytes[15] & 0x1F }
    }

    pub(super) fn withheld(self) -> bool {
        self.bytes[15] & if self.layout.is_extended() { 1 << 2 } else { 1 << 7 } != 0
    }

    fn scan_angle(self) -> f32 {
        if self.layout.is_extended() {
            f32::from(i16::from_le_bytes(self.bytes(18))) * 0.006
        } else {
            f32::from(self.bytes[16] as i8)
        }
    }

    fn user_data(self) -> u8 {
        self.bytes[17]
    }

    fn source_id(self) -> u16 {
        self.u16(if self.layout.is_extended() { 20 } else { 18 })
    }

    fn gps_time(self) -> f64 {
        self.layout.gps_time().map_or(f64::NAN, |at| f64::from_le_bytes(self.bytes(at)))
    }

    fn color(self) -> [u16; 3] {
        self.layout.color().map_or([0; 3], |at| [at, at + 2, at + 4].map(|at| self.u16(at)))
    }

    fn infrared(self) -> u16 {
        self.layout.infrared().map_or(0, |at| self.u16(at))
    }
}

/// Declares the attributes of points: field, type, method of [`Record`], condition for the layout, docs.
macro_rules! attributes {
    ($( $(#[$doc:meta])* $name:ident: $T:ty, $exists:expr; )*) => {
        /// The attributes of points that are read beside the coordinates. By default none is.
        ///
        /// ```
        /// use kauri::io::Attributes;
        /// let attributes = Attributes { class: true, gps_time: true, ..Attributes::default() };
        /// ```
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Attributes {
            $( $(#[$doc])* pub $name: bool, )*
        }

        impl Attributes {
            /// Returns the attributes that this or the other choice has.
            pub fn or(self, other: Self) -> Self {
                Self { $( $name: self.$name || other.$name, )* }
            }

            /// Returns all attributes that a layout has.
            pub(super) fn of(layout: Layout) -> Self {
                Self { $( $name: $exists(layout), )* }
            }

            /// Returns the name of an attribute that is chosen and that a layout does not have.
            pub(super) fn missing(&self, layout: Layout) -> Option<&'static str> {
                let mut missing = None;
                $( if self.$name && !$exists(layout) { missing = Some(stringify!($name)); } )*
                missing
            }
        }

        /// Attributes of points, an item for each point; empty if they were not asked for.
        #[derive(Clone, Debug, Default, PartialEq)]
        #[non_exhaustive]
        pub struct AttributeValues {
            $( $(#[$doc])* pub $name: Vec<$T>, )*
        }

        impl AttributeValues {
            /// Reserves memory for some points.
            pub(super) fn reserve(&mut self, num: usize, chosen: &Attributes) -> Result<()> {
                $( if chosen.$name { memory::reserve_more(&mut self.$name, num, "attributes of points")?; } )*
                Ok(())
            }

            /// Appends the attributes of a point. Memory is reserved.
            pub(super) fn push(&mut self, record: Record<'_>, chosen: &Attributes) {
                $( if chosen.$name { self.$name.push(record.$name()); } )*
            }

            /// Returns the bytes of all attributes.
            pub(super) fn bytes(&self) -> u64 {
                0 $( + size_of_val(&*self.$name) as u64 )*
            }

            /// Joins the attributes of points that follow each other.
            pub(super) fn joined(mut parts: Vec<Self>) -> Result<Self> {
                $(
                    let values = parts.iter_mut().map(|part| take(&mut part.$name)).collect();
                    let $name = joined(values, "attributes of points")?;
                )*
                Ok(Self { $( $name ),* })
            }
        }
    };
}

attributes! {
    /// The strength of the return.
    intensity: u16, |_| true;
    /// The number of the return of its pulse, from 1.
    return_number: u8, |_| true;
    /// The number of returns of the pulse.
    number_of_returns: u8, |_| true;
    /// The class: 2 is ground, 6 buildings, 9 water.
    class: u8, |_| true;
    /// True for points that should not be processed.
    withheld: bool, |_| true;
    /// The angle of the pulse to the vertical, in degrees.
    scan_angle: f32, |_| true;
    /// A byte for the user.
    user_data: u8, |_| true;
    /// The number of the flight line or scan.
    source_id: u16, |_| true;
    /// The GPS time in seconds. Point formats 0 and 2 have none.
    gps_time: f64, |layout: Layout| layout.gps_time().is_some();
    /// Red, green and blue. Point formats 2, 3, 5, 7, 8 and 10 have them.
    color: [u16; 3], |layout: Layout| layout.color().is_some();
    /// Near infrared. Point formats 8 and 10 have it.
    infrared: u16, |layout: Layout| layout.infrared().is_some();
}
