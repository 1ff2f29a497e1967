//! `cargo xtask record tools`: what nvcc makes of the pairs of kernels of `tests/tools/cuda`.
//!
//! Writes `cuda.jsonl.zst` beside the folder: one header object, then one object a pair, with its source and the PTX of both sides.
//! A pair whose source, compiler and command are those of the record is not compiled again.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use super::{Result, files_with_extension, oracle};

/// So many compilers run at a time.
const COMPILERS: usize = 2;
const OPTIONS: [&str; 3] = ["-ptx", "-std=c++17", "-lineinfo"];

/// The first line: where the others come from.
#[derive(Serialize, Deserialize, PartialEq)]
struct Header {
    /// How to make this file again.
    recorded_by: String,
    /// How each side was put to the compiler.
    command: String,
    /// The compiler's build string.
    build: String,
    pairs: usize,
}

/// A kernel with its bug and without.
#[derive(Serialize, Deserialize)]
struct Pair {
    /// The folder, which is a tool's, and the file: `race/double_buffer`.
    name: String,
    source: String,
    bug: String,
    clean: String,
}

/// Compiles what has changed, or all, of `tools/cuda`.
pub fn record(oracles: &Path, tools: &Path, all: bool) -> Result<()> {
    let (folder, path) = (tools.join("cuda"), tools.join("cuda.jsonl.zst"));
    let nvcc = oracle::nvcc(oracles)?;
    let files = files_with_extension(&folder, "cu")?;
    let header = Header {
        recorded_by: "cargo xtask record tools".to_owned(),
        command: format!("nvcc {} -arch=ARCH -o NAME.ptx NAME.cu", OPTIONS.join(" ")),
        build: oracle::build(&nvcc)?,
        pairs: files.len(),
    };
    let mut known = if all { BTreeMap::new() } else { read(&path, &header).unwrap_or_default() };
    let (mut pairs, mut changed) = (Vec::new(), Vec::new());
    for file in &files {
        let name = file.strip_prefix(&folder)?.with_extension("").to_string_lossy().replace('\\', "/");
        let source = fs::read_to_string(file)?;
        match known.remove(&name).filter(|pair| pair.source == source) {
            Some(pair) => pairs.push(pair),
            None => changed.push((name, source)),
        }
    }
    let (count, waiting, made) = (changed.len(), Mutex::new(changed.into_iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..COMPILERS {
            scope.spawn(|| {
                while let Some((name, source)) = waiting.lock().ok().and_then(|mut all| all.next()) {
                    let pair = compile_both(&nvcc, name, source).map_err(|error| error.to_string());
                    made.lock().map(|mut made| made.push(pair)).unwrap_or_default();
                }
            });
        }
    });
    let (made, failed): (Vec<_>, Vec<_>) = made.into_inner()?.into_iter().partition(|pair| pair.is_ok());
    for message in failed.iter().filter_map(|pair| pair.as_ref().err()) {
        println!("{message}");
    }
    pairs.extend(made.into_iter().flatten());
    pairs.sort_by(|a, b| a.name.cmp(&b.name));
    let mut lines = serde_json::to_string(&header)? + "\n";
    for pair in &pairs {
        lines += &(serde_json::to_string(pair)? + "\n");
    }
    fs::write(&path, zstd::encode_all(lines.as_bytes(), 19)?)?;
    println!("{} pairs, {count} compiled, wrote {}", files.len(), path.display());
    match failed.len() {
        0 => Ok(()),
        failed => Err(format!("{failed} pairs do not compile").into()),
    }
}

/// The pairs of a record that was made by the same compiler in the same way.
fn read(path: &Path, header: &Header) -> Option<BTreeMap<String, Pair>> {
    let text = String::from_utf8(zstd::decode_all(&*fs::read(path).ok()?).ok()?).ok()?;
    let mut lines = text.lines();
    let before: Header = serde_json::from_str(lines.next()?).ok()?;
    if (&before.command, &before.build) != (&header.command, &header.build) {
        return None;
    }
    let pairs = lines.map(|line| serde_json::from_str::<Pair>(line).ok());
    pairs.map(|pair| pair.map(|pair| (pair.name.clone(), pair))).collect()
}

fn compile_both(nvcc: &Path, name: String, source: String) -> Result<Pair> {
    let (bug, clean) =
        (compile(nvcc, &name, &side(&source, "FIX"))?, compile(nvcc, &name, &side(&source, "BUG"))?);
    Ok(Pair { name, source, bug, clean })
}

/// The lines of one side; those of the other are left blank, so that all keep their numbers.
fn side(source: &str, other: &str) -> String {
    let is_other = |line: &str| {
        line.rsplit_once(" // ").is_some_and(|(_, words)| words.split_whitespace().any(|word| word == other))
    };
    source.lines().map(|line| if is_other(line) { "\n".to_owned() } else { format!("{line}\n") }).collect()
}

fn compile(nvcc: &Path, name: &str, text: &str) -> Result<String> {
    let directory = tempfile::tempdir()?;
    let file = format!("{}.cu", name.rsplit('/').next().unwrap_or(name));
    fs::write(directory.path().join(&file), text)?;
    let architecture = text.lines().find_map(|line| line.strip_prefix("// ARCH: ")).unwrap_or("compute_80");
    let output = Command::new(nvcc)
        .current_dir(&directory)
        .args(OPTIONS)
        .args(["-arch", architecture, "-o", "made.ptx", &file])
        .output()?;
    let said = String::from_utf8_lossy(&[output.stderr, output.stdout].concat()).into_owned();
    if !output.status.success() {
        return Err(format!("{name}: {said}").into());
    }
    let ptx = fs::read_to_string(directory.path().join("made.ptx"))?;
    Ok(ptx.lines().map(|line| without_folder(line) + "\n").collect())
}

/// A `.file` without the folders of this machine: headers are named as they are included.
pub fn without_folder(line: &str) -> String {
    let Some((head, path)) = line.split_once('"').filter(|(head, _)| head.trim_start().starts_with(".file"))
    else {
        return line.to_owned();
    };
    let name = path.rsplit_once("/include/").or(path.rsplit_once('/')).map_or(path, |(_, name)| name);
    format!("{head}\"{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_keep_their_line_numbers() {
        let source = "a; // BUG SITE\nb; // FIX\nc; // SITE\n";
        assert_eq!(side(source, "FIX"), "a; // BUG SITE\n\nc; // SITE\n");
        assert_eq!(side(source, "BUG"), "\nb; // FIX\nc; // SITE\n");
    }

    #[test]
    fn files_are_named_without_folders() {
        assert_eq!(without_folder("\t.file\t1 \"/tmp/x/a.cu\""), "\t.file\t1 \"a.cu\"");
        let header = "\t.file\t2 \"/x/cu13/bin/../include/cooperative_groups/details/sync.h\"";
        assert_eq!(without_folder(header), "\t.file\t2 \"cooperative_groups/details/sync.h\"");
        assert_eq!(without_folder("ld.u32 %r1, [\"\"];"), "ld.u32 %r1, [\"\"];");
    }
}
