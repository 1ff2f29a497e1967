//! A module with an instruction, which `ptxvm run` accepts.

use std::fmt::Write;

use isa::enumerate::Spelling;
use isa::{Access, Action, Opcode, OperandKind, OperandSpec, Second, Target, Type, Version};

use isa::since;

/// How to run an example.
pub const COMMAND: &str = "ptxvm run example.ptx --arg 'u32[8]' --print 0";

/// A kernel that executes this spelling on constants and stores the results. For memory, control flow and the like,
/// it is a fixed kernel for the opcode. `None` if ptxvm cannot execute the instruction.
pub fn example(spelling: &Spelling) -> Option<String> {
    let form = spelling.form.form();
    let (version, target) = since(&form.gates(&spelling.picks))?;
    let body = match form.action {
        Action::Pure(_) => pure(spelling),
        Action::Effect(_) => {
            let (_, body) = EFFECTS.iter().find(|(opcode, _)| *opcode == form.opcode.name())?;
            let registers = ".reg .u32 %r<4>;\n.reg .u64 %rd<4>;\n.reg .pred %p<2>;\n";
            format!("{registers}ld.param.u64 %rd0, [out];\n{body}")
        }
    };
    let version = version.max(match form.action {
        Action::Pure(_) => Version::new(7, 0),
        Action::Effect(_) => Version::new(8, 0),
    });
    let least = if matches!(form.action, Action::Pure(_)) { Target::sm(50) } else { Target::sm(90) };
    let target = if target.number < least.number { least } else { target };
    let body = body.trim_end().replace('\n', "\n    ");
    // Warp-level instructions need a whole warp; `wgmma` needs four.
    let warp = match form.opcode {
        Opcode::Wgmma => " .reqntid 128",
        opcode if WARPS.contains(&opcode.name()) => " .reqntid 32",
        _ => "",
    };
    let function = if form.opcode == Opcode::Call { FUNCTION } else { "" };
    Some(format!(
        ".version {version}\n.target {target}\n.address_size 64\n\n{function}\
         .visible .entry example(.param .u64 out){warp}\n{{\n    {body}\n    ret;\n}}\n"
    ))
}

/// Bodies for memory, control flow and warps: `%rd0` is the address of `out`, all other registers are free.
const EFFECTS: &[(&str, &str)] = &[
    (
        "alloca",
        "alloca.u64 %rd1, 16, 8;\nst.local.u32 [%rd1+4], 7;\nld.local.u32 %r0, [%rd1+4];\nst.global.u32 [%rd0], %r0;",
    ),
    ("activemask", "activemask.b32 %r0;\nst.global.u32 [%rd0], %r0;"),
    ("applypriority", "applypriority.global.L2::evict_normal [%rd0], 128;"),
    ("atom", "atom.global.add.u32 %r0, [%rd0], 5;\nst.global.u32 [%rd0+4], %r0;"),
    ("bar", "bar.sync 0;"),
    ("barrier", "barrier.sync 0;"),
    (
        "bra",
        "mov.u32 %r0, 0;\nagain:\nadd.u32 %r0, %r0, 1;\nsetp.lt.u32 %p0, %r0, 10;\n@%p0 bra again;\nst.global.u32 [%rd0], %r0;",
    ),
    ("brkpt", "mov.u32 %r0, %tid.x;\nsetp.gt.u32 %p0, %r0, 31;\n@%p0 brkpt;\nst.global.u32 [%rd0], %r0;"),
    (
        "brx",
        "mov.u32 %r0, 1;\nways: .branchtargets zero, one;\nbrx.idx %r0, ways;\nzero:\nst.global.u32 [%rd0], 10;\nret;\none:\nst.global.u32 [%rd0], 11;",
    ),
    ("call", "call (%r0), add, (3, 4);\nst.global.u32 [%rd0], %r0;"),
    (
        "cp",
        ".shared .align 16 .b8 %tile[16];\ncp.async.ca.shared.global [%tile], [%rd0], 16;\ncp.async.wait_all;\nld.shared.u32 %r0, [%tile];\nst.global.u32 [%rd0], %r0;",
    ),
    ("createpolicy", "createpolicy.fractional.L2::evict_last.b64 %rd1, 1.0;"),
    ("cvta", "cvta.to.global.u64 %rd1, %rd0;\nst.global.u32 [%rd1], 1;"),
    ("discard", "discard.global.L2 [%rd0], 128;"),
    ("elect", "elect.sync %r0|%p0, 0xffffffff;\n@%p0 st.global.u32 [%rd0], %r0;"),
    ("exit", "st.global.u32 [%rd0], 1;\nexit;"),
    ("fence", "st.global.u32 [%rd0], 1;\nfence.acq_rel.gpu;\nst.global.u32 [%rd0+4], 2;"),
    ("getctarank", "getctarank.u64 %r0, %rd0;\nst.global.u32 [%rd0], %r0;"),
    ("griddepcontrol", "griddepcontrol.wait;"),
    ("isspacep", "isspacep.global %p0, %rd0;\nselp.u32 %r0, 1, 0, %p0;\nst.global.u32 [%rd0], %r0;"),
    ("ld", "ld.global.u32 %r0, [%rd0+4];\nst.global.u32 [%rd0], %r0;"),
    (
        "ldmatrix",
        ".shared .align 16 .b8 %tile[128];\nmov.u32 %r0, %tile;\nmov.u32 %r1, %laneid;\nand.b32 %r1, %r1, 7;\nmad.lo.u32 %r0, %r1, 16, %r0;\nst.shared.v2.u32 [%r0], {%r1, 5};\nbar.warp.sync -1;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r0];\nst.global.u32 [%rd0], %r2;",
    ),
    ("ldu", "ldu.global.u32 %r0, [%rd0+4];\nst.global.u32 [%rd0], %r0;"),
    ("mapa", "mapa.u64 %rd1, %rd0, 0;\nst.global.u32 [%rd1], 1;"),
    ("match", "match.any.sync.b32 %r0, 7, 1;\nst.global.u32 [%rd0], %r0;"),
    (
        "mbarrier",
        ".shared .align 8 .b64 %barrier;\nmbarrier.init.shared.b64 [%barrier], 1;\nmbarrier.arrive.shared.b64 %rd1, [%barrier];\nmbarrier.test_wait.shared.b64 %p0, [%barrier], %rd1;\nselp.u32 %r0, 1, 0, %p0;\nst.global.u32 [%rd0], %r0;",
    ),
    ("membar", "st.global.u32 [%rd0], 1;\nmembar.gl;\nst.global.u32 [%rd0+4], 2;"),
    (
        "mma",
        ".reg .b32 %a, %b;\n.reg .f32 %f<4>;\nmov.b32 %a, 0x3c003c00;\nmov.b32 %b, 0x40004000;\nmov.f32 %f0, 0.5;\nmma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%a, %a}, {%b}, {%f0, %f0, %f0, %f0};\nst.global.f32 [%rd0], %f0;",
    ),
    ("mov", "mov.u32 %r0, %tid.x;\nmov.b64 %rd1, {%r0, 7};\nst.global.u64 [%rd0], %rd1;"),
    (
        "movmatrix",
        "mov.u32 %r0, %laneid;\nmovmatrix.sync.aligned.m8n8.trans.b16 %r1, %r0;\nst.global.u32 [%rd0], %r1;",
    ),
    (
        "multimem",
        "multimem.red.relaxed.sys.global.add.u32 [%rd0], 5;\nmultimem.ld_reduce.acquire.sys.global.add.u32 %r0, [%rd0];\nmultimem.st.weak.global.u32 [%rd0+4], %r0;",
    ),
    ("nanosleep", "nanosleep.u32 100;"),
    ("pmevent", "pmevent 1;"),
    ("prefetch", "prefetch.global.L1 [%rd0];"),
    ("prefetchu", "prefetchu.L1 [%rd0];"),
    ("red", "red.global.add.u32 [%rd0], 5;"),
    ("redux", "redux.sync.add.u32 %r0, 5, 1;\nst.global.u32 [%rd0], %r0;"),
    ("ret", "st.global.u32 [%rd0], 1;\nret;"),
    ("setmaxnreg", "setmaxnreg.dec.sync.aligned.u32 40;"),
    ("shfl", "mov.u32 %r0, 7;\nshfl.sync.idx.b32 %r1|%p0, %r0, 0, 31, 1;\nst.global.u32 [%rd0], %r1;"),
    ("st", "st.global.v2.u32 [%rd0], {1, 2};"),
    (
        "stackrestore",
        "stacksave.u64 %rd1;\nalloca.u64 %rd2, 64;\nstackrestore.u64 %rd1;\nalloca.u64 %rd3, 64;\nset.eq.u32.u64 %r0, %rd2, %rd3;\nst.global.u32 [%rd0], %r0;",
    ),
    ("stacksave", "stacksave.u64 %rd1;\nalloca.u64 %rd2, 64;\nstackrestore.u64 %rd1;"),
    (
        "stmatrix",
        ".shared .align 16 .b8 %tile[128];\nmov.u32 %r0, %tile;\nmov.u32 %r1, %laneid;\nand.b32 %r2, %r1, 7;\nmad.lo.u32 %r0, %r2, 16, %r0;\nstmatrix.sync.aligned.m8n8.x1.shared.b16 [%r0], {%r1};\nbar.warp.sync -1;\nld.shared.u32 %r2, [%r0];\nst.global.u32 [%rd0], %r2;",
    ),
    ("trap", "mov.u32 %r0, %tid.x;\nsetp.gt.u32 %p0, %r0, 5;\n@%p0 trap;"),
    ("vote", "setp.eq.u32 %p0, 1, 1;\nvote.sync.ballot.b32 %r0, %p0, 1;\nst.global.u32 [%rd0], %r0;"),
    (
        "wgmma",
        ".shared .align 1024 .b8 %tile[2048];\n.reg .f32 %f<4>;\nmov.u32 %r0, %tile;\nmov.u32 %r1, %tid.x;\nmad.lo.u32 %r1, %r1, 16, %r0;\nmov.u32 %r2, 0x3c003c00;\nst.shared.v4.u32 [%r1], {%r2, %r2, %r2, %r2};\nfence.proxy.async.shared::cta;\nbar.sync 0;\nshr.u32 %r0, %r0, 4;\ncvt.u64.u32 %rd1, %r0;\nor.b64 %rd1, %rd1, 0x1000080000;\nmov.f32 %f0, 0.5;\nwgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd1, %rd1, 1, 1, 1, 0, 0;\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\nst.global.f32 [%rd0], %f0;",
    ),
    (
        "wmma",
        ".shared .align 32 .b8 %tile[512];\n.reg .b32 %a<8>, %b<8>;\n.reg .f32 %c, %d<8>;\nmov.u32 %r0, %tile;\nmov.u32 %r1, %laneid;\nmad.lo.u32 %r1, %r1, 16, %r0;\nmov.u32 %r2, 0x3c003c00;\nst.shared.v4.u32 [%r1], {%r2, %r2, %r2, %r2};\nbar.warp.sync -1;\nwmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7}, [%r0];\nwmma.load.b.sync.aligned.col.m16n16k16.shared.f16 {%b0, %b1, %b2, %b3, %b4, %b5, %b6, %b7}, [%r0];\nmov.f32 %c, 0.5;\nwmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7}, {%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7}, {%b0, %b1, %b2, %b3, %b4, %b5, %b6, %b7}, {%c, %c, %c, %c, %c, %c, %c, %c};\nst.global.f32 [%rd0], %d0;",
    ),
];

/// The callee in the example of `call`.
const FUNCTION: &str =
    ".func (.reg .u32 %sum) add(.reg .u32 %a, .reg .u32 %b)\n{\n    add.u32 %sum, %a, %b;\n    ret;\n}\n\n";

/// Opcodes that all lanes of a warp execute together.
const WARPS: &[&str] = &["ldmatrix", "mma", "movmatrix", "stmatrix", "wmma"];

/// A body that loads constants into registers, executes the instruction, and stores the results.
fn pure(spelling: &Spelling) -> String {
    let form = spelling.form.form();
    let (mut declarations, mut before, mut after) = (String::new(), String::new(), String::new());
    let mut operands = Vec::new();
    if form.carry.reads {
        declarations += ".reg .u32 %t;\n";
        before += "add.cc.u32 %t, 0xffffffff, 1;\n";
    }
    let mut offset = 0;
    for (place, spec) in form.operands_with(&spelling.picks).enumerate() {
        let ty = spec.resolve(&spelling.picks).unwrap_or(Type::B32);
        if spec.kind == OperandKind::Immediate {
            operands.push(spec.range.map_or(0x80, |(least, _)| least).to_string());
            continue;
        }
        let names = registers(spec, spelling);
        for (i, name) in names.iter().enumerate() {
            let _ = writeln!(declarations, ".reg {} {name};", register_type(ty));
            if spec.access != Access::Write {
                before += &constant(name, ty, place + i);
            }
        }
        let mut text = match &names[..] {
            [name] => name.clone(),
            _ => format!("{{{}}}", names.join(", ")),
        };
        if spec.access != Access::Read {
            after += &store(&text, ty, &mut declarations, &mut offset);
        }
        if spec.second != Second::None {
            declarations += ".reg .pred %q2;\n";
            text += "|%q2";
            after += &store("%q2", Type::Pred, &mut declarations, &mut offset);
        }
        operands.push(text);
    }
    if !declarations.contains("%out") {
        declarations += ".reg .u64 %out;\n";
    }
    let mnemonic = spelling.mnemonic();
    format!("{declarations}ld.param.u64 %out, [out];\n{before}{mnemonic} {};\n{after}", operands.join(", "))
}

fn registers(spec: &OperandSpec, spelling: &Spelling) -> Vec<String> {
    let (count, _) = spec.count(spelling.form.form(), &spelling.picks);
    let name = spec.name;
    if count == 1 { vec![format!("%{name}")] } else { (0..count).map(|i| format!("%{name}{i}")).collect() }
}

/// The type with which a register is declared: the instruction's own, if registers can have it.
fn register_type(ty: Type) -> Type {
    let declarable = matches!(ty, Type::Pred | Type::F16 | Type::F16x2 | Type::F32 | Type::F64)
        || (ty.lanes() == 1 && !ty.is_float() && ty.bits() >= 8);
    if declarable { ty } else { Type::of_bits(ty.bits()) }
}

/// Moves a small number of the type into a register.
fn constant(name: &str, ty: Type, place: usize) -> String {
    let small = [0, 3, 2, 1, 1, 1][place.min(5)];
    let halves = [0, 0x4200, 0x4000, 0x3c00, 0x3c00, 0x3c00][place.min(5)];
    match ty {
        Type::Pred => format!("setp.eq.u32 {name}, 1, 1;\n"),
        Type::F16 => format!("mov.b16 {name}, {halves:#x};\n"),
        Type::F16x2 => format!("mov.b32 {name}, {:#x};\n", halves | 0x3c00 << 16),
        Type::Bf16 => format!("mov.b16 {name}, 0x40{small}0;\n"),
        Type::Bf16x2 => format!("mov.b32 {name}, 0x3f8040{small}0;\n"),
        Type::F32 => format!("mov.f32 {name}, {small}.5;\n"),
        Type::F64 => format!("mov.f64 {name}, {small}.5;\n"),
        _ if ty.bits() == 8 => format!("cvt.u8.u32 {name}, {small};\n"),
        _ => format!("mov.b{} {name}, {small};\n", ty.bits()),
    }
}

/// Stores a result after the previous ones.
fn store(name: &str, ty: Type, declarations: &mut String, offset: &mut u32) -> String {
    let bytes = ty.bytes().max(4);
    *offset = offset.next_multiple_of(bytes);
    let place = if *offset == 0 { "[%out]".to_owned() } else { format!("[%out+{offset}]") };
    *offset += bytes;
    if ty != Type::Pred {
        return format!("st.global.b{} {place}, {name};\n", ty.bits());
    }
    if !declarations.contains("%s;") {
        *declarations += ".reg .u32 %s;\n";
    }
    format!("selp.u32 %s, 1, 0, {name};\nst.global.u32 {place}, %s;\n")
}
