//! What ptxvm's linkers make in place of machine code: the PTX of all inputs in one image, which the driver links when it
//! loads it (`cuLinkComplete`, nvJitLink).

/// How such an image begins. No other image that a driver loads does.
pub const MARK: &[u8; 8] = b"\x01PTXVML\n";
/// The mark, and the size of the whole in bytes.
pub const HEADER_BYTES: usize = 16;

/// PTX text that was an input of a linker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its name in messages.
    pub name: String,
    /// The text.
    pub text: Vec<u8>,
    /// The most registers that a thread may have, as the program has told the linker.
    pub max_registers: u32,
}

/// The image of these inputs.
pub fn pack(parts: &[Part]) -> Vec<u8> {
    let mut image = MARK.to_vec();
    image.extend([0; 8]);
    for part in parts {
        for bytes in [part.name.as_bytes(), &part.text] {
            image.extend((bytes.len() as u64).to_le_bytes());
            image.extend(bytes);
        }
        image.extend(u64::from(part.max_registers).to_le_bytes());
    }
    let size = image.len() as u64;
    image[MARK.len()..HEADER_BYTES].copy_from_slice(&size.to_le_bytes());
    image
}

/// The size in bytes of the image that begins with this header; `None` if none does.
pub fn size(header: &[u8; HEADER_BYTES]) -> Option<usize> {
    let (size, mark) = (header.last_chunk::<8>()?, header.strip_prefix(MARK)?);
    let size = usize::try_from(u64::from_le_bytes(*size)).ok()?;
    (mark.len() == 8 && size >= HEADER_BYTES).then_some(size)
}

/// The inputs in an image; `None` if it is none, or not complete.
pub fn unpack(image: &[u8]) -> Option<Vec<Part>> {
    let size = size(image.first_chunk()?)?;
    let mut rest = image.get(HEADER_BYTES..size)?;
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let name = String::from_utf8_lossy(bytes(&mut rest)?).into_owned();
        let text = bytes(&mut rest)?.to_vec();
        parts.push(Part { name, text, max_registers: u32::try_from(number(&mut rest)?).ok()? });
    }
    Some(parts)
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    let (number, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u64::from_le_bytes(*number))
}

fn bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(number(rest)?).ok()?;
    let (bytes, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_unpacked() {
        let part =
            |name: &str, text: &[u8]| Part { name: name.to_owned(), text: text.to_vec(), max_registers: 64 };
        let parts = [part("a", b".version 8.0"), part("", b"")];
        let image = pack(&parts);
        assert_eq!(size(image.first_chunk().unwrap()), Some(image.len()));
        assert_eq!(unpack(&image).unwrap(), parts);
        assert_eq!(unpack(&pack(&[])).unwrap(), []);
        for end in 0..image.len() {
            assert_eq!(unpack(&image[..end]), None);
        }
        assert_eq!(unpack(b".version 8.0 and more than a header"), None);
    }
}
