//! The modules of the machine and of the interpreter depend on each other without cycles, so that each can be read with
//! only those below it in mind.
//!
//! A module depends on another if a path in it (`crate::`, `super::`, `self::`) leads there. A parent that declares its
//! children does not depend on them for that.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

/// Modules that are one thing in several files: a launch has a configuration with an observer, which is told of the launch.
const TOGETHER: &[&[&str]] = &[&["launch", "observer", "prepared"]];

/// The modules of a crate, by their paths without `crate::`, with the text of each but for comments and tests.
fn modules(source: &Path) -> BTreeMap<String, String> {
    let comment = Regex::new("//.*").unwrap();
    let mut folders = vec![source.to_owned()];
    let mut modules = BTreeMap::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let text = comment.replace_all(&text, "");
            let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            modules.insert(name(path.strip_prefix(source).unwrap()), text.to_owned());
        }
    }
    modules
}

fn name(path: &Path) -> String {
    let path: PathBuf = path.with_extension("");
    let mut parts: Vec<&str> = path.iter().map(|part| part.to_str().unwrap()).collect();
    if matches!(parts[..], [.., "mod"] | ["lib"]) {
        parts.pop();
    }
    parts.join("::")
}

/// The modules that the paths in a module lead to.
fn dependencies(module: &str, modules: &BTreeMap<String, String>) -> BTreeSet<String> {
    let path = Regex::new(r"\b(crate|super|self)((?:::\w+)*)(?:::\{([^;]*?)\})?").unwrap();
    let mut found = BTreeSet::new();
    for captures in path.captures_iter(&modules[module]) {
        let own: Vec<&str> = module.split("::").filter(|part| !part.is_empty()).collect();
        let mut parts: Vec<&str> = captures[2].split("::").filter(|part| !part.is_empty()).collect();
        let mut start = match &captures[1] {
            "crate" => Vec::new(),
            "super" => own[..own.len().saturating_sub(1)].to_vec(),
            _ => own,
        };
        while parts.first() == Some(&"super") {
            parts.remove(0);
            start.pop();
        }
        start.extend(parts);
        let list = captures.get(3).map_or("", |list| list.as_str());
        for last in list.split(',').map(|name| name.trim().trim_matches(['{', '}'])) {
            let mut full: Vec<&str> = start.clone();
            full.extend(last.split("::").filter(|part| !part.is_empty()));
            // The longest beginning that is a module; the rest names what is in it.
            let target =
                (0..=full.len()).rev().map(|n| full[..n].join("::")).find(|n| modules.contains_key(n));
            found.extend(target.filter(|target| target != module));
        }
    }
    found
}

/// The modules that can be reached from one.
fn reached<'a>(from: &'a str, edges: &'a BTreeMap<String, BTreeSet<String>>) -> BTreeSet<&'a str> {
    let (mut open, mut reached) = (vec![from], BTreeSet::new());
    while let Some(module) = open.pop() {
        open.extend(edges[module].iter().map(String::as_str).filter(|&next| reached.insert(next)));
    }
    reached
}

#[test]
fn modules_have_no_cycles() {
    for krate in ["machine", "vm"] {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates").join(krate).join("src");
        let modules = modules(&source);
        assert!(modules.len() > 20, "{krate} has {} modules", modules.len());
        let edges: BTreeMap<_, _> =
            modules.keys().map(|module| (module.clone(), dependencies(module, &modules))).collect();
        assert!(edges.values().flatten().count() > 20, "{krate}: paths are not found");
        let cycle: Vec<&str> = edges
            .keys()
            .map(String::as_str)
            .filter(|module| reached(module, &edges).contains(module))
            .collect();
        assert!(cycle.is_empty() || TOGETHER.contains(&&cycle[..]), "{krate}: {cycle:?}");
    }
}
