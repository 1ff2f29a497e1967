//! Writes the exported symbols: each under the version that each major release of NVRTC gives it.

use std::fmt::Write as _;
use std::path::Path;

/// The names of the library, which are the versions of its symbols.
const VERSIONS: [&str; 3] = ["libnvrtc.so.11.2", "libnvrtc.so.12", "libnvrtc.so.13"];

fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/functions.txt");
    let folder = std::env::var_os("OUT_DIR").unwrap_or_default();
    let folder = Path::new(&folder);
    let mut text = String::new();
    let jump = if std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() == Ok("aarch64") { "b" } else { "jmp" };
    for line in include_str!("src/functions.txt").lines().filter(|line| !line.starts_with('#')) {
        let (name, function) = line.split_once(' ').unwrap_or((line, ""));
        let function = if function.is_empty() { format!("{name}::call") } else { function.to_owned() };
        let newest = VERSIONS.len() - 1;
        let versions: String = VERSIONS
            .iter()
            .enumerate()
            .map(|(index, version)| {
                let at = if index == newest { "@@" } else { "@" };
                format!("\".symver {name}, {name}{at}{version}\", ")
            })
            .collect();
        let _ = write!(
            text,
            "#[allow(non_snake_case)]\n#[unsafe(naked)]\n#[unsafe(export_name = \"{name}\")]\nextern \"C\" fn export_{name}() {{\n    \
             std::arch::naked_asm!({versions}\"{jump} {{}}\", sym {function})\n}}\n"
        );
        if function.ends_with("::call") {
            let _ = writeln!(text, "forward!({name}, c\"{name}\");");
        }
    }
    std::fs::write(folder.join("exports.rs"), text)?;
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        let script = folder.join("versions");
        let nodes: String = VERSIONS.iter().map(|version| format!("{version} {{ }};\n")).collect();
        std::fs::write(&script, nodes)?;
        println!("cargo::rustc-cdylib-link-arg=-Wl,--version-script={}", script.display());
        // `ptxvm exec` writes the name of NVIDIA's library over it.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libnvrtc.so.of-this-release");
    }
    Ok(())
}
