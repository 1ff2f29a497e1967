//! Clients whose own tests pytest runs.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::{Outcome, Site, succeed};

/// Modules of tests, each of which runs in a process of its own: one that crashes takes no other with it.
#[derive(Default)]
pub struct Suite<'a> {
    /// The Python that has the client.
    pub python: PathBuf,
    /// The `ptxvm` to run it with, where it is not the one of the site.
    pub ptxvm: Option<PathBuf>,
    /// Where the modules are.
    pub folder: PathBuf,
    pub modules: Vec<String>,
    /// What pytest is to choose tests by (`-k`); all of them if this is empty.
    pub chosen: &'a str,
    /// Parts of names of tests that cannot pass, and why.
    pub left_out: &'a [(&'a str, &'a str)],
    pub variables: Vec<(&'a str, String)>,
    /// How many seconds a module may take.
    pub limit: usize,
    /// At least so many pass, and so many of a hundred.
    pub least: usize,
    pub share: usize,
}

/// So many modules run at a time.
const AT_A_TIME: usize = 2;
/// Under tools a module may take so many times as long.
const WATCHED_LONGER: usize = 4;

impl Suite<'_> {
    /// Runs all modules; with words for the client, those that they name.
    ///
    /// # Errors
    /// When pytest cannot be started, and when the words name no module.
    pub fn run(&self, site: &Site) -> Result<Outcome, String> {
        let wanted =
            |module: &&String| site.words.is_empty() || site.words.iter().any(|word| module.contains(word));
        let modules: Vec<&String> = self.modules.iter().filter(wanted).collect();
        if modules.is_empty() {
            return Err(format!("no module has a name with one of {:?}", site.words));
        }
        let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        thread::scope(|scope| {
            for _ in 0..AT_A_TIME {
                scope.spawn(|| {
                    while let Some(module) = modules.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let outcome = self.module(site, module);
                        outcomes.lock().expect("no panic").push(outcome);
                    }
                });
            }
        });
        let mut all = Outcome { share: self.share, least: self.least, ..Outcome::default() };
        for outcome in outcomes.into_inner().expect("no panic") {
            all.add(outcome?);
        }
        Ok(all)
    }

    fn module(&self, site: &Site, module: &str) -> Result<Outcome, String> {
        let name = module.trim_end_matches(".py").replace('/', ".");
        let report = site.scratch.join(format!("{name}.json"));
        let mut command = Command::new("timeout");
        let limit = self.limit * if site.tool.is_some() { WATCHED_LONGER } else { 1 };
        command.args(["--kill-after=10", &limit.to_string()]);
        command.arg(self.ptxvm.as_ref().unwrap_or(&site.ptxvm)).args(["exec", "--device", &site.device]);
        command.arg("--report").arg(&report);
        if let Some(tool) = &site.tool {
            command.args(["--tool", tool]);
        }
        command.arg("--").arg(&self.python).args(["-m", "pytest", "-p", "no:cacheprovider", "-q", "-rfE"]);
        command.args(["--color=no", "--tb=short", "-k", &self.choice(), module]).current_dir(&self.folder);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        let text = site.output(&mut command, &name)?;
        let outcome = of_pytest(&text).unwrap_or_else(|| Outcome {
            failed: vec![format!("{module} (it did not come to its end)")],
            ..Outcome::default()
        });
        println!("{module}: {outcome}{}", if site.tool.is_some() { found(&report) } else { String::new() });
        Ok(outcome)
    }

    /// What pytest is told to choose.
    fn choice(&self) -> String {
        let not = self.left_out.iter().map(|(name, _)| format!("not {name}"));
        let chosen = Some(self.chosen).filter(|chosen| !chosen.is_empty());
        chosen.map(|chosen| format!("({chosen})")).into_iter().chain(not).collect::<Vec<_>>().join(" and ")
    }
}

/// What tools have found, by the report of `ptxvm exec`.
fn found(report: &Path) -> String {
    let text = fs::read_to_string(report).unwrap_or_default();
    let Ok(value) = serde_json::from_str::<serde_json::Value>(&text) else {
        return "; it wrote no report, so that nobody knows what was found".to_owned();
    };
    let mut found = String::new();
    for list in ["faults", "findings"] {
        let all = value[list].as_array().map_or(&[][..], Vec::as_slice);
        let _ = write!(found, "; {} {list}", all.len());
        for one in all {
            let (code, message) = (one["code"].as_str(), one["message"].as_str());
            let _ = write!(found, "\n    {}: {}", code.unwrap_or("?"), message.unwrap_or_default());
        }
    }
    found
}

/// Reads what pytest wrote; `None` where it did not come to its end.
fn of_pytest(text: &str) -> Option<Outcome> {
    let line = |line: &str| {
        let line = line.trim_matches(['=', ' ']);
        let (counts, seconds) = line.rsplit_once(" in ")?;
        let seconds = seconds.split_once('s')?.0;
        seconds.parse::<f64>().ok().map(|_| (counts.to_owned(), seconds.to_owned()))
    };
    let (counts, seconds) = text.lines().rev().find_map(line)?;
    let count = |what: &str| -> usize {
        let mut parts = counts.split(", ").filter_map(|part| part.split_once(' '));
        parts.find(|(_, of)| *of == what).and_then(|(count, _)| count.parse().ok()).unwrap_or(0)
    };
    let failed = text.lines().filter_map(|line| line.strip_prefix("FAILED ").or(line.strip_prefix("ERROR ")));
    Some(Outcome {
        passed: count("passed") + count("xpassed"),
        skipped: count("skipped") + count("xfailed"),
        failed: failed.map(|line| line.split(" - ").next().unwrap_or(line).to_owned()).collect(),
        seconds: Some(seconds),
        ..Outcome::default()
    })
}

impl Site {
    /// The source of a release, from the archive that GitHub makes of it, in the folder `source`.
    pub fn source(&self, repository: &str, tag: &str) -> Result<PathBuf, String> {
        let source = self.scratch.join("source");
        if source.exists() {
            return Ok(source);
        }
        let archive = self.scratch.join("source.tar.gz");
        let address = format!("https://github.com/{repository}/archive/refs/tags/{tag}.tar.gz");
        succeed(
            Command::new("curl")
                .args(["--fail", "--silent", "--show-error", "--location", "-o"])
                .arg(&archive)
                .arg(address),
        )?;
        let part = self.scratch.join("source.part");
        let _ = fs::remove_dir_all(&part);
        fs::create_dir(&part).map_err(|error| format!("{}: {error}", part.display()))?;
        succeed(
            Command::new("tar").arg("xzf").arg(&archive).args(["--strip-components=1", "-C"]).arg(&part),
        )?;
        fs::rename(&part, &source).map_err(|error| format!("{}: {error}", source.display()))?;
        Ok(source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pytest_writes_is_read() {
        let text = "...F.s\nFAILED a_test.py::T::b - ValueError: 1 in 2\nERROR a_test.py::c\n\
                    1 failed, 4 passed, 1 skipped, 2 xfailed, 1 error in 12.50s (0:00:12)\nptxvm: 1 kernel\n";
        let outcome = of_pytest(text).unwrap();
        assert_eq!((outcome.passed, outcome.skipped), (4, 3));
        assert_eq!(outcome.failed, ["a_test.py::T::b", "a_test.py::c"]);
        assert_eq!(outcome.seconds.as_deref(), Some("12.50"));
        let text = "==== 3 passed in 0.52s ====";
        assert_eq!(of_pytest(text).unwrap().passed, 3);
        assert!(of_pytest("Segmentation fault in 3 steps").is_none());
    }

    #[test]
    fn tests_are_left_out_by_name() {
        let left_out = [("cudnn", "it has no kernels"), ("b", "")];
        let suite = Suite { chosen: "x or y", left_out: &left_out, ..Suite::default() };
        assert_eq!(suite.choice(), "(x or y) and not cudnn and not b");
        assert_eq!(Suite::default().choice(), "");
    }
}
