//! Reads the elements of a PLY file one by one, with their locations.

use ply_rs_bw::parser::{ParseError, Parser};
use ply_rs_bw::ply::{ElementDef, Encoding, PropertyAccess, PropertyType, ScalarType};
use std::io::ErrorKind;

use super::MeshFile;
use crate::error::{FileLocation, Result};

/// The most characters of a message of the parser, which quotes lines of any length.
const MAX_MESSAGE: usize = 160;
const CUT_SHORT: &str = "cut short: the file ends here";

/// The unread bytes after the header.
pub(super) struct Payload<'a> {
    pub(super) file: MeshFile<'a>,
    pub(super) encoding: Encoding,
    pub(super) bytes: &'a [u8],
    /// The number of the next line of a text file, from 1.
    pub(super) line: u64,
}

impl Payload<'_> {
    fn is_text(&self) -> bool {
        self.encoding == Encoding::Ascii
    }

    /// Returns the location of the next element of a kind.
    pub(super) fn location(&self, what: &'static str, index: u64) -> FileLocation {
        if self.is_text() { FileLocation::Line(self.line) } else { FileLocation::Item { what, index } }
    }

    /// Checks that the file has enough bytes for an element's items, before memory is allocated for them.
    pub(super) fn check_size(&self, element: &ElementDef) -> Result<()> {
        let min = if self.is_text() {
            element.properties.len().max(1)
        } else {
            element.properties.values().map(|property| least_bytes(&property.data_type)).sum()
        };
        let (name, count, remaining) = (&element.name, element.count, self.bytes.len());
        if min.saturating_mul(count) > remaining {
            let what = format!(
                "cut short: the header promises {count} of the element '{name}', and {remaining} bytes are left for them"
            );
            return Err(self.file.invalid(FileLocation::Whole, what));
        }
        Ok(())
    }

    /// Calls `visit` with each element of a kind and its location.
    pub(super) fn each<E: PropertyAccess>(
        &mut self,
        element: &ElementDef,
        what: &'static str,
        mut visit: impl FnMut(FileLocation, E) -> Result<()>,
    ) -> Result<()> {
        // Any number of items without properties fits in a binary file.
        if element.properties.is_empty() && !self.is_text() {
            return Ok(());
        }
        for index in 0..element.count as u64 {
            let location = self.location(what, index);
            let item = self.next(element).map_err(|what| self.file.invalid(location, what))?;
            visit(location, item)?;
        }
        Ok(())
    }

    fn next<E: PropertyAccess>(&mut self, element: &ElementDef) -> Result<E, String> {
        let parser = Parser::new();
        let item = match self.encoding {
            Encoding::Ascii => {
                return self.next_line().and_then(|line| {
                    parser.read_ascii_element(line, element).map_err(|error| short(&error))
                });
            }
            Encoding::BinaryBigEndian => parser.read_big_endian_element(&mut self.bytes, element),
            Encoding::BinaryLittleEndian => parser.read_little_endian_element(&mut self.bytes, element),
        };
        item.map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => CUT_SHORT.to_owned(),
            _ => short(&error),
        })
    }

    fn next_line(&mut self) -> Result<&str, String> {
        if self.bytes.is_empty() {
            return Err(CUT_SHORT.to_owned());
        }
        let len = self.bytes.iter().position(|&byte| byte == b'\n').map_or(self.bytes.len(), |end| end + 1);
        let (line, remaining) = self.bytes.split_at(len);
        self.bytes = remaining;
        self.line += 1;
        std::str::from_utf8(line).map_err(|_| "it is not UTF-8".to_owned())
    }
}

/// Returns the location `count` items after another one.
pub(super) fn after(location: FileLocation, count: u64) -> FileLocation {
    match location {
        FileLocation::Line(line) => FileLocation::Line(line + count),
        FileLocation::Item { what, index } => FileLocation::Item { what, index: index + count },
        other => other,
    }
}

/// Returns the least number of bytes of a property in a binary file.
fn least_bytes(property: &PropertyType) -> usize {
    let (PropertyType::Scalar(scalar) | PropertyType::List(scalar, _)) = property;
    match scalar {
        ScalarType::Char | ScalarType::UChar => 1,
        ScalarType::Short | ScalarType::UShort => 2,
        ScalarType::Int | ScalarType::UInt | ScalarType::Float => 4,
        ScalarType::Double => 8,
    }
}

/// Returns the parser's message in one line, without the line number, which is reported separately.
pub(super) fn short(error: &ParseError) -> String {
    let text = error.to_string();
    let prefix = error.line().map(|line| format!("Line {line}: ")).unwrap_or_default();
    let words: Vec<&str> = text.strip_prefix(&prefix).unwrap_or(&text).split_whitespace().collect();
    let text = words.join(" ");
    match text.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text,
    }
}
