//! PTX in the files of nvcc and ptxas 13.5. `tests/files` has what these commands made:
//!
//! ```text
//! nvcc $F saxpy.cu scale.cu -o alone.so
//! nvcc $F -rdc=true -DRELOCATABLE saxpy.cu scale.cu -o relocatable.so
//! nvcc -ptx -arch=sm_90 scale.cu; ptxas -g -arch=sm_90 scale.ptx -o debug.cubin; ptxas -arch=sm_90 scale.ptx -o code.cubin
//! ```
//!
//! with `F="-shared -Xcompiler -fPIC -Xlinker -s -cudart none -gencode arch=compute_80,code=compute_80
//! -gencode arch=compute_90,code=[compute_90,sm_90]"`.

use ptxvm_fatbin::{Error, embedded};

/// The architectures of the modules of a file, each with the kernels of its text.
fn modules(file: &[u8]) -> Vec<(String, Vec<String>)> {
    let modules = embedded(file).unwrap().unwrap().into_iter().map(|module| {
        let text = String::from_utf8(module.text).unwrap();
        assert!(text.contains(".version 9.5\n") && text.trim_end().ends_with("\n}"), "{text}");
        let kernels = text.split(".entry ").skip(1).map(|rest| rest.split('(').next().unwrap().to_owned());
        (module.architecture, kernels.collect())
    });
    modules.collect()
}

fn found(architecture: &str, kernel: &str) -> (String, Vec<String>) {
    (architecture.to_owned(), vec![kernel.to_owned()])
}

#[test]
fn libraries_have_a_module_for_each_source_file() {
    let wanted = [found("compute_90", "_Z5saxpyfPKfPf"), found("compute_90", "_Z5scalePf")];
    assert_eq!(modules(include_bytes!("files/alone.so")), wanted);
    assert_eq!(modules(include_bytes!("files/relocatable.so")), wanted);
}

#[test]
fn modules_are_found_in_any_container() {
    let library = include_bytes!("files/alone.so");
    for start in ["!<arch>\n", "MZ"] {
        assert_eq!(modules(&[start.as_bytes(), library].concat()).len(), 2);
    }
}

#[test]
fn machine_code_may_have_its_ptx() {
    assert_eq!(modules(include_bytes!("files/debug.cubin")), [found("", "_Z5scalePf")]);
    let without = embedded(include_bytes!("files/code.cubin")).unwrap();
    assert_eq!(without, Err(Error::NoPtx(Vec::new())));
}

#[test]
fn other_files_are_no_containers() {
    for file in ["", ".version 8.0\n", "\u{7f}EL", "// ELF\n", "!<arch>"] {
        assert_eq!(embedded(file.as_bytes()), None);
    }
}

#[test]
fn damaged_files_are_errors() {
    let library = include_bytes!("files/alone.so");
    for end in (0..library.len()).step_by(97) {
        // Any result is fine, except a panic.
        let _ = embedded(&library[..end]);
    }
    for file in [&library[..], include_bytes!("files/debug.cubin")] {
        for index in (0..file.len()).step_by(31) {
            let mut damaged = file.to_vec();
            damaged[index] ^= 0xff;
            let _ = embedded(&damaged);
        }
    }
}
