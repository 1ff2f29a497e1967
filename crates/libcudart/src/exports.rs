//! What the build scripts of the libraries write: for each function a symbol under the name that the major version has for it, with the node of that
//! version, which jumps to the function here. So both libraries can be in one process, and neither exports anything else. The archive's symbols
//! have no versions: those are for the dynamic linker.

use std::fmt::Write;
use std::path::Path;

use crate::functions;

/// Writes `exports.rs` and a version script to a build script's folder, and tells cargo how to link the library.
///
/// # Errors
/// When nothing can be written there.
pub fn build(major: u32) -> std::io::Result<()> {
    let folder = std::env::var_os("OUT_DIR").unwrap_or_default();
    let folder = Path::new(&folder);
    let architecture = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let name = format!("libcudart.so.{major}");
    let node = std::env::var_os("CARGO_FEATURE_ARCHIVE").is_none().then_some(name.as_str());
    std::fs::write(folder.join("exports.rs"), exports(major, node, &architecture))?;
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        // The compiler has a version script of its own, which names the symbols but no version.
        let script = folder.join("versions");
        std::fs::write(&script, format!("{name} {{ }};\n"))?;
        println!("cargo::rustc-cdylib-link-arg=-Wl,--version-script={}", script.display());
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{name}");
    }
    Ok(())
}

/// The symbols of a major version, as Rust, with their version's node.
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
            // As many as NVIDIA's 12.9 and 13.5 export.
            assert_eq!((symbols.len(), count), if major == 12 { (435, 435) } else { (458, 458) });
        }
        assert!(functions().all(|function| !function.supported || !function.summary.is_empty()));
    }
}
