//! The fields of a message one after the other, as protobuf writes them.
//! Source: protobuf.dev/programming-guides/encoding.

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireValue<'b> {
    Number(u64),
    /// A text, a message, bytes.
    Bytes(&'b [u8]),
    /// Eight or four bytes, which no message that is read has.
    Fixed,
}

/// It is cut off, or no protobuf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// The unread rest of a message.
#[derive(Debug)]
pub struct Fields<'b>(pub &'b [u8]);

impl<'b> Iterator for Fields<'b> {
    type Item = Result<(u64, WireValue<'b>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field.ok_or(Malformed))
    }
}

impl<'b> Fields<'b> {
    /// Number and value of a field; its key holds the number, and in three bits how the value is written.
    fn field(&mut self) -> Option<(u64, WireValue<'b>)> {
        let key = self.varint()?;
        let value = match key & 7 {
            0 => WireValue::Number(self.varint()?),
            1 => self.bytes(8).map(|_| WireValue::Fixed)?,
            2 => {
                let length = self.varint()?;
                WireValue::Bytes(self.bytes(usize::try_from(length).ok()?)?)
            }
            5 => self.bytes(4).map(|_| WireValue::Fixed)?,
            _ => return None,
        };
        Some((key >> 3, value))
    }

    /// Seven bits a byte, the lowest first; the eighth says that there are more.
    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn bytes(&mut self, length: usize) -> Option<&'b [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }
}
