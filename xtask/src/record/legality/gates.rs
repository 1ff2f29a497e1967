//! Instructions that between them meet every gate of the core: asked at every version and target.

use super::registers::{bits, operands};
use isa::Type;

/// All of them.
pub fn all() -> Vec<String> {
    let mut all = Vec::new();
    let mut add = |mnemonic: &str| {
        let mut words = mnemonic.split('.');
        let opcode = words.next().unwrap_or_default();
        let types: Vec<&str> = words.filter(|word| Type::from_name(word).is_some()).collect();
        let combines = [".and", ".or", ".xor"].iter().any(|op| mnemonic.contains(op));
        all.push(format!("{mnemonic} {};", operands(opcode, &types, combines, bits).join(", ")));
    };
    let integers = ["b16", "b32", "b64", "u16", "s32", "u64"];
    for ty in integers.into_iter().chain(["f32", "f64", "f16", "f16x2", "bf16", "bf16x2"]) {
        add(&format!("setp.eq.{ty}"));
        add(&format!("setp.ne.and.ftz.{ty}"));
        for dtype in ["u16", "u32", "f32", "f16", "bf16", "f16x2", "bf16x2"] {
            add(&format!("set.eq.{dtype}.{ty}"));
        }
        add(&format!("set.ne.xor.ftz.u32.{ty}"));
        add(&format!("set.ne.or.ftz.f16.{ty}"));
        add(&format!("set.lo.s32.{ty}"));
        add(&format!("selp.{ty}"));
        add(&format!("slct.{ty}.s32"));
        add(&format!("slct.ftz.{ty}.f32"));
    }
    // What lacks something, so that the order of gates and other errors shows.
    for mnemonic in ["set.u32.f16", "set.and.u32.bf16x2", "setp.f16x2", "setp.ftz.bf16", "setp.and.bf16"] {
        add(mnemonic);
    }
    for opcode in ["add", "sub", "fma"] {
        for rounding in ["", ".rz"] {
            for modifier in ["", ".sat", ".ftz"] {
                for types in ["f32.f16", "f32.bf16", "f32"] {
                    add(&format!("{opcode}{rounding}{modifier}.{types}"));
                }
            }
        }
    }
    all
}
