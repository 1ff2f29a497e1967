//! docs/nvml.md says what the library has. `PTXVM_WRITE_DOCS=1 cargo test -p ptxvm-nvml --test page` writes it.

use std::fmt::Write;

use ptxvm_nvml::{Function, functions};

/// The page, from the functions' declarations.
fn page() -> String {
    let mut text = String::from(
        "# The functions of libnvidia-ml.so.1\n\n\
         From the declarations in crates/nvml, by `PTXVM_WRITE_DOCS=1 cargo test -p ptxvm-nvml --test page`. The symbols are those of NVML 13.5.\n\n\
         Devices are those of the [driver](libcuda.md), all of them, whatever `CUDA_VISIBLE_DEVICES` says, in its words: the same names, UUIDs and \
         places. A process that only asks NVML does not start the driver, so it may be forked. The processes of one `ptxvm exec` see each other's \
         memory; without `ptxvm exec`, a process sees its own.\n\n\
         ## What they tell\n\n| functions | what they tell |\n|---|---|\n",
    );
    let mut known: Vec<(&str, Vec<&str>)> = Vec::new();
    for Function { symbol, summary, .. } in functions().filter(|function| function.supported) {
        match known.last_mut().filter(|(last, _)| last == summary) {
            Some((_, symbols)) => symbols.push(symbol),
            None => known.push((summary, vec![symbol])),
        }
    }
    known.sort_by_key(|(_, symbols)| symbols[0]);
    for (summary, symbols) in known {
        let symbols: Vec<_> = symbols.iter().map(|symbol| format!("`{symbol}`")).collect();
        let _ = writeln!(text, "| {} | {} |", symbols.join(" "), summary.trim());
    }
    text += "\n## What no device has\n\nThese return `NVML_ERROR_NOT_SUPPORTED`, as NVIDIA's do for a GPU without the sensor or the feature, and say so once \
             under `PTXVM_LOG=warn`:\n\n";
    let missing = functions().filter(|function| !function.supported);
    text += &test_utils::page::symbols(missing.map(|function| function.symbol));
    text.push('\n');
    text
}

#[test]
fn the_page_is_what_is_declared() {
    test_utils::page::holds("nvml.md", &page());
}

#[test]
fn all_functions_of_the_header_are_there() {
    let mut symbols: Vec<_> = functions().map(|function| function.symbol).collect();
    symbols.sort_unstable();
    symbols.dedup();
    // As many as nvml.h of 13.5 declares, old forms included.
    assert_eq!((symbols.len(), functions().count()), (436, 436));
}
