//! Short elements with others between them, which are taken out of whole vectors or put into them.

use iced_x86::code_asm::{AsmMemoryOperand, k7};

use super::super::{GROUP_LANES, Result};
use super::{Avx512, S, Vector, zmm};

impl Avx512 {
    /// See [`HostVectors::load_strided`](super::HostVectors::load_strided).
    pub(super) fn take_strided(
        &mut self,
        place: impl Fn(i32) -> AsmMemoryOperand,
        step: usize,
        bytes: u32,
        others: [Vector; 2],
    ) -> Result {
        let span = (GROUP_LANES - 1) * step + bytes as usize;
        let [first, second] = [zmm(others[0])?, zmm(others[1])?];
        for (whole, from) in [(first, 0), (second, 64)] {
            let Some(count) = span.checked_sub(from).filter(|&count| count > 0) else { continue };
            if count < 64 {
                let mask = self.constant([(1 << count) - 1; 8]);
                self.kmovq(k7, mask)?;
                self.vmovdqu8(whole.k7().z(), place(from as i32))?;
            } else {
                self.vmovdqu8(whole, place(from as i32))?;
            }
        }
        let words = self.indices(|lane| lane * step / 2);
        self.vmovdqu32(S, words)?;
        if span > 64 {
            self.vpermi2w(S, first, second)?;
        } else {
            self.vpermw(S, S, first)?;
        }
        if step % 2 == 1 {
            // Every other byte is the upper one of its word.
            let shifts = self.indices(|lane| 8 * (lane * step % 2));
            self.vpsrlvd(S, S, shifts)?;
        }
        Ok(())
    }

    /// See [`HostVectors::store_strided`](super::HostVectors::store_strided).
    pub(super) fn put_strided(
        &mut self,
        place: impl Fn(i32) -> AsmMemoryOperand,
        from: Vector,
        step: usize,
        bytes: u32,
        other: Vector,
    ) -> Result {
        let (mut values, expanded) = (zmm(from)?, zmm(other)?);
        if step % 2 == 1 {
            let shifts = self.indices(|lane| 8 * (lane * step % 2));
            self.vpsllvd(S, values, shifts)?;
            values = S;
        }
        let span = (GROUP_LANES - 1) * step + bytes as usize;
        for start in (0..span).step_by(64) {
            let at = |byte: usize| {
                (0..GROUP_LANES).find(|lane| (lane * step..lane * step + bytes as usize).contains(&byte))
            };
            let mut mask = 0u64;
            let mut words = [0u16; 32];
            for byte in 0..64 {
                if let Some(lane) = at(start + byte) {
                    mask |= 1 << byte;
                    // The low word of the lane's element.
                    words[byte / 2] = 2 * lane as u16;
                }
            }
            let words = self.constant(std::array::from_fn(|i| {
                (0..4).fold(0, |lanes, word| lanes | u64::from(words[4 * i + word]) << (16 * word))
            }));
            self.vmovdqu16(expanded, words)?;
            self.vpermw(expanded, expanded, values)?;
            let mask = self.constant([mask; 8]);
            self.kmovq(k7, mask)?;
            self.vmovdqu8(place(start as i32).k7(), expanded)?;
        }
        Ok(())
    }
}
