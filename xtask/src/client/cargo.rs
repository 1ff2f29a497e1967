//! Crates: where cargo has their sources, and what the test harness of Rust writes.

use std::path::PathBuf;
use std::process::Command;

use super::Outcome;

/// Where cargo has the source of a package that the command `cargo`, in its folder, depends on.
///
/// # Errors
/// When cargo does not know it.
pub fn package_source(cargo: &mut Command, name: &str) -> Result<PathBuf, String> {
    let output = cargo.args(["metadata", "--format-version", "1"]).output();
    let output = output.map_err(|error| format!("cargo metadata: {error}"))?;
    let data: serde_json::Value =
        serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    let packages = data["packages"].as_array().ok_or("cargo metadata has no packages")?;
    let package = packages.iter().find(|package| package["name"] == name);
    let manifest = package.and_then(|package| package["manifest_path"].as_str());
    let manifest = PathBuf::from(manifest.ok_or_else(|| format!("cargo metadata has no {name}"))?);
    Ok(manifest.parent().ok_or_else(|| format!("{name} has no folder"))?.to_owned())
}

/// Reads what the test harness of Rust wrote, of one program or several. At least so many must pass.
///
/// # Errors
/// When no program came to its end.
pub fn tests(text: &str, least: usize) -> Result<Outcome, String> {
    let mut outcome = Outcome { share: 100, least, ..Outcome::default() };
    let mut seconds = 0.0;
    let ends: Vec<&str> = text.lines().filter(|line| line.starts_with("test result:")).collect();
    if ends.is_empty() {
        return Err(format!("the tests did not come to their end:\n{text}"));
    }
    for line in ends {
        let number = |what: &str| -> usize {
            let words: Vec<&str> = line.split([' ', ';']).filter(|word| !word.is_empty()).collect();
            let place = words.iter().position(|word| *word == what).unwrap_or(0);
            words.get(place.wrapping_sub(1)).and_then(|number| number.parse().ok()).unwrap_or(0)
        };
        outcome.passed += number("passed");
        outcome.skipped += number("ignored") + number("filtered");
        let took = line.rsplit_once("finished in ").map(|(_, seconds)| seconds.trim_end_matches('s'));
        seconds += took.and_then(|seconds| seconds.parse::<f64>().ok()).unwrap_or(0.0);
    }
    let failed = text.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    outcome.failed = failed.map(str::to_owned).collect();
    // A program that was killed says nothing of its tests.
    let killed = text
        .lines()
        .filter(|line| line.contains("process didn't exit successfully") && line.contains("signal"));
    outcome.failed.extend(killed.map(|line| line.trim().to_owned()));
    outcome.seconds = Some(format!("{seconds:.2}"));
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_the_harness_writes_is_read() {
        let text = "test driver::a ... ok\ntest driver::b ... FAILED\n\
                    test result: FAILED. 51 passed; 1 failed; 2 ignored; 0 measured; 1 filtered out; finished in 31.25s\n\
                    test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.50s\n\
                    process didn't exit successfully: `tests` (signal: 11, SIGSEGV: invalid memory reference)\n";
        let outcome = super::tests(text, 50).unwrap();
        assert_eq!((outcome.passed, outcome.skipped, outcome.failed.len()), (53, 3, 2));
        assert_eq!(outcome.failed[0], "driver::b");
        assert_eq!(outcome.seconds.as_deref(), Some("31.75"));
        assert!(super::tests("error: could not compile", 0).is_err());
    }
}
