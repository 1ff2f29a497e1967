//! Pure instructions, packing, and patterns that optimisations match.

use isa::enumerate::Spelling;
use isa::{Opcode, Second, Type};

use super::{Generator, WORDS};
use crate::catalog::{Slot, slots};
use crate::program::Stmt;

/// Edge values of integers and of formats, for which instructions behave differently.
const EDGES: [u64; 20] = [
    0,
    1,
    2,
    3,
    31,
    32,
    63,
    0x7f,
    0x80,
    0xff,
    0x3c00,
    0x7c00,
    0x7e00,
    0x8000,
    0xffff,
    0x3f80_0000,
    0x7f80_0000,
    0x7fc0_0000,
    0x8000_0000,
    0xffff_ffff,
];

/// Whether an instruction takes few literals (video instructions and bit fields) or none (conversions of narrow
/// formats and metadata of matrices).
pub(super) fn takes_no_literals(spelling: &Spelling) -> bool {
    let opcode = spelling.form.form().opcode;
    opcode.name().starts_with('v') || matches!(opcode, Opcode::Bfe | Opcode::Bfi | Opcode::Cvt | Opcode::Mma)
}

/// Whether wider registers are not allowed, as beside `.bf16`.
pub(super) fn takes_no_wider(spelling: &Spelling) -> bool {
    spelling.picks.types().contains(&Type::Bf16)
}

impl Generator<'_, '_> {
    /// Any pure instruction of the table.
    pub(super) fn pure(&mut self) -> Option<Stmt> {
        let dialect = self.dialect;
        let opcodes = dialect.pure.len();
        let spellings = dialect.pure.values().nth(self.random.below(opcodes))?;
        let spelling = self.random.pick(spellings);
        let operands = self.operands(spelling)?;
        let guard = self.guard(25);
        Some(Stmt::text(format!("{guard}{} {operands};", spelling.mnemonic())))
    }

    /// Operands for an instruction; `None` if it needs registers that these kernels do not have.
    pub(super) fn operands(&mut self, spelling: &Spelling) -> Option<String> {
        let mut operands = Vec::new();
        let (no_literals, exact) = (takes_no_literals(spelling), takes_no_wider(spelling));
        for mut slot in slots(spelling) {
            slot.literal &= !no_literals;
            slot.wider &= !exact;
            operands.push(self.operand(&slot)?);
        }
        Some(operands.join(", "))
    }

    pub(super) fn operand(&mut self, slot: &Slot) -> Option<String> {
        if let Some((least, greatest)) = slot.range {
            let value = least + self.random.below((greatest - least + 1).clamp(1, 1 << 16) as usize) as i64;
            return Some(value.to_string());
        }
        let mut bits = slot.ty.bits();
        if (2..16).contains(&bits) || bits > 64 {
            if !slot.wider || slot.count.0 > 1 {
                return None;
            }
            bits = 16;
        }
        if slot.wider && !slot.ty.is_float() && self.random.percent(25) {
            bits = *self.random.pick(&[bits, 32.max(bits), 64]);
        }
        let (count, braces) = slot.count;
        let mut text = match count {
            1 if slot.literal && self.random.percent(15) => {
                self.literal(slot.ty).unwrap_or_else(|| self.register(bits))
            }
            1 => self.register(bits),
            _ if slot.writes => {
                let all = self.registers(bits, count);
                if all.len() < count {
                    return None;
                }
                all.join(", ")
            }
            _ => (0..count).map(|_| self.register(bits)).collect::<Vec<_>>().join(", "),
        };
        if braces {
            text = format!("{{{text}}}");
        }
        if slot.negatable && slot.ty == Type::Pred && self.random.percent(30) {
            text = format!("!{text}");
        }
        match slot.second {
            Second::Required => text += &format!("|{}", self.predicate()),
            Second::Optional if self.random.percent(40) => text += &format!("|{}", self.predicate()),
            _ => {}
        }
        Some(text)
    }

    pub(super) fn literal(&mut self, ty: Type) -> Option<String> {
        let bits = if self.random.percent(50) { *self.random.pick(&EDGES) } else { self.random.bits() };
        Some(match ty {
            Type::F32 => format!("0f{:08x}", bits as u32),
            Type::F64 => format!("0d{bits:016x}"),
            Type::Pred => return None,
            _ if ty.is_float() || ty.lanes() > 1 => return None,
            _ => {
                let bits = if ty.bits() >= 64 { bits } else { bits & ((1 << ty.bits()) - 1) };
                format!("{bits:#x}")
            }
        })
    }

    /// `mov`, packing and unpacking.
    pub(super) fn pack(&mut self) -> Option<Stmt> {
        let guard = self.guard(20);
        let text = match self.random.below(8) {
            0 => format!("mov.b32 {}, {{{}, {}}};", self.word(), self.register(16), self.register(16)),
            1 => {
                let parts = self.registers(16, 2).join(", ");
                format!("mov.b32 {{{parts}}}, {};", self.word())
            }
            2 => format!("mov.b64 {}, {{{}, {}}};", self.double(), self.word(), self.word()),
            3 => {
                let parts = self.registers(32, 2).join(", ");
                format!("mov.b64 {{{parts}}}, {};", self.double())
            }
            4 => {
                let parts = self.registers(16, 4).join(", ");
                format!("mov.b64 {{{parts}}}, {};", self.double())
            }
            5 if self.has_quads() => {
                let parts = self.registers(64, 2).join(", ");
                format!("mov.b128 {{{parts}}}, {};", self.register(128))
            }
            6 if self.has_quads() => {
                format!("mov.b128 {}, {{{}, {}}};", self.register(128), self.double(), self.double())
            }
            _ => {
                let bits = *self.random.pick(&[16, 32, 64]);
                format!("mov.b{bits} {}, {};", self.register(bits), self.register(bits))
            }
        };
        Some(Stmt::text(guard + &text))
    }

    /// Patterns that optimisations match: values with a single use, sums of products, halves that are selected in
    /// pairs.
    pub(super) fn idiom(&mut self) -> Option<Stmt> {
        let text = match self.random.below(5) {
            0 | 1 => self.sum_of_products(),
            2 => self.chosen_pair(),
            3 => {
                // A result that is only stored.
                let (a, b, at) = (self.word(), self.word(), self.own_offset(4)?);
                let operation =
                    *self.random.pick(&["add.u32", "mul.lo.u32", "add.rn.f32", "max.s32", "xor.b32"]);
                format!("{operation} %x0, {a}, {b};\nst.global.b32 [%own+{at}], %x0;")
            }
            _ => {
                // A loaded value with a single use, with or without a store between.
                let (to, b, at, store) = (self.word(), self.word(), self.own_offset(4)?, self.own_offset(4)?);
                let between = match self.random.below(3) {
                    0 => format!("st.global.b32 [%own+{store}], {b};\n"),
                    1 => format!("add.u32 {b}, {b}, 1;\n"),
                    _ => String::new(),
                };
                format!("ld.global.b32 %x0, [%own+{at}];\n{between}add.u32 {to}, %x0, {b};")
            }
        };
        Some(Stmt::text(text))
    }

    /// A sum of products of loaded values.
    fn sum_of_products(&mut self) -> String {
        let sum = self.word();
        let stride = 4 * self.stride;
        let mut text =
            format!("mad.wide.u32 %ta, %global, 4, %all;\nadd.s64 %ta, %ta, {};\n", 12 * self.stride);
        let mut last = sum.clone();
        for step in 0..1 + self.random.below(6) {
            let index = self.random.below(4);
            text += &format!("ld.global.f32 %x0, [%ta+{}];\n", index * stride);
            match self.random.below(4) {
                0 => text += &format!("ld.shared.f32 %x1, [s_same+{}];\n", 4 * self.random.below(16)),
                1 => {
                    text +=
                        &format!("ld.shared.f32 %x1, [%sall+{}];\n", 4 * self.threads * self.random.below(4))
                }
                2 => text += &format!("ld.global.f32 %x1, [%in+{}];\n", 4 * self.random.below(64)),
                _ => text += &format!("mov.b32 %x1, {};\n", self.word()),
            }
            let (a, b) = if self.random.percent(50) { ("%x0", "%x1") } else { ("%x1", "%x0") };
            let to = if self.random.percent(85) { last.clone() } else { format!("%r{}", step % WORDS) };
            let operation = *self.random.pick(&["fma.rn.f32", "fma.rn.f32", "fma.rn.f32", "mad.lo.u32"]);
            text += &format!("{operation} {to}, {a}, {b}, {last};\n");
            if self.random.percent(10) {
                text += &format!("st.global.b32 [%ta+{}], {to};\n", self.random.below(4) * stride);
            }
            last = to;
        }
        text
    }

    /// Halves that are unpacked, selected by `setp p|q` and packed again.
    fn chosen_pair(&mut self) -> String {
        let (a, b, c, d) = (self.word(), self.word(), self.word(), self.word());
        let compare = *self.random.pick(&["lt", "ge", "neu", "equ", "gt"]);
        format!(
            "setp.{compare}.f16x2 %p0|%p1, {a}, {b};\nmov.b32 {{%h0, %h1}}, {a};\nmov.b32 {{%h2, %h3}}, {c};\n\
             selp.b16 %h4, %h0, %h2, %p0;\nselp.b16 %h5, %h1, %h3, %p1;\nmov.b32 {d}, {{%h4, %h5}};"
        )
    }
}
