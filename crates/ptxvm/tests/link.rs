//! Several files as one program. What links, which definition holds, and the words for what does not are those of
//! nvlink 13.5 for the same files (`ptxas -c -arch=sm_80`, `nvlink -arch=sm_80`); the place is ours.

use diag::SourceFile;
use ptxvm::{Device, Error, Module, Options};

const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

/// A kernel that stores what `body` leaves in `%a`.
fn kernel(declaration: &str, body: &str) -> String {
    format!(
        "{declaration}\n.visible .entry k(.param .u64 o)\n{{\n.reg .u64 %o;\n.reg .u32 %a;\nld.param.u64 %o, [o];\n\
         {body}\nst.global.u32 [%o], %a;\nret;\n}}\n"
    )
}

fn reads(space: &str, declaration: &str) -> String {
    kernel(declaration, &format!("ld.{space}.u32 %a, [v];"))
}

fn calls(declaration: &str) -> String {
    kernel(declaration, "{ .param .u32 r; call.uni (r), f, (); ld.param.u32 %a, [r]; }")
}

const EXTERN: &str = ".extern .func (.param .u32 r) f();";

fn returns(linkage: &str, value: u32) -> String {
    format!("{linkage} .func (.param .u32 r) f() {{ st.param.u32 [r], {value}; ret; }}\n")
}

/// Links files `m0.ptx`, `m1.ptx` ...
fn link(files: &[String]) -> Result<Module, Error> {
    let compile = |(i, text): (usize, &String)| {
        let source = SourceFile::new(format!("m{i}.ptx"), format!("{HEAD}{text}"));
        Module::compile(source, &Options::default()).unwrap_or_else(|error| panic!("{error}"))
    };
    let modules: Vec<Module> = files.iter().enumerate().map(compile).collect();
    modules[0].link(&modules[1..])
}

/// What the kernel stores.
#[track_caller]
fn value(files: &[String]) -> u32 {
    let module = link(files).unwrap_or_else(|error| panic!("{error}"));
    let device = Device::new();
    let out = device.array(&[0u32]).unwrap();
    let loaded = device.load(&module).unwrap();
    loaded.launch("k").arg(&out).run().unwrap_or_else(|error| panic!("{error}"));
    out.read().unwrap()[0]
}

#[track_caller]
fn refused(files: &[String], message: &str) -> String {
    let error = link(files).expect_err("it does not link");
    assert_eq!(error.diagnostics().len(), 1, "{error}");
    assert_eq!(error.diagnostics()[0].message, message);
    error.to_string()
}

#[test]
fn functions() {
    let visible = |value| returns(".visible", value);
    let weak = |value| returns(".weak", value);
    assert_eq!(value(&[calls(EXTERN), visible(1)]), 1);
    assert_eq!(value(&[visible(1), calls(EXTERN)]), 1);
    assert_eq!(value(&[calls(EXTERN), weak(1), visible(2)]), 2);
    assert_eq!(value(&[calls(EXTERN), visible(2), weak(1)]), 2);
    assert_eq!(value(&[calls(EXTERN), weak(1), weak(2)]), 1);
    // One that has no linking directive is its module's own.
    assert_eq!(value(&[calls(EXTERN), returns("", 1), visible(2)]), 2);
    assert_eq!(value(&[calls(&returns("", 1)), visible(2)]), 1);

    let message = "Multiple definition of 'f' in 'm2.ptx', first defined in 'm1.ptx'";
    let text = refused(&[calls(EXTERN), visible(1), visible(2)], message);
    assert!(text.contains("m2.ptx:4:") && text.contains("first declared at m1.ptx:4:32"), "{text}");

    let prototype = "Prototype doesn't match for 'f' in 'm1.ptx', first defined in 'm0.ptx'";
    for other in [
        ".visible .func (.param .u32 r) f(.param .u32 x) { st.param.u32 [r], 1; ret; }",
        ".visible .func (.param .u64 r) f() { st.param.u64 [r], 1; ret; }",
        ".visible .func (.param .f32 r) f() { st.param.f32 [r], 0f3F800000; ret; }",
        ".visible .func f() { ret; }",
    ] {
        refused(&[calls(EXTERN), other.to_owned()], prototype);
    }
    refused(
        &[calls(EXTERN), ".visible .global .u32 f;".to_owned()],
        "Memory space doesn't match for 'f' in 'm1.ptx', first specified in 'm0.ptx'",
    );
}

#[test]
fn a_function_that_no_file_defines_faults_when_it_is_called() {
    let module = link(&[calls(EXTERN), returns("", 1)]).unwrap();
    let device = Device::new();
    let out = device.array(&[0u32]).unwrap();
    let error = device.load(&module).unwrap().launch("k").arg(&out).run().unwrap_err();
    assert!(error.to_string().contains("`f`") && error.to_string().contains("m0.ptx:10:"), "{error}");
}

#[test]
fn variables() {
    let global = |declaration: &str| reads("global", declaration);
    let file = str::to_owned;
    assert_eq!(value(&[global(".extern .global .u32 v;"), file(".visible .global .u32 v = 5;")]), 5);
    assert_eq!(value(&[global(".extern .global .u32 v[];"), file(".visible .global .u32 v[4] = {9};")]), 9);
    assert_eq!(
        value(&[global(".extern .global .align 16 .u32 v;"), file(".visible .global .u32 v = 3;")]),
        3
    );
    assert_eq!(
        value(&[global(".extern .global .u32 v;"), file(".visible .global .f32 v = 0f3F800000;")]),
        0x3f80_0000
    );
    assert_eq!(value(&[reads("const", ".extern .const .u32 v;"), file(".visible .const .u32 v = 3;")]), 3);
    // Private ones.
    assert_eq!(value(&[global(".global .u32 v = 6;"), file(".global .u32 v = 5;")]), 6);
    assert_eq!(value(&[global(".global .u32 v = 6;"), file(".visible .global .u32 v = 5;")]), 6);
    // Weak and common ones.
    assert_eq!(value(&[global(".weak .global .u32 v = 1;"), file(".visible .global .u32 v = 7;")]), 7);
    assert_eq!(value(&[global(".weak .global .u32 v = 1;"), file(".weak .global .u32 v = 7;")]), 1);
    assert_eq!(value(&[global(".common .global .u32 v;"), file(".visible .global .u32 v = 7;")]), 7);
    assert_eq!(value(&[global(".weak .global .u32 v = 7;"), file(".common .global .u32 v;")]), 7);
    let largest = link(&[global(".common .global .u32 v;"), file(".common .global .u32 v[4];")]).unwrap();
    let loaded = Device::new().load(&largest).unwrap();
    assert_eq!(loaded.variable("v").unwrap().1, 16);
    // Addresses in initialisers.
    let pointer =
        kernel(".extern .global .u64 p;", ".reg .u64 %p; ld.global.u64 %p, [p]; ld.global.u32 %a, [%p+4];");
    let pointee = file(".visible .global .u64 p = v;\n.visible .global .u32 v[2] = {4, 8};");
    let forward = file(".extern .global .u32 v[];\n.visible .global .u64 p = v;");
    assert_eq!(
        value(&[
            pointer.clone(),
            pointee.replace(".visible .global .u64 p = v;\n", "") + "\n.visible .global .u64 p = v;"
        ]),
        8
    );
    assert_eq!(value(&[pointer, forward, file(".visible .global .u32 v[2] = {4, 8};")]), 8);

    let twice = "Multiple definition of 'v' in 'm1.ptx', first defined in 'm0.ptx'";
    refused(&[global(".visible .global .u32 v;"), file(".visible .global .u32 v = 5;")], twice);
    refused(&[global(".visible .global .u32 v = 5;"), file(".visible .global .u32 v = 5;")], twice);
    let size = "Size doesn't match for 'v' in 'm1.ptx', first specified in 'm0.ptx'";
    refused(&[global(".extern .global .u32 v;"), file(".visible .global .u32 v[4];")], size);
    refused(&[global(".extern .global .u32 v[4];"), file(".visible .global .u32 v;")], size);
    refused(&[global(".weak .global .u32 v = 1;"), file(".visible .global .u32 v[3] = {7};")], size);
    refused(&[global(".weak .global .u32 v = 1;"), file(".weak .global .u32 v[3] = {7};")], size);
    refused(
        &[global(".common .global .u32 v[4];"), file(".visible .global .u32 v = 7;")],
        "Common symbol 'v' in file 'm0.ptx' has larger size than initialization",
    );
    refused(
        &[global(".extern .global .u32 v;"), file(".visible .const .u32 v;")],
        "Memory space doesn't match for 'v' in 'm1.ptx', first specified in 'm0.ptx'",
    );
    // Not defined anywhere.
    let module = link(&[global(".extern .global .u32 v[];"), file(".visible .global .u32 w[2];")]).unwrap();
    let error =
        Device::new().load(&module).unwrap().launch("k").arg(0u64).run().expect_err("nothing defines it");
    assert!(error.to_string().contains("Undefined reference to 'v' in 'm0.ptx'"), "{error}");
}

#[test]
fn shared_memory_and_frames_move_along() {
    // The function has a local and a shared variable, and the first file some of its own before them.
    let caller = kernel(
        &format!("{EXTERN}\n.shared .u32 mine[8];\n.global .u32 own = 3;"),
        "st.shared.u32 [mine+28], 99; { .param .u32 r; call.uni (r), f, (); ld.param.u32 %a, [r]; }",
    );
    let callee = ".shared .u32 own[4];\n.visible .func (.param .u32 r) f() { .reg .u32 %x, %y; .local .u32 l[4]; \
        st.local.u32 [l+12], 20; st.shared.u32 [own], 3; ld.shared.u32 %x, [own]; ld.local.u32 %y, [l+12]; \
        add.u32 %x, %x, %y; st.param.u32 [r], %x; ret; }\n";
    assert_eq!(value(&[caller, callee.to_owned()]), 23);
}

#[test]
fn linking_twice_is_linking_at_once() {
    let files = [calls(EXTERN), ".visible .global .u32 z;".to_owned()];
    let some = link(&files).unwrap();
    let last = Module::compile(
        SourceFile::new("last.ptx", format!("{HEAD}{}", returns(".visible", 4))),
        &Options::default(),
    );
    let module = some.link(&[last.unwrap()]).unwrap();
    assert_eq!(
        module.sources().map(|source| source.name()).collect::<Vec<_>>(),
        ["m0.ptx", "m1.ptx", "last.ptx"]
    );
    assert_eq!(module.kernels().count(), 1);
    let body = module.program().module.functions.iter().find(|f| f.name == "f").unwrap();
    let (source, span) = module.locate(body.span);
    assert_eq!((source, module.sources().nth(source).unwrap().slice(span)), (2, "f"));
}

#[test]
fn address_sizes_must_agree() {
    let narrow = SourceFile::new(
        "narrow.ptx",
        ".version 8.0\n.target sm_80\n.address_size 32\n.visible .global .u32 v;",
    );
    let narrow = Module::compile(narrow, &Options::default()).unwrap();
    let wide = link(&[calls(EXTERN)]).unwrap();
    let error = wide.link(&[narrow]).unwrap_err();
    assert!(error.to_string().contains("Address size 32 doesn't match that of 'm0.ptx'"), "{error}");
}
