//! What comes out of the door: the module, in its stable print.

use diag::SourceFile;

/// Checks a module of these items (`.version 9.0`, `.target sm_90`) and prints it without its first line.
fn module(items: &str) -> String {
    module_for("sm_90", items)
}

fn module_for(target: &str, items: &str) -> String {
    let text = format!(".version 9.0\n.target {target}\n.address_size 64\n{items}");
    let source = SourceFile::new("test.ptx", text);
    let (tree, parsed) = syntax::parse(&source);
    assert!(parsed.is_empty(), "{parsed:?}");
    let (module, diagnostics) = check::check(&source, &tree, parsed, &check::Options::default());
    let module = module.unwrap_or_else(|| panic!("{diagnostics:?}"));
    let print = module.to_string();
    print.split_once('\n').map_or(String::new(), |(_, rest)| rest.to_owned())
}

/// The messages of a module that is wrong.
fn errors(items: &str) -> Vec<String> {
    let source =
        SourceFile::new("test.ptx", format!(".version 9.0\n.target sm_90\n.address_size 64\n{items}"));
    let (tree, parsed) = syntax::parse(&source);
    let (module, diagnostics) = check::check(&source, &tree, parsed, &check::Options::default());
    assert!(module.is_none());
    diagnostics.into_iter().map(|d| d.message).collect()
}

#[test]
fn a_module_prints() {
    let print = module(
        ".global .align 8 .b32 table[4] = {1, -1, 0x10};
         .visible .entry k(.param .u64 .ptr .global .align 16 p) .maxntid 32, 4 {
             .reg .pred %p<2>; .reg .b32 %r<3>; .reg .b64 %rd<2>; .reg .v2 .f32 v;
             ld.param.u64 %rd1, [p];
             mov.u32 %r1, %tid.x;
         top: setp.ne.s32 %p1, %r1, 0;
             @!%p1 bra top;
             mov.f32 v.y, 1.5;
             st.global.v2.f32 [%rd1+8], {v.y, 0f3F800000};
             ld.global.u32 %r2, [table+4];
             ret;
         }",
    );
    let expected = "\
variable 0: global .b32 table bytes 16 align 8 init 01000000ffffffff10000000
function 0: visible entry k params (param .u64 p bytes 8 align 8 ptr global align 16) max_threads 128
  register .b64 %rd1
  register .b32 %r1
  register .pred %p1
  register .f32 v.x
  register .f32 v.y
  register .b32 %r2
  ld.param.u64 %rd1, [&p+0]
  mov.u32 %r1, %tid.x
 top:
  setp.ne.s32 %p1, %r1, 0x0
  @!%p1 bra top
  mov.f32 v.y, 0x3fc00000
  st.global.v2.f32 [%rd1+8], {v.y, 0x3f800000}
  ld.global.u32 %r2, [&table+4]
  ret
";
    assert_eq!(print, expected);
}

#[test]
fn register_ranges_are_not_spelled_out() {
    let print = module(".entry k() { .reg .b32 %r<4000000000>; mov.b32 %r3999999999, 7; ret; }");
    assert_eq!(print.matches("register").count(), 1);
    assert!(print.contains("register .b32 %r3999999999"));
}

#[test]
fn scopes_shadow_and_labels_reach_forward_and_out() {
    let print = module(
        ".entry k() { .reg .b32 a; bra out; { .reg .b64 a; mov.b64 a, 1; bra out; } mov.b32 a, 2; out: ret; }",
    );
    assert!(print.contains("register .b32 a") && print.contains("register .b64 a"), "{print}");
    assert!(print.contains("mov.b64 a, 0x1") && print.contains("mov.b32 a, 0x2"), "{print}");
    let messages = errors(".entry k() { bra in; { in: ret; } ret; }");
    assert_eq!(messages, ["Unknown symbol 'in'"]);
}

#[test]
fn initial_values_become_bytes_and_relocations() {
    let print = module(
        ".global .f32 f[3] = {1.5, 0f3F800000, 0d3FF8000000000000};
         .global .b32 g = 1.5;
         .global .b64 h[4] = {1<<65, -1>>64, -8/3U, ~0 > 0};
         .const .v2 .u16 v[2] = {{1, 2}, {3, 4}};
         .global .u64 p[2] = {g, generic(f)+4};
         .global .u8 bytes[2] = {0xFF(g), 0xFF00(g)};",
    );
    let init: Vec<&str> =
        print.lines().map(|line| line.split_once(" init ").map_or("", |(_, init)| init)).collect();
    assert_eq!(init[0], "0000c03f0000803f0000c03f");
    assert_eq!(init[1], "0000c03f");
    // As ptxas computes them: shift counts are modulo 64.
    assert_eq!(init[2], "0200000000000000ffffffffffffffff52555555555555550100000000000000");
    assert_eq!(init[3], "0100020003000400");
    assert_eq!(init[4], "00000000000000000000000000000000 [0..8]=g+0>>0 [8..16]=generic f+4>>0");
    assert_eq!(init[5], "0000 [0..1]=g+0>>0 [1..2]=g+0>>8");
}

#[test]
fn sm_1x_flushes_subnormals_without_being_told() {
    let body = ".entry k() { .reg .f32 a; .reg .f64 d; .reg .b32 r; .reg .pred p; add.f32 a, a, a; setp.lt.f32 p, a, a; \
                slct.s32.f32 r, r, r, a; set.gt.f32.s32 a, r, r; mul.rn.f64 d, d, d; ret; }";
    let old = module_for("sm_13", body);
    for instruction in ["add.ftz.f32", "setp.lt.ftz.f32", "slct.ftz.s32.f32", "set.gt.f32.s32", "mul.rn.f64"]
    {
        assert!(old.contains(instruction), "{instruction} in {old}");
    }
    assert!(!module(body).contains("ftz"));
}

#[test]
fn literals_take_the_width_of_their_type() {
    let print = module(
        ".entry k() { .reg .b16 h; .reg .b32 r; .reg .b64 d; .reg .f64 f; add.s16 h, h, -1; mov.b32 r, 99999999999;
         mov.b64 d, 1.5; mov.f64 f, 0f3F800000; add.u32 r, WARP_SZ, 1?2:3; ret; }",
    );
    for operand in
        ["add.s16 h, h, 0xffff", "r, 0x4876e7ff", "d, 0x3ff8000000000000", "f, 0x3f800000", "r, 0x20, 0x2"]
    {
        assert!(print.contains(operand), "{operand} in {print}");
    }
}

#[test]
fn huge_and_deep_input_is_refused_or_accepted_in_no_time() {
    let deep = format!(".entry k() {{ {} ret; {} }}", "{".repeat(200), "}".repeat(200));
    module(&deep);
    let far = ".global .b32 x[3][4000000000] = {{1}, {2}, {3}};";
    assert_eq!(errors(far), ["Initial value lies more than 1 GiB into its variable"; 2]);
    let unknown: String = (0..20_000).map(|i| format!("mov.b32 %r{i}, %q{i};\n")).collect();
    assert_eq!(errors(&format!(".entry k() {{ {unknown} ret; }}")).len(), 60_000);
}

#[test]
fn a_missing_head_makes_no_module() {
    let source = SourceFile::new("test.ptx", ".visible .entry k() { ret; }");
    let (tree, parsed) = syntax::parse(&source);
    assert!(!parsed.is_empty());
    assert!(check::check(&source, &tree, parsed, &check::Options::default()).0.is_none());
}

/// What ptxas accepts and has no code for, and what it accepts and reads otherwise than it is written.
#[test]
fn oddities_are_accepted() {
    let text = ".version 8.0\n.target sm_90\n.entry e() {\n.reg .pred %p<3>; .reg .b32 %r<3>; .reg .v2 .b32 %v;\n\
        setp.lt.s32 %p1, -%r1, -%r2;\nselp.b32 %r0, %v.z, %v.x, %p1+1;\nret;\n}\n";
    let source = SourceFile::new("oddities.ptx", text);
    let (tree, parsed) = syntax::parse(&source);
    assert!(parsed.is_empty());
    let (module, diagnostics) = check::check(&source, &tree, parsed, &check::Options::default());
    let said: Vec<&str> = diagnostics.iter().map(|d| d.message.as_str()).collect();
    assert_eq!(said, ["Vector '%v' has no element '.z'", "A predicate is no number to add to"]);
    assert!(diagnostics.iter().all(|d| !d.is_error()));
    let emitted = module.expect("it is legal").to_string();
    assert!(emitted.contains("%r1, %r2"), "no operand is negated: {emitted}");
}

/// A hash map gives its names in another order each time.
#[test]
fn of_equally_near_names_the_first_is_suggested() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n\
        .visible .entry k() { .reg .b32 val5, val3, val1, val4, val2; mov.u32 val9, 0; ret; }";
    for _ in 0..8 {
        let source = SourceFile::new("test.ptx", text.to_owned());
        let (tree, parsed) = syntax::parse(&source);
        let (_, diagnostics) = check::check(&source, &tree, parsed, &check::Options::default());
        let helps = diagnostics.iter().filter_map(|diagnostic| diagnostic.help.as_deref());
        let suggested: Vec<_> = helps.filter(|help| help.starts_with("did you mean")).collect();
        assert_eq!(suggested, ["did you mean 'val1'?"]);
    }
}
