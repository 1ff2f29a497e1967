//! What the fuzz targets do with their input: functions of bytes that panic if something is wrong.
//!
//! `fuzz_targets/` hands them to libFuzzer, `tests/stable.rs` runs them on a stable toolchain.
#![forbid(unsafe_code)]

use diag::{Diagnostic, SourceFile};
use ptxvm::{Arg, Device, Engine, Module, Output};
use sass::{Arch, Instruction, Style, Thread, binary};

/// The target that the first byte chooses, and the rest.
fn arch(data: &[u8]) -> Option<(Arch, &[u8])> {
    let (first, rest) = data.split_first()?;
    Some((Arch::ALL[usize::from(*first) % Arch::ALL.len()], rest))
}

/// Text to HSETP2. What is accepted has a word, and goes through the fuller style.
pub fn sass_text(data: &[u8]) {
    let Some((arch, rest)) = arch(data) else { return };
    let text = String::from_utf8_lossy(rest);
    let spans_fit = |diagnostic: &Diagnostic| text.get(diagnostic.span.range()).is_some();
    match sass::parse(arch, &text) {
        Ok(parsed) => {
            assert!(parsed.warnings.iter().all(spans_fit), "{text}");
            parsed.instruction.encode().expect("what was parsed has a word");
            let full = parsed.instruction.text(Style::Full);
            let again = sass::parse(arch, &full).unwrap_or_else(|error| panic!("{full}: {error:?}"));
            // NaN payloads are lost in text.
            if !full.contains("NAN ") {
                assert_eq!(again.instruction, parsed.instruction, "{full}");
            }
        }
        Err(diagnostic) => assert!(spans_fit(&diagnostic), "{text}: {diagnostic:?}"),
    }
}

/// Registers that hold whatever is asked for.
struct Anything;

impl Thread for Anything {
    fn register(&self, n: u8) -> u32 {
        u32::from(n) * 0x0101_0101
    }

    fn uniform(&self, n: u8) -> u32 {
        u32::from(n) * 0x0101_0101
    }

    fn predicate(&self, n: u8) -> bool {
        n & 1 != 0
    }

    fn constant(&self, bank: u16, address: u16) -> u32 {
        u32::from(bank) << 16 | u32::from(address)
    }

    fn bound_constant(&self, uniform: u8, address: u16) -> u32 {
        u32::from(uniform) << 16 | u32::from(address)
    }
}

/// Words to HSETP2, one by one and as a file. What is decoded comes back but for the bits that mean nothing.
pub fn sass_words(data: &[u8]) {
    let Some((arch, rest)) = arch(data) else { return };
    for chunk in rest.chunks_exact(arch.word_bytes()) {
        let word = chunk.iter().rev().fold(0, |word, byte| word << 8 | u128::from(*byte));
        let Ok(instruction) = Instruction::decode(arch, word) else { continue };
        assert_eq!(instruction.encode(), Ok(word & !instruction.ignored_bits()), "{arch} {word:x}");
        let _ = sass::execute(&instruction, &Anything);
        sass::parse(arch, &instruction.to_string()).expect("what was printed");
    }
    for line in binary::raw(arch, rest) {
        let _ = line.text(Style::Full);
    }
    let _ = (binary::target(rest), binary::cubin(arch, rest));
}

/// PTX to a tree. What parses prints to something that parses to the same.
pub fn ptx_syntax(data: &[u8]) {
    let source = SourceFile::from_bytes("input", data);
    let (tree, diagnostics) = syntax::parse(&source);
    for diagnostic in &diagnostics {
        assert!(source.text().get(diagnostic.span.range()).is_some(), "{diagnostic:?}");
        let _ = source.position(diagnostic.span.start);
    }
    if diagnostics.is_empty() {
        let printed = SourceFile::new("printed", tree.to_string());
        let (again, complaints) = syntax::parse(&printed);
        assert!(complaints.is_empty(), "{complaints:?}\n{}", printed.text());
        assert!(again == tree, "{}", printed.text());
    }
}

/// PTX to a checked module. Whatever is said names a place of the file.
pub fn ptx_check(data: &[u8]) {
    let source = SourceFile::from_bytes("input", data);
    let (tree, parsed) = syntax::parse(&source);
    let (_, diagnostics) = check::check(&source, &tree, parsed, &check::Options::default());
    for diagnostic in &diagnostics {
        assert!(source.text().get(diagnostic.span.range()).is_some(), "{diagnostic:?}");
    }
}

/// A kernel that runs longer than this many thread-instructions is stopped.
const STEPS: u64 = 20_000;

/// PTX to results: every kernel of a module that passes the checker is launched on both engines, with memory behind parameters of the
/// size of an address, and ends, or says why not.
pub fn ptx_run(data: &[u8]) {
    let Ok(module) = Module::compile(SourceFile::from_bytes("input", data), &check::Options::default()) else { return };
    for kernel in module.kernels() {
        for engine in [Engine::Interpreter, Engine::Reference] {
            let device = Device::for_module(&module);
            let Ok(buffer) = device.allocate(1 << 16, "buffer") else { return };
            let Ok(loaded) = device.load(&module) else { return };
            let mut launch = loaded.launch(&kernel.name).grid(2).engine(engine).output(Output::buffer());
            if kernel.bounds.required.is_none() {
                launch = launch.block(3);
            }
            for param in &kernel.params {
                launch = match param.bytes {
                    8 => launch.arg(Arg::bytes((buffer.address() + 4096).to_le_bytes())),
                    // More than any kernel takes: refused.
                    bytes if bytes > 1 << 16 => return,
                    bytes => launch.arg(Arg::bytes(vec![1; bytes as usize])),
                };
            }
            let _ = launch.configure(|config| config.max_steps = Some(STEPS)).run();
        }
    }
}

/// Choices to a random kernel, with which all engines compute the same.
pub fn kernels(data: &[u8]) {
    let kernel = generator::generate(&mut generator::Random::from_bytes(data));
    if let Err(difference) = generator::compare(&kernel) {
        panic!("{}: {}\n{}", difference.way, difference.what, kernel.text());
    }
}
