//! Fields of structs in Thrift's compact protocol. The crate `thrift` limits the nesting, and allocates nothing for
//! lengths. The Parquet decoder loops and recurses by these numbers without a check.

use ::thrift::protocol::{TCompactInputProtocol, TFieldIdentifier, TInputProtocol, TType};
use ::thrift::{Error, ProtocolErrorKind, Result, TransportErrorKind, new_protocol_error};

/// A reader that advances a slice of bytes.
pub(super) type Thrift<'s, 'b> = TCompactInputProtocol<&'s mut &'b [u8]>;

/// Calls `visit` with the id and the type of each field of a struct. `visit` reads the field and returns true, or the
/// field is skipped.
pub(super) fn fields(
    thrift: &mut Thrift<'_, '_>,
    mut visit: impl FnMut(&mut Thrift<'_, '_>, usize, TType) -> Result<bool>,
) -> Result<()> {
    thrift.read_struct_begin()?;
    loop {
        let TFieldIdentifier { field_type, id, .. } = thrift.read_field_begin()?;
        if field_type == TType::Stop {
            return thrift.read_struct_end();
        }
        // No field has a negative id.
        let id = usize::try_from(id.unwrap_or(0)).unwrap_or(0);
        if !visit(thrift, id, field_type)? {
            thrift.skip(field_type)?;
        }
    }
}

/// Returns the integers and booleans of a struct, indexed by field id below `N`.
pub(super) fn numbers<const N: usize>(thrift: &mut Thrift<'_, '_>) -> Result<[Option<i64>; N]> {
    let mut numbers = [None; N];
    fields(thrift, |thrift, id, field_type| {
        let Some(number) = numbers.get_mut(id) else { return Ok(false) };
        *number = Some(match field_type {
            TType::Bool => thrift.read_bool()?.into(),
            TType::I16 | TType::I32 | TType::I64 => thrift.read_i64()?,
            _ => return Ok(false),
        });
        Ok(true)
    })?;
    Ok(numbers)
}

/// Returns the error of a field with another type than expected.
pub(super) fn wrong_type() -> Error {
    new_protocol_error(ProtocolErrorKind::InvalidData, "a field has a wrong type")
}

/// Returns true if the bytes end too early.
pub(super) fn is_truncated(error: &Error) -> bool {
    matches!(error, Error::Transport(error) if error.kind == TransportErrorKind::EndOfFile)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skip(mut bytes: &[u8]) -> Result<usize> {
        Thrift::new(&mut bytes).skip(TType::Struct)?;
        Ok(bytes.len())
    }

    #[test]
    fn numbers_by_their_fields() {
        // 1: 150, 2: true, 5: -1 (its number in full), 6: a text, 7: false.
        let bytes = [0x15, 0xAC, 0x02, 0x11, 0x05, 10, 0x01, 0x18, 2, b'a', b'b', 0x12, 0, 99];
        let mut unread = &bytes[..];
        let found = numbers::<8>(&mut Thrift::new(&mut unread)).unwrap();
        assert_eq!(found, [None, Some(150), Some(1), None, None, Some(-1), None, Some(0)]);
        assert_eq!(unread, [99]);
        for len in 0..bytes.len() - 1 {
            assert!(is_truncated(&skip(&bytes[..len]).unwrap_err()), "{len}");
        }
    }

    #[test]
    fn false_lengths() {
        assert_eq!(skip(&[0]).unwrap(), 0);
        let truncated = |bytes: &[u8]| is_truncated(&skip(bytes).unwrap_err());
        // Lists of 50 million integers and structs, and a text of this length.
        let many = [0x80, 0xE1, 0xEB, 0x17];
        let list = |element: u8| [&[0x19, 0xF0 | element][..], &many, &[0; 9]].concat();
        assert!(truncated(&list(5)) && truncated(&list(12)));
        assert!(truncated(&[&[0x18][..], &many, &[0; 9]].concat()));
        // A list of 2^31 - 1 integers, a number of eleven bytes, nested structs and lists.
        let most = [0xFF, 0xFF, 0xFF, 0xFF, 0x07];
        assert!(skip(&[&[0x19, 0xF5][..], &most, &[0; 9]].concat()).is_err());
        assert!(skip(&[&[0x16][..], &[0xFF; 20]].concat()).is_err());
        assert!(skip(&[0x1C; 1000]).is_err() && skip(&[&[0x19][..], &[0x19; 1000]].concat()).is_err());
    }
}
