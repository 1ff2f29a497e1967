//! Bodies of functions: calls, prototypes, scopes, labels.

use fastrand::Rng;

use super::{PLAIN, mostly, one};

pub fn call(rng: &mut Rng) -> String {
    let prototypes = [
        "(.param .b32 _) _ (.param .b32 _)",
        "_ ()",
        "_ (.param .b64 _)",
        "(.param .b32 _) _",
        "_",
        "(.reg .b32 _) _ (.reg .b32 _)",
        "(.param .align 8 .b8 _[16]) _ (.param .b32 _, .param .b32 _)",
        "_ (.param .b32 _) .noreturn",
        "(.param .b32 r) _ (.param .b32 a)",
        "f (.param .b32 _)",
    ];
    let functions = [
        "() f(.param .b32 a)",
        "(.param .b32 r) f(.param .b32 a)",
        "(.reg .b32 r) f(.reg .b32 a)",
        "f()",
        "(.reg .b32 r) f(.reg .b32 a, .reg .f32 b)",
        "(.param .b32 r) f(.param .align 4 .b8 a[8])",
        "f(.reg .pred p)",
        "(.param .b64 r) f(.param .f32 a)",
        "(.reg .b32 r, .reg .b32 s) f(.reg .b32 a)",
    ];
    let results =
        ["", "(%r1), ", "(o), ", "(_), ", "(%r1, %r2), ", "(%d1), ", "(o+4), ", "(5), ", "(), ", "(nope), "];
    let targets = ["f", "%d1", "%r1", "nope", "g", "5", "e", "l", "x"];
    let arguments = [
        "",
        ", (%r1)",
        ", (i)",
        ", (%r1, %f1)",
        ", (1)",
        ", (1.5)",
        ", (%d1)",
        ", ()",
        ", (i+4)",
        ", (i, i)",
        ", (x)",
        ", (_)",
        ", (%p1)",
        ", (%tid.x)",
        ", ({%r1, %r2})",
    ];
    let ends = ["", ", proto", ", list", ", nope", ", l", ", f"];
    format!(
        ".global .b32 x;\n.func {} {}\n.entry e() {{\n.reg .b32 %r<4>; .reg .f32 %f<4>; .reg .b64 %d<4>; .reg .pred %p<4>;\n\
         .param .{} i{}; .param .{} o;\nproto: .callprototype {};\nlist: .calltargets {};\nl:\n{}call{} {}{}{}{};\nexit;\n}}",
        one(rng, &functions),
        mostly(rng, "{ ret; }", &[";"]),
        mostly(rng, "b32", &PLAIN),
        mostly(rng, "", &["[8]", "[1]"]),
        mostly(rng, "b32", &PLAIN),
        one(rng, &prototypes),
        mostly(rng, "f", &["f, f", "g", "x", "f, nope", ""]),
        mostly(rng, "", &["@%p1 ", "@!%p1 ", "@%r1 "]),
        mostly(rng, "", &[".uni", ".foo", ".uni.uni"]),
        one(rng, &results),
        mostly(rng, "f", &targets),
        one(rng, &arguments),
        mostly(rng, "", &ends),
    )
}

pub fn body(rng: &mut Rng) -> String {
    let statements = [
        "mov.b32 %r1, 0;",
        "bra l;",
        "bra m;",
        "l:",
        "m:",
        "l: m:",
        "{ l: }",
        "{ .reg .b32 %r1; mov.b32 %r1, 0; }",
        ".reg .b32 %r1;",
        ".reg .b32 %r<8>;",
        ".reg .pred %r1;",
        "{ .reg .b64 q; mov.b64 q, 0; }",
        "mov.b64 q, 0;",
        ".reg .b64 q;",
        "ts: .branchtargets l, m;",
        "brx.idx %r1, ts;",
        "ts: .branchtargets l;",
        "{ bra l; l: bra m; }",
        "exit;",
        "ret;",
        "@%p1 bra l;",
        "@!%p1 exit;",
        "{ }",
        ".pragma \"nounroll\";",
        ".pragma \"foo\";",
        ".local .b32 v;",
        ".shared .b32 v[4];",
        ".const .b32 v;",
        ".global .b32 v = 4;",
        ".param .b32 v;",
        "ld.local.b32 %r1, [v];",
        "st.param.b32 [v], %r1;",
        "ld.param.b32 %r1, [a];",
        "ld.param.b32 %r1, [a+4];",
        "ld.param.b64 %d1, [a];",
        "mov.b64 %d1, a;",
        "mov.b32 %r1, l;",
        "add.s32 %r1, a, 1;",
        "mov.b32 l, 0;",
        ".loc 1 1 1;",
        ".reg .v2 .b32 w;",
        "mov.b32 w.x, %r1;",
        "ld.global.v2.b32 w, [%d1];",
        ".reg .b32 x, y, z;",
        "add.s32 x, y, z;",
        "@%p1 { exit; }",
        "$l: bra $l;",
        "%l: bra %l;",
        ".reg .b32 %r<0>;",
        ".reg .b32 e;",
        "bra e;",
        ".func g() { ret; }",
        ";",
        "mov.b32 %r1, %r9;",
        ".reg .pred p[2];",
        ".alias l, m;",
        "call g;",
        ".reg .s32 %s<100>;",
        "mov.s32 %s99, %s100;",
        ".maxnreg 4;",
        "{ .shared .b32 v; } ld.shared.b32 %r1, [v];",
    ];
    let kind = mostly(
        rng,
        ".entry e(.param .b32 a)",
        &[".func e(.param .b32 a)", ".func e(.reg .b32 a)", ".entry e"],
    );
    let mut text = format!("{kind} {{\n.reg .b32 %r<4>; .reg .b64 %d<4>; .reg .pred %p<4>;\n");
    for _ in 0..rng.usize(1..=5) {
        text += one(rng, &statements);
        text.push('\n');
    }
    text + "exit;\n}"
}
