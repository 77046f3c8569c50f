//! Pure: digests as text.

use std::fmt::Write as _;

/// Two lower-case digits for each byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_is_two_digits() {
        assert_eq!(hex(&[0, 10, 255]), "000aff");
    }
}
