//! Integer division and remainder, exactly, by floating-point division of the host.
//!
//! The quotient of two 16-bit integers in binary32, or of two 32-bit integers in binary64, rounded to an integer, is
//! at most 1 too large. The remainder, which is exact, shows whether it is. 64-bit division uses the host's integer
//! division, lane by lane.

use super::drive::map2;
use super::{HostPath, LaneFn, only};
use isa::{Opcode, Picks, Type};

/// Quotient and remainder of unsigned numbers; the quotient is arbitrary if `b` is 0.
macro_rules! divide {
    ($($name:ident: $T:ident in $F:ident as $Bits:ident, by $magic:expr;)*) => {
        $(#[inline(always)]
        fn $name(a: $T, b: $T) -> ($T, $T) {
            /// Adding this number rounds a number to an integer, which is then in the low bits.
            const MAGIC: $F = $magic;
            let (x, y) = ($F::from(a), $F::from(b));
            let sum = x / y + MAGIC;
            let above = (sum - MAGIC) * y > x;
            let quotient = (sum.to_bits() as $T).wrapping_sub($T::from(above));
            (quotient, a.wrapping_sub(quotient.wrapping_mul(b)))
        })*
    };
}
divide! {
    divide16: u16 in f32 as u32, by (1u32 << 23) as f32;
    divide32: u32 in f64 as u64, by (1u64 << 52) as f64;
}

/// Handlers of `div` and `rem` on unsigned and signed numbers of a width. Division by zero gives all ones; a quotient
/// is rounded toward zero, and a remainder has the sign of the dividend.
macro_rules! handlers {
    ($path:expr, $opcode:expr, $signed:expr, $U:ident, $S:ident, $divide:expr) => {
        match ($opcode, $signed) {
            (Opcode::Div, false) => map2($path, |a: $U, b: $U| if b == 0 { !0 } else { $divide(a, b).0 }),
            (Opcode::Rem, false) => map2($path, |a: $U, b: $U| if b == 0 { !0 } else { $divide(a, b).1 }),
            (Opcode::Div, true) => map2($path, |a: $S, b: $S| {
                let quotient = $divide(a.unsigned_abs(), b.unsigned_abs()).0 as $S;
                let quotient = if (a ^ b) < 0 { quotient.wrapping_neg() } else { quotient };
                if b == 0 { !0 } else { quotient }
            }),
            (Opcode::Rem, true) => map2($path, |a: $S, b: $S| {
                let rest = $divide(a.unsigned_abs(), b.unsigned_abs()).1 as $S;
                let rest = if a < 0 { rest.wrapping_neg() } else { rest };
                if b == 0 { !0 } else { rest }
            }),
            _ => return None,
        }
    };
}

/// The host's division; divides by 1 if `b` is 0.
#[inline(always)]
fn divide64(a: u64, b: u64) -> (u64, u64) {
    let b = b.max(1);
    // Most numbers are small, and many hosts divide small numbers faster.
    if (a | b) >> 32 == 0 {
        (u64::from(a as u32 / b as u32), u64::from(a as u32 % b as u32))
    } else {
        (a / b, a % b)
    }
}

/// The handler of `div` or `rem`.
pub(super) fn find(opcode: Opcode, sources: usize, picks: &Picks, path: HostPath) -> Option<LaneFn> {
    let &[ty] = picks.types() else { return None };
    if sources != 2 || !only(picks, &[]) {
        return None;
    }
    Some(match ty {
        Type::U16 | Type::S16 => handlers!(path, opcode, ty.is_signed(), u16, i16, divide16),
        Type::U32 | Type::S32 => handlers!(path, opcode, ty.is_signed(), u32, i32, divide32),
        Type::U64 | Type::S64 => handlers!(path, opcode, ty.is_signed(), u64, i64, divide64),
        _ => return None,
    })
}
