//! Native loops on local memory that calls of functions move, and that the next block finds empty.

use ptxvm::{Engine, Module};

use super::coarse::run;
use super::native_paths;

/// Three times: a loop on an array, and if `c` is 77 a function that calls itself ever deeper.
const TEXT: &str = ".version 9.0\n.target sm_90\n.address_size 64\n\
    .func (.param .b32 result) deeper(.param .b32 n) {\n\
    .reg .b32 %n, %m, %t; .reg .pred %p; .reg .b64 %w; .local .b32 own[64];\n\
    ld.param.b32 %n, [n];\nmov.u64 %w, own;\nst.local.b32 [%w+8], %n;\nmov.u32 %m, 1;\n\
    setp.eq.u32 %p, %n, 0;\n@%p bra END;\n\
    {\n.param .b32 deeper_n;\n.param .b32 deeper_result;\nsub.u32 %t, %n, 1;\nst.param.b32 [deeper_n], %t;\n\
    call.uni (deeper_result), deeper, (deeper_n);\nld.param.b32 %m, [deeper_result];\n}\n\
    END:\nld.local.b32 %t, [%w+8];\nadd.u32 %m, %m, %t;\nst.param.b32 [result], %m;\nret;\n}\n\
    .visible .entry k(.param .u64 in, .param .u64 out, .param .u32 c) {\n\
    .reg .b32 %i, %t, %n, %c, %round, %j, %r<4>; .reg .pred %p, %q; .reg .b64 %a, %b, %w, %lw; .local .b32 own[16];\n\
    ld.param.u64 %a, [in];\nld.param.u64 %b, [out];\nld.param.u32 %c, [c];\nsetp.ne.u32 %q, %c, 77;\nmov.u32 %i, %ctaid.x;\nmov.u32 %n, %ntid.x;\nmov.u32 %t, %tid.x;\n\
    mad.lo.u32 %i, %i, %n, %t;\nmad.wide.u32 %a, %i, 4, %a;\nmad.wide.u32 %b, %i, 4, %b;\nld.global.u32 %r0, [%a];\n\
    mov.u64 %lw, own;\nld.local.b32 %r1, [%lw+36];\nmov.u32 %round, 0;\n\
    ROUND:\nmov.u32 %j, 0;\n\
    LOOP:\nadd.u32 %t, %r0, %j;\nand.b32 %t, %t, 15;\nmul.wide.u32 %w, %t, 4;\nadd.s64 %w, %w, %lw;\n\
    ld.local.b32 %r2, [%w];\nadd.u32 %r2, %r2, %i;\nadd.u32 %r2, %r2, 1;\nst.local.b32 [%w], %r2;\n\
    ld.local.b32 %r3, [%lw+12];\nxor.b32 %r1, %r1, %r3;\nmad.lo.u32 %r1, %r1, 3, %r2;\n\
    add.u32 %j, %j, 1;\nsetp.lt.u32 %p, %j, 9;\n@%p bra LOOP;\n@%q bra NEXT;\n\
    {\n.param .b32 deeper_n;\n.param .b32 deeper_result;\nmul.lo.u32 %t, %round, 40;\nst.param.b32 [deeper_n], %t;\n\
    call.uni (deeper_result), deeper, (deeper_n);\nld.param.b32 %t, [deeper_result];\n}\n\
    add.u32 %r1, %r1, %t;\nNEXT:\nadd.u32 %round, %round, 1;\nsetp.lt.u32 %p, %round, 3;\n@%p bra ROUND;\n\
    st.global.u32 [%b], %r1;\nret;\n}\n";

#[test]
fn local_memory_moves_and_ends_with_its_block() {
    let module = Module::from_ptx(TEXT).unwrap_or_else(|error| panic!("{error}"));
    let input: Vec<u32> = (0..6000u32).map(|i| i.wrapping_mul(2_654_435_761) >> 7).collect();
    for (threads, c) in [(256, 77), (100, 77), (256, 1), (100, 1)] {
        let launch = ([20, 1], [threads, 1]);
        let memory = (&input[..], 20 * threads as usize);
        let expected = run(&module, launch, memory, &[c], (Engine::Reference, None, 1));
        assert!(expected.0.is_ok(), "{:?}", expected.0);
        for path in native_paths() {
            let found = run(&module, launch, memory, &[c], (Engine::Native, Some(path), 1));
            assert_eq!(found, expected, "{}, blocks of {threads}", path.name());
        }
    }
}
