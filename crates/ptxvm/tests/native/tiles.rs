//! Native code that takes the threads of many blocks at once through barriers: kernels whose blocks share memory.
//!
//! `PTXVM_LOOPS` and `PTXVM_LOOP` say how many random kernels run, and from which seed on.

use std::fmt::Write as _;

use fastrand::Rng;
use ptxvm::{Device, Engine, HostPath, Module};

use super::coarse::{Outcome, assert_same, run, ways};
use super::{native_paths, seeds};

/// `k(in, out, c)`: each thread has an element of each.
struct Tiles {
    text: String,
    grid: [u32; 2],
    block: [u32; 2],
    input: Vec<u32>,
}

const HEAD: &str = ".version 9.0\n.target sm_90\n.address_size 64\n\
    .visible .entry k(.param .u64 in, .param .u64 out, .param .u32 c) {\n\
    .reg .b32 %x, %y, %i, %t, %l, %w, %c, %n, %u, %v, %s, %e, %r<4>; .reg .f32 %f<4>; .reg .pred %p<6>; .reg .b64 %a, %b;\n\
    .shared .align 4 .b8 tile[5120];\n\
    ld.param.u64 %a, [in];\nld.param.u64 %b, [out];\nld.param.u32 %c, [c];\n\
    mov.u32 %x, %tid.x;\nmov.u32 %y, %tid.y;\nmov.u32 %n, %ntid.x;\nmad.lo.u32 %t, %y, %n, %x;\n\
    mov.u32 %u, %ntid.y;\nmul.lo.u32 %n, %n, %u;\nand.b32 %l, %t, 31;\nshr.u32 %w, %t, 5;\n\
    mov.u32 %u, %ctaid.x;\nmov.u32 %v, %ctaid.y;\nmov.u32 %i, %nctaid.x;\nmad.lo.u32 %u, %v, %i, %u;\n\
    mad.lo.u32 %i, %u, %n, %t;\nmad.wide.u32 %a, %i, 4, %a;\nmad.wide.u32 %b, %i, 4, %b;\n\
    mov.u32 %s, tile;\nmov.u32 %v, 0;\n";

impl Tiles {
    fn random(seed: u64) -> Tiles {
        let rng = &mut Rng::with_seed(seed);
        let blocks =
            [[32, 1], [64, 1], [96, 1], [128, 1], [256, 1], [32, 8], [16, 16], [64, 4], [32, 2], [1024, 1]];
        let block: [u32; 2] = blocks[rng.usize(..blocks.len())];
        let threads = block[0] * block[1];
        let grids = [[1, 1], [9, 1], [40, 1], [7, 5], [130, 1]];
        let grid = grids[rng.usize(..if threads > 256 { 2 } else { 5 })];
        let mut text = String::from(HEAD);
        for i in 0..4 {
            match rng.u8(..3) {
                0 => writeln!(text, "mov.u32 %r{i}, {};", rng.u32(..100)).unwrap(),
                1 => writeln!(text, "add.u32 %r{i}, %i, {i};").unwrap(),
                _ => writeln!(text, "ld.global.u32 %r{i}, [%a];").unwrap(),
            }
        }
        let loops = rng.u8(..3) == 0;
        if loops {
            text.push_str("LOOP:\n");
        }
        // A shuffle among lanes of which some have ended has no defined result.
        let shuffles = rng.bool();
        for phase in 0..=rng.u8(..3) {
            Tiles::phase(rng, &mut text, phase, threads, shuffles);
        }
        if loops {
            text.push_str("add.u32 %v, %v, 1;\nsetp.lt.u32 %p5, %v, 3;\nbar.sync 0;\n@%p5 bra LOOP;\n");
        }
        text.push_str("xor.b32 %r0, %r0, %r1;\nadd.u32 %r2, %r2, %r3;\nxor.b32 %r0, %r0, %r2;\nst.global.u32 [%b], %r0;\nEND:\nret;\n}\n");
        let total = (grid[0] * grid[1] * threads) as usize;
        let input = (0..total + 64).map(|_| if rng.bool() { rng.u32(..) } else { rng.u32(..9) }).collect();
        Tiles { text, grid, block, input }
    }

    /// Stores to the tile, a barrier, and loads of what others have stored.
    fn phase(rng: &mut Rng, text: &mut String, phase: u8, threads: u32, shuffles: bool) {
        let mut line = |line: String| writeln!(text, "{line}").unwrap();
        let [d, a, b] = [(); 3].map(|()| rng.u8(..4));
        for _ in 0..rng.u8(..4) {
            let [d, a, b] = [(); 3].map(|()| rng.u8(..4));
            line(match rng.u8(..8) {
                4 => format!("mov.u32 %r{d}, {};", rng.u32(..9)),
                // Nobody has written there, or others have.
                5 if phase == 0 => format!("ld.shared.u32 %r{d}, [%s];\nbar.sync 0;"),
                6 if phase == 0 => format!("mad.lo.u32 %e, %t, 4, %s;\nld.shared.u32 %r{d}, [%e];"),
                0 => format!("mad.lo.u32 %r{d}, %r{a}, 77, %r{b};"),
                1 => format!("xor.b32 %r{d}, %r{a}, %i;"),
                2 => format!(
                    "mov.b32 %f0, %r{a};\nmov.b32 %f1, %r{b};\nadd.f32 %f0, %f0, %f1;\nmov.b32 %r{d}, %f0;"
                ),
                // The host's NaN is not PTX's.
                7 if shuffles => format!(
                    "mov.b32 %f0, %r{a};\nmul.f32 %f0, %f0, 0f7F800000;\nsub.f32 %f0, %f0, %f0;\nmov.b32 %u, %f0;\n\
                     shfl.sync.bfly.b32 %e, %u, 1, 31, -1;\nxor.b32 %r{d}, %r{b}, %e;"
                ),
                3 if shuffles => format!("shfl.sync.bfly.b32 %r{d}, %r{a}, {}, 31, -1;", 1 << rng.u8(..5)),
                _ => format!("max.s32 %r{d}, %r{a}, %r{b};"),
            });
        }
        // Own elements, by columns, and one for each warp or lane.
        let place = |rng: &mut Rng| match rng.u8(..7) {
            0 => format!("sub.u32 %e, {}, %t;\nmad.lo.u32 %e, %e, 4, %s;", threads - 1),
            1 => "mad.lo.u32 %e, %l, 4, %s;".to_owned(),
            2 => "shl.b32 %e, %t, 2;\nand.b32 %e, %e, 124;\nadd.u32 %e, %e, %s;".to_owned(),
            3 => "mad.lo.u32 %e, %w, 4, %s;".to_owned(),
            4 => "mad.lo.u32 %e, %x, 4, %s;\nmad.lo.u32 %e, %y, 4, %e;".to_owned(),
            _ => "mad.lo.u32 %e, %t, 4, %s;".to_owned(),
        };
        let guard = |rng: &mut Rng| {
            match rng.u8(..9) {
            8 => "setp.lt.u32 %p0, %l, %v;".to_owned(),
            0 => "setp.eq.u32 %p0, %l, 0;".to_owned(),
            1 => "setp.lt.u32 %p0, %x, 5;".to_owned(),
            2 => "setp.ne.u32 %p0, %w, 0;".to_owned(),
            3 => "setp.ge.u32 %p0, %l, 8;".to_owned(),
            4 => "setp.lt.u32 %p1, %l, 20;\nsetp.ge.and.u32 %p0, %l, 3, %p1;".to_owned(),
            5 => "setp.lt.u32 %p1, %l, 9;\nsetp.gt.u32 %p2, %t, 40;\nor.pred %p0, %p1, %p2;\nnot.pred %p0, %p0;".to_owned(),
            6 => "setp.gt.u32 %p0, %c, 100;".to_owned(),
            _ => "setp.gt.u32 %p0, %y, 1;".to_owned(),
        }
        };
        let own = "mad.lo.u32 %e, %t, 4, %s;\n";
        line(format!("{own}st.shared.u32 [%e], %r{a};"));
        if rng.bool() {
            line(guard(rng));
            line(format!(
                "@%p0 bra M{phase};\nst.shared.u32 [%e+{}], %r{b};\nM{phase}:",
                4 * rng.u32(..2) * threads
            ));
        }
        if rng.u8(..40) == 0 {
            line("ld.shared.u32 %r3, [%e+4096];".to_owned());
        }
        line(format!("bar.sync {};", rng.u8(..2)));
        if rng.u8(..4) == 0 {
            let bounds = if shuffles { [32, 64, 96] } else { [threads / 2, threads - 1, 5] };
            let bound = bounds[rng.usize(..3)].max(1);
            let compare = ["ge", "lt", "eq"][rng.usize(..if shuffles { 2 } else { 3 })];
            line(format!("setp.{compare}.u32 %p3, %t, {bound};\n@%p3 bra END;"));
        }
        line(place(rng));
        line(format!("ld.shared.u32 %r{d}, [%e];"));
        if rng.bool() {
            line(guard(rng));
            let [d, a] = [(); 2].map(|()| rng.u8(..4));
            line(format!(
                "@%p0 bra N{phase};\nld.shared.u32 %u, [%e];\nadd.u32 %r{d}, %r{a}, %u;\nN{phase}:"
            ));
        }
        line(format!("add.u32 %r{b}, %r{b}, %r{d};\nbar.sync 0;"));
    }

    fn run(&self, module: &Module, engine: Engine, path: Option<HostPath>, threads: usize) -> Outcome {
        let total = (self.grid[0] * self.grid[1] * self.block[0] * self.block[1]) as usize;
        let memory = (&self.input[..], total);
        run(module, (self.grid, self.block), memory, &[77], (engine, path, threads))
    }
}

#[test]
fn random_kernels_with_barriers_are_those_of_the_reference_engine() {
    let seeds = seeds(150);
    let (count, mut faults) = (seeds.end - seeds.start, 0);
    for seed in seeds {
        let kernel = Tiles::random(seed);
        let text = &kernel.text;
        let module = Module::from_ptx(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let expected = kernel.run(&module, Engine::Reference, None, 1);
        faults += u64::from(expected.0.is_err());
        for (engine, path, threads) in ways() {
            let found = kernel.run(&module, engine, Some(path), threads);
            let name = format!("kernel {seed}, {engine:?}, {}, {threads} host threads", path.name());
            assert_eq!(
                found.0.is_err(),
                expected.0.is_err(),
                "{name}: {:?} {:?}\n{text}",
                found.0,
                expected.0
            );
            if found.0.is_ok() {
                assert_same(&found, &expected, &name, text);
            }
        }
    }
    assert!(faults < count / 4, "{faults} of {count} kernels fault");
}

/// A block sees what later ones have written before a barrier: their threads go through each section together.
#[test]
fn blocks_with_barriers_run_together() {
    // Through shared memory; with values that pass the barrier; for some of the threads; and where the others end.
    let parts = [
        (
            "mad.lo.u32 %e, %t, 4, %s;\nst.shared.u32 [%e], %r0;",
            "ld.shared.u32 %r1, [%e];\nadd.u32 %r0, %r0, %r1;\nsub.u32 %r0, %r0, %r1;",
        ),
        ("mov.b32 %f1, %r0;", "mov.b32 %r1, %f1;\nadd.u32 %r0, %r0, %r1;\nsub.u32 %r0, %r0, %r1;"),
        (
            "mad.lo.u32 %e, %l, 4, %s;\nsetp.ne.u32 %p0, %l, 3;\n@%p0 bra M;\nst.shared.u32 [%e], %r0;\nM:",
            "add.u32 %r0, %r0, 0;",
        ),
        ("setp.ge.u32 %p3, %t, 32;\n@%p3 bra END;", "add.u32 %r0, %r0, 7;\nsub.u32 %r0, %r0, 7;"),
    ];
    for (before, behind) in parts {
        let text = format!(
            "{HEAD}ld.global.u32 %r0, [%a];\nadd.u32 %r0, %r0, 5;\nxor.b32 %r0, %r0, 3;\nst.global.u32 [%b], %r0;\n{before}\n\
             bar.sync 0;\nld.global.u32 %r2, [%b+4096];\n{behind}\nadd.u32 %r0, %r0, %r2;\nst.global.u32 [%a], %r0;\nEND:\nret;\n}}\n"
        );
        let module = Module::from_ptx(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        for path in native_paths() {
            let device = Device::new();
            let (input, out) =
                (device.zeros::<u32>(64 << 10).unwrap(), device.zeros::<u32>(65 << 10).unwrap());
            let launch =
                device.load(&module).unwrap().launch("k").grid(64).block(1024).engine(Engine::Native);
            let launch = launch.configure(|config| {
                config.host_path = Some(path);
                config.threads = Some(1);
            });
            launch.arg(&input).arg(&out).arg(77u32).run().expect("it ends");
            let found = input.read().expect("an array");
            let expected = 2 * (5 ^ 3);
            // Gangs of one block would see none of the next one.
            let saw = (0..64).filter(|block| found[block << 10] == expected).count();
            assert!(saw > 48, "{saw}, {}\n{text}", path.name());
        }
    }
}
