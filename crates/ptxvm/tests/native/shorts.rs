//! Values of 8 and 16 bits: what random kernels do with them, and operations on numbers of all kinds.

use jit::Form;
use ptxvm::{Device, Engine, HostPath, Module};

use crate::writer::{GRID, OWN, THREADS, Writer};

impl Writer {
    /// A load or store of elements that may be shorter than their registers.
    pub(super) fn short_access(&mut self) -> String {
        let rng = &mut self.rng;
        let mut pick = |all: &[&str]| all[rng.usize(..all.len())].to_owned();
        let h = pick(&["%h0", "%h1", "%h2", "%h3"]);
        let (register, ty) = match pick(&["short", "short", "word", "wide"]).as_str() {
            "short" => (h.clone(), pick(&["u8", "s8", "u16", "s16"])),
            "word" => (pick(&["%r0", "%r1", "%r2"]), pick(&["u8", "s8", "u16", "s16"])),
            _ => (pick(&["%d0", "%d1"]), pick(&["u8", "s8", "u16", "s16", "u32", "s32"])),
        };
        let bytes = match &ty[1..] {
            "8" => 1,
            "16" => 2,
            _ => 4,
        };
        let (element, other) = (rng.usize(..OWN), rng.usize(..OWN));
        let row = element * THREADS * GRID;
        // Elements of all threads one behind the other, of a thread, in shared memory, and the same of all threads.
        let place = match rng.u8(..8) {
            0..4 if bytes == 1 => format!("global.{ty} [%g+{row}]"),
            0..4 if bytes == 2 => format!("global.{ty} [%k+{}]", 2 * row),
            0..4 => format!("global.{ty} [%m+{}]", 4 * row),
            4 => format!("global.{ty} [%n+{}]", 4 * element + bytes * (other % (4 / bytes))),
            5 => format!("shared.{ty} [%s+{}]", 4 * THREADS * element + bytes * (other % (4 / bytes))),
            6 => {
                let base = ["%in", "%y"][rng.usize(..2)];
                return format!("ld.global.{ty} {register}, [{base}+{}]", bytes * rng.usize(..100));
            }
            _ => {
                let address = format!("and.b32 %t, %r0, {};\nmad.wide.u32 %w, %t, {bytes}, %n", OWN - 1);
                let other = rng.usize(..2) * 4 * OWN / 2;
                return match rng.bool() {
                    true => format!("{address};\nld.global.{ty} {register}, [%w]"),
                    false if bytes == 4 => format!("{address};\nst.global.{ty} [%w], {register}"),
                    false => format!("{address};\nst.global.{ty} [%w+{other}], {register}"),
                };
            }
        };
        let (space, address) = place.split_once(' ').expect("two words");
        match rng.u8(..9) {
            0..4 => format!("ld.{space} {register}, {address}"),
            // Two elements of a thread.
            8 if ty == "u16" && rng.bool() => {
                format!("ld.global.v2.u16 {{%h0, %h2}}, [%n+{}]", 4 * element)
            }
            8 if bytes == 4 => format!("ld.global.v2.{ty} {{%d0, %d1}}, [%n+{}]", 8 * (element / 2)),
            7 if bytes == 4 => format!("st.global.v2.{ty} [%n+{}], {{%d1, {register}}}", 8 * (element / 2)),
            8 if ty == "u8" => format!("st.global.v2.u8 [%n+{}], {{%h1, {h}}}", 2 * element),
            _ => format!("st.{space} {address}, {register}"),
        }
    }

    /// An operation on values of 16 bits, or one that makes them or takes them apart.
    pub(super) fn short_operation(&mut self) -> String {
        let rng = &mut self.rng;
        let mut pick = |all: &[&str]| all[rng.usize(..all.len())].to_owned();
        let all = ["%h0", "%h1", "%h2", "%h3"];
        let (d, a, b, c) = (pick(&all), pick(&all), pick(&["%h0", "%h1", "%h2", "-5", "300"]), pick(&all));
        let (r, x, y) = (
            pick(&["%r0", "%r1", "%r2", "%t"]),
            pick(&["%r0", "%r1", "%r3", "%r4"]),
            pick(&["%r0", "%r2", "-7", "0x10001"]),
        );
        let (f, n, m) = (
            pick(&["%f0", "%f1", "%f2"]),
            pick(&["%f0", "%f2", "%f3", "%u"]),
            pick(&["%f1", "%f4", "0f3f800000", "0f7fc00001"]),
        );
        let (w, p, q) = (pick(&["%d0", "%d1"]), pick(&["%p0", "%p1"]), pick(&["%p2", "%p3"]));
        let ty = pick(&["s", "u"]);
        let compare = pick(&["eq", "ne", "lt", "le", "gt", "ge"]);
        let unordered = pick(&["eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "geu", "num", "nan"]);
        let format = pick(&["f16", "bf16"]);
        let rounding = pick(&["rn", "rz", "rm", "rp"]);
        let of_bf16 = pick(&["rn", "rz"]);
        let distance = pick(&["%r3", "3", "15", "16", "40"]);
        let arithmetic = pick(&["add", "sub", "mul", "min", "max"]);
        let flushed = pick(&["add.{}", "sub.{}", "mul.{}", "div.{}"]).replace("{}", &rounding);
        let mixed = pick(&["add", "sub"]);
        match rng.u8(..42) {
            34 => format!("{flushed}.ftz.f32 {f}, {n}, {m}"),
            35 => format!("fma.{rounding}.ftz.f32 {f}, {n}, {m}, {f}"),
            36 => format!("{}.{rounding}.ftz.f32 {f}, {n}", ["rcp", "sqrt"][rng.usize(..2)]),
            37 => format!("{}.ftz.f32 {f}, {n}", ["abs", "neg"][rng.usize(..2)]),
            38 => format!("setp.{unordered}.ftz.f32 {p}|{q}, {n}, {m}"),
            39 => format!("{mixed}.{rounding}.f32.{format} {f}, {a}, {n}"),
            40 => format!("fma.{rounding}.f32.{format} {f}, {a}, {c}, {n}"),
            41 => format!("mul.f32 {f}, {n}, 0f00000003"),
            0 => format!("cvt.u16.u32 {d}, {x}"),
            1 => format!("cvt.{ty}32.{ty}16 {r}, {a}"),
            2 => format!("cvt.{ty}32.{ty}8 {r}, {a}"),
            3 => format!("cvt.{ty}64.{ty}16 {w}, {a}"),
            4 => format!("cvt.u16.u64 {d}, {w}"),
            5 => format!("cvt.{ty}16.{ty}8 {d}, {a}"),
            6 => format!("cvt.{ty}64.{ty}8 {w}, {x}"),
            7 => format!("{}.{ty}16 {d}, {a}, {b}", ["add", "sub", "mul.lo"][rng.usize(..3)]),
            8 => format!("mad.lo.{ty}16 {d}, {a}, {b}, {c}"),
            9 => format!("{}.{ty}16 {d}, {a}, {b}", ["min", "max"][rng.usize(..2)]),
            10 => format!("{}.s16 {d}, {a}", ["neg", "abs"][rng.usize(..2)]),
            11 => format!("{}.b16 {d}, {a}, {b}", ["and", "or", "xor"][rng.usize(..3)]),
            12 => format!("not.b16 {d}, {a}"),
            13 => format!("shl.b16 {d}, {a}, {distance}"),
            14 => format!("shr.{ty}16 {d}, {a}, {distance}"),
            15 => format!("mul.wide.{ty}16 {r}, {a}, {b}"),
            16 => format!("mad.wide.{ty}16 {r}, {a}, {b}, {x}"),
            17 => format!("setp.{compare}.{ty}16 {p}|{q}, {a}, {b}"),
            18 => format!("selp.b16 {d}, {a}, {c}, {p}"),
            19 => format!("mov.b32 {{{d}, {}}}, {x}", if d == "%h3" { "%h0" } else { "%h3" }),
            20 => format!("mov.b32 {r}, {{{a}, {c}}}"),
            21 => format!("mov.b64 {{%r0, %r2}}, {w}"),
            22 => format!("mov.b64 {w}, {{{x}, %r1}}"),
            23 => format!("cvt.f32.{format} {f}, {a}"),
            24 => format!("cvt.{rounding}.f16.f32 {d}, {n}"),
            25 => format!("cvt.{of_bf16}.bf16.f32 {d}, {n}"),
            26 => format!("cvt.{of_bf16}.{format}x2.f32 {r}, {n}, {m}"),
            27 => format!("{arithmetic}.{format} {d}, {a}, {c}"),
            28 => format!("{arithmetic}.{format}x2 {r}, {x}, %r1"),
            29 => format!("fma.rn.{format} {d}, {a}, {c}, {d}"),
            30 => format!("setp.{unordered}.{format} {p}, {a}, {c}"),
            31 => format!("mul.hi.{ty}32 {r}, {x}, {y}"),
            32 => format!("cvt.{}i.f32.f32 {f}, {n}", ["rn", "rz", "rm", "rp"][rng.usize(..4)]),
            _ => format!("set.{compare}.{format}.{format} {d}, {a}, {c}"),
        }
    }
}

/// Words: numbers of f32, and pairs of halves, of all kinds.
const WORDS: [u32; 48] = [
    0,
    0x8000_0000,
    1,
    0x8000_0001,
    0x007f_ffff,
    0x0080_0000,
    0x8080_0000,
    0x00ff_ffff,
    0x3f80_0000,
    0xbf80_0001,
    0x3eff_ffff,
    0x4b00_0001,
    0xcb80_0000,
    0x4f00_0000,
    0x7f7f_ffff,
    0x7f80_0000,
    0xff80_0000,
    // NaNs
    0x7fff_ffff,
    0x7f80_0001,
    0xffc0_1234,
    // Where f16 ends, on both sides.
    0x477f_efff,
    0x477f_f000,
    0xc780_0000,
    0x3380_0000,
    0x3300_0000,
    0x3300_0001,
    0x387f_e000,
    0x3880_1000,
    0xb880_3000,
    // Pairs of f16, subnormal ones, infinities and NaNs among them.
    0x3c00_bc00,
    0x0001_8001,
    0x03ff_0400,
    0x7bff_fbff,
    0x7c00_fc00,
    0x7c01_7e00,
    0xffff_3555,
    0x2e66_4248,
    0x5640_d640,
    // Pairs of bf16.
    0x3f80_bf81,
    0x0001_8001,
    0x007f_0080,
    0x7f7f_ff7f,
    0x7f81_7fc0,
    0x3f01_3dcd,
    // Integers
    0x7fff_8000,
    0xffff_0001,
    0x00ff_0080,
    0x1234_fedc,
];
const PAIRS: usize = WORDS.len() * WORDS.len();

/// `body` computes `%r3` and `%r4` from `%r0` and `%r1`, whose halves are `%h0` to `%h3`, and whose numbers `%f0` and `%f1`.
fn kernel(body: &str, count: usize) -> String {
    format!(
        ".version 9.0\n.target sm_100\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out) {{\n\
         .reg .b32 %i, %t, %n, %r<6>; .reg .f32 %f<4>; .reg .b64 %a, %b, %d<3>; .reg .pred %p, %q; .reg .b16 %h<6>;\n\
         ld.param.u64 %a, [in];\nld.param.u64 %b, [out];\nmov.u32 %t, %tid.x;\nmov.u32 %n, %ntid.x;\nmov.u32 %i, %ctaid.x;\n\
         mad.lo.u32 %i, %i, %n, %t;\nmad.wide.u32 %a, %i, 4, %a;\nmad.wide.u32 %b, %i, 4, %b;\n\
         ld.global.b32 %r0, [%a];\nld.global.b32 %r1, [%a+{0}];\nmov.b32 {{%h0, %h1}}, %r0;\nmov.b32 {{%h2, %h3}}, %r1;\n\
         mov.b32 %f0, %r0;\nmov.b32 %f1, %r1;\n{body}\n\
         st.global.b32 [%b], %r3;\nst.global.b32 [%b+{0}], %r4;\nret;\n}}\n",
        4 * count
    )
}

fn run(module: &Module, input: &[u32], engine: Engine, path: Option<HostPath>, block: usize) -> Vec<u32> {
    let device = Device::new();
    let (grid, out) = (input.len() / 2 / block, device.zeros::<u32>(input.len()).expect("room"));
    let input = device.array(input).expect("room");
    let launch = device.load(module).expect("a module").launch("k").grid(grid as u32).block(block as u32);
    let launch = launch.engine(engine).configure(|config| config.host_path = path);
    launch.arg(&input).arg(&out).run().expect("it ends");
    out.read().expect("an array")
}

/// Runs a body on two columns of words in native code of each kind and in the reference engine.
fn compare(body: &str, input: &[u32], blocks: [usize; 2]) {
    let count = input.len() / 2;
    let module = Module::from_ptx(&kernel(body, count)).unwrap_or_else(|error| panic!("{error}\n{body}"));
    if cfg!(all(target_arch = "x86_64", unix)) {
        assert!(has_code(&module), "no native code: {body}");
    }
    let expected = run(&module, input, Engine::Reference, None, blocks[0]);
    for (path, block) in super::native_paths().into_iter().flat_map(|path| blocks.map(|block| (path, block)))
    {
        let found = run(&module, input, Engine::Native, Some(path), block);
        for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let [a, b] = [0, count].map(|column| input[column + i % count]);
            let place = format!("{body}, {}: result {} of {a:#x}, {b:#x}", path.name(), i / count);
            assert_eq!(format!("{found:#x}"), format!("{expected:#x}"), "{place}");
        }
    }
}

/// All operations of the body are one section.
fn has_code(module: &Module) -> bool {
    let functions: Vec<_> = module.program().functions.iter().flatten().collect();
    let consecutive = |_| Some(Form { step: 4, span: 64 });
    jit::Host::ALL.iter().all(|&host| {
        functions.iter().any(|function| {
            let blocks = jit::straight(function, host, |_, _| true).of_gang.blocks;
            let sections: Vec<_> =
                blocks.iter().flat_map(|(_, items)| items).filter_map(jit::Item::section).collect();
            matches!(&sections[..], [section]
                if section.operations.len() > 7 && section.compile(host, consecutive).is_some())
        })
    })
}

#[test]
fn operations_on_shorts_are_those_of_the_reference_engine() {
    let mut bodies: Vec<String> = Vec::new();
    let shorts = |[first, second]: [String; 2]| {
        format!("{first};\n{second};\nmov.b32 %r3, {{%h4, %h5}};\nmov.b32 %r4, {{%h5, %h0}};")
    };
    for ty in ["s16", "u16"] {
        for pair in [["add", "sub"], ["mul.lo", "min"], ["max", "add"]] {
            let [a, b] = pair;
            bodies.push(shorts([format!("{a}.{ty} %h4, %h0, %h2"), format!("{b}.{ty} %h5, %h2, %h1")]));
        }
        bodies.push(shorts([format!("mad.lo.{ty} %h4, %h0, %h2, %h3"), format!("shr.{ty} %h5, %h1, %r1")]));
        bodies.push(shorts([format!("cvt.{ty}.{}8 %h4, %h0", &ty[..1]), format!("shr.{ty} %h5, %h1, 5")]));
    }
    bodies.push(shorts(["neg.s16 %h4, %h0".into(), "abs.s16 %h5, %h2".into()]));
    bodies.push(shorts(["not.b16 %h4, %h0".into(), "shl.b16 %h5, %h2, %r0".into()]));
    for format in ["f16", "bf16"] {
        for [a, b] in [["add", "sub"], ["mul", "min"], ["max", "mul"]] {
            bodies
                .push(shorts([format!("{a}.{format} %h4, %h0, %h2"), format!("{b}.{format} %h5, %h1, %h3")]));
            bodies.push(format!("{a}.{format}x2 %r3, %r0, %r1;\n{b}.{format}x2 %r4, %r1, %r0;"));
        }
        bodies.push(shorts([
            format!("fma.rn.{format} %h4, %h0, %h2, %h1"),
            format!("set.ltu.{format}.{format} %h5, %h0, %h3"),
        ]));
        for compare in ["eq", "lt", "gtu", "num", "nan"] {
            bodies.push(format!(
                "setp.{compare}.{format} %p, %h0, %h2;\nsetp.{compare}.{format} %q, %h1, %h3;\n\
                 selp.b32 %r3, 1, 0, %p;\nselp.b32 %r4, 1, 0, %q;"
            ));
        }
        for rounding in ["rn", "rz", "rm", "rp"] {
            let [add, fma] = ["add", "fma"].map(|op| format!("{op}.{rounding}.f32.{format}"));
            bodies.push(format!(
                "{add} %f2, %h0, %f1;\n{fma} %f3, %h1, %h2, %f0;\nmov.b32 %r3, %f2;\nmov.b32 %r4, %f3;"
            ));
        }
        bodies.push(format!(
            "sub.f32.{format} %f2, %h0, %f1;\ncvt.f32.{format} %f3, %h1;\nmov.b32 %r3, %f2;\nmov.b32 %r4, %f3;"
        ));
        bodies.push(format!("cvt.rn.{format}x2.f32 %r3, %f0, %f1;\ncvt.rz.{format}x2.f32 %r4, %f1, %f0;"));
    }
    for rounding in ["rn", "rz", "rm", "rp"] {
        for [a, b] in [["add", "sub"], ["mul", "div"]] {
            bodies.push(format!(
                "{a}.{rounding}.ftz.f32 %f2, %f0, %f1;\n{b}.{rounding}.ftz.f32 %f3, %f0, %f1;\n\
                 mov.b32 %r3, %f2;\nmov.b32 %r4, %f3;"
            ));
        }
        bodies.push(format!(
            "fma.{rounding}.ftz.f32 %f2, %f0, %f1, %f0;\nadd.{rounding}.f32 %f3, %f2, %f1;\nmov.b32 %r3, %f2;\nmov.b32 %r4, %f3;"
        ));
        bodies.push(format!(
            "rcp.{rounding}.ftz.f32 %f2, %f0;\nsqrt.{rounding}.ftz.f32 %f3, %f1;\nmov.b32 %r3, %f2;\nmov.b32 %r4, %f3;"
        ));
        bodies.push(format!(
            "cvt.{rounding}i.f32.f32 %f2, %f0;\ncvt.{rounding}i.f32.f32 %f3, %f1;\nmov.b32 %r3, %f2;\nmov.b32 %r4, %f3;"
        ));
    }
    bodies.push("abs.ftz.f32 %f2, %f0;\nneg.ftz.f32 %f3, %f1;\nmov.b32 %r3, %f2;\nmov.b32 %r4, %f3;".into());
    bodies.push(
        "setp.geu.ftz.f32 %p, %f0, %f1;\nsetp.eq.f32 %q, %f0, %f1;\nselp.b32 %r3, 1, 0, %p;\nselp.b32 %r4, 1, 0, %q;"
            .into(),
    );
    bodies.push("mul.hi.s32 %r3, %r0, %r1;\nmul.hi.u32 %r4, %r0, %r1;".into());
    bodies.push("mul.wide.u16 %r3, %h0, %h3;\nmad.wide.u16 %r4, %h1, %h2, %r0;".into());
    bodies.push("cvt.s32.s16 %r3, %h0;\ncvt.s32.s8 %r4, %h1;".into());
    bodies.push(
        "cvt.s64.s16 %d0, %h0;\ncvt.s64.s8 %d1, %h1;\nmov.b64 {%r3, %r4}, %d0;\nmov.b64 {%r0, %r1}, %d1;\n\
                 xor.b32 %r3, %r3, %r1;\nxor.b32 %r4, %r4, %r0;"
            .into(),
    );
    bodies.push("mov.b64 %d0, {%r0, %r1};\ncvt.u16.u64 %h4, %d0;\nshr.u64 %d0, %d0, 24;\ncvt.u32.u64 %r3, %d0;\ncvt.u32.u16 %r4, %h4;".into());
    let first = (0..PAIRS).map(|i| WORDS[i % WORDS.len()]);
    let input: Vec<u32> = first.chain((0..PAIRS).map(|i| WORDS[i / WORDS.len()])).collect();
    for body in bodies {
        compare(&body, &input, [96, 72]);
    }
}

/// All halves, and numbers of f32 between any two of them: at the middle and right beside it.
#[test]
fn conversions_of_all_halves_are_those_of_the_reference_engine() {
    let halves = || 0..=u32::from(u16::MAX);
    for format in ["f16", "bf16"] {
        let input: Vec<u32> = halves().chain(halves()).collect();
        let body = format!(
            "cvt.f32.{format} %f2, %h0;\nmov.b32 %r3, %f2;\ncvt.f32.{format} %f3, %h2;\nneg.f32 %f3, %f3;\nmov.b32 %r4, %f3;"
        );
        compare(&body, &input, [128, 64]);
        for offsets in [[-1, 0], [1, 0x600]] {
            let number = |half: u32, offset: i32| {
                let between = match format {
                    "f16" => (half & 0x8000) << 16 | (((half & 0x7fff) << 13) + 0x3800_1000),
                    _ => half << 16 | 0x8000,
                };
                between.wrapping_add_signed(offset)
            };
            let input: Vec<u32> =
                offsets.iter().flat_map(|&offset| halves().map(move |half| number(half, offset))).collect();
            let roundings: &[&str] = if format == "f16" { &["rn", "rz", "rm", "rp"] } else { &["rn", "rz"] };
            for rounding in roundings {
                let body = format!(
                    "cvt.{rounding}.{format}.f32 %h4, %f0;\ncvt.u32.u16 %r3, %h4;\ncvt.{rounding}.{format}.f32 %h5, %f1;\ncvt.u32.u16 %r4, %h5;"
                );
                compare(&body, &input, [128, 64]);
            }
        }
    }
}

/// Loads and stores of 8, 16 and 32 bits, from and to registers that have more, wherever the elements lie: one behind the other,
/// with others between them, anywhere, or one for all threads.
#[test]
fn short_elements_are_extended_and_cut_off() {
    const COUNT: usize = 960;
    let input: Vec<u32> = (0..4 * COUNT as u32).map(|i| i.wrapping_mul(0x9e37_79b9) ^ 0x8000_00f0).collect();
    let places = [
        "mad.wide.u32 %w, %i, {bytes}, %in;",
        "mad.wide.u32 %w, %i, {step}, %in;",
        "mad.wide.u32 %w, %i, {three}, %in;",
        "and.b32 %x, %r0, 511;\nmad.wide.u32 %w, %x, {bytes}, %in;",
        "mov.b64 %w, %in;",
    ];
    for ty in ["u8", "s8", "u16", "s16", "u32", "s32"] {
        let bytes = match &ty[1..] {
            "8" => 1,
            "16" => 2,
            _ => 4,
        };
        for (index, place) in places.iter().enumerate() {
            let place = place.replace("{step}", if bytes == 4 { "8" } else { "4" });
            let place =
                place.replace("{bytes}", &bytes.to_string()).replace("{three}", &(3 * bytes).to_string());
            let of_short = "{%h0, %h0}";
            let load = match bytes {
                4 => format!("ld.global.{ty} %d0, [%w];\nmov.b64 {{%r2, %r3}}, %d0;"),
                _ => format!(
                    "ld.global.{ty} %h0, [%w+{bytes}];\nld.global.{ty} %r2, [%w];\nld.global.{ty} %d0, [%w];\nmov.b32 %r3, {of_short};\n\
                     mov.b64 {{%r4, %r5}}, %d0;\nxor.b32 %r2, %r2, %r4;\nshl.b32 %r5, %r5, 3;\nxor.b32 %r3, %r3, %r5;"
                ),
            };
            let load = match (bytes, index) {
                // As many bytes for each thread as the elements have. They are read behind the section.
                (4, 1) => format!(
                    "ld.global.v2.{ty} {{%d0, %d1}}, [%w];\nnot.b32 %r4, %r0;\nmad.lo.u32 %s, %r4, %r0, %s;\nbar.sync 0;\n\
                     xor.b64 %d0, %d0, %d1;\nmov.b64 {{%r2, %r3}}, %d0;"
                ),
                _ => load,
            };
            // Threads store to places of their own.
            let own = match index {
                1 => place.replace("%i, 8", "%i, 4").replace("%in", "%own"),
                0 | 2 => place.replace("%in", "%own"),
                _ => "mad.wide.u32 %w, %i, 8, %own;".into(),
            };
            let store = match bytes {
                4 => format!("{own}\nst.global.{ty} [%w], %d0;"),
                _ => format!(
                    "{own}\ncvt.u16.u32 %h1, %r3;\nst.global.{ty} [%w], %h1;\nadd.s64 %w, %w, 7680;\nst.global.{ty} [%w], %d0;"
                ),
            };
            for looping in [false, true] {
                let (begin, end) = if looping {
                    ("L:\nadd.u64 %in, %in, 8;", "add.u32 %c, %c, 1;\nsetp.lt.u32 %p, %c, 3;\n@%p bra L;")
                } else {
                    ("", "")
                };
                let text = format!(
                    ".version 9.0\n.target sm_100\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out, .param .u64 own) {{\n\
                     .reg .b32 %i, %t, %n, %r<6>, %x, %c, %s; .reg .b64 %in, %a, %b, %own, %w, %d<2>; .reg .pred %p; .reg .b16 %h<2>;\n\
                     ld.param.u64 %in, [in];\nld.param.u64 %b, [out];\nld.param.u64 %own, [own];\n\
                     mov.u32 %t, %tid.x;\nmov.u32 %n, %ntid.x;\nmov.u32 %i, %ctaid.x;\nmad.lo.u32 %i, %i, %n, %t;\n\
                     mad.wide.u32 %a, %i, 4, %in;\nmad.wide.u32 %b, %i, 4, %b;\nld.global.b32 %r0, [%a];\n\
                     mov.u32 %c, 0;\nmov.u32 %s, 0;\n{begin}\n{place}\n{load}\n{store}\nmad.lo.u32 %s, %s, 31, %r2;\nmad.lo.u32 %s, %s, 31, %r3;\n\
                     {end}\nst.global.u32 [%b], %s;\nret;\n}}\n"
                );
                let module = Module::from_ptx(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
                let run = |engine: Engine, path: Option<HostPath>, block: usize| {
                    let device = Device::new();
                    let input = device.array(&input).expect("room");
                    let out = device.zeros::<u32>(COUNT).expect("room");
                    let own = device.zeros::<u32>(4 * COUNT).expect("room");
                    let launch = device.load(&module).expect("a module").launch("k");
                    let launch = launch.grid((COUNT / block) as u32).block(block as u32).engine(engine);
                    let launch = launch.configure(|config| config.host_path = path);
                    launch
                        .arg(&input)
                        .arg(&out)
                        .arg(&own)
                        .run()
                        .unwrap_or_else(|error| panic!("{error}\n{text}"));
                    [out.read().expect("an array"), own.read().expect("an array")]
                };
                let expected = run(Engine::Reference, None, 96);
                for path in super::native_paths() {
                    for block in [96, 80] {
                        let found = run(Engine::Native, Some(path), block);
                        assert!(found == expected, "{}, blocks of {block}:\n{text}", path.name());
                    }
                }
            }
        }
    }
}

/// Lanes leave a loop between what writes a value of 16 bits and what reads it: no single allocation has what they access. Other values
/// of 16 bits are the same in all lanes, or step from lane to lane.
#[test]
fn lanes_that_leave_keep_their_shorts() {
    let text = |address: &str| {
        format!(
            ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 out) {{\n\
                .reg .b32 %t, %i, %r<4>; .reg .b64 %a, %b, %o, %w; .reg .pred %p, %q; .reg .b16 %h<5>;\n\
                ld.param.u64 %a, [a];\nld.param.u64 %b, [b];\nld.param.u64 %o, [out];\nmov.u32 %t, %tid.x;\n\
                and.b32 %r0, %t, 4;\nsetp.eq.u32 %q, %r0, 0;\nmov.u32 %i, 0;\nmov.u32 %r3, 0;\n\
                mov.u16 %h3, 65000;\nadd.u32 %r1, %t, 65500;\ncvt.u16.u32 %h4, %r1;\n\
                L:\nmad.lo.u32 %r1, %t, 977, %i;\ncvt.u16.u32 %h0, %r1;\nmul.lo.u16 %h1, %h0, 77;\n{address};\n\
                mad.wide.u32 %w, %t, 4, %w;\nld.global.u32 %r2, [%w];\nxor.b16 %h2, %h0, %h1;\ncvt.u32.u16 %r1, %h2;\n\
                add.u32 %r3, %r3, %r1;\nadd.u32 %r3, %r3, %r2;\n\
                add.u16 %h3, %h3, 300;\nmul.wide.u16 %r1, %h3, %h4;\nadd.u32 %r3, %r3, %r1;\nadd.u32 %i, %i, 1;\nsetp.lt.u32 %p, %i, 9;\n@%p bra L;\n\
                mad.wide.u32 %o, %t, 4, %o;\nst.global.u32 [%o], %r3;\nret;\n}}\n"
        )
    };
    for address in ["selp.b64 %w, %a, %b, %q", "mov.b64 %w, %a"] {
        let module = Module::from_ptx(&text(address)).expect("a module");
        let run = |engine: Engine, path: Option<HostPath>| {
            let device = Device::new();
            let [a, b] = [7, 9].map(|factor| {
                device.array(&(0..96).map(|i| i * factor).collect::<Vec<u32>>()).expect("room")
            });
            let out = device.zeros::<u32>(96).expect("room");
            let launch = device.load(&module).expect("room").launch("k").block(96).engine(engine);
            launch
                .configure(|config| config.host_path = path)
                .arg(&a)
                .arg(&b)
                .arg(&out)
                .run()
                .expect("it ends");
            out.read().expect("an array")
        };
        let expected = run(Engine::Reference, None);
        for path in super::native_paths() {
            assert_eq!(run(Engine::Native, Some(path)), expected, "{}", path.name());
        }
    }
}

/// Whichever register of the host has the pointer, and if none has it, bytes of wide registers are stored where they belong.
#[test]
fn bytes_of_wide_registers_are_stored_by_any_pointer() {
    const COUNT: usize = 384;
    for before in 0..13 {
        let loads: String = (0..before)
            .map(|i| {
                format!(
                    "add.u64 %q{i}, %a, {};\nld.global.u32 %r1, [%q{i}];\nxor.b32 %r0, %r0, %r1;\n",
                    4 * i
                )
            })
            .collect();
        let text = format!(
            ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out) {{\n\
             .reg .b32 %i, %t, %n, %r<2>; .reg .b64 %a, %b, %d<2>, %q<13>;\n\
             ld.param.u64 %a, [in];\nld.param.u64 %b, [out];\nmov.u32 %t, %tid.x;\nmov.u32 %n, %ntid.x;\nmov.u32 %i, %ctaid.x;\n\
             mad.lo.u32 %i, %i, %n, %t;\nmad.wide.u32 %a, %i, 4, %a;\nmad.wide.u32 %b, %i, 4, %b;\nmov.u32 %r0, %i;\n{loads}\
             mul.wide.u32 %d0, %r0, 77;\nadd.u64 %d1, %d0, 5;\nmul.lo.u64 %d0, %d0, 9;\nxor.b64 %d1, %d1, %d0;\nmul.lo.u64 %d0, %d0, 3;\n\
             xor.b64 %d0, %d0, 170;\nadd.u64 %d0, %d0, %d1;\nst.global.v2.u8 [%b+2], {{%d0, %d1}};\nret;\n}}\n"
        );
        let module = Module::from_ptx(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let run = |engine: Engine, path: Option<HostPath>| {
            let device = Device::new();
            let input = device.array(&(0..COUNT as u32 + 16).collect::<Vec<u32>>()).expect("room");
            let out = device.zeros::<u32>(COUNT).expect("room");
            let launch = device.load(&module).expect("room").launch("k").grid(4).block(96).engine(engine);
            launch.configure(|config| config.host_path = path).arg(&input).arg(&out).run().expect("it ends");
            out.read().expect("an array")
        };
        let expected = run(Engine::Reference, None);
        for path in super::native_paths() {
            assert_eq!(run(Engine::Native, Some(path)), expected, "{before} loads, {}", path.name());
        }
    }
}
