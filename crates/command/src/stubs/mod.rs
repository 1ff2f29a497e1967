//! `ptxvm stubs`: libraries in place of those of NVIDIA's that a program links and never needs.
//!
//! PyTorch links 2 GB of NVIDIA's libraries, which its CPU kernels do without. The dynamic linker wants each library and
//! each function that PyTorch's own libraries name, so these are what a stub has (`needs.rs`): every function writes its
//! name on its first call, and returns the library's code for what is not supported (`code.rs`, `image.rs`).

mod code;
mod image;
mod needs;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use self::needs::{Needs, Symbol};
use super::Call;
use super::options::StubsOptions;
use super::report::{Failure, say};

/// A library of NVIDIA's.
struct Library {
    /// How its file name begins, up to `.so`.
    stem: &'static str,
    /// How the names of its functions begin.
    prefix: &'static str,
    /// What its functions return when they can do nothing.
    result: u16,
}

const fn library(stem: &'static str, prefix: &'static str, result: u16) -> Library {
    Library { stem, prefix, result }
}

/// The libraries, and their results: "not supported" where they have that, else the nearest error.
const LIBRARIES: &[Library] = &[
    library("libcublas", "cublas", 15),
    library("libcublasLt", "cublasLt", 15),
    library("libcudnn", "cudnn", 3000),
    library("libcufft", "cufft", 16),
    // CU_FILE_PLATFORM_NOT_SUPPORTED
    library("libcufile", "cuFile", 5003),
    library("libcupti", "cupti", 27),
    // CURAND_STATUS_INITIALIZATION_FAILED
    library("libcurand", "curand", 203),
    library("libcusolver", "cusolver", 9),
    library("libcusolverMg", "cusolverMg", 9),
    library("libcusparse", "cusparse", 10),
    library("libcusparseLt", "cusparseLt", 10),
    // ncclSystemError
    library("libnccl", "nccl", 2),
    // NVJITLINK_ERROR_INTERNAL
    library("libnvJitLink", "nvJitLink", 6),
    // NVRTC_ERROR_INTERNAL_ERROR
    library("libnvrtc", "nvrtc", 11),
    library("libnvshmem_host", "nvshmem", 1),
    library("libnvToolsExt", "nvtx", 0),
];

impl Library {
    /// The library of a file name.
    fn of(name: &str) -> Option<&'static Library> {
        let (stem, _) = name.split_once(".so")?;
        LIBRARIES.iter().find(|library| library.stem == stem)
    }

    /// Whether a function without a version is its: no other library's prefix fits better.
    fn has(&self, function: &str) -> bool {
        let fitting = LIBRARIES.iter().filter(|library| function.starts_with(library.prefix));
        fitting.max_by_key(|library| library.prefix.len()).is_some_and(|library| library.stem == self.stem)
    }
}

/// Writes the stubs, and says which.
///
/// # Errors
/// When there is nothing to read, or a file cannot be read or written.
pub fn stubs(options: &StubsOptions, call: &Call) -> Result<(), Failure> {
    let roots = match options.paths.is_empty() {
        true => vec![torch(call).ok_or_else(|| {
            Failure::usage("there is no PyTorch in this command's Python environment")
                .help("name the folder of the libraries: ptxvm stubs venv/lib/python3.12/site-packages/torch")
        })?],
        false => options.paths.clone(),
    };
    let mut files = Vec::new();
    for root in &roots {
        find(root, &mut files)
            .map_err(|error| Failure::usage(format!("cannot read `{}`: {error}", root.display())))?;
    }
    let mut wanted: BTreeMap<String, Stub> = BTreeMap::new();
    for file in &files {
        let bytes = fs::read(file)
            .map_err(|error| Failure::usage(format!("cannot read `{}`: {error}", file.display())))?;
        let Some(needs) = Needs::read(&bytes) else { continue };
        for name in needs.libraries.iter().filter(|name| !is_there(name, file, &needs)) {
            let Some(library) = Library::of(name) else { continue };
            let stub = wanted.entry(name.clone()).or_insert_with(|| Stub::new(file, &needs));
            stub.symbols.extend(needs.symbols.iter().filter(|symbol| symbol.is_of(name, library)).cloned());
        }
    }
    let mut functions = 0;
    for (name, stub) in &mut wanted {
        let folder = options.output.as_deref().unwrap_or(&stub.folder);
        let path = folder.join(name);
        let written = write(&path, name, stub);
        functions +=
            written.map_err(|error| Failure::usage(format!("cannot write `{}`: {error}", path.display())))?;
        say(format_args!("{}: {}", path.display(), counted(stub.symbols.len(), "function", "functions")));
    }
    let libraries = counted(wanted.len(), "library", "libraries");
    say(format_args!("{libraries} with {}", counted(functions, "function", "functions")));
    Ok(())
}

fn counted(number: usize, one: &str, more: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { more })
}

/// A library to write.
struct Stub {
    /// Beside the first library that needs it, whose search path leads there.
    folder: PathBuf,
    machine: u16,
    symbols: Vec<Symbol>,
}

impl Stub {
    fn new(file: &Path, needs: &Needs) -> Stub {
        let folder = file.parent().unwrap_or(Path::new(".")).to_owned();
        Stub { folder, machine: needs.machine, symbols: Vec::new() }
    }
}

/// Writes a stub, and returns how many functions it has.
fn write(path: &Path, name: &str, stub: &mut Stub) -> Result<usize, String> {
    stub.symbols.sort();
    stub.symbols.dedup();
    let result = Library::of(name).map_or(1, |library| library.result);
    let image = image::library(name, stub.machine, &stub.symbols, result)?;
    // A file in use keeps its bytes: programs that run have the old one.
    let _ = fs::remove_file(path);
    fs::write(path, image).map_err(|error| error.to_string())?;
    Ok(stub.symbols.len())
}

/// The libraries of PyTorch beside the Python that runs this command, or that is active.
fn torch(call: &Call) -> Option<PathBuf> {
    let python =
        call.again.as_ref().and_then(|words| words.first()).map(|python| Path::new(python).to_owned());
    let active = std::env::var_os("VIRTUAL_ENV").map(PathBuf::from);
    let environments =
        python.and_then(|python| Some(python.parent()?.parent()?.to_owned())).into_iter().chain(active);
    environments
        .flat_map(|environment| fs::read_dir(environment.join("lib")).into_iter().flatten().flatten())
        .map(|folder| folder.path().join("site-packages/torch/lib"))
        .find(|folder| folder.is_dir())
}

/// The shared libraries at or below a path.
fn find(path: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if !path.is_dir() {
        found.push(path.to_owned());
        return Ok(());
    }
    let mut entries = fs::read_dir(path)?.collect::<std::io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name: OsString = entry.file_name();
        if entry.file_type()?.is_dir() {
            find(&entry.path(), found)?;
        } else if name.to_string_lossy().contains(".so") {
            found.push(entry.path());
        }
    }
    Ok(())
}

/// Whether the search path of a file leads to a library of NVIDIA's that is no stub.
fn is_there(name: &str, file: &Path, needs: &Needs) -> bool {
    let folder = file.parent().unwrap_or(Path::new("."));
    let origin = folder.to_string_lossy();
    let folders = needs
        .search
        .iter()
        .map(|path| PathBuf::from(path.replace("$ORIGIN", &origin).replace("${ORIGIN}", &origin)));
    let mut candidates = folders.chain([folder.to_owned()]).map(|folder| folder.join(name));
    candidates.any(|path| path.is_file() && !is_stub(&path))
}

/// Whether a file is a stub of ours.
fn is_stub(path: &Path) -> bool {
    // NVIDIA's libraries are large: 64 KiB hold the mark of each stub.
    let start = |path: &Path| -> std::io::Result<Vec<u8>> {
        use std::io::Read;
        let mut start = Vec::new();
        fs::File::open(path)?.take(1 << 16).read_to_end(&mut start)?;
        Ok(start)
    };
    start(path).is_ok_and(|start| memchr::memmem::find(&start, image::MARK).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_functions_find_each_other() {
        let of = |name| Library::of(name).map(|library| library.stem);
        assert_eq!(of("libcublasLt.so.12"), Some("libcublasLt"));
        assert_eq!(of("libcusparseLt.so.0"), Some("libcusparseLt"));
        assert_eq!([of("libcudart.so.12"), of("libc10.so"), of("libcublas.a")], [None; 3]);
        let has = |name, function| Library::of(name).unwrap().has(function);
        assert!(has("libnccl.so.2", "ncclAllReduce"));
        assert!(has("libcusparseLt.so.0", "cusparseLtInit") && !has("libcusparse.so.12", "cusparseLtInit"));
        assert!(!has("libnccl.so.2", "cudnnCreate"));
    }
}
