//! Reading PTX: text, or the files of compilers that have it in them.

use std::io::Read;
use std::path::{Path, PathBuf};

use diag::{Code, Diagnostic, SourceFile, Span};

use super::options::Format;
use super::report::{Failure, print};

/// The PTX of a file.
pub struct Input {
    /// The modules, in the order of the file.
    pub sources: Vec<SourceFile>,
    /// Whether a compiler put them into the file, so that its linker gives them the names that they lack.
    pub is_embedded: bool,
}

/// A file that cannot be read.
pub struct Unreadable {
    /// An empty source with the file's name, which the diagnostic refers to.
    source: SourceFile,
    /// Why it cannot be read.
    diagnostic: Diagnostic,
}

impl Unreadable {
    /// Shows why it cannot be read.
    pub fn show(self, format: Format) {
        if format == Format::Json {
            // If stdout is closed, nobody can be informed.
            let _ = print(diag::json(&self.source, &[self.diagnostic]));
            return;
        }
        let failure = Failure::bad(self.diagnostic.message);
        match self.diagnostic.help {
            Some(help) => failure.help(help).show(),
            None => failure.show(),
        }
    }
}

/// The PTX of a file, or of standard input for `-`. A program, library, object, archive, fat binary or cubin may have
/// several modules, which are named after the file: `a.so(2.compute_90.ptx)`.
///
/// # Errors
/// When it cannot be read, or is neither PTX nor has any in it.
pub fn read(path: &Path) -> Result<Input, Box<Unreadable>> {
    let stdin = path.as_os_str() == "-";
    let name = if stdin { "<stdin>".to_owned() } else { path.display().to_string() };
    let unreadable =
        |diagnostic| Box::new(Unreadable { source: SourceFile::new(name.clone(), ""), diagnostic });
    if let Some(help) = way_to_ptx(path) {
        let language = if is_cuda(path) { "CUDA C++" } else { "LLVM IR" };
        return Err(unreadable(error(format!("`{name}` is {language}, not PTX")).help(help)));
    }
    let mut bytes = Vec::new();
    let result = if stdin {
        std::io::stdin().lock().read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes))
    };
    if let Err(cause) = result {
        return Err(unreadable(error(format!("cannot read `{name}`: {cause}"))));
    }
    let modules = match fatbin::embedded(&bytes) {
        None => {
            let sources = vec![SourceFile::from_bytes(name, bytes)];
            return Ok(Input { sources, is_embedded: false });
        }
        Some(Ok(modules)) => modules,
        Some(Err(cause)) => return Err(unreadable(without_ptx(&name, &cause))),
    };
    let several = modules.len() > 1;
    let source = |(index, module): (usize, fatbin::Embedded)| {
        let number = if several { format!("{}.", index + 1) } else { String::new() };
        let architecture = match module.architecture {
            none if none.is_empty() => none,
            architecture => format!("{architecture}."),
        };
        SourceFile::from_bytes(format!("{name}({number}{architecture}ptx)"), module.text)
    };
    Ok(Input { sources: modules.into_iter().enumerate().map(source).collect(), is_embedded: true })
}

fn error(message: String) -> Diagnostic {
    Diagnostic::error(Code::UnreadableFile, Span::at(0), message)
}

/// What is wrong with a file that should have PTX in it.
fn without_ptx(name: &str, cause: &fatbin::Error) -> Diagnostic {
    match cause {
        fatbin::Error::NoPtx(images) if images.is_empty() => {
            error(format!("`{name}` has no PTX in it")).help("docs/get-ptx.md shows how compilers write PTX")
        }
        fatbin::Error::NoPtx(images) => error(format!("`{name}` has no PTX, only {}", images.join(", ")))
            .help("have the compiler add PTX: nvcc -gencode arch=compute_90,code=compute_90"),
        cause => error(format!("the PTX of `{name}` cannot be read: {cause}")),
    }
}

fn is_cuda(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "cu")
}

/// The command that makes PTX of a file in a language that compilers read; `None` for other files.
fn way_to_ptx(path: &Path) -> Option<String> {
    let (file, ptx) = (path.display(), path.with_extension("ptx"));
    let ptx = ptx.display();
    let nvcc = |nvcc: &str| format!("{nvcc} -ptx -arch=sm_90 {file} -o {ptx}");
    let clang = |clang: &str| format!("{clang} --cuda-device-only -S --cuda-gpu-arch=sm_90 {file} -o {ptx}");
    if is_cuda(path) {
        return Some(match (found("nvcc"), found("clang++")) {
            (Some(path), _) => format!("compile it: {}", nvcc(&path)),
            (None, Some(path)) => format!("compile it: {}", clang(&path)),
            (None, None) => format!(
                "compile it with CUDA's nvcc or with clang: {}, or {}",
                nvcc("nvcc"),
                clang("clang++")
            ),
        });
    }
    let is_ir = path.extension().is_some_and(|extension| extension == "ll" || extension == "bc");
    is_ir.then(|| format!("compile it: llc -mtriple=nvptx64-nvidia-cuda -mcpu=sm_90 {file} -o {ptx}"))
}

/// A program of the PATH, or of the CUDA toolkit that `CUDA_HOME` or `CUDA_PATH` names: what a shell needs to call it.
fn found(program: &str) -> Option<String> {
    let name = format!("{program}{}", std::env::consts::EXE_SUFFIX);
    let in_path = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(&name).is_file()));
    let toolkits = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let toolkit = || {
        let mut programs = toolkits.map(|toolkit| toolkit.join("bin").join(&name));
        programs.find(|program| program.is_file()).map(|program| program.display().to_string())
    };
    if in_path { Some(program.to_owned()) } else { toolkit() }
}
