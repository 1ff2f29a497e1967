//! The pairs of `tests/tools/cuda`: CUDA that nvcc made the recorded PTX of (`cargo xtask record tools`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use libtest_mimic::{Failed, Trial};
use serde::Deserialize;

use crate::{WAYS, common, header, object};

/// A line of the record.
#[derive(Deserialize)]
struct Pair {
    name: String,
    source: String,
    bug: String,
    clean: String,
}

/// All launches with the bug, and all without; those that `open.txt` lists must fail.
pub fn trials(tools: &Path) -> Vec<Trial> {
    let folder = tools.join("cuda");
    let record = std::fs::read(tools.join("cuda.jsonl.zst")).expect("a record");
    let record = String::from_utf8(zstd::decode_all(&*record).expect("compressed")).expect("UTF-8");
    let pairs: Vec<Pair> =
        record.lines().skip(1).map(|line| serde_json::from_str(line).expect("a pair")).collect();
    let open = std::fs::read_to_string(folder.join("open.txt")).expect("a list");
    let listed = open.lines().filter(|line| !line.starts_with('#'));
    let open: BTreeSet<&str> = listed.filter_map(|line| line.split_whitespace().next()).collect();
    let names: BTreeSet<String> = pairs.iter().map(|pair| pair.name.clone()).collect();
    let mut trials = vec![Trial::test("cuda::record", {
        let stale = stale(&folder, &pairs);
        let sides = names.iter().flat_map(|name| [format!("{name}::bug"), format!("{name}::clean")]);
        let sides: BTreeSet<String> = sides.collect();
        let unknown: Vec<_> =
            open.iter().filter(|name| !sides.contains(**name)).map(|name| (*name).to_owned()).collect();
        move || match stale.is_empty() && unknown.is_empty() {
            true => Ok(()),
            false => Err(Failed::from(format!(
                "`cargo xtask record tools` is due for {stale:?}; open.txt has unknown names: {unknown:?}"
            ))),
        }
    })];
    for pair in pairs {
        for (side, text) in [("bug", pair.bug), ("clean", pair.clean)] {
            let (name, source) = (pair.name.clone(), pair.source.clone());
            let is_open = open.contains(format!("{name}::{side}").as_str());
            let judge = move || match (judge(&name, &source, side, &text), is_open) {
                (Ok(()), true) => Err(Failed::from("it passes now: take it out of open.txt")),
                (Ok(()), false) | (Err(_), true) => Ok(()),
                (Err(message), false) => Err(Failed::from(message)),
            };
            trials.push(Trial::test(format!("cuda/{}::{side}", pair.name), judge));
        }
    }
    trials
}

/// The pairs that the record has of another source, or only one of the two has.
fn stale(folder: &Path, pairs: &[Pair]) -> Vec<String> {
    let mut recorded: BTreeMap<String, &str> =
        pairs.iter().map(|pair| (pair.name.clone(), pair.source.as_str())).collect();
    let mut stale = Vec::new();
    for tool in crate::files(folder).into_iter().filter(|path| path.is_dir()) {
        for path in crate::files(&tool) {
            let name = path.strip_prefix(folder).unwrap_or(&path).with_extension("").display().to_string();
            let source = std::fs::read_to_string(&path).unwrap_or_default();
            if recorded.remove(&name) != Some(source.as_str()) {
                stale.push(name);
            }
        }
    }
    stale.extend(recorded.into_keys());
    stale
}

/// Launches one side in every way: the bug has the codes and lines that the source marks, of the twin nothing is said.
fn judge(name: &str, source: &str, side: &str, ptx: &str) -> Result<(), String> {
    let (tool, stem) = name.split_once('/').ok_or("a name without a tool")?;
    let tools = match (side, tool) {
        ("clean", _) => "all",
        (_, "init") => "initcheck",
        (_, "leak") => "leakcheck",
        (_, "memory") => "memcheck",
        _ => "racecheck,synccheck",
    };
    let mut found = vec![BTreeSet::new()];
    let (mut sites, mut stops) = (BTreeSet::new(), BTreeSet::new());
    if side == "bug" {
        let words = header(source, "FIND")?;
        found = words.split(|word| *word == "|").map(|codes| codes.iter().copied().collect()).collect();
        sites = marked(source, "SITE");
        stops = sites.union(&marked(source, "STOP")).copied().collect();
    }
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = format!("{stem}.ptx");
    std::fs::write(directory.path().join(&file), ptx).map_err(|error| error.to_string())?;
    let lines = Lines::of(ptx, &format!("{stem}.cu"));
    // Not every order shows the bug, but one of the shuffled ones must.
    let depends_on_order = side == "bug" && header(source, "ORDER").is_ok();
    let mut shuffled_shows = false;
    let (mut first, none) = (None, BTreeSet::new());
    for (way, options) in WAYS {
        let mut command = common::ptxvm();
        command.current_dir(directory.path()).arg("run").arg(&file).args(header(source, "RUN")?);
        command.args(options).args(["--tool", tools, "--max-steps", "1e7", "--format", "json"]);
        let outcome = common::finish(&mut command)?;
        let said = object(&outcome)?;
        let told = |what: &str| format!("{way}: {what}\n{}", outcome.transcript());
        let list = |key: &str| said[key].as_array().map_or(&[][..], Vec::as_slice);
        let findings = list("findings");
        let faults: Vec<_> =
            list("diagnostics").iter().filter(|fault| fault["severity"] == "error").collect();
        let all = || findings.iter().chain(faults.iter().copied());
        let seen: BTreeSet<_> = all().map(|said| said["code"].as_str().unwrap_or_default()).collect();
        let is_shuffled = way.starts_with("schedule");
        if depends_on_order && is_shuffled && seen.is_empty() {
            continue;
        }
        shuffled_shows |= is_shuffled;
        if !found.contains(&seen) {
            return Err(told(&format!("{seen:?} instead of {found:?}")));
        }
        let places = findings.iter().flat_map(|found| [&found["first"], &found["second"]]);
        let places = places.chain(faults.iter().copied()).filter_map(|place| place["line"].as_u64());
        let places: Vec<_> = places.map(|line| lines.original(line)).collect();
        let reached: BTreeSet<u64> = places.iter().flatten().copied().collect();
        let (allowed, needed) = if seen == found[0] { (&sites, &sites) } else { (&stops, &none) };
        if places.iter().any(|place| place.is_disjoint(allowed)) || !needed.is_subset(&reached) {
            return Err(told(&format!("lines {places:?} instead of {allowed:?}")));
        }
        let is_error = all().any(|said| said["severity"] == "error");
        if outcome.code != Some(if is_error { 3 } else { 0 }) {
            return Err(told("another exit code"));
        }
        if way.starts_with("threads") && *first.get_or_insert_with(|| findings.to_vec()) != findings {
            return Err(told("other findings than with one host thread"));
        }
    }
    match depends_on_order && !shuffled_shows {
        true => Err("no shuffled order shows it".to_owned()),
        false => Ok(()),
    }
}

/// The numbers of the lines that have a mark and are in the kernel with the bug.
fn marked(source: &str, mark: &str) -> BTreeSet<u64> {
    let has = |line: &str, mark| {
        line.rsplit_once(" // ").is_some_and(|(_, words)| words.split_whitespace().any(|word| word == mark))
    };
    let lines = source.lines().zip(1u64..).filter(|(line, _)| has(line, mark) && !has(line, "FIX"));
    lines.map(|(_, number)| number).collect()
}

/// A file, a line and a column of `.loc`.
type Place = (u64, u64, u64);

/// Which lines of the source the lines of PTX come from.
struct Lines {
    /// The number that `.file` gives to the source.
    own: Option<u64>,
    /// The place of each line, and where it was inlined.
    places: Vec<Option<(Place, Option<Place>)>>,
    /// Where places were inlined: several, if the same code was inlined several times.
    inlined: BTreeMap<Place, BTreeSet<Place>>,
}

impl Lines {
    fn of(ptx: &str, source: &str) -> Lines {
        let mut lines = Lines { own: None, places: Vec::new(), inlined: BTreeMap::new() };
        let mut current = None;
        for line in ptx.lines() {
            let words: Vec<_> = line.split([' ', '\t', ',']).filter(|word| !word.is_empty()).collect();
            let place = |words: &[&str]| match words {
                [file, line, column, ..] => {
                    Some((file.parse().ok()?, line.parse().ok()?, column.parse().ok()?))
                }
                _ => None,
            };
            match words.as_slice() {
                [".file", number, name] if name.trim_matches('"') == source => {
                    lines.own = number.parse().ok()
                }
                [".loc", _, "0", ..] => {}
                [".loc", rest @ ..] => {
                    let outer = rest.iter().position(|word| *word == "inlined_at");
                    let outer = outer.and_then(|at| place(&rest[at + 1..]));
                    current = place(rest).map(|place| (place, outer));
                    if let Some((inner, Some(outer))) = current {
                        lines.inlined.entry(inner).or_default().insert(outer);
                    }
                }
                _ => {}
            }
            lines.places.push(current);
        }
        lines
    }

    /// The lines of the source that a line of PTX may come from. What was inlined says where its innermost function was
    /// called; farther out the same place may have been called from several.
    fn original(&self, line: u64) -> BTreeSet<u64> {
        let (mut found, mut seen) = (BTreeSet::new(), BTreeSet::new());
        let place = usize::try_from(line).ok().and_then(|line| *self.places.get(line.checked_sub(1)?)?);
        let Some((inner, outer)) = place else { return found };
        let mut waiting = vec![if self.own == Some(inner.0) { inner } else { outer.unwrap_or(inner) }];
        while let Some(place) = waiting.pop() {
            if self.own == Some(place.0) {
                found.insert(place.1);
            } else if seen.insert(place) {
                waiting.extend(self.inlined.get(&place).into_iter().flatten());
            }
        }
        found
    }
}
