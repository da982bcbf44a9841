//! The items of a PLY file, one after the other, and where they are.

use ply_rs_bw::parser::{ParseError, Parser};
use ply_rs_bw::ply::{ElementDef, Encoding, PropertyAccess, PropertyType, ScalarType};
use std::io::ErrorKind;

use super::super::Refused;
use crate::error::TablePlace;

/// Most characters of the parser's message that become part of ours: it repeats lines, which may be as long as the file.
const MAX_MESSAGE: usize = 160;
const CUT_SHORT: &str = "cut short: the file ends here";

/// What is behind the header, as far as it is not read.
pub(super) struct Payload<'a> {
    pub(super) encoding: Encoding,
    pub(super) bytes: &'a [u8],
    /// Of text the next line, from 1.
    pub(super) line: u64,
}

impl Payload<'_> {
    fn is_text(&self) -> bool {
        self.encoding == Encoding::Ascii
    }

    /// Where the next item of an element is.
    pub(super) fn place(&self, what: &'static str, index: u64) -> TablePlace {
        if self.is_text() { TablePlace::Line(self.line) } else { TablePlace::Item { what, index } }
    }

    /// Refuses an element with more items than there are bytes for, before there is memory for them.
    pub(super) fn check_size(&self, element: &ElementDef) -> Result<(), Refused> {
        let least = if self.is_text() {
            element.properties.len().max(1)
        } else {
            element.properties.values().map(|of| least_bytes(&of.data_type)).sum()
        };
        let (name, count, left) = (&element.name, element.count, self.bytes.len());
        if least.saturating_mul(count) > left {
            return Err(Refused::whole(format!(
                "cut short: the header promises {count} of the element '{name}', and {left} bytes are left for them"
            )));
        }
        Ok(())
    }

    /// Calls `take` with each item of an element and where it is.
    pub(super) fn each<E: PropertyAccess>(
        &mut self,
        element: &ElementDef,
        what: &'static str,
        mut take: impl FnMut(TablePlace, E) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        // Any number of items of no bytes would be there.
        if element.properties.is_empty() && !self.is_text() {
            return Ok(());
        }
        for index in 0..element.count as u64 {
            let place = self.place(what, index);
            let item = self.next(element).map_err(|what| Refused::at(place, what))?;
            take(place, item)?;
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
        let (line, left) = self.bytes.split_at(len);
        self.bytes = left;
        self.line += 1;
        std::str::from_utf8(line).map_err(|_| "it is no UTF-8".to_owned())
    }
}

/// Where an item is so many behind another one.
pub(super) fn after(place: TablePlace, count: u64) -> TablePlace {
    match place {
        TablePlace::Line(line) => TablePlace::Line(line + count),
        TablePlace::Item { what, index } => TablePlace::Item { what, index: index + count },
        other => other,
    }
}

/// Bytes that a property has at least in a binary file.
fn least_bytes(of: &PropertyType) -> usize {
    let (PropertyType::Scalar(scalar) | PropertyType::List(scalar, _)) = of;
    match scalar {
        ScalarType::Char | ScalarType::UChar => 1,
        ScalarType::Short | ScalarType::UShort => 2,
        ScalarType::Int | ScalarType::UInt | ScalarType::Float => 4,
        ScalarType::Double => 8,
    }
}

/// The parser's message in one line, without the number of the line, which is told apart.
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
