//! Programs whose libraries come from elsewhere than they say. These tests need `gcc`.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;

use test_utils::gcc::compile;
// Cargo builds the library beside this test.
use ptxvm_audit as _;

const LIBRARY: &str = "const char *whose(void) { return WHOSE; }";
/// It asks a library that it is linked with, and one that it opens by its path.
const PROGRAM: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
const char *whose(void);
int main(int count, char **words) {
    void *opened = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
    const char *(*other)(void) = opened ? (const char *(*)(void))dlsym(opened, "whose") : 0;
    printf("%s %s\n", whose(), other ? other() : dlerror());
    return count - 2;
}"#;

/// A program whose run path names a folder of NVIDIA's, with and without the audit of a folder of ours.
fn run(audited: bool) -> String {
    let folder = tempfile::tempdir().unwrap();
    let [ours, theirs] = ["ours", "theirs"].map(|name| folder.path().join(name));
    for (place, whose) in [(&ours, "-DWHOSE=\"ours\""), (&theirs, "-DWHOSE=\"theirs\"")] {
        std::fs::create_dir(place).unwrap();
        for name in ["libcudart.so.13", "libother.so"] {
            let soname = format!("-Wl,-soname,{name}");
            compile(place, LIBRARY, name, &["-shared", "-fPIC", whose, &soname]);
        }
    }
    std::fs::remove_file(ours.join("libother.so")).unwrap();
    let (path, run_path) = (format!("-L{}", theirs.display()), format!("-Wl,-rpath,{}", theirs.display()));
    let words = [&path, "-l:libcudart.so.13", "-ldl", "-Wl,--disable-new-dtags", &run_path];
    let program = compile(folder.path(), PROGRAM, "program", &words);
    let mut out = String::new();
    for opened in ["libcudart.so.13", "libother.so"] {
        let mut command = Command::new(&program);
        command.arg(theirs.join(opened));
        if audited {
            let test = std::env::current_exe().unwrap();
            command.env("LD_AUDIT", test.with_file_name("libptxvm_audit.so")).env("PTXVM_LIBRARIES", &ours);
        }
        let output = command.output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        out += &String::from_utf8(output.stdout).unwrap();
    }
    out
}

#[test]
fn the_run_path_and_the_path_of_a_file_lead_to_our_libraries() {
    assert_eq!(run(true), "ours ours\nours theirs\n");
}

#[test]
fn without_it_they_lead_to_theirs() {
    assert_eq!(run(false), "theirs theirs\ntheirs theirs\n");
}

/// Functions of cuDNN that fail, but for one that needs no handle.
const CUDNN: &str = "int cudnnCreate(void **handle) { return 1001; } int cudnnConvolutionForward(void) { return 1001; } \
                     unsigned long cudnnGetVersion(void) { return 92800; }";
/// It makes a handle, asks for the version, and computes.
const PLUGIN: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
void use(void) {
    void *cudnn = dlopen("libcudnn.so.9", RTLD_NOW), *handle = 0;
    int created = ((int (*)(void **))dlsym(cudnn, "cudnnCreate"))(&handle);
    unsigned long version = ((unsigned long (*)(void))dlsym(cudnn, "cudnnGetVersion"))();
    int computed = ((int (*)(void *))dlsym(cudnn, "cudnnConvolutionForward"))(handle);
    printf("%d %d %lu %d\n", created, !!handle, version, computed);
}"#;
/// It opens a library by its path, as Python does, and then the plugins.
const OPENER: &str = r#"
#include <dlfcn.h>
int main(int count, char **words) {
    dlopen(words[1], RTLD_NOW);
    for (int i = 2; i < count; i++)
        ((void (*)(void))dlsym(dlopen(words[i], RTLD_NOW), "use"))();
    return 0;
}"#;

#[test]
fn the_plugin_of_xla_gets_a_handle_of_cudnn_and_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    compile(folder, CUDNN, "libcudnn.so.9", &["-shared", "-fPIC", "-Wl,-soname,libcudnn.so.9"]);
    for plugin in ["xla_cuda_plugin.so", "other.so"] {
        compile(folder, PLUGIN, plugin, &["-shared", "-fPIC", "-ldl"]);
    }
    let mut command = Command::new(compile(folder, OPENER, "program", &["-ldl"]));
    command.args(["libcudnn.so.9", "xla_cuda_plugin.so", "other.so"].map(|name| folder.join(name)));
    let test = std::env::current_exe().unwrap();
    command
        .env("LD_AUDIT", test.with_file_name("libptxvm_audit.so"))
        .env("PTXVM_LIBRARIES", folder.join("none"));
    let output = command.output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0 1 92800 3000\n1001 0 92800 1001\n");
}

/// As rustc's library does, one wants 24,000 bytes for thread-local variables at a fixed place.
#[test]
fn libraries_with_large_thread_local_variables_load_with_the_tunable_of_exec() {
    let folder = tempfile::tempdir().unwrap();
    let library = "__thread char room[24000] __attribute__((tls_model(\"initial-exec\")));\nchar *place(void) { return room; }";
    compile(folder.path(), library, "libroom.so", &["-shared", "-fPIC", "-Wl,-soname,libroom.so"]);
    let (path, run_path) =
        (format!("-L{}", folder.path().display()), format!("-Wl,-rpath,{}", folder.path().display()));
    let program = "char *place(void);\nint main(void) { return place()[23999]; }";
    let program = compile(folder.path(), program, "program", &[&path, "-l:libroom.so", &run_path]);
    let test = std::env::current_exe().unwrap();
    let mut command = Command::new(&program);
    command.env("LD_AUDIT", test.with_file_name("libptxvm_audit.so")).env("PTXVM_LIBRARIES", folder.path());
    let output = command.env("GLIBC_TUNABLES", "glibc.rtld.optional_static_tls=32768").output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

/// cuBLAS and cuBLASLt are one file of ours. A program that is linked with both wants a version of each, as PyTorch does.
#[test]
fn two_names_of_one_file_have_the_versions_of_both() {
    let folder = tempfile::tempdir().unwrap();
    let [ours, theirs] = ["ours", "theirs"].map(|name| folder.path().join(name));
    let names = ["libcublas.so.13", "libcublasLt.so.13"];
    let shared = |place: &Path, name: &str, soname: &str, source: &str, versions: &str| {
        std::fs::create_dir_all(place).unwrap();
        std::fs::write(place.join("versions"), versions).unwrap();
        let script = format!("-Wl,--version-script={}", place.join("versions").display());
        compile(place, source, name, &["-shared", "-fPIC", &format!("-Wl,-soname,{soname}"), &script]);
    };
    for (name, function) in names.into_iter().zip(["first", "second"]) {
        let source = format!("int {function}(void) {{ return 1; }}");
        shared(&theirs, name, name, &source, &format!("{name} {{ global: {function}; }};"));
    }
    let source = "int first(void) { return 40; } int second(void) { return 2; }";
    shared(&ours, names[0], "libcublas.so.12", source, &names.map(|name| format!("{name} {{ }};")).concat());
    std::os::unix::fs::symlink(ours.join(names[0]), ours.join(names[1])).unwrap();
    let (path, run_path) = (format!("-L{}", theirs.display()), format!("-Wl,-rpath,{}", theirs.display()));
    let program = "int first(void), second(void); int main(void) { return first() + second(); }";
    // It has opened one of them by a path before.
    let plugin = program.replace("main", "use");
    let opener = "#include <dlfcn.h>\nint main(int count, char **words) { dlopen(words[1], RTLD_NOW | RTLD_GLOBAL); \
                  void *plugin = dlopen(words[2], RTLD_NOW); return plugin ? ((int (*)(void))dlsym(plugin, \"use\"))() : 7; }";
    let opener = compile(folder.path(), opener, "opener", &["-ldl"]);
    let linked = names.map(|name| format!("-l:{name}"));
    for [one, other] in [[0, 1], [1, 0]] {
        let words = [&path, &linked[one], &linked[other], "-Wl,--disable-new-dtags", &run_path];
        let direct = Command::new(compile(folder.path(), program, "program", &words));
        let shared = [&["-shared", "-fPIC"], &words[..]].concat();
        let mut later = Command::new(&opener);
        later.args([theirs.join(names[one]), compile(folder.path(), &plugin, "plugin.so", &shared)]);
        for mut command in [direct, later] {
            let test = std::env::current_exe().unwrap();
            command.env("LD_AUDIT", test.with_file_name("libptxvm_audit.so")).env("PTXVM_LIBRARIES", &ours);
            let output = command.output().unwrap();
            assert_eq!(output.status.code(), Some(42), "{output:?}");
        }
    }
}
