//! Loads, stores and atomics in every state space.

use super::{Generator, INDEX_BYTES, INPUT_BYTES, Place};
use crate::program::Stmt;

/// Memory that a thread may read, and possibly write.
pub(super) struct Region {
    /// `.global`; empty for generic addresses.
    pub space: &'static str,
    /// Lines that compute its address in `%ta`, and the base of address operands.
    pub before: String,
    pub base: String,
    pub bytes: usize,
    pub writable: bool,
}

/// A type of accesses: its name, its bytes, and the register widths that it allows.
const TYPES: [(&str, usize, &[u32]); 14] = [
    ("u8", 1, &[16, 32, 64]),
    ("s8", 1, &[16, 32, 64]),
    ("b8", 1, &[16, 32]),
    ("u16", 2, &[16, 32, 64]),
    ("s16", 2, &[16, 32, 64]),
    ("b16", 2, &[16]),
    ("u32", 4, &[32, 64]),
    ("s32", 4, &[32, 64]),
    ("b32", 4, &[32]),
    ("f32", 4, &[32]),
    ("u64", 8, &[64]),
    ("b64", 8, &[64]),
    ("f64", 8, &[64]),
    ("b128", 16, &[128]),
];

impl Generator<'_, '_> {
    /// An offset in a thread's own global memory for an access of `bytes` bytes.
    pub(super) fn own_offset(&mut self, bytes: usize) -> Option<usize> {
        let places = self.own_bytes / bytes;
        (places > 0).then(|| self.random.below(places) * bytes)
    }

    pub(super) fn region(&mut self, place: &Place) -> Region {
        let own = self.own_bytes;
        let shared = self.shared_bytes;
        let direct = |space, base: &str, bytes, writable| Region {
            space,
            before: String::new(),
            base: base.to_owned(),
            bytes,
            writable,
        };
        let generic = |before: &str, bytes, writable| Region {
            space: "",
            before: format!("{before}\n"),
            base: "%ta".to_owned(),
            bytes,
            writable,
        };
        let shared_address = "cvt.u64.u32 %tb, %sown;\ncvta.shared.u64 %tb, %tb;";
        match self.random.below(16) {
            0 => direct(".global", "%in", INPUT_BYTES, false),
            1 => direct("", "%in", INPUT_BYTES, false),
            2 => direct(".global", "g_var", 256, false),
            3 => direct(".const", "c_var", 256, false),
            4 => direct(".global", "%own", own, true),
            5 => direct(".global", "%own", own, true),
            6 => direct("", "%own", own, true),
            7 => direct(".shared", "%sown", shared, true),
            8 => direct(".shared", "%sown", shared, true),
            9 => direct(".local", "lo", 64, true),
            10 => direct(".local", "lo", 64, true),
            11 => generic(&format!("{shared_address}\nmov.u64 %ta, %tb;"), shared, true),
            12 => generic("mov.u64 %ta, lo;\ncvta.local.u64 %ta, %ta;", 64, true),
            13 => generic("mov.u64 %ta, c_var;\ncvta.const.u64 %ta, %ta;", 256, false),
            14 if place.function.is_empty() => direct(".param", "s", 32, false),
            14 if place.function.ends_with("1_") => direct(".param", "st", 32, false),
            // Different memory in different lanes.
            _ => {
                let p = self.predicate();
                let before = match self.random.below(2) {
                    0 => format!("{shared_address}\nselp.b64 %ta, %own, %tb, {p};"),
                    _ => format!("mov.u64 %tb, lo;\ncvta.local.u64 %tb, %tb;\nselp.b64 %ta, %own, %tb, {p};"),
                };
                generic(&before, own.min(shared), true)
            }
        }
    }

    /// A load or a store.
    pub(super) fn access(&mut self, place: &Place) -> Option<Stmt> {
        let mut region = self.region(place);
        let &(ty, bytes, widths) = self.random.pick(&TYPES);
        if bytes == 16 && !self.has_quads() {
            return None;
        }
        let vector = match bytes {
            16 => 1,
            _ => *self.random.pick(&[1, 1, 1, 2, 4, 8]),
        };
        let all = bytes * vector;
        // 256 bits at a time, in global memory.
        let wide = bytes >= 4 && all == 32 && self.holds_wide(&region);
        if (all > 16 || vector == 8) && !wide || all > region.bytes {
            return None;
        }
        // A parameter is addressed by its name, not by a register.
        let address = match region.space {
            ".param" => format!("[{}+{}]", region.base, self.random.below(region.bytes / all) * all),
            _ => self.place_in(&mut region, all),
        };
        let width = *self.random.pick(widths);
        let write = region.writable && self.random.percent(50);
        let kind = if vector > 1 { format!(".v{vector}.{ty}") } else { format!(".{ty}") };
        let guard = self.guard(25);
        let weak = matches!(region.space, ".const" | ".local" | ".param") || bytes == 16;
        let order = match self.random.below(20) {
            0 if !weak => ".volatile",
            1 if !weak && self.dialect.sm(70) => ".relaxed.gpu",
            _ => "",
        };
        let instruction = match write {
            true => {
                let value = match vector {
                    1 if self.random.percent(10) && bytes < 16 && !ty.starts_with('f') => {
                        self.random.below(128).to_string()
                    }
                    1 => self.register(width),
                    _ => format!(
                        "{{{}}}",
                        (0..vector).map(|_| self.register(width)).collect::<Vec<_>>().join(", ")
                    ),
                };
                format!("{guard}st{order}{}{kind} {address}, {value};", region.space)
            }
            false => {
                let registers = self.registers(width, vector);
                if registers.len() < vector {
                    return None;
                }
                let to =
                    if vector > 1 { format!("{{{}}}", registers.join(", ")) } else { registers[0].clone() };
                format!("{guard}ld{order}{}{kind} {to}, {address};", region.space)
            }
        };
        Some(Stmt::text(region.before + &instruction))
    }

    /// An address in the region for an access of `bytes` bytes, constant or computed from a register.
    pub(super) fn place_in(&mut self, region: &mut Region, bytes: usize) -> String {
        let places = region.bytes / bytes;
        let at = self.random.below(places) * bytes;
        let dynamic = self.random.percent(40) && places > 1;
        if !dynamic {
            return if at == 0 { format!("[{}]", region.base) } else { format!("[{}+{at}]", region.base) };
        }
        let mask = (1usize << places.ilog2()) - 1;
        let index = match self.random.below(4) {
            0 => "%thread".to_owned(),
            _ => self.word(),
        };
        region.before += &format!("and.b32 %tc, {index}, {mask};\nmul.lo.u32 %tc, %tc, {bytes};\n");
        match &region.base[..] {
            "%sown" => {
                region.before += "add.u32 %tc, %tc, %sown;\n";
                "[%tc]".to_owned()
            }
            base => {
                region.before += "cvt.u64.u32 %tb, %tc;\n";
                region.before += &match base.starts_with('%') {
                    true => format!("add.s64 %ta, {base}, %tb;\n"),
                    false => format!("mov.u64 %ta, {base};\nadd.s64 %ta, %ta, %tb;\n"),
                };
                "[%ta]".to_owned()
            }
        }
    }

    /// Whether the target has 256-bit accesses.
    pub(super) fn has_wide(&self) -> bool {
        self.dialect.target.number == 100
    }

    /// Whether the region supports 256-bit accesses.
    pub(super) fn holds_wide(&self, region: &Region) -> bool {
        self.has_wide()
            && region.space == ".global"
            && region.base.starts_with('%')
            && self.own_bytes.is_multiple_of(32)
    }

    /// A load or store in memory that interleaves the elements of adjacent threads.
    pub(super) fn interleaved(&mut self, place: &Place) -> Option<Stmt> {
        let write = self.random.percent(50);
        let guard = self.guard(20);
        if self.random.percent(35) && place.function.is_empty() {
            let at = 4 * self.threads * self.random.below(4);
            let register = self.word();
            return Some(Stmt::text(match write {
                true => format!("{guard}st.shared.b32 [%sall+{at}], {register};"),
                false => format!("{guard}ld.shared.b32 {register}, [%sall+{at}];"),
            }));
        }
        let bytes = *self.random.pick(&[1, 2, 4, 4, 4, 8]);
        let at = 4 * self.stride * (bytes - 1) + bytes * self.stride * self.random.below(4);
        let bits = *self.random.pick(&[(8 * bytes as u32).max(16), (8 * bytes as u32).max(32)]);
        let register = self.register(bits);
        let ty = if bits as usize > 8 * bytes && self.random.percent(50) { "s" } else { "u" };
        let address = format!("mad.wide.u32 %ta, %global, {bytes}, %all;\n");
        let bits = 8 * bytes;
        Some(Stmt::text(
            address
                + &match write {
                    true => format!("{guard}st.global.{ty}{bits} [%ta+{at}], {register};"),
                    false => format!("{guard}ld.global.{ty}{bits} {register}, [%ta+{at}];"),
                },
        ))
    }

    /// Queries of an address's state space, and fences and hints, which change nothing.
    pub(super) fn question(&mut self) -> Stmt {
        let space = *self.random.pick(&["shared", "local", "const", "global"]);
        let address = match self.random.below(4) {
            0 => "mov.u64 %ta, lo;\ncvta.local.u64 %ta, %ta;".to_owned(),
            1 => "mov.u64 %ta, c_var;\ncvta.const.u64 %ta, %ta;".to_owned(),
            2 => "cvt.u64.u32 %ta, %sown;\ncvta.shared.u64 %ta, %ta;".to_owned(),
            _ => "mov.u64 %ta, %own;".to_owned(),
        };
        let hints = [
            "membar.cta;",
            "membar.gl;",
            "prefetch.global.L1 [%in];",
            "fence.acq_rel.gpu;",
            "nanosleep.u32 20;",
        ];
        match self.random.percent(50) {
            true => Stmt::text(*self.random.pick(&hints)),
            false => Stmt::text(format!("{address}\nisspacep.{space} {}, %ta;", self.predicate())),
        }
    }

    /// A number from 0 to 3 from the input, in `%x3`.
    pub(super) fn small_number(&mut self) -> String {
        let register = self.word();
        format!(
            "and.b32 %tc, {register}, {};\ncvt.u64.u32 %ta, %tc;\nadd.s64 %ta, %ta, %in;\nld.global.u32 %x3, [%ta];\n",
            (INDEX_BYTES - 1) & !3
        )
    }

    /// An atomic operation: on the thread's own memory with a result, or a commutative one on counters of all
    /// threads.
    pub(super) fn atomic(&mut self, place: &Place) -> Option<Stmt> {
        let guard = self.guard(25);
        if place.function.is_empty() && self.random.percent(50) {
            // A cell for each operation and type.
            let operations = [
                "add.u32", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32", "add.u64", "max.u64",
                "min.u64", "xor.b64", "min.u32", "max.s32",
            ];
            let number = self.random.below(operations.len());
            let operation = operations[number];
            let wide = operation.ends_with("64");
            let (value, index) = (self.register(if wide { 64 } else { 32 }), self.word());
            let address = format!("and.b32 %tc, {index}, 3;\nmad.wide.u32 %ta, %tc, 8, %counters;\n{guard}");
            let at = 32 * number;
            let space = if self.random.percent(70) { ".global" } else { "" };
            let to = if wide { "%y0" } else { "%x0" };
            return Some(Stmt::text(
                address
                    + &match self.random.percent(60) {
                        true => format!("red{space}.{operation} [%ta+{at}], {value};"),
                        false => format!("atom{space}.{operation} {to}, [%ta+{at}], {value};"),
                    },
            ));
        }
        if self.dialect.version >= isa::Version::new(8, 1) && self.dialect.sm(90) && self.random.percent(10) {
            // Each element is a separate atomic operation.
            let at = self.own_offset(16)?;
            let to = self.registers(32, 4).join(", ");
            let from: Vec<String> = (0..4).map(|_| self.word()).collect();
            let (from, kind) = (from.join(", "), "global.v4.f32.add");
            return Some(Stmt::text(match self.random.percent(50) {
                true => format!("{guard}atom.{kind} {{{to}}}, [%own+{at}], {{{from}}};"),
                false => format!("{guard}red.{kind} [%own+{at}], {{{from}}};"),
            }));
        }
        let mut region = self.region(place);
        if !region.writable || region.space == ".local" || region.before.contains("lo;") {
            return None;
        }
        let operations = [
            "add.u32",
            "min.s32",
            "max.u32",
            "and.b32",
            "or.b32",
            "xor.b32",
            "add.u64",
            "max.s64",
            "min.u64",
            "inc.u32",
            "dec.u32",
            "exch.b32",
            "exch.b64",
            "cas.b32",
            "cas.b64",
            "cas.b16",
            "add.f32",
            "add.f64",
            "add.noftz.f16x2",
            "add.noftz.f16",
        ];
        let operation = *self.random.pick(&operations);
        let bits = match operation.rsplit_once(|c: char| c.is_ascii_alphabetic()).map(|(_, bits)| bits) {
            Some("64") => 64,
            Some("2") | Some("32") => 32,
            _ => 16,
        };
        if bits as usize / 8 > region.bytes
            || (bits == 16 || operation.contains("f16")) && !self.dialect.sm(70)
        {
            return None;
        }
        let address = self.place_in(&mut region, bits as usize / 8);
        let (to, a, b) = (self.register(bits), self.register(bits), self.register(bits));
        let b = if operation.starts_with("cas") { format!(", {b}") } else { String::new() };
        let space = region.space;
        Some(Stmt::text(
            region.before
                + &match self.random.percent(80)
                    || operation.starts_with("cas")
                    || operation.starts_with("exch")
                {
                    true => format!("{guard}atom{space}.{operation} {to}, {address}, {a}{b};"),
                    false => format!("{guard}red{space}.{operation} {address}, {a};"),
                },
        ))
    }
}
