//! What the host computes.

use iced_x86::code_asm::{AsmMemoryOperand, AsmRegisterXmm, k7};
use isa::{CmpOp, Rounding};

use super::super::host::QUIET;
use super::super::operations::{float_predicate, integer_predicate, rounding_operand};
use super::super::{Refused, Result};
use super::{
    Arithmetic, Avx512, Destination, HostVectors, MASK, Mask, NAN, S, Vector, destination, k, low, zmm,
};
use crate::operation::{Bits, Conversion, Float, Half};

/// The last operand of an instruction, with its rounding.
macro_rules! rounded {
    ($last:expr, $rounding:expr) => {
        match $rounding {
            Rounding::NearestEven => $last.rn_sae(),
            Rounding::TowardZero => $last.rz_sae(),
            Rounding::TowardNegative => $last.rd_sae(),
            Rounding::TowardPositive => $last.ru_sae(),
            _ => return Err(Refused),
        }
    };
}

impl Arithmetic for Avx512 {
    fn add_vectors(&mut self, dst: Destination, a: Vector, b: Vector, wide: bool) -> Result {
        let (dst, a, b) = (destination(dst)?, zmm(a)?, zmm(b)?);
        if wide {
            self.vpaddq(dst, a, b)?;
        } else {
            self.vpaddd(dst, a, b)?;
        }
        Ok(())
    }

    fn add_place(&mut self, dst: Destination, a: Vector, place: AsmMemoryOperand, wide: bool) -> Result {
        let (dst, a) = (destination(dst)?, zmm(a)?);
        if wide {
            self.vpaddq(dst, a, place)?;
        } else {
            self.vpaddd(dst, a, place)?;
        }
        Ok(())
    }

    fn widen(&mut self, to: Vector, from: Vector, upper: bool, signed: bool) -> Result {
        let mut half = low(from)?;
        if upper {
            half = low(to)?;
            self.vextracti32x8(half, zmm(from)?, 1)?;
        }
        if signed {
            self.vpmovsxdq(zmm(to)?, half)?;
        } else {
            self.vpmovzxdq(zmm(to)?, half)?;
        }
        Ok(())
    }

    fn narrow(&mut self, first: Vector, second: Vector, other: Vector) -> Result {
        self.vpmovqd(low(Self::SCRATCH)?, zmm(first)?)?;
        self.vpmovqd(low(other)?, zmm(second)?)?;
        self.join_low(other)
    }

    fn join_low(&mut self, upper: Vector) -> Result {
        Ok(self.vinserti32x8(S, S, low(upper)?, 1)?)
    }

    fn and_place(&mut self, dst: Destination, a: Vector, place: AsmMemoryOperand) -> Result {
        Ok(self.vpandd(destination(dst)?, zmm(a)?, place)?)
    }

    fn shift(&mut self, to: Vector, from: Vector, distance: i32, signed: bool) -> Result {
        let (to, from) = (zmm(to)?, zmm(from)?);
        match (distance > 0, signed) {
            (true, _) => self.vpslld(to, from, distance)?,
            (false, true) => self.vpsrad(to, from, -distance)?,
            (false, false) => self.vpsrld(to, from, -distance)?,
        }
        Ok(())
    }

    fn upper_down(&mut self, to: Vector, from: Vector) -> Result {
        Ok(self.vpsrlq(zmm(to)?, zmm(from)?, 32)?)
    }

    fn lower_up(&mut self, to: Vector, from: Vector) -> Result {
        Ok(self.vpsllq(zmm(to)?, zmm(from)?, 32)?)
    }

    fn single_to_half(&mut self, from: Vector, format: Half, rounding: Rounding, other: Vector) -> Result {
        let a = zmm(from)?;
        match format {
            Half::F16 => {
                self.vcvtps2ph(low(other)?, a, rounding_operand(rounding)?)?;
                self.vpmovzxwd(S, low(other)?)?;
            }
            Half::Bf16 if rounding == Rounding::TowardZero => self.vpsrld(S, a, 16)?,
            Half::Bf16 => {
                // To nearest: half of the last place is added, and of two that are as near the even one results.
                let (one, half) = (self.constant([0x1_0000_0001; 8]), self.constant([0x7fff_0000_7fff; 8]));
                self.vpsrld(S, a, 16)?;
                self.vpandd(S, S, one)?;
                self.vpaddd(S, S, half)?;
                self.vpaddd(S, S, a)?;
                self.vpsrld(S, S, 16)?;
            }
        }
        let nan = self.constant([0x7fff_0000_7fff; 8]);
        self.vcmpunordps(k7, a, a)?;
        Ok(self.vmovdqu32(S.k7(), nan)?)
    }

    fn integral(&mut self, dst: Destination, from: Vector, rounding: Rounding) -> Result {
        Ok(self.vrndscaleps(destination(dst)?, zmm(from)?, 8 | rounding_operand(rounding)?)?)
    }

    fn multiply_high(&mut self, a: Vector, b: Vector, signed: bool, other: Vector) -> Result {
        let (a, b, other) = (zmm(a)?, zmm(b)?, zmm(other)?);
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
        let upper = self.constant([0xffff_ffff_0000_0000; 8]);
        self.vpandd(S, S, upper)?;
        Ok(self.vpord(S, S, other)?)
    }

    fn half_to_single(&mut self, to: Vector, from: Vector, upper: bool, format: Half) -> Result {
        let (register, from, half) = (zmm(to)?, zmm(from)?, low(to)?);
        match (format, upper) {
            (Half::Bf16, false) => return Ok(self.vpslld(register, from, 16)?),
            (Half::Bf16, true) => {
                let high = self.constant([0xffff_0000_ffff_0000; 8]);
                return Ok(self.vpandd(register, from, high)?);
            }
            (Half::F16, false) => self.vpmovdw(half, from)?,
            (Half::F16, true) => {
                self.vpsrld(register, from, 16)?;
                self.vpmovdw(half, register)?;
            }
        }
        Ok(self.vcvtph2ps(register, half)?)
    }

    fn join_low_and_high(&mut self, low: Vector) -> Result {
        const LOW_WHERE_SET: i32 = 0xd8;
        let mask = self.constant([0xffff_0000_ffff; 8]);
        Ok(self.vpternlogd(S, zmm(low)?, mask, LOW_WHERE_SET)?)
    }

    fn multiply_halves(&mut self, other: Vector, signed: bool) -> Result {
        let other = zmm(other)?;
        if signed {
            self.vpmuldq(S, S, other)?;
        } else {
            self.vpmuludq(S, S, other)?;
        }
        Ok(())
    }

    fn multiply(&mut self, a: Vector, b: Vector, wide: bool) -> Result {
        let (a, b) = (zmm(a)?, zmm(b)?);
        if wide {
            self.vpmullq(S, a, b)?;
        } else {
            self.vpmulld(S, a, b)?;
        }
        Ok(())
    }

    fn bits(&mut self, dst: Destination, op: Bits, wide: bool, a: Vector, b: Vector) -> Result {
        let (dst, a, b) = (destination(dst)?, zmm(a)?, zmm(b)?);
        match (op, wide) {
            (Bits::Add, true) => self.vpaddq(dst, a, b)?,
            (Bits::Add, false) => self.vpaddd(dst, a, b)?,
            (Bits::Sub, true) => self.vpsubq(dst, a, b)?,
            (Bits::Sub, false) => self.vpsubd(dst, a, b)?,
            (Bits::Mul, true) => self.vpmullq(dst, a, b)?,
            (Bits::Mul, false) => self.vpmulld(dst, a, b)?,
            (Bits::MinSigned, true) => self.vpminsq(dst, a, b)?,
            (Bits::MinSigned, false) => self.vpminsd(dst, a, b)?,
            (Bits::MinUnsigned, true) => self.vpminuq(dst, a, b)?,
            (Bits::MinUnsigned, false) => self.vpminud(dst, a, b)?,
            (Bits::MaxSigned, true) => self.vpmaxsq(dst, a, b)?,
            (Bits::MaxSigned, false) => self.vpmaxsd(dst, a, b)?,
            (Bits::MaxUnsigned, true) => self.vpmaxuq(dst, a, b)?,
            (Bits::MaxUnsigned, false) => self.vpmaxud(dst, a, b)?,
            (Bits::And, true) => self.vpandq(dst, a, b)?,
            (Bits::And, false) => self.vpandd(dst, a, b)?,
            (Bits::Or, true) => self.vporq(dst, a, b)?,
            (Bits::Or, false) => self.vpord(dst, a, b)?,
            (Bits::Xor, true) => self.vpxorq(dst, a, b)?,
            (Bits::Xor, false) => self.vpxord(dst, a, b)?,
            // The complement of the first operand.
            (Bits::Not, true) => self.vpternlogq(dst, a, a, 0x55)?,
            (Bits::Not, false) => self.vpternlogd(dst, a, a, 0x55)?,
            (Bits::Shl, true) => self.vpsllvq(dst, a, b)?,
            (Bits::Shl, false) => self.vpsllvd(dst, a, b)?,
            (Bits::ShrSigned, true) => self.vpsravq(dst, a, b)?,
            (Bits::ShrSigned, false) => self.vpsravd(dst, a, b)?,
            (Bits::ShrUnsigned, true) => self.vpsrlvq(dst, a, b)?,
            (Bits::ShrUnsigned, false) => self.vpsrlvd(dst, a, b)?,
            (Bits::Neg, true) => self.vpsubq(dst, S, a)?,
            (Bits::Neg, false) => self.vpsubd(dst, S, a)?,
            (Bits::AbsSigned, true) => self.vpabsq(dst, a)?,
            (Bits::AbsSigned, false) => self.vpabsd(dst, a)?,
            (Bits::AbsFloat, false) => self.vpandd(dst, a, S)?,
            (Bits::NegFloat, false) => self.vpxord(dst, a, S)?,
            (Bits::FromSigned, false) => self.vcvtdq2ps(dst, a)?,
            (Bits::FromUnsigned, false) => self.vcvtudq2ps(dst, a)?,
            (Bits::Copy, true) => self.vmovdqa64(dst, a)?,
            (Bits::Copy, false) => self.vmovdqa32(dst, a)?,
            // `on_bits` has the first. There are no others of 64 bits.
            (Bits::Mad | Bits::AbsFloat | Bits::NegFloat | Bits::FromSigned | Bits::FromUnsigned, _) => {}
            // `mul_high` and `flushed_sign` have these.
            (Bits::MulHighSigned | Bits::MulHighUnsigned | Bits::AbsFlushed | Bits::NegFlushed, _) => {
                return Err(Refused);
            }
        }
        Ok(())
    }

    fn float(
        &mut self,
        dst: Destination,
        op: Float,
        wide: bool,
        rounding: Rounding,
        [first, second, third]: [Vector; 3],
    ) -> Result {
        let (to, a, b) = (destination(dst)?, zmm(first)?, zmm(second)?);
        let last = rounded!(b, rounding);
        match (op, wide) {
            (Float::Add, true) => self.vaddpd(to, a, last)?,
            (Float::Add, false) => self.vaddps(to, a, last)?,
            (Float::Sub, true) => self.vsubpd(to, a, last)?,
            (Float::Sub, false) => self.vsubps(to, a, last)?,
            (Float::Mul, true) => self.vmulpd(to, a, last)?,
            (Float::Mul, false) => self.vmulps(to, a, last)?,
            (Float::Div, true) => self.vdivpd(to, a, last)?,
            (Float::Div, false) => self.vdivps(to, a, last)?,
            (Float::Sqrt, true) => self.vsqrtpd(to, rounded!(a, rounding))?,
            (Float::Sqrt, false) => self.vsqrtps(to, rounded!(a, rounding))?,
            // The scratch register has ones.
            (Float::Rcp, true) => self.vdivpd(to, S, rounded!(a, rounding))?,
            (Float::Rcp, false) => self.vdivps(to, S, rounded!(a, rounding))?,
            (Float::Fma, _) => {
                let addend = rounded!(zmm(third)?, rounding);
                // The result takes the place of an operand.
                let factor = match dst.register {
                    register if register == first => Some(b),
                    register if register == second => Some(a),
                    _ => None,
                };
                match (factor, wide) {
                    (Some(factor), true) => self.vfmadd213pd(to, factor, addend)?,
                    (Some(factor), false) => self.vfmadd213ps(to, factor, addend)?,
                    (None, _) => {
                        if dst.register != third {
                            self.copy(dst, third, wide)?;
                        }
                        if wide {
                            self.vfmadd231pd(to, a, last)?;
                        } else {
                            self.vfmadd231ps(to, a, last)?;
                        }
                    }
                }
            }
            (Float::Min | Float::Max, _) => return Err(Refused),
        }
        Ok(())
    }

    fn extreme(&mut self, op: Float, wide: bool, first: Vector, second: Vector) -> Result {
        let (a, b) = (zmm(first)?, zmm(second)?);
        // The host returns the second of two zeros, and of two values that do not compare.
        self.compare_float(MASK, CmpOp::Eq, wide, first, second)?;
        match (op == Float::Min, wide) {
            (true, true) => {
                self.vminpd(S, a, b)?;
                self.vporq(S.k7(), a, b)?;
            }
            (true, false) => {
                self.vminps(S, a, b)?;
                self.vpord(S.k7(), a, b)?;
            }
            (false, true) => {
                self.vmaxpd(S, a, b)?;
                self.vpandq(S.k7(), a, b)?;
            }
            (false, false) => {
                self.vmaxps(S, a, b)?;
                self.vpandd(S.k7(), a, b)?;
            }
        }
        if wide {
            self.vcmpunordpd(k7, b, b)?;
        } else {
            self.vcmpunordps(k7, b, b)?;
        }
        self.copy(Destination { register: Self::SCRATCH, mask: Some(MASK) }, first, wide)
    }

    fn float_scalar(
        &mut self,
        op: Float,
        rounding: Rounding,
        x: AsmRegisterXmm,
        y: AsmRegisterXmm,
        factor: AsmRegisterXmm,
    ) -> Result {
        match op {
            Float::Add => self.vaddss(x, x, rounded!(y, rounding))?,
            Float::Sub => self.vsubss(x, x, rounded!(y, rounding))?,
            Float::Mul => self.vmulss(x, x, rounded!(y, rounding))?,
            Float::Div => self.vdivss(x, x, rounded!(y, rounding))?,
            Float::Sqrt => self.vsqrtss(x, x, rounded!(x, rounding))?,
            Float::Rcp => self.vdivss(x, y, rounded!(x, rounding))?,
            Float::Fma => self.vfmadd213ss(x, factor, rounded!(y, rounding))?,
            Float::Min | Float::Max => return Err(Refused),
        }
        Ok(())
    }

    fn canonicalize(&mut self, register: Vector) -> Result {
        let register = zmm(register)?;
        self.vcmpunordps(k7, register, register)?;
        Ok(self.vmovdqa32(register.k7(), NAN)?)
    }

    fn round_to_integer(&mut self, a: Vector, signed: bool, rounding: Rounding, _: Option<Vector>) -> Result {
        let number = zmm(a)?;
        let rounded = rounded!(number, rounding);
        if signed {
            // The host makes the least integer of numbers that are too large.
            self.vcvtps2dq(S, rounded)?;
            let bound = self.constant([u64::from(2f32.powi(31).to_bits()) * 0x1_0000_0001; 8]);
            self.vcmpps(k7, number, bound, float_predicate(CmpOp::Ge))?;
            let greatest = self.constant([0x7fff_ffff_7fff_ffff; 8]);
            self.vmovdqu32(S.k7(), greatest)?;
            self.vcmpps(k7, number, number, float_predicate(CmpOp::Nan))?;
        } else {
            // The host makes the greatest integer of numbers that are too large, and of negative ones.
            self.vcvtps2udq(S, rounded)?;
            let zero = self.constant([0; 8]);
            self.vcmpps(k7, number, zero, float_predicate(CmpOp::Ltu))?;
        }
        Ok(self.vpxord(S.k7(), S, S)?)
    }

    fn double_sign(&mut self, op: Bits, a: Vector) -> Result {
        let a = zmm(a)?;
        let sign = self.constant([1 << 63; 8]);
        self.vmovdqu64(S, sign)?;
        match op {
            Bits::AbsFloat => self.vpandnq(S, S, a)?,
            _ => self.vpxorq(S, S, a)?,
        }
        // A NaN keeps its sign and becomes quiet.
        let quiet = self.constant([QUIET; 8]);
        self.vcmpunordpd(k7, a, a)?;
        Ok(self.vporq(S.k7(), a, quiet)?)
    }

    fn double_from_wide(&mut self, dst: Destination, a: Vector, signed: bool, rounding: Rounding) -> Result {
        let (dst, a) = (destination(dst)?, rounded!(zmm(a)?, rounding));
        if signed {
            self.vcvtqq2pd(dst, a)?;
        } else {
            self.vcvtuqq2pd(dst, a)?;
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
        let mut half = low(from)?;
        if upper {
            half = low(Self::SCRATCH)?;
            self.vextracti32x8(half, zmm(from)?, 1)?;
        }
        let dst = destination(dst)?;
        match conversion {
            Conversion::FromSigned => self.vcvtdq2pd(dst, half)?,
            Conversion::FromUnsigned => self.vcvtudq2pd(dst, half)?,
            _ => self.vcvtps2pd(dst, half)?,
        }
        Ok(())
    }

    fn narrow_double(&mut self, to: Vector, a: Vector, conversion: Conversion, rounding: Rounding) -> Result {
        let (whole, to, a) = (zmm(to)?, low(to)?, zmm(a)?);
        if conversion == Conversion::ToSingle {
            let rounded = rounded!(a, rounding);
            return Ok(self.vcvtpd2ps(to, rounded)?);
        }
        // Numbers that round to more than the greatest integer become it. Of a NaN the host returns the second one, and makes the least
        // integer of it.
        let greatest = self.constant([f64::from(i32::MAX).to_bits(); 8]);
        self.vmovdqu64(whole, greatest)?;
        self.vminpd(whole, whole, a)?;
        let rounded = rounded!(whole, rounding);
        Ok(self.vcvtpd2dq(to, rounded)?)
    }

    fn compare_float(&mut self, to: Mask, op: CmpOp, wide: bool, a: Vector, b: Vector) -> Result {
        let (a, b, op) = (zmm(a)?, zmm(b)?, float_predicate(op));
        if wide {
            self.vcmppd(k(to), a, b, op)?;
        } else {
            self.vcmpps(k(to), a, b, op)?;
        }
        Ok(())
    }

    fn compare_integer(
        &mut self,
        to: Mask,
        op: CmpOp,
        unsigned: bool,
        wide: bool,
        a: Vector,
        b: Vector,
    ) -> Result {
        let (op, is_unsigned) = integer_predicate(op).ok_or(Refused)?;
        let (to, a, b) = (k(to), zmm(a)?, zmm(b)?);
        match (wide, unsigned || is_unsigned) {
            (true, true) => self.vpcmpuq(to, a, b, op)?,
            (true, false) => self.vpcmpq(to, a, b, op)?,
            (false, true) => self.vpcmpud(to, a, b, op)?,
            (false, false) => self.vpcmpd(to, a, b, op)?,
        }
        Ok(())
    }

    fn other_nans(&mut self, a: Vector, nan: AsmMemoryOperand) -> Result {
        const DIFFERS: i32 = 4;
        let a = zmm(a)?;
        self.vcmpunordpd(k7, a, a)?;
        Ok(self.vpcmpuq(k7.k7(), a, nan, DIFFERS)?)
    }

    fn keep_nans(&mut self, from: Vector) -> Result {
        let (from, quiet) = (zmm(from)?, self.constant([QUIET; 8]));
        self.vcmpunordpd(k7, from, from)?;
        Ok(self.vporq(S.k7(), from, quiet)?)
    }
}
