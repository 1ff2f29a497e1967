//! The name under which the dynamic linker knows the library.

fn main() {
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo::rerun-if-changed=build.rs");
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libnccl.so.2");
    }
}
