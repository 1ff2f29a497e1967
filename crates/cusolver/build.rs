//! The names under which the dynamic linker knows the library: it is that of CUDA 12 and of CUDA 13, whose functions are the same. It
//! has the version nodes of both, because programs that were linked with NVIDIA's want one of them; the symbols themselves have no
//! version, which satisfies both.

fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        let folder = std::env::var_os("OUT_DIR").unwrap_or_default();
        // The compiler also passes a version script: it names the symbols.
        let script = std::path::Path::new(&folder).join("versions");
        std::fs::write(&script, "libcusolver.so.11 { };\nlibcusolver.so.12 { };\n")?;
        println!("cargo::rustc-cdylib-link-arg=-Wl,--version-script={}", script.display());
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libcusolver.so.11");
    }
    Ok(())
}
