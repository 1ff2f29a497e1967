//! Every kernel of the corpus runs, with arguments made from its signature: none meets an unsupported instruction, a
//! panic, or a fault that its made-up arguments do not explain. How each one ends is recorded in
//! `conformance/corpus/runs.tsv`; `PTXVM_BLESS=1 cargo test -p ptxvm --test harness` records it again.
//!
//! The kernels are not in this repository (tests/corpus/README.md). Where they are not at hand, each file is skipped by
//! name and counted. A file that no record has, of a corpus of the reader's own, needs an explained end.

mod pointers;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use check::module::{Function, Param};
use libtest_mimic::{Arguments, Trial};
use ptxvm::{Arg, Buffer, Device, Error, FaultKind, Module, Output, SourceFile};

/// Bytes of the buffer behind each pointer, and where in it the pointer points: kernels index backwards too.
const BUFFER: u64 = 16 << 20;
const MIDDLE: u64 = 8 << 20;
/// A kernel that runs longer than this many thread-instructions is stopped.
const STEPS: u64 = 2_000_000;

/// How each kernel ended, by file and kernel: with memory that is all zero, then with small integers.
type Record = BTreeMap<(String, String), String>;

fn main() {
    let arguments = Arguments::from_args();
    let record_path = test_utils::root().join("conformance/corpus/runs.tsv");
    let recorded = Arc::new(read_record(&record_path));
    let bless = std::env::var_os("PTXVM_BLESS").is_some();
    let found = Arc::new(Mutex::new(Record::new()));
    let corpus = test_utils::corpus::found();
    let mut files: Vec<String> = recorded.keys().map(|(file, _)| file.clone()).collect();
    if let Some(corpus) = &corpus {
        files = ptx_files(corpus);
    }
    files.dedup();
    let trials = files
        .into_iter()
        .map(|file| {
            let (corpus, recorded, found) = (corpus.clone(), Arc::clone(&recorded), Arc::clone(&found));
            let missing = corpus.is_none();
            let name = file.clone();
            let run = move || {
                let outcomes = run_file(&corpus.ok_or(test_utils::corpus::MISSING)?, &file)?;
                let is_recorded = recorded.keys().any(|(of, _)| *of == file);
                let mut wrong = String::new();
                for (kernel, outcome) in &outcomes {
                    let wanted =
                        recorded.get(&(file.clone(), kernel.clone())).map_or("nothing", String::as_str);
                    if !bless && is_recorded && wanted != outcome {
                        wrong += &format!("{kernel}: {outcome}; the record has {wanted}\n");
                    }
                    wrong += &unexplained(kernel, outcome);
                }
                let all = outcomes.into_iter().map(|(kernel, outcome)| ((file.clone(), kernel), outcome));
                found.lock().unwrap_or_else(PoisonError::into_inner).extend(all);
                if wrong.is_empty() { Ok(()) } else { Err(wrong.into()) }
            };
            Trial::test(name, run).with_ignored_flag(missing)
        })
        .collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    let found = found.lock().unwrap_or_else(PoisonError::into_inner);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for outcome in found.values().flat_map(|outcome| outcome.split(", ")) {
        *counts.entry(outcome.split(':').next().unwrap_or(outcome)).or_default() += 1;
    }
    println!("{} kernels, two launches each: {counts:?}", found.len());
    // What is recorded of files that are not here stays.
    let mut all = (*recorded).clone();
    all.retain(|(file, _), _| !found.keys().any(|(of, _)| of == file));
    all.extend(found.clone());
    if bless && let Err(error) = write_record(&record_path, &all) {
        println!("{}: {error}", record_path.display());
        std::process::exit(1);
    }
    conclusion.exit();
}

/// What made-up arguments cannot explain about the end of a kernel.
fn unexplained(kernel: &str, outcome: &str) -> String {
    let explained = [
        "ended",
        REFUSED,
        "step limit",
        FaultKind::OutOfBounds.code(),
        FaultKind::Misaligned.code(),
        FaultKind::Trap.code(),
        FaultKind::Assertion.code(),
        FaultKind::UndefinedFunction.code(),
        FaultKind::StackOverflow.code(),
        // A number is no texture, and zeros are no tensor map.
        FaultKind::InvalidHandle.code(),
        FaultKind::TensorMap.code(),
    ];
    // Its member mask names 16 lanes: it is for blocks of no more threads, and made-up ones have more.
    let few_lanes = kernel.contains("useless_syncwarp_with_mask");
    let is_explained = |end: &str| {
        let kind = end.split(':').next().unwrap_or_default();
        explained.contains(&kind) || few_lanes && kind == FaultKind::NotInMemberMask.code()
    };
    match outcome.split(", ").find(|end| !is_explained(end)) {
        Some(end) => format!("{kernel}: {end}\n"),
        None => String::new(),
    }
}

/// The names of all files, relative to the corpus.
fn ptx_files(corpus: &Path) -> Vec<String> {
    let files = test_utils::corpus::ptx_files(corpus).into_iter();
    files.filter_map(|path| Some(path.strip_prefix(corpus).ok()?.display().to_string())).collect()
}

/// Runs every kernel of a file; returns how each ended.
fn run_file(corpus: &Path, file: &str) -> Result<Vec<(String, String)>, String> {
    let bytes = std::fs::read(corpus.join(file)).map_err(|error| error.to_string())?;
    let source = SourceFile::from_bytes(file, bytes);
    let options = ptxvm::Options { lenient: true, ..ptxvm::Options::default() };
    let module = Module::compile(source, &options).map_err(|error| error.to_string())?;
    let outcome = |kernel: &Function| {
        let outcome = match launch(&module, kernel, 0) {
            refused if refused == REFUSED => refused,
            first => format!("{first}, {}", launch(&module, kernel, 7)),
        };
        (kernel.name.clone(), outcome)
    };
    Ok(module.kernels().map(outcome).collect())
}

/// How a kernel ends that holds what ptxvm does not execute.
const REFUSED: &str = "refused";

/// Launches a kernel on buffers of the integers below `modulus`, or of zeros; says how it ended.
fn launch(module: &Module, kernel: &Function, modulus: u32) -> String {
    let device = Device::for_module(module);
    let loaded = match device.load(module) {
        Ok(loaded) => loaded,
        Err(error) => return format!("load: {error}"),
    };
    let pointers = pointers::find(kernel);
    let mut buffers: Vec<Buffer> = Vec::new();
    let mut address = || {
        let buffer = device.allocate(BUFFER, "made up").expect("memory for a buffer");
        if modulus > 0 {
            let words = (0..16384u32).flat_map(|i| (i % modulus).to_le_bytes());
            buffer.write(MIDDLE, &words.collect::<Vec<u8>>()).expect("the buffer is large enough");
        }
        buffers.push(buffer);
        buffers.last().map_or(0, Buffer::address) + MIDDLE
    };
    let block = kernel.bounds.max_threads.map_or(64, |most| most.min(64)) as u32;
    let grid = kernel.bounds.required_cluster.unwrap_or([2, 1, 1]);
    let mut launch = loaded.launch(&kernel.name).grid(grid).output(Output::buffer()).configure(|config| {
        config.deterministic = true;
        config.max_steps = Some(STEPS);
        config.dynamic_shared = 32 << 10;
    });
    if kernel.bounds.required.is_none() {
        launch = launch.block(block);
    }
    for (index, param) in kernel.params.iter().enumerate() {
        let mut bytes = made_up(param);
        let offsets = pointers.iter().filter(|(of, _)| *of == index).map(|(_, offset)| *offset);
        for offset in offsets.chain((param.pointer.is_some()).then_some(0)) {
            if let Some(place) = bytes.get_mut(offset..offset + 8) {
                place.copy_from_slice(&address().to_le_bytes());
            }
        }
        launch = launch.arg(Arg::bytes(bytes));
    }
    match launch.run() {
        Ok(_) => "ended".to_owned(),
        Err(Error::StepLimit { .. }) => "step limit".to_owned(),
        Err(Error::Unsupported { .. }) => REFUSED.to_owned(),
        Err(error @ Error::Undefined { .. }) => {
            let message = &error.diagnostics()[0].message;
            format!(
                "{}: {}",
                FaultKind::UndefinedFunction.code(),
                message.split('\'').nth(1).unwrap_or_default()
            )
        }
        Err(Error::Fault { fault, .. }) => match fault.kind {
            FaultKind::UndefinedFunction | FaultKind::Unsupported => {
                let note =
                    fault.notes.first().and_then(|(note, _)| note.split('`').nth(1).map(str::to_owned));
                format!("{}: {}", fault.kind.code(), note.unwrap_or_default())
            }
            kind => kind.code().to_owned(),
        },
        Err(error) => format!("error: {error}"),
    }
}

/// A small number in the parameter's type.
fn made_up(param: &Param) -> Vec<u8> {
    let one: Vec<u8> = match param.ty.name() {
        "f32" => 1.5f32.to_le_bytes().to_vec(),
        "f64" => 1.5f64.to_le_bytes().to_vec(),
        // Counts, extents, strides: 8 is an element's size too.
        _ => 8u64.to_le_bytes()[..param.ty.bytes().min(8) as usize].to_vec(),
    };
    let bytes = param.bytes as usize;
    if param.array {
        vec![0; bytes]
    } else {
        one.into_iter().chain(std::iter::repeat(0)).take(bytes).collect()
    }
}

fn read_record(path: &Path) -> Record {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let columns = text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t'));
    columns
        .filter_map(|mut columns| {
            Some(((columns.next()?.to_owned(), columns.next()?.to_owned()), columns.next()?.to_owned()))
        })
        .collect()
}

fn write_record(path: &Path, record: &Record) -> std::io::Result<()> {
    let mut text =
        "# File, kernel, and how it ends on buffers of zeros and of small integers, with made-up arguments \
                    (crates/ptxvm/tests/harness/main.rs).\n"
            .to_owned();
    for ((file, kernel), outcome) in record {
        text += &format!("{file}\t{kernel}\t{outcome}\n");
    }
    std::fs::write(path, text)
}
