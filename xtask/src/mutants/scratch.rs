//! A copy of the tree, and the tests in it.

use super::list::Mutant;
use super::read;
use crate::codegen::{generate, root};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// What tests say.
pub enum Outcome {
    /// All pass.
    Passed,
    /// These fail.
    Failed(Vec<String>),
}

/// The folder of the copy.
pub struct Scratch {
    tree: PathBuf,
    target: PathBuf,
    /// Output of the last command.
    output: PathBuf,
    errors: PathBuf,
    /// Tests that take longer hang.
    limit: Duration,
}

impl Scratch {
    /// A copy in this folder, which must be outside of the tree.
    pub fn new(folder: &Path, limit: Duration) -> Result<Scratch, String> {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let full = |path: &Path| path.canonicalize().map_err(|error| format!("{}: {error}", path.display()));
        let (folder, root) = (full(folder)?, full(&root())?);
        if folder.starts_with(&root) || root.starts_with(&folder) {
            return Err(format!("{} and the tree lie in each other", folder.display()));
        }
        let [tree, target, output, errors] =
            ["tree", "target", "output.txt", "errors.txt"].map(|name| folder.join(name));
        Ok(Scratch { tree, target, output, errors, limit })
    }

    /// Copies what git knows of the tree, and what it does not ignore. Files that are the same stay, so that little is
    /// built again; files that are gone are removed.
    pub fn copy_tree(&self) -> Result<(), String> {
        let known = tree_files()?;
        for file in &known {
            let (from, to) = (root().join(file), self.tree.join(file));
            // One that was deleted and not yet committed.
            let Ok(content) = fs::read(&from) else { continue };
            if fs::read(&to).is_ok_and(|copy| copy == content) {
                continue;
            }
            let folder = to.parent().map(fs::create_dir_all).transpose();
            folder
                .and_then(|_| fs::write(&to, content))
                .map_err(|error| format!("{}: {error}", to.display()))?;
        }
        let known: HashSet<PathBuf> = known.iter().map(|file| self.tree.join(file)).collect();
        remove_others(&self.tree, &known).map_err(|error| format!("{}: {error}", self.tree.display()))
    }

    /// Plants a fault, runs its tests, and takes it out again.
    pub fn with(&self, mutant: &Mutant) -> Result<Outcome, String> {
        let file = self.tree.join(&mutant.file);
        let text = read(&file)?;
        let write =
            |text: &str| fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()));
        write(&mutant.apply(&text)?)?;
        let outcome = self.generate(mutant).and_then(|()| self.test(&mutant.test));
        write(&text)?;
        self.generate(mutant)?;
        outcome.map_err(|error| format!("{}: {error}", mutant.name))
    }

    /// Compiles the instruction table if the fault is in it.
    fn generate(&self, mutant: &Mutant) -> Result<(), String> {
        if mutant.file.ends_with(".isa") { generate(&self.tree, false) } else { Ok(()) }
    }

    /// `cargo test` with these arguments. It is an error if the tests cannot be built.
    pub fn test(&self, arguments: &str) -> Result<Outcome, String> {
        let (build, run) = arguments.split_once(" -- ").unwrap_or((arguments, ""));
        let mut words = vec!["test", "--no-fail-fast"];
        words.extend(build.split_whitespace());
        let built = self.cargo(&[&words[..], &["--no-run"]].concat(), None)?;
        if !built.is_some_and(|status| status.success()) {
            return Err(format!("does not build:\n{}", read(&self.errors)?));
        }
        words.push("--");
        words.extend(run.split_whitespace());
        let Some(status) = self.cargo(&words, Some(self.limit))? else {
            return Ok(Outcome::Failed(vec![format!("no end within {} s", self.limit.as_secs())]));
        };
        let (text, errors) = (read(&self.output)?, read(&self.errors)?);
        if status.success() {
            let ran = text.lines().any(|line| line.starts_with("test ") && line.ends_with(" ok"));
            return if ran {
                Ok(Outcome::Passed)
            } else {
                Err(format!("no test is run by cargo test {arguments}"))
            };
        }
        let failed = text.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
        let mut names: Vec<String> = failed.map(|name| name.trim().to_string()).collect();
        if names.is_empty() && errors.contains("(signal: ") {
            names.push("the tests were ended by a signal".to_owned());
        }
        match names.is_empty() {
            true => Err(format!("no test failed, but cargo did:\n{errors}")),
            false => Ok(Outcome::Failed(names)),
        }
    }

    /// What cargo came to; `None` if it took too long. Its output goes to files.
    fn cargo(&self, arguments: &[&str], limit: Option<Duration>) -> Result<Option<ExitStatus>, String> {
        let file = |path: &Path| {
            fs::File::create(path).map(Stdio::from).map_err(|error| format!("{}: {error}", path.display()))
        };
        let mut cargo = Command::new("cargo");
        cargo.args(arguments).current_dir(&self.tree).env("CARGO_TARGET_DIR", &self.target);
        cargo.stdin(Stdio::null()).stdout(file(&self.output)?).stderr(file(&self.errors)?);
        // With what it starts, so that all of it can be ended.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut cargo, 0);
        let failure = |error: std::io::Error| format!("cargo: {error}");
        let mut child = cargo.spawn().map_err(failure)?;
        let start = Instant::now();
        loop {
            if let Some(status) = child.try_wait().map_err(failure)? {
                return Ok(Some(status));
            }
            if limit.is_some_and(|limit| start.elapsed() > limit) {
                end(&mut child);
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Ends a process and all that it started.
fn end(child: &mut Child) {
    if cfg!(unix) {
        let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).status();
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// The files of the tree, from its root.
fn tree_files() -> Result<Vec<String>, String> {
    let mut git = Command::new("git");
    git.current_dir(root()).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let output = git.output().map_err(|error| format!("git: {error}"))?;
    if !output.status.success() {
        return Err(format!("git: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let list = String::from_utf8_lossy(&output.stdout);
    Ok(list.split('\0').filter(|file| !file.is_empty()).map(str::to_string).collect())
}

/// Removes the files below a folder that are not among those known.
fn remove_others(folder: &Path, known: &HashSet<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(&path, known)?;
        } else if !known.contains(&path) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}
