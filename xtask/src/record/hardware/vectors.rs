//! Operands: edges, numbers near one, and random bits.

use fastrand::Rng;
use isa::{Kind, Type};

/// Operands of `count` vectors, one vector after the other.
pub fn sources(types: &[Type], count: usize, random: &mut Rng) -> Vec<u64> {
    let mut values = Vec::with_capacity(types.len() * count);
    for _ in 0..count {
        for (i, &ty) in types.iter().enumerate() {
            let value = match i.checked_sub(1).map(|_| values[values.len() - 1]) {
                // Operands that are equal, or opposite, are an edge too.
                Some(before) if types[i - 1] == ty && random.u8(..) < 40 => {
                    before ^ u64::from(random.bool()) << (ty.bits() - 1)
                }
                _ => value(ty, random),
            };
            values.push(value);
        }
    }
    values
}

/// A value of a type, every lane of it by itself.
fn value(ty: Type, random: &mut Rng) -> u64 {
    let bits = ty.bits() / ty.lanes();
    (0..ty.lanes()).fold(0, |packed, lane| packed | scalar(ty, bits, random) << (lane * bits))
}

fn scalar(ty: Type, bits: u32, random: &mut Rng) -> u64 {
    let any = random.u64(..) & (u64::MAX >> (64 - bits));
    let Some(fraction) = fraction_bits(ty) else {
        let top = 1 << (bits - 1);
        let edges = [0, 1, 2, top - 1, top, top + 1, 2 * (top - 1), 2 * (top - 1) + 1];
        return if random.bool() { random.choice(edges).unwrap_or(any) & (top | (top - 1)) } else { any };
    };
    let sign = any & 1 << (bits - 1);
    let unit = 1 << fraction;
    let infinity = (1u64 << (bits - 1)) - unit;
    let one = (infinity >> 1) & !(unit - 1);
    match random.u8(..10) {
        0..5 => {
            let quiet = infinity | (unit / 2);
            let edges = [
                0,
                1,
                unit / 2,
                unit - 1,
                unit,
                unit + 1,
                one - unit,
                one - 1,
                one,
                one + 1,
                one + unit / 2,
                one + unit,
                infinity - 1,
                infinity,
                infinity + 1,
                quiet - 1,
                quiet,
                quiet + 1,
                quiet | (unit - 1),
            ];
            sign | random.choice(edges).unwrap_or(any)
        }
        // Numbers whose exponents are close, so that sums cancel.
        5..8 => sign | (one + (random.u64(..8) << fraction)).wrapping_sub(4 << fraction) | any & (unit - 1),
        _ => any,
    }
}

/// Bits of the fraction, of formats whose greatest exponent means infinity and NaN.
fn fraction_bits(ty: Type) -> Option<u32> {
    match ty {
        Type::F16 | Type::F16x2 => Some(10),
        Type::Bf16 | Type::Bf16x2 => Some(7),
        Type::F32 | Type::F32x2 | Type::Tf32 => Some(23),
        Type::F64 => Some(52),
        _ => {
            debug_assert!(ty.kind() != Kind::Float || ty.bits() / ty.lanes() <= 8);
            None
        }
    }
}
