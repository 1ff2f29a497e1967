//! Hosts with AVX-512 (F, BW, DQ, VL): vectors of 64 bytes, and registers for masks.
//!
//! `k1` and, of the second part, `k2`: the lanes at the current basic block; `k3` to `k6`: predicates of one basic block;
//! `k7`: scratch. `zmm30`: scratch; `zmm31`: the NaN of PTX.

mod arithmetic;
mod strided;

use std::mem::offset_of;
use std::ops::{Deref, DerefMut};

use iced_x86::Register;
use iced_x86::code_asm::{
    AsmMemoryOperand, AsmRegister32, AsmRegister64, AsmRegisterK, AsmRegisterYmm, AsmRegisterZmm, eax, ecx,
    get_ymm, get_zmm, k1, k2, k3, k4, k5, k6, k7, ptr, qword_ptr, rcx, rdi,
};
use isa::BoolOp;

use super::host::{
    Arithmetic, Assembler, Chooser, Destination, HostVectors, MASK, Mask, Scattered, Vector, low_number,
};
use super::{GROUP_LANES, NAN_BITS, Refused, Result};
use crate::native::Frame;

pub(super) struct Avx512 {
    assembler: Assembler,
    /// All lanes of the vectors are there.
    all: bool,
}

impl Deref for Avx512 {
    type Target = Assembler;

    fn deref(&self) -> &Assembler {
        &self.assembler
    }
}

impl DerefMut for Avx512 {
    fn deref_mut(&mut self) -> &mut Assembler {
        &mut self.assembler
    }
}

fn zmm(register: Vector) -> Result<AsmRegisterZmm> {
    get_zmm(Register::ZMM0 + u32::from(register.0)).ok_or(Refused)
}

/// The low half of a register.
fn low(register: Vector) -> Result<AsmRegisterYmm> {
    get_ymm(Register::YMM0 + u32::from(register.0)).ok_or(Refused)
}

fn k(mask: Mask) -> AsmRegisterK {
    [k1, k2, k3, k4, k5, k6, k7][usize::from(mask.0).clamp(1, 7) - 1]
}

/// The register, for a merge under a mask.
fn masked(register: AsmRegisterZmm, mask: Mask) -> AsmRegisterZmm {
    match mask.0 {
        1 => register.k1(),
        2 => register.k2(),
        3 => register.k3(),
        4 => register.k4(),
        5 => register.k5(),
        6 => register.k6(),
        _ => register.k7(),
    }
}

/// The place, for a store under a mask.
fn masked_place(place: AsmMemoryOperand, mask: Mask) -> AsmMemoryOperand {
    match mask.0 {
        1 => place.k1(),
        2 => place.k2(),
        _ => place.k7(),
    }
}

fn destination(dst: Destination) -> Result<AsmRegisterZmm> {
    let register = zmm(dst.register)?;
    Ok(dst.mask.map_or(register, |mask| masked(register, mask)))
}

/// The destination of a load. Lanes that are not there become 0, unless they keep their elements.
fn destination_of(dst: Destination, lanes: Option<Mask>) -> Result<AsmRegisterZmm> {
    match lanes.filter(|_| dst.mask.is_none()) {
        Some(lanes) => Ok(masked(zmm(dst.register)?, lanes).z()),
        None => destination(dst),
    }
}

const S: AsmRegisterZmm = iced_x86::code_asm::zmm30;
const NAN: AsmRegisterZmm = iced_x86::code_asm::zmm31;

impl Avx512 {
    /// A constant with an index for each lane.
    fn indices(&mut self, of_lane: impl Fn(usize) -> usize) -> AsmMemoryOperand {
        let at = |lane: usize| of_lane(lane) as u64;
        self.constant(std::array::from_fn(|i| at(2 * i) | at(2 * i + 1) << 32))
    }

    /// The lanes of a chunk, in `k7`: gathers and scatters clear their masks.
    fn mask_of(&mut self, chunk: usize, wide: bool) -> Result {
        let mask = self.lanes_of(chunk, wide)?;
        if mask != MASK {
            self.kmovw(k7, k(mask))?;
        }
        Ok(())
    }
}

impl HostVectors for Avx512 {
    const BYTES: usize = 64;
    const VECTORS: u8 = 30;
    const WORD_VECTORS: &'static [usize] = &[22, 8];
    const SCRATCH: Vector = Vector(30);
    const SECOND: Option<Vector> = None;
    const NAN: Option<Vector> = Some(Vector(31));
    const MASKS: &'static [Mask] = &[Mask(3), Mask(4), Mask(5), Mask(6)];
    const MERGES: bool = true;
    const FEW: bool = false;
    const STRIDES: bool = true;
    const ROWS: bool = true;
    const PRODUCTS: bool = true;
    const NEEDS_ANOTHER: bool = false;

    fn new(assembler: Assembler, _: usize) -> Avx512 {
        Avx512 { assembler, all: false }
    }

    fn begin(&mut self) -> Result {
        self.mov(ecx, NAN_BITS)?;
        Ok(self.vpbroadcastd(NAN, ecx)?)
    }

    fn set_all(&mut self, all: bool) {
        self.all = all;
    }

    fn has_all(&self) -> bool {
        self.all
    }

    fn take_lanes(&mut self) -> Result {
        self.kmovd(k1, eax)?;
        Ok(self.kshiftrd(k2, k1, 16)?)
    }

    fn lanes_of(&mut self, chunk: usize, wide: bool) -> Result<Mask> {
        if self.all {
            self.kxnorw(k7, k7, k7)?;
            return Ok(MASK);
        }
        let (part, upper) = if wide { (chunk / 2, chunk % 2 == 1) } else { (chunk, false) };
        let lanes = if part == 0 { Mask(1) } else { Mask(2) };
        if !upper {
            return Ok(lanes);
        }
        self.kshiftrw(k7, k(lanes), 8)?;
        Ok(MASK)
    }

    fn save_masks(&mut self, saves: bool) -> Result {
        let place = |index: usize| qword_ptr(rdi + (offset_of!(Frame, saved_masks) + 8 * index));
        for (index, register) in [k1, k2, k3, k4, k5, k6].into_iter().enumerate() {
            if saves {
                self.kmovq(place(index), register)?;
            } else {
                self.kmovq(register, place(index))?;
            }
        }
        Ok(())
    }

    fn load(&mut self, to: Vector, place: AsmMemoryOperand, wide: bool) -> Result {
        self.load_result(to.into(), place, wide)
    }

    fn store(&mut self, place: AsmMemoryOperand, from: Vector, wide: bool) -> Result {
        let from = zmm(from)?;
        if wide {
            self.vmovdqu64(place, from)?;
        } else {
            self.vmovdqu32(place, from)?;
        }
        Ok(())
    }

    fn load_short(&mut self, to: Vector, place: AsmMemoryOperand) -> Result {
        Ok(self.vpmovzxwd(zmm(to)?, place)?)
    }

    fn store_short(&mut self, place: AsmMemoryOperand, from: Vector) -> Result {
        Ok(self.vpmovdw(place, zmm(from)?)?)
    }

    fn merge_short(&mut self, place: AsmMemoryOperand, from: Vector, mask: Mask) -> Result {
        self.store_short(masked_place(place, mask), from)
    }

    fn merge(&mut self, place: AsmMemoryOperand, from: Vector, wide: bool, mask: Mask) -> Result {
        self.store(masked_place(place, mask), from, wide)
    }

    fn copy(&mut self, dst: Destination, from: Vector, wide: bool) -> Result {
        let (dst, from) = (destination(dst)?, zmm(from)?);
        if wide {
            self.vmovdqa64(dst, from)?;
        } else {
            self.vmovdqa32(dst, from)?;
        }
        Ok(())
    }

    fn load_result(&mut self, dst: Destination, place: AsmMemoryOperand, wide: bool) -> Result {
        // A masked load merges.
        let dst = destination(dst)?;
        if wide {
            self.vmovdqu64(dst, place)?;
        } else {
            self.vmovdqu32(dst, place)?;
        }
        Ok(())
    }

    fn load_lanes(
        &mut self,
        dst: Destination,
        place: AsmMemoryOperand,
        mask: Option<Mask>,
        one: bool,
        wide: bool,
    ) -> Result {
        let dst = destination_of(dst, mask)?;
        match (one, wide) {
            (true, true) => self.vpbroadcastq(dst, place)?,
            (true, false) => self.vpbroadcastd(dst, place)?,
            (false, true) => self.vmovdqu64(dst, place)?,
            (false, false) => self.vmovdqu32(dst, place)?,
        }
        Ok(())
    }

    fn load_extended(
        &mut self,
        dst: Destination,
        place: AsmMemoryOperand,
        mask: Option<Mask>,
        (bytes, signed): (u32, bool),
        wide: bool,
    ) -> Result {
        let dst = destination_of(dst, mask)?;
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

    fn deinterleave(&mut self, to: &[Vector], place: impl Fn(i32) -> AsmMemoryOperand) -> Result {
        let to = to.iter().map(|&register| zmm(register)).collect::<Result<Vec<_>>>()?;
        if let [a, b] = to[..] {
            self.vmovdqu32(S, place(0))?;
            for (element, to) in [a, b].into_iter().enumerate() {
                let index = self.indices(|lane| 2 * lane + element);
                self.vmovdqu32(to, index)?;
                self.vpermi2d(to, S, place(64))?;
            }
            return Ok(());
        }
        let [a, b, c, d] = to[..] else { return Err(Refused) };
        // Of 8 lanes two elements each: first in two registers, then joined with those of the other lanes.
        for (bytes, to) in [(0, [a, c]), (128, [b, d])] {
            self.vmovdqu32(S, place(bytes))?;
            for (pair, to) in to.into_iter().enumerate() {
                let index = self.indices(|lane| 4 * (lane % 8) + 2 * pair + lane / 8);
                self.vmovdqu32(to, index)?;
                self.vpermi2d(to, S, place(bytes + 64))?;
            }
        }
        for [first, second] in [[a, b], [c, d]] {
            self.vshufi64x2(S, first, second, 0x44)?;
            self.vshufi64x2(second, first, second, 0xee)?;
            self.vmovdqa64(first, S)?;
        }
        Ok(())
    }

    fn permute(&mut self, from: &[Vector], lanes: &[u32]) -> Result {
        let of = |lane: &u32| *lane as usize / GROUP_LANES;
        let index = self.indices(|lane| lanes[lane] as usize);
        self.vmovdqu32(S, index)?;
        let first = of(&lanes[0]);
        if lanes.iter().all(|lane| of(lane) == first) {
            // Of an index the low four bits count.
            return Ok(self.vpermd(S, S, zmm(from[first])?)?);
        }
        Ok(self.vpermi2d(S, zmm(from[0])?, zmm(from[1])?)?)
    }

    fn load_quad(&mut self, to: Vector, place: AsmMemoryOperand) -> Result {
        Ok(self.vbroadcastf32x4(zmm(to)?, place)?)
    }

    fn repeat_lane(&mut self, from: Vector, lane: usize) -> Result {
        Ok(self.vpermilps(S, zmm(from)?, 0b01_01_01_01 * lane as i32)?)
    }

    fn add_product(&mut self, sum: Vector, factor: Vector) -> Result {
        Ok(self.vfmadd231ps(zmm(sum)?, S, zmm(factor)?)?)
    }

    fn interleave(
        &mut self,
        from: &[Vector],
        others: [Vector; 2],
        place: impl Fn(i32) -> AsmMemoryOperand,
    ) -> Result {
        let from = from.iter().map(|&register| zmm(register)).collect::<Result<Vec<_>>>()?;
        for half in 0..2 {
            let pairs = self.indices(|lane| 16 * (lane % 2) + 8 * half + lane / 2);
            if let [a, b] = from[..] {
                self.vmovdqu32(S, pairs)?;
                self.vpermi2d(S, a, b)?;
                self.vmovdqu32(place(64 * half as i32), S)?;
                continue;
            }
            let [a, b, c, d] = from[..] else { return Err(Refused) };
            let [first, second] = [zmm(others[0])?, zmm(others[1])?];
            for (to, [x, y]) in [(first, [a, b]), (second, [c, d])] {
                self.vmovdqu32(to, pairs)?;
                self.vpermi2d(to, x, y)?;
            }
            for quarter in 0..2 {
                let index = |i: usize| (8 * (i % 2) + 4 * quarter + i / 2) as u64;
                let index = self.constant(std::array::from_fn(index));
                self.vmovdqu64(S, index)?;
                self.vpermi2q(S, first, second)?;
                self.vmovdqu64(place(64 * (2 * half + quarter) as i32), S)?;
            }
        }
        Ok(())
    }

    fn store_lanes(&mut self, place: AsmMemoryOperand, from: Vector, chunk: usize, wide: bool) -> Result {
        if self.all {
            return self.store(place, from, wide);
        }
        let mask = self.lanes_of(chunk, wide)?;
        self.store(masked_place(place, mask), from, wide)
    }

    fn store_truncated(
        &mut self,
        mut place: AsmMemoryOperand,
        from: Vector,
        chunk: usize,
        bytes: u32,
        wide: bool,
    ) -> Result {
        if !self.all {
            place = masked_place(place, self.lanes_of(chunk, wide)?);
        }
        let from = zmm(from)?;
        match (bytes, wide) {
            (1, false) => self.vpmovdb(place, from)?,
            (2, false) => self.vpmovdw(place, from)?,
            (1, true) => self.vpmovqb(place, from)?,
            (2, true) => self.vpmovqw(place, from)?,
            (4, true) => self.vpmovqd(place, from)?,
            _ => return Err(Refused),
        }
        Ok(())
    }

    fn take_16_bytes(&mut self, to: [AsmRegister64; 2], from: Vector, number: usize) -> Result {
        let part = low_number(if number == 0 { from } else { Self::SCRATCH })?;
        if number > 0 {
            self.vextracti32x4(part, zmm(from)?, number as i32)?;
        }
        // The shorter encoding has only half of the registers.
        self.set_prefer_vex(false);
        self.vmovq(to[0], part)?;
        self.vpextrq(to[1], part, 1)?;
        self.set_prefer_vex(true);
        Ok(())
    }

    fn load_row(&mut self, to: Vector, place: AsmMemoryOperand, part: usize) -> Result {
        if part == 0 {
            return Ok(self.vmovdqu32(low_number(to)?, place)?);
        }
        Ok(self.vinsertf32x4(zmm(to)?, zmm(to)?, place, part as i32)?)
    }

    fn transpose_rows(&mut self, rows: [Vector; 4]) -> Result<[Vector; 4]> {
        let [first, second, third, fourth] = rows;
        let [a, b, c, d] = [zmm(first)?, zmm(second)?, zmm(third)?, zmm(fourth)?];
        // Elements of two rows side by side, and then of four.
        self.vunpcklps(S, a, b)?;
        self.vunpckhps(a, a, b)?;
        self.vunpcklps(b, c, d)?;
        self.vunpckhps(c, c, d)?;
        self.vunpcklpd(d, S, b)?;
        self.vunpckhpd(b, S, b)?;
        self.vunpckhpd(S, a, c)?;
        self.vunpcklpd(a, a, c)?;
        self.vmovaps(c, S)?;
        Ok([fourth, second, first, third])
    }

    fn load_strided(
        &mut self,
        place: impl Fn(i32) -> AsmMemoryOperand,
        step: usize,
        bytes: u32,
        others: [Vector; 2],
    ) -> Result {
        self.take_strided(place, step, bytes, others)
    }

    fn store_strided(
        &mut self,
        place: impl Fn(i32) -> AsmMemoryOperand,
        from: Vector,
        step: usize,
        bytes: u32,
        other: Vector,
    ) -> Result {
        self.put_strided(place, from, step, bytes, other)
    }

    fn prepare_gather(&mut self, chunk: usize, wide: bool) -> Result {
        self.vpxord(S, S, S)?;
        self.mask_of(chunk, wide)
    }

    fn gather(&mut self, from: Scattered, chunk: usize, wide: bool, other: Option<Vector>) -> Result {
        let (part, upper) = if wide { (chunk / 2, chunk % 2 == 1) } else { (chunk, false) };
        let Scattered { offsets, bytes, .. } = from;
        match (from.wide, wide) {
            (true, true) => self.vpgatherqq(S.k7(), ptr(rcx + zmm(offsets[chunk])? * 1 + bytes))?,
            (true, false) => {
                let other = other.ok_or(Refused)?;
                self.vpgatherqd(low(Self::SCRATCH)?.k7(), ptr(rcx + zmm(offsets[2 * part])? * 1 + bytes))?;
                self.vpxord(zmm(other)?, zmm(other)?, zmm(other)?)?;
                let mask = self.lanes_of(chunk, wide)?;
                self.kshiftrw(k7, k(mask), 8)?;
                self.vpgatherqd(low(other)?.k7(), ptr(rcx + zmm(offsets[2 * part + 1])? * 1 + bytes))?;
                self.join_low(other)?;
            }
            (false, true) => {
                let index = low(other.ok_or(Refused)?)?;
                self.vextracti32x8(index, zmm(offsets[part])?, i32::from(upper))?;
                self.vpgatherdq(S.k7(), ptr(rcx + index * 1 + bytes))?;
            }
            (false, false) => self.vpgatherdd(S.k7(), ptr(rcx + zmm(offsets[part])? * 1 + bytes))?,
        }
        Ok(())
    }

    fn scatter(&mut self, to: Scattered, chunk: usize, wide: bool, value: Vector) -> Result {
        let (part, upper) = if wide { (chunk / 2, chunk % 2 == 1) } else { (chunk, false) };
        let Scattered { offsets, bytes, .. } = to;
        self.mask_of(chunk, wide)?;
        let scratch = low(Self::SCRATCH)?;
        match (to.wide, wide) {
            (true, true) => {
                self.vpscatterqq(ptr(rcx + zmm(offsets[chunk])? * 1 + bytes).k7(), zmm(value)?)?;
            }
            (true, false) => {
                self.vpscatterqd(ptr(rcx + zmm(offsets[2 * part])? * 1 + bytes).k7(), low(value)?)?;
                self.vextracti32x8(scratch, zmm(value)?, 1)?;
                let mask = self.lanes_of(chunk, wide)?;
                self.kshiftrw(k7, k(mask), 8)?;
                self.vpscatterqd(ptr(rcx + zmm(offsets[2 * part + 1])? * 1 + bytes).k7(), scratch)?;
            }
            (false, true) => {
                self.vextracti32x8(scratch, zmm(offsets[part])?, i32::from(upper))?;
                self.vpscatterdq(ptr(rcx + scratch * 1 + bytes).k7(), zmm(value)?)?;
            }
            (false, false) => {
                self.vpscatterdd(ptr(rcx + zmm(offsets[part])? * 1 + bytes).k7(), zmm(value)?)?;
            }
        }
        Ok(())
    }

    fn broadcast(&mut self, to: Vector, from: AsmRegister64, low: AsmRegister32, wide: bool) -> Result {
        let to = zmm(to)?;
        if wide {
            self.vpbroadcastq(to, from)?;
        } else {
            self.vpbroadcastd(to, low)?;
        }
        Ok(())
    }

    fn broadcast_place(&mut self, to: Vector, place: AsmMemoryOperand, wide: bool) -> Result {
        let to = zmm(to)?;
        if wide {
            self.vpbroadcastq(to, place)?;
        } else {
            self.vpbroadcastd(to, place)?;
        }
        Ok(())
    }

    fn chosen(&mut self, chooser: Chooser, chunk: usize, wide: bool) -> Result<Mask> {
        let (part, upper) = if wide { (chunk / 2, chunk % 2 == 1) } else { (chunk, false) };
        let mut mask = match chooser {
            Chooser::Register(mask) => mask,
            Chooser::Memory(place) => {
                self.kmovd(k7, place)?;
                if part == 1 {
                    self.kshiftrd(k7, k7, 16)?;
                }
                MASK
            }
        };
        if upper {
            self.kshiftrw(k7, k(mask), 8)?;
            mask = MASK;
        }
        Ok(mask)
    }

    fn choose(&mut self, to: Vector, a: Vector, b: Vector, mask: Mask, wide: bool) -> Result {
        let (to, a, b) = (masked(zmm(to)?, mask), zmm(a)?, zmm(b)?);
        if wide {
            self.vpblendmq(to, b, a)?;
        } else {
            self.vpblendmd(to, b, a)?;
        }
        Ok(())
    }

    fn bound(&mut self, to: Vector, place: AsmMemoryOperand, wide: bool) -> Result {
        self.broadcast_place(to, place, wide)
    }

    fn is_inside(
        &mut self,
        offset: Vector,
        unaligned: AsmMemoryOperand,
        _: Option<Vector>,
        wide: bool,
    ) -> Result {
        const LESS: i32 = 1;
        let offset = zmm(offset)?;
        if wide {
            self.vpcmpuq(k7, offset, S, LESS)?;
            self.vptestnmq(k7.k7(), offset, unaligned)?;
        } else {
            self.vpcmpud(k7, offset, S, LESS)?;
            self.vptestnmd(k7.k7(), offset, unaligned)?;
        }
        Ok(())
    }

    fn mask_bits(&mut self, to: AsmRegister32, mask: Mask, _: bool) -> Result {
        Ok(self.kmovd(to, k(mask))?)
    }

    fn combine_masks(&mut self, op: BoolOp, to: Mask, a: Mask, b: Mask) -> Result {
        let (to, a, b) = (k(to), k(a), k(b));
        match op {
            BoolOp::And => self.kandw(to, a, b)?,
            BoolOp::Or => self.korw(to, a, b)?,
            BoolOp::Xor => self.kxorw(to, a, b)?,
        }
        Ok(())
    }

    fn join_halves(&mut self, to: Mask) -> Result {
        Ok(self.kunpckbw(k(to), k(to), k7)?)
    }

    fn joined(&mut self, masks: &[Mask], to: AsmRegister32) -> Result {
        if let &[low, high] = masks {
            self.kunpckwd(k7, k(high), k(low))?;
            self.kmovd(to, k7)?;
        } else {
            self.kmovw(to, k(*masks.first().ok_or(Refused)?))?;
        }
        Ok(())
    }

    fn split(&mut self, masks: &[Mask]) -> Result {
        self.kmovd(k(masks[0]), ecx)?;
        if let [low, high] = *masks {
            self.kshiftrd(k(high), k(low), 16)?;
        }
        Ok(())
    }
}
