//! `ptxvm as-ptxas`: replaces NVIDIA's assembler where a compiler calls one. It checks as ptxas does, with its words
//! and exit code. Its output is the PTX itself, which our driver loads. The command does the same under the name
//! `ptxas`.

use std::path::Path;

use diag::{Code, Diagnostic, SourceFile};
use isa::{Suffix, Target};

use super::report::{code, print, say};

/// The CUDA release that this ptxas reports, in the form that compilers look for. They choose the PTX version by it,
/// and compilers that know no release after 12.9 are still in use.
const VERSION: &str = concat!(
    "ptxas: the checker of ptxvm ",
    env!("CARGO_PKG_VERSION"),
    ", in place of NVIDIA's assembler: what it writes is PTX\n",
    "Cuda compilation tools, release 12.9, V12.9.0"
);

/// ptxas's exit code for every error.
const REFUSED: u8 = 255;
const DEFAULT_TARGET: Target = Target::sm(75);
const DEFAULT_OUTPUT: &str = "elf.o";

/// Options without a value. All except `--verbose`, `--version`, `--help` and `--list-version` are about machine
/// code.
const FLAGS: &[&str] = &[
    "apply-controls",
    "astoolspatch",
    "compile-as-tools-patch",
    "c",
    "compile-only",
    "annotate",
    "compiler-annotations",
    "g",
    "device-debug",
    "disable-optimizer-consts",
    "disable-optimizer-constants",
    "w",
    "disable-warnings",
    "no-bb-merge",
    "dont-merge-basicblocks",
    "ewp",
    "extensible-whole-program",
    "g-tmem-access-check",
    "g-tensor-memory-access-check",
    "lineinfo",
    "generate-line-info",
    "gno-fabric-access-check",
    "gno-tmem-access-check",
    "gno-tensor-memory-access-check",
    "h",
    "help",
    "jobserver",
    "legacy-bar-warp-wide-behavior",
    "version-ls",
    "list-version",
    "make-errors-visible-at-exit",
    "opt-fp-atomics",
    "optimize-float-atomics",
    "override-directive-values",
    "preserve-relocs",
    "ret-end",
    "return-at-end",
    "sp-bounds-check",
    "suppress-debug-info",
    "suppress-async-bulk-multicast-advisory-warning",
    "suppress-double-demote-warning",
    "suppress-position-independent-code-warning",
    "suppress-sparse-mma-advisory-info",
    "suppress-stack-size-warning",
    "v",
    "verbose",
    "v2",
    "verbose2",
    "V",
    "version",
    "warn-double-usage",
    "warn-on-double-precision-use",
    "warn-lmem-usage",
    "warn-on-local-memory-usage",
    "warn-spills",
    "warn-on-spills",
    "Werror",
    "warning-as-error",
];

/// Options with a value, after `=` or a space. The value of `-O` and `-m` may also follow the letter directly.
const VALUES: &[&str] = &[
    "Ofc",
    "Ofast-compile",
    "allow-expensive-optimizations",
    "dlcm",
    "def-load-cache",
    "dscm",
    "def-store-cache",
    "func-maxrregcount",
    "device-function-maxrregcount",
    "device-stack-protector",
    "enable-func-clone-sc",
    "e",
    "entry",
    "fmad",
    "flcm",
    "force-load-cache",
    "fscm",
    "force-store-cache",
    "arch",
    "gpu-name",
    "ias",
    "input-as-string",
    "m",
    "machine",
    "maxntid",
    "maxrregcount",
    "minnctapersm",
    "O",
    "opt-level",
    "o",
    "output-file",
    "pic",
    "position-independent-code",
    // Undocumented, but accepted by ptxas; Triton 3.9 passes it.
    "regAllocOptLevel",
    "regUsageLevel",
    "register-usage-level",
    "sanitize",
    "split-compile",
];

/// The request of a command line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Request {
    help: bool,
    version: bool,
    list_versions: bool,
    verbose: bool,
    quiet: bool,
    /// Functions may be defined in other files.
    relocatable: bool,
    target: Option<String>,
    output: Option<String>,
    /// Files, and texts given on the command line.
    inputs: Vec<Input>,
}

#[derive(Debug, PartialEq, Eq)]
enum Input {
    File(String),
    Text(String),
}

impl Request {
    /// Parses the words after the command's name.
    ///
    /// # Errors
    /// ptxas's message for the mistake.
    /// ptxas's words for what is wrong with them.
    fn read(words: &[String]) -> Result<Request, String> {
        let mut request = Request::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let Some(name) =
                word.strip_prefix("--").or_else(|| word.strip_prefix('-')).filter(|name| !name.is_empty())
            else {
                request.inputs.push(Input::File(word.clone()));
                continue;
            };
            let (name, value) = match name.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None if !VALUES.contains(&name)
                    && name.starts_with(['O', 'm'])
                    && name[1..].parse::<u8>().is_ok() =>
                {
                    name.split_at_checked(1).map_or((name, None), |(name, value)| (name, Some(value)))
                }
                None => (name, None),
            };
            if FLAGS.contains(&name) && value.is_none() {
                request.flag(name);
            } else if VALUES.contains(&name) {
                let value = value.map(str::to_owned).or_else(|| words.next().cloned());
                request.set(name, value.ok_or_else(|| format!("argument expected after '{word}'"))?);
            } else {
                return Err(format!("Unknown option '{}'", word.strip_prefix('-').unwrap_or(word)));
            }
        }
        Ok(request)
    }

    fn flag(&mut self, name: &str) {
        match name {
            "h" | "help" => self.help = true,
            "V" | "version" => self.version = true,
            "version-ls" | "list-version" => self.list_versions = true,
            "v" | "verbose" | "v2" | "verbose2" => self.verbose = true,
            "w" | "disable-warnings" => self.quiet = true,
            "c" | "compile-only" | "ewp" | "extensible-whole-program" => self.relocatable = true,
            _ => {}
        }
    }

    fn set(&mut self, name: &str, value: String) {
        match name {
            "arch" | "gpu-name" => self.target = Some(value),
            "o" | "output-file" => self.output = Some(value),
            "ias" | "input-as-string" => self.inputs.push(Input::Text(value)),
            _ => {}
        }
    }

    /// The architecture, and whether code for it is requested: `compute_80` requests none.
    ///
    /// # Errors
    /// When the name is unknown.
    fn target(&self) -> Result<(Target, bool), String> {
        let Some(name) = &self.target else { return Ok((DEFAULT_TARGET, true)) };
        let number = ["sm_", "compute_", "lto_"].iter().find_map(|prefix| name.strip_prefix(prefix));
        let target = number.and_then(|number| Target::parse(&format!("sm_{number}")));
        let target = target.ok_or_else(|| format!("Value '{name}' is not defined for option 'gpu-name'"))?;
        Ok((target, name.starts_with("sm_")))
    }
}

const HELP: &str = "\
Stands in for NVIDIA's assembler: checks PTX as ptxas does and writes it as it is, for ptxvm's driver.

Usage: ptxvm as-ptxas [ptxas's options] FILE        also when the command is called under the name `ptxas`

Options that have an effect: --gpu-name (-arch), --output-file (-o), --input-as-string (-ias), --verbose (-v),
--disable-warnings (-w), --compile-only (-c), --version (-V), --list-version, --help (-h). ptxas's others are understood and have none.
--verbose names the registers, stack and shared memory of each kernel; the number of registers is an estimate.

Example:
  TRITON_PTXAS_PATH=/usr/local/bin/ptxas python train.py      where that is a link to ptxvm; `ptxvm exec` sets it

Exit codes: 0, or 255 for whatever is wrong.";

/// Executes these words as ptxas would.
pub fn ptxas(words: &[String]) -> u8 {
    match assemble(words) {
        Ok(()) => code::OK,
        Err(message) => {
            say(format_args!("ptxas fatal   : {message}"));
            REFUSED
        }
    }
}

fn assemble(words: &[String]) -> Result<(), String> {
    let request = Request::read(words)?;
    let text = match &request {
        Request { help: true, .. } => Some(HELP.to_owned()),
        Request { version: true, .. } => Some(VERSION.to_owned()),
        Request { list_versions: true, .. } => {
            Some(isa::Version::all().map(|version| version.to_string()).collect::<Vec<_>>().join("\n"))
        }
        _ if words.is_empty() => Some(HELP.to_owned()),
        _ => None,
    };
    if let Some(text) = text {
        return print(text).map_err(|failure| failure.message);
    }
    let (target, wants_code) = request.target()?;
    let input = match &request.inputs[..] {
        [] => return Err("No input file specified".to_owned()),
        [input] => input,
        _ => return Err("ptxvm takes one input file at a time: `ptxvm run` links several".to_owned()),
    };
    let source = match input {
        Input::Text(text) => SourceFile::new("application ptx input", text.clone()),
        Input::File(name) => {
            let bytes =
                std::fs::read(name).map_err(|_| format!("Input file '{name}' could not be opened"))?;
            SourceFile::from_bytes(name.clone(), bytes)
        }
    };
    check(&source, target, &request)?;
    if !wants_code {
        return Ok(());
    }
    let mut bytes = source.text().as_bytes().to_vec();
    bytes.push(0);
    let output = Path::new(request.output.as_deref().unwrap_or(DEFAULT_OUTPUT));
    std::fs::write(output, bytes)
        .map_err(|error| format!("Could not open output file '{}': {error}", output.display()))
}

/// Reports what is wrong with the text.
///
/// # Errors
/// When the text cannot be used.
fn check(source: &SourceFile, target: Target, request: &Request) -> Result<(), String> {
    let (tree, parsed) = syntax::parse(source);
    let assembly = if request.relocatable { check::Assembly::Relocatable } else { check::Assembly::Whole };
    let options = check::Options { assembly, ..check::Options::default() };
    let (module, diagnostics) = check::check(source, &tree, parsed, &options);
    for diagnostic in diagnostics.iter().filter(|diagnostic| diagnostic.is_error() || !request.quiet) {
        say(message(source, diagnostic));
    }
    let Some(module) = module.filter(|_| !diagnostics.iter().any(Diagnostic::is_error)) else {
        return Err("Ptx assembly aborted due to errors".to_owned());
    };
    suits(module.target, target)?;
    if request.verbose {
        describe(source, &options, target).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Reports the resources of each kernel, in the lines that build tools look for. The number of registers is an
/// estimate, because there is no machine code.
fn describe(source: &SourceFile, options: &check::Options, target: Target) -> Result<(), ptxvm::Error> {
    let module = ptxvm::Module::compile(source.clone(), options)?;
    let loaded = ptxvm::Device::for_module(&module).load(&module)?;
    for kernel in module.kernels() {
        let taken = loaded.attributes(&kernel.name)?;
        say(format_args!("ptxas info    : Compiling entry function '{}' for '{target}'", kernel.name));
        say(format_args!("ptxas info    : Function properties for {}", kernel.name));
        let stack = taken.local_bytes;
        say(format_args!("    {stack} bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"));
        let shared = match taken.shared_bytes {
            0 => String::new(),
            bytes => format!(", {bytes} bytes smem"),
        };
        say(format_args!("ptxas info    : Used {} registers{shared}", taken.estimated_registers()));
    }
    Ok(())
}

/// Errors at which ptxas stops; after other errors it continues (tests/fail has its messages).
const FATAL: &[Code] = &[
    Code::SyntaxError,
    Code::UnterminatedComment,
    Code::MissingVersion,
    Code::UnsupportedVersion,
    Code::MissingTarget,
    Code::UnsupportedTarget,
    Code::ForwardReference,
    Code::DiscardedResult,
    Code::InitializerType,
    Code::WrongElementCount,
];

/// A diagnostic in ptxas's form.
fn message(source: &SourceFile, diagnostic: &Diagnostic) -> String {
    let severity = match diagnostic.is_error() {
        true if FATAL.contains(&diagnostic.code) => "fatal   ",
        true => "error   ",
        false => "warning ",
    };
    let line = source.position(diagnostic.span.start).line;
    format!("ptxas {}, line {line}; {severity}: {}", source.name(), diagnostic.message)
}

/// Whether code of one target can be compiled for an architecture.
///
/// # Errors
/// ptxas's message if not.
fn suits(program: Target, architecture: Target) -> Result<(), String> {
    if architecture.has(program) {
        return Ok(());
    }
    Err(match program.suffix {
        Suffix::Architecture if architecture.number > program.number => {
            format!("Program with .target '{program}' cannot be compiled to future architecture")
        }
        Suffix::Architecture | Suffix::Family if architecture.number >= program.number => {
            format!("PTX with .target '{program}' cannot be compiled for architecture '{architecture}'")
        }
        _ => "SM version specified by .target is higher than default SM version assumed".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Request, String> {
        let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        Request::read(&words)
    }

    #[test]
    fn options_of_compilers_are_understood() {
        // The options that Triton 3.4 passes.
        let request =
            read("-lineinfo --fmad=false -v --opt-level 0 --gpu-name=sm_90a /tmp/k.ptx -o /tmp/k.o").unwrap();
        assert_eq!(request.target(), Ok((Target::new(90, Suffix::Architecture), true)));
        assert_eq!(request.output.as_deref(), Some("/tmp/k.o"));
        assert_eq!(request.inputs, [Input::File("/tmp/k.ptx".to_owned())]);
        assert!(request.verbose);
        // The options that Triton 3.9 passes.
        let request =
            read("-lineinfo -v --regAllocOptLevel=2 --gpu-name=sm_100a /tmp/k.ptx -o /tmp/k.o").unwrap();
        assert_eq!(request.inputs, [Input::File("/tmp/k.ptx".to_owned())]);
        // The options that nvcc passes.
        let request = read("-m64 -O3 -arch compute_80 --output-file=x.cubin x.ptx").unwrap();
        assert_eq!(request.target(), Ok((Target::sm(80), false)));
        assert_eq!(read("x.ptx").unwrap().target(), Ok((DEFAULT_TARGET, true)));
    }

    #[test]
    fn options_that_ptxas_does_not_have_are_refused() {
        assert_eq!(read("--foo x.ptx"), Err("Unknown option '-foo'".to_owned()));
        assert_eq!(read("x.ptx --gpu-name"), Err("argument expected after '--gpu-name'".to_owned()));
        let target = read("-arch sm_99 x.ptx").unwrap().target();
        assert_eq!(target, Err("Value 'sm_99' is not defined for option 'gpu-name'".to_owned()));
    }

    #[test]
    fn an_architecture_takes_what_it_can_run() {
        let suits = |program: &str, architecture: &str| {
            suits(Target::parse(program).unwrap(), Target::parse(architecture).unwrap())
        };
        for (program, architecture) in
            [("sm_80", "sm_90a"), ("sm_90a", "sm_90a"), ("sm_100f", "sm_103a"), ("sm_50", "sm_121")]
        {
            assert_eq!(suits(program, architecture), Ok(()), "{program} {architecture}");
        }
        // The messages of ptxas 13.5.
        for (program, architecture, message) in [
            ("sm_90", "sm_80", "SM version specified by .target is higher than default SM version assumed"),
            ("sm_90a", "sm_90", "PTX with .target 'sm_90a' cannot be compiled for architecture 'sm_90'"),
            ("sm_90a", "sm_100", "Program with .target 'sm_90a' cannot be compiled to future architecture"),
            (
                "sm_100a",
                "sm_100f",
                "PTX with .target 'sm_100a' cannot be compiled for architecture 'sm_100f'",
            ),
        ] {
            assert_eq!(suits(program, architecture), Err(message.to_owned()));
        }
    }
}
