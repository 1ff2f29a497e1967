//! Validity reports of bulk copies (PTX ISA 9.4, "Report mechanisms for asynchronous copy operations").

use isa::Validity;

/// Whether the pattern is among the bytes from an address on. *Unverified*: the manual says that one 16-byte element
/// at a multiple of 16 is checked, not which; here it is the first.
pub fn is_found(validity: Validity, address: u64, data: &[u8]) -> bool {
    match validity {
        Validity::AllOnes => data.contains(&0xff),
        Validity::NegativeZero(bits) => {
            let before = (address.wrapping_neg() % 16) as usize;
            data.get(before..).unwrap_or_default().chunks_exact(16).any(|chunk| {
                let first = u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
                first << (32 - bits) == 1 << 31
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_element_of_16_bytes_counts() {
        for (bits, marked) in
            [(32, [0, 0, 0, 0x80]), (16, [0, 0x80, 7, 7]), (8, [0x80, 7, 7, 7]), (4, [0x78, 7, 7, 7])]
        {
            let mut data = [7; 48];
            data[20..24].copy_from_slice(&marked);
            assert!(!is_found(Validity::NegativeZero(bits), 0, &data), "{bits}");
            data[16..20].copy_from_slice(&marked);
            data[20] ^= 1;
            assert!(is_found(Validity::NegativeZero(bits), 0, &data), "{bits}");
            assert!(!is_found(Validity::NegativeZero(bits), 12, &data), "{bits}");
            assert!(is_found(Validity::NegativeZero(bits), 32, &data), "{bits}");
        }
        let mut data = [0xfe; 16];
        assert!(!is_found(Validity::AllOnes, 4, &data));
        data[5] = 0xff;
        assert!(is_found(Validity::AllOnes, 4, &data));
    }
}
