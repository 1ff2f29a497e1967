//! Random loops and random code without loops as PTX text.

use std::fmt::Write as _;

use fastrand::Rng;

/// The most registers of a kind that live through loops.
pub const REGISTERS: usize = 12;
/// Block sizes. The first ones have rows, of which several fit into a gang, and others do not.
pub const BLOCKS: [[u32; 2]; 7] = [[96, 1], [128, 1], [16, 8], [32, 4], [16, 6], [100, 1], [64, 1]];
/// The most threads of a block.
pub const THREADS: usize = 128;
pub const GRID: usize = 3;
/// Results of a thread: registers, numbers and predicates, and two wide registers.
pub const RESULTS: usize = 2 * REGISTERS + 1 + 4;
/// Words of a thread's memory.
pub const OWN: usize = 8;

/// Loops as PTX text.
pub struct Writer {
    pub(super) rng: Rng,
    text: String,
    labels: usize,
    /// Registers of a kind that live through loops: few, or more than a host has.
    registers: usize,
    /// Operations and accesses of 8 and 16 bits are among them.
    shorts: bool,
    /// Threads have local memory.
    locals: bool,
}

impl Writer {
    /// A kernel `k(in, out, own)` with loops: what it reads, its results, and the memory of its threads.
    pub fn loops(seed: u64) -> String {
        Writer::kernel(seed, |writer| writer.a_loop(0))
    }

    /// As [`Writer::loops`], without loops.
    pub fn straight(seed: u64) -> String {
        Writer::kernel(seed, Writer::straight_code)
    }

    fn kernel(seed: u64, body: fn(&mut Writer)) -> String {
        let registers = if seed % 3 == 1 { REGISTERS } else { 5 };
        let (rng, shorts, locals) = (Rng::with_seed(seed), seed % 4 == 3, seed % 5 < 2);
        let mut writer = Writer { rng, text: String::new(), labels: 0, registers, shorts, locals };
        let results = 4 * RESULTS;
        // `%m`: the thread's words, one from each row of all threads; `%n`: consecutive ones; `%s`: in shared memory. `%y`: a place for
        // each row of a block.
        write!(
            writer.text,
            ".version 9.0\n.target sm_100\n.address_size 64\n\
             .visible .entry k(.param .u64 in, .param .u64 out, .param .u64 own) {{\n\
             .reg .b32 %r<12>, %c<9>, %t, %i, %s, %v; .reg .f32 %f<12>, %u; .reg .pred %p<4>, %l<9>, %o<3>; .reg .b16 %h<4>;\n\
             .reg .b64 %a, %b, %d<3>, %e, %m, %n, %q<9>, %w, %in, %k, %g, %lw, %y; .shared .b32 sh[{}];\n.reg .b32 %ln; .local .b32 lm[{OWN}];\n\
             mov.u32 %t, %tid.x;\nmov.u32 %i, %tid.y;\nmov.u32 %v, %ntid.x;\nmad.lo.u32 %t, %i, %v, %t;\n\
             mul.wide.u32 %y, %i, 12;\nmov.u32 %v, %t;\nmov.f32 %u, 0f3f000000;\nmov.u32 %i, %ctaid.x;\nmad.lo.u32 %i, %i, {THREADS}, %t;\n\
             ld.param.u64 %in, [in];\nadd.u64 %y, %y, %in;\nld.param.u64 %b, [out];\nmad.wide.u32 %b, %i, {results}, %b;\n\
             mad.wide.u32 %a, %i, {results}, %in;\n\
             ld.param.u64 %m, [own];\nmad.wide.u32 %n, %i, {}, %m;\nadd.u64 %n, %n, {};\nmad.wide.u32 %m, %i, 4, %m;\n\
             mov.u32 %s, sh;\nmad.lo.u32 %s, %v, 4, %s;\nmov.u64 %d2, 5;\n",
            THREADS * OWN,
            4 * OWN,
            4 * OWN * THREADS * GRID,
        )
        .unwrap();
        // `%k`: elements of 2 bytes, in rows of all threads, and `%g`: of 1 byte.
        if shorts {
            let rows = OWN * THREADS * GRID;
            writeln!(
                writer.text,
                "ld.param.u64 %k, [own];\nadd.u64 %g, %k, {};\nadd.u64 %k, %k, {};\ncvt.u64.u32 %w, %i;\n\
                 add.u64 %g, %g, %w;\nmad.wide.u32 %k, %i, 2, %k;",
                10 * rows,
                8 * rows
            )
            .unwrap();
        }
        for i in 0..registers {
            let text =
                format!("ld.global.b32 %r{i}, [%a+{}];\nld.global.f32 %f{i}, [%a+{}];\n", 4 * i, 4 * i + 48);
            writer.text.push_str(&text);
        }
        for i in 0..4 {
            let text = format!("setp.lt.s32 %p{i}, %r{i}, {};\n", i * 1000);
            writer.text.push_str(&text);
        }
        writer.text.push_str("mul.wide.s32 %d0, %r0, %r1;\nmov.b64 %d1, {%r2, %r3};\n");
        if shorts {
            writer.text.push_str("mov.b32 {%h0, %h1}, %r0;\nmov.b32 {%h2, %h3}, %r1;\n");
        }
        for i in 0..OWN {
            writeln!(writer.text, "st.shared.b32 [%s+{}], %r{};", 4 * THREADS * i, i % registers).unwrap();
        }
        if locals {
            writer.text.push_str("mov.u64 %lw, lm;\nmov.u32 %ln, lm;\n");
            for i in 0..OWN {
                writeln!(writer.text, "st.local.b32 [%lw+{}], %r{};", 4 * i, (i + 1) % registers).unwrap();
            }
        }
        body(&mut writer);
        // A second way out of all loops.
        writer.text.push_str("xor.b32 %r4, %r4, %r3;\nadd.f32 %f4, %f4, %f3;\nZ:\n");
        // What is not stored is not live behind the loop.
        for (place, register) in
            (0..2 * REGISTERS).map(|i| (4 * i, format!("%{}{}", ["r", "f"][i / REGISTERS], i % REGISTERS)))
        {
            if place / 4 % REGISTERS >= registers {
                continue;
            }
            if writer.rng.u8(..3) == 0 {
                writeln!(writer.text, "st.global.b32 [%b+{place}], {register};").unwrap();
            }
        }
        for i in 0..2 {
            if writer.rng.u8(..3) == 0 {
                let text = format!(
                    "mov.b64 {{%r0, %t}}, %d{i};\nst.global.b32 [%b+{}], %r0;\nst.global.b32 [%b+{}], %t;\n",
                    100 + 8 * i,
                    104 + 8 * i
                );
                writer.text.push_str(&text);
            }
        }
        writer.text.push_str("mov.u32 %t, 0;\n");
        for i in 0..4 {
            let text = format!("@%p{i} add.u32 %t, %t, {};\n", 1 << i);
            writer.text.push_str(&text);
        }
        if shorts {
            let text = "mov.b32 %r0, {%h0, %h1};\nxor.b32 %t, %t, %r0;\ncvt.u32.u16 %r0, %h2;\nxor.b32 %t, %t, %r0;\n";
            writer.text.push_str(text);
        }
        // What is in shared memory.
        for i in 0..OWN {
            let text = format!("ld.shared.b32 %r0, [%s+{}];\nxor.b32 %t, %t, %r0;\n", 4 * THREADS * i);
            writer.text.push_str(&text);
        }
        for i in (0..OWN).filter(|_| locals) {
            let text = format!("ld.local.b32 %r0, [%lw+{}];\nmad.lo.u32 %t, %t, 3, %r0;\n", 4 * i);
            writer.text.push_str(&text);
        }
        writer.text.push_str("st.global.u32 [%b+96], %t;\nret;\n}\n");
        writer.text
    }

    fn a_loop(&mut self, depth: usize) {
        let (label, bound) = (self.labels, self.rng.u32(1..6));
        self.labels += 1;
        // A pointer that steps through the table.
        writeln!(self.text, "mov.u32 %c{depth}, 0;\nmad.wide.u32 %q{depth}, %v, 4, %in;\nL{label}:").unwrap();
        self.statements(depth, label);
        if self.rng.bool() {
            writeln!(self.text, "ld.global.b32 %r1, [%q{depth}];\nadd.s64 %q{depth}, %q{depth}, 400;")
                .unwrap();
        }
        // The bound of a lane, or of all.
        let lane = if self.rng.bool() {
            format!("and.b32 %t, %r0, 3;\nadd.u32 %t, %t, {bound};\n")
        } else {
            format!("mov.u32 %t, {bound};\n")
        };
        writeln!(
            self.text,
            "add.u32 %c{depth}, %c{depth}, 1;\n{lane}setp.lt.u32 %l{depth}, %c{depth}, %t;\n@%l{depth} bra L{label};\nX{label}:"
        )
        .unwrap();
    }

    /// Accesses and operations in any order, between barriers and branches.
    fn straight_code(&mut self) {
        self.text.push_str("mov.u32 %c0, 3;\n");
        for _ in 0..self.rng.usize(3..7) {
            match self.rng.u8(..6) {
                0 => self.text.push_str("bar.sync 0;\n"),
                1 => self.either(Writer::mixture),
                _ => self.mixture(),
            }
        }
    }

    /// Two ways, of which each thread goes one.
    fn either(&mut self, way: fn(&mut Writer)) {
        let (next, p) = (self.labels, self.rng.u8(..4));
        self.labels += 1;
        writeln!(self.text, "@%p{p} bra E{next};").unwrap();
        way(self);
        writeln!(self.text, "bra.uni J{next};\nE{next}:").unwrap();
        way(self);
        writeln!(self.text, "J{next}:").unwrap();
    }

    fn mixture(&mut self) {
        for _ in 0..self.rng.usize(2..12) {
            let line = match self.rng.u8(..8) {
                0 => "add.u32 %c0, %c0, 1".to_owned(),
                // Addresses move, and come back.
                1 => "add.s64 %m, %m, 4;\nadd.s64 %n, %n, -4;\nld.global.b32 %r2, [%m+-4];\nst.global.b32 [%n+4], %r2;\n\
                      add.s64 %m, %m, -4;\nadd.s64 %n, %n, 4"
                    .to_owned(),
                2..5 => self.access(0),
                _ => self.operation(),
            };
            writeln!(self.text, "{line};").unwrap();
        }
    }

    fn statements(&mut self, depth: usize, label: usize) {
        for _ in 0..self.rng.usize(1..6) {
            match self.rng.u8(..12) {
                0 if depth < 2 => self.a_loop(depth + 1),
                1 => {
                    let (p, not) = (self.rng.u8(..4), if self.rng.bool() { "!" } else { "" });
                    let out = if self.rng.u8(..4) == 0 { "Z".to_owned() } else { format!("X{label}") };
                    writeln!(self.text, "@{not}%p{p} bra {out};").unwrap();
                }
                2 if depth < 6 => self.either(Writer::operations),
                3..6 => self.memory(depth),
                _ => self.operations(),
            }
        }
    }

    /// Accesses to memory, and what computes their addresses.
    fn memory(&mut self, depth: usize) {
        for _ in 0..self.rng.usize(1..4) {
            let line = self.access(depth);
            writeln!(self.text, "{line};").unwrap();
        }
    }

    fn access(&mut self, depth: usize) -> String {
        if self.shorts && self.rng.bool() {
            return self.short_access();
        }
        if self.locals && self.rng.u8(..3) == 0 {
            return self.local_access();
        }
        let rng = &mut self.rng;
        let (i, element) = (rng.usize(..self.registers), rng.usize(..OWN));
        let (r, f, d) = (format!("%r{i}"), format!("%f{i}"), format!("%d{}", i % 2));
        let row = 4 * element * THREADS * GRID;
        let (pair, quad) = (4 * (element & !1), 4 * (element & !3));
        let counter = format!("%c{}", rng.usize(..=depth));
        match rng.u8(..22) {
            // Lanes access two allocations.
            20 => format!("selp.b64 %w, %n, %in, %p{};\nld.global.b32 {r}, [%w+{}]", i % 4, 4 * element),
            21 => {
                format!("selp.b64 %w, %n, %m, %p{};\nadd.u64 %w, %w, -4;\nst.global.b32 [%w+4], {r}", i % 4)
            }
            0 => format!("ld.global.b32 {r}, [%m+{row}]"),
            1 => format!("ld.global.f32 {f}, [%m+{row}]"),
            2 | 3 => format!("st.global.b32 [%m+{row}], {r}"),
            4 => format!("st.global.f32 [%m+{row}], {f}"),
            5 => format!("ld.global.b64 {d}, [%n+{pair}]"),
            6 => format!("st.global.b64 [%n+{pair}], {d}"),
            7 => format!("ld.global.v2.b32 {{%r1, %r2}}, [%n+{pair}]"),
            8 => format!("ld.global.v4.f32 {{%f0, %f1, %f2, %f3}}, [%n+{quad}]"),
            9 => format!("st.global.v4.b32 [%n+{quad}], {{{r}, %r1, {r}, %r0}}"),
            10 => format!("st.b32 [%n+{}], {r}", 4 * element),
            11 => format!("ld.shared.b32 {r}, [%s+{}]", 4 * THREADS * element),
            12 => format!("st.shared.f32 [%s+{}], {f}", 4 * THREADS * element),
            // The same element for all threads.
            13 if rng.bool() => format!("ld.global.f32 {f}, [%in+{}]", 4 * rng.usize(..100)),
            // The same for all threads of a row.
            13 => format!("ld.global.b32 {r}, [%y+{}]", 4 * rng.usize(..100)),
            14 => format!("mad.wide.u32 %w, {counter}, 4, %in;\nld.global.nc.b32 {r}, [%w]"),
            // One of another allocation for few threads.
            15 if rng.u8(..3) == 0 => format!(
                "and.b32 %t, {r}, 127;\nsetp.eq.u32 %p3, %t, {};\nmul.wide.u32 %w, %t, 4;\nadd.s64 %w, %w, %in;\n\
                 selp.b64 %w, %n, %w, %p3;\nld.global.b32 {r}, [%w]",
                rng.u8(..128)
            ),
            // Any element.
            15 => format!(
                "and.b32 %t, {r}, 1023;\nmul.wide.u32 %w, %t, 4;\nadd.s64 %w, %w, %in;\nld.global.b32 {r}, [%w+8]"
            ),
            16 => format!("and.b32 %t, {r}, 510;\nmad.wide.u32 %w, %t, 4, %in;\nld.global.b64 {d}, [%w]"),
            17 => {
                format!(
                    "add.s32 %t, %v, {counter};\nmul.wide.s32 %w, %t, 4;\nadd.s64 %w, %w, %in;\nld.b32 {r}, [%w]"
                )
            }
            // Each thread has an element of its own.
            18 => format!(
                "and.b32 %t, {r}, {};\nshl.b32 %t, %t, 9;\nadd.u32 %t, %t, %s;\nst.shared.b32 [%t], %r2",
                OWN - 1
            ),
            _ => format!(
                "and.b32 %t, {r}, {};\nmul.wide.u32 %w, %t, 4;\nadd.s64 %w, %w, %n;\nst.global.b32 [%w], {r}",
                OWN - 1
            ),
        }
    }

    /// Of one word for all threads, or of each thread's choice.
    fn local_access(&mut self) -> String {
        let rng = &mut self.rng;
        let (r, word, own) =
            (format!("%r{}", rng.usize(..self.registers)), 4 * rng.usize(..OWN), 4 * (OWN - 1));
        let choice = format!("and.b32 %t, {r}, {own};\n");
        match rng.u8(..6) {
            0 => format!("st.local.b32 [%lw+{word}], {r}"),
            1 => format!("ld.local.b32 {r}, [%lw+{word}]"),
            2 => format!("{choice}cvt.u64.u32 %w, %t;\nadd.s64 %w, %w, %lw;\nst.local.b32 [%w], %r2"),
            3 => format!("{choice}cvt.u64.u32 %w, %t;\nadd.s64 %w, %w, %lw;\nld.local.u32 {r}, [%w]"),
            4 => format!("{choice}add.u32 %t, %t, %ln;\nst.local.b32 [%t], %r1"),
            _ => format!("{choice}add.u32 %t, %t, %ln;\nld.local.b32 {r}, [%t]"),
        }
    }

    fn wide_operation(&mut self) -> String {
        let rng = &mut self.rng;
        let mut pick = |all: &[&str]| all[rng.usize(..all.len())].to_owned();
        let (d, a, b) = (
            pick(&["%d0", "%d1"]),
            pick(&["%d0", "%d1", "%d2", "7"]),
            pick(&["%d0", "%d1", "-3", "0x123456789"]),
        );
        let (r, p, q) = (pick(&["%r0", "%r1", "%r2"]), pick(&["%p0", "%p1"]), pick(&["%p2", "%p3"]));
        let (s, ty) = (pick(&["%r3", "%r4", "19", "-2"]), pick(&["s", "u"]));
        let compare = pick(&["eq", "ne", "lt", "le", "gt", "ge"]);
        let distance = pick(&["%r3", "3", "40", "70"]);
        let (x, y, z) = (
            &a.replace("7", "0d4000000000000000"),
            &b.replace("-3", "%d1").replace("0x123456789", "0dbff8000000000000"),
            d.clone(),
        );
        let rounding = pick(&["rn", "rz", "rm", "rp"]);
        let float = pick(&["%f0", "%f1", "%f2"]);
        match rng.u8(..32) {
            16 | 17 => format!("add.{rounding}.f64 {d}, {x}, {y}"),
            18 => format!("sub.{rounding}.f64 {d}, {x}, {y}"),
            19 => format!("mul.{rounding}.f64 {d}, {x}, {y}"),
            20 | 21 => format!("fma.{rounding}.f64 {d}, {x}, {y}, {z}"),
            22 => format!("div.{rounding}.f64 {d}, {x}, {y}"),
            23 => format!("{}.{rounding}.f64 {d}, {x}", ["sqrt", "rcp"][rng.usize(..2)]),
            24 => format!("{}.f64 {d}, {x}, {y}", ["min", "max"][rng.usize(..2)]),
            25 => format!("{}.f64 {d}, {x}", ["neg", "abs"][rng.usize(..2)]),
            26 => format!("setp.{compare}.f64 {p}|{q}, {x}, {y}"),
            27 => format!("cvt.f64.f32 {d}, {float}"),
            28 => format!("cvt.{rounding}.f32.f64 {float}, {x}"),
            29 => format!("cvt.{rounding}.f64.{ty}32 {d}, {r}")
                .replace(".rz.", ".rn.")
                .replace(".rm.", ".rn.")
                .replace(".rp.", ".rn."),
            30 => format!("cvt.{rounding}.f64.{ty}64 {d}, {a}"),
            31 => format!("cvt.{rounding}i.s32.f64 {r}, {x}"),
            0 | 1 => format!("add.{ty}64 {d}, {a}, {b}"),
            2 => format!("sub.{ty}64 {d}, {a}, {b}"),
            3 => format!("mul.lo.{ty}64 {d}, {a}, {b}"),
            4 => format!("mad.lo.{ty}64 {d}, {a}, {b}, {d}"),
            5 => format!("{}.b64 {d}, {a}, {b}", ["and", "or", "xor"][rng.usize(..3)]),
            6 => format!("shl.b64 {d}, {a}, {distance}"),
            7 => format!("shr.{ty}64 {d}, {a}, {distance}"),
            8 => format!("{}.{ty}64 {d}, {a}, {b}", ["min", "max"][rng.usize(..2)]),
            9 => format!("{}.s64 {d}, {a}", ["neg", "abs"][rng.usize(..2)]),
            10 => format!("mul.wide.{ty}32 {d}, {r}, {s}"),
            11 => format!("mad.wide.{ty}32 {d}, {r}, {s}, {b}"),
            12 => format!("cvt.{ty}64.{ty}32 {d}, {r}"),
            13 if rng.bool() => format!("cvt.u32.u64 {r}, {a}").replace(", 7", ", %d0"),
            // The sum wraps around in some lanes.
            13 => format!("add.s32 %t, %v, 0x7fffffc0;\ncvt.s64.s32 {d}, %t"),
            14 => format!("setp.{compare}.{ty}64 {p}|{q}, {a}, {b}"),
            _ => format!("selp.b64 {d}, {a}, {b}, {p}"),
        }
    }

    fn operations(&mut self) {
        for _ in 0..self.rng.usize(1..5) {
            let line = if self.rng.u8(..5) == 0 { self.wide_operation() } else { self.operation() };
            writeln!(self.text, "{line};").unwrap();
        }
    }

    /// Predicates of one basic block, joined with each other and with those of others, and selections by them.
    fn predicates(&mut self) -> String {
        let rng = &mut self.rng;
        let mut pick = |all: &[&str]| all[rng.usize(..all.len())].to_owned();
        let mut text = String::new();
        for m in 0..3 {
            let (compare, a, b) =
                (pick(&["lt", "ne", "ge"]), pick(&["%r0", "%r2"]), pick(&["%r1", "%r3", "5"]));
            let (ty, a, b) = match m {
                1 => ("s64", "%d0".to_owned(), "%d1".to_owned()),
                _ => ("s32", a, b),
            };
            writeln!(text, "setp.{compare}.{ty} %o{m}, {a}, {b};").unwrap();
        }
        for _ in 0..4 {
            let (d, a, b) = (
                pick(&["%o0", "%o1", "%o2"]),
                pick(&["%o0", "%o1", "%o2", "%p0"]),
                pick(&["%o0", "%o1", "%o2", "%p1"]),
            );
            let (op, x) = (pick(&["and", "or", "xor"]), pick(&["%f0", "%f1"]));
            let line = match pick(&["logic", "logic", "compare", "narrow", "wide"]).as_str() {
                "logic" => format!("{op}.pred {d}, {a}, {b}"),
                "compare" => format!("setp.gtu.{op}.f32 {d}, {x}, %f2, {b}"),
                "narrow" => format!("selp.b32 %r0, %r0, %r1, {a}"),
                _ => format!("selp.b64 %d0, %d1, %d0, {b}"),
            };
            writeln!(text, "{line};").unwrap();
        }
        // Some are not read any more.
        let ends = [pick(&["%o0", "%o1", "%o2"]), pick(&["%o0", "%o1", "%o2"])];
        text + &format!("selp.b32 %r2, %r2, %r1, {};\nselp.b64 %d1, %d1, %d0, {}", ends[0], ends[1])
    }

    fn operation(&mut self) -> String {
        if self.shorts && self.rng.bool() {
            return self.short_operation();
        }
        if self.rng.u8(..20) == 0 {
            return self.predicates();
        }
        let (rng, registers) = (&mut self.rng, self.registers);
        // Some of the first registers become others.
        let moved = if registers > 5 { rng.usize(..registers) } else { 0 };
        let mut pick = |all: &[&str]| {
            let name = all[rng.usize(..all.len())];
            match name {
                "%f1" | "%f3" | "%r2" | "%r4" if moved > 0 => format!("{}{moved}", &name[..2]),
                name => name.to_owned(),
            }
        };
        let numbers =
            ["%f0", "%f1", "%f2", "%f3", "%f4", "%u", "0f3f800000", "0f7fc00001", "0f80000000", "0f00000001"];
        let words = ["%r0", "%r1", "%r2", "%r3", "%r4", "%t", "7", "-1", "0x80000000"];
        let predicates = ["%p0", "%p1", "%p2", "%p3"];
        let (f, r, p) =
            (|pick: &mut dyn FnMut(&[&str]) -> String| pick(&numbers[..6]), &words[..6], &predicates);
        let rounding = pick(&["", ".rn", ".rz", ".rm", ".rp"]);
        let (d, a, b, c) = (f(&mut pick), pick(&numbers), pick(&numbers), pick(&numbers));
        let (wd, wa, wb, wc) = (pick(r), pick(&words), pick(&words), pick(&words));
        let (pd, pa, pb) = (pick(p), pick(p), pick(p));
        // Operations on bits read numbers, too.
        let (xa, xb) = (pick(&[&wa, &d, &wb]), pick(&[&wb, "%f0", "%u"]));
        let ty = pick(&["s32", "u32"]);
        let boolean = pick(&[".and", ".or", ".xor"]);
        let ordered = pick(&["eq", "ne", "lt", "le", "gt", "ge"]);
        let compare = pick(&[
            "eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan",
        ]);
        let unsigned = pick(&["lo", "ls", "hi", "hs"]);
        let both = if pd == pa { pd.clone() } else { format!("{pd}|{pa}") };
        let not = pick(&["", "!"]);
        let heavy = pick(&[
            "ex2.approx",
            "lg2.approx",
            "sin.approx",
            "rsqrt.approx",
            "rcp.approx",
            "ex2.approx.ftz",
            "cos.approx",
        ]);
        let halves = pick(&["f16x2", "bf16x2"]);
        let funnel =
            format!("shf.{}.{}.b32 {wd}", ["l", "r"][rng.usize(..2)], ["wrap", "clamp"][rng.usize(..2)]);
        match rng.u8(..48) {
            47 => format!("bfe.{ty} {wd}, {wa}, {}, {}", rng.u8(..34), rng.u8(..34)),
            43 | 44 => format!("{funnel}, {xa}, {wb}, {}", rng.u8(..40)),
            45 => format!("{funnel}, {xa}, {wb}, {wc}"),
            46 => match rng.u8(..9) {
                0 => format!("bfe.{ty} {wd}, {wa}, {wd}, {}", rng.u8(..40)),
                1 => format!("bfi.b32 {wd}, {wa}, {wb}, {}, {wd}", rng.u8(..40)),
                2 => format!("popc.b32 {wd}, {xa}"),
                3 => format!("clz.b32 {wd}, {xa}"),
                4 => format!("brev.b32 {wd}, {xa}"),
                5 => format!("prmt.b32 {wd}, {xa}, {wb}, {wc}"),
                6 => format!("sad.{ty} {wd}, {wa}, {wb}, {wc}"),
                7 => format!("lop3.b32 {wd}, {wa}, {wb}, {wc}, {}", rng.u8(..)),
                _ => format!("copysign.f32 {d}, {a}, {b}"),
            },
            41 => format!("setp.{compare}.{halves} {both}, {wd}, %r0"),
            42 => format!(
                "setp.{compare}.{halves} %p2|%p3, {wd}, %r1;\nmov.b32 {{%h0, %h1}}, {wd};\n\
                 mov.b32 {{%h2, %h3}}, %r1;\nselp.b16 %h0, %h2, %h0, %p2;\nselp.b16 %h1, %h3, %h1, %p3;\n\
                 mov.b32 {wd}, {{%h0, %h1}}"
            ),
            38 => format!("{heavy}.f32 {d}, {a}"),
            39 => format!("div.{}.f32 {d}, {a}, {b}", ["approx", "full"][rng.usize(..2)]),
            40 => format!("{}.{ty} {wd}, {wa}, {wb}", ["div", "rem"][rng.usize(..2)]),
            0..4 => format!("add{rounding}.f32 {d}, {a}, {b}"),
            4..6 => format!("sub{rounding}.f32 {d}, {a}, {b}"),
            6..9 => format!("mul{rounding}.f32 {d}, {a}, {b}"),
            9..12 => {
                format!("fma{}.f32 {d}, {a}, {b}, {c}", if rounding.is_empty() { ".rn" } else { &rounding })
            }
            12 => format!("abs.f32 {d}, {a}"),
            13 => format!("neg.f32 {d}, {a}"),
            14 if rng.bool() => format!("cvt.rn.f32.{ty} {d}, {wd}"),
            14 => format!("cvt.{}i.{ty}.f32 {wd}, {a}", ["rn", "rz", "rm", "rp"][rng.usize(..4)]),
            15 => format!("mov.b32 {d}, {wd}"),
            16 => format!("mov.b32 {wd}, {d}"),
            17 => format!("add.{ty} {wd}, {wa}, {wb}"),
            18 => format!("sub.{ty} {wd}, {wa}, {wb}"),
            19 => format!("mul.lo.{ty} {wd}, {wa}, {wb}"),
            20 => format!("mad.lo.{ty} {wd}, {wa}, {wb}, {wc}"),
            21 => format!("{}.{ty} {wd}, {wa}, {wb}", ["min", "max"][rng.usize(..2)]),
            22 => format!("{}.b32 {wd}, {xa}, {xb}", ["and", "or", "xor"][rng.usize(..3)]),
            23 => format!("not.b32 {wd}, {xa}"),
            24 => format!("shl.b32 {wd}, {wa}, {wb}"),
            25 => format!("shr.{ty} {wd}, {wa}, {wb}"),
            26 => format!("{}.s32 {wd}, {wa}", ["neg", "abs"][rng.usize(..2)]),
            27 => format!("selp.b32 {wd}, {xa}, {xb}, {pa}"),
            28 => format!("selp.f32 {d}, {a}, {b}, {not}{pa}"),
            29 => format!("setp.{compare}.f32 {both}, {a}, {b}"),
            30 => format!("setp.{compare}{boolean}.f32 {both}, {a}, {b}, {not}{pb}"),
            31 => format!("setp.{ordered}{boolean}.{ty} {both}, {wa}, {wb}, {not}{pb}"),
            32 if rng.bool() => format!("setp.{unsigned}.u32 {both}, {wa}, {wb}"),
            32 => format!("setp.{ordered}.b32 {pd}, {wa}, {wb}")
                .replace("lt", "ne")
                .replace("le", "eq")
                .replace("gt", "ne")
                .replace("ge", "eq"),
            33 => format!("div{}.f32 {d}, {a}, {b}", if rounding.is_empty() { ".rn" } else { &rounding }),
            34 => format!("rcp{}.f32 {d}, {a}", if rounding.is_empty() { ".rn" } else { &rounding }),
            35 => format!("sqrt{}.f32 {d}, {a}", if rounding.is_empty() { ".approx" } else { &rounding }),
            36 => format!("{}.f32 {d}, {a}, {b}", ["min", "max"][rng.usize(..2)]),
            _ if rng.bool() => format!("not.pred {pd}, {pa}"),
            _ => format!("{}.pred {pd}, {pa}, {pb}", &boolean[1..]),
        }
    }
}
