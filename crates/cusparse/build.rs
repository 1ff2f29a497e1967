//! The name under which the dynamic linker knows the library, and the version node that programs want which were linked with NVIDIA's.

fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        let folder = std::env::var_os("OUT_DIR").unwrap_or_default();
        // The compiler also passes a version script: it names the symbols.
        let script = std::path::Path::new(&folder).join("versions");
        std::fs::write(&script, "libcusparse.so.12 { };\n")?;
        println!("cargo::rustc-cdylib-link-arg=-Wl,--version-script={}", script.display());
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libcusparse.so.12");
    }
    Ok(())
}
