//! docs/libcuda.md says what the driver has. `PTXVM_WRITE_DOCS=1 cargo test -p ptxvm-libcuda --test page` writes it.

use std::collections::BTreeMap;
use std::fmt::Write;

use ptxvm_libcuda::{Function, functions};

/// The page, from the functions' declarations.
fn page() -> String {
    let mut by_name: BTreeMap<&str, Vec<&Function>> = BTreeMap::new();
    functions().for_each(|function| by_name.entry(function.name).or_default().push(function));
    let mut text = String::from(
        "# The functions of libcuda.so.1\n\n\
         From the declarations in crates/libcuda, by `PTXVM_WRITE_DOCS=1 cargo test -p ptxvm-libcuda --test page`. `cuGetProcAddress` knows them by name \
         and version; \"per thread\" marks those that also come as `_ptsz` or `_ptds`, for programs whose default stream is each thread's own.\n\n\
         ## What they do\n\n| function | symbols | what it does |\n|---|---|---|\n",
    );
    let supported = |function: &&Function| function.supported;
    for (name, versions) in &by_name {
        let plain: Vec<_> =
            versions.iter().copied().filter(supported).filter(|function| !function.per_thread).collect();
        let Some(last) = plain.last() else { continue };
        let symbols: Vec<_> = plain.iter().map(|function| format!("`{}`", function.symbol)).collect();
        let per_thread =
            if versions.iter().any(|function| function.per_thread) { ", per thread" } else { "" };
        let _ = writeln!(text, "| {name} | {}{per_thread} | {} |", symbols.join(" "), last.summary.trim());
    }
    text += "\n## Not supported\n\nThey return `CUDA_ERROR_NOT_SUPPORTED`, and say so once under `PTXVM_LOG=warn`:\n\n";
    let missing = functions().filter(|function| !function.supported && !function.per_thread);
    text += &test_utils::page::symbols(missing.map(|function| function.symbol));
    text.push('\n');
    text
}

#[test]
fn the_page_is_what_is_declared() {
    test_utils::page::holds("libcuda.md", &page());
}

#[test]
fn the_entry_points_of_graphics_are_there_and_refuse() {
    // The symbols of cudaGL.h, cudaEGL.h and cudaVDPAU.h of 13.5, with the old forms: Dr.Jit, among others, uses no driver without them.
    let graphics = |function: &&Function| {
        ["cuGL", "cuEGL", "cuVDPAU", "GraphicsGL", "GraphicsEGL", "GraphicsVDPAU", "EglFrame", "FromEGLSync"]
            .iter()
            .any(|part| function.symbol.contains(part))
    };
    let all: Vec<_> = functions().filter(graphics).collect();
    assert_eq!((all.len(), all.iter().filter(|function| function.per_thread).count()), (35, 2));
    assert!(all.iter().all(|function| !function.supported));
}
