//! Hosts with AVX2 and FMA: vectors of 32 bytes, and no registers for masks. One group of 16 lanes at a time.
//!
//! `ymm14`: scratch; `ymm15`: a mask, with all bits of an element or none, or a second scratch register. The lanes at the
//! current basic block are in `Frame::lane_masks`, as masks for elements of 4 bytes. Predicates are in the frame.
//!
//! The host's rounding is changed around an operation that does not round to the nearest number.

mod arithmetic;

use std::mem::offset_of;
use std::ops::{Deref, DerefMut};

use iced_x86::Register;
use iced_x86::code_asm::{
    AsmMemoryOperand, AsmRegister32, AsmRegister64, AsmRegisterXmm, AsmRegisterYmm, eax, edx, get_ymm, ptr,
    rcx, rdi, rdx, xmm14, xmm15, ymm14, ymm15,
};

use super::flow::bits_of;
use isa::BoolOp;

use super::host::{
    Arithmetic, Assembler, Chooser, Destination, HostVectors, MASK, Mask, Scattered, Vector, low_number,
};
use super::{GROUP_LANES, Refused, Result};
use crate::native::Frame;

pub(super) struct Avx2 {
    assembler: Assembler,
    /// Of the vectors.
    lanes: usize,
    /// All of them are at the current basic block.
    all: bool,
}

impl Deref for Avx2 {
    type Target = Assembler;

    fn deref(&self) -> &Assembler {
        &self.assembler
    }
}

impl DerefMut for Avx2 {
    fn deref_mut(&mut self) -> &mut Assembler {
        &mut self.assembler
    }
}

const S: AsmRegisterYmm = ymm14;
const T: AsmRegisterYmm = ymm15;
fn ymm(register: Vector) -> Result<AsmRegisterYmm> {
    get_ymm(Register::YMM0 + u32::from(register.0)).ok_or(Refused)
}

fn xmm(register: Vector) -> Result<AsmRegisterXmm> {
    low_number(register)
}

/// The masks of the lanes, from this lane on.
fn lane_masks(lane: usize) -> AsmMemoryOperand {
    ptr(rdi + (offset_of!(Frame, lane_masks) + 4 * lane))
}

impl Avx2 {
    fn singles(&mut self, value: u32) -> AsmMemoryOperand {
        self.constant([u64::from(value) * 0x1_0000_0001; 8])
    }

    fn signs(&mut self, wide: bool) -> AsmMemoryOperand {
        if wide { self.constant([1 << 63; 8]) } else { self.singles(1 << 31) }
    }

    /// A bit for each lane of a chunk, in its element.
    fn lane_bits(&mut self, chunk: usize, wide: bool) -> AsmMemoryOperand {
        let first = chunk * Self::lanes(wide);
        let bit = |lane: usize| 1u64 << (first + lane);
        self.constant(std::array::from_fn(|i| if wide { bit(i) } else { bit(2 * i) | bit(2 * i + 1) << 32 }))
    }

    /// `T`: the elements of it that have their bit.
    fn tested(&mut self, bits: AsmMemoryOperand, wide: bool) -> Result {
        self.vpand(T, T, bits)?;
        if wide {
            self.vpcmpeqq(T, T, bits)?;
        } else {
            self.vpcmpeqd(T, T, bits)?;
        }
        Ok(())
    }

    /// The low 2 bytes of elements, whose others are 0, one behind the other in the low half of `S`.
    fn joined_shorts(&mut self, from: AsmRegisterYmm) -> Result {
        self.vpackusdw(S, from, from)?;
        // Both halves of the register hold theirs twice.
        Ok(self.vpermq(S, S, 0b10_00)?)
    }

    /// The half of a register that has an element of `bytes` bytes, in `to` if it is the upper one, and the element's index
    /// there.
    fn half(
        &mut self,
        register: Vector,
        element: usize,
        bytes: usize,
        to: AsmRegisterXmm,
    ) -> Result<(AsmRegisterXmm, i32)> {
        let of_half = 16 / bytes;
        let index = (element % of_half) as i32;
        if element < of_half {
            return Ok((xmm(register)?, index));
        }
        if index == 0 {
            self.vextracti128(to, ymm(register)?, 1)?;
        }
        Ok((to, index))
    }
}

impl HostVectors for Avx2 {
    const BYTES: usize = 32;
    const VECTORS: u8 = 14;
    const WORD_VECTORS: &'static [usize] = &[8, 4, 0];
    const SCRATCH: Vector = Vector(14);
    const SECOND: Option<Vector> = Some(Vector(15));
    const NAN: Option<Vector> = None;
    const MASKS: &'static [Mask] = &[];
    const MERGES: bool = false;
    const FEW: bool = true;
    const NEEDS_ANOTHER: bool = true;

    fn new(assembler: Assembler, groups: usize) -> Avx2 {
        Avx2 { assembler, lanes: groups * GROUP_LANES, all: false }
    }

    fn begin(&mut self) -> Result {
        Ok(())
    }

    fn set_all(&mut self, all: bool) {
        self.all = all;
    }

    fn has_all(&self) -> bool {
        self.all
    }

    fn take_lanes(&mut self) -> Result {
        self.vmovd(xmm15, eax)?;
        self.vpbroadcastd(S, xmm15)?;
        for chunk in 0..self.lanes / Self::lanes(false) {
            let bits = self.lane_bits(chunk, false);
            self.vmovdqa(T, S)?;
            self.tested(bits, false)?;
            self.vmovdqu(lane_masks(chunk * Self::lanes(false)), T)?;
        }
        Ok(())
    }

    fn lanes_of(&mut self, chunk: usize, wide: bool) -> Result<Mask> {
        if self.all {
            self.vpcmpeqd(T, T, T)?;
            return Ok(MASK);
        }
        let place = lane_masks(chunk * Self::lanes(wide));
        if wide {
            self.vpmovsxdq(T, place)?;
        } else {
            self.vmovdqu(T, place)?;
        }
        Ok(MASK)
    }

    fn save_masks(&mut self, _: bool) -> Result {
        Ok(())
    }

    fn load(&mut self, to: Vector, place: AsmMemoryOperand, _: bool) -> Result {
        Ok(self.vmovdqu(ymm(to)?, place)?)
    }

    fn store(&mut self, place: AsmMemoryOperand, from: Vector, _: bool) -> Result {
        Ok(self.vmovdqu(place, ymm(from)?)?)
    }

    fn load_short(&mut self, to: Vector, place: AsmMemoryOperand) -> Result {
        Ok(self.vpmovzxwd(ymm(to)?, place)?)
    }

    fn store_short(&mut self, place: AsmMemoryOperand, from: Vector) -> Result {
        self.joined_shorts(ymm(from)?)?;
        Ok(self.vmovdqu(place, xmm14)?)
    }

    fn merge_short(&mut self, place: AsmMemoryOperand, from: Vector, _: Mask) -> Result {
        self.vpmovzxwd(S, place)?;
        self.vblendvps(S, S, ymm(from)?, T)?;
        self.store_short(place, Self::SCRATCH)
    }

    fn merge(&mut self, place: AsmMemoryOperand, from: Vector, _: bool, _: Mask) -> Result {
        self.vpxor(S, ymm(from)?, place)?;
        self.vpand(S, S, T)?;
        self.vpxor(S, S, place)?;
        Ok(self.vmovdqu(place, S)?)
    }

    fn copy(&mut self, dst: Destination, from: Vector, _: bool) -> Result {
        let (to, from) = (ymm(dst.register)?, ymm(from)?);
        match dst.mask {
            Some(_) => self.vblendvps(to, to, from, T)?,
            None if to == from => {}
            None => self.vmovdqa(to, from)?,
        }
        Ok(())
    }

    fn load_result(&mut self, dst: Destination, place: AsmMemoryOperand, wide: bool) -> Result {
        self.load(dst.register, place, wide)
    }

    fn load_lanes(
        &mut self,
        dst: Destination,
        place: AsmMemoryOperand,
        mask: Option<Mask>,
        one: bool,
        wide: bool,
    ) -> Result {
        if !one && mask.is_none() {
            return self.load(dst.register, place, wide);
        }
        let dst = ymm(dst.register)?;
        match (one, wide) {
            // Some lane of the group is here, and all lanes have its address.
            (true, true) => self.vpbroadcastq(dst, place)?,
            (true, false) => self.vpbroadcastd(dst, place)?,
            (false, true) => self.vpmaskmovq(dst, T, place)?,
            (false, false) => self.vpmaskmovd(dst, T, place)?,
        }
        Ok(())
    }

    fn load_extended(
        &mut self,
        dst: Destination,
        place: AsmMemoryOperand,
        _: Option<Mask>,
        (bytes, signed): (u32, bool),
        wide: bool,
    ) -> Result {
        let dst = ymm(dst.register)?;
        match (bytes, signed, wide) {
            (1, false, false) => self.vpmovzxbd(dst, place)?,
            (1, true, false) => self.vpmovsxbd(dst, place)?,
            (2, false, false) => self.vpmovzxwd(dst, place)?,
            (2, true, false) => self.vpmovsxwd(dst, place)?,
            (1, false, true) => self.vpmovzxbq(dst, place)?,
            (1, true, true) => self.vpmovsxbq(dst, place)?,
            (2, false, true) => self.vpmovzxwq(dst, place)?,
            (2, true, true) => self.vpmovsxwq(dst, place)?,
            (4, false, true) => self.vpmovzxdq(dst, place)?,
            (4, true, true) => self.vpmovsxdq(dst, place)?,
            _ => return Err(Refused),
        }
        Ok(())
    }

    fn take_16_bytes(&mut self, to: [AsmRegister64; 2], from: Vector, number: usize) -> Result {
        let part = xmm(if number == 0 { from } else { Self::SCRATCH })?;
        if number > 0 {
            self.vextracti128(part, ymm(from)?, 1)?;
        }
        self.vmovq(to[0], part)?;
        Ok(self.vpextrq(to[1], part, 1)?)
    }

    fn deinterleave(&mut self, to: &[Vector], place: impl Fn(i32) -> AsmMemoryOperand) -> Result {
        let registers = to.iter().map(|&register| ymm(register)).collect::<Result<Vec<_>>>()?;
        if let [a, b] = registers[..] {
            self.vmovups(a, place(0))?;
            self.vmovups(b, place(32))?;
            self.vshufps(S, a, b, 0x88)?;
            self.vshufps(b, a, b, 0xdd)?;
            self.vpermpd(a, S, 0xd8)?;
            return Ok(self.vpermpd(b, b, 0xd8)?);
        }
        let [a, b, c, d] = registers[..] else { return Err(Refused) };
        // A lane and the fourth one behind it.
        for (lane, (&to, whole)) in to.iter().zip([a, b, c, d]).enumerate() {
            self.vmovups(xmm(to)?, place(16 * lane as i32))?;
            self.vinsertf128(whole, whole, place(64 + 16 * lane as i32), 1)?;
        }
        self.vunpcklps(S, a, b)?;
        self.vunpckhps(a, a, b)?;
        self.vunpcklps(T, c, d)?;
        self.vunpckhps(c, c, d)?;
        self.vunpckhpd(b, S, T)?;
        self.vunpckhpd(d, a, c)?;
        self.vunpcklpd(c, a, c)?;
        Ok(self.vunpcklpd(a, S, T)?)
    }

    fn permute(&mut self, from: &[Vector], lanes: &[u32]) -> Result {
        let of = |lane: u32| lane as usize / 8;
        let mut begun = false;
        for (chunk, &source) in from.iter().enumerate() {
            let mut here = 0;
            for (lane, _) in lanes.iter().enumerate().filter(|(_, lane)| of(**lane) == chunk) {
                here |= 1 << lane;
            }
            if here == 0 {
                continue;
            }
            let at = |i: usize| u64::from(lanes[i % 8]);
            let index = self.constant(std::array::from_fn(|i| at(2 * i) | at(2 * i + 1) << 32));
            self.vmovdqu(T, index)?;
            // Of an index the low three bits count.
            if begun {
                self.vpermd(T, T, ymm(source)?)?;
                self.vpblendd(S, S, T, here)?;
            } else {
                self.vpermd(S, T, ymm(source)?)?;
                begun = true;
            }
        }
        Ok(())
    }

    fn interleave(
        &mut self,
        from: &[Vector],
        others: [Vector; 2],
        place: impl Fn(i32) -> AsmMemoryOperand,
    ) -> Result {
        let from = from.iter().map(|&register| ymm(register)).collect::<Result<Vec<_>>>()?;
        if let [a, b] = from[..] {
            self.vunpcklps(S, a, b)?;
            self.vunpckhps(T, a, b)?;
            self.vmovups(place(0), xmm14)?;
            self.vmovups(place(16), xmm15)?;
            self.vextractf128(place(32), S, 1)?;
            return Ok(self.vextractf128(place(48), T, 1)?);
        }
        let [a, b, c, d] = from[..] else { return Err(Refused) };
        let (low, whole) = (xmm(others[0])?, ymm(others[0])?);
        for lane in 0..4 {
            match lane {
                0 => {
                    self.vunpcklps(S, a, b)?;
                    self.vunpcklps(T, c, d)?;
                }
                2 => {
                    self.vunpckhps(S, a, b)?;
                    self.vunpckhps(T, c, d)?;
                }
                _ => {}
            }
            if lane % 2 == 0 {
                self.vunpcklpd(whole, S, T)?;
            } else {
                self.vunpckhpd(whole, S, T)?;
            }
            self.vmovups(place(16 * lane), low)?;
            self.vextractf128(place(64 + 16 * lane), whole, 1)?;
        }
        Ok(())
    }

    fn store_lanes(&mut self, place: AsmMemoryOperand, from: Vector, chunk: usize, wide: bool) -> Result {
        if self.all {
            return self.store(place, from, wide);
        }
        // Masked stores are slow on some hosts.
        let [mut some, mut done] = std::array::from_fn(|_| self.create_label());
        let all = bits_of(self.lanes);
        self.cmp(eax, all)?;
        self.jne(some)?;
        self.vmovdqu(place, ymm(from)?)?;
        self.jmp(done)?;
        self.set_label(&mut some)?;
        self.lanes_of(chunk, wide)?;
        if wide {
            self.vpmaskmovq(place, T, ymm(from)?)?;
        } else {
            self.vpmaskmovd(place, T, ymm(from)?)?;
        }
        self.set_label(&mut done)?;
        // A label stands before an instruction.
        Ok(self.nop()?)
    }

    fn store_truncated(
        &mut self,
        place: AsmMemoryOperand,
        from: Vector,
        _: usize,
        bytes: u32,
        _: bool,
    ) -> Result {
        let low = self.singles(if bytes == 1 { 0xff } else { 0xffff });
        self.vpand(S, ymm(from)?, low)?;
        self.joined_shorts(S)?;
        if bytes == 2 {
            return Ok(self.vmovdqu(place, xmm14)?);
        }
        self.vpackuswb(xmm14, xmm14, xmm14)?;
        Ok(self.vmovq(place, xmm14)?)
    }

    fn prepare_gather(&mut self, chunk: usize, wide: bool) -> Result {
        self.vpxor(S, S, S)?;
        self.lanes_of(chunk, wide)?;
        Ok(())
    }

    fn gather(&mut self, from: Scattered, chunk: usize, wide: bool, other: Option<Vector>) -> Result {
        let Scattered { offsets, bytes, .. } = from;
        match (from.wide, wide) {
            (true, true) => self.vpgatherqq_3(S, ptr(rcx + ymm(offsets[chunk])? * 1 + bytes), T)?,
            (true, false) => {
                let other = other.ok_or(Refused)?;
                self.vpgatherqd_3(xmm14, ptr(rcx + ymm(offsets[2 * chunk])? * 1 + bytes), xmm15)?;
                self.vpxor(ymm(other)?, ymm(other)?, ymm(other)?)?;
                if self.all {
                    self.vpcmpeqd(xmm15, xmm15, xmm15)?;
                } else {
                    self.vmovdqu(xmm15, lane_masks(chunk * Self::lanes(false) + Self::lanes(true)))?;
                }
                self.vpgatherqd_3(xmm(other)?, ptr(rcx + ymm(offsets[2 * chunk + 1])? * 1 + bytes), xmm15)?;
                self.join_low(other)?;
            }
            (false, true) => {
                let index = xmm(other.ok_or(Refused)?)?;
                self.vextracti128(index, ymm(offsets[chunk / 2])?, (chunk % 2) as i32)?;
                self.vpgatherdq_3(S, ptr(rcx + index * 1 + bytes), T)?;
            }
            (false, false) => self.vpgatherdd_3(S, ptr(rcx + ymm(offsets[chunk])? * 1 + bytes), T)?,
        }
        Ok(())
    }

    fn scatter(&mut self, to: Scattered, chunk: usize, wide: bool, value: Vector) -> Result {
        let first = chunk * Self::lanes(wide);
        for element in 0..Self::lanes(wide) {
            let lane = first + element;
            let mut next = self.create_label();
            let offset = to.offsets[lane / Self::lanes(to.wide)];
            let (offset, at) =
                self.half(offset, lane % Self::lanes(to.wide), if to.wide { 8 } else { 4 }, xmm14)?;
            let (value, of_value) = self.half(value, element, if wide { 8 } else { 4 }, xmm15)?;
            self.test(eax, 1 << lane)?;
            self.jz(next)?;
            if to.wide {
                self.vpextrq(rdx, offset, at)?;
            } else {
                self.vpextrd(edx, offset, at)?;
                self.movsxd(rdx, edx)?;
            }
            let place = ptr(rcx + rdx + to.bytes);
            if wide {
                self.vpextrq(place, value, of_value)?;
            } else {
                self.vpextrd(place, value, of_value)?;
            }
            self.set_label(&mut next)?;
            // A label stands before an instruction.
            self.nop()?;
        }
        Ok(())
    }

    fn broadcast(&mut self, to: Vector, from: AsmRegister64, low: AsmRegister32, wide: bool) -> Result {
        if wide {
            self.vmovq(xmm(to)?, from)?;
            self.vpbroadcastq(ymm(to)?, xmm(to)?)?;
        } else {
            self.vmovd(xmm(to)?, low)?;
            self.vpbroadcastd(ymm(to)?, xmm(to)?)?;
        }
        Ok(())
    }

    fn broadcast_place(&mut self, to: Vector, place: AsmMemoryOperand, wide: bool) -> Result {
        let to = ymm(to)?;
        if wide {
            self.vpbroadcastq(to, place)?;
        } else {
            self.vpbroadcastd(to, place)?;
        }
        Ok(())
    }

    fn chosen(&mut self, chooser: Chooser, chunk: usize, wide: bool) -> Result<Mask> {
        let Chooser::Memory(place) = chooser else { return Err(Refused) };
        self.vpbroadcastd(T, place)?;
        let bits = self.lane_bits(chunk, wide);
        self.tested(bits, wide)?;
        Ok(MASK)
    }

    fn choose(&mut self, to: Vector, a: Vector, b: Vector, _: Mask, _: bool) -> Result {
        Ok(self.vblendvps(ymm(to)?, ymm(b)?, ymm(a)?, T)?)
    }

    fn bound(&mut self, to: Vector, place: AsmMemoryOperand, wide: bool) -> Result {
        self.broadcast_place(to, place, wide)?;
        // As signed integers.
        let (to, signs) = (ymm(to)?, self.signs(wide));
        Ok(self.vpxor(to, to, signs)?)
    }

    fn is_inside(
        &mut self,
        offset: Vector,
        unaligned: AsmMemoryOperand,
        other: Option<Vector>,
        wide: bool,
    ) -> Result {
        let (offset, aligned) = (ymm(offset)?, ymm(other.ok_or(Refused)?)?);
        let (zero, signs) = (self.constant([0; 8]), self.signs(wide));
        self.vpand(aligned, offset, unaligned)?;
        if wide {
            self.vpcmpeqq(aligned, aligned, zero)?;
        } else {
            self.vpcmpeqd(aligned, aligned, zero)?;
        }
        self.vpxor(T, offset, signs)?;
        self.greater(S, T, wide)?;
        Ok(self.vpand(T, T, aligned)?)
    }

    fn mask_bits(&mut self, to: AsmRegister32, _: Mask, wide: bool) -> Result {
        if wide {
            self.vmovmskpd(to, T)?;
        } else {
            self.vmovmskps(to, T)?;
        }
        Ok(())
    }

    fn combine_masks(&mut self, _: BoolOp, _: Mask, _: Mask, _: Mask) -> Result {
        Err(Refused)
    }

    fn join_halves(&mut self, _: Mask) -> Result {
        Err(Refused)
    }

    fn joined(&mut self, _: &[Mask], _: AsmRegister32) -> Result {
        Err(Refused)
    }

    fn split(&mut self, _: &[Mask]) -> Result {
        Err(Refused)
    }
}
