//! How tests of a client ended, and the bar that they must clear.

use std::fmt;
use std::time::Instant;

/// How tests ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// How many passed.
    pub passed: usize,
    /// How many were not run, by themselves.
    pub skipped: usize,
    /// Those that failed, with a word on why where there is one.
    pub failed: Vec<String>,
    /// So many of a hundred that were run must pass.
    pub share: usize,
    /// At least so many must pass: tests that are not there fail nothing.
    pub least: usize,
    /// Seconds that the tests took, as they say themselves.
    pub seconds: Option<String>,
}

impl Outcome {
    /// Adds what another run of tests gave.
    pub fn add(&mut self, other: Outcome) {
        self.passed += other.passed;
        self.skipped += other.skipped;
        self.failed.extend(other.failed);
        self.share = self.share.max(other.share);
        self.least += other.least;
    }

    /// Adds how one program ended that began at this time, and says so.
    pub fn note(&mut self, name: &str, began: Instant, ended: Result<(), String>) {
        match ended {
            Ok(()) => {
                println!("passed {name} {:.1} s", began.elapsed().as_secs_f64());
                self.passed += 1;
            }
            Err(why) => {
                println!("failed {name}: {why}");
                self.failed.push(format!("{name}: {why}"));
            }
        }
    }

    /// Compares it with the bar.
    ///
    /// # Errors
    /// When it is not cleared.
    pub fn hold(&self) -> Result<(), String> {
        let run = self.passed + self.failed.len();
        if self.passed < self.least {
            return Err(format!("{} passed, and at least {} must", self.passed, self.least));
        }
        if self.passed * 100 < run * self.share {
            return Err(format!("{} of {run} passed, and {} % must", self.passed, self.share));
        }
        Ok(())
    }

    /// What a script of ours wrote: lines `passed NAME`, `failed NAME: why`, `skipped NAME: why`, and `done` at its end.
    ///
    /// # Errors
    /// When it did not come to its end.
    pub fn of_script(text: &str, least: usize) -> Result<Outcome, String> {
        let mut outcome = Outcome { share: 100, least, ..Outcome::default() };
        for line in text.lines() {
            match line.split_once(' ') {
                Some(("passed", _)) => outcome.passed += 1,
                Some(("skipped", _)) => outcome.skipped += 1,
                Some(("failed", test)) => outcome.failed.push(test.to_owned()),
                _ => {}
            }
        }
        if text.lines().any(|line| line == "done") {
            Ok(outcome)
        } else {
            let last: Vec<&str> = text.lines().rev().take(20).collect();
            Err(format!("the script broke off:\n{}", last.into_iter().rev().collect::<Vec<_>>().join("\n")))
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for test in &self.failed {
            writeln!(f, "failed: {test}")?;
        }
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed.len(), self.skipped)?;
        match &self.seconds {
            Some(seconds) => write!(f, ", {seconds} s"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_breaks_off_is_no_success() {
        let text = "passed add\nfailed mul: 3 elements differ\nskipped fp8: sm_89 has it\n";
        assert!(Outcome::of_script(text, 0).unwrap_err().contains("3 elements differ"));
        let outcome = Outcome::of_script(&format!("{text}done\n"), 0).unwrap();
        assert_eq!(outcome.to_string(), "failed: mul: 3 elements differ\n1 passed, 1 failed, 1 skipped");
        assert!(outcome.hold().is_err());
        assert!(Outcome::of_script("passed add\ndone\n", 1).unwrap().hold().is_ok());
        assert!(Outcome::of_script("done\n", 1).unwrap().hold().is_err());
    }
}
