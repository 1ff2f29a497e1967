//! docs/libcudart.md says what the runtime has. `PTXVM_WRITE_DOCS=1 cargo test -p ptxvm-libcudart --test page` writes it.

use std::collections::BTreeMap;
use std::fmt::Write;

use ptxvm_libcudart::functions;

/// It is the variant for programs whose default stream is each thread's own.
fn is_per_thread(symbol: &str) -> bool {
    symbol.ends_with("_ptsz") || symbol.ends_with("_ptds")
}

/// The symbols of a function, each with the major versions that have it, and what it does.
fn rows(supported: bool) -> BTreeMap<&'static str, (Vec<u32>, bool, &'static str)> {
    let mut rows: BTreeMap<&str, (Vec<u32>, bool, &str)> = BTreeMap::new();
    for function in functions().filter(|function| function.supported == supported) {
        for &(major, symbol) in function.symbols {
            let plain = symbol.trim_end_matches("_ptsz").trim_end_matches("_ptds");
            let (majors, per_thread, summary) = rows.entry(plain).or_default();
            *per_thread |= is_per_thread(symbol);
            *summary = function.summary;
            if !is_per_thread(symbol) {
                majors.push(major);
            }
        }
    }
    rows
}

/// The page, from the functions' declarations.
fn page() -> String {
    let mut text = String::from(
        "# The functions of libcudart.so.12 and libcudart.so.13\n\n\
         From the declarations in crates/libcudart, by `PTXVM_WRITE_DOCS=1 cargo test -p ptxvm-libcudart --test page`. The symbols are those of CUDA 12.9 \
         and 13.5; a number says that only one of them has a function. \"Per thread\" marks those that also come as `_ptsz` or `_ptds`, for programs \
         whose default stream is each thread's own. Some do what the driver below does, or does not: [libcuda.md](libcuda.md).\n\n\
         ## What they do\n\n| function | what it does |\n|---|---|\n",
    );
    let only = |majors: &[u32]| match majors {
        [one] => format!(" ({one})"),
        _ => String::new(),
    };
    for (symbol, (majors, per_thread, summary)) in rows(true) {
        let per_thread = if per_thread { ", per thread" } else { "" };
        let _ = writeln!(text, "| {symbol}{}{per_thread} | {} |", only(&majors), summary.trim());
    }
    text += "\n## Not supported\n\nThey return `cudaErrorNotSupported`, and say so once under `PTXVM_LOG=warn`:\n\n";
    let missing: Vec<_> = rows(false)
        .into_iter()
        .map(|(symbol, (majors, ..))| format!("`{symbol}`{}", only(&majors)))
        .collect();
    text += &missing.join(", ");
    text.push('\n');
    text
}

#[test]
fn the_page_is_what_is_declared() {
    test_utils::page::holds("libcudart.md", &page());
}
