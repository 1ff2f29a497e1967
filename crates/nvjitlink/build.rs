//! Writes the exported symbols. Each function has its name, which bindings look up, and one symbol for each release, which
//! the header makes programs call; each under the version that its major release gives it.

use wrapper::exports::{Export, build};

/// The names of the library, which are the versions of its symbols, and the major releases.
const VERSIONS: [(&str, u32); 2] = [("libnvJitLink.so.12", 12), ("libnvJitLink.so.13", 13)];
/// No major release has had more minor ones.
const MINOR: u32 = 10;

fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed=src/functions.txt");
    let all = VERSIONS.map(|(version, _)| version);
    let mut exports = Vec::new();
    let mut export = |symbol: String, function: &str, versions: Vec<&'static str>| {
        exports.push(Export { symbol, function: function.to_owned(), versions });
    };
    for line in include_str!("src/functions.txt").lines().filter(|line| !line.starts_with('#')) {
        let (name, function) = line.split_once(' ').unwrap_or((line, "forward"));
        export(name.to_owned(), function, all.to_vec());
        for (version, major) in VERSIONS {
            for minor in 0..MINOR {
                export(format!("__{name}_{major}_{minor}"), function, vec![version]);
            }
        }
    }
    for name in ["nvJitLinkVersion", "__nvJitLinkAPI"] {
        export(name.to_owned(), "forward", all.to_vec());
    }
    build(&exports, &all, "libnvJitLink.so.of-this-release")
}
