//! A kernel for one instruction: each thread reads its operands, runs the instruction, and writes what came of it.

use std::fmt::Write as _;

use isa::enumerate::Spelling;
use isa::{Access, Elements, OperandKind, Second, Target, Type, Version};

/// Threads of a block.
pub const BLOCK: usize = 128;

/// One instruction on registers.
pub struct Program {
    /// The instruction with its modifiers.
    pub mnemonic: String,
    /// The types of its sources.
    pub sources: Vec<Type>,
    destination: Type,
    /// It has a second destination, a predicate.
    second: bool,
}

impl Program {
    /// The program for a spelling, if its operands are registers that are no vectors.
    pub fn new(spelling: &Spelling) -> Option<Program> {
        let mut types = Vec::new();
        let mut second = false;
        for spec in spelling.form.form().operands_with(&spelling.picks) {
            let is_register = spec.kind != OperandKind::Immediate && spec.elements == Elements::One;
            let ty = spec.resolve(&spelling.picks).filter(|ty| is_register && ty.bits() <= 64)?;
            if (spec.access == Access::Read) == types.is_empty() {
                return None;
            }
            second |= spec.second != Second::None;
            types.push(ty);
        }
        let destination = *types.first()?;
        Some(Program { mnemonic: spelling.mnemonic(), sources: types.split_off(1), destination, second })
    }

    /// The module. Its kernel `k` takes the addresses of the operands and of the results and the number of vectors; each
    /// operand is 64 bits wide, and so are the two results of a vector.
    pub fn text(&self, version: Version, target: Target) -> String {
        let mut body = String::new();
        for (i, &ty) in self.sources.iter().enumerate() {
            let offset = 8 * i;
            let take = match width(ty) {
                Width::Predicate => format!("setp.ne.b64 %s{i}, %v, 0"),
                Width::Bits(64) => format!("mov.b64 %s{i}, %v"),
                Width::Bits(bits) => format!("cvt.u{bits}.u64 %s{i}, %v"),
            };
            let declaration = declaration(ty, &format!("s{i}"));
            let _ = writeln!(body, "    {declaration} ld.global.b64 %v, [%from+{offset}]; {take};");
        }
        let sources: Vec<String> = (0..self.sources.len()).map(|i| format!("%s{i}")).collect();
        let destination = if self.second { "%d|%q" } else { "%d" };
        let keep = match width(self.destination) {
            Width::Predicate => "selp.b64 %v, 1, 0, %d".to_owned(),
            Width::Bits(64) => "mov.b64 %v, %d".to_owned(),
            Width::Bits(bits) => format!("cvt.u64.u{bits} %v, %d"),
        };
        let second = match self.second {
            true => "    selp.b64 %v, 1, 0, %q; st.global.b64 [%to+8], %v;\n",
            false => "",
        };
        format!(
            "\
.version {version}
.target {target}
.address_size 64
.visible .entry k(.param .b64 from, .param .b64 to, .param .b32 count)
{{
    .reg .pred %out, %q; .reg .b32 %i, %n, %t; .reg .b64 %from, %to, %v;
    mov.u32 %i, %ctaid.x; mov.u32 %n, %ntid.x; mov.u32 %t, %tid.x; mad.lo.u32 %i, %i, %n, %t;
    ld.param.b32 %n, [count]; setp.ge.u32 %out, %i, %n;
    @%out ret;
    ld.param.b64 %from, [from]; mad.wide.u32 %from, %i, {}, %from;
    ld.param.b64 %to, [to]; mad.wide.u32 %to, %i, 16, %to;
{body}    {}
    {} {destination}, {};
    {keep}; st.global.b64 [%to], %v;
{second}    ret;
}}
",
            8 * self.sources.len(),
            declaration(self.destination, "d"),
            self.mnemonic,
            sources.join(", "),
        )
    }

    /// The line of a record for a vector.
    pub fn line(&self, sources: &[u64], results: &[u64]) -> String {
        let mut line = self.mnemonic.clone();
        for (source, &ty) in sources.iter().zip(&self.sources) {
            let _ = write!(line, " {source:0digits$x}", digits = digits(ty));
        }
        let first = if self.destination.bits() < 64 {
            results[0] & ((1 << self.destination.bits()) - 1)
        } else {
            results[0]
        };
        let result = if self.second { first | results[1] << 1 } else { first };
        let _ = write!(line, " = {result:0digits$x}", digits = digits(self.destination));
        line
    }
}

/// What a register of a type is declared as.
enum Width {
    Predicate,
    /// 8, 16, 32 or 64.
    Bits(u32),
}

fn width(ty: Type) -> Width {
    match ty.bits() {
        1 => Width::Predicate,
        bits => Width::Bits(bits.next_power_of_two().max(8)),
    }
}

fn declaration(ty: Type, name: &str) -> String {
    match width(ty) {
        Width::Predicate => format!(".reg .pred %{name};"),
        Width::Bits(bits) => format!(".reg .b{bits} %{name};"),
    }
}

/// Hexadecimal digits of a value of a type.
fn digits(ty: Type) -> usize {
    ty.bits().div_ceil(4) as usize
}
