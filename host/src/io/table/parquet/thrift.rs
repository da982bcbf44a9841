//! Thrift's compact protocol, as far as it takes to see that bytes hold together: lengths are within them, and nothing is nested deeply.
//!
//! The Parquet decoder believes some of the lengths that it reads: it reserves memory for them, recurses or loops by them.

/// How deeply structs and lists may be nested. Metadata of Parquet are nested less than ten deep.
const MAX_DEPTH: u32 = 32;

/// Kinds of fields and elements.
pub(super) const BOOL_TRUE: u8 = 1;
pub(super) const BOOL_FALSE: u8 = 2;
pub(super) const I16: u8 = 4;
pub(super) const I64: u8 = 6;
pub(super) const LIST: u8 = 9;
pub(super) const STRUCT: u8 = 12;

/// Why bytes are not in the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// They end too early.
    Short,
    /// They could not be right with more bytes behind them.
    Broken,
}

/// Bytes in the protocol, read from the start.
pub(super) struct Thrift<'a> {
    bytes: &'a [u8],
    depth: u32,
}

impl<'a> Thrift<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, depth: 0 }
    }

    /// Bytes that are not read yet.
    pub(super) fn left(&self) -> usize {
        self.bytes.len()
    }

    /// Calls `take` with the number and the kind of each field of a struct. It reads the field and returns true, or the field is skipped.
    pub(super) fn fields(
        &mut self,
        mut take: impl FnMut(&mut Self, i64, u8) -> Result<bool, Wrong>,
    ) -> Result<(), Wrong> {
        self.nested(|this| {
            let mut id = 0_i64;
            loop {
                let head = this.byte()?;
                if head == 0 {
                    return Ok(());
                }
                id = match head >> 4 {
                    0 => this.zigzag()?,
                    delta => id.checked_add(delta.into()).ok_or(Wrong::Broken)?,
                };
                let kind = head & 15;
                if !take(this, id, kind)? {
                    this.skip(kind)?;
                }
            }
        })
    }

    /// Calls `take` for each element of a list of structs.
    pub(super) fn structs(
        &mut self,
        mut take: impl FnMut(&mut Self) -> Result<(), Wrong>,
    ) -> Result<(), Wrong> {
        let (len, kind) = self.list()?;
        if kind != STRUCT {
            return Err(Wrong::Broken);
        }
        (0..len).try_for_each(|_| take(self))
    }

    pub(super) fn zigzag(&mut self) -> Result<i64, Wrong> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// The integers and truth values of a struct by the numbers of their fields, which are below `N`.
    pub(super) fn numbers<const N: usize>(&mut self) -> Result<[Option<i64>; N], Wrong> {
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

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Result<(), Wrong>) -> Result<(), Wrong> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Wrong::Broken);
        }
        read(self)?;
        self.depth -= 1;
        Ok(())
    }

    fn skip(&mut self, kind: u8) -> Result<(), Wrong> {
        match kind {
            BOOL_TRUE | BOOL_FALSE => Ok(()),
            3 => self.take(1),
            I16..=I64 => self.varint().map(drop),
            7 => self.take(8),
            8 => {
                let len = self.varint()?;
                self.take(usize::try_from(len).map_err(|_| Wrong::Broken)?)
            }
            // Lists and sets.
            LIST | 10 => {
                let (len, kind) = self.list()?;
                self.nested(|this| (0..len).try_for_each(|_| this.skip(kind)))
            }
            STRUCT => self.fields(|_, _, _| Ok(false)),
            13 => self.take(16),
            // Maps (11) are nowhere in Parquet.
            _ => Err(Wrong::Broken),
        }
    }

    /// The number of elements of a list, of which each takes a byte at least, and their kind.
    fn list(&mut self) -> Result<(usize, u8), Wrong> {
        let head = self.byte()?;
        let len = match head >> 4 {
            15 => usize::try_from(self.varint()?).map_err(|_| Wrong::Broken)?,
            len => len.into(),
        };
        match head & 15 {
            // Decoders differ in how many bytes these take; Parquet has no lists of them.
            BOOL_TRUE | BOOL_FALSE => Err(Wrong::Broken),
            _ if len > self.bytes.len() => Err(Wrong::Short),
            kind => Ok((len, kind)),
        }
    }

    fn varint(&mut self) -> Result<u64, Wrong> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Wrong::Broken)
    }

    fn byte(&mut self) -> Result<u8, Wrong> {
        let (&byte, bytes) = self.bytes.split_first().ok_or(Wrong::Short)?;
        self.bytes = bytes;
        Ok(byte)
    }

    fn take(&mut self, len: usize) -> Result<(), Wrong> {
        self.bytes = self.bytes.get(len..).ok_or(Wrong::Short)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skip(bytes: &[u8]) -> Result<usize, Wrong> {
        let mut thrift = Thrift::new(bytes);
        thrift.skip(STRUCT)?;
        Ok(thrift.left())
    }

    #[test]
    fn numbers_by_their_fields() {
        // 1: 150, 2: true, 5: -1 (its number in full), 6: a text, 7: false.
        let bytes = [0x15, 0xAC, 0x02, 0x11, 0x05, 10, 0x01, 0x18, 2, b'a', b'b', 0x12, 0, 99];
        let mut thrift = Thrift::new(&bytes);
        let numbers = thrift.numbers::<8>().unwrap();
        assert_eq!(numbers, [None, Some(150), Some(1), None, None, Some(-1), None, Some(0)]);
        assert_eq!(thrift.left(), 1);
        (0..bytes.len() - 1).for_each(|len| assert_eq!(skip(&bytes[..len]), Err(Wrong::Short), "{len}"));
    }

    #[test]
    fn lengths_that_lie() {
        assert_eq!(skip(&[0]), Ok(0));
        // A list of 2 thousand million integers, of truth values, of structs; a text as long; a map.
        let many = [0xFF, 0xFF, 0xFF, 0xFF, 0x07];
        let list = |kind: u8| skip(&[&[0x19, 0xF0 | kind][..], &many, &[0; 9]].concat());
        assert_eq!(list(5), Err(Wrong::Short));
        assert_eq!(list(1), Err(Wrong::Broken));
        assert_eq!(list(STRUCT), Err(Wrong::Short));
        assert_eq!(skip(&[&[0x18][..], &many, &[0; 9]].concat()), Err(Wrong::Short));
        assert_eq!(skip(&[0x1B, 1, 0x55, 0, 0, 0]), Err(Wrong::Broken));
        // A number of eleven bytes, and of more bits than 64.
        assert_eq!(skip(&[&[0x16][..], &[0xFF; 20]].concat()), Err(Wrong::Broken));
        // Structs and lists within each other.
        assert_eq!(skip(&[0x1C; 1000]), Err(Wrong::Broken));
        assert_eq!(skip(&[&[0x19][..], &[0x19; 1000]].concat()), Err(Wrong::Broken));
    }
}
