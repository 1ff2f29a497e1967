//! Filters that compute-sanitizer has, too: which launches the tools check, and which findings are not reported.

use std::sync::atomic::{AtomicU64, Ordering};

use regex::Regex;
use tools::FindingKind;

use crate::finding::{Located, PlaceInSource};
use crate::name::demangle;

/// How a pattern matches the name of a kernel.
#[derive(Clone, Debug)]
enum Pattern {
    Name(String),
    Part(String),
    Regex(Regex),
}

impl Pattern {
    fn matches(&self, name: &str) -> bool {
        match self {
            Pattern::Name(whole) => whole == name,
            Pattern::Part(part) => name.contains(part),
            Pattern::Regex(regex) => regex.is_match(name),
        }
    }
}

/// Patterns of kernel names, in compute-sanitizer's syntax: `kernel_name=` or `kne=` for a whole name,
/// `kernel_substring=` or `kns=` for a part of one, separated by commas; or `regex=`, which extends to the end. A
/// pattern matches the mangled name (as in PTX) or the demangled one.
#[derive(Clone, Debug, Default)]
pub struct KernelPatterns(Vec<Pattern>);

impl std::str::FromStr for KernelPatterns {
    type Err = String;

    fn from_str(text: &str) -> Result<KernelPatterns, String> {
        let regex = |text: &str| Regex::new(text).map(Pattern::Regex).map_err(|error| error.to_string());
        if let Some(text) = text.strip_prefix("regex=") {
            return Ok(KernelPatterns(vec![regex(text)?]));
        }
        let pattern = |part: &str| match part.split_once('=') {
            Some(("kernel_name" | "kne", name)) if !name.is_empty() => Ok(Pattern::Name(name.to_owned())),
            Some(("kernel_substring" | "kns", part)) if !part.is_empty() => {
                Ok(Pattern::Part(part.to_owned()))
            }
            _ => Err(format!(
                "`{part}` is none of kernel_name=NAME (kne=), kernel_substring=PART (kns=), regex=REGEX"
            )),
        };
        text.split(',').map(pattern).collect::<Result<_, _>>().map(KernelPatterns)
    }
}

impl KernelPatterns {
    fn matches(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| pattern.matches(name) || pattern.matches(&demangle(name)))
    }
}

/// Which launches are checked.
#[derive(Debug, Default)]
pub struct LaunchFilter {
    /// Check only kernels that match one of these; all kernels if the list is empty.
    pub only: Vec<KernelPatterns>,
    /// Do not check kernels that match one of these.
    pub exclude: Vec<KernelPatterns>,
    /// Skip this number of launches that the patterns admit.
    pub skip: u64,
    /// Check at most this number of launches after those; 0 means all.
    pub count: u64,
    seen: AtomicU64,
}

impl LaunchFilter {
    /// Reads the filter from the environment: `PTXVM_KERNEL_NAME` and `PTXVM_KERNEL_NAME_EXCLUDE` (each line is a
    /// list of patterns), `PTXVM_LAUNCH_SKIP` and `PTXVM_LAUNCH_COUNT`.
    ///
    /// # Errors
    /// When one of them is malformed.
    pub fn from_environment() -> Result<LaunchFilter, String> {
        let value = |name: &str| std::env::var(name).ok();
        let failed = |name: &str, error: String| format!("{name}: {error}");
        let patterns = |name: &str| {
            let text = value(name).unwrap_or_default();
            let lines = text.lines().map(|line| line.parse().map_err(|error| failed(name, error)));
            lines.collect::<Result<Vec<KernelPatterns>, String>>()
        };
        let number = |name: &str| {
            let text = value(name).unwrap_or_else(|| "0".to_owned());
            text.parse::<u64>().map_err(|_| failed(name, format!("`{text}` is no number of launches")))
        };
        Ok(LaunchFilter {
            only: patterns("PTXVM_KERNEL_NAME")?,
            exclude: patterns("PTXVM_KERNEL_NAME_EXCLUDE")?,
            skip: number("PTXVM_LAUNCH_SKIP")?,
            count: number("PTXVM_LAUNCH_COUNT")?,
            seen: AtomicU64::new(0),
        })
    }

    /// Whether the tools check the next launch of this kernel. Each call counts as a launch.
    pub fn admits(&self, kernel: &str) -> bool {
        let of_name = (self.only.is_empty() || self.only.iter().any(|patterns| patterns.matches(kernel)))
            && !self.exclude.iter().any(|patterns| patterns.matches(kernel));
        of_name && {
            let number = self.seen.fetch_add(1, Ordering::Relaxed);
            number >= self.skip && (self.count == 0 || number - self.skip < self.count)
        }
    }
}

/// Known findings, which are not reported. Each line of the text matches some findings: first a code
/// (`race-same-value`), a tool, or `*`; then conditions: `kernel=REGEX`, `file=REGEX` for the PTX file or the
/// original one, `line=NUMBER` in that file. `#` starts a comment.
#[derive(Clone, Debug, Default)]
pub struct Suppressions(Vec<Suppression>);

#[derive(Clone, Debug)]
struct Suppression {
    what: String,
    kernel: Option<Regex>,
    file: Option<Regex>,
    line: Option<u64>,
}

impl std::str::FromStr for Suppressions {
    type Err = String;

    fn from_str(text: &str) -> Result<Suppressions, String> {
        let mut all = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
            let Some(what) = words.next() else { continue };
            let failed = |why: String| format!("line {number}: {why}");
            let is_known = what == "*"
                || FindingKind::ALL.iter().any(|kind| [kind.code(), kind.tool().name()].contains(&what));
            if !is_known {
                return Err(failed(format!("there is no finding or tool `{what}`")));
            }
            let mut one = Suppression { what: what.to_owned(), kernel: None, file: None, line: None };
            for word in words {
                let regex = |text: &str| Regex::new(text).map_err(|error| failed(error.to_string()));
                match word.split_once('=') {
                    Some(("kernel", text)) => one.kernel = Some(regex(text)?),
                    Some(("file", text)) => one.file = Some(regex(text)?),
                    Some(("line", text)) => {
                        let line = text.parse().map_err(|_| failed(format!("`{text}` is no line")))?;
                        one.line = Some(line);
                    }
                    _ => {
                        return Err(failed(format!(
                            "`{word}` is none of kernel=REGEX, file=REGEX, line=NUMBER"
                        )));
                    }
                }
            }
            all.push(one);
        }
        Ok(Suppressions(all))
    }
}

impl Suppressions {
    /// Reads suppressions from a file.
    ///
    /// # Errors
    /// When the file cannot be read, or has a malformed line.
    pub fn read(path: &std::path::Path) -> Result<Suppressions, String> {
        let failed = |error: String| format!("{}: {error}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        text.parse().map_err(failed)
    }

    /// Whether one of them matches the finding.
    pub fn has(&self, found: &Located) -> bool {
        let places = std::iter::once(&found.first).chain(&found.second);
        let places: Vec<(String, u64)> = places.flat_map(names_of).collect();
        self.matches(found.finding.kind, Some(&found.finding.kernel), &places)
    }

    /// Whether one of them matches a finding that belongs to no kernel.
    pub fn has_kind(&self, kind: FindingKind) -> bool {
        self.matches(kind, None, &[])
    }

    fn matches(&self, kind: FindingKind, kernel: Option<&str>, places: &[(String, u64)]) -> bool {
        self.0.iter().any(|one| {
            let is_kernel = |regex: &Regex| {
                kernel.is_some_and(|kernel| regex.is_match(kernel) || regex.is_match(&demangle(kernel)))
            };
            let is_place = |(file, line): &(String, u64)| {
                one.file.as_ref().is_none_or(|regex| regex.is_match(file))
                    && one.line.is_none_or(|wanted| wanted == *line)
            };
            ["*", kind.code(), kind.tool().name()].contains(&one.what.as_str())
                && one.kernel.as_ref().is_none_or(is_kernel)
                && (one.file.is_none() && one.line.is_none() || places.iter().any(is_place))
        })
    }
}

/// The file and line of a place in the PTX, and those of its original place.
fn names_of(place: &PlaceInSource) -> Vec<(String, u64)> {
    let own = (place.source.name().to_owned(), u64::from(place.position().line));
    let originals = place.original.iter().flat_map(|original| original.chain());
    std::iter::once(own).chain(originals.map(|original| (original.file.clone(), original.line))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(only: &[&str], exclude: &[&str]) -> LaunchFilter {
        let read = |all: &[&str]| all.iter().map(|text| text.parse().unwrap()).collect();
        LaunchFilter { only: read(only), exclude: read(exclude), ..LaunchFilter::default() }
    }

    /// The examples of compute-sanitizer's manual ("Specifying Filters").
    #[test]
    fn kernels_are_chosen_by_name() {
        let kernels = ["_Z5alphaPi", "_Z4betaPi", "_Z5gammaPi", "_Z5deltaPi", "_Z7epsilonPi"];
        let chosen = |filter: LaunchFilter| {
            kernels.into_iter().filter(|kernel| filter.admits(kernel)).collect::<Vec<_>>()
        };
        assert_eq!(chosen(filter(&["kne=_Z7epsilonPi"], &[])), ["_Z7epsilonPi"]);
        assert_eq!(chosen(filter(&["kernel_name=_Z5alphaPi,kns=beta"], &[])), ["_Z5alphaPi", "_Z4betaPi"]);
        assert_eq!(chosen(filter(&["kns=eta"], &["kernel_substring=_Z4"])), Vec::<&str>::new());
        assert_eq!(chosen(filter(&["regex=[a-z]{7}"], &[])), ["_Z7epsilonPi"]);
        assert_eq!(
            chosen(filter(&[], &["kns=delta,kne=_Z5gammaPi"])),
            ["_Z5alphaPi", "_Z4betaPi", "_Z7epsilonPi"]
        );
        assert_eq!(chosen(filter(&["kne=alpha"], &[])), ["_Z5alphaPi"]);
        for wrong in ["", "epsilon", "kns=", "kne=a,b", "regex=("] {
            assert!(wrong.parse::<KernelPatterns>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn launches_count_if_their_names_match() {
        let filter = LaunchFilter { skip: 1, count: 2, ..filter(&["kns=a"], &[]) };
        let launches = ["a", "b", "a", "b", "ab", "a"];
        assert_eq!(launches.map(|kernel| filter.admits(kernel)), [false, false, true, false, true, false]);
    }

    #[test]
    fn suppressions_are_read_and_compared() {
        let all: Suppressions =
            "# known\nrace-same-value kernel=^sum # both write 1\n\n* file=cub/ line=7".parse().unwrap();
        let has = |kind, kernel: &str, file: &str, line| {
            all.matches(kind, Some(kernel), &[(file.to_owned(), line)])
        };
        assert!(has(FindingKind::RaceSameValue, "sum_of", "a.cu", 1));
        assert!(!has(FindingKind::RaceSameValue, "the_sum", "a.cu", 1));
        assert!(!has(FindingKind::RaceAtomic, "sum_of", "a.cu", 1));
        assert!(has(FindingKind::RaceAtomic, "f", "/usr/include/cub/block.cuh", 7));
        assert!(!has(FindingKind::RaceAtomic, "f", "/usr/include/cub/block.cuh", 8));
        assert!(!all.has_kind(FindingKind::DriverLeak));
        let tool: Suppressions = "leakcheck".parse().unwrap();
        assert!(tool.has_kind(FindingKind::DriverLeak) && !tool.has_kind(FindingKind::UninitializedMemcpy));
        for wrong in ["race", "* line=x", "* kernel=(", "* where=1"] {
            assert!(wrong.parse::<Suppressions>().is_err(), "{wrong}");
        }
    }
}
