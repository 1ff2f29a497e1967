//! The lines of a source that say how it is compiled: `// nvcc -use_fast_math: sm_75 sm_80`.

use std::fs;
use std::path::{Path, PathBuf};

/// One source, one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The source.
    pub source: PathBuf,
    /// Such as `-use_fast_math`.
    pub options: Vec<String>,
    /// Such as `sm_80`.
    pub target: String,
}

impl Job {
    /// The name of the file to write: `mathematics_use_fast_math_sm80.ptx`.
    pub fn file(&self) -> String {
        let stem = self.source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let options = self.options.iter().map(|option| option.trim_start_matches('-').replace('=', "_"));
        let words: Vec<String> = [stem].into_iter().chain(options).collect();
        format!("{}_{}.ptx", words.join("_"), self.target.replace('_', ""))
    }
}

/// What `compiler` is to do with the sources of a folder, in the order of their names.
pub fn jobs(folder: &Path, extension: &str, compiler: &str) -> Result<Vec<Job>, String> {
    let failed = |error| format!("{}: {error}", folder.display());
    let entries = fs::read_dir(folder).map_err(failed)?;
    let mut sources =
        entries.map(|entry| Ok(entry.map_err(failed)?.path())).collect::<Result<Vec<_>, String>>()?;
    sources.retain(|source| source.extension().is_some_and(|found| found == extension));
    sources.sort();
    let mut jobs = Vec::new();
    for source in sources {
        let text = fs::read_to_string(&source).map_err(|error| format!("{}: {error}", source.display()))?;
        for (options, targets) in text.lines().filter_map(|line| directive(line, compiler)) {
            let job = |target| Job { source: source.clone(), options: options.clone(), target };
            jobs.extend(targets.into_iter().map(job));
        }
    }
    Ok(jobs)
}

/// Options and targets of a line, if it is meant for this compiler.
fn directive(line: &str, compiler: &str) -> Option<(Vec<String>, Vec<String>)> {
    let (options, targets) = line.strip_prefix("// ")?.strip_prefix(compiler)?.split_once(':')?;
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let (options, targets) = (words(options), words(targets));
    let is_target = |word: &String| word.starts_with("sm_");
    (options.iter().all(|option| option.starts_with('-')) && targets.iter().all(is_target))
        .then_some((options, targets))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_name_compiler_options_and_targets() {
        let found = directive("// nvcc -use_fast_math: sm_75 sm_90a", "nvcc");
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(found, Some((words(&["-use_fast_math"]), words(&["sm_75", "sm_90a"]))));
        assert_eq!(directive("// nvrtc: sm_53", "nvcc"), None);
        assert_eq!(directive("// nvcc is the compiler: it is", "nvcc"), None);
    }

    #[test]
    fn files_are_named_by_options_and_target() {
        let job = |options: &[&str]| Job {
            source: PathBuf::from("a/half.cu"),
            options: options.iter().map(|option| (*option).to_owned()).collect(),
            target: "sm_80".to_owned(),
        };
        assert_eq!(job(&[]).file(), "half_sm80.ptx");
        assert_eq!(job(&["-O0"]).file(), "half_O0_sm80.ptx");
        assert_eq!(job(&["-Copt-level=1"]).file(), "half_Copt-level_1_sm80.ptx");
    }
}
