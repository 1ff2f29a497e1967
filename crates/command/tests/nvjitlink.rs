//! `ptxvm exec` and nvJitLink: a program that links machine code gets the PTX of its inputs. These tests need `gcc`.
#![cfg(target_os = "linux")]

mod common;

use std::process::Command;

use common::{Folder, finish};
use test_utils::gcc::compile;
// Cargo builds the libraries beside this test.
use ptxvm_audit as _;
use ptxvm_nvjitlink as _;

/// In place of NVIDIA's library: it refuses PTX that is called machine code, and with `-ptx` makes PTX that says how many
/// inputs there were.
const NVJITLINK: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct link { int inputs, is_ptx; };
int nvJitLinkCreate(struct link **place, unsigned count, const char **options) {
    struct link *link = *place = calloc(1, sizeof *link);
    for (unsigned i = 0; i < count; i++) {
        link->is_ptx |= !strcmp(options[i], "-ptx");
        if (!strcmp(options[i], "-bad")) return 1;
    }
    return 0;
}
int nvJitLinkDestroy(struct link **place) { free(*place); *place = 0; return 0; }
int nvJitLinkAddData(struct link *link, int kind, const char *data, size_t size, const char *name) {
    (void)size, (void)name;
    link->inputs++;
    return kind == 1 && data[0] != 0x7f ? 12 : 0;
}
int nvJitLinkAddFile(struct link *link, int kind, const char *name) { (void)link, (void)kind, (void)name; return 0; }
int nvJitLinkComplete(struct link *link) { (void)link; return 0; }
int nvJitLinkGetLinkedCubinSize(struct link *link, size_t *size) { (void)link; *size = 5; return 0; }
int nvJitLinkGetLinkedCubin(struct link *link, char *place) { (void)link; memcpy(place, "CUBIN", 5); return 0; }
int nvJitLinkGetLinkedPtxSize(struct link *link, size_t *size) { (void)link; *size = 16; return 0; }
int nvJitLinkGetLinkedPtx(struct link *link, char *place) { sprintf(place, "PTX of %d inputs", link->inputs); return 0; }
int __nvJitLinkCreate_13_1(struct link **p, unsigned c, const char **o) { return nvJitLinkCreate(p, c, o); }
"#;

/// It writes what it gets for machine code, zeros and other bytes that are no text as dots.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int __nvJitLinkCreate_13_1(void **, unsigned, const char **);
int nvJitLinkDestroy(void **);
int nvJitLinkAddData(void *, int, const void *, size_t, const char *);
int nvJitLinkAddFile(void *, int, const char *);
int nvJitLinkComplete(void *);
int nvJitLinkGetLinkedCubinSize(void *, size_t *);
int nvJitLinkGetLinkedCubin(void *, void *);
struct input { int kind; const char *data; size_t size; };
static char *link(struct input *inputs, int count, const char *option, const char *file, size_t *size) {
    void *handle;
    const char *options[] = {"-arch=sm_90", "-maxrregcount=65", option};
    if (__nvJitLinkCreate_13_1(&handle, 3, options)) return puts("refused"), NULL;
    for (int i = 0; i < count; i++) {
        int result = nvJitLinkAddData(handle, inputs[i].kind, inputs[i].data, inputs[i].size, "input");
        if (result) printf("input %d: %d\n", i, result);
    }
    if (file) nvJitLinkAddFile(handle, 10, file);
    nvJitLinkComplete(handle);
    nvJitLinkGetLinkedCubinSize(handle, size);
    char *image = calloc(1, *size + 1);
    nvJitLinkGetLinkedCubin(handle, image);
    for (size_t i = 0; i < *size; i++) putchar(image[i] >= ' ' && image[i] < 127 ? image[i] : '.');
    putchar('\n');
    nvJitLinkDestroy(&handle);
    return image;
}
int main(int argc, char **words) {
    size_t size;
    struct input ptx = {2, "first", 6}, called_cubin = {1, "second", 7}, lto = {3, "lto", 3}, cubin = {1, "\177ELF", 4};
    struct input both[] = {ptx, called_cubin}, mixed[] = {lto, ptx, lto}, machine[] = {ptx, cubin};
    char *image = link(both, 2, "-O3", argc > 1 ? words[1] : NULL, &size);
    struct input again = {1, image, size};
    free(link(&again, 1, "-O3", NULL, &size));
    free(link(mixed, 3, "-lto", NULL, &size));
    free(link(machine, 2, "-O3", NULL, &size));
    link(both, 2, "-bad", NULL, &size);
    free(image);
    return 0;
}"#;

#[test]
fn machine_code_is_the_ptx_of_the_inputs() {
    let folder = Folder::new();
    let command = folder.put_libraries(&["libptxvm_audit.so", "libptxvm_nvjitlink.so"]);
    let theirs = folder.path("theirs");
    std::fs::create_dir(&theirs).unwrap();
    std::fs::write(theirs.join("versions"), "libnvJitLink.so.13 { global: *nvJitLink*; local: *; };")
        .unwrap();
    let versions = format!("-Wl,--version-script={}", theirs.join("versions").display());
    let name = "libnvJitLink.so.13";
    compile(&theirs, NVJITLINK, name, &["-shared", "-fPIC", &format!("-Wl,-soname,{name}"), &versions]);
    let (path, run_path) = (format!("-L{}", theirs.display()), format!("-Wl,-rpath,{}", theirs.display()));
    let program =
        compile(&folder.path(""), PROGRAM, "program", &[&path, &format!("-l:{name}"), &run_path, "-ldl"]);
    let plain = finish(&mut Command::new(&program)).unwrap();
    assert_eq!(plain.stdout, "input 1: 12\nCUBIN\ninput 0: 12\nCUBIN\nCUBIN\nCUBIN\nrefused\n");
    folder.write("file.ptx", "third");
    let file = folder.path("file.ptx").display().to_string();
    let mut exec = Command::new(&command);
    let ours = finish(exec.args(["exec", "--quiet", "--"]).arg(&program).arg(&file)).unwrap();
    // Each part: name and text after their lengths, and the limit of registers.
    let part = |name: &str, text: &str| {
        let length = |text: &str| match text.len() as u8 {
            byte @ b' '..=b'~' => format!("{}.......", byte as char),
            _ => ".".repeat(8),
        };
        format!("{}{name}{}{text}A.......", length(name), length(text))
    };
    let both = part("input", "first") + &part("input", "second") + &part(&file, "third");
    let image = |parts: &str| format!(".PTXVML.{}{parts}\n", size_of_image(16 + parts.len()));
    let lto = part("input", "first") + &part("link-time optimisation", "PTX of 2 inputs");
    let expected = format!("{}{}{}CUBIN\nrefused\n", image(&both), image(&both), image(&lto));
    assert_eq!(ours.stdout, expected, "{}", ours.transcript());
    assert_eq!(ours.stderr, "");
}

/// The bytes of a number, with dots for those that are no text.
fn size_of_image(size: usize) -> String {
    let text = |byte: u8| if (b' '..=b'~').contains(&byte) { byte as char } else { '.' };
    (size as u64).to_le_bytes().map(text).iter().collect()
}
