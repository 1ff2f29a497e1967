//! `cargo xtask record isa`: the table against a ptxas, form by form, in both directions. It writes no record: its finding nothing is the result.
//!
//! Asked are spellings of every row that between them have every choice of its slots, one of them at every version from 9.0 on and every
//! target, the others where they are at home and at the richest targets; and there one spelling of every row with every word of the table
//! added, a modifier as well as a type, or with one left out. An older assembler is asked up to the version that it knows. A line that only one side
//! takes is a form that the table lacks, or has too many. What the table lacks altogether no word of it tells: `--words` names a file of
//! other words, of a manual or of a header: ptxas is asked of each whether it knows it as a modifier or as an instruction.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use fastrand::Rng;
use isa::enumerate::{Spelling, instruction};
use isa::{Form, Mod, Opcode, Suffix, Target, Type, Version};
use serde_json::Value;

use super::super::Result;
use super::super::lines::{Frame, ask};
use super::super::oracle::Oracle;
use super::table::seeds::{home, rows, some_spellings};
use super::table::{AFTER, Point, before, exists, targets};

/// So many spellings of a row are looked through for its choices.
const SPELLINGS: usize = 400;
/// So many lines are put to both sides at once.
const LINES: usize = 1000;
/// So many assemblers run at a time.
const WORKERS: usize = 2;
/// So many lines of a difference are shown.
const SHOWN: usize = 2;
/// The first version at which gates are asked about.
const FIRST: Version = Version::new(9, 0);
/// Where words are asked about besides, at the newest version: the targets that have most.
const RICHEST: [Target; 3] = [
    Target { number: 107, suffix: Suffix::Architecture },
    Target { number: 100, suffix: Suffix::Architecture },
    Target { number: 90, suffix: Suffix::Architecture },
];

/// What an assembler can be asked about.
struct Reach {
    newest: Version,
    targets: Vec<Target>,
}

impl Reach {
    fn of(ptxas: &Oracle) -> Result<Reach> {
        let takes = |at: Point| -> Result<bool> {
            Ok(ptxas.compile(format!("{}{AFTER}", before(at)).as_bytes())?.accepted)
        };
        let mut newest = None;
        for version in Version::all() {
            if takes((version, Target::sm(75)))? {
                newest = newest.max(Some(version));
            }
        }
        let newest = newest.ok_or("this assembler takes no version that the table knows")?;
        let mut known = Vec::new();
        for target in targets().filter(|target| target.number >= 75) {
            if takes((newest, target))? {
                known.push(target);
            }
        }
        Ok(Reach { newest, targets: known })
    }

    /// The versions at which gates are asked about: from 9.0 on, or the newest one.
    fn versions(&self) -> impl Iterator<Item = Version> {
        let newest = self.newest;
        let first = FIRST.min(newest);
        Version::all().filter(move |&version| first <= version && version <= newest)
    }

    fn has(&self, (version, target): Point) -> bool {
        version <= self.newest && self.targets.contains(&target)
    }
}

/// A line, where it is asked about, and what it is to tell.
struct Question {
    at: Point,
    text: String,
    row: &'static Form,
    what: String,
}

/// What stands against a row, and with what.
type Difference = (&'static str, String, bool);

/// Lines that are put to both sides at once.
type Chunk<'q> = (Point, &'q [Question]);

/// Asks `ptxas` and the checker `ours`, and tells where they differ.
pub fn compare(ptxas: &Oracle, ours: &Path, words: Option<&Path>) -> Result<()> {
    let mut differences: BTreeMap<Difference, Vec<(Point, String)>> = BTreeMap::new();
    let mut asked = 0;
    let reach = Reach::of(ptxas)?;
    println!("up to PTX {} on {} targets", reach.newest, reach.targets.len());
    for (name, mut questions) in [("choices", choices(&reach)), ("words", with_words(&reach))] {
        questions.sort_by_key(|question| question.at);
        let of_points = questions.chunk_by(|one, other| one.at == other.at);
        let chunks: Vec<Chunk> =
            of_points.flat_map(|all| all.chunks(LINES)).map(|chunk| (chunk[0].at, chunk)).collect();
        let found = each_chunk(ptxas, ours, &chunks)?;
        println!("{name}: {} lines, {} with other verdicts", questions.len(), found.len());
        asked += questions.len();
        for (question, theirs) in found {
            let key = (question.row.syntax, question.what.clone(), theirs);
            differences.entry(key).or_default().push((question.at, question.text.clone()));
        }
    }
    // What the front end takes and code generation does not is no form.
    let mut all = Vec::new();
    for (key, lines) in differences {
        let is_code = |(at, text): &(Point, String)| -> Result<bool> {
            Ok(ptxas.compile(format!("{}{text}\n{AFTER}", before(*at)).as_bytes())?.accepted)
        };
        if !key.2 || is_code(&lines[0])? {
            all.push((key, lines));
        }
    }
    for ((row, what, theirs), lines) in &all {
        println!("{} {what}: {} lines: {row}", if *theirs { "lacks" } else { "has" }, lines.len());
        for ((version, target), text) in lines.iter().take(SHOWN) {
            println!("    {version} {target}: {text}");
        }
    }
    if let Some(words) = words {
        unknown_words(ptxas, &reach, &fs::read_to_string(words)?)?;
    }
    let rows: BTreeSet<&str> = all.iter().map(|((row, ..), _)| *row).collect();
    println!("{asked} lines of {} rows; {} rows differ", self::rows().count(), rows.len());
    Ok(())
}

/// The questions of all chunks whose verdicts differ, each with that of ptxas.
fn each_chunk<'q>(ptxas: &Oracle, ours: &Path, chunks: &[Chunk<'q>]) -> Result<Vec<(&'q Question, bool)>> {
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || -> std::result::Result<(), String> {
        let ptxas = Oracle::at(ptxas.ptxas(), ptxas.release()).map_err(|error| error.to_string())?;
        while let Some(&chunk) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
            let different = different(&ptxas, ours, chunk).map_err(|error| error.to_string())?;
            found.lock().unwrap_or_else(PoisonError::into_inner).extend(different);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().unwrap_or_else(|_| Err("a worker panicked".into())))
    })?;
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by(|(one, _), (other, _)| (one.at, &one.text).cmp(&(other.at, &other.text)));
    Ok(found)
}

fn different<'q>(
    ptxas: &Oracle,
    ours: &Path,
    (at, questions): Chunk<'q>,
) -> Result<Vec<(&'q Question, bool)>> {
    let frame = Frame { before: before(at), after: AFTER.to_owned() };
    let texts: Vec<&str> = questions.iter().map(|question| &*question.text).collect();
    let theirs = match ask(ptxas, &frame, &texts) {
        Ok(answers) => answers.lines,
        // One of the lines ends the run without being named: it is none that is taken.
        Err(_) if questions.len() == 1 => vec![vec![String::new()]],
        Err(_) => {
            let (first, second) = questions.split_at(questions.len() / 2);
            let mut all = different(ptxas, ours, (at, first))?;
            all.extend(different(ptxas, ours, (at, second))?);
            return Ok(all);
        }
    };
    let refused = refused(ours, &frame, &texts)?;
    let verdicts = questions.iter().zip(theirs).enumerate();
    let all = verdicts.map(|(i, (question, said))| (question, said.is_empty(), !refused.contains(&i)));
    Ok(all
        .filter(|(_, theirs, ours)| theirs != ours)
        .map(|(question, theirs, _)| (question, theirs))
        .collect())
}

/// Which of these lines the checker refuses.
fn refused(ours: &Path, frame: &Frame, texts: &[&str]) -> Result<HashSet<usize>> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("input.ptx");
    fs::write(&path, format!("{}{}\n{}", frame.before, texts.join("\n"), frame.after))?;
    let output = Command::new(ours).args(["check", "--format", "json"]).arg(&path).output()?;
    let said: Value = serde_json::from_slice(&output.stdout).map_err(|error| {
        format!("{}: {error}: {}", ours.display(), String::from_utf8_lossy(&output.stderr))
    })?;
    let first = frame.before.lines().count() + 1;
    let errors = said["diagnostics"].as_array().into_iter().flatten().filter(|d| d["severity"] == "error");
    Ok(errors.filter_map(|d| (d["line"].as_u64()? as usize).checked_sub(first)).collect())
}

/// Spellings of a row that between them have every choice of its slots; the first one is legal, if one is.
fn spellings_of(row: &'static Form) -> Vec<Spelling> {
    let mut all = some_spellings(row, SPELLINGS, &mut Rng::with_seed(1));
    all.sort_by_key(|spelling| !spelling.is_legal());
    let mut seen: HashSet<&str> = HashSet::new();
    all.retain(|spelling| {
        let new: Vec<_> = spelling.modifiers.iter().filter(|word| !seen.contains(*word)).copied().collect();
        seen.extend(&new);
        spelling.is_legal() && !new.is_empty()
    });
    all
}

/// Every choice of every row, one spelling of each at the last versions and all targets.
fn choices(reach: &Reach) -> Vec<Question> {
    let mut all = Vec::new();
    for row in rows() {
        // One spelling at all points, the others where there is most.
        for (i, spelling) in spellings_of(row).iter().enumerate() {
            let (text, what) = (instruction(spelling, 0), spelling.modifiers.join("."));
            let everywhere = reach.versions().flat_map(|version| {
                let points = reach.targets.iter().map(move |&target| (version, target));
                points.filter(|&point| exists(point))
            });
            let points: Vec<Point> = if i == 0 { everywhere.collect() } else { with_most(spelling, reach) };
            all.extend(points.into_iter().map(|at| Question {
                at,
                text: text.clone(),
                row,
                what: what.clone(),
            }));
        }
    }
    all
}

/// The point where a spelling is at home, and those of the targets that have most where it is legal.
fn with_most(spelling: &Spelling, reach: &Reach) -> Vec<Point> {
    let gates = spelling.form.form().gates(&spelling.picks);
    let permits = |(version, target): &Point| gates.iter().all(|gate| gate.permits(*version, *target));
    let richest = RICHEST.into_iter().map(|target| (reach.newest, target)).filter(permits);
    let mut points: Vec<Point> = richest.chain([home(spelling)]).filter(|&point| reach.has(point)).collect();
    points.sort_unstable();
    points.dedup();
    points
}

/// A spelling of every row, with every word added, and with each of its own left out.
fn with_words(reach: &Reach) -> Vec<Question> {
    let words: Vec<&str> =
        Mod::ALL.iter().map(|word| word.name()).chain(Type::ALL.iter().map(|ty| ty.name())).collect();
    let mut all = Vec::new();
    for row in rows() {
        let Some(spelling) = spellings_of(row).into_iter().next() else { continue };
        let points = with_most(&spelling, reach);
        let text = instruction(&spelling, 0);
        let operands = &text[spelling.mnemonic().len()..];
        let opcode = row.opcode.name();
        let mut ask = |modifiers: &[&str], what: String| {
            let mnemonic: String = modifiers.iter().map(|word| format!(".{word}")).collect();
            let text = format!("{opcode}{mnemonic}{operands}");
            all.extend(points.iter().map(|&at| Question { at, text: text.clone(), row, what: what.clone() }));
        };
        for word in &words {
            ask(&[&spelling.modifiers[..], &[word]].concat(), format!("+.{word}"));
        }
        for i in 0..spelling.modifiers.len() {
            let mut modifiers = spelling.modifiers.clone();
            let word = modifiers.remove(i);
            ask(&modifiers, format!("-.{word}"));
        }
    }
    all
}

/// Prints which words ptxas knows, as modifiers or as instructions, and the table does not.
fn unknown_words(ptxas: &Oracle, reach: &Reach, text: &str) -> Result<()> {
    let words: BTreeSet<&str> = text.split_whitespace().map(|word| word.trim_start_matches('.')).collect();
    let is_word = |word: &&str| word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, ':' | '_'));
    let is_modifier =
        |word: &str| Mod::from_name(word).is_some() || Type::ALL.iter().any(|ty| ty.name() == word);
    let modifiers: Vec<&str> = words.iter().copied().filter(is_word).filter(|w| !is_modifier(w)).collect();
    let is_name = |word: &&str| {
        word.starts_with(|c: char| c.is_ascii_lowercase())
            && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    };
    let names: Vec<&str> =
        words.iter().copied().filter(is_name).filter(|word| Opcode::from_name(word).is_none()).collect();
    let at = (reach.newest, *reach.targets.last().ok_or("no target")?);
    let frame = Frame { before: before(at), after: AFTER.to_owned() };
    // No instruction has the modifier: one that is known is refused for it alone.
    let asked = [
        ("word .", &modifiers, ["Unknown modifier", "Parsing error"], "add.", ".u32 %u8_1, %u8_1, 1;"),
        ("instruction ", &names, ["Not a name of any known", "Parsing error"], "", ".unknown %u8_1, 1;"),
    ];
    for (what, words, unknown, head, tail) in asked {
        let lines: Vec<String> = words.iter().map(|word| format!("{head}{word}{tail}")).collect();
        for (word, said) in words.iter().zip(ask(ptxas, &frame, &lines)?.lines) {
            if !said.iter().any(|text| unknown.iter().any(|unknown| text.contains(unknown))) {
                println!("lacks the {what}{word}: {}", said.first().map_or("", String::as_str));
            }
        }
    }
    Ok(())
}
