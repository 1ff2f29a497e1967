//! NVIDIA's CUDALibrarySamples, as they are, compiled by nvcc with `-cudart shared` and run on our libraries. docs/samples.md has the results.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::toolkit::{PACKAGES, Toolkit, a_few_at_a_time, cloned, first, run_to_end};
use super::{Outcome, Site};

const REPOSITORY: &str = "https://github.com/NVIDIA/CUDALibrarySamples";
/// The folders of the libraries that we have.
const FOLDERS: &[&str] = &["cuBLAS", "cuBLASLt", "cuFFT", "cuRAND", "cuSOLVER", "cuSPARSE"];
const LINKED: &[&str] = &["cublas", "cublasLt", "cufft", "curand", "cusolver", "cusparse", "nvrtc"];
/// So many of a hundred must pass, and so many in all.
const SHARE: usize = 90;
const LEAST: usize = 170;

/// Parts of names of samples that are left out, and why.
const LEFT_OUT: &[(&str, &str)] = &[
    ("cuSOLVER/Mg", "they want cuSOLVERMg, another library"),
    ("gemm_grading", "they want a BLAS of the host"),
    ("irs_expert_cuda-10.2", "it is older than the headers of CUDA 11"),
    ("gemmGrouped", "groups of products of cuBLASLt are not supported"),
    ("Blk128x128Fp8Matmul", "scales of blocks are not supported"),
    ("Mxfp8Matmul", "scales of blocks are not supported"),
    ("Nvfp4Matmul", "scales of blocks are not supported"),
    ("mgpu", "transforms that several devices share are not supported"),
    ("callback", "callbacks of cuFFT are not supported"),
    ("scrambled_sobol", "NVIDIA has not published how their direction vectors are scrambled"),
    ("spmm_csr_op", "operators of the program's own are not supported in products of sparse matrices"),
    ("spmvop", "operators of the program's own are not supported in products of sparse matrices"),
];

/// A program: the file that has `main`, and the others of its folder.
struct Sample {
    name: String,
    main: PathBuf,
}

/// Compiles and runs the samples whose names have one of the words in them, or all.
///
/// # Errors
/// When there is no compiler, or there are no samples.
pub fn run(site: &Site) -> Result<Outcome, String> {
    let root = cloned(site, REPOSITORY)?;
    let toolkit = Toolkit::install(site, PACKAGES)?;
    let mut samples = Vec::new();
    for folder in FOLDERS {
        find(&root, &root.join(folder), &mut samples)
            .map_err(|error| format!("{}: {error}", root.display()))?;
    }
    samples
        .retain(|sample| site.words.is_empty() || site.words.iter().any(|word| sample.name.contains(word)));
    samples.retain(|sample| {
        let left_out = LEFT_OUT.iter().find(|(part, _)| sample.name.contains(part));
        if let Some((_, why)) = left_out {
            println!("left out {}: {why}", sample.name);
        }
        left_out.is_none()
    });
    a_few_at_a_time(&samples, |sample| sample.compile(&toolkit, &root));
    let mut outcome = Outcome { share: SHARE, least: LEAST, ..Outcome::default() };
    let start = Instant::now();
    for sample in &samples {
        let began = Instant::now();
        outcome.note(&sample.name, began, sample.judge(&toolkit));
    }
    outcome.seconds = Some(format!("{:.0}", start.elapsed().as_secs_f64()));
    Ok(outcome)
}

/// Adds the programs of a folder and of the folders in it, by name.
fn find(root: &Path, folder: &Path, samples: &mut Vec<Sample>) -> std::io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(|entry| entry.file_name());
    for entry in entries {
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            find(root, &path, samples)?;
        } else if is_source(&path) && has_main(&path) {
            let name = path.strip_prefix(root).unwrap_or(&path).with_extension("");
            let name = name.to_string_lossy().trim_end_matches("/main").to_owned();
            samples.push(Sample { name, main: path });
        }
    }
    Ok(())
}

fn is_source(path: &Path) -> bool {
    path.extension().is_some_and(|extension| ["cu", "cpp", "c"].iter().any(|known| extension == *known))
}

fn has_main(path: &Path) -> bool {
    fs::read_to_string(path).is_ok_and(|text| text.contains("main(") || text.contains("main ("))
}

impl Sample {
    fn folder(&self) -> &Path {
        self.main.parent().unwrap_or(&self.main)
    }

    fn file(&self, extension: &str) -> PathBuf {
        self.main.with_extension(extension)
    }

    /// Compiles it, unless that was done before. What fails is seen when there is no program to run.
    fn compile(&self, toolkit: &Toolkit, root: &Path) {
        if self.file("bin").exists() {
            return;
        }
        let mut nvcc = toolkit.nvcc("90");
        if self.main.extension().is_some_and(|extension| extension != "c") {
            // Some sources use what other compilers' headers bring along.
            nvcc.args(["-include", "cassert", "-include", "cstdint"]);
        }
        if fs::read_to_string(self.folder().join("Makefile")).is_ok_and(|text| text.contains("nvcc -x cu")) {
            nvcc.args(["-x", "cu"]);
        }
        let mut folder = self.folder();
        while folder != root {
            for common in ["", "utils", "common", "Common"] {
                nvcc.arg("-I").arg(folder.join(common));
            }
            let Some(above) = folder.parent() else { break };
            folder = above;
        }
        nvcc.arg(&self.main).args(self.others());
        toolkit.link(&mut nvcc, LINKED);
        nvcc.arg("-o").arg(self.file("bin"));
        run_to_end(&mut nvcc, &self.file("compile.log"));
    }

    /// The sources of its folder without `main`, and those that its CMake file names in the folder beside it.
    fn others(&self) -> Vec<PathBuf> {
        let folder = self.folder();
        let here = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut others: Vec<PathBuf> = here.filter(|path| is_source(path) && !has_main(path)).collect();
        let text = fs::read_to_string(folder.join("CMakeLists.txt")).unwrap_or_default();
        let beside =
            text.split_whitespace().filter(|word| word.starts_with("../") && is_source(Path::new(word)));
        others.extend(beside.map(|word| folder.join(word)));
        others
    }

    /// Runs it, and looks at how it ended and at what it says.
    ///
    /// # Errors
    /// Why it failed.
    fn judge(&self, toolkit: &Toolkit) -> Result<(), String> {
        if !self.file("bin").exists() {
            let log = fs::read_to_string(self.file("compile.log")).unwrap_or_default();
            return Err(format!("nvcc: {}", first(&log, &["error", "undefined"])));
        }
        let mut program = toolkit.program(&self.file("bin"));
        Toolkit::run(program.current_dir(self.folder()), &self.file("run.log")).map(|_| ())
    }
}
