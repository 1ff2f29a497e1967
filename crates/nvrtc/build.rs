//! Writes the exported symbols: each under the version that each major release of NVRTC gives it.

use wrapper::exports::{Export, build};

/// The names of the library, which are the versions of its symbols.
const VERSIONS: [&str; 3] = ["libnvrtc.so.11.2", "libnvrtc.so.12", "libnvrtc.so.13"];

fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed=src/functions.txt");
    let lines = include_str!("src/functions.txt").lines().filter(|line| !line.starts_with('#'));
    let export = |line: &str| {
        let (symbol, function) = line.split_once(' ').unwrap_or((line, "forward"));
        Export { symbol: symbol.to_owned(), function: function.to_owned(), versions: VERSIONS.to_vec() }
    };
    build(&lines.map(export).collect::<Vec<_>>(), &VERSIONS, "libnvrtc.so.of-this-release")
}
