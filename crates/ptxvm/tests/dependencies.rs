//! What the library needs: nothing that only a command line has a use for.

use std::collections::BTreeSet;

/// The packages that a manifest names where programs that use the crate need them, too.
fn dependencies(manifest: &str) -> Vec<&str> {
    let mut counts = false;
    let mut names = Vec::new();
    for line in manifest.lines() {
        if let Some(section) = line.strip_prefix('[') {
            counts = section.ends_with("dependencies]")
                && !section.ends_with("dev-dependencies]")
                && !section.starts_with("workspace");
        } else if let Some((name, _)) = line.split_once(['.', ' ', '=']).filter(|_| counts) {
            names.push(name);
        }
    }
    names.retain(|name| !name.is_empty() && !name.starts_with('#'));
    names
}

#[test]
fn the_library_needs_nothing_of_a_command_line() {
    let read = |path: &str| std::fs::read_to_string(test_utils::root().join(path)).unwrap();
    let workspace = read("Cargo.toml");
    // The folder of a crate of the house: `lanes = { package = "ptxvm-lanes", path = "crates/lanes" }`.
    let folder = |name: &str| {
        let line = workspace.lines().find(|line| line.starts_with(&format!("{name} = {{")))?;
        Some(line.split_once("path = \"")?.1.split('"').next().unwrap_or_default())
    };
    let mut all = BTreeSet::new();
    let mut open = vec!["ptxvm".to_owned()];
    while let Some(name) = open.pop() {
        if let Some(folder) = folder(&name) {
            let manifest = read(&format!("{folder}/Cargo.toml"));
            open.extend(
                dependencies(&manifest).into_iter().filter(|name| !all.contains(*name)).map(str::to_owned),
            );
        }
        all.insert(name);
    }
    assert!(all.contains("vm") && all.contains("lanes") && all.contains("half"), "{all:?}");
    for name in ["clap", "ctrlc", "indicatif", "png", "npyz"] {
        assert!(!all.contains(name), "the library needs {name}: {all:?}");
    }
}
