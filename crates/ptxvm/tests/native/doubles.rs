//! Operations on f64 in straight-line code, on triples of values among which are all kinds of NaNs.

use jit::Form;
use ptxvm::{Device, Engine, HostPath, Module};

const NUMBERS: [u64; 12] = [
    0,
    1 << 63,
    1,
    0x3ff0_0000_0000_0000,
    0xbff8_0000_0000_0000,
    0x7ff0_0000_0000_0000,
    0xfff0_0000_0000_0000,
    0x7fef_ffff_ffff_ffff,
    // Quiet and signalling NaNs.
    0x7ff8_0000_0000_1234,
    0xfff8_0000_0000_0000,
    0x7ff0_0000_0000_0001,
    0xfff4_5678_0000_0000,
];
const THREADS: usize = NUMBERS.len().pow(3);

/// `body` computes `%d3` and `%d4` from `%d0` to `%d2`, each with its own column of memory.
fn kernel(body: &str) -> String {
    let column = 8 * THREADS;
    format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out) {{\n\
         .reg .b32 %i, %t, %n, %r; .reg .f32 %f; .reg .b64 %a, %b, %d<5>; .reg .pred %p, %q;\n\
         ld.param.u64 %a, [in];\nld.param.u64 %b, [out];\nmov.u32 %t, %tid.x;\nmov.u32 %n, %ntid.x;\nmov.u32 %i, %ctaid.x;\n\
         mad.lo.u32 %i, %i, %n, %t;\nmad.wide.u32 %a, %i, 8, %a;\nmad.wide.u32 %b, %i, 8, %b;\n\
         ld.global.b64 %d0, [%a];\nld.global.b64 %d1, [%a+{column}];\nld.global.b64 %d2, [%a+{}];\n{body}\n\
         st.global.b64 [%b], %d3;\nst.global.b64 [%b+{column}], %d4;\nret;\n}}\n",
        2 * column,
    )
}

fn run(module: &Module, input: &[u64], engine: Engine, path: Option<HostPath>, block: u32) -> Vec<u64> {
    let device = Device::new();
    let (input, out) = (device.array(input).expect("room"), device.zeros::<u64>(2 * THREADS).expect("room"));
    let launch = device.load(module).expect("a module").launch("k").grid(THREADS as u32 / block).block(block);
    let launch = launch.engine(engine).configure(|config| config.host_path = path);
    launch.arg(&input).arg(&out).run().expect("it ends");
    out.read().expect("an array")
}

fn has_code(module: &Module) -> bool {
    let functions: Vec<_> = module.program().functions.iter().flatten().collect();
    let consecutive = |_| Some(Form { step: 8, span: 128 });
    jit::Host::ALL.iter().all(|&host| {
        functions.iter().any(|function| {
            let blocks = jit::straight(function, host, |_, _| true).of_gang.blocks;
            let mut sections = blocks.iter().flat_map(|(_, items)| items).filter_map(jit::Item::section);
            sections
                .any(|section| section.operations.len() > 5 && section.compile(host, consecutive).is_some())
        })
    })
}

#[test]
fn operations_on_f64_keep_nans_in_straight_code() {
    let mut bodies: Vec<String> = Vec::new();
    for rounding in ["rn", "rz", "rm", "rp"] {
        for [first, second] in [["add", "sub"], ["mul", "div"]] {
            bodies.push(format!(
                "{first}.{rounding}.f64 %d3, %d0, %d1;\n{second}.{rounding}.f64 %d4, %d0, %d1;"
            ));
        }
        bodies
            .push(format!("fma.{rounding}.f64 %d3, %d0, %d1, %d2;\nfma.{rounding}.f64 %d4, %d0, %d0, %d1;"));
        bodies.push(format!("rcp.{rounding}.f64 %d3, %d0;\nsqrt.{rounding}.f64 %d4, %d0;"));
        bodies.push(format!(
            "cvt.{rounding}.f32.f64 %f, %d0;\ncvt.f64.f32 %d3, %f;\ncvt.{rounding}.f64.s64 %d4, %d1;"
        ));
        bodies.push(format!(
            "cvt.{rounding}i.s32.f64 %r, %d0;\ncvt.rn.f64.u32 %d3, %r;\ncvt.rn.f64.s32 %d4, %r;"
        ));
    }
    bodies.push("min.f64 %d3, %d0, %d1;\nmax.f64 %d4, %d0, %d1;".into());
    bodies.push("neg.f64 %d3, %d0;\nabs.f64 %d4, %d0;".into());
    bodies.push(
        "setp.ltu.f64 %p|%q, %d0, %d1;\nselp.b64 %d3, %d1, %d2, %p;\nselp.b64 %d4, %d1, %d2, %q;".into(),
    );
    // Results that take the registers of sources.
    bodies.push(
        "sub.f64 %d1, %d0, %d1;\nfma.rn.f64 %d0, %d1, %d0, %d2;\nmov.b64 %d3, %d0;\nsub.f64 %d4, %d0, %d0;"
            .into(),
    );
    let numbers = (0..3)
        .flat_map(|column| (0..THREADS).map(move |i| NUMBERS[i / NUMBERS.len().pow(column) % NUMBERS.len()]));
    let input: Vec<u64> = numbers.collect();
    for body in bodies {
        let module = Module::from_ptx(&kernel(&body)).unwrap_or_else(|error| panic!("{error}\n{body}"));
        if cfg!(all(target_arch = "x86_64", unix)) {
            assert!(has_code(&module), "no native code: {body}");
        }
        let expected = run(&module, &input, Engine::Reference, None, 96);
        for (path, block) in super::native_paths().into_iter().flat_map(|path| [(path, 96), (path, 72)]) {
            let found = run(&module, &input, Engine::Native, Some(path), block);
            for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let sources: Vec<_> =
                    (0..3).map(|column| format!("{:#x}", input[column * THREADS + i % THREADS])).collect();
                let result = i / THREADS;
                assert_eq!(
                    format!("{found:#x}"),
                    format!("{expected:#x}"),
                    "{body}, {}: result {result} of {sources:?}",
                    path.name()
                );
            }
        }
    }
}
