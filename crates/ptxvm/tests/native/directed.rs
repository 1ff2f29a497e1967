//! Operations of loops on pairs of values that arithmetic treats in a special way, and loops in which one thing matters.

use ptxvm::{Device, Engine, Error, HostPath, Module};

const WORDS: [u32; 16] = [
    0,
    0x8000_0000,
    1,
    0x8000_0001,
    0x3f80_0000,
    0xbfc0_0000,
    0x4f00_0000,
    0xcf00_0001,
    0x4f80_0000,
    0x7f80_0000,
    0xff80_0000,
    0x7fff_ffff,
    0x7f80_0001,
    0xffc0_1234,
    0x0080_0000,
    7,
];
const PAIRS: usize = WORDS.len() * WORDS.len();

/// f64 with the same meaning, but for four.
fn wide(index: usize) -> u64 {
    let single = f32::from_bits(WORDS[index]);
    match index {
        // It is less than 2^31, and rounds to that.
        6 => 2_147_483_647.5f64.to_bits(),
        // A signalling NaN.
        12 => 0x7ff0_0000_0000_0001,
        13 => 0xfff8_0000_1234_5678,
        15 => 7,
        _ => f64::from(single).to_bits(),
    }
}

/// Runs `body` three times for each pair of values: `%f0`, `%r0`, `%d0` and `%f1`, `%r1`, `%d1`. Returns the registers with
/// the numbers 2 and 3. `%c` counts, `%v` is the thread, and `%w` the address of its pair.
fn run(body: &str, engine: Engine) -> Result<Vec<u32>, Error> {
    let text = format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out) {{\n\
         .reg .b32 %r<4>, %v, %c, %t; .reg .f32 %f<5>; .reg .b64 %d<8>, %a, %w, %e; .reg .pred %p<3>;\n\
         ld.param.u64 %w, [in];\nld.param.u64 %a, [out];\nmov.u32 %v, %tid.x;\n\
         mad.wide.u32 %w, %v, 32, %w;\nmad.wide.u32 %a, %v, 32, %a;\n\
         ld.global.v2.b32 {{%r0, %r1}}, [%w];\nmov.b32 %f0, %r0;\nmov.b32 %f1, %r1;\n\
         ld.global.v2.b64 {{%d0, %d1}}, [%w+16];\nmov.u64 %e, %w;\n\
         mov.u32 %r2, 0;\nmov.u32 %r3, 0;\nmov.f32 %f2, %f0;\nmov.f32 %f3, %f1;\nmov.b64 %d2, %d0;\nmov.b64 %d3, %d1;\n\
         mov.u32 %c, 0;\nL:\n{body}\nadd.u32 %c, %c, 1;\nsetp.lt.u32 %p0, %c, 3;\n@%p0 bra L;\n\
         st.global.v2.b32 [%a], {{%r2, %r3}};\nst.global.v2.f32 [%a+8], {{%f2, %f3}};\n\
         st.global.v2.b64 [%a+16], {{%d2, %d3}};\nret;\n}}\n"
    );
    let module = Module::from_ptx(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    if engine == Engine::Native && cfg!(all(target_arch = "x86_64", unix)) {
        let has_code = |host| {
            let mut functions = module.program().functions.iter().flatten();
            let compiles = |plan: &jit::Loop| plan.compile(host, |_| None).is_some();
            functions.any(|function| jit::loops(function, host, |_, _| true).iter().any(compiles))
        };
        assert!(jit::Host::ALL.into_iter().all(has_code), "no native code: {body}");
    }
    let (device, mut input) = (Device::new(), Vec::new());
    for (i, j) in (0..PAIRS).map(|pair| (pair % WORDS.len(), pair / WORDS.len())) {
        input.extend([WORDS[i], WORDS[j], 0, 0]);
        input.extend([wide(i), wide(j)].iter().flat_map(|value| [*value as u32, (value >> 32) as u32]));
    }
    let (input, output) = (device.array(&input)?, device.zeros::<u32>(8 * PAIRS)?);
    let launch = device.load(&module)?.launch("k").block(PAIRS as u32).engine(engine);
    launch.arg(&input).arg(&output).run()?;
    output.read()
}

#[track_caller]
fn is_that_of_the_reference_engine(body: &str) {
    let [found, expected] =
        [Engine::Native, Engine::Reference].map(|engine| run(body, engine).expect("it ends"));
    for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
        let (pair, word) = (index / 8, index % 8);
        assert_eq!(format!("{found:#x}"), format!("{expected:#x}"), "{body}: pair {pair}, word {word}");
    }
}

#[test]
fn operations_on_special_values() {
    let mut operations: Vec<String> = Vec::new();
    for rounding in ["rn", "rz", "rm", "rp"] {
        for (ty, f) in [("f32", "f"), ("f64", "d")] {
            for op in ["add", "sub", "mul", "div"] {
                operations.push(format!("{op}.{rounding}.{ty} %{f}2, %{f}0, %{f}1;"));
            }
            operations.push(format!("fma.{rounding}.{ty} %{f}2, %{f}0, %{f}1, %{f}0;"));
            operations.push(format!("fma.{rounding}.{ty} %{f}2, %{f}0, %{f}0, %{f}1;"));
            operations.push(format!("fma.{rounding}.{ty} %{f}2, %{f}0, %{f}1, %{f}2;"));
            operations.push(format!("rcp.{rounding}.{ty} %{f}2, %{f}0;\nsqrt.{rounding}.{ty} %{f}3, %{f}0;"));
        }
        operations.push(format!("cvt.{rounding}i.s32.f32 %r2, %f0;\ncvt.{rounding}i.u32.f32 %r3, %f0;"));
        operations.push(format!("cvt.{rounding}i.s32.f64 %r2, %d0;"));
        operations.push(format!("cvt.{rounding}.f32.f64 %f2, %d0;"));
        operations.push(format!("cvt.{rounding}.f64.s64 %d2, %d0;\ncvt.{rounding}.f64.u64 %d3, %d0;"));
    }
    for (ty, f) in [("f32", "f"), ("f64", "d")] {
        operations.push(format!("min.{ty} %{f}2, %{f}0, %{f}1;\nmax.{ty} %{f}3, %{f}0, %{f}1;"));
        operations.push(format!("neg.{ty} %{f}2, %{f}0;\nabs.{ty} %{f}3, %{f}0;"));
        for compare in
            ["eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"]
        {
            operations.push(format!("setp.{compare}.{ty} %p1|%p2, %{f}0, %{f}1;\nselp.b32 %r2, 1, 2, %p1;\nselp.b32 %r3, 1, 2, %p2;"));
        }
    }
    for (ty, r) in [("s32", "r"), ("u32", "r"), ("s64", "d"), ("u64", "d")] {
        operations.push(format!("min.{ty} %{r}2, %{r}0, %{r}1;\nmax.{ty} %{r}3, %{r}0, %{r}1;"));
        operations.push(format!("mul.lo.{ty} %{r}2, %{r}0, %{r}1;\nmad.lo.{ty} %{r}3, %{r}0, %{r}1, %{r}0;"));
        operations.push(format!("shr.{ty} %{r}2, %{r}0, %r1;\nshl.b{} %{r}3, %{r}0, %r1;", &ty[1..]));
        operations.push(format!("add.{ty} %{r}2, %{r}0, %{r}1;\nsub.{ty} %{r}3, %{r}0, %{r}1;"));
    }
    operations.push("cvt.f64.f32 %d2, %f0;".into());
    operations.push("cvt.rn.f32.s32 %f2, %r0;\ncvt.rn.f32.u32 %f3, %r0;".into());
    operations.push("cvt.rn.f64.s32 %d2, %r0;\ncvt.rn.f64.u32 %d3, %r0;".into());
    operations.push("mul.wide.s32 %d2, %r0, %r1;\nmul.wide.u32 %d3, %r0, %r1;".into());
    operations.push("mad.wide.s32 %d2, %r0, %r1, %d1;\ncvt.u32.u64 %r2, %d0;".into());
    operations.push("neg.s64 %d2, %d0;\nabs.s64 %d3, %d0;\nnot.b64 %d1, %d1;".into());
    for op in ["cos", "ex2", "lg2", "rcp", "rsqrt", "sin", "sqrt", "tanh"] {
        operations.push(format!("{op}.approx.f32 %f2, %f0;"));
    }
    operations.push("div.approx.f32 %f2, %f0, %f1;\ndiv.full.f32 %f3, %f0, %f1;".into());
    operations.push("div.s32 %r2, %r0, %r1;\nrem.s32 %r3, %r0, %r1;".into());
    operations.push("div.u32 %r2, %r0, %r1;\nrem.u32 %r3, %r0, %r1;".into());
    operations.iter().for_each(|body| is_that_of_the_reference_engine(body));
}

#[test]
fn numbers_for_all_lanes() {
    for body in [
        // Sums that wrap around in some lanes, and differences.
        "add.s32 %t, %v, 0x7fffff80;\nadd.s32 %t, %t, %c;\ncvt.s64.s32 %d4, %t;",
        "add.s32 %t, %v, 0xffffff80;\nadd.s32 %t, %t, %c;\ncvt.u64.u32 %d4, %t;\ncvt.s64.s32 %d5, %t;",
        "sub.s32 %t, %c, %v;\nmul.wide.s32 %d4, %t, 12;\nmul.wide.u32 %d5, %t, 3;",
        "sub.s32 %t, %c, %v;\nneg.s32 %t, %t;\ncvt.s64.s32 %d4, %t;",
        "mad.lo.s32 %t, %v, 5, %c;\nshl.b32 %t, %t, 3;\nmul.wide.s32 %d4, %t, -7;",
        // Numbers of the loop alone.
        "shl.b32 %t, %c, %c;\nxor.b32 %t, %t, -3;\nshr.s32 %r2, %t, %c;\nshr.u32 %r3, %t, 40;",
        "cvt.rn.f32.u32 %f4, %c;\ndiv.rz.f32 %f4, %f4, 0f40400000;\nmov.b32 %r2, %f4;",
        "ld.global.f32 %f4, [%a];\nmul.f32 %f4, %f4, %f4;\nadd.rm.f32 %f4, %f4, 0f7f800000;\nmov.b32 %r2, %f4;",
    ] {
        // A loop without values of single lanes is interpreted.
        let own =
            "xor.b64 %d2, %d4, %d0;\nxor.b64 %d3, %d5, %d0;\nxor.b32 %r2, %r2, %r0;\nxor.b32 %r3, %r3, %r0;";
        is_that_of_the_reference_engine(&format!("{body}\n{own}"));
    }
}

#[test]
fn values_are_there_when_lanes_leave() {
    // `leave`: an access that no region holds, as each lane has one in one of two places.
    let leave = "setp.lt.u32 %p2, %r0, 2;\nselp.b64 %e, %w, %a, %p2;\nld.global.b32 %t, [%e];";
    for body in [
        // A NaN of the host whose bits are seen behind.
        "mul.f32 %f4, %f0, %f1;\nLEAVE\nmov.b32 %r2, %f4;\nxor.b32 %r2, %r2, 5;",
        "add.f32 %f4, %f0, %f1;\nsub.f32 %f4, %f4, %f1;\nLEAVE\nmov.b32 %r3, %f4;\nnot.b32 %r3, %r3;",
        "setp.gt.f32 %p1, %f0, %f1;\nmad.lo.u32 %r3, %c, 3, 5;\nadd.s64 %d2, %d0, %d1;\nLEAVE\n\
         selp.b32 %r2, %r3, 9, %p1;\nadd.s64 %d3, %d2, 1;",
    ] {
        is_that_of_the_reference_engine(&body.replace("LEAVE", leave));
    }
}

#[test]
fn other_nans_of_f64_are_kept() {
    for body in [
        // The slots are other values when they are computed with again.
        "ld.global.b64 %d4, [%w+24];\nld.global.b64 %d5, [%w+24];\nadd.f64 %d3, %d4, %d5;\n\
         ld.global.b64 %d4, [%w+16];\nxor.b64 %d5, %d4, 16;\nsub.f64 %d2, %d4, %d5;",
        "ld.global.b64 %d4, [%w+24];\nadd.f64 %d3, %d4, 0d3ff0000000000000;\nld.global.b64 %d4, [%w+16];\n\
         fma.rn.f64 %d2, %d4, %d3, %d4;",
        // Copies of what is loaded.
        "ld.global.b64 %d4, [%w+16];\nxor.b64 %d5, %d4, 16;\nsetp.lt.u32 %p1, %r1, 9;\n\
         selp.b64 %d6, %d4, %d5, %p1;\nselp.b64 %d7, %d5, %d4, %p1;\nsub.f64 %d2, %d6, %d7;",
        "setp.lt.u32 %p1, %c, 1;\nld.global.b64 %d2, [%w+24];\nselp.b64 %d3, %d2, %d0, %p1;\n\
         add.f64 %d3, %d3, %d2;\nfma.rn.f64 %d3, %d0, %d1, %d3;",
    ] {
        is_that_of_the_reference_engine(body);
    }
}

/// Vectors of consecutive threads, which native code loads and stores whole, in a loop. Some threads leave it early.
#[test]
fn vectors_of_consecutive_threads_are_whole_in_loops() {
    for (count, registers, last) in [(2, "{%r0, %r1}", 1), (4, "{%r0, %r1, %r2, %r3}", 3)] {
        for threads in [32, 64, 100] {
            let text = format!(
                ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out) {{\n\
                 .reg .b32 %r<4>, %t, %c, %e; .reg .pred %p; .reg .b64 %a, %b;\n\
                 ld.param.u64 %a, [in];\nld.param.u64 %b, [out];\nmov.u32 %t, %tid.x;\n\
                 mad.wide.u32 %a, %t, {step}, %a;\nmad.wide.u32 %b, %t, {step}, %b;\nmov.u32 %c, 0;\n\
                 shr.u32 %e, %t, 4;\nadd.u32 %e, %e, 3;\n\
                 L:\nld.global.v{count}.u32 {registers}, [%a];\nmad.lo.u32 %r0, %r0, 3, %r{last};\nxor.b32 %r1, %r1, %c;\n\
                 st.global.v{count}.u32 [%b], {registers};\nadd.u64 %a, %a, {next};\nadd.u64 %b, %b, {next};\n\
                 add.u32 %c, %c, 1;\nsetp.lt.u32 %p, %c, %e;\n@%p bra L;\nret;\n}}\n",
                step = 4 * count,
                next = 4 * count * threads,
            );
            let module = Module::from_ptx(&text).expect("a module");
            let elements = count * threads * 12;
            let input: Vec<u32> = (0..elements as u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
            let run = |engine: Engine, path: Option<HostPath>| {
                let device = Device::new();
                let (input, out) =
                    (device.array(&input).expect("room"), device.zeros::<u32>(elements).expect("room"));
                let launch =
                    device.load(&module).expect("room").launch("k").block(threads as u32).engine(engine);
                let launch = launch.configure(|config| config.host_path = path);
                launch.arg(&input).arg(&out).run().expect("it ends");
                out.read().expect("an array")
            };
            let reference = run(Engine::Reference, None);
            for path in super::native_paths() {
                let found = run(Engine::Native, Some(path));
                assert_eq!(found, reference, "{count} elements, {threads} threads, {}", path.name());
            }
        }
    }
}
