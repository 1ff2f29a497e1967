//! Values of registers and of memory.

use isa::{Kind, Type};
use serde_json::{Value, json};

use super::bits;

/// `1.5 (0x3fc00000)`, `7`, `0x1000000044`, `true`, `{1, 2} (0x40003c00)`
pub fn show(ty: Type, value: u128) -> String {
    let Ok(narrow) = u64::try_from(value) else { return format!("{value:#034x}") };
    // The bits beside it say whether a NaN is quiet and a number subnormal.
    let number = |ty, bits| bits::value(ty, bits).split(" (").next().map_or_else(String::new, str::to_owned);
    match ty.kind() {
        Kind::Float if ty.lanes() > 1 => {
            let lanes: Vec<_> = bits::lanes(ty, narrow).map(|lane| number(ty.element(), lane)).collect();
            format!("{{{}}} ({})", lanes.join(", "), bits::hex(ty, narrow))
        }
        Kind::Float => format!("{} ({})", number(ty, narrow), bits::hex(ty, narrow)),
        Kind::Predicate => bits::value(ty, narrow),
        Kind::Signed if ty.lanes() == 1 && (narrow as i64).unsigned_abs() < 1 << 32 => {
            bits::value(ty, narrow)
        }
        // Larger numbers are mostly addresses or masks, and larger bits packed numbers.
        Kind::Bits if narrow < 1 << 10 => narrow.to_string(),
        Kind::Bits => bits::hex(ty, narrow),
        _ if narrow < 1 << 20 => narrow.to_string(),
        _ => format!("{narrow:#x}"),
    }
}

/// A value with its name, which is empty for a literal, and its type.
pub type Named<'a> = (&'a str, Type, u128);

/// `%f1 = 1.5 (0x3fc00000), %r2 = 7`
pub fn list<'a>(values: impl IntoIterator<Item = Named<'a>>) -> String {
    let named = values.into_iter().filter(|(name, ..)| !name.is_empty());
    named.map(|(name, ty, bits)| format!("{name} = {}", show(ty, bits))).collect::<Vec<_>>().join(", ")
}

/// The same for programs: `{"name": "%f1", "type": "f32", "bits": "0x3fc00000", "value": "1.5"}`
pub fn json<'a>(values: impl IntoIterator<Item = Named<'a>>) -> Value {
    let named = values.into_iter().filter(|(name, ..)| !name.is_empty());
    let object = |(name, ty, bits): Named| {
        let width = 2 + ty.bits().div_ceil(4) as usize;
        json!({
            "name": name,
            "type": ty.to_string().trim_start_matches('.'),
            "bits": format!("{bits:#0width$x}"),
            "value": show(ty, bits).split(" (0x").next(),
        })
    };
    named.map(object).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_by_their_types() {
        for (ty, bits, text) in [
            (Type::F32, 0x3fc0_0000, "1.5 (0x3fc00000)"),
            (Type::F32, 0x7fff_ffff, "NaN (0x7fffffff)"),
            (Type::F16x2, 0xfc00_0001, "{5.96e-8, -inf} (0xfc000001)"),
            (Type::Pred, 1, "true"),
            (Type::S32, 0xffff_ffff, "-1"),
            (Type::U32, 70_000, "70000"),
            (Type::U64, 0x10_0000_0044, "0x1000000044"),
            (Type::S64, 0x10_0000_0044, "0x1000000044"),
            (Type::B16, 7, "7"),
            (Type::B16, 0xbc00, "0xbc00"),
            (Type::B128, 1 << 100, "0x00000010000000000000000000000000"),
        ] {
            assert_eq!(show(ty, bits), text);
        }
    }
}
