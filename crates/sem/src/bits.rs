//! Bits as the values of a type.

use crate::format::{Format, Specials};
use isa::{Kind, Type};

/// `0x7e00`, as wide as the type; a predicate is 0 or 1.
pub fn hex(ty: Type, bits: u64) -> String {
    match ty {
        Type::Pred => bits.to_string(),
        _ => format!("0x{bits:0width$x}", width = ty.bits().div_ceil(4) as usize),
    }
}

/// `0x7e00 = NaN (quiet)`; only the bits for a packed value, see [`lanes`].
pub fn describe(ty: Type, bits: u64) -> String {
    if ty.lanes() > 1 { hex(ty, bits) } else { format!("{} = {}", hex(ty, bits), value(ty, bits)) }
}

/// The elements of a packed value, lowest first.
pub fn lanes(ty: Type, bits: u64) -> impl Iterator<Item = u64> {
    // A 6-bit element occupies a byte.
    let width = ty.bits() / ty.lanes();
    (0..ty.lanes()).map(move |lane| bits >> (lane * width) & (u64::MAX >> (64 - width)))
}

/// The value of a scalar.
pub fn value(ty: Type, bits: u64) -> String {
    match (Format::of(ty), ty.kind()) {
        (Some(format), _) => float(ty, format, bits),
        (None, _) if ty == Type::Ue8m0 => match bits {
            0xff => "NaN".to_owned(),
            _ => decimal(2f64.powi(bits as i32 - 127), 2f64.powi(bits as i32 - 127)),
        },
        (None, _) if ty == Type::S2f6 => (f64::from(bits as u8 as i8) / 64.0).to_string(),
        (None, Kind::Predicate) => if bits == 0 { "false" } else { "true" }.to_owned(),
        (None, Kind::Signed) => {
            let shift = 64 - ty.bits();
            ((bits << shift) as i64 >> shift).to_string()
        }
        _ => bits.to_string(),
    }
}

fn float(ty: Type, format: &Format, bits: u64) -> String {
    let magnitude = bits & format.magnitude_mask();
    let sign = if bits & format.sign() == 0 { "" } else { "-" };
    if format.is_nan(bits) {
        let negative = if sign.is_empty() { "" } else { ", sign set" };
        let quiet = magnitude >> (format.fraction_bits + format.padding - 1) & 1 != 0;
        return match format.specials {
            Specials::InfinityAndNan => {
                format!("NaN ({}{negative})", if quiet { "quiet" } else { "signalling" })
            }
            _ => "NaN".to_owned(),
        };
    }
    if format.specials == Specials::InfinityAndNan && magnitude == format.infinity() {
        return format!("{sign}inf");
    }
    let subnormal = magnitude != 0 && magnitude < format.min_normal();
    let note = if subnormal { " (subnormal)" } else { "" };
    format!("{sign}{}{note}", magnitude_text(ty, format, magnitude))
}

/// The shortest decimal of at least three digits that is closer to this number than to any other of the format.
fn magnitude_text(ty: Type, format: &Format, magnitude: u64) -> String {
    if ty == Type::F64 {
        return decimal(f64::from_bits(magnitude), f64::from_bits(magnitude));
    }
    let stored = (magnitude >> format.padding) as i32;
    let field = stored >> format.fraction_bits;
    let fraction = stored & ((1 << format.fraction_bits) - 1);
    // binary64 represents the numbers of all narrower formats exactly, and also the midpoints between them.
    let (significand, exponent) = match field {
        0 => (fraction, format.min_exponent()),
        _ => (fraction | 1 << format.fraction_bits, format.min_exponent() + field - 1),
    };
    let unit = 2f64.powi(exponent - format.fraction_bits as i32);
    let exact = f64::from(significand) * unit;
    let candidates = (2..=9).filter_map(|digits| format!("{exact:.digits$e}").parse::<f64>().ok());
    let near = candidates.filter(|candidate| (candidate - exact).abs() < unit / 4.0).take(1).next();
    decimal(near.unwrap_or(exact), exact)
}

fn decimal(shown: f64, exact: f64) -> String {
    if exact.fract() == 0.0 && exact < 1e7 {
        return exact.to_string();
    }
    if (1e-5..1e16).contains(&exact) { shown.to_string() } else { format!("{shown:e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_described() {
        for (ty, bits, text) in [
            (Type::F16, 0x7e00, "0x7e00 = NaN (quiet)"),
            (Type::F16, 0xfc01, "0xfc01 = NaN (signalling, sign set)"),
            (Type::F16, 1, "0x0001 = 5.96e-8 (subnormal)"),
            (Type::F16, 0x3c01, "0x3c01 = 1.001"),
            (Type::F16, 0xfc00, "0xfc00 = -inf"),
            (Type::F16, 0x8000, "0x8000 = -0"),
            (Type::F16, 0x7bff, "0x7bff = 65504"),
            (Type::Bf16, 0x3fc0, "0x3fc0 = 1.5"),
            (Type::F32, 0x3dcccccd, "0x3dcccccd = 0.1"),
            (Type::F32, 0x7f7fffff, "0x7f7fffff = 3.4028235e38"),
            (Type::F32, 1, "0x00000001 = 1.4e-45 (subnormal)"),
            (Type::F64, 0x3fb999999999999a, "0x3fb999999999999a = 0.1"),
            (Type::E4m3, 0x7f, "0x7f = NaN"),
            (Type::E4m3, 0xc0, "0xc0 = -2"),
            (Type::E5m2, 0x7c, "0x7c = inf"),
            (Type::E2m3, 0x1f, "0x1f = 7.5"),
            (Type::E3m2, 0x21, "0x21 = -0.0625 (subnormal)"),
            (Type::E2m1, 0x9, "0x9 = -0.5 (subnormal)"),
            (Type::S2f6, 0xe0, "0xe0 = -0.5"),
            (Type::Ue5m3, 0xfe, "0xfe = 114688"),
            (Type::Ue8m0, 0x7f, "0x7f = 1"),
            (Type::Ue8m0, 0xff, "0xff = NaN"),
            (Type::Tf32, 0x3f9e0000, "0x3f9e0000 = 1.2344"),
            (Type::S16, 0xffff, "0xffff = -1"),
            (Type::B64, u64::MAX, "0xffffffffffffffff = 18446744073709551615"),
            (Type::Pred, 1, "1 = true"),
        ] {
            assert_eq!(describe(ty, bits), text);
        }
    }
}
