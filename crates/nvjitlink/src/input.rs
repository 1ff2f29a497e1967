//! What an input of a link is.

use fatbin::linked::{MARK, Part, unpack};

use crate::kind;

/// How LTO IR begins.
const LTO_IR: &[u8] = b"\xedCN\x7f";

/// What bytes are, apart from what the program calls them.
pub enum Contents {
    /// PTX. Programs that have it from our NVRTC take it for machine code.
    Ptx(Part),
    /// What a link of ours made: the same.
    Linked(Vec<Part>),
    /// Intermediate code for link-time optimisation.
    LtoIr,
    /// Machine code, a fat binary, or a file of the host's, with this PTX inside.
    Embedded {
        /// The PTX.
        parts: Vec<Part>,
        /// Whether there is machine code without PTX.
        lacks_ptx: bool,
    },
}

/// PTX of which no limit of registers is known.
pub fn part(name: &str, mut text: Vec<u8>) -> Part {
    text.truncate(text.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1));
    Part { name: name.to_owned(), text, max_registers: u32::MAX }
}

/// What the bytes of an input are.
pub fn contents(kind: usize, bytes: &[u8], name: &str) -> Contents {
    if bytes.starts_with(MARK) {
        return unpack(bytes)
            .map_or(Contents::Embedded { parts: Vec::new(), lacks_ptx: true }, Contents::Linked);
    }
    if kind == kind::LTO_IR || bytes.starts_with(LTO_IR) {
        return Contents::LtoIr;
    }
    match fatbin::embedded(bytes) {
        None if matches!(kind, kind::PTX | kind::CUBIN | kind::ANY) => {
            Contents::Ptx(part(name, bytes.to_vec()))
        }
        // Nothing that we know: NVIDIA's library says what it is not.
        None => Contents::Embedded { parts: Vec::new(), lacks_ptx: true },
        Some(found) => {
            // A library of the host may have no device code at all.
            let lacks_ptx = found.is_err() && kind != kind::LIBRARY;
            let texts = found.into_iter().flatten().map(|embedded| embedded.text);
            // The driver has the library of device-side launches itself.
            let texts = texts.filter(|text| !fatbin::is_device_runtime(text));
            Contents::Embedded { parts: texts.map(|text| part(name, text)).collect(), lacks_ptx }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &[u8] = b".version 8.0\n.target sm_80\n\0";

    fn texts(found: Contents) -> Vec<Vec<u8>> {
        match found {
            Contents::Ptx(part) => vec![part.text],
            Contents::Linked(parts) | Contents::Embedded { parts, lacks_ptx: false } => {
                parts.into_iter().map(|part| part.text).collect()
            }
            Contents::Embedded { .. } | Contents::LtoIr => panic!("no PTX"),
        }
    }

    #[test]
    fn inputs_are_what_their_bytes_are() {
        let text = PTX[..PTX.len() - 1].to_vec();
        for kind in [kind::PTX, kind::CUBIN, kind::ANY] {
            assert_eq!(texts(contents(kind, PTX, "name")), [&*text]);
        }
        let linked = fatbin::linked::pack(&[part("a", PTX.to_vec()), part("b", PTX.to_vec())]);
        assert_eq!(texts(contents(kind::CUBIN, &linked, "")), [&*text, &text]);
        for (kind, bytes) in [(kind::LTO_IR, &b"anything"[..]), (kind::ANY, b"\xedCN\x7f\x01")] {
            assert!(matches!(contents(kind, bytes, ""), Contents::LtoIr));
        }
        assert!(matches!(contents(kind::CUBIN, b"\x7fELF", ""), Contents::Embedded { lacks_ptx: true, .. }));
        // A library of the host may have no device code.
        assert_eq!(texts(contents(kind::LIBRARY, b"!<arch>\n", "")), [] as [&[u8]; 0]);
    }
}
