//! Generates the exports of the two libraries, for their build scripts: each function's symbol in the major version, with that version's
//! node, is a jump to the function in this crate. So both libraries can be in one process, and neither exports anything else. Symbols of
//! the static archive have no version nodes, because only the dynamic linker uses them.

use std::fmt::Write;
use std::path::Path;

use crate::functions;

/// Writes `exports.rs` and a version script to the build script's output folder, and prints cargo's link options.
///
/// # Errors
/// If the folder is not writable.
pub fn build(major: u32) -> std::io::Result<()> {
    let folder = std::env::var_os("OUT_DIR").unwrap_or_default();
    let folder = Path::new(&folder);
    let architecture = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let name = format!("libcudart.so.{major}");
    let node = std::env::var_os("CARGO_FEATURE_ARCHIVE").is_none().then_some(name.as_str());
    std::fs::write(folder.join("exports.rs"), exports(major, node, &architecture))?;
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        // The compiler also passes a version script: it names the symbols, but has no version.
        let script = folder.join("versions");
        std::fs::write(&script, format!("{name} {{ }};\n"))?;
        println!("cargo::rustc-cdylib-link-arg=-Wl,--version-script={}", script.display());
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{name}");
    }
    Ok(())
}

/// The symbols of a major version as Rust code, with the node of that version.
fn exports(major: u32, node: Option<&str>, architecture: &str) -> String {
    let jump = if architecture == "aarch64" { "b" } else { "jmp" };
    let mut text = String::new();
    for function in functions() {
        let Some((_, symbol)) = function.symbols.iter().find(|(other, _)| *other == major) else { continue };
        let (module, name) = (function.module, function.name);
        let version =
            node.map(|node| format!("\".symver {symbol}, {symbol}@@{node}, remove\", ")).unwrap_or_default();
        let _ = write!(
            text,
            "#[allow(non_snake_case)]\n#[unsafe(naked)]\n#[unsafe(export_name = \"{symbol}\")]\nextern \"C\" fn export_{symbol}() {{\n    \
             std::arch::naked_asm!({version}\"{jump} {{}}\", sym {module}::{name})\n}}\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_symbol_is_declared_twice() {
        for major in [12, 13] {
            let of_major = |function: &'static crate::Function| {
                function.symbols.iter().filter(move |(other, _)| *other == major).map(|(_, symbol)| *symbol)
            };
            let mut symbols: Vec<_> = functions().flat_map(of_major).collect();
            let count = symbols.len();
            symbols.sort_unstable();
            symbols.dedup();
            // As many as NVIDIA's libraries of 12.9 and 13.5 export.
            assert_eq!((symbols.len(), count), if major == 12 { (435, 435) } else { (458, 458) });
        }
        assert!(functions().all(|function| !function.supported || !function.summary.is_empty()));
    }
}
