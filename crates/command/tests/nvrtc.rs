//! `ptxvm exec` and NVRTC: a program that compiles for a GPU gets PTX. These tests need `gcc`.
#![cfg(target_os = "linux")]

mod common;

use std::process::Command;

use common::{Folder, finish};
use test_utils::gcc::compile;
// Cargo builds the libraries beside this test.
use ptxvm_audit as _;
use ptxvm_nvrtc as _;

/// In place of NVIDIA's library: what it "compiles" are its options.
const NVRTC: &str = r#"
#include <stdlib.h>
#include <string.h>
struct program { char text[200]; };
int nvrtcCreateProgram(struct program **p, const char *s, const char *n, int c, const char *const *h, const char *const *i) {
    (void)s, (void)n, (void)c, (void)h, (void)i;
    *p = calloc(1, sizeof **p);
    return 0;
}
int nvrtcCompileProgram(struct program *p, int count, const char *const *options) {
    for (int i = 0; i < count; i++) strcat(strcat(p->text, options[i]), ";");
    return 0;
}
int nvrtcGetPTXSize(struct program *p, size_t *size) { *size = strlen(p->text) + 5; return 0; }
int nvrtcGetPTX(struct program *p, char *place) { strcat(strcpy(place, "PTX "), p->text); return 0; }
int nvrtcGetCUBINSize(struct program *p, size_t *size) { *size = strlen(p->text) + 7; return 0; }
int nvrtcGetCUBIN(struct program *p, char *place) { strcat(strcpy(place, "CUBIN "), p->text); return 0; }
int nvrtcDestroyProgram(struct program **p) { free(*p); *p = 0; return 0; }
"#;

/// It compiles by the library that it is linked with, and by the one that it opens by its name.
const PROGRAM: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int nvrtcCreateProgram(void **, const char *, const char *, int, const char *const *, const char *const *);
int nvrtcCompileProgram(void *, int, const char *const *);
int nvrtcGetCUBINSize(void *, size_t *);
int nvrtcGetCUBIN(void *, char *);
int nvrtcDestroyProgram(void **);
static void compile(int (*with)(void *, int, const char *const *), const char *option) {
    void *program;
    size_t size;
    const char *options[] = {"-lineinfo", option};
    nvrtcCreateProgram(&program, "", 0, 0, 0, 0);
    with(program, 2, options);
    nvrtcGetCUBINSize(program, &size);
    char *text = malloc(size);
    nvrtcGetCUBIN(program, text);
    puts(text);
    nvrtcDestroyProgram(&program);
}
int main(void) {
    compile(nvrtcCompileProgram, "--gpu-architecture=sm_90a");
    compile(nvrtcCompileProgram, "--gpu-architecture=compute_80");
    void *opened = dlopen("libnvrtc.so.13", RTLD_NOW | RTLD_LOCAL);
    compile((int (*)(void *, int, const char *const *))dlsym(opened, "nvrtcCompileProgram"), "-arch=sm_80");
    return 0;
}"#;

#[test]
fn machine_code_is_ptx() {
    let folder = Folder::new();
    let command = folder.put_libraries(&["libptxvm_audit.so", "libptxvm_nvrtc.so"]);
    let theirs = folder.path("theirs");
    std::fs::create_dir(&theirs).unwrap();
    std::fs::write(theirs.join("versions"), "libnvrtc.so.13 { global: nvrtc*; local: *; };").unwrap();
    let versions = format!("-Wl,--version-script={}", theirs.join("versions").display());
    compile(&theirs, NVRTC, "libnvrtc.so.13", &["-shared", "-fPIC", "-Wl,-soname,libnvrtc.so.13", &versions]);
    let (path, run_path) = (format!("-L{}", theirs.display()), format!("-Wl,-rpath,{}", theirs.display()));
    let program =
        compile(&folder.path(""), PROGRAM, "program", &[&path, "-l:libnvrtc.so.13", "-ldl", &run_path]);
    let plain = finish(&mut Command::new(&program)).unwrap();
    let cubin = "CUBIN -lineinfo;--gpu-architecture=compute_80;\n";
    assert_eq!(
        plain.stdout,
        format!("CUBIN -lineinfo;--gpu-architecture=sm_90a;\n{cubin}CUBIN -lineinfo;-arch=sm_80;\n")
    );
    let ours = finish(Command::new(&command).args(["exec", "--quiet", "--"]).arg(&program)).unwrap();
    assert_eq!(
        ours.stdout,
        format!("PTX -lineinfo;--gpu-architecture=compute_90a;\n{cubin}PTX -lineinfo;-arch=compute_80;\n"),
        "{}",
        ours.transcript()
    );
    assert_eq!(ours.stderr, "");
}
