//! `cargo xtask record hardware`: what an NVIDIA GPU computes, through the driver that the machine has.
//!
//! One kernel for each spelling of an instruction ([`program`]), run on edge values and random ones ([`vectors`]). The
//! lines are those of `conformance/values`; the replay is `crates/sem/tests/hardware.rs`. [`kernels`] are whole launches.

mod driver;
mod gpu;
mod hsetp2;
mod kernels;
mod mma;
mod program;
mod tensor_map;
#[cfg(test)]
mod tests;
mod vectors;

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use fastrand::Rng;
use isa::enumerate::{Spelling, spellings};
use isa::{Action, FORMS, FormId, Target, Version};
use rayon::prelude::*;
use serde::Serialize;

use super::Result;
use gpu::Gpu;
pub use hsetp2::record as record_hsetp2;
pub use kernels::{Name as LaunchName, print_one as print_launch, record as record_kernels};
pub use mma::record as record_mma;
use program::Program;
use test_utils::date::today;

/// Something that runs a program.
trait Machine {
    /// Runs the kernel of `program` in one thread for each vector. `sources` holds the operands of one vector after the
    /// other; so does the result.
    fn run(&mut self, program: &Program, text: &str, sources: &[u64]) -> Result<Vec<u64>>;
}

/// Who answered, and when: the first line of every record has it.
#[derive(Serialize)]
struct Source {
    recorded_by: &'static str,
    gpu: String,
    target: String,
    /// As the driver counts: 12080 is CUDA 12.8.
    driver: i32,
    date: String,
}

impl Source {
    fn new(recorded_by: &'static str, gpu: &Gpu) -> Result<Source> {
        let target = gpu.target()?.to_string();
        Ok(Source { recorded_by, gpu: gpu.name()?, target, driver: gpu.driver()?, date: today() })
    }

    /// The name of a file for this GPU.
    fn file(&self, prefix: &str, extension: &str) -> String {
        format!("{prefix}{}-{}.{extension}", self.gpu.replace(' ', "-"), self.target)
    }
}

/// Writes a compressed record: its first line, and the others. Returns where it is.
fn write(folder: &Path, name: &str, header: &impl Serialize, lines: &str) -> Result<PathBuf> {
    let text = serde_json::to_string(header)? + "\n" + lines;
    fs::create_dir_all(folder)?;
    let path = folder.join(name);
    fs::write(&path, zstd::encode_all(text.as_bytes(), 19)?)?;
    Ok(path)
}

/// The first line of the record of single instructions.
#[derive(Serialize)]
struct Header {
    #[serde(flatten)]
    source: Source,
    /// The `.version` of the programs, the newest that the driver takes.
    ptx: String,
    vectors: usize,
    /// Spellings that the driver does not take.
    refused: Vec<String>,
}

/// Records `count` vectors of every spelling of these opcodes under `folder`.
///
/// # Errors
/// When there is no GPU, or nothing can be run on it.
pub fn record(folder: &Path, opcodes: &[String], count: usize) -> Result<()> {
    let mut gpu = Gpu::open()?;
    let target = gpu.target()?;
    let version = newest_version(&mut gpu, target)?;
    println!("{}, {target}, .version {version}", gpu.name()?);
    let wanted = |opcode: &str| opcodes.is_empty() || opcodes.iter().any(|name| name == opcode);
    let programs: Vec<Program> = programs(wanted, version, target).collect();
    // Most of the time goes into the driver's compiler: so every thread of the host asks.
    let answered: Vec<_> = programs
        .par_iter()
        .map_init(|| gpu.clone(), |gpu, program| answers(gpu, program, (version, target), count).ok())
        .collect();
    let (mut text, mut vectors, mut refused) = (String::new(), 0, Vec::new());
    for (program, lines) in programs.into_iter().zip(answered) {
        let Some(lines) = lines else {
            refused.push(program.mnemonic);
            continue;
        };
        vectors += lines.len();
        lines.iter().for_each(|line| text.extend([line, "\n"]));
    }
    if vectors == 0 {
        return Err("the GPU ran none of these instructions".into());
    }
    let source = Source::new("cargo xtask record hardware", &gpu)?;
    let name = source.file("", "txt.zst");
    let header = Header { source, ptx: version.to_string(), vectors, refused };
    let path = write(folder, &name, &header, &text)?;
    println!("{}: {vectors} vectors, {} spellings refused", path.display(), header.refused.len());
    Ok(())
}

/// The programs for every legal spelling of the wanted opcodes that a module of this version and target may have.
fn programs(
    wanted: impl Fn(&str) -> bool,
    version: Version,
    target: Target,
) -> impl Iterator<Item = Program> {
    let forms = (0..FORMS.len()).map(|id| FormId(id as u16)).filter(move |id| {
        let form = id.form();
        matches!(form.action, Action::Pure(_))
            && wanted(form.opcode.name())
            && !form.carry.reads
            && !form.carry.writes
    });
    let is_legal = move |spelling: &Spelling| {
        let gates = spelling.form.form().gates(&spelling.picks);
        spelling.is_legal() && gates.iter().all(|gate| gate.permits(version, target))
    };
    forms.flat_map(move |id| spellings(id).filter(is_legal)).filter_map(|spelling| Program::new(&spelling))
}

/// The lines for one program.
fn answers(
    machine: &mut impl Machine,
    program: &Program,
    (version, target): (Version, Target),
    count: usize,
) -> Result<Vec<String>> {
    // Each spelling has numbers of its own, whatever else is asked about.
    let mut hasher = DefaultHasher::new();
    program.mnemonic.hash(&mut hasher);
    let sources = vectors::sources(&program.sources, count, &mut Rng::with_seed(hasher.finish()));
    let results = machine.run(program, &program.text(version, target), &sources)?;
    let width = program.sources.len();
    let lines = (0..count).map(|i| program.line(&sources[i * width..][..width], &results[2 * i..][..2]));
    Ok(lines.collect())
}

/// The newest `.version` that a module for this target may have.
fn newest_version(machine: &mut impl Machine, target: Target) -> Result<Version> {
    let program = programs(|opcode| opcode == "selp", Version::MAX, target).next().ok_or("no selp")?;
    let versions: Vec<Version> = Version::all().collect();
    let accepted = versions.into_iter().rev().find(|&version| {
        let results = machine.run(&program, &program.text(version, target), &[1, 2, 1]);
        results.is_ok_and(|results| results[0] == 1)
    });
    accepted.ok_or_else(|| format!("the GPU does not run {} of 1, 2, true", program.mnemonic).into())
}
