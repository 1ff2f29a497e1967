//! Writes the exported symbols, for build scripts: each with the versions under which NVIDIA's releases have it.

use std::fmt::Write;
use std::path::Path;

/// An exported function.
pub struct Export {
    /// Its symbol.
    pub symbol: String,
    /// The function of the library that stands for it, which has the signature of `forward`.
    pub function: String,
    /// The versions of the symbol, from the oldest to the newest: names of NVIDIA's library.
    pub versions: Vec<&'static str>,
}

/// Writes `exports.rs` and a version script to the build script's output folder, and prints cargo's link options. The
/// library has the name `inside`, over which `ptxvm exec` writes the name of NVIDIA's.
///
/// # Errors
/// If the folder is not writable.
pub fn build(exports: &[Export], versions: &[&str], inside: &str) -> std::io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let folder = std::env::var_os("OUT_DIR").unwrap_or_default();
    let folder = Path::new(&folder);
    let jump = if std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() == Ok("aarch64") { "b" } else { "jmp" };
    let text: String = exports.iter().map(|export| code(export, jump)).collect();
    std::fs::write(folder.join("exports.rs"), text)?;
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        let script = folder.join("versions");
        let nodes: String = versions.iter().map(|version| format!("{version} {{ }};\n")).collect();
        std::fs::write(&script, nodes)?;
        println!("cargo::rustc-cdylib-link-arg=-Wl,--version-script={}", script.display());
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{inside}");
    }
    Ok(())
}

/// The symbol is a jump, since only assembly can give it versions, to a function that knows its name.
fn code(export: &Export, jump: &str) -> String {
    let Export { symbol, function, versions } = export;
    let (newest, older) = versions.split_last().expect("a version");
    let mut directives: String =
        older.iter().map(|version| format!("\".symver {symbol}, {symbol}@{version}\", ")).collect();
    let _ = write!(directives, "\".symver {symbol}, {symbol}@@{newest}\", ");
    format!(
        r#"#[allow(non_snake_case)]
mod {symbol} {{
    unsafe extern "C" fn call(a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> usize {{
        // SAFETY: the program's promise to the function of this name.
        unsafe {{ super::{function}(c"{symbol}", [a, b, c, d, e, f]) }}
    }}
    #[unsafe(naked)]
    #[unsafe(export_name = "{symbol}")]
    extern "C" fn export() {{
        std::arch::naked_asm!({directives}"{jump} {{}}", sym call)
    }}
}}
"#
    )
}
