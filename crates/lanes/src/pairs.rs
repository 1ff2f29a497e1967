//! Mixed precision in pairs (PTX 9.4): a lane has two halves and two binary32 numbers, or receives two halves
//! computed from binary32 numbers.

use super::directed::{DOWN, UP, ZERO, narrow, sum};
use super::drive::{Bf16, F16, Half, apply2, in_pairs, load, map2, map3, store};
use super::float::{finish, flush};
use super::half::to_odd_f32;
use super::path::{BLOCK, Kernel, Path, version};
use super::{HostPath, LaneArgs, LaneFn, only};
use isa::{Mod, Opcode, Picks, Rounding, Type};
use std::marker::PhantomData;

/// In addition to the directions of [`directed`](super::directed).
const NEAREST: u8 = 3;

/// Element `n` of two halves (bfloat16 or binary16) in binary32; a NaN becomes some NaN.
#[inline(always)]
fn half<const BF16: bool>(pair: u32, n: u32) -> f32 {
    let bits = pair >> (16 * n) & 0xffff;
    if BF16 {
        return f32::from_bits(bits << 16);
    }
    let (sign, magnitude) = ((bits & 0x8000) << 16, bits & 0x7fff);
    // The exponents' biases differ by 112, also for subnormal numbers. Infinities and NaNs have the greatest
    // exponent.
    let number = f32::from_bits(magnitude << 13) * f32::from_bits((127 + 112) << 23);
    let special = 0x7f80_0000 | magnitude << 13;
    f32::from_bits(sign | if magnitude < 0x7c00 { number.to_bits() } else { special })
}

/// Element `n` of two binary32 numbers.
#[inline(always)]
fn single(pair: u64, n: u32) -> f32 {
    f32::from_bits((pair >> (32 * n)) as u32)
}

/// Both elements, computed by `f`.
#[inline(always)]
fn singles(f: impl Fn(u32) -> f32) -> u64 {
    u64::from(f(0).to_bits()) | u64::from(f(1).to_bits()) << 32
}

/// d = a + c, or a - c.
fn add<const BF16: bool, const NEGATE: bool, const TO: u8>(path: HostPath) -> LaneFn {
    map2(path, |a: u32, c: u64| {
        singles(|n| {
            let (a, c) = (half::<BF16>(a, n), single(c, n));
            let c = if NEGATE { -c } else { c };
            finish::<false>(if TO == NEAREST { a + c } else { narrow::<TO>(sum::<TO>(a.into(), c.into())) })
        })
    })
}

/// d = a * b + c. binary64 represents the product of a half and a binary32 number exactly.
fn fma<const BF16: bool, const TO: u8>(path: HostPath) -> LaneFn {
    map3(path, |a: u32, b: u64, c: u64| {
        singles(|n| {
            let (a, b, c) = (half::<BF16>(a, n), single(b, n), single(c, n));
            finish::<false>(if TO == NEAREST {
                a.mul_add(b, c)
            } else {
                narrow::<TO>(sum::<TO>(f64::from(a) * f64::from(b), c.into()))
            })
        })
    })
}

/// Converts a number to a half, toward zero; a NaN becomes the canonical one.
#[inline(always)]
fn half_toward_zero<const BF16: bool>(x: f32) -> u32 {
    let bits = x.to_bits();
    if BF16 {
        return bits >> 16;
    }
    let magnitude = bits & 0x7fff_ffff;
    let rounded = match magnitude {
        // Below the normal numbers, a half is a multiple of 2^-24.
        ..0x3880_0000 => (f32::from_bits(magnitude) * (1 << 24) as f32) as u32,
        0x3880_0000..0x4780_0000 => (magnitude - (112 << 23)) >> 13,
        // 2^16 and above become the greatest finite number.
        0x4780_0000..0x7f80_0000 => 0x7bff,
        0x7f80_0000 => 0x7c00,
        _ => return 0x7fff,
    };
    bits >> 16 & 0x8000 | rounded
}

const ADD: u8 = 0;
const SUB: u8 = 1;
const MUL: u8 = 2;

/// a + b, a - b or a * b of binary32 numbers, converted to halves toward zero; binary16 with `.ftz`.
fn to_halves<const BF16: bool, const OPERATION: u8>(path: HostPath) -> LaneFn {
    map2(path, |a: u64, b: u64| {
        let element = |n: u32| {
            let (a, b) = (single(a, n), single(b, n));
            let (a, b) = if BF16 { (a, b) } else { (flush::<true>(a), flush::<true>(b)) };
            let (a, b) = (f64::from(a), f64::from(b));
            let exact = match OPERATION {
                ADD => sum::<ZERO>(a, b),
                SUB => sum::<ZERO>(a, -b),
                _ => (a * b, 0.0),
            };
            half_toward_zero::<BF16>(finish::<false>(narrow::<ZERO>(exact)))
        };
        element(0) | element(1) << 16
    })
}

/// d = a * b of halves of two formats, rounded to nearest in a's format.
struct Mul<A, B>(PhantomData<(A, B)>);

impl<A: Half, B: Half> Kernel for Mul<A, B> {
    #[inline(always)]
    unsafe fn run<P: Path>(path: P, args: &LaneArgs) {
        // The product is exact in binary64, but not in binary32, because it may exceed bfloat16's exponent range.
        let mul = |a: f32, b: f32| to_odd_f32(f64::from(a) * f64::from(b));
        for i in 0..args.lanes / BLOCK {
            // SAFETY: the sources and the destination have `lanes` halves.
            unsafe {
                let (a, b) = (A::widen(path, load(args, 0, i)), B::widen(path, load(args, 1, i)));
                store(path, args, 0, i, A::narrow(path, apply2(mul, a, b)));
            }
        }
    }
}

/// The handler of a form with an `.f32x2` result.
fn singles_of<const BF16: bool>(
    opcode: Opcode,
    sources: usize,
    picks: &Picks,
    path: HostPath,
) -> Option<LaneFn> {
    fn to<const BF16: bool, const TO: u8>(opcode: Opcode, sources: usize, path: HostPath) -> Option<LaneFn> {
        Some(match (opcode, sources) {
            (Opcode::Add, 2) => add::<BF16, false, TO>(path),
            (Opcode::Sub, 2) => add::<BF16, true, TO>(path),
            (Opcode::Fma, 3) => fma::<BF16, TO>(path),
            _ => return None,
        })
    }
    match picks.rounding().unwrap_or(Rounding::NearestEven) {
        Rounding::NearestEven => to::<BF16, NEAREST>(opcode, sources, path),
        Rounding::TowardZero => to::<BF16, ZERO>(opcode, sources, path),
        Rounding::TowardNegative => to::<BF16, DOWN>(opcode, sources, path),
        Rounding::TowardPositive => to::<BF16, UP>(opcode, sources, path),
        Rounding::NearestAway => None,
    }
}

/// The handler of a form that converts `.f32x2` results to halves.
fn halves_of<const BF16: bool>(opcode: Opcode, path: HostPath) -> Option<LaneFn> {
    Some(match opcode {
        Opcode::Add => to_halves::<BF16, ADD>(path),
        Opcode::Sub => to_halves::<BF16, SUB>(path),
        Opcode::Mul => to_halves::<BF16, MUL>(path),
        _ => return None,
    })
}

/// The handler of a mixed form in pairs.
pub(super) fn find(opcode: Opcode, sources: usize, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    if !only(picks, &[Mod::Rn, Mod::Rz, Mod::Rm, Mod::Rp, Mod::Ftz]) {
        return None;
    }
    let ftz = picks.has(Mod::Ftz);
    match (picks.types(), sources) {
        ([Type::F32x2, Type::F16x2, Type::F32x2, ..], _) if !ftz => {
            singles_of::<false>(opcode, sources, picks, path)
        }
        ([Type::F32x2, Type::Bf16x2, Type::F32x2, ..], _) if !ftz => {
            singles_of::<true>(opcode, sources, picks, path)
        }
        ([Type::F16x2, Type::F32x2, Type::F32x2], 2) if ftz => halves_of::<false>(opcode, path),
        ([Type::Bf16x2, Type::F32x2, Type::F32x2], 2) if !ftz => halves_of::<true>(opcode, path),
        ([Type::F16x2, Type::F16x2, Type::Bf16x2], 2) if opcode == Opcode::Mul => {
            Some(in_pairs(2, version::<Mul<F16, Bf16>>(path)))
        }
        ([Type::Bf16x2, Type::Bf16x2, Type::F16x2], 2) if opcode == Opcode::Mul => {
            Some(in_pairs(2, version::<Mul<Bf16, F16>>(path)))
        }
        _ => None,
    }
}
