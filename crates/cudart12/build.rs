//! Writes the exported symbols.

fn main() -> std::io::Result<()> {
    ptxvm_libcudart::exports::build(12)
}
