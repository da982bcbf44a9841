//! Reads Thrift's compact protocol, as far as necessary to check that lengths are within the bytes and that nesting is
//! limited. The Parquet decoder loops and recurses by these numbers without a check.

/// The deepest nesting of structs and lists. Valid metadata have less than ten levels.
const MAX_DEPTH: u32 = 32;

/// The kinds of fields and elements.
pub(super) const BOOL_TRUE: u8 = 1;
pub(super) const BOOL_FALSE: u8 = 2;
pub(super) const I16: u8 = 4;
pub(super) const I64: u8 = 6;
pub(super) const LIST: u8 = 9;
pub(super) const STRUCT: u8 = 12;

/// The error of bytes that violate the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThriftError {
    /// The bytes end too early.
    Truncated,
    /// The bytes are invalid, whatever follows.
    Invalid,
}

/// A reader of the protocol.
pub(super) struct Thrift<'a> {
    bytes: &'a [u8],
    depth: u32,
}

impl<'a> Thrift<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, depth: 0 }
    }

    /// Returns the number of unread bytes.
    pub(super) fn remaining(&self) -> usize {
        self.bytes.len()
    }

    /// Calls `visit` with the id and the kind of each field of a struct. `visit` reads the field and returns true, or
    /// the field is skipped.
    pub(super) fn fields(
        &mut self,
        mut visit: impl FnMut(&mut Self, i64, u8) -> Result<bool, ThriftError>,
    ) -> Result<(), ThriftError> {
        self.nested(|this| {
            let mut id = 0_i64;
            loop {
                let head = this.byte()?;
                if head == 0 {
                    return Ok(());
                }
                id = match head >> 4 {
                    0 => this.zigzag()?,
                    delta => id.checked_add(delta.into()).ok_or(ThriftError::Invalid)?,
                };
                let kind = head & 15;
                if !visit(this, id, kind)? {
                    this.skip(kind)?;
                }
            }
        })
    }

    /// Calls `visit` for each element of a list of structs.
    pub(super) fn structs(
        &mut self,
        mut visit: impl FnMut(&mut Self) -> Result<(), ThriftError>,
    ) -> Result<(), ThriftError> {
        let (len, kind) = self.list()?;
        if kind != STRUCT {
            return Err(ThriftError::Invalid);
        }
        (0..len).try_for_each(|_| visit(self))
    }

    pub(super) fn zigzag(&mut self) -> Result<i64, ThriftError> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Returns the integers and booleans of a struct, indexed by field id below `N`.
    pub(super) fn numbers<const N: usize>(&mut self) -> Result<[Option<i64>; N], ThriftError> {
        let mut numbers = [None; N];
        self.fields(|this, id, kind| {
            let Some(number) = usize::try_from(id).ok().and_then(|id| numbers.get_mut(id)) else {
                return Ok(false);
            };
            *number = match kind {
                BOOL_TRUE => Some(1),
                BOOL_FALSE => Some(0),
                I16..=I64 => Some(this.zigzag()?),
                _ => return Ok(false),
            };
            Ok(true)
        })?;
        Ok(numbers)
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Result<(), ThriftError>) -> Result<(), ThriftError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(ThriftError::Invalid);
        }
        read(self)?;
        self.depth -= 1;
        Ok(())
    }

    fn skip(&mut self, kind: u8) -> Result<(), ThriftError> {
        match kind {
            BOOL_TRUE | BOOL_FALSE => Ok(()),
            3 => self.take(1),
            I16..=I64 => self.varint().map(drop),
            7 => self.take(8),
            8 => {
                let len = self.varint()?;
                self.take(usize::try_from(len).map_err(|_| ThriftError::Invalid)?)
            }
            // Lists and sets.
            LIST | 10 => {
                let (len, kind) = self.list()?;
                self.nested(|this| (0..len).try_for_each(|_| this.skip(kind)))
            }
            STRUCT => self.fields(|_, _, _| Ok(false)),
            13 => self.take(16),
            // Parquet has no maps (11).
            _ => Err(ThriftError::Invalid),
        }
    }

    /// Reads the number of elements of a list, each of which takes at least one byte, and their kind.
    fn list(&mut self) -> Result<(usize, u8), ThriftError> {
        let head = self.byte()?;
        let len = match head >> 4 {
            15 => usize::try_from(self.varint()?).map_err(|_| ThriftError::Invalid)?,
            len => len.into(),
        };
        match head & 15 {
            // Decoders differ in the size of these; Parquet has no lists of them.
            BOOL_TRUE | BOOL_FALSE => Err(ThriftError::Invalid),
            _ if len > self.bytes.len() => Err(ThriftError::Truncated),
            kind => Ok((len, kind)),
        }
    }

    fn varint(&mut self) -> Result<u64, ThriftError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(ThriftError::Invalid)
    }

    fn byte(&mut self) -> Result<u8, ThriftError> {
        let (&byte, bytes) = self.bytes.split_first().ok_or(ThriftError::Truncated)?;
        self.bytes = bytes;
        Ok(byte)
    }

    fn take(&mut self, len: usize) -> Result<(), ThriftError> {
        self.bytes = self.bytes.get(len..).ok_or(ThriftError::Truncated)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skip(bytes: &[u8]) -> Result<usize, ThriftError> {
        let mut thrift = Thrift::new(bytes);
        thrift.skip(STRUCT)?;
        Ok(thrift.remaining())
    }

    #[test]
    fn numbers_by_their_fields() {
        // 1: 150, 2: true, 5: -1 (its number in full), 6: a text, 7: false.
        let bytes = [0x15, 0xAC, 0x02, 0x11, 0x05, 10, 0x01, 0x18, 2, b'a', b'b', 0x12, 0, 99];
        let mut thrift = Thrift::new(&bytes);
        let numbers = thrift.numbers::<8>().unwrap();
        assert_eq!(numbers, [None, Some(150), Some(1), None, None, Some(-1), None, Some(0)]);
        assert_eq!(thrift.remaining(), 1);
        (0..bytes.len() - 1)
            .for_each(|len| assert_eq!(skip(&bytes[..len]), Err(ThriftError::Truncated), "{len}"));
    }

    #[test]
    fn false_lengths() {
        assert_eq!(skip(&[0]), Ok(0));
        // Lists of 2^31 integers, booleans and structs; a text of this length; a map.
        let many = [0xFF, 0xFF, 0xFF, 0xFF, 0x07];
        let list = |kind: u8| skip(&[&[0x19, 0xF0 | kind][..], &many, &[0; 9]].concat());
        assert_eq!(list(5), Err(ThriftError::Truncated));
        assert_eq!(list(1), Err(ThriftError::Invalid));
        assert_eq!(list(STRUCT), Err(ThriftError::Truncated));
        assert_eq!(skip(&[&[0x18][..], &many, &[0; 9]].concat()), Err(ThriftError::Truncated));
        assert_eq!(skip(&[0x1B, 1, 0x55, 0, 0, 0]), Err(ThriftError::Invalid));
        // A number of eleven bytes, and of more bits than 64.
        assert_eq!(skip(&[&[0x16][..], &[0xFF; 20]].concat()), Err(ThriftError::Invalid));
        // Structs and lists within each other.
        assert_eq!(skip(&[0x1C; 1000]), Err(ThriftError::Invalid));
        assert_eq!(skip(&[&[0x19][..], &[0x19; 1000]].concat()), Err(ThriftError::Invalid));
    }
}
