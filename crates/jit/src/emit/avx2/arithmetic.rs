//! What the host computes.

use std::mem::offset_of;

use iced_x86::code_asm::{AsmMemoryOperand, AsmRegisterXmm, AsmRegisterYmm, ptr, rdi, xmm15};
use isa::{CmpOp, Rounding};

use super::super::host::{FLUSHES, QUIET};
use super::super::operations::{float_predicate, rounding_operand};
use super::super::{NAN_BITS, Refused, Result};
use super::{Arithmetic, Avx2, Destination, HostVectors, Mask, S, T, Vector, xmm, ymm};
use crate::native::Frame;
use crate::operation::{Bits, Conversion, Float, Half};

const UNORDERED: i32 = 3;
const ORDERED: i32 = 7;

/// What `mxcsr` is for a rounding, with all exceptions masked.
fn control(rounding: Rounding) -> Result<u32> {
    Ok(match rounding {
        Rounding::TowardNegative => 0x3f80,
        Rounding::TowardPositive => 0x5f80,
        Rounding::TowardZero => 0x7f80,
        _ => return Err(Refused),
    })
}

impl Avx2 {
    /// Changes the host's rounding for what `write` emits.
    fn rounded(&mut self, rounding: Rounding, write: impl FnOnce(&mut Avx2) -> Result) -> Result {
        if rounding == Rounding::NearestEven {
            return write(self);
        }
        let flushes = if self.flushes { FLUSHES } else { 0 };
        let (control, usual) =
            (self.singles(control(rounding)? | flushes), ptr(rdi + offset_of!(Frame, control)));
        self.vstmxcsr(usual)?;
        self.vldmxcsr(control)?;
        write(self)?;
        Ok(self.vldmxcsr(usual)?)
    }

    fn doubles(&mut self, value: f64) -> AsmMemoryOperand {
        self.constant([value.to_bits(); 8])
    }

    /// `T`: `a > b`, as signed integers.
    pub(super) fn greater(&mut self, a: AsmRegisterYmm, b: AsmRegisterYmm, wide: bool) -> Result {
        if wide {
            self.vpcmpgtq(T, a, b)?;
        } else {
            self.vpcmpgtd(T, a, b)?;
        }
        Ok(())
    }

    /// `T`: `a > b`. Changes `S`.
    fn above(&mut self, a: AsmRegisterYmm, b: AsmRegisterYmm, wide: bool) -> Result {
        let signs = self.signs(wide);
        self.vpxor(S, a, signs)?;
        self.vpxor(T, b, signs)?;
        self.greater(S, T, wide)
    }

    /// `T`: the NaNs.
    fn nans(&mut self, a: AsmRegisterYmm, wide: bool) -> Result {
        if wide {
            self.vcmppd(T, a, a, UNORDERED)?;
        } else {
            self.vcmpps(T, a, a, UNORDERED)?;
        }
        Ok(())
    }

    /// As `float`, by the rounding that the host has.
    fn float_as_host(
        &mut self,
        dst: Vector,
        op: Float,
        wide: bool,
        [first, second, third]: [Vector; 3],
    ) -> Result {
        let (to, a, b) = (ymm(dst)?, ymm(first)?, ymm(second)?);
        match (op, wide) {
            (Float::Add, true) => self.vaddpd(to, a, b)?,
            (Float::Add, false) => self.vaddps(to, a, b)?,
            (Float::Sub, true) => self.vsubpd(to, a, b)?,
            (Float::Sub, false) => self.vsubps(to, a, b)?,
            (Float::Mul, true) => self.vmulpd(to, a, b)?,
            (Float::Mul, false) => self.vmulps(to, a, b)?,
            (Float::Div, true) => self.vdivpd(to, a, b)?,
            (Float::Div, false) => self.vdivps(to, a, b)?,
            (Float::Sqrt, true) => self.vsqrtpd(to, a)?,
            (Float::Sqrt, false) => self.vsqrtps(to, a)?,
            // The scratch register has ones.
            (Float::Rcp, true) => self.vdivpd(to, S, a)?,
            (Float::Rcp, false) => self.vdivps(to, S, a)?,
            (Float::Fma, _) => {
                // The result takes the place of an operand.
                let (factor, addend) = match dst {
                    register if register == first => (b, ymm(third)?),
                    register if register == second => (a, ymm(third)?),
                    _ => {
                        self.copy(dst.into(), third, wide)?;
                        if wide {
                            self.vfmadd231pd(to, a, b)?;
                        } else {
                            self.vfmadd231ps(to, a, b)?;
                        }
                        return Ok(());
                    }
                };
                if wide {
                    self.vfmadd213pd(to, factor, addend)?;
                } else {
                    self.vfmadd213ps(to, factor, addend)?;
                }
            }
            (Float::Min | Float::Max, _) => return Err(Refused),
        }
        Ok(())
    }

    fn wide_bits(&mut self, dst: AsmRegisterYmm, op: Bits, a: AsmRegisterYmm, b: AsmRegisterYmm) -> Result {
        match op {
            Bits::Add => self.vpaddq(dst, a, b)?,
            Bits::Sub => self.vpsubq(dst, a, b)?,
            Bits::MinSigned | Bits::MaxSigned | Bits::MinUnsigned | Bits::MaxUnsigned => {
                if matches!(op, Bits::MinSigned | Bits::MaxSigned) {
                    self.greater(a, b, true)?;
                } else {
                    self.above(a, b, true)?;
                }
                if matches!(op, Bits::MinSigned | Bits::MinUnsigned) {
                    self.vblendvpd(dst, a, b, T)?;
                } else {
                    self.vblendvpd(dst, b, a, T)?;
                }
            }
            Bits::Shl => self.vpsllvq(dst, a, b)?,
            Bits::ShrUnsigned => self.vpsrlvq(dst, a, b)?,
            Bits::ShrSigned => {
                // The shifted sign bit, subtracted, fills the bits above it. The distance is in `S`.
                let (most, sign) = (self.constant([63; 8]), self.signs(true));
                self.vpminud(S, S, most)?;
                self.vmovdqu(T, sign)?;
                self.vpsrlvq(T, T, S)?;
                self.vpsrlvq(S, a, S)?;
                self.vpxor(S, S, T)?;
                self.vpsubq(dst, S, T)?;
            }
            Bits::Neg => self.vpsubq(dst, S, a)?,
            Bits::AbsSigned => {
                self.vpxor(T, T, T)?;
                self.vpcmpgtq(T, T, a)?;
                self.vpxor(S, a, T)?;
                self.vpsubq(dst, S, T)?;
            }
            _ => return Err(Refused),
        }
        Ok(())
    }

    fn narrow_bits(&mut self, dst: AsmRegisterYmm, op: Bits, a: AsmRegisterYmm, b: AsmRegisterYmm) -> Result {
        match op {
            Bits::Add => self.vpaddd(dst, a, b)?,
            Bits::Sub => self.vpsubd(dst, a, b)?,
            Bits::MinSigned => self.vpminsd(dst, a, b)?,
            Bits::MinUnsigned => self.vpminud(dst, a, b)?,
            Bits::MaxSigned => self.vpmaxsd(dst, a, b)?,
            Bits::MaxUnsigned => self.vpmaxud(dst, a, b)?,
            Bits::Shl => self.vpsllvd(dst, a, b)?,
            Bits::ShrSigned => self.vpsravd(dst, a, b)?,
            Bits::ShrUnsigned => self.vpsrlvd(dst, a, b)?,
            Bits::Neg => self.vpsubd(dst, S, a)?,
            Bits::AbsSigned => self.vpabsd(dst, a)?,
            Bits::AbsFloat => self.vpand(dst, a, S)?,
            Bits::NegFloat => self.vpxor(dst, a, S)?,
            Bits::FromSigned => self.vcvtdq2ps(dst, a)?,
            Bits::FromUnsigned => {
                // Both halves are exact, and the sum is rounded once.
                let (low, power) = (self.singles(0xffff), self.singles(65536f32.to_bits()));
                self.vpsrld(T, a, 16)?;
                self.vcvtdq2ps(T, T)?;
                self.vpand(S, a, low)?;
                self.vcvtdq2ps(S, S)?;
                self.vfmadd132ps(T, S, power)?;
                self.vmovdqa(dst, T)?;
            }
            _ => return Err(Refused),
        }
        Ok(())
    }
}

impl Arithmetic for Avx2 {
    fn add_vectors(&mut self, dst: Destination, a: Vector, b: Vector, wide: bool) -> Result {
        self.bits(dst, Bits::Add, wide, a, b)
    }

    fn add_place(&mut self, dst: Destination, a: Vector, place: AsmMemoryOperand, wide: bool) -> Result {
        let (dst, a) = (ymm(dst.register)?, ymm(a)?);
        if wide {
            self.vpaddq(dst, a, place)?;
        } else {
            self.vpaddd(dst, a, place)?;
        }
        Ok(())
    }

    fn widen(&mut self, to: Vector, from: Vector, upper: bool, signed: bool) -> Result {
        let mut half = xmm(from)?;
        if upper {
            half = xmm(to)?;
            self.vextracti128(half, ymm(from)?, 1)?;
        }
        if signed {
            self.vpmovsxdq(ymm(to)?, half)?;
        } else {
            self.vpmovzxdq(ymm(to)?, half)?;
        }
        Ok(())
    }

    fn narrow(&mut self, first: Vector, second: Vector, _: Vector) -> Result {
        // The even elements of both, in each half of a register, and then in order.
        self.vshufps(S, ymm(first)?, ymm(second)?, 0b10_00_10_00)?;
        Ok(self.vpermq(S, S, 0b11_01_10_00)?)
    }

    fn join_low(&mut self, upper: Vector) -> Result {
        Ok(self.vinserti128(S, S, xmm(upper)?, 1)?)
    }

    fn and_place(&mut self, dst: Destination, a: Vector, place: AsmMemoryOperand) -> Result {
        Ok(self.vpand(ymm(dst.register)?, ymm(a)?, place)?)
    }

    fn shift(&mut self, to: Vector, from: Vector, distance: i32, signed: bool) -> Result {
        let (to, from) = (ymm(to)?, ymm(from)?);
        match (distance > 0, signed) {
            (true, _) => self.vpslld(to, from, distance)?,
            (false, true) => self.vpsrad(to, from, -distance)?,
            (false, false) => self.vpsrld(to, from, -distance)?,
        }
        Ok(())
    }

    fn upper_down(&mut self, to: Vector, from: Vector) -> Result {
        Ok(self.vpsrlq(ymm(to)?, ymm(from)?, 32)?)
    }

    fn lower_up(&mut self, to: Vector, from: Vector) -> Result {
        Ok(self.vpsllq(ymm(to)?, ymm(from)?, 32)?)
    }

    fn single_to_half(&mut self, from: Vector, format: Half, rounding: Rounding, other: Vector) -> Result {
        let a = ymm(from)?;
        match format {
            Half::F16 => {
                self.vcvtps2ph(xmm(other)?, a, rounding_operand(rounding)?)?;
                self.vpmovzxwd(S, xmm(other)?)?;
            }
            Half::Bf16 if rounding == Rounding::TowardZero => self.vpsrld(S, a, 16)?,
            Half::Bf16 => {
                // To nearest: half of the last place is added, and of two that are as near the even one results.
                let (one, half) = (self.singles(1), self.singles(0x7fff));
                self.vpsrld(S, a, 16)?;
                self.vpand(S, S, one)?;
                self.vpaddd(S, S, half)?;
                self.vpaddd(S, S, a)?;
                self.vpsrld(S, S, 16)?;
            }
        }
        let nan = self.singles(0x7fff);
        self.nans(a, false)?;
        self.vmovdqu(ymm(other)?, nan)?;
        Ok(self.vblendvps(S, S, ymm(other)?, T)?)
    }

    fn integral(&mut self, dst: Destination, from: Vector, rounding: Rounding) -> Result {
        Ok(self.vroundps(ymm(dst.register)?, ymm(from)?, 8 | rounding_operand(rounding)?)?)
    }

    fn multiply_high(&mut self, a: Vector, b: Vector, signed: bool, other: Vector) -> Result {
        let (a, b, other) = (ymm(a)?, ymm(b)?, ymm(other)?);
        let multiply = |this: &mut Self, to, a, b| -> Result {
            if signed {
                this.vpmuldq(to, a, b)?;
            } else {
                this.vpmuludq(to, a, b)?;
            }
            Ok(())
        };
        self.vpsrlq(S, a, 32)?;
        self.vpsrlq(other, b, 32)?;
        multiply(self, S, S, other)?;
        multiply(self, other, a, b)?;
        self.vpsrlq(other, other, 32)?;
        // The odd elements have the products of odd elements.
        Ok(self.vpblendd(S, other, S, 0b1010_1010)?)
    }

    fn half_to_single(&mut self, to: Vector, from: Vector, upper: bool, format: Half) -> Result {
        let (register, from) = (ymm(to)?, ymm(from)?);
        match (format, upper) {
            (Half::Bf16, false) => return Ok(self.vpslld(register, from, 16)?),
            (Half::Bf16, true) => {
                let high = self.singles(0xffff_0000);
                return Ok(self.vpand(register, from, high)?);
            }
            (Half::F16, false) => {
                self.vpslld(register, from, 16)?;
                self.vpsrld(register, register, 16)?;
            }
            (Half::F16, true) => self.vpsrld(register, from, 16)?,
        }
        // Both halves of the register hold theirs twice.
        self.vpackusdw(register, register, register)?;
        self.vpermq(register, register, 0b10_00)?;
        Ok(self.vcvtph2ps(register, xmm(to)?)?)
    }

    fn join_low_and_high(&mut self, low: Vector) -> Result {
        Ok(self.vpblendw(S, S, ymm(low)?, 0b0101_0101)?)
    }

    fn multiply_halves(&mut self, other: Vector, signed: bool) -> Result {
        let other = ymm(other)?;
        if signed {
            self.vpmuldq(S, S, other)?;
        } else {
            self.vpmuludq(S, S, other)?;
        }
        Ok(())
    }

    fn multiply(&mut self, a: Vector, b: Vector, wide: bool) -> Result {
        let (a, b) = (ymm(a)?, ymm(b)?);
        if !wide {
            return Ok(self.vpmulld(S, a, b)?);
        }
        // The products of a low half and a high one go up.
        self.vpsrlq(S, a, 32)?;
        self.vpmuludq(S, S, b)?;
        self.vpsrlq(T, b, 32)?;
        self.vpmuludq(T, T, a)?;
        self.vpaddq(S, S, T)?;
        self.vpsllq(S, S, 32)?;
        self.vpmuludq(T, a, b)?;
        Ok(self.vpaddq(S, S, T)?)
    }

    fn bits(&mut self, dst: Destination, op: Bits, wide: bool, a: Vector, b: Vector) -> Result {
        let to = ymm(dst.register)?;
        match op {
            Bits::Mul => {
                self.multiply(a, b, wide)?;
                return self.copy(dst, Self::SCRATCH, wide);
            }
            Bits::Copy => return self.copy(dst, a, wide),
            _ => {}
        }
        let (a, b) = (ymm(a)?, ymm(b)?);
        match op {
            Bits::And => self.vpand(to, a, b)?,
            Bits::Or => self.vpor(to, a, b)?,
            Bits::Xor => self.vpxor(to, a, b)?,
            Bits::Not => {
                self.vpcmpeqd(T, T, T)?;
                self.vpxor(to, a, T)?;
            }
            _ if wide => self.wide_bits(to, op, a, b)?,
            _ => self.narrow_bits(to, op, a, b)?,
        }
        Ok(())
    }

    fn float(
        &mut self,
        dst: Destination,
        op: Float,
        wide: bool,
        rounding: Rounding,
        sources: [Vector; 3],
    ) -> Result {
        self.rounded(rounding, |host| host.float_as_host(dst.register, op, wide, sources))
    }

    fn extreme(&mut self, op: Float, wide: bool, a: Vector, b: Vector) -> Result {
        let (a, b) = (ymm(a)?, ymm(b)?);
        // The host returns the second of two zeros, and of two values that do not compare. So either way round.
        match (op == Float::Min, wide) {
            (true, true) => {
                self.vminpd(S, a, b)?;
                self.vminpd(T, b, a)?;
            }
            (true, false) => {
                self.vminps(S, a, b)?;
                self.vminps(T, b, a)?;
            }
            (false, true) => {
                self.vmaxpd(S, a, b)?;
                self.vmaxpd(T, b, a)?;
            }
            (false, false) => {
                self.vmaxps(S, a, b)?;
                self.vmaxps(T, b, a)?;
            }
        }
        if op == Float::Min {
            self.vpor(S, S, T)?;
        } else {
            self.vpand(S, S, T)?;
        }
        self.nans(a, wide)?;
        self.vblendvps(S, S, b, T)?;
        self.nans(b, wide)?;
        Ok(self.vblendvps(S, S, a, T)?)
    }

    fn float_scalar(
        &mut self,
        op: Float,
        rounding: Rounding,
        x: AsmRegisterXmm,
        y: AsmRegisterXmm,
        factor: AsmRegisterXmm,
    ) -> Result {
        self.rounded(rounding, |host| {
            match op {
                Float::Add => host.vaddss(x, x, y)?,
                Float::Sub => host.vsubss(x, x, y)?,
                Float::Mul => host.vmulss(x, x, y)?,
                Float::Div => host.vdivss(x, x, y)?,
                Float::Sqrt => host.vsqrtss(x, x, x)?,
                Float::Rcp => host.vdivss(x, y, x)?,
                Float::Fma => host.vfmadd213ss(x, factor, y)?,
                Float::Min | Float::Max => return Err(Refused),
            }
            Ok(())
        })
    }

    fn canonicalize(&mut self, register: Vector) -> Result {
        let (register, nan) = (ymm(register)?, self.singles(NAN_BITS));
        self.nans(register, false)?;
        Ok(self.vblendvps(register, register, nan, T)?)
    }

    fn round_to_integer(
        &mut self,
        a: Vector,
        signed: bool,
        rounding: Rounding,
        other: Option<Vector>,
    ) -> Result {
        let (a, operand) = (ymm(a)?, 8 | rounding_operand(rounding)?);
        self.vroundps(S, a, operand)?;
        if signed {
            // The host makes the least integer of numbers that are too large: its complement is the greatest.
            let bound = self.singles(2f32.powi(31).to_bits());
            self.vcvttps2dq(S, S)?;
            self.vcmpps(T, a, bound, float_predicate(CmpOp::Ge))?;
            self.vpxor(S, S, T)?;
            self.vcmpps(T, a, a, ORDERED)?;
            return Ok(self.vpand(S, S, T)?);
        }
        let other = ymm(other.ok_or(Refused)?)?;
        let (zero, half) = (self.singles(0), self.singles(2f32.powi(31).to_bits()));
        let bound = self.singles(2f32.powi(32).to_bits());
        // Of a NaN the host returns the second one.
        self.vmaxps(S, S, zero)?;
        // Numbers that are too large for signed integers have the sign bit and those of what is above. The host makes the
        // least integer of both parts if they are too large, which is the sign bit.
        self.vsubps(other, S, half)?;
        self.vcvttps2dq(other, other)?;
        self.vcmpps(T, S, bound, float_predicate(CmpOp::Ge))?;
        self.vpor(other, other, T)?;
        self.vcvttps2dq(S, S)?;
        self.vpsrad(T, S, 31)?;
        self.vpand(other, other, T)?;
        Ok(self.vpor(S, S, other)?)
    }

    fn double_sign(&mut self, op: Bits, a: Vector) -> Result {
        let (a, sign, quiet) = (ymm(a)?, self.signs(true), self.constant([QUIET; 8]));
        // A NaN keeps its sign and becomes quiet.
        self.vcmppd(T, a, a, ORDERED)?;
        self.vpand(T, T, sign)?;
        match op {
            Bits::AbsFloat => self.vpandn(S, T, a)?,
            _ => self.vpxor(S, T, a)?,
        }
        self.nans(a, true)?;
        self.vpand(T, T, quiet)?;
        Ok(self.vpor(S, S, T)?)
    }

    fn double_from_wide(&mut self, dst: Destination, a: Vector, signed: bool, rounding: Rounding) -> Result {
        let (dst, a) = (ymm(dst.register)?, ymm(a)?);
        // The upper bits and the lower ones become numbers by exponents that fit. Only their sum is rounded.
        let low = self.doubles(2f64.powi(52));
        if signed {
            let (zero, high) = (self.constant([0; 8]), self.doubles(3.0 * 2f64.powi(67)));
            let both = self.doubles(3.0 * 2f64.powi(67) + 2f64.powi(52));
            self.vpsrad(T, a, 16)?;
            self.vpblendw(T, T, zero, 0b0011_0011)?;
            self.vpaddq(T, T, high)?;
            self.vsubpd(T, T, both)?;
            self.vpblendw(dst, a, low, 0b1000_1000)?;
        } else {
            let (high, both) = (self.doubles(2f64.powi(84)), self.doubles(2f64.powi(84) + 2f64.powi(52)));
            self.vpsrlq(T, a, 32)?;
            self.vpor(T, T, high)?;
            self.vsubpd(T, T, both)?;
            self.vpblendw(dst, a, low, 0b1100_1100)?;
        }
        self.rounded(rounding, |host| Ok(host.vaddpd(dst, dst, T)?))?;
        if rounding == Rounding::TowardNegative {
            // The sum for zero is -0.
            let zero = self.doubles(0.0);
            self.vcmppd(T, dst, zero, float_predicate(CmpOp::Eq))?;
            self.vpandn(dst, T, dst)?;
        }
        Ok(())
    }

    fn double_from_half(
        &mut self,
        dst: Destination,
        from: Vector,
        upper: bool,
        conversion: Conversion,
    ) -> Result {
        let mut half = xmm(from)?;
        if upper {
            half = xmm15;
            self.vextracti128(half, ymm(from)?, 1)?;
        }
        let dst = ymm(dst.register)?;
        match conversion {
            Conversion::FromSigned => self.vcvtdq2pd(dst, half)?,
            Conversion::FromUnsigned => {
                let power = self.doubles(2f64.powi(52));
                self.vpmovzxdq(T, half)?;
                self.vpor(T, T, power)?;
                self.vsubpd(dst, T, power)?;
            }
            _ => self.vcvtps2pd(dst, half)?,
        }
        Ok(())
    }

    fn narrow_double(&mut self, to: Vector, a: Vector, conversion: Conversion, rounding: Rounding) -> Result {
        let (to, a) = (xmm(to)?, ymm(a)?);
        if conversion == Conversion::ToSingle {
            return self.rounded(rounding, |host| Ok(host.vcvtpd2ps(to, a)?));
        }
        // Of a NaN the host returns the second one, and makes the least integer of it.
        let greatest = self.doubles(i32::MAX.into());
        self.vmovdqu(T, greatest)?;
        self.vminpd(T, T, a)?;
        self.vroundpd(T, T, 8 | rounding_operand(rounding)?)?;
        Ok(self.vcvttpd2dq(to, T)?)
    }

    fn compare_float(&mut self, _: Mask, op: CmpOp, wide: bool, a: Vector, b: Vector) -> Result {
        let (a, b, op) = (ymm(a)?, ymm(b)?, float_predicate(op));
        if wide {
            self.vcmppd(T, a, b, op)?;
        } else {
            self.vcmpps(T, a, b, op)?;
        }
        Ok(())
    }

    fn compare_integer(
        &mut self,
        _: Mask,
        op: CmpOp,
        unsigned: bool,
        wide: bool,
        a: Vector,
        b: Vector,
    ) -> Result {
        let (a, b) = (ymm(a)?, ymm(b)?);
        let unsigned = unsigned || matches!(op, CmpOp::Lo | CmpOp::Ls | CmpOp::Hs | CmpOp::Hi);
        // The host compares for equal and greater ones.
        let (swapped, complement) = match op {
            CmpOp::Eq | CmpOp::Gt | CmpOp::Hi => (false, false),
            CmpOp::Lt | CmpOp::Lo => (true, false),
            CmpOp::Ne | CmpOp::Le | CmpOp::Ls => (false, true),
            CmpOp::Ge | CmpOp::Hs => (true, true),
            _ => return Err(Refused),
        };
        let [a, b] = if swapped { [b, a] } else { [a, b] };
        match op {
            CmpOp::Eq | CmpOp::Ne if wide => self.vpcmpeqq(T, a, b)?,
            CmpOp::Eq | CmpOp::Ne => self.vpcmpeqd(T, a, b)?,
            _ if unsigned => self.above(a, b, wide)?,
            _ => self.greater(a, b, wide)?,
        }
        if complement {
            self.vpcmpeqd(S, S, S)?;
            self.vpxor(T, T, S)?;
        }
        Ok(())
    }

    fn other_nans(&mut self, a: Vector, nan: AsmMemoryOperand) -> Result {
        let a = ymm(a)?;
        self.vpcmpeqq(T, a, nan)?;
        // Zero instead of this one.
        self.vpandn(T, T, a)?;
        self.nans(T, true)
    }

    fn keep_nans(&mut self, from: Vector) -> Result {
        let (a, quiet) = (ymm(from)?, self.constant([QUIET; 8]));
        self.nans(a, true)?;
        self.vblendvpd(S, S, a, T)?;
        self.vpand(T, T, quiet)?;
        Ok(self.vpor(S, S, T)?)
    }
}
